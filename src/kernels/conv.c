/*
 * Convolution: checks shapes and decides who computes. Invariant: a convolution
 * with nothing to sum never reaches a kernel, and the route is a pure function
 * of shape, pass, layout and processor.
 */
#include "kernels/conv.h"

#include "kernels/elementwise.h"
#include "kernels/ref/ref_conv.h"

#include <string.h>

#ifdef LS_HAVE_DNNL
#include "kernels/cpu/dnnl_conv.h"
#include "kernels/cpu/dnnl_engine.h"
#endif

static ls_status axis_complete(const char *axis, int64_t size, int64_t kernel, int64_t stride,
                               int64_t dilation, int64_t before, int64_t after, int64_t *out)
{
    const int64_t most = INT32_MAX;
    if (size < 0 || size > most || kernel < 0 || kernel > most || stride < 1 || stride > most ||
        dilation < 1 || dilation > most)
        return ls__fail(LS_INVALID,
                        "conv2d: %s has size %lld, kernel %lld, stride %lld, "
                        "dilation %lld",
                        axis, (long long)size, (long long)kernel, (long long)stride,
                        (long long)dilation);
    if (before < 0 || before > most || after < 0 || after > most)
        return ls__fail(LS_INVALID, "conv2d: %s is padded by %lld and %lld", axis,
                        (long long)before, (long long)after);
    int64_t room = size + before + after - (kernel > 0 ? (kernel - 1) * dilation + 1 : 0);
    *out = size == 0 || kernel == 0 || room < 0 ? 0 : room / stride + 1;
    return LS_OK;
}

ls_status ls__conv_shape_complete(ls__conv_shape *s)
{
    int64_t size[3][4] = { { s->n, s->h, s->w, s->c }, { s->kh, s->kw, s->c, s->oc } };
    if (s->n < 0 || s->c < 0 || s->oc < 0)
        return ls__fail(LS_INVALID, "conv2d: %lld images, %lld channels to %lld", (long long)s->n,
                        (long long)s->c, (long long)s->oc);
    if (s->depthwise && (s->multiplier < 0 || s->oc != s->c * s->multiplier))
        return ls__fail(LS_SHAPE, "conv2d: depthwise, %lld channels times %lld are not %lld",
                        (long long)s->c, (long long)s->multiplier, (long long)s->oc);
    ls_status st = axis_complete("height", s->h, s->kh, s->stride_h, s->dilation_h, s->pad_top,
                                 s->pad_bottom, &s->oh);
    if (!st)
        st = axis_complete("width", s->w, s->kw, s->stride_w, s->dilation_w, s->pad_left,
                           s->pad_right, &s->ow);
    if (st)
        return st;
    memcpy(size[2], (int64_t[4]){ s->n, s->oh, s->ow, s->oc }, sizeof size[2]);
    for (int i = 0; i < 3; i++) {
        int64_t count = sizeof(double);
        for (int k = 0; k < 4; k++)
            if (__builtin_mul_overflow(count, size[i][k], &count))
                return ls__fail(LS_INVALID, "conv2d: a value of this shape has too many bytes");
    }
    return LS_OK;
}

int64_t ls__conv_count(const ls__conv_shape *s, int arg)
{
    switch (arg) {
    case LS__CONV_X:
        return s->n * s->h * s->w * s->c;
    case LS__CONV_W:
        return s->kh * s->kw * s->c * (s->depthwise ? s->multiplier : s->oc);
    default:
        return s->n * s->oh * s->ow * s->oc;
    }
}

ls__conv_layout ls__conv_preferred(const ls__conv_shape *shape, ls__conv_pass pass)
{
#ifdef LS_HAVE_DNNL
    /* Measured on Sapphire Rapids, 1 thread: our own kernel is for NHWC; oneDNN's
     * 1x1 and its dense weight gradients are as fast or faster there too. */
    bool dense = shape->stride_h == 1 && shape->stride_w == 1;
    bool point = shape->kh == 1 && shape->kw == 1;
    if (ls__conv_one_fits(shape))
        return LS__CONV_NHWC;
    if (ls__dnnl_conv_winograd_pays(shape, pass))
        return LS__CONV_WINOGRAD;
    if (point || (pass == LS__CONV_BACKWARD_WEIGHTS && dense))
        return LS__CONV_NHWC;
    return LS__CONV_ANY;
#else
    (void)shape;
    (void)pass;
    return LS__CONV_NHWC;
#endif
}

/* The argument a pass writes. */
static int written_by(ls__conv_pass pass)
{
    static const int arg[] = { [LS__CONV_FORWARD] = LS__CONV_Y,
                               [LS__CONV_BACKWARD_DATA] = LS__CONV_X,
                               [LS__CONV_BACKWARD_WEIGHTS] = LS__CONV_W };
    return arg[pass];
}

static ls_status find_route(ls__conv_plan *p, ls__conv_layout layout)
{
    p->route = LS__CONV_REFERENCE;
    for (int i = 0; i < 3; i++)
        if (ls__conv_count(&p->shape, i) == 0)
            p->route = LS__CONV_ZERO;
#ifdef LS_HAVE_DNNL
    if (p->route == LS__CONV_ZERO || !ls__dnnl_engine())
        return LS_OK;
    if (layout == LS__CONV_NHWC && ls__conv_one_fits(&p->shape)) {
        p->route = LS__CONV_ONE_CHANNEL;
        return LS_OK;
    }
    ls_status st = ls__dnnl_conv_plan(&p->shape, p->pass, layout, &p->dnnl);
    if (!st && !p->dnnl && layout == LS__CONV_WINOGRAD)
        st = ls__dnnl_conv_plan(&p->shape, p->pass, LS__CONV_ANY, &p->dnnl);
    if (p->dnnl)
        p->route = LS__CONV_DNNL;
    return st;
#else
    (void)layout;
    return LS_OK;
#endif
}

ls_status ls__conv_plan_open(ls__conv_plan *plan, const ls__conv_shape *shape, ls__conv_pass pass,
                             ls__conv_layout layout)
{
    ls__conv_plan p = { .shape = *shape, .pass = pass };
    p.shape.bias = shape->bias && pass == LS__CONV_FORWARD;
    p.shape.relu = shape->relu && pass == LS__CONV_FORWARD;
    ls_status st = ls__conv_shape_complete(&p.shape);
    if (st)
        return st;
    if (p.shape.oh != shape->oh || p.shape.ow != shape->ow)
        return ls__fail(LS_SHAPE, "conv2d: the output is %lld x %lld, not %lld x %lld",
                        (long long)p.shape.oh, (long long)p.shape.ow, (long long)shape->oh,
                        (long long)shape->ow);
    st = find_route(&p, layout);
    if (st)
        return st;
    for (int i = 0; i < 3; i++) {
        p.arg[i].plain = true;
        p.arg[i].bytes = (size_t)ls__conv_count(&p.shape, i) * sizeof(float);
#ifdef LS_HAVE_DNNL
        if (p.dnnl) {
            p.arg[i].plain = p.dnnl->arg[i].plain;
            p.arg[i].bytes = p.dnnl->arg[i].bytes;
        }
#endif
    }
    *plan = p;
    return LS_OK;
}

void ls__conv_plan_close(ls__conv_plan *plan)
{
#ifdef LS_HAVE_DNNL
    ls__dnnl_plan_release(plan->dnnl);
#endif
    plan->dnnl = NULL;
}

ls_status ls__conv_plan_pack(const ls__conv_plan *plan, int arg, const float *plain, void *packed)
{
#ifdef LS_HAVE_DNNL
    if (!plan->arg[arg].plain)
        return ls__dnnl_plan_pack(plan->dnnl, arg, plain, packed);
#endif
    if (plan->arg[arg].bytes > 0)
        memcpy(packed, plain, plan->arg[arg].bytes);
    return LS_OK;
}

ls_status ls__conv_plan_unpack(const ls__conv_plan *plan, int arg, const void *packed, float *plain)
{
#ifdef LS_HAVE_DNNL
    if (!plan->arg[arg].plain)
        return ls__dnnl_plan_unpack(plan->dnnl, arg, packed, plain);
#endif
    if (plan->arg[arg].bytes > 0)
        memcpy(plain, packed, plan->arg[arg].bytes);
    return LS_OK;
}

/* y += bias, plain, by the loop of the operator add: its bits. */
static void add_bias(const ls__conv_shape *s, ls_dtype dtype, const void *bias, void *y)
{
    const int64_t pixels = s->n * s->oh * s->ow, dims[2] = { pixels, s->oc };
    const size_t size = dtype == LS_F64 ? sizeof(double) : sizeof(float);
    ls__broadcast p;
    if (pixels == 0 || s->oc == 0)
        return;
    ls__broadcast_plan(&p, 2, dims, 2, (const int[]){ 2, 1 },
                       (const int64_t *const[]){ dims, dims + 1 });
    ls__broadcast_run(&p, ls__elementwise_loop(LS__FN_add, dtype), (const void *const[]){ y, bias },
                      (const size_t[]){ size, size }, y, size);
}

/* y = relu(y), in whatever layout: padding holds zeros and keeps them. */
static void apply_relu(ls_dtype dtype, void *y, int64_t n)
{
    ls__elementwise_loop(LS__FN_relu, dtype)((const void *const[]){ y }, (const int64_t[]){ 1 }, y,
                                             n);
}

static ls_status run_reference(const ls__conv_plan *p, void *x, void *w, void *y)
{
    if (p->pass == LS__CONV_FORWARD)
        ls__ref_conv_forward_f32(&p->shape, x, w, y);
    else if (p->pass == LS__CONV_BACKWARD_DATA)
        ls__ref_conv_backward_data_f32(&p->shape, y, w, x);
    else
        ls__ref_conv_backward_weights_f32(&p->shape, x, y, w);
    return LS_OK;
}

#ifdef LS_HAVE_DNNL
/* oneDNN adds the bias; relu is ours, since oneDNN's makes NaN a zero. */
static ls_status run_dnnl(const ls__conv_plan *p, void *const arg[3], const float *bias, bool plain)
{
    const int out = written_by(p->pass);
    if (p->shape.bias)
        ls__dnnl_plan_bias(p->dnnl, bias);
    ls_status st =
        plain ? ls__dnnl_plan_run_plain(p->dnnl, arg, out) : ls__dnnl_plan_run(p->dnnl, arg);
    size_t bytes =
        plain ? (size_t)ls__conv_count(&p->shape, out) * sizeof(float) : p->arg[out].bytes;
    if (!st && p->shape.relu)
        apply_relu(LS_F32, arg[out], (int64_t)(bytes / sizeof(float)));
    return st;
}
#endif

/* With `plain` the arguments are in our layout, else as wanted. */
static ls_status run(const ls__conv_plan *p, void *x, void *w, void *y, const float *bias,
                     bool plain)
{
    void *const arg[3] = { x, w, y };
    const int out = written_by(p->pass);
    ls_status st = LS_OK;
    switch (p->route) {
#ifdef LS_HAVE_DNNL
    case LS__CONV_ONE_CHANNEL:
        return ls__conv_one_run(&p->shape, p->pass, x, w, y, bias);
    case LS__CONV_DNNL:
        return run_dnnl(p, arg, bias, plain);
#endif
    case LS__CONV_ZERO:
        if (p->arg[out].bytes > 0)
            memset(arg[out], 0, p->arg[out].bytes);
        break;
    default:
        (void)plain;
        st = run_reference(p, x, w, y);
    }
    if (!st && p->shape.bias)
        add_bias(&p->shape, LS_F32, bias, y);
    if (!st && p->shape.relu)
        apply_relu(LS_F32, y, ls__conv_count(&p->shape, LS__CONV_Y));
    return st;
}

ls_status ls__conv_plan_run(const ls__conv_plan *plan, void *x, void *w, void *y, const float *bias)
{
    return run(plan, x, w, y, bias, false);
}

/* Inputs lose their const on the way; a pass writes only its output. */
static ls_status run_eager(const ls__conv_shape *shape, ls__conv_pass pass, const float *x,
                           const float *w, const float *y, const float *bias)
{
    ls__conv_plan plan;
    ls_status st = ls__conv_plan_open(&plan, shape, pass, LS__CONV_NHWC);
    if (st)
        return st;
    st = run(&plan, (void *)x, (void *)w, (void *)y, bias, true);
    ls__conv_plan_close(&plan);
    return st;
}

ls_status ls__conv_forward_f32(const ls__conv_shape *s, const float *x, const float *w, float *y)
{
    ls__conv_shape alone = *s;
    alone.bias = alone.relu = false;
    return run_eager(&alone, LS__CONV_FORWARD, x, w, y, NULL);
}

ls_status ls__conv_forward_fused_f32(const ls__conv_shape *s, const float *x, const float *w,
                                     const float *bias, float *y)
{
    return run_eager(s, LS__CONV_FORWARD, x, w, y, bias);
}

ls_status ls__conv_backward_data_f32(const ls__conv_shape *s, const float *dy, const float *w,
                                     float *dx)
{
    return run_eager(s, LS__CONV_BACKWARD_DATA, dx, w, dy, NULL);
}

ls_status ls__conv_backward_weights_f32(const ls__conv_shape *s, const float *x, const float *dy,
                                        float *dw)
{
    return run_eager(s, LS__CONV_BACKWARD_WEIGHTS, x, dw, dy, NULL);
}

/* f64: shapes are checked by whoever made them complete; the loops of the
 * reference zero their output and do nothing on empty sizes. */
ls_status ls__conv_forward_f64(const ls__conv_shape *s, const double *x, const double *w, double *y)
{
    ls__ref_conv_forward_f64(s, x, w, y);
    return LS_OK;
}

ls_status ls__conv_forward_fused_f64(const ls__conv_shape *s, const double *x, const double *w,
                                     const double *bias, double *y)
{
    ls__ref_conv_forward_f64(s, x, w, y);
    if (s->bias)
        add_bias(s, LS_F64, bias, y);
    if (s->relu)
        apply_relu(LS_F64, y, ls__conv_count(s, LS__CONV_Y));
    return LS_OK;
}

ls_status ls__conv_backward_data_f64(const ls__conv_shape *s, const double *dy, const double *w,
                                     double *dx)
{
    ls__ref_conv_backward_data_f64(s, dy, w, dx);
    return LS_OK;
}

ls_status ls__conv_backward_weights_f64(const ls__conv_shape *s, const double *x, const double *dy,
                                        double *dw)
{
    ls__ref_conv_backward_weights_f64(s, x, dy, dw);
    return LS_OK;
}
