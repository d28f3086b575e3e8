/*
 * Compiling is a list of small passes over one graph. Each is a file that knows
 * nothing of the others: it gets a graph that obeys the invariants of graph.h and
 * leaves one that does, computing the same results.
 *
 * The list (passes.c) is the order they run in. Each has a switch, so that a test
 * can run any subset and a user can find the pass that is wrong:
 *
 *     ls_trace_with(LS_TRACE(.off = "fuse-conv,layout"), step, &model)
 */
#ifndef LS__TRACE_PASS_H
#define LS__TRACE_PASS_H

#include "trace/graph.h"

typedef struct ls__pass {
    const char *name;
    bool keeps_bits; /* results have the same bits; else the same up to the order of sums */
    ls_status (*run)(ls__graph *g); /* NULL: no pass over the graph but a switch of the plan's */
    const char *what;               /* one line for people */
} ls__pass;

/* In the order they run; ends with a NULL name. */
extern const ls__pass ls__passes[];

/* The passes as bits, by index. */
typedef uint64_t ls__pass_set;

/* Reads "dead,fuse-conv" (or "all"; NULL or "": none). LS_INVALID names a pass that is not
 * there and lists those that are. */
ls_status ls__pass_set_parse(const char *who, const char *names, ls__pass_set *out);
bool ls__pass_is_off(ls__pass_set off, const char *name);
ls__pass_set ls__pass_bit(const char *name);

/* Runs all passes but those in `off`. An error names the pass. */
ls_status ls__passes_run(ls__graph *g, ls__pass_set off);

/* One function a pass; each in pass_NAME.c. */
ls_status ls__pass_dead(ls__graph *g);           /* nodes nobody needs */
ls_status ls__pass_common(ls__graph *g);         /* common subexpressions */
ls_status ls__pass_writes_last(ls__graph *g);    /* writes after all that can fail or still reads */
ls_status ls__pass_fuse_pool(ls__graph *g);      /* relu's backward moves before the pool's */
ls_status ls__pass_fuse_loss(ls__graph *g);      /* softmax loss and its gradient in one */
ls_status ls__pass_fuse_attention(ls__graph *g); /* softmax(q k^T) v, forward and backward */
ls_status ls__pass_fuse_heads(ls__graph *g);     /* attention of heads that lie side by side */
ls_status ls__pass_fuse_conv(ls__graph *g);      /* conv + bias + relu */
ls_status ls__pass_fuse_conv_pool(ls__graph *g); /* that, and the pool behind it, both ways */
ls_status ls__pass_winograd(ls__graph *g);       /* 3 x 3 convolutions, their gradients and pools */
ls_status ls__pass_fuse_matmul(ls__graph *g);    /* matmul + bias + activation */
ls_status ls__pass_layout(ls__graph *g);         /* blocked layouts inside, packed weights */
ls_status ls__pass_pack(ls__graph *g);           /* packed weights of matrix products */
ls_status ls__pass_fuse_chain(ls__graph *g);     /* element-wise chains */
ls_status ls__pass_fuse_update(ls__graph *g);    /* the updates of one optimizer in one */

#endif
