/*
 * Rows that make explicit what an executor would else have to do: a copy of a value
 * that is about to be overwritten, and of a variable that may have to be put back.
 */
#include <string.h>

#include "dispatch/call.h"

static ls_status copy_shape(ls_call *c)
{
    return ls__output_like(c, 0, 0);
}

static ls_status copy_kernel(ls_call *c)
{
    memcpy(c->out_data[0], c->in_data[0], ls__spec_bytes(c->in[0]));
    return LS_OK;
}

static const ls_op copy_row = { .size = sizeof(ls_op),
                                .name = "copy",
                                .inputs = 1,
                                .outputs = 1,
                                .flags = LS__OP_FUSED | LS_OP_TOTAL,
                                .shape = copy_shape,
                                .kernel = copy_kernel };

static ls_status save_shape(ls_call *c)
{
    if (c->n_cells != 1)
        return ls_call_fail(c, LS_INVALID, "%d cells, wants 1", c->n_cells);
    const ls__spec *spec = ls__cell_spec(c->cells[0]);
    return ls__output_spec(c, 0, spec);
}

static ls_status save_kernel(ls_call *c)
{
    memcpy(c->out_data[0], ls__cell_data(c->cells[0]), ls__spec_bytes(&c->out[0]));
    return LS_OK;
}

static const ls_op save_row = { .size = sizeof(ls_op),
                                .name = "save",
                                .outputs = 1,
                                .flags = LS__OP_FUSED | LS_OP_TOTAL | LS_OP_READS,
                                .shape = save_shape,
                                .kernel = save_kernel };

const ls_op *const ls__rows_lower[] = { &copy_row, &save_row, NULL };
