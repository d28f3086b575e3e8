/*
 * What the tests of traced functions share: small tensors, a step that doubles its
 * argument, and a variable with its optimizer.
 */
#ifndef LS__TRACE_FUNCTION_TEST_SUPPORT_H
#define LS__TRACE_FUNCTION_TEST_SUPPORT_H

#include <lockstep.h>

#include "tensor/test_support.h"

static inline ls_tensor *numbers(int64_t n, float first)
{
    float data[64];
    for (int64_t i = 0; i < n; i++)
        data[i] = first + (float)i;
    return ls_from(LS_F32, 1, &n, data);
}

static inline float at(const ls_tensor *t, int64_t i)
{
    float data[64];
    assert_true(ls_count(t) <= 64);
    assert_int_equal(ls_copy_out(t, data, sizeof *data * (size_t)ls_count(t)), LS_OK);
    return data[i];
}

static inline float first_of(const ls_value *v)
{
    if (!v)
        fail_msg("%s", ls_error_report());
    return at(ls_item(v, 0), 0);
}

static inline ls_value *one(ls_tensor *t)
{
    return ls_tensors(1, &t);
}

static inline ls_value *double_it(ls_value *v, void *user)
{
    if (user)
        ++*(int *)user;
    ls_tensor *x = ls_item(v, 0);
    return one(ls_add(x, x));
}

typedef struct model {
    ls_variable *w;
    ls_optimizer *sgd;
} model;

#endif
