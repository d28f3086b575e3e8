/*
 * One element at a time, any dtype: for scalars, fills and printing. Bulk
 * conversion is the cast operator's kernel.
 */
#ifndef LS__TENSOR_CONVERT_H
#define LS__TENSOR_CONVERT_H

#include <lockstep/tensor.h>

double ls__load_double(ls_dtype dtype, const void *data, int64_t index);

/* Floats truncate and saturate; NaN gives 0. */
int64_t ls__load_int(ls_dtype dtype, const void *data, int64_t index);

/* Converts as ls_cast does. */
void ls__store_double(ls_dtype dtype, void *data, int64_t index, double value);
void ls__store_int(ls_dtype dtype, void *data, int64_t index, int64_t value);

/* `count` copies of element 0 after it. */
void ls__fill(void *data, size_t element_bytes, int64_t count);

#endif
