/*
 * The inside of an optimizer. An update goes through the files in this order:
 *
 *     optimizer_minimize.c    gradients of a loss
 *     optimizer_accumulate.c  parts of them that wait, a sum per replica
 *     optimizer_replicas.c    replicas meet with theirs
 *     optimizer_apply.c       summed, clipped, applied
 *     optimizer_slots.c       to these cells
 *     optimizer_rate.c        at this rate
 *
 * optimizer_save.c takes all of it out, and puts it back.
 */
#ifndef LS__TRAIN_OPTIMIZER_H
#define LS__TRAIN_OPTIMIZER_H

#include <lockstep/optimizer.h>
#include <stdatomic.h>

#include "ops/update.h"
#include "strategy/variable.h"

/* A variable with its slots, as update rows want their cells. */
typedef struct ls__slot_set {
    uint64_t variable; /* ls__cell_serial of cells[0], which may be gone */
    ls__cell *cells[1 + LS__MOST_SLOTS];
    struct ls__slot_set *next;
} ls__slot_set;

/* The sum of parts that a replica has for a variable. */
typedef struct ls__part_sum {
    uint64_t variable;
    int replica;
    ls__cell *cell;
    struct ls__part_sum *next;
} ls__part_sum;

struct ls_optimizer {
    const char *name; /* "ls_adam" */
    const ls__update_kind *kind;
    uint64_t number; /* 1, 2, ...: its name in errors, by which replicas see that it is one */
    /* Cells, so that a recorded step reads them each time it is replayed. */
    ls__cell *rate;       /* f64[LS__RATE_NUMBERS], see ops/rate.h */
    ls__cell *iterations; /* i64[]: updates done so far */
    ls__update_attrs attrs;
    double clip_norm; /* 0: none */
    bool clip_global; /* of all variables together */
    bool lazy;
    bool accumulates;
    ls__slot_set *sets;
    _Atomic(ls__part_sum *) sums; /* replicas add theirs at once; none is taken out */
    /* Variables whose weights do not decay: by serial, and by a part of the name. */
    uint64_t *excluded;
    char **excluded_names;
    int n_excluded, n_excluded_names;
    bool traced; /* an update of it was recorded: what it decays is fixed */
    /* The strategy of the variables it trains: counts from the first update on that went well. */
    bool bound;        /* or it is not known: restored, and not updated since */
    uint64_t strategy; /* its serial; 0: none */
    char strategy_text[80];
};

/* LS_INVALID, or the pending error, when it is NULL. */
ls_status ls__check_optimizer(const char *who, const ls_optimizer *o);

/* The same, and a list of `count` things in `a` and `b` that may be NULL when it is 0. */
ls_status ls__check_lists(const char *who, const ls_optimizer *o, int count, const void *a,
                          const void *b);

/* Whether an update went well. */
bool ls__has_updated(const ls_optimizer *o);

/* LS_STATE while a step is traced: a number of a replay's is not known then. */
ls_status ls__check_known(const char *who);

/* Zero means default, -1 means zero. */
double ls__or_default(double value, double otherwise);

/* ---- optimizer_rate.c ----- */

/* Checks a schedule and writes it as numbers; `rate` is the optimizer's own. */
ls_status ls__schedule_numbers(const char *who, const ls_schedule *schedule, double rate,
                               double *numbers);
ls_status ls__check_rate(const char *who, const char *what, double rate);

/* Whether LS__RATE_NUMBERS that come from elsewhere are those of a schedule. */
bool ls__are_schedule_numbers(const double *numbers);

/* ---- optimizer_slots.c ----- */

/* Whether the weights of a variable decay. */
bool ls__decays(const ls_optimizer *o, const ls_variable *v, const ls__cell *cell);

/* The slots of a variable whose cell is `cell`, made at first. */
ls_status ls__slots_of(ls_optimizer *o, const char *name, ls__cell *cell, ls__slot_set **out);
ls__slot_set *ls__slots_found(const ls_optimizer *o, const ls__cell *cell); /* NULL: none yet */
void ls__slots_free(ls_optimizer *o);

/* ---- optimizer_apply.c ----- */

/* Whether this thread may update the variable, with this gradient; its cell. */
ls_status ls__check_pair(const char *who, const ls_optimizer *o, const ls_variable *v,
                         const ls_tensor *gradient, ls__cell **cell);

/* What a gradient is to an optimizer: dense, and of a lazy one which rows count, f32[rows]. */
typedef struct ls__given {
    ls_tensor *gradient;
    ls_tensor *touched; /* NULL unless the optimizer is lazy */
} ls__given;
ls_status ls__given_of(const ls_optimizer *o, ls_tensor *gradient, ls__given *out);

/* One update. `gradients` has those of all `replicas` for variable 0, then for variable 1...;
 * so has `touched`, which is NULL unless the optimizer is lazy. */
ls_status ls__apply(const char *who, ls_optimizer *o, int replicas, int count,
                    ls_tensor *const *gradients, ls_tensor *const *touched,
                    ls_variable *const *variables);

/* ---- optimizer_replicas.c ----- */

/* The update by this thread, or with all replicas when it is one of several. What failed
 * before (`st`) still comes to the meeting, so that nobody waits for it. */
ls_status ls__apply_here(const char *who, ls_status st, ls_optimizer *o, int count,
                         ls_tensor *const *gradients, ls_variable *const *variables);

/* ---- optimizer_accumulate.c ----- */

/* Adds what waits for the variable, if anything does, to this thread's gradient. */
ls_status ls__take_parts(const char *who, ls_optimizer *o, const ls_variable *v, ls__cell *cell,
                         ls__given *given);
ls_status ls__accumulate_here(const char *who, ls_optimizer *o, int count,
                              ls_tensor *const *gradients, ls_variable *const *variables);
void ls__parts_free(ls_optimizer *o);

/* The sum that a replica has for the variable with this cell: if there is one; made when there is none. */
ls__part_sum *ls__part_sum_found(ls_optimizer *o, const ls__cell *cell, int replica);
ls_status ls__part_sum_of(ls_optimizer *o, const char *variable, ls__cell *cell, int replica,
                          ls__part_sum **out);

/* ---- optimizer_save.c ----- */

/* ls_optimizer_restore up to the writes, for who has more to restore. */
ls_status ls__optimizer_plan(const char *who, ls_optimizer *o, int count,
                             ls_variable *const *variables, const ls_value *saved,
                             ls__cell_writes *out);

#endif
