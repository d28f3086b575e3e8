/*
 * How ranks meet. Each has a seat with a count of its own, which it advances when it comes; it
 * then looks at the seats of all others until they have come as often. Two threads that spin need
 * one cache line each way; where they outnumber the cores they sleep at once.
 *
 * Failure. The first one to fail (a deadline, different requests, ls_comm_abort) records why and
 * advances all seats so far that no wait can last; whoever comes out of a meeting looks whether it has
 * failed. A rank must not return while another still reads its memory, so one that fails first says
 * that it has left, and then waits for all who entered to leave.
 *
 * Why that is enough: rank B enters, comes to its seat, and looks at the state; A changes the state,
 * advances B's seat, and looks whether B has entered. Both advance the same count, one after the
 * other. If B was first, A sees that it entered, and waits; if A was, B sees that it failed, and reads
 * nobody's memory.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "collective/comm.h"

enum { END_ALL_WAITS = 1 << 30 };

/* ---- text ---------------------------------------------------------------------------------- */

typedef struct text {
    char *at;
    size_t room, used;
} text;

static void put(text *t, const char *format, ...) LS_PRINTF(2, 3);

static void put(text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->at + t->used, t->room - t->used, format, args);
    va_end(args);
    t->used += n > 0 ? (size_t)n : 0;
    if (t->used >= t->room) { /* what does not fit ends in dots */
        t->used = t->room - 1;
        memcpy(t->at + t->room - 4, "...", 4);
    }
}

static void put_ranks(text *t, int first, int end)
{
    if (end - first == 1)
        put(t, "rank %d", first);
    else
        put(t, "ranks %d %s %d", first, end - first == 2 ? "and" : "to", end - 1);
}

static void put_request(text *t, const ls__request *r)
{
    static const char *const calls[] = { "all-reduce", "reduce", "broadcast" };
    put(t, "%s", calls[r->call]);
    if (r->call != LS__COMM_BROADCAST)
        put(t, " %s", ls_reduce_op_name((ls_reduce_op)r->op));
    put(t, " of %lld %s", (long long)r->count, ls_dtype_name((ls_dtype)r->dtype));
    if (r->call != LS__COMM_ALL_REDUCE)
        put(t, " %s rank %d", r->call == LS__COMM_REDUCE ? "to" : "from", r->root);
}

/* ---- failure ---------------------------------------------------------------------------------- */

ls_status ls__comm_fail(ls_comm *comm, ls_status status, const char *why, const char *hint)
{
    int well = LS__COMM_WELL;
    if (!atomic_compare_exchange_strong_explicit(&comm->state, &well, LS__COMM_FAILING,
                                                 memory_order_acq_rel, memory_order_acquire))
        return LS_CANCELLED;
    comm->status = status;
    snprintf(comm->text, sizeof comm->text, "%s", why);
    snprintf(comm->hint, sizeof comm->hint, "%s", hint);
    for (int rank = 0; rank < comm->options.ranks; rank++)
        ls__event_post_many(&comm->seats[rank].came, END_ALL_WAITS);
    /* Pairs with the acquire in ls__comm_say: the record, and that all seats are advanced. */
    atomic_store_explicit(&comm->state, LS__COMM_FAILED, memory_order_release);
    return LS_CANCELLED;
}

ls_status ls__comm_say(ls_comm *comm)
{
    for (int turn = 0; atomic_load_explicit(&comm->state, memory_order_acquire) != LS__COMM_FAILED;
         turn++)
        ls__back_off(turn);
    ls__fail(comm->status, "%s", comm->text);
    return comm->hint[0] ? ls__hint(comm->status, "%s", comm->hint) : comm->status;
}

static bool has_failed(ls_comm *comm)
{
    /* Pairs with the exchange in ls__comm_fail, through the seat that was advanced after it. */
    return atomic_load_explicit(&comm->state, memory_order_acquire) != LS__COMM_WELL;
}

/* Names those who did not come, as far as there is room. */
static ls_status too_late(ls_comm *comm, int rank, uint32_t meeting)
{
    char why[400];
    text t = { why, sizeof why, 0 };
    put(&t, "ls_comm: rank %d waited %g s in ", rank, comm->options.timeout);
    put_request(&t, &comm->seats[rank].asks);
    put(&t, " for ");
    int ranks = comm->options.ranks, named = 0;
    for (int i = 0, end; i < ranks; i = end) {
        for (end = i; end < ranks && !ls__event_reached(&comm->seats[end].came, meeting);)
            end++;
        if (end == i) {
            end++;
            continue;
        }
        put(&t, "%s", named++ ? ", " : "");
        put_ranks(&t, i, end);
    }
    if (!named)
        put(&t, "ranks that have come just now");
    return ls__comm_fail(comm, LS_TIMEOUT, why,
                         "every rank must make the same calls; or give more time (timeout)");
}

/* ---- meeting ----------------------------------------------------------------------------------- */

ls_status ls__comm_meet(ls_comm *comm, int rank)
{
    const int ranks = comm->options.ranks;
    ls__seat *own = &comm->seats[rank];
    ls__deadline deadline = { .limit = comm->timeout };
    uint32_t meeting = ++own->meetings;
    if (ranks > 1)
        ls__event_post(&own->came);
    for (int i = 1; i < ranks; i++) {
        ls__seat *other = &comm->seats[rank + i < ranks ? rank + i : rank + i - ranks];
        if (!ls__event_wait_until(&other->came, meeting, comm->spin, &deadline))
            return too_late(comm, rank, meeting);
    }
    return has_failed(comm) ? LS_CANCELLED : LS_OK;
}

static bool same(const ls__request *a, const ls__request *b)
{
    return a->call == b->call && a->op == b->op && a->dtype == b->dtype && a->root == b->root &&
           a->count == b->count;
}

/* "ranks 0 to 2 asked for all-reduce SUM of 4 f32, rank 3 for broadcast of 8 f32 from rank 2" */
static ls_status disagree(ls_comm *comm)
{
    char why[400];
    text t = { why, sizeof why, 0 };
    put(&t, "ls_comm: ");
    int ranks = comm->options.ranks;
    for (int i = 0, end; i < ranks; i = end) {
        for (end = i + 1; end < ranks && same(&comm->seats[i].asks, &comm->seats[end].asks);)
            end++;
        put(&t, "%s", i ? ", " : "");
        put_ranks(&t, i, end);
        put(&t, i ? " for " : " asked for ");
        put_request(&t, &comm->seats[i].asks);
    }
    return ls__comm_fail(comm, LS_DESYNC, why,
                         "every rank must make the same calls in the same "
                         "order");
}

ls_status ls__comm_enter(ls_comm *comm, int rank, const ls__request *asks)
{
    ls__seat *own = &comm->seats[rank];
    own->asks = *asks;
    /* Seen by whoever sees the seat advanced in ls__comm_meet, and by ls__comm_leave of others. */
    uint32_t calls = atomic_load_explicit(&own->entered, memory_order_relaxed);
    atomic_store_explicit(&own->entered, calls + 1, memory_order_relaxed);
    ls_status st = ls__comm_meet(comm, rank);
    for (int i = 1; i < comm->options.ranks && !st; i++)
        if (!same(&comm->seats[0].asks, &comm->seats[i].asks))
            st = disagree(comm);
    return st;
}

ls_status ls__comm_leave(ls_comm *comm, int rank, ls_status status)
{
    ls__seat *own = &comm->seats[rank];
    uint32_t calls = atomic_load_explicit(&own->entered, memory_order_relaxed);
    /* Pairs with the acquire below: what this rank read of others is read. */
    atomic_store_explicit(&own->left, calls, memory_order_release);
    if (!status)
        return LS_OK;
    status = ls__comm_say(comm);
    for (int i = 0; i < comm->options.ranks; i++) {
        ls__seat *other = &comm->seats[i];
        uint32_t entered = atomic_load_explicit(&other->entered, memory_order_relaxed);
        for (int turn = 0;
             atomic_load_explicit(&other->left, memory_order_acquire) - entered > INT32_MAX; turn++)
            ls__back_off(turn); /* it is in a round, or on its way out */
    }
    return status;
}
