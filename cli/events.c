/* Events of a run as JSON lines. What a field means is CLI.md's; a number that is not finite is null. */
#include "events.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- where they go ------------------------------------------------------------------------------------ */

/* Whatever they are called. */
static bool same_directory(const char *a, const char *b)
{
    struct stat one, other;
    return a && stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

/* A run that was killed may have left one, to which ours would be glued. */
static void end_torn_line(FILE *file)
{
    bool torn = fseek(file, -1, SEEK_END) == 0 && getc(file) != '\n';
    fseek(file, 0, SEEK_END);
    if (torn)
        putc('\n', file);
}

bool events_open(const cli *c, int n, const char *const *directories, bool resumed, events *out,
                 int *status)
{
    *out = (events){ .cli = c, .json = c->json };
    if (c->json)
        out->to[out->count++] = stdout;
    for (int i = 0; i < n; i++) {
        if (!directories[i] || (i > 0 && same_directory(directories[0], directories[i])))
            continue;
        char path[4096];
        snprintf(path, sizeof path, "%s/run.jsonl", directories[i]);
        FILE *file = fopen(path, resumed ? "a+" : "w");
        if (!file) {
            *status = cli_error(c, EXIT_USAGE, LS_IO, "name a directory that can be written",
                                "cannot write '%s': %s", path, strerror(errno));
            events_close(out);
            return false;
        }
        if (resumed)
            end_torn_line(file);
        out->directories[out->count] = directories[i];
        out->to[out->count++] = file;
        out->where = out->where ? out->where : directories[i];
    }
    out->memory = out->where ? NULL : open_memstream(&out->text, &out->bytes);
    return true;
}

FILE *events_read(events *e)
{
    char path[4096];
    if (e->where) {
        snprintf(path, sizeof path, "%s/run.jsonl", e->where);
        return fopen(path, "r");
    }
    if (!e->memory || fflush(e->memory) || e->bytes == 0)
        return NULL;
    return fmemopen(e->text, e->bytes, "r");
}

/* Why a file does not hold all events: of the first that is missing. */
static void note_failure(events *e, int i)
{
    if (!e->why[i])
        e->why[i] = errno;
}

void events_close(events *e)
{
    for (int i = e->json; i < e->count; i++) {
        if (fclose(e->to[i]))
            note_failure(e, i);
        if (e->why[i])
            fprintf(stderr, "%s: warning: events are missing in '%s/run.jsonl': %s\n", e->cli->name,
                    e->directories[i], strerror(e->why[i]));
    }
    if (e->memory)
        fclose(e->memory);
    free(e->text);
    *e = (events){ 0 };
}

/* ---- parts ---------------------------------------------------------------------------------------------- */

/* The trainer's figures: "loss", "accuracy"; with data to test with also "test_loss"... */
static void put_figures(json *j, const session *s)
{
    const char *name;
    for (int i = 0; (name = ls_trainer_names(s->trainer, i)); i++) {
        if (strncmp(name, "test_", 5) != 0 || s->data.test)
            json_number(j, name, ls_trainer_value(s->trainer, name));
    }
    if (s->text)
        json_number(j, "bits_per_byte", session_bits(ls_trainer_value(s->trainer, "test_loss")));
}

static void put_replica_seconds(json *j, const session *s)
{
    json_begin_list(j, "replica_seconds");
    for (int r = 0; r < ls_num_replicas(s->strategy); r++) {
        double seconds[LS_PHASES];
        if (ls_phase_seconds(s->strategy, r, seconds))
            break;
        json_begin(j, NULL);
        for (int p = 0; p < LS_PHASES; p++)
            json_number(j, ls_phase_name((ls_phase)p), seconds[p]);
        json_end(j);
    }
    json_end(j);
}

/* One line, made once and written everywhere. */
typedef struct line {
    char *text;
    size_t bytes;
    json j;
} line;

static bool open_line(line *l, const char *event)
{
    FILE *memory = open_memstream(&l->text, &l->bytes);
    if (!memory)
        return false;
    l->j = json_open(memory);
    json_text(&l->j, "event", event);
    return true;
}

static void close_line(events *e, line *l, bool log_only)
{
    json_close(&l->j);
    fclose(l->j.to);
    if (e->json && !log_only) {
        fwrite(l->text, 1, l->bytes, stdout);
        cli_flush(stdout);
    }
    for (int i = e->json; i < e->count; i++)
        if (fwrite(l->text, 1, l->bytes, e->to[i]) < l->bytes || fflush(e->to[i]))
            note_failure(e, i);
    if (e->memory)
        fwrite(l->text, 1, l->bytes, e->memory);
    free(l->text);
}

/* ---- events ---------------------------------------------------------------------------------------------- */

static void put_devices(json *j, const session *s)
{
    const char *const *names;
    int count = session_devices(s, &names);
    json_begin_list(j, "devices");
    for (int i = 0; i < count; i++) {
        const char *number = strrchr(names[i], ':');
        char text[LS_DEVICE_NAME_MAX];
        snprintf(text, sizeof text, "/%s%s", strstr(names[i], "GPU") ? "gpu" : "cpu",
                 number ? number : "");
        json_text(j, NULL, text);
    }
    json_end(j);
}

void events_start(events *e, const session *s, int64_t resumed_step)
{
    line l = { 0 };
    if (!open_line(&l, "start"))
        return;
    json_text(&l.j, "model", s->model_name);
    json_whole(&l.j, "parameters", ls_model_parameters(ls_trainer_model(s->trainer)));
    json_whole(&l.j, "replicas", ls_num_replicas(s->strategy));
    put_devices(&l.j, s);
    json_whole(&l.j, "workers", 1);
    json_whole(&l.j, "pipelines", 1);
    json_whole(&l.j, "threads", s->threads);
    json_whole(&l.j, "global_batch", s->global_batch);
    json_text(&l.j, "profile", ls_math_profile());
    json_bool(&l.j, "same_bits", ls_same_bits(s->strategy));
    if (s->command)
        json_text(&l.j, "command", s->command);
    if (resumed_step > 0)
        json_whole(&l.j, "resumed_step", resumed_step);
    close_line(e, &l, false);
}

void events_step(events *e, int64_t step, double loss, double samples_per_second, bool log_only)
{
    line l = { 0 };
    if (!open_line(&l, "step"))
        return;
    json_whole(&l.j, "step", step);
    json_number(&l.j, "loss", loss);
    json_number(&l.j, "samples_per_second", samples_per_second);
    close_line(e, &l, log_only);
}

void events_epoch(events *e, const session *s, int64_t epoch, int64_t step)
{
    line l = { 0 };
    if (!open_line(&l, "epoch"))
        return;
    json_whole(&l.j, "epoch", epoch);
    json_whole(&l.j, "step", step);
    put_figures(&l.j, s);
    put_replica_seconds(&l.j, s);
    close_line(e, &l, false);
}

void events_interrupted(events *e, int64_t step, const char *signal, const char *checkpoint)
{
    line l = { 0 };
    if (!open_line(&l, "interrupted"))
        return;
    json_text(&l.j, "by", signal);
    json_whole(&l.j, "steps", step);
    if (checkpoint)
        json_text(&l.j, "checkpoint", checkpoint);
    close_line(e, &l, false);
}

void events_done(events *e, const session *s, const events_end *end)
{
    line l = { 0 };
    if (!open_line(&l, "end"))
        return;
    json_whole(&l.j, "steps", end->steps);
    put_figures(&l.j, s);
    json_number(&l.j, "samples_per_second", end->samples_per_second);
    json_number(&l.j, "seconds", end->seconds);
    json_whole(&l.j, "peak_rss_bytes", end->peak_rss_bytes);
    json_text(&l.j, "weights_sha256", end->weights);
    json_text(&l.j, "state_sha256", end->state);
    put_replica_seconds(&l.j, s);
    close_line(e, &l, false);
}
