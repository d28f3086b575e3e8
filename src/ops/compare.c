/*
 * equal not_equal less less_equal greater greater_equal, and the logic of bools.
 * Results are bool; nothing here is differentiable. Comparisons with NaN are
 * false, but for not_equal.
 */
#include <lockstep/ops.h>

#include "ops/elementwise.h"

static ls_status any_shape(ls_call *c)
{
    return ls__compare_shape(c, LS__ANY);
}

static ls_status bools_shape(ls_call *c)
{
    return ls__compare_shape(c, LS__BIT(LS_BOOL));
}

#define ROW(op, rule)                                                                              \
    static ls_status op##_kernel(ls_call *c)                                                       \
    {                                                                                              \
        return ls__elementwise_kernel(c, LS__FN_##op);                                             \
    }                                                                                              \
    static const ls_op op##_row = { .size = sizeof(ls_op),                                         \
                                    .name = #op,                                                   \
                                    .inputs = 2,                                                   \
                                    .outputs = 1,                                                  \
                                    .flags = LS_OP_ELEMENTWISE | LS_OP_BF16_AS_F32 | LS_OP_TOTAL,  \
                                    .shape = rule,                                                 \
                                    .kernel = op##_kernel };                                       \
    ls_tensor *ls_##op(ls_tensor *a, ls_tensor *b)                                                 \
    {                                                                                              \
        return ls__call2(&op##_row, NULL, a, b);                                                   \
    }

ROW(equal, any_shape)
ROW(not_equal, any_shape)
ROW(less, any_shape)
ROW(less_equal, any_shape)
ROW(greater, any_shape)
ROW(greater_equal, any_shape)
ROW(logical_and, bools_shape)
ROW(logical_or, bools_shape)

static ls_status not_shape(ls_call *c)
{
    return ls__test_shape(c, LS__BIT(LS_BOOL));
}

static ls_status not_kernel(ls_call *c)
{
    return ls__elementwise_kernel(c, LS__FN_logical_not);
}

static const ls_op logical_not_row = { .size = sizeof(ls_op),
                                       .name = "logical_not",
                                       .inputs = 1,
                                       .outputs = 1,
                                       .flags = LS_OP_ELEMENTWISE | LS_OP_TOTAL,
                                       .shape = not_shape,
                                       .kernel = not_kernel };

ls_tensor *ls_logical_not(ls_tensor *a)
{
    return ls__call1(&logical_not_row, NULL, a);
}

const ls_op *const ls__rows_compare[] = {
    &equal_row,         &not_equal_row,   &less_row,       &less_equal_row,  &greater_row,
    &greater_equal_row, &logical_and_row, &logical_or_row, &logical_not_row, NULL
};
