/*
 * Recording phases, and the record as a file in Chrome's trace format: one object with a list of
 * events, a row (`tid`) a replica; times in microseconds since the recording began.
 *
 * Readers take times as doubles and cut them to whole nanoseconds, each by itself, and drop an event
 * that begins before the one before it has ended. So each is written a nanosecond shorter than it
 * was.
 */
#include <lockstep.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "os/clock.h"
#include "os/event.h"
#include "os/writer.h"
#include "strategy/phases.h"
#include "strategy/strategy.h"

/* ---- starting and ending --------------------------------------------------------------------------- */

static void stop(ls__phases *p)
{
    ls__phases_lock(p);
    p->recording = false;
    ls__phase_log_close(&p->waits);
    ls__phases_unlock(p);
    for (int r = 0; r < p->replicas; r++) {
        p->of[r].logged = false;
        ls__phase_log_close(&p->of[r].log);
    }
}

static ls_status start(ls__phases *p)
{
    ls__phase_log waits;
    ls_status st = ls__phase_log_open(&waits, p->most);
    for (int r = 0; r < p->replicas && !st; r++)
        st = ls__phase_log_open(&p->of[r].log, p->most);
    if (st) {
        ls__phase_log_close(&waits);
        stop(p);
        return st;
    }
    for (int r = 0; r < p->replicas; r++)
        p->of[r].logged = true;
    ls__phases_lock(p);
    p->waits = waits;
    p->recording = true;
    p->begun = ls__now();
    ls__phases_unlock(p);
    return LS_OK;
}

/* As a run does: nobody else has one under way meanwhile. */
static ls_status enter(const char *who, ls_strategy *s)
{
    ls_status st = ls__check_strategy(who, s);
    if (st)
        return st;
    if (ls__is_default(s))
        return ls__hint(ls__fail(LS_INVALID, "%s: the default strategy counts no phases", who),
                        "it is any thread's; make one with ls_mirrored");
    if (atomic_exchange(&s->running, true))
        return ls__fail(LS_STATE, "%s: %s is running a step; between steps", who,
                        ls__strategy_text(s));
    return LS_OK;
}

static void leave(ls_strategy *s)
{
    atomic_store(&s->running, false);
}

ls_status ls_profile_start(ls_strategy *s)
{
    ls_status st = enter("ls_profile_start", s);
    if (st)
        return st;
    stop(s->phases);
    st = start(s->phases);
    leave(s);
    return st;
}

/* ---- the file ---------------------------------------------------------------------------------------- */

typedef struct page {
    ls__writer *to;
    ls_status status; /* the first that failed */
    bool comma;       /* before the next event */
    int process;      /* its number */
} page;

static void put(page *f, const char *format, ...) LS_PRINTF(2, 3);
static void put(page *f, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!f->status)
        f->status = ls__writer_put(f->to, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
}

/* Microseconds with all their nanoseconds, whatever the locale. */
static void put_time(page *f, const char *name, int64_t ns)
{
    put(f, ",\"%s\":%lld.%03d", name, (long long)(ns / 1000), (int)(ns % 1000));
}

/* Perfetto takes 0 for the idle thread, and a thread with the number of its process for the main one:
 * replicas are 1 to V. */
static void begin_event(page *f, const char *name, char kind, int replica)
{
    put(f, "%s\n{\"name\":\"%s\",\"ph\":\"%c\",\"pid\":%d,\"tid\":%d", f->comma ? "," : "", name,
        kind, f->process, replica + 1);
    f->comma = true;
}

/* "CPU:0" of "/job:localhost/replica:0/task:0/device:CPU:0": canonical names, in which nothing has to
 * be escaped. */
static const char *short_name(const char *device)
{
    static const char before[] = "/device:";
    const char *at = strstr(device, before);
    return at ? at + sizeof before - 1 : device;
}

static void put_names(page *f, const ls_strategy *s)
{
    begin_event(f, "process_name", 'M', 0);
    put(f, ",\"args\":{\"name\":\"lockstep\"}}");
    for (int r = 0; r < s->replicas; r++) {
        begin_event(f, "thread_name", 'M', r);
        put(f, ",\"args\":{\"name\":\"replica %d on %.200s\"}}", r,
            short_name(s->replica_names[r]));
        begin_event(f, "thread_sort_index", 'M', r);
        put(f, ",\"args\":{\"sort_index\":%d}}", r);
    }
}

static void put_span(page *f, int replica, const ls__phase_span *span, int64_t begin, int64_t begun)
{
    begin_event(f, ls_phase_name(ls__span_phase(span)), 'X', replica);
    put_time(f, "ts", begin - begun);
    put_time(f, "dur", span->end - begin - 1);
    put(f, ",\"cat\":\"phase\",\"args\":{\"step\":%lld}}", (long long)ls__span_step(span));
}

/* What a replica did, and between that the waits of all, in order. What another thread waited for
 * while the replica was at work is no wait of its. Returns how many are not in the file. */
static int64_t put_row(page *f, const ls__phases *p, int replica, int64_t n_waits)
{
    const ls__phase_log *own = &p->of[replica].log, *waits = &p->waits;
    int64_t at = p->begun, written = 0, left_out = own->left_out;
    for (int64_t i = 0, k = 0; i < own->count || k < n_waits;) {
        const ls__phase_span *a = i < own->count ? ls__phase_log_at(own, i) : NULL;
        const ls__phase_span *b = k < n_waits ? ls__phase_log_at(waits, k) : NULL;
        const bool mine = a && (!b || a->begin <= b->begin);
        const ls__phase_span *span = mine ? a : b;
        i += mine;
        k += !mine;
        const int64_t begin = span->begin > at ? span->begin : at;
        if (span->end - begin < 2)
            continue;
        at = span->end;
        if (written == p->most) {
            left_out++;
            continue;
        }
        put_span(f, replica, span, begin, p->begun);
        written++;
    }
    return left_out;
}

static ls_status write_all(const ls_strategy *s, page *f)
{
    ls__phases *p = s->phases;
    ls__phases_lock(p);
    const int64_t n_waits = p->waits.count; /* more may be added behind them */
    int64_t left_out = p->waits.left_out;
    ls__phases_unlock(p);
    put(f, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    put_names(f, s);
    for (int r = 0; r < s->replicas && !f->status; r++)
        left_out += put_row(f, p, r, n_waits);
    put(f, "\n],\"otherData\":{\"version\":\"lockstep %s\",\"replicas\":%d,\"left_out\":%lld}}\n",
        ls_version(), s->replicas, (long long)left_out);
    return f->status;
}

static ls_status write_file(const ls_strategy *s, const char *path)
{
    if (!s->phases->recording)
        return ls__hint(ls__fail(LS_STATE, "ls_profile_write: nothing is being recorded"),
                        "ls_profile_start begins it");
    page f = { .process = s->replicas + 1 };
    ls_status st = ls__writer_open(path, LS__PLAIN, &f.to);
    if (st)
        return st;
    if (write_all(s, &f)) {
        ls__writer_discard(f.to);
        return f.status;
    }
    return ls__writer_close(f.to);
}

ls_status ls_profile_write(ls_strategy *s, const char *path)
{
    ls_status st = enter("ls_profile_write", s);
    if (st)
        return st;
    st = path ? write_file(s, path) : ls__fail(LS_INVALID, "ls_profile_write: the path is NULL");
    if (!st)
        stop(s->phases);
    leave(s);
    return st;
}
