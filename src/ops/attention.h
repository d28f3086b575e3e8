/* The rows `attention` and `attention_grad`, for the pass that makes them; see
 * attention.c. */
#ifndef LS__OPS_ATTENTION_H
#define LS__OPS_ATTENTION_H

#include <lockstep/operator.h>

/* Of both rows. attention: (q, k, v) -> y, lse; attention_grad: (q, k, v, dy, y, lse)
 * -> dq, dk, dv. */
typedef struct ls__attention_attrs {
    int64_t causal;
    double scale; /* 0: 1 / sqrt(width) */
} ls__attention_attrs;

#endif
