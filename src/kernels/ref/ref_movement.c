/*
 * Reference data movement: one element at a time, in the order of the
 * definition. Invariant: reads nothing but the elements the walk names.
 */
#include <string.h>

#include "kernels/movement.h"

int64_t ls__index_outside(const ls__indices *ix, int64_t limit)
{
    for (int64_t i = 0; i < ix->count; i++) {
        int64_t index = ls__index(ix, i);
        if (index < 0 || index >= limit)
            return i;
    }
    return -1;
}

static void move(const ls__walk *w, size_t element, const void *from, void *to)
{
    int64_t place[LS__WALK_RANK] = { 0 };
    int64_t count = 1;
    for (int i = 0; i < w->rank; i++)
        count *= w->dims[i];
    for (int64_t n = 0; n < count; n++) {
        int64_t f = 0, t = 0;
        for (int i = 0; i < w->rank; i++) {
            f += place[i] * w->from[i];
            t += place[i] * w->to[i];
        }
        memcpy((char *)to + t * (int64_t)element, (const char *)from + f * (int64_t)element,
               element);
        for (int i = w->rank - 1; i >= 0 && ++place[i] == w->dims[i]; i--)
            place[i] = 0;
    }
}

static void fill(size_t element, const void *value, void *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)to + i * (int64_t)element, value, element);
}

static void gather(const ls__indices *ix, int64_t outer, int64_t axis, int64_t inner,
                   size_t element, const void *from, void *to)
{
    size_t run = (size_t)inner * element;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < ix->count && run; i++)
            memcpy((char *)to + (size_t)(o * ix->count + i) * run,
                   (const char *)from + (size_t)(o * axis + ls__index(ix, i)) * run, run);
}

#define SCATTER(name, type)                                                                        \
    static void name(const ls__indices *ix, int64_t rows, int64_t width, const type *from,         \
                     type *to)                                                                     \
    {                                                                                              \
        for (int64_t i = 0; i < rows * width; i++)                                                 \
            to[i] = 0;                                                                             \
        for (int64_t i = 0; i < ix->count; i++)                                                    \
            for (int64_t j = 0; j < width; j++)                                                    \
                to[ls__index(ix, i) * width + j] += from[i * width + j];                           \
    }

SCATTER(scatter_f32, float)
SCATTER(scatter_f64, double)

const ls__movement ls__ref_movement = { move, fill, gather, scatter_f32, scatter_f64 };
