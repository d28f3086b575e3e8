/*
 * optimizer.h: optimizers.
 *
 * How to use it
 *
 *     ls_optimizer *adam = ls_adam(LS_ADAM(.rate = 0.001, .clip_global_norm = 1));
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
 * the table is updated, at the price of every row; with .lazy only the rows it names.
 *
 * In a replica (strategy.h) ls_minimize and ls_apply_gradients are meetings: the gradients of
 * all replicas are SUMMED, then clipped, then each variable is updated once. So divide the loss by
 * the global batch, not by the replica's own. Variables of LS_SYNC_ON_READ and .local_writes, of
 * which every replica has its own, cannot be trained. Weights and slots exist once, however many
 * replicas there are. An optimizer trains variables of one strategy.
 *
 * ls_optimizer_save takes out all that an optimizer knows, ls_optimizer_restore puts it into another
 * one; checkpoint.h does both, with all else that a run needs to go on.
 */
#ifndef LOCKSTEP_OPTIMIZER_H
#define LOCKSTEP_OPTIMIZER_H

#include <lockstep/tape.h>
#include <lockstep/variable.h>

LS_BEGIN_DECLS

typedef struct ls_optimizer ls_optimizer;

/* ---- learning rates -------------------------------------------------------------------
 *
 * A rate that follows the number of updates done: the first update has step 0, as in Keras. With
 * a warm-up of n steps it climbs in a line from warmup_from to what the schedule begins with, and the
 * schedule begins at step n. The same bits on every machine.
 *
 *     LS_SCHEDULE(.kind = LS_SCHEDULE_STEP, .count = 2, .boundaries = (int64_t[]){ 100, 200 },
 *                 .values = (double[]){ 0.1, 0.01, 0.001 })
 *     LS_SCHEDULE(.kind = LS_SCHEDULE_COSINE, .steps = 1000, .alpha = 0.1, .warmup_steps = 50)
 */
typedef enum ls_schedule_kind {
    LS_SCHEDULE_CONSTANT = 0,
    LS_SCHEDULE_STEP,  /* values[0] up to and with step boundaries[0], values[1] up to and with
                        * boundaries[1], ..., values[count] after the last */
    LS_SCHEDULE_COSINE /* from rate down to alpha * rate in half a wave of `steps`; then it stays */
} ls_schedule_kind;

enum { LS_MOST_BOUNDARIES = 64 };

typedef struct ls_schedule {
    size_t size;
    ls_schedule_kind kind;
    double
        rate;  /* of constant and cosine; 0: the optimizer's own .rate (in ls_set_schedule: the rate
                  * it was made with, or was given by ls_set_rate); -1: zero */
    int count; /* step: of boundaries, 1 to LS_MOST_BOUNDARIES */
    const int64_t *boundaries; /* rising, 0 or more; copied */
    const double *values;      /* count + 1; copied, 0 is 0 here */
    int64_t steps;             /* cosine: 1 or more */
    double alpha;              /* cosine: 0 to 1 */
    int64_t warmup_steps;      /* 0: none */
    double warmup_from;
} ls_schedule;
LS_API void ls_schedule_init(ls_schedule *schedule);
#ifndef __cplusplus
#define LS_SCHEDULE(...) (&(ls_schedule){ .size = sizeof(ls_schedule), __VA_ARGS__ })
#endif

/* ---- making ------------------------------------------------------------------------------
 *
 * Zero means default; to ask for zero itself, give -1. The macros are for C;
 * elsewhere start from the _init function. What all have in common:
 *
 *   rate, schedule     a schedule is copied; NULL: constant, .rate
 *   weight_decay       decoupled from the gradient: w -= rate * weight_decay * w, before the update
 *   clip_value         each element of the gradient into [-clip_value, clip_value]
 *   clip_norm          each variable's gradient scaled down to this norm, if it is longer
 *   clip_global_norm   all gradients of an update scaled down alike, if together they are longer
 *                      (of the three at most one; 0: no clipping; a norm that is not finite makes
 *                      every update NaN, as in TensorFlow)
 *   lazy               a sparse gradient updates the rows it names, and their slots, and no others
 *   accumulates        ls_accumulate may be called: every replica keeps a sum per variable. Not
 *                      with lazy
 */
typedef struct ls_sgd_options {
    size_t size;
    double rate; /* 0.01 */
    const ls_schedule *schedule;
    double weight_decay; /* none */
    double clip_value, clip_norm, clip_global_norm;
    bool lazy, accumulates;
    double momentum; /* 0 to 1; none: m = momentum * m - rate * g; w += m */
    bool nesterov;   /* w += momentum * m - rate * g instead; nothing without momentum */
} ls_sgd_options;
LS_API void ls_sgd_init(ls_sgd_options *options);
#ifndef __cplusplus
#define LS_SGD(...) (&(ls_sgd_options){ .size = sizeof(ls_sgd_options), __VA_ARGS__ })
#endif

/* Of ls_adam and ls_adamw, which differ in the default of weight_decay. */
typedef struct ls_adam_options {
    size_t size;
    double rate; /* 0.001 */
    const ls_schedule *schedule;
    double weight_decay; /* none; of ls_adamw 0.004 */
    double clip_value, clip_norm, clip_global_norm;
    bool lazy, accumulates;
    double beta1;   /* 0.9; from 0, below 1 */
    double beta2;   /* 0.999; the same */
    double epsilon; /* 1e-7; 0 or more */
} ls_adam_options;
LS_API void ls_adam_init(ls_adam_options *options);
#ifndef __cplusplus
#define LS_ADAM(...) (&(ls_adam_options){ .size = sizeof(ls_adam_options), __VA_ARGS__ })
#endif

/* NULL options: all defaults. */
LS_API ls_optimizer *ls_sgd(const ls_sgd_options *options);
LS_API ls_optimizer *ls_adam(const ls_adam_options *options);
LS_API ls_optimizer *ls_adamw(const ls_adam_options *options);
/* A traced function that updates with it goes on to: it has what it needs. */
LS_API void ls_optimizer_free(ls_optimizer *optimizer);

/* These variables, and those whose name contains one of the names (biases, norms), do not
 * decay. Before the first update, and before one is traced, else LS_STATE. Calls add up. */
LS_API ls_status ls_exclude_from_weight_decay(ls_optimizer *optimizer, int count,
                                              ls_variable *const *variables, int n_names,
                                              const char *const *names);

/* The rate can change between steps, or in a merge function, and a traced step follows without a
 * new trace; in one of several replicas of a run it is LS_STATE. ls_set_rate ends a schedule. */
LS_API ls_status ls_set_rate(ls_optimizer *optimizer, double rate);
LS_API ls_status ls_set_schedule(ls_optimizer *optimizer, const ls_schedule *schedule);

/* The rate of the next update; NaN for NULL. */
LS_API double ls_rate(const ls_optimizer *optimizer);

/* Updates done so far. */
LS_API int64_t ls_iterations(const ls_optimizer *optimizer);

/* ---- updating --------------------------------------------------------------------------- */

/* Gradients of `loss` with respect to the trainable ones of `variables`, then
 * one update. Stops the tape. A variable that the loss does not depend on has a gradient of
 * zero; LS_INVALID when it depends on none of them (computed before the tape was opened, say), or
 * none is trainable. On failure no variable has changed. */
LS_API ls_status ls_minimize(ls_optimizer *optimizer, ls_tape *tape, ls_tensor *loss, int count,
                             ls_variable *const *variables);

/* The update alone, with gradients of yours: one per variable, trainable or not.
 * A variable is listed once; it is f32 or f64; there is one at least. */
LS_API ls_status ls_apply_gradients(ls_optimizer *optimizer, int count, ls_tensor *const *gradients,
                                    ls_variable *const *variables);

/* Large batches in parts, for an optimizer made with .accumulates: adds this replica's gradients to
 * its own sums and updates nothing, and no replica waits for another. The next ls_minimize or
 * ls_apply_gradients of these variables adds its gradients as the last part, reduces once, updates,
 * and empties the sums. Parts are summed: divide the loss by the whole batch.
 *
 *     for (int part = 0; part < 4; part++)
 *         part < 3 ? ls_accumulate(o, tape, loss, n, variables)
 *                  : ls_minimize(o, tape, loss, n, variables);
 *
 * Such an optimizer updates in replicas only, not in a merge function: LS_STATE. */
LS_API ls_status ls_accumulate(ls_optimizer *optimizer, ls_tape *tape, ls_tensor *loss, int count,
                               ls_variable *const *variables);
LS_API ls_status ls_accumulate_gradients(ls_optimizer *optimizer, int count,
                                         ls_tensor *const *gradients,
                                         ls_variable *const *variables);

/* ---- looking at slots -------------------------------------------------------------------
 *
 * What an optimizer keeps per variable: "m" of momentum, "m" and "v" of Adam. Zero before the first
 * update. In one of several replicas of a run ls_slot_read is LS_STATE. */
LS_API int ls_slot_count(const ls_optimizer *optimizer);
LS_API const char *ls_slot_name(const ls_optimizer *optimizer, int slot);
LS_API ls_tensor *ls_slot_read(ls_optimizer *optimizer, const ls_variable *variable, int slot);

/* ---- saving -------------------------------------------------------------------------------
 *
 * A flat dict of tensors: "iterations"; "rate", with the schedule; "settings" (its kind, clipping,
 * decay... as numbers, to be compared); of these variables the slots, "slots/m/NAME", and what
 * replica i has accumulated, "sums/i/NAME". What is all zeros, as slots and sums begin, is left
 * out. Between steps, eager. */
LS_API ls_value *ls_optimizer_save(ls_optimizer *optimizer, int count, ls_variable *const *variables);

/* Back from such a dict, into an optimizer that was made alike, new or not: the updates that follow
 * have the bits of those that would have followed there, and so have those of steps that were traced
 * before. All is checked before anything is written: LS_INVALID for another kind or other settings,
 * which it names (rate and schedule are not compared but restored), LS_NOT_FOUND for slots of a
 * variable that is not given, LS_SHAPE for such as do not fit. */
LS_API ls_status ls_optimizer_restore(ls_optimizer *optimizer, int count,
                                      ls_variable *const *variables, ls_value *saved);

LS_END_DECLS

#endif
