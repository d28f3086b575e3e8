/*
 * Communicators of threads: the public calls. A call is two meetings (comm_meet.c) with the rounds of
 * a compiled schedule (comm_plans.c) between them: all ask, all work, all are done. Nothing is
 * allocated or locked on the way but a schedule that is compiled when it is first needed, and
 * scratch where one needs it.
 */
#include "collective/comm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* ---- a call -------------------------------------------------------------------------------------- */

/* Rank 0 sees to it that there is enough; the others see it after the meeting. */
static ls_status share_scratch(ls_comm *comm, int rank, size_t bytes, void **out)
{
    if (rank == 0 && comm->scratch_bytes < bytes) {
        free(comm->scratch);
        comm->scratch = aligned_alloc(64, bytes);
        comm->scratch_bytes = comm->scratch ? bytes : 0;
        if (!comm->scratch)
            return ls__comm_fail(comm, LS_NO_MEMORY, "ls_comm: no memory for partial sums", "");
    }
    ls_status st = ls__comm_meet(comm, rank);
    *out = comm->scratch;
    return st;
}

static ls_status run(ls_comm *comm, int rank, const ls__request *asks, const ls__local *local)
{
    const void *operands[LS__MOST_RANKS];
    for (int r = 0; r < comm->options.ranks; r++)
        operands[r] = comm->seats[r].asks.data;
    const bool moves = asks->call == LS__COMM_BROADCAST; /* bytes, whatever they stand for */
    ls__array array = { .count = asks->count, .operands = operands };
    ls__local_job job = { .dtype = moves ? LS_U8 : (ls_dtype)asks->dtype,
                          .divisor = asks->op == LS_MEAN ? comm->options.ranks : 0,
                          .n_arrays = 1,
                          .arrays = &array };
    if (moves)
        array.count *= (int64_t)ls_dtype_size((ls_dtype)asks->dtype);
    size_t scratch = ls__local_scratch(local, &job);
    ls_status st = scratch ? share_scratch(comm, rank, scratch, &job.scratch) : LS_OK;
    const int rounds = asks->count ? ls__local_rounds(local) : 0;
    for (int round = 0; round < rounds && !st; round++) {
        ls__local_run(local, round, rank, &job);
        st = ls__comm_meet(comm, rank);
    }
    return rounds || st ? st : ls__comm_meet(comm, rank); /* all have read what all asked for */
}

static ls_status take_part_alone(ls_comm *comm, int rank, const ls__request *asks, int subdivisions)
{
    if (atomic_load_explicit(&comm->state, memory_order_acquire) != LS__COMM_WELL)
        return ls__comm_say(comm);
    const ls__local *local = NULL;
    ls_status st =
        ls__comm_plan_of(comm, (ls__comm_call)asks->call, asks->root, subdivisions, &local);
    if (st) { /* the others may have one, and must not wait for this rank */
        ls__comm_fail(comm, st, ls_error_text(), ls_error_hint());
        return st;
    }
    st = ls__comm_enter(comm, rank, asks);
    if (!st)
        st = run(comm, rank, asks, local);
    return ls__comm_leave(comm, rank, st);
}

static ls_status take_part(ls_comm *comm, int rank, const ls__request *asks, int subdivisions)
{
    /* Acquire: pairs with the release of the thread that was this rank before. */
    if (atomic_exchange_explicit(&comm->seats[rank].busy, 1, memory_order_acquire))
        return ls__hint(ls__fail(LS_STATE, "ls_comm: another thread is in a call as rank %d", rank),
                        "a rank is one thread at a time");
    ls_status st = take_part_alone(comm, rank, asks, subdivisions);
    atomic_store_explicit(&comm->seats[rank].busy, 0, memory_order_release);
    return st;
}

/* ---- arguments -------------------------------------------------------------------------------------- */

static ls_status check_rank(const char *who, const ls_comm *comm, const char *what, int rank)
{
    if (!comm)
        return ls__fail(LS_INVALID, "%s: the communicator is NULL", who);
    if (rank < 0 || rank >= comm->options.ranks)
        return ls__hint(ls__fail(LS_INVALID, "%s: %s is %d", who, what, rank),
                        "ranks run from 0 to %d", comm->options.ranks - 1);
    return LS_OK;
}

static ls_status check_data(const char *who, ls_dtype dtype, const void *data, int64_t count)
{
    size_t width = ls_dtype_size(dtype);
    if (width == 0)
        return ls__hint(
            ls__fail(LS_INVALID, "%s: dtype is %s (%d)", who, ls_dtype_name(dtype), (int)dtype),
            "its elements have no size of their own: give numbers");
    if (count < 0 || count > (int64_t)(PTRDIFF_MAX / width) - 64)
        return ls__hint(ls__fail(LS_INVALID, "%s: count is %lld", who, (long long)count),
                        "0 or more elements, of less than 2^63 bytes");
    if (!data && count)
        return ls__fail(LS_INVALID, "%s: data is NULL, of %lld elements", who, (long long)count);
    if ((uintptr_t)data % width)
        return ls__fail(LS_INVALID, "%s: data at %p is not on a border of %zu bytes, as %s must be",
                        who, data, width, ls_dtype_name(dtype));
    return LS_OK;
}

static ls_status check_sum(const char *who, ls_reduce_op op, ls_dtype dtype)
{
    if (op != LS_SUM && op != LS_MEAN)
        return ls__hint(
            ls__fail(LS_INVALID, "%s: op is %s (%d)", who, ls_reduce_op_name(op), (int)op),
            "LS_SUM and LS_MEAN add up over ranks");
    if (dtype == LS_BOOL || dtype == LS_BF16)
        return ls__hint(ls__fail(LS_INVALID, "%s: dtype is %s", who, ls_dtype_name(dtype)),
                        "sums are of f32, f64, i32, i64 and u8");
    return LS_OK;
}

/* What the three calls have in common; `root` is 0 where there is none. */
static ls_status check_call(const char *who, const ls_comm *comm, int rank, int root,
                            ls_dtype dtype, const void *data, int64_t count)
{
    ls_status st = check_rank(who, comm, "rank", rank);
    if (!st)
        st = check_rank(who, comm, "root", root);
    return st ? st : check_data(who, dtype, data, count);
}

/* ---- the public calls ---------------------------------------------------------------------------------- */

ls_status ls_comm_all_reduce(ls_comm *comm, int rank, ls_reduce_op op, ls_dtype dtype, void *data,
                             int64_t count)
{
    static const char who[] = "ls_comm_all_reduce";
    ls_status st = check_call(who, comm, rank, 0, dtype, data, count);
    if (!st)
        st = check_sum(who, op, dtype);
    if (st)
        return st;
    int subdivisions = 1;
    if (comm->algorithm == LS_ALGORITHM_RING)
        subdivisions =
            comm->options.subdivisions
                ? comm->options.subdivisions
                : ls__ring_subdivisions(count * (int64_t)ls_dtype_size(dtype), comm->options.ranks,
                                        comm->options.ranks_per_host);
    ls__request asks = { .data = data,
                         .count = count,
                         .call = LS__COMM_ALL_REDUCE,
                         .op = (uint8_t)op,
                         .dtype = (uint8_t)dtype };
    return take_part(comm, rank, &asks, subdivisions);
}

ls_status ls_comm_reduce(ls_comm *comm, int rank, int root, ls_reduce_op op, ls_dtype dtype,
                         void *data, int64_t count)
{
    static const char who[] = "ls_comm_reduce";
    ls_status st = check_call(who, comm, rank, root, dtype, data, count);
    if (!st)
        st = check_sum(who, op, dtype);
    if (st)
        return st;
    ls__request asks = { .data = data,
                         .count = count,
                         .root = (uint16_t)root,
                         .call = LS__COMM_REDUCE,
                         .op = (uint8_t)op,
                         .dtype = (uint8_t)dtype };
    return take_part(comm, rank, &asks, 1);
}

ls_status ls_comm_broadcast(ls_comm *comm, int rank, int root, ls_dtype dtype, void *data,
                            int64_t count)
{
    static const char who[] = "ls_comm_broadcast";
    ls_status st = check_call(who, comm, rank, root, dtype, data, count);
    if (st)
        return st;
    ls__request asks = { .data = data,
                         .count = count,
                         .root = (uint16_t)root,
                         .call = LS__COMM_BROADCAST,
                         .dtype = (uint8_t)dtype };
    return take_part(comm, rank, &asks, 1);
}

void ls_comm_abort(ls_comm *comm, ls_status status, const char *why)
{
    if (comm)
        ls__comm_fail(comm, status ? status : LS_CANCELLED,
                      why ? why : "ls_comm_abort: no reason was given", "");
}

int ls_comm_ranks(const ls_comm *comm)
{
    return comm ? comm->options.ranks : 0;
}

const char *ls_algorithm_name(ls_algorithm algorithm)
{
    switch (algorithm) {
#define LS__ALGORITHM_TEXT(name, value, text)                                                      \
    case name:                                                                                     \
        return text;
        LS_ALGORITHM_LIST(LS__ALGORITHM_TEXT)
#undef LS__ALGORITHM_TEXT
    }
    return "?";
}

ls_algorithm ls_comm_algorithm(const ls_comm *comm, int64_t bytes)
{
    (void)bytes; /* in shared memory direct is best at any size */
    return comm ? comm->algorithm : LS_ALGORITHM_DIRECT;
}

/* ---- making ------------------------------------------------------------------------------------------------ */

void ls_comm_init(ls_comm_options *options)
{
    if (options)
        *options = (ls_comm_options){ .size = sizeof *options };
}

static ls_status check_options(const ls_comm_options *o)
{
    static const char who[] = "ls_comm_local";
    if (!o)
        return ls__fail(LS_INVALID, "%s: options are NULL", who);
    if (o->size != sizeof *o)
        return ls__hint(
            ls__fail(LS_INVALID, "%s: options of %zu bytes, wants %zu", who, o->size, sizeof *o),
            "fill options with LS_COMM(...), or with ls_comm_init first");
    if (o->ranks < 1 || o->ranks > LS__MOST_RANKS)
        return ls__hint(ls__fail(LS_INVALID, "%s: %d ranks", who, o->ranks), "1 to %d",
                        LS__MOST_RANKS);
    if ((unsigned)o->algorithm > LS_ALGORITHM_TO_ONE)
        return ls__hint(ls__fail(LS_INVALID, "%s: algorithm %d", who, (int)o->algorithm),
                        "one of LS_ALGORITHM_AUTO to LS_ALGORITHM_TO_ONE");
    if (o->subdivisions < 0 || o->subdivisions > LS__MOST_SUBDIVISIONS)
        return ls__hint(ls__fail(LS_INVALID, "%s: %d subdivisions", who, o->subdivisions),
                        "1 to %d; 0: by size", LS__MOST_SUBDIVISIONS);
    if (o->ranks_per_host < 0 || o->ranks_per_host > o->ranks)
        return ls__hint(
            ls__fail(LS_INVALID, "%s: %d ranks per host, of %d", who, o->ranks_per_host, o->ranks),
            "1 to the number of ranks; 0: all");
    if (!(o->timeout >= 0))
        return ls__hint(ls__fail(LS_INVALID, "%s: a timeout of %g s", who, o->timeout),
                        "seconds; 0: for ever");
    return LS_OK;
}

ls_comm *ls_comm_local(const ls_comm_options *options)
{
    if (check_options(options))
        return NULL;
    size_t seats = (size_t)options->ranks * sizeof(ls__seat);
    ls_comm *comm = aligned_alloc(_Alignof(ls_comm), sizeof *comm);
    if (!comm) {
        ls__fail_memory("a communicator", sizeof *comm);
        return NULL;
    }
    memset(comm, 0, sizeof *comm);
    comm->seats = aligned_alloc(_Alignof(ls__seat), seats);
    if (!comm->seats) {
        ls__fail_memory("a communicator's ranks", seats);
        free(comm);
        return NULL;
    }
    memset(comm->seats, 0, seats);
    comm->options = *options;
    comm->algorithm = options->algorithm ? options->algorithm : LS_ALGORITHM_DIRECT;
    comm->spin = ls__spin_for(options->ranks, LS__SPIN_LONG);
    /* A billion seconds are for ever, and fit. A nanosecond is the least that is a limit. */
    if (options->timeout > 0 && options->timeout < 1e9)
        comm->timeout = (int64_t)ceil(options->timeout * 1e9);
    return comm;
}

void ls_comm_free(ls_comm *comm)
{
    if (!comm)
        return;
    ls__comm_plans_free(comm);
    free(comm->scratch);
    free(comm->seats);
    free(comm);
}
