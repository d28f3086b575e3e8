/*
 * Pooling: checks shapes and picks the instruction set. Invariant: after
 * ls__pool_shape_complete every window touches at least one cell and a plane's
 * indices fit int32, so the kernels check nothing.
 */
#include "kernels/pool.h"

#include "kernels/ref/ref_pool.h"

/* Fills *out from one spatial axis. */
static ls_status axis_complete(const char *axis, int64_t size, int64_t kernel, int64_t stride,
                               int64_t before, int64_t after, int64_t *out)
{
    const int64_t most = INT32_MAX;
    if (size < 0 || size > most || kernel < 1 || kernel > most || stride < 1 || stride > most)
        return ls__fail(LS_INVALID, "pool: %s has size %lld, window %lld, stride %lld", axis,
                        (long long)size, (long long)kernel, (long long)stride);
    if (before < 0 || before >= kernel || after < 0 || after >= kernel)
        return ls__hint(ls__fail(LS_INVALID, "pool: %s is padded by %lld and %lld", axis,
                                 (long long)before, (long long)after),
                        "a pad is at least 0 and below the window, here %lld", (long long)kernel);
    int64_t room = size + before + after - kernel;
    *out = size == 0 || room < 0 ? 0 : room / stride + 1;
    if (*out > 0 && (*out - 1) * stride - before >= size)
        return ls__fail(LS_INVALID, "pool: the last window of the %s lies in the padding", axis);
    return LS_OK;
}

ls_status ls__pool_shape_complete(ls__pool_shape *s)
{
    int64_t cells;
    if (s->n < 0 || s->c < 0)
        return ls__fail(LS_INVALID, "pool: %lld images of %lld channels", (long long)s->n,
                        (long long)s->c);
    ls_status st =
        axis_complete("height", s->h, s->kh, s->stride_h, s->pad_top, s->pad_bottom, &s->oh);
    if (!st)
        st = axis_complete("width", s->w, s->kw, s->stride_w, s->pad_left, s->pad_right, &s->ow);
    if (st)
        return st;
    if (__builtin_mul_overflow(s->h, s->w, &cells) || cells > INT32_MAX)
        return ls__fail(LS_INVALID, "pool: a plane of %lld x %lld has no int32 index",
                        (long long)s->h, (long long)s->w);
    return LS_OK;
}

void ls__max_pool_forward_f32(const ls__pool_shape *s, const float *x, float *y, int32_t *argmax)
{
    LS__PICK(ls__pool_table)->max_forward(s, x, y, argmax);
}

void ls__max_pool_forward_relu_f32(const ls__pool_shape *s, const float *x, float *y,
                                   int32_t *argmax)
{
    LS__PICK(ls__pool_table)->max_forward_relu(s, x, y, argmax);
}

bool ls__max_pool_backward_f32(const ls__pool_shape *s, const float *dy, const int32_t *argmax,
                               float *dx)
{
    return LS__PICK(ls__pool_table)->max_backward(s, dy, argmax, dx);
}

bool ls__max_pool_gather_f32(const ls__pool_shape *s, const float *x, const int32_t *argmax,
                             float *y)
{
    return LS__PICK(ls__pool_table)->max_gather(s, x, argmax, y);
}

void ls__avg_pool_forward_f32(const ls__pool_shape *s, const float *x, float *y)
{
    LS__PICK(ls__pool_table)->avg_forward(s, x, y);
}

void ls__avg_pool_backward_f32(const ls__pool_shape *s, const float *dy, float *dx)
{
    LS__PICK(ls__pool_table)->avg_backward(s, dy, dx);
}

void ls__max_pool_forward_f64(const ls__pool_shape *s, const double *x, double *y, int32_t *argmax)
{
    ls__ref_max_pool_forward_f64(s, x, y, argmax);
}

void ls__max_pool_forward_relu_f64(const ls__pool_shape *s, const double *x, double *y,
                                   int32_t *argmax)
{
    const int64_t n = s->n * s->oh * s->ow * s->c;
    ls__ref_max_pool_forward_f64(s, x, y, argmax);
    for (int64_t i = 0; i < n; i++)
        y[i] = y[i] <= 0 ? 0 : y[i];
}

/* The reference goes where an index says. */
static bool all_inside(const ls__pool_shape *s, const int32_t *argmax)
{
    const int64_t n = s->n * s->oh * s->ow * s->c;
    const uint32_t pixels = (uint32_t)(s->h * s->w);
    int outside = 0;
    for (int64_t i = 0; i < n; i++)
        outside |= (uint32_t)argmax[i] >= pixels;
    return !outside;
}

bool ls__max_pool_backward_f64(const ls__pool_shape *s, const double *dy, const int32_t *argmax,
                               double *dx)
{
    if (!all_inside(s, argmax))
        return false;
    ls__ref_max_pool_backward_f64(s, dy, argmax, dx);
    return true;
}

bool ls__max_pool_gather_f64(const ls__pool_shape *s, const double *x, const int32_t *argmax,
                             double *y)
{
    if (!all_inside(s, argmax))
        return false;
    ls__ref_max_pool_gather_f64(s, x, argmax, y);
    return true;
}

void ls__avg_pool_forward_f64(const ls__pool_shape *s, const double *x, double *y)
{
    ls__ref_avg_pool_forward_f64(s, x, y);
}

void ls__avg_pool_backward_f64(const ls__pool_shape *s, const double *dy, double *dx)
{
    ls__ref_avg_pool_backward_f64(s, dy, dx);
}
