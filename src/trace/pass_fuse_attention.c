/*
 * Attention written by hand. Forward, with what is in brackets optional:
 *
 *     scores = matmul(q, k^T)          k transposed by the product, or before it
 *     [scores = scores * c, or / c]    c one constant number
 *     [scores = scores + mask, or where(mask, scores, very negative)]
 *     p = softmax(scores)
 *     y = matmul(p, v)
 *
 * becomes the row attention. Of a training step the tape has put the backward pass
 * into the graph as well, and then all of it goes or nothing:
 *
 *     dv = matmul(p^T, dy)             ds = softmax_grad(p, matmul(dy, v^T))
 *     [ds = where(mask, ds, 0)]        [ds = ds * c, or / c]
 *     dq = matmul(ds, k)               dk = matmul(ds^T, q)
 *
 * becomes attention_grad. (A q that was scaled before is a q like any other.)
 * Invariant: p, the scores and their gradients are used by nobody else, and the
 * mask is causal, element by element. Sums are made in another order.
 */
#include "trace/pass.h"

#include <math.h>

#include "ops/attention.h"
#include "ops/matmul.h"
#include "tensor/convert.h"

/* What a masked score is at most. Written as -1e9, which in bf16 is a bit more. */
#define VERY_NEGATIVE (-9e8)

typedef struct pattern {
    int q, k, v, dy;   /* wires */
    bool k_transposed; /* k is the transpose, [.., width, keys] */
    double scale;
    ls__node *scores, *scaled, *masked, *p, *y; /* scaled, masked: or NULL */
    ls__node *dv, *dp, *ds;                     /* NULL without a backward pass; dv, or so */
    ls__node *unmasked, *unscaled, *dq, *dk;    /* each may be NULL */
} pattern;

static const ls__spec *spec_of(const ls__graph *g, int wire)
{
    return &g->wires[wire].spec;
}

static int64_t dim(const ls__spec *s, int from_end)
{
    return s->dims[s->rank - from_end];
}

static bool is_matmul(const ls__node *node, bool ta, bool tb)
{
    if (!ls__node_is(node, "matmul"))
        return false;
    const ls__matmul_attrs *t = node->attrs;
    return (t->transpose_a != 0) == ta && (t->transpose_b != 0) == tb;
}

/* ---- scale and mask ---------------------------------------------------------------- */

/* Whether `node` is input `x` times (or by) one number, which leaves the shape. */
static bool is_scale(const ls__graph *g, const ls__node *node, int x, double *factor)
{
    bool div = ls__node_is(node, "div");
    if (!div && !ls__node_is(node, "mul"))
        return false;
    int other = node->inputs[0] == x ? node->inputs[1] : node->inputs[0];
    if (other == x || (div && node->inputs[0] != x) || !ls__wire_splat(g, other, factor) ||
        !ls__spec_equal(spec_of(g, node->outputs[0]), spec_of(g, x)))
        return false;
    if (div)
        *factor = 1 / *factor;
    return isfinite(*factor) && *factor != 0;
}

/* Whether a constant is `seen` on and below the diagonal and not above it, in every
 * matrix of it; what `seen` means is up to `holds`. */
static bool is_causal(const ls__graph *g, int wire, int64_t t, bool (*holds)(double, bool seen))
{
    const ls__spec *spec = spec_of(g, wire);
    const void *data = ls__wire_data(g, wire);
    if (!data || spec->rank < 2 || dim(spec, 1) != t || dim(spec, 2) != t)
        return false;
    int64_t count = ls__spec_count(spec);
    for (int64_t i = 0; i < count; i++)
        if (!holds(ls__load_double(spec->dtype, data, i), i % t <= i / t % t))
            return false;
    return count > 0;
}

static bool adds_nothing_or_much(double x, bool seen)
{
    return seen ? x == 0 : x <= VERY_NEGATIVE;
}

static bool is_true(double x, bool seen)
{
    return (x != 0) == seen;
}

static bool is_false(double x, bool seen)
{
    return (x != 0) != seen;
}

/* The wire of the scores that a node masks causally, or -1. */
static int masked_wire(const ls__graph *g, const ls__node *node)
{
    const ls__spec *spec = spec_of(g, node->outputs[0]);
    int64_t t = spec->rank < 2 ? -1 : dim(spec, 1);
    double low;
    int x = -1;
    if (ls__node_is(node, "add")) {
        for (int i = 0; i < 2 && x < 0; i++)
            if (is_causal(g, node->inputs[i], t, adds_nothing_or_much))
                x = node->inputs[1 - i];
    } else if (ls__node_is(node, "where")) {
        for (int i = 1; i < 3 && x < 0; i++) /* i: where the scores are */
            if (ls__wire_splat(g, node->inputs[3 - i], &low) && low <= VERY_NEGATIVE &&
                is_causal(g, node->inputs[0], t, i == 1 ? is_true : is_false))
                x = node->inputs[i];
    }
    return x >= 0 && ls__spec_equal(spec_of(g, x), spec) ? x : -1;
}

/* ---- forward ------------------------------------------------------------------------ */

/* Heads of equal number, as the row wants them. */
static bool shapes_fit(const ls__graph *g, const pattern *a)
{
    const ls__spec *q = spec_of(g, a->q), *k = spec_of(g, a->k), *v = spec_of(g, a->v);
    if (q->rank != k->rank || q->rank != v->rank || q->dtype != k->dtype || q->dtype != v->dtype)
        return false;
    for (int i = 0; i < q->rank - 2; i++)
        if (q->dims[i] != k->dims[i] || q->dims[i] != v->dims[i])
            return false;
    return !a->masked || dim(q, 2) == dim(v, 2);
}

/* The node that makes `wire` for `user` alone, or NULL. */
static ls__node *maker_for(const ls__graph *g, const ls__uses *uses, int wire, const ls__node *user)
{
    const ls__wire *w = &g->wires[wire];
    return w->kind == LS__WIRE_RESULT && ls__only_user(uses, wire) == user ? w->node : NULL;
}

/* From the softmax back to q and k. */
static bool match_scores(const ls__graph *g, const ls__uses *uses, pattern *a)
{
    ls__node *node = maker_for(g, uses, a->p->inputs[0], a->p);
    int x = node ? masked_wire(g, node) : -1;
    if (x >= 0) {
        a->masked = node;
        node = maker_for(g, uses, x, a->masked);
    }
    a->scale = 1;
    for (int i = 0; node && i < 2 && !a->scaled && node->n_inputs == 2; i++)
        if (is_scale(g, node, node->inputs[i], &a->scale)) {
            a->scaled = node;
            node = maker_for(g, uses, node->inputs[i], a->scaled);
        }
    if (!node || (!is_matmul(node, false, true) && !is_matmul(node, false, false)))
        return false;
    a->scores = node;
    a->q = node->inputs[0];
    a->k = node->inputs[1];
    a->k_transposed = is_matmul(node, false, false);
    return true;
}

/* Who uses p: y, and of a training step dv and ds. Nobody else may. */
static bool match_users(const ls__uses *uses, pattern *a)
{
    int p = a->p->outputs[0];
    for (int i = uses->begin[p]; i < uses->begin[p + 1]; i++) {
        ls__node *user = uses->users[i];
        if (!user || user->inputs[0] != p || (user->n_inputs > 1 && user->inputs[1] == p))
            return false;
        ls__node **place = is_matmul(user, false, false)       ? &a->y
                           : is_matmul(user, true, false)      ? &a->dv
                           : ls__node_is(user, "softmax_grad") ? &a->ds
                                                               : NULL;
        if (!place || *place)
            return false;
        *place = user;
    }
    if (!a->y || (a->dv && !a->ds))
        return false;
    a->v = a->y->inputs[1];
    return true;
}

/* ---- backward ----------------------------------------------------------------------- */

/* The gradient of `where`: with the same condition, and zero in place of the low
 * number. That of `add` is what arrives. */
static bool match_unmasked(const ls__graph *g, const ls__uses *uses, pattern *a, int *ds)
{
    if (!a->masked || ls__node_is(a->masked, "add"))
        return true;
    ls__node *node = ls__only_user(uses, *ds);
    int at = a->masked->inputs[1] == (a->scaled ? a->scaled : a->scores)->outputs[0] ? 1 : 2;
    double zero;
    if (!node || !ls__node_is(node, "where") || node->inputs[0] != a->masked->inputs[0] ||
        node->inputs[at] != *ds || !ls__wire_splat(g, node->inputs[3 - at], &zero) || zero != 0)
        return false;
    a->unmasked = node;
    *ds = node->outputs[0];
    return true;
}

static bool match_unscaled(const ls__graph *g, const ls__uses *uses, pattern *a, int *ds)
{
    if (!a->scaled)
        return true;
    ls__node *node = ls__only_user(uses, *ds);
    double factor;
    if (!node || !is_scale(g, node, *ds, &factor) || factor != a->scale)
        return false;
    a->unscaled = node;
    *ds = node->outputs[0];
    return true;
}

/* Who uses the gradient of the scores: dq and dk (either may not be wanted). */
static bool match_gradients(const ls__uses *uses, pattern *a, int ds)
{
    for (int i = uses->begin[ds]; i < uses->begin[ds + 1]; i++) {
        ls__node *user = uses->users[i];
        bool is_dq = user && is_matmul(user, false, a->k_transposed) && user->inputs[0] == ds &&
                     user->inputs[1] == a->k;
        bool is_dk = user && is_matmul(user, true, false) && user->inputs[a->k_transposed] == ds &&
                     user->inputs[!a->k_transposed] == a->q;
        ls__node **place = is_dq ? &a->dq : is_dk ? &a->dk : NULL;
        if (!place || *place)
            return false;
        *place = user;
    }
    return true;
}

static bool match_backward(const ls__graph *g, const ls__uses *uses, pattern *a)
{
    if (!a->ds)
        return true;
    a->dp = maker_for(g, uses, a->ds->inputs[1], a->ds);
    if (!a->dp || !is_matmul(a->dp, false, true) || a->dp->inputs[1] != a->v)
        return false;
    a->dy = a->dp->inputs[0];
    if (a->dv && a->dv->inputs[1] != a->dy)
        return false;
    /* The gradient wants what the forward pass saved; the program may have made one of
     * these products before it. */
    if (a->dp->at < a->y->at || (a->dv && a->dv->at < a->y->at))
        return false;
    int ds = a->ds->outputs[0];
    return ls__spec_equal(spec_of(g, a->dy), spec_of(g, a->y->outputs[0])) &&
           match_unmasked(g, uses, a, &ds) && match_unscaled(g, uses, a, &ds) &&
           match_gradients(uses, a, ds);
}

/* Softmax and its gradient take an axis as their only attribute. */
static bool along_last(const ls__graph *g, const ls__node *node)
{
    int rank = spec_of(g, node->inputs[0])->rank;
    return ls__axis(*(const int64_t *)node->attrs, rank) == rank - 1;
}

static bool match(const ls__graph *g, const ls__uses *uses, ls__node *p, pattern *a)
{
    *a = (pattern){ .p = p };
    return along_last(g, p) && match_scores(g, uses, a) && match_users(uses, a) &&
           shapes_fit(g, a) && match_backward(g, uses, a) && (!a->ds || along_last(g, a->ds));
}

/* ---- transposes --------------------------------------------------------------------- */

/* An axis when the last two are exchanged. */
static int64_t other_axis(int64_t axis, int rank)
{
    return axis < rank - 2 ? axis : 2 * rank - 3 - axis;
}

static bool in_order(const ls_ints *order)
{
    for (int i = 0; i < order->count; i++)
        if (order->at[i] != i)
            return false;
    return true;
}

/* `wire` with its last two axes exchanged, made before `before`; of a transpose, one
 * transpose of what that took, or that itself. -1 on failure. */
static int exchanged(ls__graph *g, ls__node *before, int wire)
{
    int rank = spec_of(g, wire)->rank;
    ls_ints order = { .count = rank };
    const ls__node *made = ls__made_by(g, wire, "transpose");
    const ls_ints *first = made ? made->attrs : NULL;
    for (int i = 0; i < rank; i++) {
        int64_t from = other_axis(i, rank);
        order.at[i] = first ? ls__axis(first->at[from], rank) : from;
    }
    if (made)
        wire = made->inputs[0];
    if (in_order(&order))
        return wire;
    ls__node *node = ls__graph_call(g, before, ls_op_find("transpose"), &order, 1, &wire);
    return node ? node->outputs[0] : -1;
}

/* Who used `to` wants dk with its last two axes exchanged; who goes on to transpose
 * that, mostly just back, takes dk itself. */
static ls_status give_transposed(ls__graph *g, ls__node *before, int to, int dk)
{
    int wire = exchanged(g, before, dk);
    if (wire < 0)
        return ls_error_pending();
    ls__graph_redirect(g, to, wire, NULL);
    for (int i = 0; i < g->n_nodes; i++) {
        ls__node *user = g->nodes[i];
        if (!ls__node_is(user, "transpose") || user->inputs[0] != wire)
            continue;
        ls_ints *order = user->attrs;
        int rank = (int)order->count;
        for (int k = 0; k < rank; k++)
            order->at[k] = other_axis(ls__axis(order->at[k], rank), rank);
        user->inputs[0] = dk;
        if (in_order(order))
            ls__graph_redirect(g, user->outputs[0], dk, NULL);
    }
    return LS_OK;
}

/* ---- the pass ----------------------------------------------------------------------- */

static ls__node *earlier(ls__node *a, ls__node *b)
{
    return !b || (a && a->at < b->at) ? a : b;
}

static ls_status fuse_backward(ls__graph *g, const pattern *a, const ls__attention_attrs *attrs,
                               int k, const ls__node *forward)
{
    ls__node *before = earlier(a->dp, a->dv);
    int inputs[6] = { a->q, k, a->v, a->dy, forward->outputs[0], forward->outputs[1] };
    ls__node *node = ls__graph_call(g, before, ls_op_find("attention_grad"), attrs, 6, inputs);
    if (!node)
        return ls_error_pending();
    if (a->dq)
        ls__graph_redirect(g, a->dq->outputs[0], node->outputs[0], NULL);
    if (a->dv)
        ls__graph_redirect(g, a->dv->outputs[0], node->outputs[2], NULL);
    if (a->dk && a->k_transposed)
        return give_transposed(g, before, a->dk->outputs[0], node->outputs[1]);
    if (a->dk)
        ls__graph_redirect(g, a->dk->outputs[0], node->outputs[1], NULL);
    return LS_OK;
}

static void remove_pattern(ls__graph *g, const pattern *a)
{
    ls__node *nodes[] = { a->dk, a->dq, a->unscaled, a->unmasked, a->ds,     a->dp,
                          a->dv, a->y,  a->p,        a->masked,   a->scaled, a->scores };
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        if (nodes[i])
            ls__graph_remove(g, nodes[i]);
}

static ls_status fuse(ls__graph *g, const pattern *a)
{
    const ls__attention_attrs attrs = { .causal = a->masked != NULL, .scale = a->scale };
    int k = a->k_transposed ? exchanged(g, a->y, a->k) : a->k;
    if (k < 0)
        return ls_error_pending();
    int inputs[3] = { a->q, k, a->v };
    ls__node *node = ls__graph_call(g, a->y, ls_op_find("attention"), &attrs, 3, inputs);
    if (!node)
        return ls_error_pending();
    ls__graph_redirect(g, a->y->outputs[0], node->outputs[0], NULL);
    ls_status st = a->ds ? fuse_backward(g, a, &attrs, k, node) : LS_OK;
    if (!st)
        remove_pattern(g, a);
    return st;
}

ls_status ls__pass_fuse_attention(ls__graph *g)
{
    ls_status st = LS_OK;
    for (int i = 0; i < g->n_nodes && !st; i++) {
        ls__uses uses;
        pattern a;
        if (!ls__node_is(g->nodes[i], "softmax"))
            continue;
        st = ls__uses_find(g, &uses); /* anew: fusing changes them */
        if (st)
            break;
        bool found = match(g, &uses, g->nodes[i], &a);
        ls__uses_free(&uses);
        if (found)
            st = fuse(g, &a);
    }
    return st;
}
