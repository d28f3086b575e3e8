/*
 * Conversions of single elements. Invariant: no conversion is undefined; what
 * does not fit saturates.
 */
#include "tensor/convert.h"

#include <string.h>

#include "base/bf16.h"

static int64_t saturate(double value, int64_t low, int64_t high)
{
    if (value != value)
        return 0;
    if (value <= (double)low)
        return low;
    if (value >= (double)high)
        return high;
    return (int64_t)value;
}

double ls__load_double(ls_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case LS_F32:
        return (double)((const float *)data)[i];
    case LS_F64:
        return ((const double *)data)[i];
    case LS_BF16:
        return (double)ls__bf16_to_f32(((const uint16_t *)data)[i]);
    default:
        return (double)ls__load_int(dtype, data, i);
    }
}

int64_t ls__load_int(ls_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case LS_I32:
        return ((const int32_t *)data)[i];
    case LS_I64:
        return ((const int64_t *)data)[i];
    case LS_U8:
        return ((const uint8_t *)data)[i];
    case LS_BOOL:
        return ((const uint8_t *)data)[i] != 0;
    case LS_BYTES:
        return 0;
    default:
        return saturate(ls__load_double(dtype, data, i), INT64_MIN, INT64_MAX);
    }
}

void ls__store_double(ls_dtype dtype, void *data, int64_t i, double value)
{
    switch (dtype) {
    case LS_F32:
        ((float *)data)[i] = (float)value;
        break;
    case LS_F64:
        ((double *)data)[i] = value;
        break;
    case LS_BF16:
        ((uint16_t *)data)[i] = ls__bf16_from_f32((float)value);
        break;
    case LS_I32:
        ((int32_t *)data)[i] = (int32_t)saturate(value, INT32_MIN, INT32_MAX);
        break;
    case LS_I64:
        ((int64_t *)data)[i] = saturate(value, INT64_MIN, INT64_MAX);
        break;
    case LS_U8:
        ((uint8_t *)data)[i] = (uint8_t)saturate(value, 0, UINT8_MAX);
        break;
    case LS_BOOL:
        ((uint8_t *)data)[i] = value != 0;
        break;
    case LS_BYTES:
        break;
    }
}

void ls__store_int(ls_dtype dtype, void *data, int64_t i, int64_t value)
{
    if (dtype == LS_I64)
        ((int64_t *)data)[i] = value; /* a double would round */
    else
        ls__store_double(dtype, data, i, (double)value);
}

void ls__fill(void *data, size_t element_bytes, int64_t count)
{
    size_t done = element_bytes, all = element_bytes * (size_t)count;
    while (done < all) {
        size_t run = done < all - done ? done : all - done;
        memcpy((char *)data + done, data, run);
        done += run;
    }
}
