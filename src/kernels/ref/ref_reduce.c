/*
 * Reductions over any set of axes, every type, plainly: two odometers, one over
 * the kept axes and, for each of its places, one over the reduced axes. The
 * order of sums is the one reduce.h states.
 */
#include <math.h>
#include <string.h>

#include "kernels/reduce.h"

void ls__reduce_plan_make(ls__reduce_plan *p, int rank, const int64_t *dims, const bool *reduced)
{
    memset(p, 0, sizeof *p);
    p->kept = p->count = p->outer = p->inner = 1;
    for (int i = 0; i < rank; i++) {
        if (reduced[i])
            p->count *= dims[i];
        else
            p->kept *= dims[i];
        if (dims[i] == 1)
            continue;
        if (p->rank && p->reduced[p->rank - 1] == reduced[i]) {
            p->size[p->rank - 1] *= dims[i];
            continue;
        }
        p->size[p->rank] = dims[i];
        p->reduced[p->rank++] = reduced[i];
    }
    int ranges = 0, first = 0;
    for (int i = 0; i < p->rank; i++)
        if (p->reduced[i] && ranges++ == 0)
            first = i;
    p->simple = ranges <= 1;
    if (ranges == 0) {
        p->inner = p->kept;
    } else if (ranges == 1) {
        p->outer = first ? p->size[0] : 1;
        p->inner = first + 1 < p->rank ? p->size[first + 1] : 1;
    }
}

/* An odometer over the kept, or the reduced, axes of a plan. */
typedef struct walk {
    int rank;
    int64_t size[LS__REDUCE_RANK];
    int64_t stride[LS__REDUCE_RANK];
    int64_t at[LS__REDUCE_RANK];
    int64_t offset;
} walk;

static void walk_make(walk *w, const ls__reduce_plan *p, bool reduced)
{
    memset(w, 0, sizeof *w);
    int64_t strides[LS__REDUCE_RANK], stride = 1;
    for (int i = p->rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= p->size[i];
    }
    for (int i = 0; i < p->rank; i++) {
        if (p->reduced[i] != reduced)
            continue;
        w->size[w->rank] = p->size[i];
        w->stride[w->rank++] = strides[i];
    }
}

static void walk_step(walk *w)
{
    for (int i = w->rank - 1; i >= 0; i--) {
        w->offset += w->stride[i];
        if (++w->at[i] < w->size[i])
            return;
        w->offset -= w->stride[i] * w->size[i];
        w->at[i] = 0;
    }
}

#define T float
#define U float
#define NAME(x) x##_f32
#define LOWEST -INFINITY
#define HIGHEST INFINITY
#include "kernels/ref/ref_reduce_body.h"

#define T double
#define U double
#define NAME(x) x##_f64
#define LOWEST -INFINITY
#define HIGHEST INFINITY
#include "kernels/ref/ref_reduce_body.h"

#define T int32_t
#define U uint32_t
#define NAME(x) x##_i32
#define LOWEST INT32_MIN
#define HIGHEST INT32_MAX
#include "kernels/ref/ref_reduce_body.h"

#define T int64_t
#define U uint64_t
#define NAME(x) x##_i64
#define LOWEST INT64_MIN
#define HIGHEST INT64_MAX
#include "kernels/ref/ref_reduce_body.h"

#define T uint8_t
#define U uint8_t
#define NAME(x) x##_u8
#define LOWEST 0
#define HIGHEST UINT8_MAX
#include "kernels/ref/ref_reduce_body.h"
