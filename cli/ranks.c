/*
 * Ranks on the devices' pinned threads (ls_device_run), each called from a thread that only waits for it.
 * Invariant: a rank that fails, or cannot be started, releases all who wait in a meeting. Ranks that
 * wait elsewhere, in a collective say, are for the failing rank's function to release.
 *
 * The meeting spins: a timed call must not begin with a rank that is being woken. Where there are
 * more ranks than cores it yields, so that the one waited for can run.
 */
#include "ranks.h"

#include <lockstep/device.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Some microseconds: ranks that have a core each arrive sooner. */
enum { SPINS = 2000 };

struct cli_ranks {
    int n;
    int spins;
    cli_rank_fn *fn;
    void *user;
    _Alignas(64) _Atomic int arrived;
    _Alignas(64) _Atomic unsigned turn; /* meetings held */
    atomic_bool broken;
};

typedef struct rank_thread {
    cli_ranks *ranks;
    int rank;
    pthread_t thread; /* that waits for the device's */
    cli_failure why;
} rank_thread;

static void spin_once(int turn, int spins)
{
    if (turn >= spins) {
        sched_yield();
        return;
    }
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

bool cli_ranks_meet(cli_ranks *r)
{
    unsigned turn = atomic_load_explicit(&r->turn, memory_order_relaxed);
    /* Release of what was written before, acquire of what the others had: the last one passes all
     * of it on with the turn. */
    if (atomic_fetch_add_explicit(&r->arrived, 1, memory_order_acq_rel) == r->n - 1) {
        atomic_store_explicit(&r->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&r->turn, turn + 1, memory_order_release);
    }
    for (int i = 0; atomic_load_explicit(&r->turn, memory_order_acquire) == turn; i++) {
        if (atomic_load_explicit(&r->broken, memory_order_relaxed))
            return false;
        spin_once(i < r->spins ? i : r->spins, r->spins);
    }
    return true;
}

static void give_up(rank_thread *t, ls_status code, const char *text, const char *hint)
{
    t->why.code = code;
    snprintf(t->why.text, sizeof t->why.text, "%s", text);
    snprintf(t->why.hint, sizeof t->why.hint, "%s", hint);
    atomic_store_explicit(&t->ranks->broken, true, memory_order_relaxed);
}

static ls_status on_device(void *arg)
{
    rank_thread *t = arg;
    return t->ranks->fn(t->ranks, t->rank, t->ranks->user);
}

static void *wait_for_rank(void *arg)
{
    rank_thread *t = arg;
    char device[32];
    snprintf(device, sizeof device, "/cpu:%d", t->rank);
    ls_status st = ls_device_run(device, on_device, t);
    if (st == LS_OK)
        return NULL;
    bool own = ls_error_pending() != LS_OK;
    ls_error();
    give_up(t, st, own ? ls_error_text() : "", own ? ls_error_hint() : "");
    return NULL;
}

static cli_ranks *make_ranks(int n, cli_rank_fn *fn, void *user)
{
    cli_ranks *r = aligned_alloc(_Alignof(cli_ranks), sizeof *r);
    if (r) {
        *r = (cli_ranks){ .n = n, .fn = fn, .user = user };
        r->spins = n <= ls_cpu_cores() ? SPINS : 0;
    }
    return r;
}

/* The lowest rank with an error of its own; NULL: none failed. */
static const cli_failure *first_failure(int n, const rank_thread *threads)
{
    const cli_failure *first = NULL;
    for (int r = 0; r < n; r++) {
        const cli_failure *why = &threads[r].why;
        if (why->code != LS_OK && (!first || (!first->text[0] && why->text[0])))
            first = why;
    }
    return first;
}

bool cli_ranks_run(int n, cli_rank_fn *fn, void *user, cli_failure *why)
{
    cli_ranks *ranks = make_ranks(n, fn, user);
    rank_thread *threads = calloc((size_t)n, sizeof *threads);
    *why = (cli_failure){ .code = LS_NO_MEMORY, .text = "no memory for the ranks" };
    bool done = false;
    if (!ranks || !threads)
        goto out;
    int started = 0;
    for (; started < n; started++) {
        rank_thread *t = &threads[started];
        *t = (rank_thread){ .ranks = ranks, .rank = started };
        int error = pthread_create(&t->thread, NULL, wait_for_rank, t);
        if (error) {
            give_up(t, LS_IO, strerror(error), "ask for fewer ranks");
            break;
        }
    }
    for (int r = 0; r < started; r++)
        pthread_join(threads[r].thread, NULL);
    const cli_failure *first = first_failure(n, threads);
    done = !first;
    if (first)
        *why = *first;
out:
    free(threads);
    free(ranks);
    return done;
}
