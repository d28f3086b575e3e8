/*
 * embedding: rows of a table. The value is that of gather along axis 0; the
 * gradient is another: sparse, naming only the rows that were looked up.
 */
#include <lockstep/ops.h>
#include <lockstep/tape.h>
#include <string.h>

#include "dispatch/call.h"
#include "kernels/movement.h"

static ls_status embedding_shape(ls_call *c)
{
    const ls__spec *table = c->in[0], *ids = c->in[1];
    int rank = ids->rank + table->rank - 1;
    int64_t dims[2 * LS_MAX_RANK];
    ls_status st = ls__want_dtype(c, 0, LS__FLOATS);
    if (!st)
        st = ls__want_dtype(c, 1, LS__INDEXES);
    if (!st)
        st = ls__want_rank_at_least(c, 0, 1);
    if (st)
        return st;
    if (rank > LS_MAX_RANK)
        return ls_call_fail(c, LS_SHAPE, "the result would have %d dimensions, at most %d", rank,
                            LS_MAX_RANK);
    memcpy(dims, ids->dims, (size_t)ids->rank * sizeof *dims);
    memcpy(dims + ids->rank, table->dims + 1, (size_t)(table->rank - 1) * sizeof *dims);
    return ls_call_output(c, 0, table->dtype, rank, dims);
}

static ls_status embedding_kernel(ls_call *c)
{
    const ls__spec *table = c->in[0];
    const ls__indices ids = { c->in_data[1], ls__spec_count(c->in[1]), c->in[1]->dtype == LS_I64 };
    int64_t rows = table->dims[0], width = 1, bad = ls__index_outside(&ids, rows);
    if (bad >= 0)
        return ls_call_fail(c, LS_INVALID, "id %lld at position %lld, the table has %lld rows",
                            (long long)ls__index(&ids, bad), (long long)bad, (long long)rows);
    for (int i = 1; i < table->rank; i++)
        width *= table->dims[i];
    LS__PICK(ls__movement_table)
        ->gather(&ids, 1, rows, width, ls_dtype_size(table->dtype), c->in_data[0], c->out_data[0]);
    return LS_OK;
}

static ls_status embedding_gradient(ls_grad *g)
{
    ls_tensor *table = ls_grad_input(g, 0), *ids = ls_grad_input(g, 1);
    if (!ls_grad_wanted(g, 0))
        return LS_OK;
    int64_t dims[LS_MAX_RANK], count = ls_count(ids);
    memcpy(dims, ls_shape(table), (size_t)ls_rank(table) * sizeof *dims);
    dims[0] = count;
    ls_tensor *values = ls_reshape(ls_grad_output(g, 0), ls_rank(table), dims);
    return ls_grad_give(g, 0,
                        ls_sparse(ls_reshape(ids, LS_DIMS(count)), values, ls_shape(table)[0]));
}

static const ls_op embedding = {
    .size = sizeof(ls_op),
    .name = "embedding",
    .inputs = 2,
    .outputs = 1,
    .shape = embedding_shape,
    .kernel = embedding_kernel,
    .gradient = embedding_gradient,
};

ls_tensor *ls_embedding(ls_tensor *table, ls_tensor *ids)
{
    return ls__call2(&embedding, NULL, table, ids);
}

const ls_op *const ls__rows_embedding[] = { &embedding, NULL };
