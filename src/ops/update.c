/*
 * Update rows: what an optimizer does to a variable, in place. Their cells are
 * the variable and its slots; gradient, rate and iteration are inputs, so that a
 * recorded step can be replayed with others. They have no outputs and no
 * gradient.
 */
#include "ops/update.h"

#include <math.h>

#include "dispatch/call.h"
#include "kernels/update.h"

enum { GRADIENT, RATE, ITERATION };

static ls_status check_cells(const ls_call *c, int cells)
{
    if (c->n_cells != cells)
        return ls_call_fail(c, LS_INVALID, "%d cells, wants %d", c->n_cells, cells);
    const ls__spec *variable = ls__cell_spec(c->cells[0]);
    if (variable->dtype != LS_F32 && variable->dtype != LS_F64)
        return ls_call_fail(c, LS_SHAPE, "updates variables of f32 and f64, not %s",
                            ls__spec_text(variable));
    if (!ls__spec_equal(variable, c->in[GRADIENT]))
        return ls_call_fail(c, LS_SHAPE, "the gradient of a variable of %s is %s",
                            ls__spec_text(variable), ls__spec_text(c->in[GRADIENT]));
    for (int i = 1; i < cells; i++)
        if (!ls__spec_equal(variable, ls__cell_spec(c->cells[i])))
            return ls_call_fail(c, LS_SHAPE, "slot %d of a variable of %s is %s", i - 1,
                                ls__spec_text(variable), ls__spec_text(ls__cell_spec(c->cells[i])));
    if (c->in[RATE]->dtype != LS_F64 || c->in[RATE]->rank != 0)
        return ls_call_fail(c, LS_SHAPE, "the rate wants f64[]");
    return LS_OK;
}

static ls_status sgd_shape(ls_call *c)
{
    return check_cells(c, 1);
}

static ls_status sgd_kernel(ls_call *c)
{
    const ls__update_kernels *kernels = LS__PICK(ls__update_table);
    double rate = *(const double *)c->in_data[RATE];
    int64_t n = ls__spec_count(c->in[GRADIENT]);
    void *w = ls__cell_write(c->cells[0]);
    if (!w)
        return LS_NO_MEMORY;
    if (c->in[GRADIENT]->dtype == LS_F32)
        kernels->sgd_f32(w, c->in_data[GRADIENT], rate, n);
    else
        kernels->sgd_f64(w, c->in_data[GRADIENT], rate, n);
    return LS_OK;
}

static const ls_op sgd_update = { .size = sizeof(ls_op),
                                  .name = "sgd_update",
                                  .inputs = 2,
                                  .flags = LS_OP_WRITES,
                                  .shape = sgd_shape,
                                  .kernel = sgd_kernel };

/* ---- Adam ---------------------------------------------------------------------- */

static const ls_attr adam_attrs[] = { LS_ATTR_FLOAT(ls__adam_attrs, beta1),
                                      LS_ATTR_FLOAT(ls__adam_attrs, beta2),
                                      LS_ATTR_FLOAT(ls__adam_attrs, epsilon), LS_ATTR_END };

static ls_status adam_shape(ls_call *c)
{
    if (c->in[ITERATION]->dtype != LS_I64 || c->in[ITERATION]->rank != 0)
        return ls_call_fail(c, LS_SHAPE, "the iteration wants i64[]");
    return check_cells(c, 3);
}

static ls_status adam_kernel(ls_call *c)
{
    const ls__adam_attrs *attrs = c->attrs;
    double rate = *(const double *)c->in_data[RATE];
    double t = (double)*(const int64_t *)c->in_data[ITERATION]; /* 1 for the first update */
    ls__adam p = { .rate = rate * sqrt(1 - pow(attrs->beta2, t)) / (1 - pow(attrs->beta1, t)),
                   .one_minus_beta1 = 1 - attrs->beta1,
                   .one_minus_beta2 = 1 - attrs->beta2,
                   .epsilon = attrs->epsilon };
    int64_t n = ls__spec_count(c->in[GRADIENT]);
    void *cells[3];
    for (int i = 0; i < 3; i++) {
        cells[i] = ls__cell_write(c->cells[i]);
        if (!cells[i])
            return LS_NO_MEMORY;
    }
    const ls__update_kernels *kernels = LS__PICK(ls__update_table);
    if (c->in[GRADIENT]->dtype == LS_F32)
        kernels->adam_f32(cells[0], cells[1], cells[2], c->in_data[GRADIENT], &p, n);
    else
        kernels->adam_f64(cells[0], cells[1], cells[2], c->in_data[GRADIENT], &p, n);
    return LS_OK;
}

static const ls_op adam_update = { .size = sizeof(ls_op),
                                   .name = "adam_update",
                                   .inputs = 3,
                                   .flags = LS_OP_WRITES,
                                   .attr_size = sizeof(ls__adam_attrs),
                                   .attrs = adam_attrs,
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
