/*
 * What the rows of matrix products share: matmul, its fusion with a bias and an
 * activation, and products with packed weights. The passes fuse-matmul and pack
 * read and make their attributes.
 */
#ifndef LS__OPS_MATMUL_H
#define LS__OPS_MATMUL_H

#include "dispatch/call.h"
#include "kernels/matmul.h"

/* ---- matmul(a, b) ------------------------------------------------------------- */

typedef struct ls__matmul_attrs {
    int64_t transpose_a, transpose_b;
} ls__matmul_attrs;

/* Rule and kernel of op(a) op(b), inputs 0 and 1 of a call with any attributes;
 * the batch broadcasts. */
ls_status ls__matmul_rule(ls_call *c, const ls__matmul_attrs *t);
ls_status ls__matmul_run(ls_call *c, const ls__matmul_attrs *t);

/* ---- matmul_bias_act(a, b, bias) -------------------------------------------------- */

/* What follows the bias. Numbers are stored with a graph: they keep their meaning. */
typedef enum ls__activation {
    LS__ACT_NONE,
    LS__ACT_RELU,
    LS__ACT_TANH,
    LS__ACT_SIGMOID,
    LS__ACT_GELU,
    LS__ACT_GELU_TANH,
    LS__ACT_END
} ls__activation;

typedef struct ls__matmul_bias_attrs {
    ls__matmul_attrs matmul;
    int64_t act;
} ls__matmul_bias_attrs;

/* The call's attribute `act` is one of the list; input `index` is a bias of its output. */
ls_status ls__want_act(const ls_call *c, int64_t act);
ls_status ls__want_bias(const ls_call *c, int index);

/* y = act(y + bias), rows x n, in place; bias may be NULL. The same bits as the
 * rows add and act give. */
void ls__bias_act(ls_dtype dtype, void *y, int64_t rows, int64_t n, const void *bias, int64_t act);

/* ---- matmul_pack(b) and matmul_packed(a, packed, [bias]) ---------------------------
 *
 * All that a packed layout depends on, but for the processor. The threads are
 * those of the thread that traced: plans of other thread counts may want
 * other layouts, so both rows use this one wherever they run. */
typedef struct ls__matmul_pack_attrs {
    int64_t m, n, k;
    int64_t transpose_b; /* the weight is n x k */
    int64_t threads;
} ls__matmul_pack_attrs;

typedef struct ls__matmul_packed_attrs {
    ls__matmul_pack_attrs pack;
    int64_t act;
} ls__matmul_packed_attrs;

/* The plan both run by; found in this thread's cache but the first time. Close it. */
ls_status ls__matmul_pack_open(const ls__matmul_pack_attrs *p, ls__matmul_plan *plan);

#endif
