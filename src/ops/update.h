/*
 * Update rows, for optimizers. One table of kinds gives five forms of row each:
 *
 *     X_update    one variable: gradient, numbers[, scale]
 *     X_lazy      one variable, the rows that were touched: gradient, touched, numbers[, scale]
 *     X_updates   many: numbers, gradients[, scales]
 *     X_reduced   many, with the gradients of V replicas each: numbers, groups (ops/replicas.h)
 *     X_products  one, whose gradient of each replica is x^T dy: numbers, xs, dys (update_products.c)
 *
 * The numbers are rate, f64[], and of Adam the iteration, i64[], 1 for the first update. A scale is
 * f64[]. Cells: the variable and its slots, variable after variable.
 */
#ifndef LS__OPS_UPDATE_H
#define LS__OPS_UPDATE_H

#include <lockstep/tensor.h>

#include "dispatch/call.h"
#include "kernels/update.h"
#include "ops/replicas.h"
#include "tensor/cell.h"

/* Each kind lists those fields that it has. */
typedef struct ls__update_attrs {
    double weight_decay; /* 0: none */
    double clip_value;   /* 0: none */
    double momentum;
    int64_t nesterov;
    double beta1;
    double beta2;
    double epsilon;
} ls__update_attrs;

/* Of X_reduced. */
typedef struct ls__reduced_attrs {
    ls__reduce_attrs groups;
    ls__update_attrs update;
} ls__reduced_attrs;

enum { LS__MOST_SLOTS = 2 };

typedef struct ls__update_kind {
    ls__update_id id;
    int cells;   /* of a variable: itself and its slots */
    int numbers; /* 1: rate; 2: rate, iteration */
    const char *slots[LS__MOST_SLOTS];
    const ls_op *one, *lazy, *many, *reduced, *products;
} ls__update_kind;

extern const ls__update_kind ls__update_kinds[LS__UPDATES];

/* The kind of a row, of whatever form; NULL: it is no update. */
const ls__update_kind *ls__update_kind_of(const ls_op *op);

/* ---- calling ---------------------------------------------------------------------------- */

/* What an update is given beside gradients. */
typedef struct ls__update_numbers {
    const ls__update_kind *kind;
    const ls__update_attrs *attrs;
    ls_tensor *rate, *iteration;
} ls__update_numbers;

/* `touched`: NULL, or f32[rows]: rows of 0 stay as they are. `scale`: NULL for none. */
ls_status ls__update_one(const ls__update_numbers *u, ls__cell *const *cells, ls_tensor *gradient,
                         ls_tensor *touched, ls_tensor *scale);

/* `gradients` has those of all replicas for variable 0, then for variable 1... */
ls_status ls__update_reduced(const ls__update_numbers *u, int replicas, int variables,
                             ls__cell *const *cells, ls_tensor *const *gradients);

/* Whether a variable whose gradient is x^T dy of these can be updated by X_products: the bits are
 * those of the product by itself. */
enum { LS__PRODUCTS_MOST = 16 }; /* replicas */
bool ls__update_products_fit(const ls__spec *x, const ls__spec *dy);

/* What the kernel of X_products does, for ranks that come when they can: `begin` before any of
 * them; `join` on each one's thread, which does what is left together with those that are there,
 * and returns when all is done. Nobody waits for a rank that has not come. The first to join
 * writes: nobody reads the cells any more, and ls__cell_unshare was called. From then on until all
 * is done the scratch memory of the call is used, and not before: calls that follow each other may
 * have the same. */
struct ls__products_work; /* update_products.h */
void ls__update_products_begin(struct ls__products_work *w, ls_call *c, int ranks);
void ls__update_products_join(struct ls__products_work *w, int rank);
bool ls__is_update_products(const ls_op *op);

/* ---- for the files of these rows ------------------------------------------------------ */

extern const ls_attr ls__sgd_attr_list[], ls__momentum_attr_list[], ls__adam_attr_list[];
extern const ls_attr ls__sgd_reduced_attrs[], ls__momentum_reduced_attrs[],
    ls__adam_reduced_attrs[]; /* of ls__reduced_attrs */
extern const ls_op ls__update_lazy_rows[LS__UPDATES], ls__update_many_rows[LS__UPDATES],
    ls__update_reduced_rows[LS__UPDATES], ls__update_products_rows[LS__UPDATES];

/* For shape rules: a variable and its slots against its gradient; how many cells; the numbers,
 * from input `first` on; a scale. */
ls_status ls__update_check(const ls_call *c, const ls__update_kind *kind, const ls__spec *gradient,
                           ls__cell *const *cells);
ls_status ls__update_check_count(const ls_call *c, int cells);
ls_status ls__update_check_numbers(const ls_call *c, const ls__update_kind *kind, int first);
/* All of a row for one variable, whose numbers begin at input `numbers`. */
ls_status ls__update_check_one(const ls_call *c, int numbers);
ls_status ls__update_check_scale(const ls_call *c, int input);

/* For kernels: what all variables of a call have in common, but the scale, which is 1. */
ls__update ls__update_step(const ls_call *c, const ls__update_kind *kind,
                           const ls__update_attrs *attrs, int first);

/* Copies live views out, so that no write fails after another has happened. */
ls_status ls__update_unshare(const ls_call *c);

/* One variable of `spec`. */
ls_status ls__update_run(const ls__update_kind *kind, ls__cell *const *cells, const ls__spec *spec,
                         const void *gradient, const ls__update *step);

/* Who works on `count` arrays at once: the team of this thread and its ranks, when they are large
 * enough to wake it; else NULL and 1. */
struct ls__team *ls__update_team(int count, const ls__spec *const *specs, int *ranks);

/* x to the power of n, 0 or more: the same bits everywhere. */
double ls__power(double x, int64_t n);

#endif
