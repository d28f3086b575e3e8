/*
 * operator.h: what an operator is, and how to add one.
 *
 * How to use it
 *
 * An operator is a row: a name, a shape rule, a kernel, and a gradient written
 * in operators. The built-in ones are rows of exactly this kind (src/ops).
 *
 * 1. Write the shape rule: it looks at the inputs and says what comes out.
 *
 *        static ls_status double_shape(ls_call *c)
 *        {
 *            if (ls_call_dtype(c, 0) != LS_F32)
 *                return ls_call_fail(c, LS_SHAPE, "wants f32");
 *            return ls_call_output(c, 0, LS_F32, ls_call_rank(c, 0), ls_call_shape(c, 0));
 *        }
 *
 * 2. Write the kernel. It fills the outputs, which are laid out row-major.
 *
 *        static ls_status double_kernel(ls_call *c)
 *        {
 *            const float *x = ls_call_in(c, 0);
 *            float *y = ls_call_out(c, 0);
 *            for (int64_t i = 0; i < ls_call_count(c, 0); i++)
 *                y[i] = 2 * x[i];
 *            return LS_OK;
 *        }
 *
 * 3. Write the gradient, if it has one, with ordinary operators on tensors, so
 *    that gradients of gradients come for free.
 *
 *        static ls_status double_gradient(ls_grad *g)
 *        {
 *            ls_tensor *dy = ls_grad_output(g, 0);
 *            return ls_grad_give(g, 0, ls_add(dy, dy));
 *        }
 *
 * 4. Fill in a row and call it. The row must outlive its use; it needs no
 *    registration to be called, and ls_op_register gives it a name others can
 *    find (and programs can be saved with).
 *
 *        static const ls_op twice = { .size = sizeof twice, .name = "twice",
 *            .inputs = 1, .outputs = 1,
 *            .shape = double_shape, .kernel = double_kernel, .gradient = double_gradient };
 *        ls_tensor *y = ls_apply(&twice, 1, &x, NULL);
 *
 * What a row promises: the kernel depends on its inputs and attributes alone,
 * keeps no state and allocates nothing that outlives it (ask for scratch), so
 * that a call can be recorded once and replayed, and gives the same bits on
 * any thread. A value it does not like is an error it returns, never an abort.
 */
#ifndef LOCKSTEP_OPERATOR_H
#define LOCKSTEP_OPERATOR_H

#include <lockstep/value.h>

LS_BEGIN_DECLS

/* One call of an operator, seen from its shape rule or kernel; and one turn of
 * a gradient. Both are valid during the callback only. */
typedef struct ls_call ls_call;
typedef struct ls_grad ls_grad;

/* ---- attributes --------------------------------------------------------
 *
 * What a call carries beside tensors lies in a struct of yours, all of whose
 * fields are int64_t, double or ls_ints; the row lists them, so that a call
 * can be printed, compared and stored.
 *
 *     typedef struct { int64_t axis; double slope; } my_attrs;
 *     static const ls_attr my_attr_list[] = { LS_ATTR_INT(my_attrs, axis),
 *         LS_ATTR_FLOAT(my_attrs, slope), LS_ATTR_END };
 */
typedef struct ls_ints {
    int64_t count;
    int64_t at[LS_MAX_RANK];
} ls_ints;

typedef enum ls_attr_kind {
    LS_ATTR_KIND_END,
    LS_ATTR_KIND_INT,
    LS_ATTR_KIND_FLOAT,
    LS_ATTR_KIND_INTS
} ls_attr_kind;

typedef struct ls_attr {
    const char *name;
    ls_attr_kind kind;
    size_t offset;
} ls_attr;

#define LS_ATTR_INT(type, field) { #field, LS_ATTR_KIND_INT, offsetof(type, field) }
#define LS_ATTR_FLOAT(type, field) { #field, LS_ATTR_KIND_FLOAT, offsetof(type, field) }
#define LS_ATTR_INTS(type, field) { #field, LS_ATTR_KIND_INTS, offsetof(type, field) }
#define LS_ATTR_END { NULL, LS_ATTR_KIND_END, 0 }

/* ---- the row ----------------------------------------------------------- */

/* What a call does beside computing its outputs. Rows with effects keep their
 * order and are never removed, merged or repeated. */
typedef enum ls_op_flags {
    LS_OP_DRAWS = 1,        /* takes random numbers */
    LS_OP_READS = 2,        /* reads a cell (a variable's memory) */
    LS_OP_WRITES = 4,       /* writes a cell */
    LS_OP_ALIAS = 8,        /* output 0 is input 0 (or the cell read) as it is: no kernel */
    LS_OP_ELEMENTWISE = 16, /* each output element depends on the inputs' elements at its place, and
                             * is written after they were read: the output may be given the
                             * memory of an input of its size */
    LS_OP_TAKES_STRINGS = 32, /* accepts LS_BYTES inputs */
    LS_OP_BF16_AS_F32 = 64,   /* its kernel sees bf16 inputs and outputs as f32, rounded after */
    LS_OP_TOTAL = 128         /* its kernel succeeds whatever the values are: a replayed step need
                               * not be able to undo writes that come before it */
} ls_op_flags;

#define LS_ANY_NUMBER (-1)

typedef struct ls_op {
    size_t size;      /* sizeof(ls_op) */
    const char *name; /* what errors, traces and golden files call it */
    int inputs;       /* how many tensors it takes, or LS_ANY_NUMBER (at least one) */
    int outputs;      /* how many it gives, or LS_ANY_NUMBER: then count_outputs says */
    unsigned flags;   /* ls_op_flags */
    size_t attr_size; /* sizeof the attribute struct, 0 without one */
    const ls_attr *attrs;
    int (*count_outputs)(ls_call *call);
    ls_status (*shape)(ls_call *call);
    /* Bytes of scratch memory the kernel wants; NULL for none. */
    size_t (*scratch)(ls_call *call);
    ls_status (*kernel)(ls_call *call);
    /* NULL: the operator is not differentiable and stops gradients. */
    ls_status (*gradient)(ls_grad *grad);
} ls_op;

/* Makes a row findable by name. LS_INVALID when the row is incomplete, LS_STATE
 * when another row has that name. */
LS_API ls_status ls_op_register(const ls_op *op);

/* NULL when there is none of that name; no error is recorded. */
LS_API const ls_op *ls_op_find(const char *name);

/* Walks all registered rows: start at 0, ends with NULL. */
LS_API const ls_op *ls_op_at(int index);

/* Calls a row that has one output, or any row (a list of its outputs). `attrs`
 * is copied; NULL when the row has none. */
LS_API ls_tensor *ls_apply(const ls_op *op, int count, ls_tensor *const *inputs,
                           const void *attrs);
LS_API ls_value *ls_apply_all(const ls_op *op, int count, ls_tensor *const *inputs,
                              const void *attrs);

/* ---- inside a shape rule, and a kernel ---------------------------------- */

LS_API int ls_call_inputs(const ls_call *call);
LS_API ls_dtype ls_call_dtype(const ls_call *call, int input);
LS_API int ls_call_rank(const ls_call *call, int input);
LS_API const int64_t *ls_call_shape(const ls_call *call, int input);
LS_API int64_t ls_call_count(const ls_call *call, int input);
LS_API const void *ls_call_attrs(const ls_call *call);

/* Declares output `index`; refuses sizes that are negative or overflow. */
LS_API ls_status ls_call_output(ls_call *call, int index, ls_dtype dtype, int rank,
                                const int64_t *dims);

/* Records an error that begins with the operator's name and ends with what it
 * was given; returns `status`. */
LS_API ls_status ls_call_fail(const ls_call *call, ls_status status, const char *format, ...)
    LS_PRINTF(3, 4);

/* ---- inside a kernel ----------------------------------------------------- */

LS_API const void *ls_call_in(const ls_call *call, int input);
LS_API void *ls_call_out(const ls_call *call, int output);
LS_API int64_t ls_call_out_count(const ls_call *call, int output);
LS_API const int64_t *ls_call_out_shape(const ls_call *call, int output);
LS_API void *ls_call_scratch(const ls_call *call); /* 64-byte aligned */

/* ---- inside a gradient --------------------------------------------------- */

/* What the call took and gave, and the gradient that arrives at output i
 * (zeros when nothing used it). */
LS_API int ls_grad_inputs(const ls_grad *grad);
LS_API ls_tensor *ls_grad_input(ls_grad *grad, int index);
LS_API ls_tensor *ls_grad_result(ls_grad *grad, int index);
LS_API ls_tensor *ls_grad_output(ls_grad *grad, int index);
LS_API const void *ls_grad_attrs(const ls_grad *grad);

/* Whether anybody asks for the gradient of input i, and whether one arrived at
 * output i: not needed for right answers, only to save work. */
LS_API bool ls_grad_wanted(const ls_grad *grad, int index);
LS_API bool ls_grad_arrived(const ls_grad *grad, int index);

/* Hands over the gradient of input i: its shape and dtype. Inputs that are
 * given nothing get no gradient; of two given to one input the last counts. Passes
 * NULL on as the pending error. */
LS_API ls_status ls_grad_give(ls_grad *grad, int index, ls_tensor *gradient);

LS_END_DECLS

#endif
