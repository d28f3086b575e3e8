/*
 * collective.h: all-reduce, reduce and broadcast of plain memory, among threads of yours.
 *
 * How to use it
 *
 * 1. Make a communicator of n ranks:
 *
 *        ls_comm *comm = ls_comm_local(LS_COMM(.ranks = 4));
 *
 * 2. On n threads, each as one rank: the same calls in the same order.
 *
 *        ls_status st = ls_comm_all_reduce(comm, rank, LS_SUM, LS_F32, data, count);
 *
 *    Every rank ends with its own copy of the sum, in place of what it gave.
 *
 * 3. When all are done, once: ls_comm_free(comm).
 *
 * The bits of a sum depend on the values and on n alone: ranks are added up in the order of
 * one binary tree (n = 5: ((0+1)+(2+3))+4), whichever algorithm moves them. LS_ALGORITHM_RING is
 * the exception above two ranks: it has a fixed order of its own, which differs between parts of
 * the array. Sums round to nearest and take denormals for zero, whatever a thread has set.
 *
 * Ranks that make different calls get LS_DESYNC, which tells what each of them asked for; a rank
 * that does not come in time, LS_TIMEOUT, which names it; and after ls_comm_abort every call that
 * waits or comes later fails with its reason. Then data is unspecified, and it can only be freed.
 * No call returns while another rank still reads its data. A second thread in a call as the same
 * rank is LS_STATE. A call that is refused for its arguments (LS_INVALID) did not take place:
 * correct it, or abort, so that the others do not wait.
 *
 * Strategies (strategy.h) need none of this: they add up by the same schedules.
 */
#ifndef LOCKSTEP_COLLECTIVE_H
#define LOCKSTEP_COLLECTIVE_H

#include <lockstep/tensor.h>

LS_BEGIN_DECLS

/* X(name, value, text). LS_ONLY_FIRST takes replica 0's. */
#define LS_REDUCE_OP_LIST(X)                                             \
    X(LS_SUM, 1, "SUM")                                                  \
    X(LS_MEAN, 2, "MEAN")                                                \
    X(LS_ONLY_FIRST, 3, "ONLY_FIRST")

typedef enum ls_reduce_op {
#define LS__REDUCE_OP_ENUM(name, value, text) name = value,
    LS_REDUCE_OP_LIST(LS__REDUCE_OP_ENUM)
#undef LS__REDUCE_OP_ENUM
} ls_reduce_op;

/* "sum", "MEAN": any case. */
LS_API ls_status ls_reduce_op_named(const char *name, ls_reduce_op *out);
LS_API const char *ls_reduce_op_name(ls_reduce_op op); /* "SUM"; "?" */

/* X(name, value, text). */
#define LS_ALGORITHM_LIST(X)                                             \
    X(LS_ALGORITHM_AUTO, 0, "auto")                 /* direct */         \
    X(LS_ALGORITHM_DIRECT, 1, "direct")             /* each rank adds up its slice of all */ \
    X(LS_ALGORITHM_RING, 2, "ring")                                      \
    X(LS_ALGORITHM_HALVING, 3, "halving-doubling")                       \
    X(LS_ALGORITHM_HIERARCHICAL, 4, "hierarchical-copy") /* in two groups */ \
    X(LS_ALGORITHM_TO_ONE, 5, "reduction-to-one-device")

typedef enum ls_algorithm {
#define LS__ALGORITHM_VALUE(name, value, text) name = value,
    LS_ALGORITHM_LIST(LS__ALGORITHM_VALUE)
#undef LS__ALGORITHM_VALUE
} ls_algorithm;

typedef struct ls_comm ls_comm;

/* Zero means default. */
typedef struct ls_comm_options {
    size_t size;
    int ranks;          /* 1 to 1024; must be given */
    ls_algorithm algorithm;
    int subdivisions;   /* of the ring: its chunks in so many parts (0: parts of 4 MiB at most) */
    int ranks_per_host; /* which ranks the subdivisions of a ring count as neighbours (all) */
    double timeout;     /* seconds a call waits for the others (0: for ever) */
} ls_comm_options;
LS_API void ls_comm_init(ls_comm_options *options);
#ifndef __cplusplus
#define LS_COMM(...) (&(ls_comm_options){ .size = sizeof(ls_comm_options), __VA_ARGS__ })
#endif

LS_API ls_comm *ls_comm_local(const ls_comm_options *options);

/* When no rank is in a call; takes NULL. */
LS_API void ls_comm_free(ls_comm *comm);

/* In place. LS_SUM and LS_MEAN; f32, f64, i32, i64, u8 (integers wrap; their mean is rounded
 * towards zero). `data` of different ranks does not overlap. */
LS_API ls_status ls_comm_all_reduce(ls_comm *comm, int rank, ls_reduce_op op, ls_dtype dtype,
                                     void *data, int64_t count);

/* The sum ends at the root alone; the others' data is unspecified afterwards. */
LS_API ls_status ls_comm_reduce(ls_comm *comm, int rank, int root, ls_reduce_op op,
                                 ls_dtype dtype, void *data, int64_t count);

/* Everybody gets the root's. Any dtype but LS_BYTES. */
LS_API ls_status ls_comm_broadcast(ls_comm *comm, int rank, int root, ls_dtype dtype,
                                    void *data, int64_t count);

/* Ends it for all ranks, from any thread: calls that wait return this status and text,
 * later ones too. The first abort counts. */
LS_API void ls_comm_abort(ls_comm *comm, ls_status status, const char *why);

LS_API int ls_comm_ranks(const ls_comm *comm);
LS_API const char *ls_algorithm_name(ls_algorithm algorithm); /* "direct"; "?" */

/* What it does with this many bytes: never LS_ALGORITHM_AUTO. */
LS_API ls_algorithm ls_comm_algorithm(const ls_comm *comm, int64_t bytes);

LS_END_DECLS

#endif
