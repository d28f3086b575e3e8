/*
 * Tensors that hold one number in every element.
 */
#include <lockstep/tensor.h>

#include "tensor/convert.h"
#include "tensor/tensor.h"

static ls_tensor *filled(const char *who, ls_dtype dtype, int rank, const int64_t *dims,
                         double value, int64_t exact, bool is_int)
{
    ls__spec spec;
    if (ls__spec_make(&spec, who, dtype, rank, dims))
        return NULL;
    if (dtype == LS_BYTES) {
        ls__hint(ls__fail(LS_INVALID, "%s: dtype bytes holds no numbers", who),
                 "use ls_from_strings");
        return NULL;
    }
    ls_tensor *t = ls__tensor_new(who, &spec);
    int64_t count = ls__spec_count(&spec);
    if (!t || count == 0)
        return t;
    if (is_int)
        ls__store_int(dtype, ls__data(t), 0, exact);
    else
        ls__store_double(dtype, ls__data(t), 0, value);
    ls__fill(ls__data(t), ls_dtype_size(dtype), count);
    return t;
}

ls_tensor *ls_scalar(ls_dtype dtype, double value)
{
    return filled("ls_scalar", dtype, LS_SCALAR, value, 0, false);
}

ls_tensor *ls_scalar_int(ls_dtype dtype, int64_t value)
{
    return filled("ls_scalar_int", dtype, LS_SCALAR, 0, value, true);
}

ls_tensor *ls_full(ls_dtype dtype, int rank, const int64_t *dims, double value)
{
    return filled("ls_full", dtype, rank, dims, value, 0, false);
}

ls_tensor *ls_zeros(ls_dtype dtype, int rank, const int64_t *dims)
{
    return filled("ls_zeros", dtype, rank, dims, 0, 0, false);
}

ls_tensor *ls_ones(ls_dtype dtype, int rank, const int64_t *dims)
{
    return filled("ls_ones", dtype, rank, dims, 1, 0, false);
}

ls_tensor *ls__scalar_like(const ls_tensor *x, double value)
{
    if (!x)
        return NULL;
    ls__device *before = ls__device_use(x->device);
    ls_tensor *t = ls_scalar(x->spec.dtype, value);
    ls__device_use(before);
    return t;
}
