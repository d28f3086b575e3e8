/*
 * Update rows: what an optimizer does to a variable, in place. Their cells are
 * the variable and its slots; gradient, rate and iteration are inputs, so that a
 * recorded step can be replayed with others. They have no outputs and no
 * gradient.
 */
#include "ops/update.h"

#include <math.h>

enum { GRADIENT, RATE, ITERATION };

/* ---- what these rows share with those for many variables (fused_update.c) ------------- */

ls_status ls__update_check(const ls_call *c, const ls__spec *gradient, int count,
                           ls__cell *const *cells)
{
    const ls__spec *variable = ls__cell_spec(cells[0]);
    if (variable->dtype != LS_F32 && variable->dtype != LS_F64)
        return ls_call_fail(c, LS_SHAPE, "updates variables of f32 and f64, not %s",
                            ls__spec_text(variable));
    if (!ls__spec_equal(variable, gradient))
        return ls_call_fail(c, LS_SHAPE, "the gradient of a variable of %s is %s",
                            ls__spec_text(variable), ls__spec_text(gradient));
    for (int i = 1; i < count; i++)
        if (!ls__spec_equal(variable, ls__cell_spec(cells[i])))
            return ls_call_fail(c, LS_SHAPE, "slot %d of a variable of %s is %s", i - 1,
                                ls__spec_text(variable), ls__spec_text(ls__cell_spec(cells[i])));
    return LS_OK;
}

ls_status ls__update_check_count(const ls_call *c, int cells)
{
    if (c->n_cells != cells)
        return ls_call_fail(c, LS_INVALID, "%d cells, wants %d", c->n_cells, cells);
    return LS_OK;
}

ls_status ls__update_check_rate(const ls_call *c, int input)
{
    if (c->in[input]->dtype != LS_F64 || c->in[input]->rank != 0)
        return ls_call_fail(c, LS_SHAPE, "the rate wants f64[]");
    return LS_OK;
}

ls_status ls__update_check_iteration(const ls_call *c, int input)
{
    if (c->in[input]->dtype != LS_I64 || c->in[input]->rank != 0)
        return ls_call_fail(c, LS_SHAPE, "the iteration wants i64[]");
    return LS_OK;
}

ls_status ls__sgd_run(ls__cell *const *cells, const ls__spec *spec, const void *gradient,
                      double rate)
{
    const ls__update_kernels *kernels = LS__PICK(ls__update_table);
    int64_t n = ls__spec_count(spec);
    void *w = ls__cell_write(cells[0]);
    if (!w)
        return LS_NO_MEMORY;
    if (spec->dtype == LS_F32)
        kernels->sgd_f32(w, gradient, rate, n);
    else
        kernels->sgd_f64(w, gradient, rate, n);
    return LS_OK;
}

/* `t` is 1 for the first update. */
ls__adam ls__adam_step(const ls__adam_attrs *a, double rate, int64_t iteration)
{
    double t = (double)iteration;
    return (ls__adam){ .rate = rate * sqrt(1 - pow(a->beta2, t)) / (1 - pow(a->beta1, t)),
                       .one_minus_beta1 = 1 - a->beta1,
                       .one_minus_beta2 = 1 - a->beta2,
                       .epsilon = a->epsilon };
}

ls_status ls__adam_run(ls__cell *const *cells, const ls__spec *spec, const void *gradient,
                       const ls__adam *step)
{
    const ls__update_kernels *kernels = LS__PICK(ls__update_table);
    int64_t n = ls__spec_count(spec);
    void *at[3];
    for (int i = 0; i < 3; i++) {
        at[i] = ls__cell_write(cells[i]);
        if (!at[i])
            return LS_NO_MEMORY;
    }
    if (spec->dtype == LS_F32)
        kernels->adam_f32(at[0], at[1], at[2], gradient, step, n);
    else
        kernels->adam_f64(at[0], at[1], at[2], gradient, step, n);
    return LS_OK;
}

/* ---- SGD -------------------------------------------------------------------------- */

static ls_status check_cells(const ls_call *c, int cells)
{
    ls_status st = ls__update_check_count(c, cells);
    if (!st)
        st = ls__update_check(c, c->in[GRADIENT], cells, c->cells);
    return st ? st : ls__update_check_rate(c, RATE);
}

static ls_status sgd_shape(ls_call *c)
{
    return check_cells(c, 1);
}

static ls_status sgd_kernel(ls_call *c)
{
    return ls__sgd_run(c->cells, c->in[GRADIENT], c->in_data[GRADIENT],
                       *(const double *)c->in_data[RATE]);
}

static const ls_op sgd_update = { .size = sizeof(ls_op),
                                  .name = "sgd_update",
                                  .inputs = 2,
                                  .flags = LS_OP_WRITES | LS_OP_TOTAL,
                                  .shape = sgd_shape,
                                  .kernel = sgd_kernel };

/* ---- Adam ---------------------------------------------------------------------- */

const ls_attr ls__adam_attr_list[] = { LS_ATTR_FLOAT(ls__adam_attrs, beta1),
                                       LS_ATTR_FLOAT(ls__adam_attrs, beta2),
                                       LS_ATTR_FLOAT(ls__adam_attrs, epsilon), LS_ATTR_END };

static ls_status adam_shape(ls_call *c)
{
    ls_status st = ls__update_check_iteration(c, ITERATION);
    return st ? st : check_cells(c, 3);
}

static ls_status adam_kernel(ls_call *c)
{
    ls__adam step = ls__adam_step(c->attrs, *(const double *)c->in_data[RATE],
                                  *(const int64_t *)c->in_data[ITERATION]);
    return ls__adam_run(c->cells, c->in[GRADIENT], c->in_data[GRADIENT], &step);
}

static const ls_op adam_update = { .size = sizeof(ls_op),
                                   .name = "adam_update",
                                   .inputs = 3,
                                   .flags = LS_OP_WRITES | LS_OP_TOTAL,
                                   .attr_size = sizeof(ls__adam_attrs),
                                   .attrs = ls__adam_attr_list,
                                   .shape = adam_shape,
                                   .kernel = adam_kernel };

const ls_op *const ls__rows_update[] = { &sgd_update, &adam_update, NULL };

ls_status ls__sgd_update(ls__cell *variable, ls_tensor *gradient, ls_tensor *rate)
{
    return ls__call(&sgd_update, NULL, 2, (ls_tensor *[]){ gradient, rate }, 1, &variable, NULL);
}

ls_status ls__adam_update(ls__cell *const *cells, ls_tensor *gradient, ls_tensor *rate,
                          ls_tensor *iteration, const ls__adam_attrs *attrs)
{
    return ls__call(&adam_update, attrs, 3, (ls_tensor *[]){ gradient, rate, iteration }, 3, cells,
                    NULL);
}
