/*
 * Where the windows of a convolution or a pooling lie along one axis, as
 * TensorFlow places them.
 */
#ifndef LS__OPS_WINDOW_H
#define LS__OPS_WINDOW_H

#include "dispatch/call.h"

typedef struct ls__window {
    int64_t out;           /* how many windows */
    int64_t before, after; /* padding */
} ls__window;

/* Windows of `size` elements, `dilation` apart, every `stride`, over `in`; checks
 * all of them. `axis` is for the error: "height" or "width". */
static inline ls_status ls__place_windows(const ls_call *c, const char *axis, int64_t in,
                                          int64_t size, int64_t stride, int64_t dilation,
                                          int64_t padding, ls__window *w)
{
    *w = (ls__window){ .out = 0 };
    if (dilation < 1) /* pools have none */
        return ls_call_fail(c, LS_INVALID, "dilation %lld of the %s must be at least 1",
                            (long long)dilation, axis);
    if (stride < 1 || size < 1)
        return ls_call_fail(c, LS_INVALID,
                            "window %lld, stride %lld of the %s: both must be at least 1",
                            (long long)size, (long long)stride, axis);
    if (stride > INT32_MAX || dilation > INT32_MAX || size > INT32_MAX || in > INT32_MAX)
        return ls_call_fail(c, LS_INVALID, "a %s, window, stride or dilation above 2^31 - 1", axis);
    if (padding != LS_VALID && padding != LS_SAME)
        return ls_call_fail(c, LS_INVALID, "padding %lld is neither LS_VALID nor LS_SAME",
                            (long long)padding);
    int64_t span = (size - 1) * dilation + 1;
    if (padding == LS_SAME) {
        w->out = (in + stride - 1) / stride;
        int64_t total = (w->out - 1) * stride + span - in;
        if (w->out > 0 && total > 0) {
            w->before = total / 2;
            w->after = total - total / 2;
        }
        return LS_OK;
    }
    if (span > in)
        return ls__hint(ls_call_fail(c, LS_SHAPE, "a window of %lld does not fit in a %s of %lld",
                                     (long long)span, axis, (long long)in),
                        "LS_SAME pads the edges");
    w->out = (in - span) / stride + 1;
    return LS_OK;
}

#endif
