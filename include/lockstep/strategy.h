/*
 * strategy.h: the same step on many replicas, in lockstep.
 *
 * How to use it
 *
 * 1. Make a strategy: V replicas (logical copies of the model) on some devices. Make
 *    the variables in its scope, so that every replica has them:
 *
 *        ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0,/cpu:1"));
 *        LS_SCOPE(s)
 *            w = ls_variable_new("w", ls_glorot_uniform(LS_F32, LS_DIMS(784, 10)), true);
 *
 * 2. Write the step for one replica, and run it on all of them. Arguments that hold one
 *    tensor a replica are given to the replica they belong to, all others to every one;
 *    results come back grouped in the same way:
 *
 *        ls_function *step = ls_trace(train_step, &model);
 *        ls_value *losses = ls_run(s, step, batch);              // one loss a replica
 *        float loss = ls_to_float(ls_reduce(s, LS_MEAN, losses, LS_NO_AXIS));
 *
 * 3. Inside the step, replicas meet: ls_all_reduce adds up what each of them has,
 *    ls_merge_call runs a function once for all of them.
 *
 *        ls_value *sum = ls_all_reduce(ls_get_replica_context(), LS_SUM, ls_leaf(x));
 *
 * The result belongs to the program: a step gives the same bits whether its V
 * replicas share one device or have one each, and whichever of them is faster. Sums go
 * over replicas in the order of one binary tree (V = 5: ((0+1)+(2+3))+4); MEAN is that
 * sum divided by V. What a replica draws at random depends on the seed, its number and
 * the step (ls_steps), never on the thread.
 *
 * A failed step did not happen: variables, slots, counters are as before, and the
 * strategy can go on. The error is that of the lowest replica that failed by itself; the
 * others end at their next meeting with LS_CANCELLED. Replicas that do different
 * things where they should meet get an error that says what each did. Nothing waits for
 * ever.
 *
 * Each thread is in one of two contexts. Cross-replica: in a scope, and in the function
 * of ls_merge_call: it sees all replicas. Replica: in a function that ls_run runs: it is
 * one of them. Outside of everything a thread is in the replica context of the default
 * strategy, which has one replica. Functions with a strategy as their first argument
 * belong in cross-replica context; they enter the scope by themselves when
 * nobody has, and fail with LS_STATE in a replica. A strategy runs one step at a time.
 *
 * A step, a merge function and every other callback must return: no longjmp, C++ exception
 * or pthread_exit out of it. Gradients are taken inside the step: a tape that was opened
 * outside sees nothing of a run, and no gradient flows through it. What replicas share and no
 * meeting changes (the rate of an optimizer, whether a variable is trainable, freeing it) is not
 * for one of several replicas: LS_STATE.
 */
#ifndef LOCKSTEP_STRATEGY_H
#define LOCKSTEP_STRATEGY_H

#include <limits.h>

#include <lockstep/collective.h>
#include <lockstep/function.h>
#include <lockstep/value.h>

LS_BEGIN_DECLS

typedef struct ls_strategy ls_strategy;
typedef struct ls_replica ls_replica;

/* ---- making ------------------------------------------------------------------- */

/* How values of several devices are added up. All of them add in the order of the tree. */
typedef enum ls_cross_device {
    LS_CROSS_DEVICE_AUTO,          /* the best for the devices: direct on CPUs */
    LS_CROSS_DEVICE_DIRECT,        /* one pass over all replicas' memory */
    LS_CROSS_DEVICE_TO_ONE,        /* everything on one device, then copied */
    LS_CROSS_DEVICE_HIERARCHICAL,  /* in two groups, each on one device; then those two */
    LS_CROSS_DEVICE_NCCL           /* wants GPUs; has an order of its own */
} ls_cross_device;

/* "auto", "direct", "reduction-to-one-device", "hierarchical-copy", "nccl". */
LS_API ls_status ls_cross_device_named(const char *name, ls_cross_device *out);
LS_API const char *ls_cross_device_name(ls_cross_device c); /* "?" for none of them */

/* Zero means default. */
typedef struct ls_mirrored_options {
    size_t size;
    const char *devices; /* "/cpu:0,/cpu:1", any spelling; NULL or "": all GPUs, else one CPU */
    int replicas;        /* V, at most 1024 (one per device); more than devices: they take turns, in
                          * contiguous blocks of replica numbers */
    ls_cross_device cross_device;
    /* How the tensors of one reduction are grouped: packs, each moved on its own. For speed only:
     * bits do not depend on them. Without any of these all tensors are one pack. */
    int num_packs;          /* all elements in so many packs, at most 65536; the last takes the rest */
    int64_t bytes_per_pack; /* packs of whole tensors, last to first, as a backward pass makes them: a
                             * new pack when one is larger than this. Not with num_packs */
    int64_t small_bytes;    /* runs of f32 tensors of at most this many bytes count as one tensor... */
    int small_group;        /* ...of about this many; give both or none. Without the above, each tensor
                             * is a pack then */
    bool sequential; /* eager steps run one replica after another, in order */
    int input_pipelines; /* P (input.h): divides the replicas; 0: 1 */
    int prefetch;        /* steps whose input is made ahead (input.h); 0: 2 if that takes long, -1: none */
    bool whole_steps;    /* input ends where a replica would have no rows, and what is left is left
                          * out (input.h) */
} ls_mirrored_options;
LS_API void ls_mirrored_init(ls_mirrored_options *options);
#ifndef __cplusplus
#define LS_MIRRORED(...) (&(ls_mirrored_options){ .size = sizeof(ls_mirrored_options), __VA_ARGS__ })
#endif

/* NULL options: all defaults. A device named twice, or one that is not of this process,
 * is refused. Yours until ls_strategy_free, which takes NULL and waits for the threads of
 * the strategy; LS_STATE inside a run, scope or other call of it, which then goes on. Variables
 * may outlive their strategy, and then only be read and freed. */
LS_API ls_strategy *ls_mirrored(const ls_mirrored_options *options);
LS_API ls_status ls_strategy_free(ls_strategy *s);

/* One replica on the current device: what there is when nothing else was asked for.
 * Never freed. It counts no steps, and what it draws at random are the thread's own draws
 * (random.h). */
LS_API ls_strategy *ls_default_strategy(void);

/* Whether sums over its replicas are the same bits on any placement (docs/determinism.md). */
LS_API bool ls_same_bits(const ls_strategy *s);

/* V. 0 for NULL. */
LS_API int ls_num_replicas(const ls_strategy *s);

/* Steps done: top-level runs that did not fail. Random draws depend on it, so who resumes a run
 * sets it (0 to 2^62, between steps). */
LS_API int64_t ls_steps(const ls_strategy *s);
LS_API ls_status ls_set_steps(ls_strategy *s, int64_t steps);

/* ---- contexts ------------------------------------------------------------------ */

/* Makes the strategy this thread's, in cross-replica context, until the scope is left in
 * the order it was entered. The same one nests; another one inside it, or any inside a
 * replica, is LS_STATE. */
LS_API ls_status ls_scope_enter(ls_strategy *s);
LS_API ls_status ls_scope_leave(ls_strategy *s);

/* Enters the scope for the rest of this thread, or until another is set; NULL leaves
 * it. Not inside a scope or replica: LS_STATE. */
LS_API ls_status ls_set_strategy(ls_strategy *s);

/* The strategy of this thread: the default one when there is no other. Never NULL. */
LS_API ls_strategy *ls_get_strategy(void);
LS_API bool ls_has_strategy(void); /* other than the default one */
LS_API bool ls_in_cross_replica_context(void);

/* The replica this thread is; NULL in cross-replica context (no error). Valid until
 * the step returns, on this thread. */
LS_API ls_replica *ls_get_replica_context(void);

/* "replica_id_in_sync_group": 0 to V - 1. -1 for NULL. */
LS_API int ls_replica_id(const ls_replica *replica);
LS_API ls_strategy *ls_replica_strategy(const ls_replica *replica); /* NULL for NULL */

/* ---- running -------------------------------------------------------------------- */

/* Runs a traced function on every replica: traced once per replica, compiled, replayed with
 * the devices side by side. `arguments` is one value (ls_list(0, NULL): none; keyword
 * arguments are a dict). Results have the structure of what the function returned;
 * a leaf is plain when all replicas returned the same tensor, else per-replica. (Not
 * ls_function_call: that takes no distributed arguments.)
 *
 * A run inside a traced function becomes part of it: one thread replays it, random draws in it are
 * refused, and ls_steps counts it once, when it is traced, not when it is replayed. */
LS_API ls_value *ls_run(ls_strategy *s, ls_function *step, ls_value *arguments);

/* The same without tracing: the C function runs on every replica, each on a thread of
 * its own (replica 0 on yours). The first time a (function, user) is run, its replicas go one
 * after another in order, so that what they make is made by replica 0; later they run at
 * once, unless the strategy is .sequential: what they share must bear that. */
LS_API ls_value *ls_run_eager(ls_strategy *s, ls_step step, void *user, ls_value *arguments);

/* Runs with what `next` gives: once a call, per-replica values and others. LS_END and
 * other failures of it are passed on. NULL: the step gets an empty list. */
typedef ls_status (*ls_get_next)(void *iterator, ls_value **out);
LS_API ls_value *ls_run_next(ls_strategy *s, ls_step step, void *user, ls_get_next next,
                             void *iterator);

/* A value that is another one on every replica: from V values of one structure, or
 * from a function called once per replica, in order. It fits any strategy of the same V. */
LS_API ls_value *ls_per_replica(ls_strategy *s, ls_value *const *values);
typedef ls_value *(*ls_value_fn)(int replica, int replicas, void *user);
LS_API ls_value *ls_distribute_values(ls_strategy *s, ls_value_fn fn, void *user);

/* ---- replicas meet ---------------------------------------------------------------- */

/* All replicas wait here; then fn is called once, in cross-replica context, with their
 * arguments grouped, and each gets its part of what fn returned: its own component of
 * per-replica and mirrored leaves, plain ones as they are. All replicas must give the same fn;
 * `user` is replica 0's. No gradient flows through. */
typedef ls_value *(*ls_merge_fn)(ls_strategy *s, ls_value *arguments, void *user);
LS_API ls_value *ls_merge_call(ls_replica *replica, ls_merge_fn fn, void *user,
                               ls_value *arguments);

/* In a replica: the sum (LS_SUM) or mean (LS_MEAN) over all replicas of every leaf, in the
 * same structure, on each of them. The mean of integers is f64. Its gradient is the same
 * all-reduce of the gradients. Sparse leaves: rows and values of all, in replica order (the
 * mean divides the values); no gradient flows through those. */
LS_API ls_value *ls_all_reduce(ls_replica *replica, ls_reduce_op op, ls_value *value);

/* In a replica: ls_batch_norm (ops.h) with the mean and variance of all replicas' rows, which all of
 * them get: a list of the result, the mean and the variance. Replicas may differ in rows; those
 * without any change no statistic. Gradients flow through, and back to the rows of all. With one
 * replica, and outside of runs, it is ls_batch_norm. A variable that follows the statistics is
 * best made with LS_AGGREGATE_ONLY_FIRST: every replica assigns the same. */
LS_API ls_value *ls_sync_batch_norm(ls_replica *replica, ls_tensor *x, ls_tensor *scale,
                                    ls_tensor *offset, double epsilon);

/* ---- after the run ------------------------------------------------------------------ */

#define LS_NO_AXIS INT_MIN

/* One tensor of a leaf: over replicas (LS_NO_AXIS), or over replicas and one axis of
 * each (negative axes count from the end); then replicas may differ in its size, and
 * LS_MEAN divides by how many there are in all. A mirrored or plain value is its own mean,
 * and has no sum (unless V is 1, or it is the number 0). */
LS_API ls_tensor *ls_reduce(ls_strategy *s, ls_reduce_op op, ls_value *value, int axis);

/* All replicas' tensors behind one another along an axis, in replica order. A plain value is
 * itself; sparse ones are LS_UNSUPPORTED. */
LS_API ls_tensor *ls_gather_replicas(ls_strategy *s, ls_value *value, int axis);

/* A list: what each replica of this process has of the value, in order; of a value that
 * is plain throughout, itself alone. */
LS_API ls_value *ls_local_results(ls_strategy *s, ls_value *value);

/* LS_SCOPE(s) { ... }: a block in the scope (a loop of one turn, like LS_FRAME). If it cannot be
 * entered the block is skipped, and the error is pending. */
#if defined(__cplusplus)
} /* extern "C" */
namespace ls {
struct scope {
    ls_strategy *strategy;
    bool once;
    explicit scope(ls_strategy *s) : strategy(s), once(ls_scope_enter(s) == LS_OK)
    {
        if (!once)
            strategy = nullptr;
    }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;
    ~scope()
    {
        if (strategy)
            ls_scope_leave(strategy);
    }
};
}
extern "C" {
#define LS_SCOPE(s)                                                      \
    for (::ls::scope LS__UNIQUE(ls__scope_)(s); LS__UNIQUE(ls__scope_).once; \
         LS__UNIQUE(ls__scope_).once = false)
#elif defined(__GNUC__)
static inline ls_strategy *ls__scope_try(ls_strategy *s)
{
    return ls_scope_enter(s) == LS_OK ? s : NULL;
}
static inline void ls__scope_out(ls_strategy *const *s)
{
    if (*s)
        ls_scope_leave(*s);
}
#define LS_SCOPE(s)                                                      \
    for (ls_strategy *LS__UNIQUE(ls__in_) __attribute__((cleanup(ls__scope_out), unused)) = \
             ls__scope_try(s),                                           \
            *LS__UNIQUE(ls__scope_turn_) = LS__UNIQUE(ls__in_);                \
         LS__UNIQUE(ls__scope_turn_); LS__UNIQUE(ls__scope_turn_) = NULL)
#endif

LS_END_DECLS

#endif
