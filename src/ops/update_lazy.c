/*
 * X_lazy: an update of those rows of a variable that a sparse gradient names (touched is not
 * 0 there). The other rows, and their slots, stay as they are. Invariant: a row that is touched gets
 * the bits that X_update would give it.
 */
#include "ops/update.h"

enum { GRADIENT, TOUCHED, NUMBERS };

static int64_t rows_of(const ls__spec *spec)
{
    return spec->rank > 0 ? spec->dims[0] : 1;
}

static ls_status shape(ls_call *c)
{
    ls_status st = ls__update_check_one(c, NUMBERS);
    if (st)
        return st;
    const ls__spec *touched = c->in[TOUCHED];
    if (touched->dtype != LS_F32 || touched->rank != 1 ||
        touched->dims[0] != rows_of(c->in[GRADIENT]))
        return ls_call_fail(c, LS_SHAPE, "the touched rows want f32[%lld]",
                            (long long)rows_of(c->in[GRADIENT]));
    return LS_OK;
}

static ls_status kernel(ls_call *c)
{
    const ls__update_kind *kind = ls__update_kind_of(c->op);
    ls__update step = ls__update_step(c, kind, c->attrs, NUMBERS);
    if (c->n_inputs > NUMBERS + kind->numbers)
        step.scale = *(const double *)c->in_data[NUMBERS + kind->numbers];
    const ls__spec *spec = c->in[GRADIENT];
    const int64_t rows = rows_of(spec), width = rows ? ls__spec_count(spec) / rows : 0;
    const size_t bytes = (size_t)width * ls_dtype_size(spec->dtype);
    const float *touched = c->in_data[TOUCHED];
    ls__update_fn *update = LS__PICK(ls__update_table)->update[kind->id][spec->dtype == LS_F64];
    ls_status st = ls__update_unshare(c);
    char *at[1 + LS__MOST_SLOTS];
    for (int k = 0; k < kind->cells && !st; k++) {
        at[k] = ls__cell_write(c->cells[k]);
        st = at[k] ? LS_OK : LS_NO_MEMORY;
    }
    for (int64_t r = 0; r < rows && !st; r++) {
        if (touched[r] == 0)
            continue;
        void *row[1 + LS__MOST_SLOTS];
        for (int k = 0; k < kind->cells; k++)
            row[k] = at[k] + (size_t)r * bytes;
        update(row, (const char *)c->in_data[GRADIENT] + (size_t)r * bytes, &step, width);
    }
    return st;
}

#define ROW(id, list)                                                                              \
    {                                                                                              \
        .size = sizeof(ls_op), .name = id "_lazy", .inputs = LS_ANY_NUMBER,                        \
        .flags = LS_OP_WRITES | LS_OP_TOTAL, .attr_size = sizeof(ls__update_attrs), .attrs = list, \
        .shape = shape, .kernel = kernel                                                           \
    }

const ls_op ls__update_lazy_rows[LS__UPDATES] = { ROW("sgd", ls__sgd_attr_list),
                                                  ROW("momentum", ls__momentum_attr_list),
                                                  ROW("adam", ls__adam_attr_list) };

const ls_op *const ls__rows_update_lazy[] = { &ls__update_lazy_rows[0], &ls__update_lazy_rows[1],
                                              &ls__update_lazy_rows[2], NULL };
