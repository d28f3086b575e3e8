/*
 * Writing event files. Invariant: the file has whole records only, so that whoever reads along never
 * meets half of one; what was not on the disk when writing failed is left out, and the next
 * events are tried again. Events are kept in memory for some seconds, looked at whenever there is one
 * more: no thread.
 */
#include "train/events.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "data/framing.h"
#include "os/appender.h"
#include "os/directory.h"
#include "os/process.h"
#include "tensor/tensor.h"

enum { KEPT = 64 << 10 };        /* bytes, at most, that wait for the disk */
enum { MOST_BYTES = INT32_MAX }; /* of an event: protobuf reads no more */
static const double SECONDS = 5; /* that they wait, at most, when more come */

struct ls_events {
    ls__appender *file;
    ls__buffer waiting; /* records, whole ones */
    ls__buffer event;   /* the next one, while it is made */
    double flushed;     /* when, in steady seconds */
    double wait;        /* seconds until the next time */
};

/* ---- opening ------------------------------------------------------------------------------------- */

/* What TensorBoard looks for, and what differs from any other writer's, on other machines too. */
static ls_status open_file(const char *who, ls_events *e, const char *directory)
{
    static atomic_int opened;
    char host[128], *path;
    ls__host_name(host, sizeof host);
    for (char *at = host; *at; at++)
        if (*at == '/')
            *at = '_';
    ls_status st = ls__make_directory(who, directory);
    while (!st && !e->file) {
        if (asprintf(&path, "%s/events.out.tfevents.%010lld.%s.%ld.%d", directory,
                     (long long)ls__wall_seconds(), host, ls__process_number(),
                     atomic_fetch_add(&opened, 1)) < 0)
            return ls__fail_memory(who, strlen(directory));
        st = ls__appender_open(path, &e->file); /* none, if there is one of this name */
        free(path);
    }
    return st;
}

static ls_status add_event(const char *who, ls_events *e);

static void free_events(ls_events *e)
{
    ls__appender_close(e->file);
    ls__buffer_free(&e->waiting);
    ls__buffer_free(&e->event);
    free(e);
}

ls_events *ls_events_open(const char *directory)
{
    const char *who = "ls_events_open";
    ls_events *e = calloc(1, sizeof *e);
    if (!e) {
        ls__fail_memory(who, sizeof *e);
        return NULL;
    }
    ls_status st = open_file(who, e, directory);
    e->flushed = ls__steady_seconds();
    e->wait = SECONDS;
    if (!st) {
        ls__event_version(&e->event, ls__wall_seconds());
        st = add_event(who, e);
    }
    if (!st)
        st = ls_events_flush(e);
    if (!st)
        return e;
    ls__appender_discard(e->file);
    e->file = NULL;
    free_events(e);
    return NULL;
}

void ls__events_wait(ls_events *e, double seconds)
{
    e->wait = seconds;
}

/* ---- writing -------------------------------------------------------------------------------------- */

static ls_status check(const char *who, const ls_events *e)
{
    if (e)
        return LS_OK;
    if (ls_error_pending())
        return ls_error_pending();
    return ls__hint(ls__fail(LS_INVALID, "%s: the writer is NULL", who),
                    "ls_events_open gives one, or says why not");
}

static ls_status write_waiting(ls_events *e)
{
    ls_status st = ls__appender_put(e->file, e->waiting.at, e->waiting.used);
    e->waiting.used = 0;
    return st;
}

static ls_status write_out(ls_events *e)
{
    e->flushed = ls__steady_seconds(); /* also when it fails: not again with every event */
    ls_status st = write_waiting(e);
    return st ? st : ls__appender_sync(e->file);
}

/* Frames e->event and puts it with those that wait. */
static ls_status add_event(const char *who, ls_events *e)
{
    unsigned char head[LS__TFRECORD_HEAD], tail[LS__TFRECORD_TAIL];
    ls__buffer *to = &e->waiting, *event = &e->event;
    size_t before = to->used, bytes = event->used;
    bool failed = event->failed;
    if (!failed && bytes <= MOST_BYTES) {
        ls__tfrecord_frame(event->at, bytes, head, tail);
        ls__buffer_add(to, head, sizeof head);
        ls__buffer_add(to, event->at, bytes);
        ls__buffer_add(to, tail, sizeof tail);
        failed = to->failed;
    }
    event->used = 0;
    event->failed = to->failed = false;
    if (failed) {
        to->used = before;
        return ls__fail_memory(who, bytes);
    }
    if (bytes > MOST_BYTES)
        return ls__hint(ls__fail(LS_INVALID, "%s: %zu bytes", who, bytes),
                        "nobody reads an event of more than 2 GiB");
    if (ls__steady_seconds() - e->flushed >= e->wait)
        return write_out(e);
    return to->used >= KEPT ? write_waiting(e) : LS_OK;
}

ls_status ls_events_flush(ls_events *e)
{
    ls_status st = check("ls_events_flush", e);
    return st ? st : write_out(e);
}

ls_status ls_events_close(ls_events *e)
{
    if (!e)
        return ls_error_pending();
    ls_status st = write_out(e);
    free_events(e);
    return st;
}

/* ---- events ------------------------------------------------------------------------------------------ */

/* Readers throw a whole event away for one byte of a string that is no UTF-8. */
static ls_status check_words(const char *who, const char *what, const char *text)
{
    if (!text)
        return ls__fail(LS_INVALID, "%s: the %s is NULL", who, what);
    size_t good = ls__utf8_good(text);
    if (text[good])
        return ls__fail(LS_INVALID, "%s: the %s is no UTF-8 at byte %zu", who, what, good);
    return LS_OK;
}

static ls_status check_tag(const char *who, const ls_events *e, const char *tag)
{
    ls_status st = check(who, e);
    if (!st)
        st = check_words(who, "tag", tag);
    if (!st && !tag[0])
        st = ls__hint(ls__fail(LS_INVALID, "%s: the tag is empty", who),
                      "it is the name of the curve: \"loss\", \"conv/kernel\"");
    return st;
}

ls_status ls_events_scalar(ls_events *e, int64_t step, const char *tag, double value)
{
    ls_status st = check_tag("ls_events_scalar", e, tag);
    if (st)
        return st;
    ls__event_scalar(&e->event, ls__wall_seconds(), step, tag, value);
    return add_event("ls_events_scalar", e);
}

ls_status ls_events_text(ls_events *e, int64_t step, const char *tag, const char *text)
{
    ls_status st = check_tag("ls_events_text", e, tag);
    if (!st)
        st = check_words("ls_events_text", "text", text);
    if (st)
        return st;
    ls__event_text(&e->event, ls__wall_seconds(), step, tag, text);
    return add_event("ls_events_text", e);
}

static ls_status check_values(const char *who, const ls_tensor *t)
{
    if (!t)
        return ls_error_pending() ? ls_error_pending()
                                  : ls__fail(LS_INVALID, "%s: the tensor is NULL", who);
    ls_status st = ls__check_tensor(who, "the tensor", t);
    if (st)
        return st;
    if (t->spec.dtype == LS_BYTES)
        return ls__fail(LS_SHAPE, "%s: of %s, wants numbers", who, ls_describe(t));
    if (t->storage->symbol)
        return ls__hint(ls__fail(LS_STATE, "%s: in a traced step", who),
                        "its value is known when the step is replayed: return it from there");
    if (t->sparse_rows)
        return ls__hint(ls__fail(LS_SHAPE, "%s: the tensor is sparse", who), "use ls_densify");
    return LS_OK;
}

ls_status ls_events_histogram(ls_events *e, int64_t step, const char *tag, ls_tensor *values)
{
    ls__histogram h;
    ls_status st = check_tag("ls_events_histogram", e, tag);
    if (!st)
        st = check_values("ls_events_histogram", values);
    if (st)
        return st;
    ls__histogram_of(values->spec.dtype, ls__data(values), ls__spec_count(&values->spec), &h);
    ls__event_histogram(&e->event, ls__wall_seconds(), step, tag, &h);
    return add_event("ls_events_histogram", e);
}

ls_status ls_events_graph(ls_events *e, const ls_function *function)
{
    ls__buffer graph = { 0 };
    ls_status st = check("ls_events_graph", e);
    if (!st)
        st = ls__graph_def("ls_events_graph", function, &graph);
    if (!st) {
        ls__event_graph(&e->event, ls__wall_seconds(), &graph);
        e->event.failed |= graph.failed;
        st = add_event("ls_events_graph", e);
    }
    ls__buffer_free(&graph);
    return st;
}
