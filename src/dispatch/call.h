/*
 * A call of an operator as its row sees it. The public accessors of
 * <lockstep/operator.h> read this struct; built-in rows read it directly.
 *
 * Whoever makes the call (the eager executor now, a replayed plan later) fills
 * it in: specs first, for the shape rule; data and scratch before the kernel.
 */
#ifndef LS__DISPATCH_CALL_H
#define LS__DISPATCH_CALL_H

#include <lockstep/operator.h>

#include "base/philox.h"
#include "base/status.h"
#include "tensor/cell.h"
#include "tensor/spec.h"
#include "tensor/tensor.h"

struct ls_call {
    const ls_op *op;
    const void *attrs;
    int n_inputs;
    int n_outputs;
    int n_cells;
    const ls__spec *const *in; /* n_inputs specs */
    ls__spec *out;             /* n_outputs specs; the shape rule fills them */
    const void *const *in_data;
    void *const *out_data;
    ls__cell *const *cells; /* of rows that read or write variables */
    void *scratch;
    ls__draw draw; /* for LS_OP_DRAWS: what the numbers depend on beside `attrs` */
};

/* Flags of rows that only this library makes, beside ls_op_flags. */
enum {
    LS__OP_FUSED = 1 << 16, /* put into a graph by a pass, never called by a program */
    LS__OP_PACKS = 1 << 17, /* its one input in another layout: kept while a weight stays the same */
    LS__OP_SYNC = 1 << 18,  /* all replicas meet here: whoever drives them runs it */
    LS__OP_REDUCES =
        1 << 19, /* adds up over replicas: its attributes begin with ls__reduce_attrs */
    LS__OP_CHECKS = 1 << 20 /* is there to fail: stays though nobody may use its result */
};

/* ---- for shape rules: each records an error that names the operator, what it
 * was given and what it wants, and returns it ------------------------------- */

/* Dtypes as a set. */
#define LS__BIT(dtype) (1u << (dtype))
#define LS__FLOATS (LS__BIT(LS_F32) | LS__BIT(LS_F64) | LS__BIT(LS_BF16))
#define LS__INDEXES (LS__BIT(LS_I32) | LS__BIT(LS_I64))
#define LS__NUMBERS (LS__FLOATS | LS__INDEXES | LS__BIT(LS_U8))
#define LS__ANY (LS__NUMBERS | LS__BIT(LS_BOOL))

ls_status ls__want_dtype(const ls_call *c, int input, unsigned set);
ls_status ls__want_same_dtype(const ls_call *c, int a, int b);
ls_status ls__want_rank(const ls_call *c, int input, int rank);
ls_status ls__want_rank_at_least(const ls_call *c, int input, int rank);
ls_status ls__want_spec(const ls_call *c, int input, const ls__spec *spec);
/* Normalises `axis` (an attribute) for an input of this rank into *out. */
ls_status ls__want_axis(const ls_call *c, int64_t axis, int rank, int *out);

/* out = the broadcast shape of a and b; LS_SHAPE when they do not fit. */
ls_status ls__want_broadcast(const ls_call *c, const ls__spec *a, const ls__spec *b,
                             ls__spec *out);

/* Output `index` is `spec`; like input `input`; or like it with another dtype. */
ls_status ls__output_spec(ls_call *c, int index, const ls__spec *spec);
ls_status ls__output_like(ls_call *c, int index, int input);
ls_status ls__output_as(ls_call *c, int index, ls_dtype dtype, int input);

/* Runs the shape rule of a call whose inputs are filled in: n_outputs and out, whose
 * memory is the frame's. LS_INVALID when the rule leaves an output open. */
ls_status ls__call_infer(ls_call *c);

/* ---- attributes ------------------------------------------------------------ */

/* Copies a C array into an ls_ints; `who` names the operator in the error when
 * there are more than LS_MAX_RANK or the pointer is NULL. */
ls_status ls__ints(ls_ints *out, const char *who, const char *what, int64_t count,
                   const int64_t *values);

/* ---- calling ----------------------------------------------------------------
 *
 * ls__call runs one operator on this thread's executor and writes its outputs,
 * handles of the innermost frame, to `out` (room for all of them). */
ls_status ls__call(const ls_op *op, const void *attrs, int n_inputs, ls_tensor *const *inputs,
                   int n_cells, ls__cell *const *cells, ls_tensor **out);

/* The same for a row with any number of outputs. */
#define LS__FEW_RESULTS 8
typedef struct ls__results {
    int count;
    ls_tensor **at; /* `few`, or an array of the frame's */
    ls_tensor *few[LS__FEW_RESULTS];
} ls__results;
ls_status ls__call_all(const ls_op *op, const void *attrs, int n_inputs,
                       ls_tensor *const *inputs, int n_cells, ls__cell *const *cells,
                       ls__results *out);

/* The usual shapes of a call: n inputs, one output. NULL on failure. */
ls_tensor *ls__call1(const ls_op *op, const void *attrs, ls_tensor *x);
ls_tensor *ls__call2(const ls_op *op, const void *attrs, ls_tensor *a, ls_tensor *b);
ls_tensor *ls__call3(const ls_op *op, const void *attrs, ls_tensor *a, ls_tensor *b,
                     ls_tensor *c);

/* The gradient of a fused backward row, by saying what it computes in plain
 * operators: `forward` is the operator it is the backward of, as a function of
 * `n` tensors. The row's inputs must begin with those n, followed by the
 * gradient that arrived at forward's result; what follows are values saved by
 * the forward kernel, which are functions of the first n. The row's outputs are
 * the gradients of the n tensors, in order. See layer_norm.c for a use. */
typedef ls_tensor *(*ls__forward_fn)(ls_tensor *const *inputs, const void *attrs);
ls_status ls__gradient_of_backward(ls_grad *g, int n, ls__forward_fn forward);

/* ---- gradients' little helpers ------------------------------------------------ */

/* `t` summed down to the shape of `like`, undoing a broadcast. */
ls_tensor *ls__sum_to(ls_tensor *t, ls_tensor *like);

#endif
