/*
 * A spec is what is known of a tensor without its data: dtype and shape. Shape
 * rules work on specs alone, so they serve eager calls and traces alike.
 */
#ifndef LS__TENSOR_SPEC_H
#define LS__TENSOR_SPEC_H

#include <lockstep/tensor.h>

typedef struct ls__spec {
    ls_dtype dtype;
    int rank;
    int64_t dims[LS_MAX_RANK];
} ls__spec;

/* Fills `out` after checking dtype, rank, sign of the sizes and that the bytes
 * fit in an int64. `who` starts the error text. */
ls_status ls__spec_make(ls__spec *out, const char *who, ls_dtype dtype, int rank,
                        const int64_t *dims);

bool ls__spec_same_shape(const ls__spec *a, const ls__spec *b);
bool ls__spec_equal(const ls__spec *a, const ls__spec *b);

/* "f32[2,3]" in a small ring of buffers of this thread (eight live at once). */
const char *ls__spec_text(const ls__spec *spec);

static inline int64_t ls__spec_count(const ls__spec *spec)
{
    int64_t count = 1;
    for (int i = 0; i < spec->rank; i++)
        count *= spec->dims[i];
    return count;
}

/* Bytes as stored; LS_BYTES elements count as their (pointer, length) pairs. */
size_t ls__spec_bytes(const ls__spec *spec);

/* The axis as 0 .. rank - 1, or -1 when there is none of that number. */
static inline int ls__axis(int64_t axis, int rank)
{
    if (axis < -(int64_t)rank || axis >= rank)
        return -1;
    return (int)(axis < 0 ? axis + rank : axis);
}

#endif
