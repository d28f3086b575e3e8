/*
 * Rows of a variable, written where they are: scatter_add, scatter_sub, scatter_update,
 * scatter_min, scatter_max. Invariants: all indices are checked before the first row is written,
 * so a call that fails has written nothing; rows that repeat take effect in order.
 */
#include "ops/scatter.h"

#include <string.h>

#include "base/bf16.h"
#include "dispatch/call.h"
#include "kernels/movement.h"
#include "ops/shape.h"

enum { ROWS, VALUES };

static ls_status want_shapes(ls_call *c, unsigned dtypes)
{
    if (c->n_cells != 1)
        return ls_call_fail(c, LS_INVALID, "%d cells, wants 1", c->n_cells);
    const ls__spec *v = ls__cell_spec(c->cells[0]), *rows = c->in[ROWS], *x = c->in[VALUES];
    ls_status st = ls__want_dtype(c, ROWS, LS__INDEXES);
    if (!st)
        st = ls__want_rank(c, ROWS, 1);
    if (!st)
        st = ls__want_dtype(c, VALUES, dtypes);
    if (st)
        return st;
    if (v->rank < 1)
        return ls_call_fail(c, LS_SHAPE, "a variable of %s has no rows", ls__spec_text(v));
    bool fits = v->dtype == x->dtype && v->rank == x->rank && x->dims[0] == rows->dims[0];
    for (int i = 1; i < v->rank && fits; i++)
        fits = v->dims[i] == x->dims[i];
    if (fits)
        return LS_OK;
    ls__spec want = *v;
    want.dims[0] = rows->dims[0];
    return ls_call_fail(c, LS_SHAPE, "%lld rows of a variable of %s are %s, not %s",
                        (long long)rows->dims[0], ls__spec_text(v), ls__spec_text(&want),
                        ls__spec_text(x));
}

static ls_status number_shape(ls_call *c)
{
    return want_shapes(c, LS__NUMBERS);
}

static ls_status any_shape(ls_call *c)
{
    return want_shapes(c, LS__ANY);
}

/* ---- one row after another -------------------------------------------------------------- */

typedef enum action { ADD, SUB, MIN, MAX } action;

/* NaN if either is, like ls_minimum; integers wrap: they are added as unsigned. */
#define COMBINE(type, as, nan)                                                                     \
    for (int64_t i = 0; i < n; i++) {                                                              \
        type a = ((type *)to)[i], b = ((const type *)from)[i];                                     \
        ((type *)to)[i] = what == ADD   ? (type)((as)a + (as)b)                                    \
                          : what == SUB ? (type)((as)a - (as)b)                                    \
                          : what == MIN ? (a < b || (nan) ? a : b)                                 \
                                        : (a > b || (nan) ? a : b);                                \
    }

static void combine_bf16(action what, uint16_t *to, const uint16_t *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float a = ls__bf16_to_f32(to[i]), b = ls__bf16_to_f32(from[i]);
        float y = what == ADD   ? a + b
                  : what == SUB ? a - b
                  : what == MIN ? (a < b || a != a ? a : b)
                                : (a > b || a != a ? a : b);
        to[i] = ls__bf16_from_f32(y);
    }
}

static void combine(ls_dtype dtype, action what, void *to, const void *from, int64_t n)
{
    switch (dtype) {
    case LS_F32:
        COMBINE(float, float, a != a)
        break;
    case LS_F64:
        COMBINE(double, double, a != a)
        break;
    case LS_I32:
        COMBINE(int32_t, uint32_t, 0)
        break;
    case LS_I64:
        COMBINE(int64_t, uint64_t, 0)
        break;
    case LS_U8:
        COMBINE(uint8_t, uint32_t, 0)
        break;
    case LS_BF16:
        combine_bf16(what, to, from, n);
        break;
    default: /* refused by the shape rule */
        break;
    }
}

/* ---- kernels ------------------------------------------------------------------------------- */

typedef struct places {
    ls__indices rows;
    char *to; /* the variable */
    const char *from;
    int64_t width; /* elements of a row */
    size_t row_bytes;
} places;

static ls_status find_places(ls_call *c, places *p)
{
    const ls__spec *v = ls__cell_spec(c->cells[0]);
    p->rows = (ls__indices){ c->in_data[ROWS], ls__spec_count(c->in[ROWS]),
                             c->in[ROWS]->dtype == LS_I64 };
    int64_t bad = ls__index_outside(&p->rows, v->dims[0]);
    if (bad >= 0 && v->dims[0] == 0)
        return ls_call_fail(c, LS_INVALID, "row %lld at position %lld, the variable has none",
                            (long long)ls__index(&p->rows, bad), (long long)bad);
    if (bad >= 0)
        return ls_call_fail(
            c, LS_INVALID, "row %lld at position %lld, the variable's are 0 to %lld",
            (long long)ls__index(&p->rows, bad), (long long)bad, (long long)v->dims[0] - 1);
    p->width = ls__product(v->dims, 1, v->rank);
    p->row_bytes = (size_t)p->width * ls_dtype_size(v->dtype);
    p->from = c->in_data[VALUES];
    p->to = ls__cell_write(c->cells[0]);
    return p->to ? LS_OK : LS_NO_MEMORY;
}

static ls_status combine_rows(ls_call *c, action what)
{
    places p;
    ls_status st = find_places(c, &p);
    for (int64_t i = 0; !st && i < p.rows.count; i++)
        combine(c->in[VALUES]->dtype, what, p.to + (size_t)ls__index(&p.rows, i) * p.row_bytes,
                p.from + (size_t)i * p.row_bytes, p.width);
    return st;
}

static ls_status add_kernel(ls_call *c)
{
    return combine_rows(c, ADD);
}

static ls_status sub_kernel(ls_call *c)
{
    return combine_rows(c, SUB);
}

static ls_status min_kernel(ls_call *c)
{
    return combine_rows(c, MIN);
}

static ls_status max_kernel(ls_call *c)
{
    return combine_rows(c, MAX);
}

static ls_status update_kernel(ls_call *c)
{
    places p;
    ls_status st = find_places(c, &p);
    for (int64_t i = 0; !st && i < p.rows.count; i++)
        memcpy(p.to + (size_t)ls__index(&p.rows, i) * p.row_bytes, p.from + (size_t)i * p.row_bytes,
               p.row_bytes);
    return st;
}

#define SCATTER_ROW(id, shape_rule)                                                                \
    static const ls_op scatter_##id = { .size = sizeof(ls_op),                                     \
                                        .name = "scatter_" #id,                                    \
                                        .inputs = 2,                                               \
                                        .flags = LS_OP_WRITES,                                     \
                                        .shape = shape_rule,                                       \
                                        .kernel = id##_kernel }

SCATTER_ROW(add, number_shape);
SCATTER_ROW(sub, number_shape);
SCATTER_ROW(update, any_shape);
SCATTER_ROW(min, number_shape);
SCATTER_ROW(max, number_shape);

const ls_op *const ls__rows_scatter[] = { &scatter_add, &scatter_sub, &scatter_update,
                                          &scatter_min, &scatter_max, NULL };

ls_status ls__cell_scatter(ls__scatter how, ls__cell *cell, ls_tensor *rows, ls_tensor *values)
{
    /* Rows and values may be views of this very cell: copied out before the call looks at where
     * they are. (In a traced step, the passes do that.) */
    ls_status st = ls__cell_unshare(cell);
    if (st)
        return st;
    return ls__call(ls__rows_scatter[how], NULL, 2, (ls_tensor *[]){ rows, values }, 1, &cell,
                    NULL);
}
