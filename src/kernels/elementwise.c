/*
 * Which loop runs: the fast one for this processor, else the reference.
 */
#include "kernels/elementwise.h"

ls__loop *ls__elementwise_loop(ls__fn fn, ls_dtype dtype)
{
    ls__loop *fast = LS__PICK(ls__elementwise_table)->fn[fn][dtype];
    return fast ? fast : ls__ref_elementwise.fn[fn][dtype];
}

ls__loop *ls__where_loop(size_t element)
{
    return LS__PICK(ls__elementwise_table)->where[element];
}

ls__loop *ls__cast_loop(ls_dtype from, ls_dtype to)
{
    ls__loop *fast = LS__PICK(ls__casts_table)->loop[from][to];
    return fast ? fast : ls__ref_casts.loop[from][to];
}

#define FIRST_ZERO(name, type)                                                                     \
    static int64_t first_zero_##name(const type *x, int64_t n)                                     \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            if (x[i] == 0)                                                                         \
                return i;                                                                          \
        return -1;                                                                                 \
    }

FIRST_ZERO(i32, int32_t)
FIRST_ZERO(i64, int64_t)
FIRST_ZERO(u8, uint8_t)

int64_t ls__first_zero(ls_dtype dtype, const void *data, int64_t n)
{
    if (dtype == LS_I32)
        return first_zero_i32(data, n);
    if (dtype == LS_I64)
        return first_zero_i64(data, n);
    return dtype == LS_U8 ? first_zero_u8(data, n) : -1;
}
