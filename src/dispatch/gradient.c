/*
 * Backpropagation over the notes of a tape.
 *
 * Forward over the range: which calls lie on a path from some x. Backward over
 * those: each call with a gradient at an output hands gradients to its inputs.
 * Values are known by their id. Gradients of one value add up in the order in
 * which the backward pass meets its uses: a fixed order.
 *
 * Every call's backward runs in a frame of its own, so what it makes is freed as
 * the pass goes on; gradients that travel on are kept handles in slots.
 */
#include <lockstep/ops.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/call.h"
#include "dispatch/sink.h"
#include "dispatch/tape.h"

/* ---- values on a path from an x, each with the gradient it has so far -------- */

typedef struct slot {
    uint64_t id; /* 0: free */
    ls_tensor *gradient;
} slot;

typedef struct slots {
    slot *at;
    size_t mask;
    size_t used;
} slots;

static slot *slot_of(const slots *s, uint64_t id)
{
    size_t i = (id * 0x9E3779B97F4A7C15u) >> 20 & s->mask;
    while (s->at[i].id != 0 && s->at[i].id != id)
        i = (i + 1) & s->mask;
    return &s->at[i];
}

static bool known(const slots *s, uint64_t id)
{
    return slot_of(s, id)->id == id;
}

static ls_status slots_grow(slots *s)
{
    size_t room = s->at ? 2 * (s->mask + 1) : 256;
    slots bigger = { calloc(room, sizeof(slot)), room - 1, s->used };
    if (!bigger.at)
        return ls__fail_memory("gradients", room * sizeof(slot));
    for (size_t i = 0; s->at && i <= s->mask; i++)
        if (s->at[i].id)
            *slot_of(&bigger, s->at[i].id) = s->at[i];
    free(s->at);
    *s = bigger;
    return LS_OK;
}

static ls_status slots_add(slots *s, uint64_t id)
{
    if (!s->at || 2 * s->used > s->mask) {
        ls_status st = slots_grow(s);
        if (st)
            return st;
    }
    slot *p = slot_of(s, id);
    if (p->id == 0) {
        p->id = id;
        s->used++;
    }
    return LS_OK;
}

static void slots_free(slots *s)
{
    for (size_t i = 0; s->at && i <= s->mask; i++)
        ls_drop(s->at[i].gradient);
    free(s->at);
}

/* ---- one turn of a row's gradient ---------------------------------------------- */

struct ls_grad {
    ls__note note;
    const slots *values;
    ls_tensor **arrived; /* per output; NULL where nothing came */
    ls_tensor **given;   /* per input */
};

int ls_grad_inputs(const ls_grad *g)
{
    return g->note.n_inputs;
}

/* A gradient that asks for what its row has not is told so. */
static bool in_range(const ls_grad *g, const char *what, int i, int n)
{
    if (i >= 0 && i < n)
        return true;
    ls__fail(LS_INVALID, "%s: its gradient asks for %s %d of %d", g->note.op->name, what, i, n);
    return false;
}

ls_tensor *ls_grad_input(ls_grad *g, int i)
{
    return in_range(g, "input", i, g->note.n_inputs) ? g->note.inputs[i] : NULL;
}

ls_tensor *ls_grad_result(ls_grad *g, int i)
{
    return in_range(g, "result", i, g->note.n_outputs) ? g->note.outputs[i] : NULL;
}

ls_tensor *ls_grad_output(ls_grad *g, int i)
{
    if (!in_range(g, "output", i, g->note.n_outputs))
        return NULL;
    if (!g->arrived[i]) {
        const ls__spec *spec = &g->note.outputs[i]->spec;
        g->arrived[i] = ls_zeros(spec->dtype, spec->rank, spec->dims);
    }
    return g->arrived[i];
}

const void *ls_grad_attrs(const ls_grad *g)
{
    return g->note.attrs;
}

bool ls_grad_wanted(const ls_grad *g, int i)
{
    if (!in_range(g, "input", i, g->note.n_inputs))
        return false;
    const ls_tensor *t = g->note.inputs[i];
    return ls_dtype_is_float(t->spec.dtype) && known(g->values, t->id);
}

bool ls_grad_arrived(const ls_grad *g, int i)
{
    return in_range(g, "output", i, g->note.n_outputs) && g->arrived[i];
}

ls_status ls_grad_give(ls_grad *g, int i, ls_tensor *gradient)
{
    const ls_op *op = g->note.op;
    ls_status st = ls__check_tensor(op->name, "a gradient", gradient);
    if (st)
        return st;
    if (i < 0 || i >= g->note.n_inputs)
        return ls__fail(LS_INVALID, "%s: gives a gradient to input %d of %d", op->name, i,
                        g->note.n_inputs);
    const ls__spec *want = &g->note.inputs[i]->spec;
    if (!ls__spec_equal(&gradient->spec, want))
        return ls__fail(LS_SHAPE, "%s: its gradient of input %d is %s, wants %s", op->name, i,
                        ls_describe(gradient), ls__spec_text(want));
    g->given[i] = gradient;
    return LS_OK;
}

/* ---- the pass -------------------------------------------------------------------- */

/* `a` came first on the way back, so `b` is of an earlier call. Two sparse ones
 * stay sparse, their rows in the order of the program. */
static ls_tensor *sum_of(ls_tensor *a, ls_tensor *b)
{
    if (!ls_is_sparse(a) || !ls_is_sparse(b))
        return ls_add(a, b);
    ls_tensor *rows[] = { ls_sparse_rows(b), ls_sparse_rows(a) };
    if (ls_dtype_of(rows[0]) != ls_dtype_of(rows[1]))
        for (int i = 0; i < 2; i++)
            rows[i] = ls_cast(rows[i], LS_I64);
    ls_tensor *values[] = { ls_sparse_values(b), ls_sparse_values(a) };
    return ls_sparse(ls_concat(2, rows, 0), ls_concat(2, values, 0), a->spec.dims[0]);
}

/* On the device where it is needed. */
static ls_tensor *on(ls__device *device, ls_tensor *t)
{
    return !t || t->device == device ? t : ls_copy_to(t, device->name);
}

static ls_status add_to(slot *p, ls_tensor *gradient)
{
    ls_tensor *total = gradient;
    if (p->gradient)
        total = sum_of(p->gradient, on(p->gradient->device, gradient));
    ls_tensor *kept = ls_keep(total);
    if (!kept)
        return ls_error_pending();
    ls_drop(p->gradient);
    p->gradient = kept;
    return LS_OK;
}

static bool on_path(const ls__note *note, const slots *values)
{
    for (int i = 0; i < note->n_inputs; i++)
        if (known(values, note->inputs[i]->id))
            return true;
    return false;
}

static ls_status mark_paths(const ls_tape *tape, slots *values, size_t begin, size_t end)
{
    for (size_t n = begin; n < end; n++) {
        ls__note note = ls__tape_get(tape, n);
        if (!on_path(&note, values))
            continue;
        for (int i = 0; i < note.n_outputs; i++) {
            ls_status st = slots_add(values, note.outputs[i]->id);
            if (st)
                return st;
        }
    }
    return LS_OK;
}

static ls_tensor *filled_like(const ls_tensor *t, double value)
{
    ls__device *before = ls__device_use(t->device);
    ls_tensor *filled = ls_full(t->spec.dtype, t->spec.rank, t->spec.dims, value);
    ls__device_use(before);
    return filled;
}

static ls_status seed(slots *values, int n_ys, ls_tensor *const *ys, ls_tensor *const *seeds)
{
    for (int i = 0; i < n_ys; i++) {
        ls_tensor *y = ys[i], *s = seeds ? seeds[i] : NULL;
        if (!known(values, y->id))
            continue; /* depends on no x */
        if (!s)
            s = filled_like(y, 1);
        if (ls_is_sparse(y)) /* its identity is that of its values */
            s = ls_gather(s, ls_sparse_rows(y), 0);
        ls_status st = s ? add_to(slot_of(values, y->id), s) : ls_error_pending();
        if (st)
            return st;
    }
    return LS_OK;
}

static ls_status run_gradient(const ls__note *note, slots *values)
{
    ls_grad g = { .note = *note, .values = values };
    g.arrived = ls__frame_alloc(sizeof *g.arrived * (size_t)note->n_outputs);
    g.given = ls__frame_alloc(sizeof *g.given * (size_t)(note->n_inputs + 1));
    if (!g.arrived || !g.given)
        return LS_NO_MEMORY;
    memset(g.given, 0, sizeof *g.given * (size_t)note->n_inputs);
    for (int i = 0; i < note->n_outputs; i++)
        g.arrived[i] =
            on(note->outputs[i]->device, slot_of(values, note->outputs[i]->id)->gradient);

    ls__error_scope scope;
    ls__error_scope_open(&scope);
    /* The constants it makes belong where its values are. */
    ls__device *device = ls__device_use(note->outputs[0]->device);
    ls_status st = note->op->gradient(&g);
    ls__device_use(device);
    st = ls__error_scope_close(&scope, st, "gradient of '%s'", note->op->name);
    for (int i = 0; i < note->n_inputs && !st; i++)
        if (g.given[i] && ls_grad_wanted(&g, i))
            st = add_to(slot_of(values, note->inputs[i]->id), g.given[i]);
    return st;
}

static bool is_asked(uint64_t id, int n_xs, ls_tensor *const *xs)
{
    for (int i = 0; i < n_xs; i++)
        if (xs[i]->id == id)
            return true;
    return false;
}

static ls_status backward(const ls_tape *tape, slots *values, size_t begin, size_t end, int n_xs,
                          ls_tensor *const *xs)
{
    for (size_t n = end; n-- > begin;) {
        ls__note note = ls__tape_get(tape, n);
        bool arrived = false;
        for (int i = 0; i < note.n_outputs; i++)
            arrived = arrived || slot_of(values, note.outputs[i]->id)->gradient;
        if (!arrived || !on_path(&note, values))
            continue;
        ls_status st = LS_NO_MEMORY;
        LS_FRAME
            st = run_gradient(&note, values);
        if (st)
            return st;
        for (int i = 0; i < note.n_outputs; i++) { /* all its uses are behind us */
            slot *p = slot_of(values, note.outputs[i]->id);
            if (p->gradient && !is_asked(p->id, n_xs, xs)) {
                ls_drop(p->gradient);
                p->gradient = NULL;
            }
        }
    }
    return LS_OK;
}

static ls_status collect(const slots *values, int n_xs, ls_tensor *const *xs, ls_tensor **out,
                         int *connected)
{
    *connected = 0;
    for (int i = 0; i < n_xs; i++) {
        ls_tensor *gradient = slot_of(values, xs[i]->id)->gradient;
        *connected += gradient != NULL;
        out[i] = gradient ? ls_import(on(xs[i]->device, gradient)) : filled_like(xs[i], 0);
        if (!out[i])
            return ls_error_pending();
    }
    return LS_OK;
}

static ls_status check_float(const char *what, int n, ls_tensor *const *ts)
{
    for (int i = 0; i < n; i++) {
        ls_status st = ls__check_tensor("ls_gradient", what, ts[i]);
        if (st)
            return st;
        if (!ls_dtype_is_float(ts[i]->spec.dtype))
            return ls__hint(ls__fail(LS_SHAPE, "ls_gradient: %s is %s", what, ls_describe(ts[i])),
                            "gradients are of and with respect to f32, f64 and bf16 values");
    }
    return LS_OK;
}

static ls_status check_seeds(int n, ls_tensor *const *ys, ls_tensor *const *seeds)
{
    for (int i = 0; i < n && seeds; i++) {
        ls_status st = ls__check_tensor("ls_gradient", "a seed", seeds[i]);
        if (st)
            return st;
        if (!ls__spec_equal(&ys[i]->spec, &seeds[i]->spec))
            return ls__fail(LS_SHAPE, "ls_gradient: the seed of a y of %s is %s",
                            ls_describe(ys[i]), ls_describe(seeds[i]));
    }
    return LS_OK;
}

ls_status ls__gradients(ls_tape *tape, int n_ys, ls_tensor *const *ys, ls_tensor *const *seeds,
                        int n_xs, ls_tensor *const *xs, ls_tensor **out, int *connected)
{
    size_t begin, end;
    int unasked;
    ls_status st = ls__tape_range(tape, "ls_gradient", &begin, &end);
    if (!st)
        st = check_float("y", n_ys, ys);
    if (!st)
        st = check_float("x", n_xs, xs);
    for (int i = 0; i < n_xs && !st; i++)
        if (ls_is_sparse(xs[i]))
            st = ls__hint(ls__fail(LS_INVALID, "ls_gradient: x is sparse (%s)", ls_describe(xs[i])),
                          "differentiate with respect to ls_sparse_values of it, or to a dense x");
    if (!st)
        st = check_seeds(n_ys, ys, seeds);
    if (st)
        return st;
    slots values = { 0 };
    ls_phase before = ls__sink_phase(LS_PHASE_BACKWARD);
    st = slots_grow(&values);
    for (int i = 0; i < n_xs && !st; i++)
        st = slots_add(&values, xs[i]->id);
    if (!st)
        st = mark_paths(tape, &values, begin, end);
    if (!st)
        st = seed(&values, n_ys, ys, seeds);
    if (!st)
        st = backward(tape, &values, begin, end, n_xs, xs);
    if (!st)
        st = collect(&values, n_xs, xs, out, connected ? connected : &unasked);
    ls__sink_phase(before);
    slots_free(&values);
    return st;
}

/* ---- the public side ---------------------------------------------------------------- */

ls_tensor *ls_gradient(ls_tape *tape, ls_tensor *y, ls_tensor *x)
{
    ls_tensor *out;
    return ls__gradients(tape, 1, &y, NULL, 1, &x, &out, NULL) ? NULL : out;
}

static ls_tensor **leaves(const ls_value *v)
{
    ls_tensor **all = ls__frame_alloc(sizeof *all * (size_t)(ls_leaf_count(v) + 1));
    return !all || ls_flatten(v, all) ? NULL : all;
}

ls_value *ls_gradients_from(ls_tape *tape, ls_value *ys, ls_value *seeds, ls_value *xs)
{
    if (ls_same_structure(ys, seeds))
        return NULL;
    ls_tensor **y = leaves(ys), **s = leaves(seeds), **x = leaves(xs);
    ls_tensor **out = leaves(xs);
    if (!y || !s || !x || !out)
        return NULL;
    int n = ls_leaf_count(xs);
    return ls__gradients(tape, ls_leaf_count(ys), y, s, n, x, out, NULL) ? NULL
                                                                         : ls_pack(xs, n, out);
}

ls_value *ls_gradients(ls_tape *tape, ls_value *ys, ls_value *xs)
{
    ls_tensor **y = leaves(ys), **x = leaves(xs), **out = leaves(xs);
    if (!y || !x || !out)
        return NULL;
    int n = ls_leaf_count(xs);
    return ls__gradients(tape, ls_leaf_count(ys), y, NULL, n, x, out, NULL) ? NULL
                                                                            : ls_pack(xs, n, out);
}

ls_status ls__gradient_of_backward(ls_grad *g, int n, ls__forward_fn forward)
{
    enum { MOST = 8 };
    ls_tensor *xs[MOST + 1], *first[MOST], *ys[MOST], *seeds[MOST], *second[MOST + 1];
    ls_tape *tape = ls_tape_open();
    /* Fresh identities: one tensor may stand for two arguments. */
    for (int i = 0; i <= n; i++)
        xs[i] = ls_identity(ls_grad_input(g, i));
    ls_tensor *y = forward(xs, ls_grad_attrs(g));
    ls_status st = ls__gradients(tape, 1, &y, &xs[n], n, xs, first, NULL);
    int n_ys = 0;
    for (int i = 0; i < n && !st; i++)
        if (ls_grad_arrived(g, i)) {
            ys[n_ys] = first[i];
            seeds[n_ys++] = ls_grad_output(g, i);
        }
    if (!st)
        st = ls__gradients(tape, n_ys, ys, seeds, n + 1, xs, second, NULL);
    for (int i = 0; i <= n && !st; i++)
        if (ls_grad_wanted(g, i))
            st = ls_grad_give(g, i, second[i]);
    if (tape)
        ls_tape_close(tape);
    return st;
}
