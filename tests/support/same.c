/*
 * Comparing tensors, sparse ones by their parts.
 */
#include "support/same.h"

#include <lockstep/tape.h>
#include <math.h>
#include <string.h>

#include "support/case.h"

static bool same_kind(const ls_tensor *a, const ls_tensor *b)
{
    return a && b && ls_is_sparse(a) == ls_is_sparse(b) && ls_dtype_of(a) == ls_dtype_of(b) &&
           ls_rank(a) == ls_rank(b) &&
           memcmp(ls_shape(a), ls_shape(b), sizeof(int64_t) * (size_t)ls_rank(a)) == 0;
}

static bool same_elements(const ls_tensor *a, const ls_tensor *b)
{
    ls_dtype dtype = ls_dtype_of(a);
    size_t size = ls_dtype_size(dtype), bytes = ls_size_in_bytes(a);
    const char *x = bytes ? ls_data(a) : NULL, *y = bytes ? ls_data(b) : NULL;
    if (bytes == 0 || memcmp(x, y, bytes) == 0)
        return true;
    for (int64_t i = 0; i < ls_count(a); i++)
        if (memcmp(x + size * (size_t)i, y + size * (size_t)i, size) != 0 &&
            !(ls_dtype_is_float(dtype) && isnan(case_at(dtype, x, i)) &&
              isnan(case_at(dtype, y, i))))
            return false;
    return true;
}

bool same_bits(ls_tensor *a, ls_tensor *b)
{
    if (!same_kind(a, b))
        return false;
    if (ls_is_sparse(a))
        return same_bits(ls_sparse_rows(a), ls_sparse_rows(b)) &&
               same_bits(ls_sparse_values(a), ls_sparse_values(b));
    return same_elements(a, b);
}

static double dense_apart(ls_tensor *want, ls_tensor *got)
{
    ls_dtype dtype = ls_dtype_of(want);
    int64_t n = ls_count(want);
    const void *x = n ? ls_data(want) : NULL, *y = n ? ls_data(got) : NULL;
    double unit = 1, worst = 0;
    for (int64_t i = 0; i < n; i++) {
        double a = fabs(case_at(dtype, x, i));
        if (isfinite(a) && a > unit)
            unit = a;
    }
    for (int64_t i = 0; i < n; i++) {
        double a = case_at(dtype, x, i), b = case_at(dtype, y, i);
        if (a == b || (isnan(a) && isnan(b)))
            continue;
        double d = fabs(a - b) / unit;
        worst = d <= worst ? worst : d; /* a NaN is worst, and stays */
    }
    return isnan(worst) ? (double)INFINITY : worst;
}

double same_apart(ls_tensor *want, ls_tensor *got)
{
    if (!same_kind(want, got))
        return (double)INFINITY;
    return dense_apart(ls_densify(want), ls_densify(got));
}

double same_near(ls_dtype dtype)
{
    return dtype == LS_F64 ? 1e-11 : dtype == LS_F32 ? 1e-5 : dtype == LS_BF16 ? 2e-2 : 0;
}
