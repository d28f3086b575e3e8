/* The rows of attention.c and fused_attention.c, for the passes that make them. */
#ifndef LS__OPS_ATTENTION_H
#define LS__OPS_ATTENTION_H

#include <lockstep/operator.h>
#include <math.h>

/* Of both rows. attention: (q, k, v) -> y, lse; attention_grad: (q, k, v, dy, y, lse)
 * -> dq, dk, dv. */
typedef struct ls__attention_attrs {
    int64_t causal;
    double scale; /* 0: 1 / sqrt(width) */
} ls__attention_attrs;

/* Of the rows over heads side by side. attention_qkv: x [n, t, 3 heads width] -> y
 * [n, t, heads width], lse [n, heads, t]; attention_qkv_grad: (x, dy, y, lse) -> dx. */
typedef struct ls__attention_qkv_attrs {
    int64_t heads;
    int64_t causal;
    double scale;
} ls__attention_qkv_attrs;

/* What a scale of 0 stands for. */
static inline double ls__attention_scale(double scale, int64_t width)
{
    if (scale != 0)
        return scale;
    return width ? 1 / sqrt((double)width) : 1;
}

#endif
