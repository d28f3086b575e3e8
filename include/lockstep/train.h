/*
 * train.h: optimizers.
 *
 * How to use it
 *
 *     ls_optimizer *adam = ls_adam(LS_ADAM(.rate = 0.001));
 *     for each batch: LS_FRAME {
 *         ls_tape *tape = ls_tape_open();
 *         ls_tensor *loss = ls_mean(ls_sparse_softmax_xent(logits, y), LS_ALL_AXES, false);
 *         ls_minimize(adam, tape, loss, n, variables);
 *     }
 *     ls_optimizer_free(adam);
 *
 * An optimizer keeps its slots (Adam's moments) for as long as it lives. It
 * takes the gradients as TensorFlow's Keras optimizers do: same formulas, same
 * defaults. A sparse gradient counts as the dense one it stands for: every row of
 * the table is updated, at the price of every row.
 *
 * In a replica (strategy.h) ls_minimize and ls_apply_gradients are meetings: the gradients of
 * all replicas are SUMMED, then each variable is updated once. So divide the loss by the global
 * batch, not by the replica's own. Variables of LS_SYNC_ON_READ and .local_writes, of which
 * every replica has its own, cannot be trained.
 *
 * Slots and iterations cannot be saved yet: an optimizer that is made anew starts from none.
 */
#ifndef LOCKSTEP_TRAIN_H
#define LOCKSTEP_TRAIN_H

#include <lockstep/tape.h>
#include <lockstep/variable.h>

LS_BEGIN_DECLS

typedef struct ls_optimizer ls_optimizer;

/* Zero means default; to ask for zero itself, give -1. The macros are for C;
 * elsewhere start from the _init function. */
typedef struct ls_sgd_options {
    size_t size;
    double rate; /* 0.01 */
} ls_sgd_options;
LS_API void ls_sgd_init(ls_sgd_options *options);
#ifndef __cplusplus
#define LS_SGD(...) (&(ls_sgd_options){ .size = sizeof(ls_sgd_options), __VA_ARGS__ })
#endif

typedef struct ls_adam_options {
    size_t size;
    double rate;    /* 0.001 */
    double beta1;   /* 0.9 */
    double beta2;   /* 0.999 */
    double epsilon; /* 1e-7 */
} ls_adam_options;
LS_API void ls_adam_init(ls_adam_options *options);
#ifndef __cplusplus
#define LS_ADAM(...) (&(ls_adam_options){ .size = sizeof(ls_adam_options), __VA_ARGS__ })
#endif

/* NULL options: all defaults. */
LS_API ls_optimizer *ls_sgd(const ls_sgd_options *options);
LS_API ls_optimizer *ls_adam(const ls_adam_options *options);
LS_API void ls_optimizer_free(ls_optimizer *optimizer);

/* The rate can change between steps, or in a merge function; in one of several replicas of a run
 * ls_set_rate is LS_STATE. */
LS_API ls_status ls_set_rate(ls_optimizer *optimizer, double rate);
LS_API double ls_rate(const ls_optimizer *optimizer);

/* Updates done so far. */
LS_API int64_t ls_iterations(const ls_optimizer *optimizer);

/* Gradients of `loss` with respect to the trainable ones of `variables`, then
 * one update. Stops the tape. LS_INVALID when the loss depends on none of them
 * (computed before the tape was opened, say). On failure no variable has changed. */
LS_API ls_status ls_minimize(ls_optimizer *optimizer, ls_tape *tape, ls_tensor *loss,
                             int count, ls_variable *const *variables);

/* The update alone, with gradients of yours: one per variable, trainable or not.
 * A variable is listed once; it is f32 or f64. */
LS_API ls_status ls_apply_gradients(ls_optimizer *optimizer, int count,
                                    ls_tensor *const *gradients,
                                    ls_variable *const *variables);

LS_END_DECLS

#endif
