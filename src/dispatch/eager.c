/*
 * The eager executor: a call runs its kernel now, on the calling thread.
 *
 * In order: arguments are checked, the shape rule says what comes out, memory is
 * found, the kernel fills it, the tape notes the call. Outputs are handles of the
 * innermost frame, so what a failed call made goes with it.
 */
#include <stdio.h>
#include <string.h>

#include "base/fpu.h"
#include "dispatch/call.h"
#include "dispatch/context.h"
#include "dispatch/registry.h"
#include "dispatch/sink.h"
#include "dispatch/tape.h"
#include "dispatch/widen.h"

static _Thread_local ls__sink *the_sink;

ls__sink *ls__sink_get(void)
{
    return the_sink;
}

ls__sink *ls__sink_set(ls__sink *sink)
{
    ls__sink *before = the_sink;
    the_sink = sink;
    return before;
}

ls_phase ls__sink_phase(ls_phase phase)
{
    if (!the_sink)
        return phase;
    ls_phase before = the_sink->phase;
    if (before != LS_PHASE_REDUCE)
        the_sink->phase = phase;
    return before;
}

/* Calls with more inputs and outputs than this take their arrays from the frame. */
#define FEW 8

/* All the arrays of one call. */
typedef struct arrays {
    ls_tensor **inputs;
    const ls__spec **in;
    const void **in_data;
    ls__spec *out;
    void **out_data;
    ls_tensor *inputs_few[FEW];
    const ls__spec *in_few[FEW];
    const void *in_data_few[FEW];
    ls__spec out_few[FEW];
    void *out_data_few[FEW];
} arrays;

static ls_status input_arrays(arrays *a, int n)
{
    a->inputs = a->inputs_few;
    a->in = a->in_few;
    a->in_data = a->in_data_few;
    if (n <= FEW)
        return LS_OK;
    a->inputs = ls__frame_alloc(sizeof *a->inputs * (size_t)n);
    a->in = ls__frame_alloc(sizeof *a->in * (size_t)n);
    a->in_data = ls__frame_alloc(sizeof *a->in_data * (size_t)n);
    return a->inputs && a->in && a->in_data ? LS_OK : LS_NO_MEMORY;
}

static ls_status output_arrays(arrays *a, int n)
{
    a->out = a->out_few;
    a->out_data = a->out_data_few;
    if (n <= FEW)
        return LS_OK;
    a->out = ls__frame_alloc(sizeof *a->out * (size_t)n);
    a->out_data = ls__frame_alloc(sizeof *a->out_data * (size_t)n);
    return a->out && a->out_data ? LS_OK : LS_NO_MEMORY;
}

/* A row's callback decides: an error it recorded fails the call even if it
 * returned LS_OK, and a failure it did not explain gets a text. */
static ls_status settle(const ls_op *op, const char *part, ls_status before, ls_status st)
{
    if (before)
        return st; /* an older error is pending: nothing newer is recorded */
    if (st == LS_OK)
        return ls_error_pending();
    if (!ls_error_pending())
        ls__fail(st, "%s: its %s failed: %s", op->name, part, ls_status_text(st));
    return st;
}

/* A symbol is at home in the step that is being traced, and nowhere else. */
ls_status ls__check_symbol(const char *what, int i, const ls_tensor *t)
{
    const ls__sink *sink = ls__sink_get();
    uint64_t rows = t->sparse_rows ? t->sparse_rows->storage->symbol : 0;
    uint64_t symbol = t->storage->symbol ? t->storage->symbol : rows;
    if (!symbol || (sink && sink->serial == symbol))
        return LS_OK;
    return ls__hint(ls__fail(LS_STATE, "%s %d is %s of a traced step%s", what, i, ls_describe(t),
                             sink ? " other than this one" : ", used outside it"),
                    "what a traced function computes leaves it as its result only");
}

static ls_status check_input(const ls_op *op, int i, const ls_tensor *t, const ls_tensor *first)
{
    if (!t || t->live != LS__LIVE) {
        char argument[32];
        snprintf(argument, sizeof argument, "input %d", i);
        return ls__check_tensor(op->name, argument, t);
    }
    if (t->device->table != first->device->table) /* devices of one kind share memory */
        return ls__hint(ls__fail(LS_INVALID, "%s: input 0 is on %s, input %d on %s", op->name,
                                 first->device->name, i, t->device->name),
                        "bring them together with ls_copy_to");
    if (t->storage->symbol) {
        char input[96];
        snprintf(input, sizeof input, "%s: input", op->name);
        ls_status st = ls__check_symbol(input, i, t);
        if (st)
            return st;
    }
    if (t->spec.dtype == LS_BYTES && !(op->flags & LS_OP_TAKES_STRINGS))
        return ls__fail(LS_SHAPE, "%s: input %d is %s, and no maths takes strings", op->name, i,
                        ls_describe(t));
    return LS_OK;
}

static ls_status take_inputs(ls_call *c, arrays *a, ls_tensor *const *inputs)
{
    const ls_op *op = c->op;
    ls_status st = input_arrays(a, c->n_inputs);
    for (int i = 0; i < c->n_inputs && !st; i++) {
        ls_tensor *t = inputs ? inputs[i] : NULL;
        st = check_input(op, i, t, i ? a->inputs[0] : t);
        if (st)
            break;
        if (t->sparse_rows) { /* operators take the dense tensor it stands for */
            t = ls_densify(t);
            if (!t)
                return ls_error_pending();
        }
        a->inputs[i] = t;
        a->in[i] = &t->spec;
        a->in_data[i] = ls__data(t);
    }
    c->in = a->in;
    c->in_data = a->in_data;
    return st;
}

static ls_status count_outputs(ls_call *c)
{
    const ls_op *op = c->op;
    ls_status before = ls_error_pending();
    c->n_outputs = op->outputs == LS_ANY_NUMBER ? op->count_outputs(c) : op->outputs;
    return c->n_outputs < 0 ? settle(op, "count_outputs", before, LS_INVALID) : LS_OK;
}

static ls_status run_shape_rule(ls_call *c)
{
    const ls_op *op = c->op;
    ls_status before = ls_error_pending();
    for (int i = 0; i < c->n_outputs; i++)
        c->out[i].dtype = (ls_dtype)0;
    ls_status st = settle(op, "shape rule", before, op->shape(c));
    for (int i = 0; i < c->n_outputs && !st; i++)
        if (c->out[i].dtype == 0)
            st = ls__fail(LS_INVALID, "%s: its shape rule did not declare output %d", op->name, i);
    return st;
}

ls_status ls__call_infer(ls_call *c)
{
    ls_status st = count_outputs(c);
    if (st)
        return st;
    c->out = ls__frame_alloc(sizeof *c->out * (size_t)(c->n_outputs + 1));
    return c->out ? run_shape_rule(c) : LS_NO_MEMORY;
}

static ls_status infer(ls_call *c, arrays *a)
{
    ls_status st = count_outputs(c);
    if (!st)
        st = output_arrays(a, c->n_outputs);
    if (st)
        return st;
    c->out = a->out;
    c->out_data = a->out_data;
    return run_shape_rule(c);
}

static ls_status compute(ls_call *c, arrays *a, ls_tensor **out)
{
    const ls_op *op = c->op;
    for (int i = 0; i < c->n_outputs; i++) {
        ls_tensor *t = ls__tensor_new(op->name, &c->out[i]);
        if (!t)
            return LS_NO_MEMORY;
        out[i] = t;
        a->out_data[i] = ls__data(t);
        if (c->n_inputs > 0)
            t->device = a->inputs[0]->device;
    }
    if (op->flags & LS_OP_BF16_AS_F32 && ls__wants_widening(c))
        return ls__run_widened(c);
    return ls__run_kernel(c);
}

ls_status ls__run_kernel(ls_call *c)
{
    const ls_op *op = c->op;
    ls_status before = ls_error_pending();
    size_t bytes = op->scratch ? op->scratch(c) : 0;
    ls__storage *scratch = NULL;
    if (bytes > 0) {
        scratch = ls__storage_new(op->name, bytes);
        if (!scratch)
            return LS_NO_MEMORY;
        c->scratch = scratch->data;
    }
    uint64_t fpu = ls__fpu_enter();
    ls_status st = op->kernel(c);
    ls__fpu_leave(fpu);
    st = settle(op, "kernel", before, st);
    ls__storage_unref(scratch);
    return st;
}

/* An alias has the bytes of its input. */
static ls_status check_alias(const ls_call *c)
{
    if (!(c->op->flags & LS_OP_ALIAS) || c->op->flags & LS_OP_READS ||
        (ls__spec_bytes(c->in[0]) == ls__spec_bytes(&c->out[0]) &&
         c->in[0]->dtype == c->out[0].dtype))
        return LS_OK;
    return ls__fail(LS_INVALID, "%s: %s cannot be the memory of %s", c->op->name,
                    ls__spec_text(c->in[0]), ls__spec_text(&c->out[0]));
}

/* Whether the call belongs into the step being traced. Initial values of variables
 * do not: they are drawn once. */
static bool is_recorded(const ls_call *c, const arrays *a)
{
    unsigned flags = c->op->flags;
    if (flags & (LS_OP_READS | LS_OP_WRITES | LS__OP_SYNC))
        return true;
    if (flags & LS_OP_DRAWS && !ls__drawing_initialisers())
        return true;
    for (int i = 0; i < c->n_inputs; i++)
        if (a->inputs[i]->storage->symbol)
            return true;
    return false;
}

/* Output 0 is memory that is there already: input 0's, or what a cell holds. */
static ls_status alias(const ls_call *c, const arrays *a, ls_tensor **out)
{
    if (c->op->flags & LS_OP_READS) {
        out[0] = ls__cell_read(c->cells[0]);
        return out[0] ? LS_OK : LS_NO_MEMORY;
    }
    const ls_tensor *x = a->inputs[0];
    out[0] = ls__handle(&c->out[0], ls__storage_ref(x->storage), ls__new_id(), x->device);
    return out[0] ? LS_OK : LS_NO_MEMORY;
}

/* A list of numbers says itself how long it is; -1 stands for "all". */
static ls_status check_lists(const ls_op *op, const void *attrs)
{
    for (const ls_attr *a = op->attrs; a->kind != LS_ATTR_KIND_END; a++) {
        if (a->kind != LS_ATTR_KIND_INTS)
            continue;
        int64_t count = ((const ls_ints *)((const char *)attrs + a->offset))->count;
        if (count < -1 || count > LS_MAX_RANK)
            return ls__hint(
                ls__fail(LS_INVALID, "%s: %lld numbers of %s", op->name, (long long)count, a->name),
                "at most %d", LS_MAX_RANK);
    }
    return LS_OK;
}

static ls_status check_row(const ls_op *op, int n_inputs, int n_cells, const void *attrs)
{
    if (!op)
        return ls__fail(LS_INVALID, "operator: the row is NULL");
    if (op->size != sizeof *op)
        return ls__hint(
            ls__fail(LS_INVALID, "operator: a row of %zu bytes, wants %zu", op->size, sizeof *op),
            "set .size = sizeof(ls_op), and build against this version's headers");
    ls_status st = ls__row_complete(op);
    if (st)
        return st;
    if (op->inputs == LS_ANY_NUMBER ? n_inputs < 1 : n_inputs != op->inputs)
        return ls__fail(LS_INVALID, "%s: %d inputs, wants %s%d", op->name, n_inputs,
                        op->inputs < 0 ? "at least " : "", op->inputs < 0 ? 1 : op->inputs);
    if (op->flags & (LS_OP_READS | LS_OP_WRITES) && n_cells < 1)
        return ls__fail(LS_INVALID, "%s: reads or writes a variable and was given none", op->name);
    if (op->attr_size > 0 && !attrs)
        return ls__fail(LS_INVALID, "%s: its attributes are NULL", op->name);
    return op->attrs ? check_lists(op, attrs) : LS_OK;
}

static ls_status record(ls__sink *sink, const ls_call *c, const arrays *a, ls_tensor **out)
{
    if (sink->crowded && c->op->flags & LS_OP_DRAWS)
        return ls__hint(ls__fail(LS_UNSUPPORTED,
                                 "%s: a random draw in a run that is part of a traced "
                                 "function",
                                 c->op->name),
                        "trace the replicas' function itself, and call ls_run with it");
    return sink->record(sink, c, a->inputs, out);
}

static ls_status run_now(ls_call *c, arrays *a, ls_tensor **out)
{
    if (c->op->flags & LS_OP_DRAWS)
        ls__next_draw(&c->draw);
    ls_status st = c->op->flags & LS_OP_ALIAS ? alias(c, a, out) : compute(c, a, out);
    if (!st && ls__numerics() != LS_NUMERICS_OFF)
        st = ls__check_outputs(c);
    return st;
}

ls_status ls__call_all(const ls_op *op, const void *attrs, int n_inputs, ls_tensor *const *inputs,
                       int n_cells, ls__cell *const *cells, ls__results *out)
{
    ls_status st = check_row(op, n_inputs, n_cells, attrs);
    if (st)
        return st;
    arrays a;
    ls_call c = {
        .op = op, .attrs = attrs, .n_inputs = n_inputs, .n_cells = n_cells, .cells = cells
    };
    st = take_inputs(&c, &a, inputs);
    if (!st)
        st = infer(&c, &a);
    if (!st)
        st = check_alias(&c);
    if (st)
        return st;
    out->at = out->few;
    if (c.n_outputs > LS__FEW_RESULTS)
        out->at = ls__frame_alloc(sizeof *out->at * (size_t)c.n_outputs);
    if (!out->at)
        return LS_NO_MEMORY;
    ls__sink *sink = ls__sink_get();
    if (sink && is_recorded(&c, &a))
        st = record(sink, &c, &a, out->at);
    else
        st = run_now(&c, &a, out->at);
    if (!st && op->gradient && ls__tape_noting())
        st = ls__tape_note(op, attrs, n_inputs, a.inputs, c.n_outputs, out->at);
    out->count = c.n_outputs;
    return st;
}

ls_status ls__call(const ls_op *op, const void *attrs, int n_inputs, ls_tensor *const *inputs,
                   int n_cells, ls__cell *const *cells, ls_tensor **out)
{
    ls__results results;
    ls_status st = ls__call_all(op, attrs, n_inputs, inputs, n_cells, cells, &results);
    if (!st && results.count > 0)
        memcpy(out, results.at, sizeof *out * (size_t)results.count);
    return st;
}

static ls_tensor *first_of(const ls_op *op, const void *attrs, int n, ls_tensor *const *inputs)
{
    ls__results results;
    return ls__call_all(op, attrs, n, inputs, 0, NULL, &results) ? NULL : results.at[0];
}

ls_tensor *ls__call1(const ls_op *op, const void *attrs, ls_tensor *x)
{
    return first_of(op, attrs, 1, &x);
}

ls_tensor *ls__call2(const ls_op *op, const void *attrs, ls_tensor *a, ls_tensor *b)
{
    return first_of(op, attrs, 2, (ls_tensor *[]){ a, b });
}

ls_tensor *ls__call3(const ls_op *op, const void *attrs, ls_tensor *a, ls_tensor *b, ls_tensor *c)
{
    return first_of(op, attrs, 3, (ls_tensor *[]){ a, b, c });
}

ls_tensor *ls_apply(const ls_op *op, int count, ls_tensor *const *inputs, const void *attrs)
{
    ls__results results;
    if (ls__call_all(op, attrs, count, inputs, 0, NULL, &results))
        return NULL;
    if (results.count != 1) {
        ls__hint(ls__fail(LS_INVALID, "%s: has %d outputs", op->name, results.count),
                 "call it with ls_apply_all");
        return NULL;
    }
    return results.at[0];
}

ls_value *ls_apply_all(const ls_op *op, int count, ls_tensor *const *inputs, const void *attrs)
{
    ls__results results;
    if (ls__call_all(op, attrs, count, inputs, 0, NULL, &results))
        return NULL;
    return ls_tensors(results.count, results.at);
}
