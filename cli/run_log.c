/*
 * Reads what a run wrote down. Invariant: whatever is in the file, points ascend and there is one
 * for a step or an epoch: what comes later replaces what it did again. Lines are bounded, so that
 * no file can ask for more memory than it has itself.
 *
 * Time is counted in parts, one for each start event: a part's is what its last event told that is
 * kept, and the run's is their sum.
 */
#include "run_log.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_LINE = 1 << 20, /* bytes: some thousand replicas */
    MOST_FIGURES = 64,
    MOST_REPLICAS = 4096,
};

/* What a process told of its time, at a step. */
typedef struct run_times {
    int64_t step;
    int n;
    run_phases *phases;
    double seconds;
} run_times;

struct run_part {
    size_t n, room;
    run_times *times;
};

/* ---- memory ------------------------------------------------------------------------------ */

run_log *run_log_new(void)
{
    run_log *log = calloc(1, sizeof *log);
    if (!log)
        return NULL;
    log->model = strdup("");
    log->command = strdup("");
    if (log->model && log->command)
        return log;
    run_log_free(log);
    return NULL;
}

static void free_part(struct run_part *part)
{
    for (size_t i = 0; i < part->n; i++)
        free(part->times[i].phases);
    free(part->times);
}

void run_log_free(run_log *log)
{
    if (!log)
        return;
    for (size_t i = 0; i < log->n_figures; i++) {
        free(log->figures[i].name);
        free(log->figures[i].points);
    }
    for (size_t i = 0; i < log->n_parts; i++)
        free_part(&log->parts[i]);
    free(log->parts);
    free(log->figures);
    free(log->phases);
    free(log->model);
    free(log->command);
    free(log);
}

/* One more of `size` bytes in an array of n; false: no memory, which the log remembers. */
static bool one_more(run_log *log, void *array, size_t n, size_t *room, size_t size)
{
    void **at = array;
    if (n < *room)
        return true;
    size_t wanted = 2 * *room + 8;
    void *more = realloc(*at, wanted * size);
    if (!more) {
        log->out_of_memory = true;
        return false;
    }
    *at = more;
    *room = wanted;
    return true;
}

static void replace_text(run_log *log, char **at, const char *value)
{
    char *copy = value ? strdup(value) : NULL;
    log->out_of_memory = log->out_of_memory || (value && !copy);
    if (!copy)
        return;
    free(*at);
    *at = copy;
}

/* ---- figures ------------------------------------------------------------------------------ */

const run_figure *run_log_find(const run_log *log, const char *name)
{
    for (size_t i = 0; i < log->n_figures; i++)
        if (strcmp(log->figures[i].name, name) == 0)
            return &log->figures[i];
    return NULL;
}

static run_figure *figure(run_log *log, const char *name)
{
    run_figure *known = (run_figure *)run_log_find(log, name);
    if (known || log->n_figures == MOST_FIGURES)
        return known;
    run_figure *all = realloc(log->figures, (log->n_figures + 1) * sizeof *all);
    if (all)
        log->figures = all;
    char *copy = all ? strdup(name) : NULL;
    if (!copy) {
        log->out_of_memory = true;
        return NULL;
    }
    all[log->n_figures] = (run_figure){ .name = copy };
    return &all[log->n_figures++];
}

/* Points ascend: those that are not before it are replaced by it. */
static void add_point(run_log *log, const char *name, run_point point)
{
    run_figure *f = figure(log, name);
    if (!f)
        return;
    while (f->n > 0 && (point.epoch ? f->points[f->n - 1].epoch >= point.epoch
                                    : f->points[f->n - 1].step >= point.step))
        f->n--;
    if (one_more(log, &f->points, f->n, &f->room, sizeof *f->points))
        f->points[f->n++] = point;
}

/* ---- time ---------------------------------------------------------------------------------- */

const char *run_phase_name(int phase)
{
#define PHASE_TEXT(name, value, text) [value] = text,
    static const char *const names[LS_PHASES] = { LS_PHASE_LIST(PHASE_TEXT) };
#undef PHASE_TEXT
    return names[phase];
}

static double number_or(const json_t *value, double otherwise)
{
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

static double seconds_of(const json_t *value)
{
    double seconds = number_or(value, 0);
    return seconds >= 0 && seconds < 1e12 ? seconds : 0;
}

/* What an epoch or end event says of the time so far, if it does. */
static void add_times(run_log *log, const json_t *event)
{
    const json_t *replicas = json_object_get(event, "replica_seconds");
    size_t n = json_array_size(replicas); /* 0 of what is no array */
    struct run_part *part = log->n_parts ? &log->parts[log->n_parts - 1] : NULL;
    if (!part || n > MOST_REPLICAS ||
        !one_more(log, &part->times, part->n, &part->room, sizeof *part->times))
        return;
    run_times *t = &part->times[part->n];
    *t = (run_times){ .step = log->steps, .n = (int)n };
    t->seconds = seconds_of(json_object_get(event, "seconds"));
    t->phases = n ? calloc(n, sizeof *t->phases) : NULL;
    if (n && !t->phases) {
        log->out_of_memory = true;
        return;
    }
    for (size_t r = 0; r < n; r++)
        for (int phase = 0; phase < LS_PHASES; phase++)
            t->phases[r][phase] =
                seconds_of(json_object_get(json_array_get(replicas, r), run_phase_name(phase)));
    part->n++;
}

/* The sum of what each part told last. */
static void sum_times(run_log *log)
{
    int n = 0;
    for (size_t i = 0; i < log->n_parts; i++)
        for (size_t j = 0; j < log->parts[i].n; j++)
            n = log->parts[i].times[j].n > n ? log->parts[i].times[j].n : n;
    run_phases *all = calloc((size_t)n + 1, sizeof *all);
    if (!all) {
        log->out_of_memory = true;
        return;
    }
    log->seconds = 0;
    bool told = true;
    for (size_t i = 0; i < log->n_parts; i++) {
        const run_times *last = NULL;
        for (size_t j = 0; j < log->parts[i].n; j++)
            last = log->parts[i].times[j].n ? &log->parts[i].times[j] : last;
        for (int r = 0; last && r < last->n; r++)
            for (int phase = 0; phase < LS_PHASES; phase++)
                all[r][phase] += last->phases[r][phase];
        if (log->parts[i].n == 0)
            continue;
        double seconds = log->parts[i].times[log->parts[i].n - 1].seconds;
        log->seconds += seconds;
        told = told && seconds > 0;
    }
    log->seconds = told ? log->seconds : 0;
    free(log->phases);
    log->phases = all;
    log->n_replicas = n;
}

/* ---- events -------------------------------------------------------------------------------- */

/* What was done after this step did not happen. */
static void drop_after(run_log *log, int64_t step)
{
    for (size_t i = 0; i < log->n_figures; i++) {
        run_figure *f = &log->figures[i];
        while (f->n > 0 && f->points[f->n - 1].step > step)
            f->n--;
    }
    for (size_t i = 0; i < log->n_parts; i++) {
        struct run_part *part = &log->parts[i];
        while (part->n > 0 && part->times[part->n - 1].step > step)
            free(part->times[--part->n].phases);
    }
    log->steps = log->steps < step ? log->steps : step;
    log->samples_per_second = 0;
}

static int64_t whole(const json_t *event, const char *key, int64_t otherwise)
{
    const json_t *value = json_object_get(event, key);
    return json_is_integer(value) && json_integer_value(value) >= 0 ? json_integer_value(value)
                                                                    : otherwise;
}

static bool add_start(run_log *log, const json_t *event)
{
    drop_after(log, whole(event, "resumed_step", 0));
    log->steps = whole(event, "resumed_step", 0);
    log->starts++;
    struct run_part *parts = realloc(log->parts, (log->n_parts + 1) * sizeof *parts);
    log->out_of_memory = log->out_of_memory || !parts;
    if (!parts)
        return true;
    log->parts = parts;
    log->parts[log->n_parts++] = (struct run_part){ 0 };
    sum_times(log);
    replace_text(log, &log->model, json_string_value(json_object_get(event, "model")));
    replace_text(log, &log->command, json_string_value(json_object_get(event, "command")));
    log->parameters = whole(event, "parameters", log->parameters);
    log->replicas = whole(event, "replicas", log->replicas);
    log->global_batch = whole(event, "global_batch", log->global_batch);
    return true;
}

static bool add_step(run_log *log, const json_t *event)
{
    int64_t step = whole(event, "step", -1);
    if (step < 0)
        return false;
    log->steps = step;
    add_point(log, RUN_STEP_LOSS,
              (run_point){ step, 0, number_or(json_object_get(event, "loss"), NAN) });
    return true;
}

/* What is a number in an epoch's event is a figure, but for these. */
static bool is_figure(const char *key)
{
    static const char *const others[] = {
        "epoch", "epochs",  "step", "steps", "samples",
        "rate",  "seconds", "time", "event", "samples_per_second"
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(key, others[i]) == 0)
            return false;
    return true;
}

static bool add_epoch(run_log *log, json_t *event)
{
    int64_t epoch = whole(event, "epoch", 0);
    if (epoch < 1)
        return false;
    log->steps = whole(event, "step", log->steps);
    const char *key;
    json_t *value;
    json_object_foreach(event, key,
                        value) if ((json_is_number(value) || json_is_null(value)) && is_figure(key))
        add_point(log, key, (run_point){ log->steps, epoch, number_or(value, NAN) });
    add_times(log, event);
    sum_times(log);
    return true;
}

static bool add_end(run_log *log, const json_t *event)
{
    log->steps = whole(event, "steps", log->steps);
    log->samples_per_second = number_or(json_object_get(event, "samples_per_second"), 0);
    add_times(log, event);
    sum_times(log);
    return true;
}

static bool add_event(run_log *log, const char *line, size_t length)
{
    json_t *event = json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL);
    const char *kind = json_string_value(json_object_get(event, "event"));
    bool fine = kind != NULL; /* kinds that are not known are for others */
    if (fine && strcmp(kind, "start") == 0)
        fine = add_start(log, event);
    else if (fine && strcmp(kind, "step") == 0)
        fine = add_step(log, event);
    else if (fine && strcmp(kind, "epoch") == 0)
        fine = add_epoch(log, event);
    else if (fine && strcmp(kind, "end") == 0)
        fine = add_end(log, event);
    json_decref(event);
    return fine;
}

void run_log_add(run_log *log, const char *line, size_t length)
{
    log->lines++;
    log->damaged += !add_event(log, line, length);
}

/* ---- files --------------------------------------------------------------------------------- */

/* The next line, at most MOST_LINE bytes of it; its length may be more. False: there is none. */
static bool next_line(FILE *from, char *line, size_t *length, bool *ended)
{
    int c;
    *length = 0;
    while ((c = getc_unlocked(from)) != EOF && c != '\n') {
        if (*length < MOST_LINE)
            line[*length] = (char)c;
        ++*length;
    }
    *ended = c == '\n';
    return *ended || *length > 0;
}

bool run_log_read(run_log *log, FILE *from)
{
    char *line = malloc(MOST_LINE);
    if (!line)
        return false;
    size_t length;
    bool ended;
    while (next_line(from, line, &length, &ended)) {
        bool fine = length <= MOST_LINE && add_event(log, line, length);
        if (!fine && !ended)
            break; /* torn */
        log->lines++;
        log->damaged += !fine;
    }
    int why = errno;
    free(line);
    errno = why;
    return !ferror(from) && !log->out_of_memory;
}
