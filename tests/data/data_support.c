/*
 * See data_support.h.
 */
#include "data/data_support.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <lockstep/records.h>

static void say_nothing(ls_log_level level, const char *message, void *user)
{
    (void)level, (void)message, (void)user;
}

ls_strategy *pipelines_of(int replicas, int pipelines)
{
    ls_log_set(say_nothing, NULL, LS_LOG_ERROR);
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = replicas > 1 ? "/cpu:0,/cpu:1" : "/cpu:0",
                                             .replicas = replicas, .input_pipelines = pipelines));
    if (!s)
        fail_msg("%d replicas, %d pipelines: %s", replicas, pipelines, ls_error_report());
    return s;
}

/* ---- elements as text ----------------------------------------------------------------------- */

static size_t write_tensor(char *to, size_t room, const ls_tensor *t)
{
    size_t n = 0;
    ls_tensor *wide = ls_dtype_of(t) == LS_BYTES ? NULL : ls_cast((ls_tensor *)t, LS_F64);
    const double *numbers = wide ? ls_data(wide) : NULL;
    for (int64_t i = 0; i < ls_count(t) && n < room; i++) {
        const void *string = "?";
        size_t length = 1;
        if (numbers)
            n += (size_t)snprintf(to + n, room - n, "%s%.17g", i ? " " : "", numbers[i]);
        else if (ls_string_at(t, i, &string, &length) == LS_OK)
            n += (size_t)snprintf(to + n, room - n, "%s%.*s", i ? " " : "", (int)length,
                                  (const char *)string);
    }
    return n;
}

static size_t write_element(char *to, size_t room, const ls_value *v)
{
    ls_tensor *leaves[16];
    int count = ls_leaf_count(v);
    size_t n = (size_t)snprintf(to, room, "[");
    if (count > 16 || ls_flatten(v, leaves))
        return n + (size_t)snprintf(to + n, room - n, "no element]");
    for (int i = 0; i < count && n < room; i++) {
        n += (size_t)snprintf(to + n, room - n, "%s", i ? "; " : "");
        n += n < room ? write_tensor(to + n, room - n, leaves[i]) : 0;
    }
    return n + (n < room ? (size_t)snprintf(to + n, room - n, "]") : 0);
}

const char *written(const ls_value *element, int replicas)
{
    static char buffers[8][1024];
    static int turn;
    char *to = buffers[turn++ % 8];
    size_t n = 0;
    *to = '\0';
    if (replicas && ls_components(element) != replicas)
        snprintf(to, sizeof *buffers, "%d components", ls_components(element));
    else if (!replicas)
        write_element(to, sizeof *buffers, element);
    else
        for (int i = 0; i < replicas && n < sizeof *buffers; i++)
            n += write_element(to + n, sizeof *buffers - n, ls_select(element, i));
    return to;
}

void goes_on(const char *file, int line, ls_iterator *it, int replicas, const char *const *want)
{
    for (int i = 0;; i++)
        LS_FRAME {
            ls_value *v = NULL;
            ls_status st = ls_next(it, &v);
            if (st != (want[i] ? LS_OK : LS_END))
                fail_msg("%s:%d: element %d: %s %s", file, line, i, ls_status_name(st),
                         st == LS_OK ? written(v, replicas) : ls_error_report());
            if (st)
                return;
            if (strcmp(written(v, replicas), want[i]) != 0)
                fail_msg("%s:%d: element %d is %s, not %s", file, line, i, written(v, replicas),
                         want[i]);
        }
}

void gives_all(const char *file, int line, ls_dataset *d, int replicas, const char *const *want)
{
    ls_iterator *it = ls_iterate(d);
    if (!it)
        fail_msg("%s:%d: %s", file, line, ls_error_report());
    goes_on(file, line, it, replicas, want);
    ls_iterator_free(it);
}

void refused_with(const char *file, int line, ls_status want, const char *const *words)
{
    ls_status got = ls_error();
    if (got != want)
        fail_msg("%s:%d: wanted %s, got %s: %s", file, line, ls_status_name(want),
                 ls_status_name(got), ls_error_text());
    for (int i = 0; words[i]; i++)
        if (!strstr(ls_error_text(), words[i]) && !strstr(ls_error_hint(), words[i]))
            fail_msg("%s:%d: the text lacks '%s': %s (%s)", file, line, words[i], ls_error_text(),
                     ls_error_hint());
}

int numbers_of(ls_tensor *t, int64_t *out, int room)
{
    ls_tensor *wide = ls_cast(t, LS_I64);
    int n = (int)ls_count(wide);
    const int64_t *data = ls_data(wide);
    for (int i = 0; i < n && i < room; i++)
        out[i] = data[i];
    return n;
}

ls_value *numbers_leaf(int64_t count, const int64_t *numbers)
{
    return ls_leaf(ls_from(LS_I64, LS_DIMS(count), numbers));
}

/* ---- files ---------------------------------------------------------------------------------- */

static char directory[64];

int make_directory(void **state)
{
    (void)state;
    snprintf(directory, sizeof directory, "/tmp/lockstep-data-XXXXXX");
    return mkdtemp(directory) ? 0 : -1;
}

const char *in_directory(const char *name)
{
    static char buffers[8][256];
    static int turn;
    char *to = buffers[turn++ % 8];
    snprintf(to, sizeof *buffers, "%s/%s", directory, name);
    return to;
}

int remove_directory(void **state)
{
    (void)state;
    glob_t found;
    if (!glob(in_directory("*"), 0, NULL, &found))
        for (size_t i = 0; i < found.gl_pathc; i++)
            remove(found.gl_pathv[i]);
    globfree(&found);
    return rmdir(directory);
}

void write_records(const char *name, int first, int count)
{
    ls_record_writer *w = ls_record_writer_open(in_directory(name), LS_PLAIN);
    for (int i = first; i < first + count; i++) {
        char text[32];
        int n = snprintf(text, sizeof text, "%d", i);
        ls_record_write(w, text, (size_t)n);
    }
    if (ls_record_writer_close(w))
        fail_msg("%s: %s", name, ls_error_report());
}

ls_value *text_to_number(ls_value *element, void *user)
{
    (void)user;
    const void *text;
    size_t length;
    if (ls_string_at(ls_leaf_tensor(element), 0, &text, &length))
        return NULL;
    return ls_leaf(ls_scalar_int(LS_I64, strtoll(text, NULL, 10)));
}
