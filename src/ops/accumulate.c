/*
 * take_sum: what gradient accumulation hands to an update. The cell holds the sum of the
 * parts so far; it gives that sum and the last part together, and is zero afterwards, in one pass.
 */
#include "ops/accumulate.h"

#include "dispatch/call.h"

static ls_status shape(ls_call *c)
{
    if (c->n_cells != 1)
        return ls_call_fail(c, LS_INVALID, "%d cells, wants 1", c->n_cells);
    ls_status st = ls__want_dtype(c, 0, LS__BIT(LS_F32) | LS__BIT(LS_F64));
    const ls__spec *spec = ls__cell_spec(c->cells[0]);
    if (!st && !ls__spec_equal(spec, c->in[0]))
        st = ls_call_fail(c, LS_SHAPE, "a sum of %s cannot take %s", ls__spec_text(spec),
                          ls__spec_text(c->in[0]));
    return st ? st : ls__output_like(c, 0, 0);
}

#define TAKE(type)                                                                                 \
    for (int64_t i = 0; i < n; i++) {                                                              \
        ((type *)out)[i] = ((type *)sum)[i] + ((const type *)x)[i];                                \
        ((type *)sum)[i] = 0;                                                                      \
    }

static ls_status kernel(ls_call *c)
{
    void *sum = ls__cell_write(c->cells[0]), *out = c->out_data[0];
    const void *x = c->in_data[0];
    int64_t n = ls__spec_count(c->in[0]);
    if (!sum)
        return LS_NO_MEMORY;
    if (c->in[0]->dtype == LS_F32)
        TAKE(float)
    else
        TAKE(double)
    return LS_OK;
}

static const ls_op take_sum = { .size = sizeof(ls_op),
                                .name = "take_sum",
                                .inputs = 1,
                                .outputs = 1,
                                .flags = LS_OP_WRITES | LS_OP_TOTAL,
                                .shape = shape,
                                .kernel = kernel };

const ls_op *const ls__rows_accumulate[] = { &take_sum, NULL };

ls_tensor *ls__take_sum(ls__cell *sum, ls_tensor *x)
{
    ls_tensor *out;
    return ls__call(&take_sum, NULL, 1, &x, 1, &sum, &out) ? NULL : out;
}
