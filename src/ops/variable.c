/*
 * Rows with a cell: read, assign, assign_add, assign_sub. Reading gives a
 * snapshot that is a view (see cell.h); writing keeps dtype and shape. The value
 * written may be a view of the same cell: each element is read before it is
 * written.
 */
#include "ops/variable.h"

#include <string.h>

#include "base/bf16.h"
#include "dispatch/call.h"

static ls_status read_shape(ls_call *c)
{
    if (c->n_cells != 1)
        return ls_call_fail(c, LS_INVALID, "%d cells, wants 1", c->n_cells);
    const ls__spec *spec = ls__cell_spec(c->cells[0]);
    return ls__output_spec(c, 0, spec);
}

static const ls_op read_row = { .size = sizeof(ls_op),
                                .name = "read",
                                .outputs = 1,
                                .flags = LS_OP_READS | LS_OP_ALIAS,
                                .shape = read_shape };

static ls_status write_shape(ls_call *c)
{
    if (c->n_cells != 1)
        return ls_call_fail(c, LS_INVALID, "%d cells, wants 1", c->n_cells);
    const ls__spec *spec = ls__cell_spec(c->cells[0]);
    if (!ls__spec_equal(spec, c->in[0]))
        return ls_call_fail(c, LS_SHAPE, "a variable of %s cannot take %s", ls__spec_text(spec),
                            ls__spec_text(c->in[0]));
    return LS_OK;
}

static ls_status add_shape(ls_call *c)
{
    ls_status st = ls__want_dtype(c, 0, LS__NUMBERS);
    return st ? st : write_shape(c);
}

static ls_status assign_kernel(ls_call *c)
{
    void *to = ls__cell_write(c->cells[0]);
    if (!to)
        return LS_NO_MEMORY;
    memmove(to, c->in_data[0], ls__spec_bytes(c->in[0]));
    return LS_OK;
}

/* Integers wrap: they are added as unsigned. */
#define ADD_LOOP(type, as)                                                                       \
    for (int64_t i = 0; i < n; i++)                                                                \
    ((type *)to)[i] = (type)((as)((type *)to)[i] + (as)sign * (as)((const type *)from)[i])

static void add_scaled(ls_dtype dtype, void *to, const void *from, int sign, int64_t n)
{
    switch (dtype) {
    case LS_F32:
        ADD_LOOP(float, float);
        break;
    case LS_F64:
        ADD_LOOP(double, double);
        break;
    case LS_I32:
        ADD_LOOP(int32_t, uint32_t);
        break;
    case LS_I64:
        ADD_LOOP(int64_t, uint64_t);
        break;
    case LS_U8:
        ADD_LOOP(uint8_t, uint32_t);
        break;
    case LS_BF16:
        for (int64_t i = 0; i < n; i++) {
            float a = ls__bf16_to_f32(((uint16_t *)to)[i]);
            float b = ls__bf16_to_f32(((const uint16_t *)from)[i]);
            ((uint16_t *)to)[i] = ls__bf16_from_f32(a + (float)sign * b);
        }
        break;
    default: /* refused by the shape rule */
        break;
    }
}

static ls_status add_kernel_with(ls_call *c, int sign)
{
    void *to = ls__cell_write(c->cells[0]);
    if (!to)
        return LS_NO_MEMORY;
    add_scaled(c->in[0]->dtype, to, c->in_data[0], sign, ls__spec_count(c->in[0]));
    return LS_OK;
}

static ls_status add_kernel(ls_call *c)
{
    return add_kernel_with(c, 1);
}

static ls_status sub_kernel(ls_call *c)
{
    return add_kernel_with(c, -1);
}

#define WRITE_ROW(id, shape_rule, kernel_fn)                                                     \
    static const ls_op id##_row = { .size = sizeof(ls_op),                                         \
                                    .name = #id,                                                   \
                                    .inputs = 1,                                                   \
                                    .flags = LS_OP_WRITES | LS_OP_TOTAL,                           \
                                    .shape = shape_rule,                                           \
                                    .kernel = kernel_fn }

WRITE_ROW(assign, write_shape, assign_kernel);
WRITE_ROW(assign_add, add_shape, add_kernel);
WRITE_ROW(assign_sub, add_shape, sub_kernel);

const ls_op *const ls__rows_variable[] = { &read_row, &assign_row, &assign_add_row,
                                           &assign_sub_row, NULL };

ls_tensor *ls__cell_read_op(ls__cell *cell)
{
    ls_tensor *out;
    return ls__call(&read_row, NULL, 0, NULL, 1, &cell, &out) ? NULL : out;
}

ls_status ls__cell_assign(ls__cell *cell, ls_tensor *value)
{
    return ls__call(&assign_row, NULL, 1, &value, 1, &cell, NULL);
}

ls_status ls__cell_assign_add(ls__cell *cell, ls_tensor *value)
{
    return ls__call(&assign_add_row, NULL, 1, &value, 1, &cell, NULL);
}

ls_status ls__cell_assign_sub(ls__cell *cell, ls_tensor *value)
{
    return ls__call(&assign_sub_row, NULL, 1, &value, 1, &cell, NULL);
}
