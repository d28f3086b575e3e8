/*
 * Attention without moving heads. One product makes queries, keys and values side by
 * side, and a model takes them apart:
 *
 *     q, k, v = split(x, 3, last axis)           x [n, t, 3 w], w = heads * width
 *     q, k, v = transpose(reshape(., [n, t, heads, width]), 0 2 1 3)
 *     y, lse = attention(q, k, v)
 *     transpose(y, 0 2 1 3)
 *
 * becomes y, lse = attention_qkv(x), whose y is [n, t, w]. Of a training step the backward
 * pass goes along, or nothing does:
 *
 *     dq, dk, dv = attention_grad(q, k, v, transpose(dy, 0 2 1 3), y, lse)
 *     dx = concat of reshape(transpose(., 0 2 1 3), [n, t, w]), last axis
 *
 * becomes dx = attention_qkv_grad(x, dy, y, lse). Who else takes q, k, v or lse may: they
 * are the same. Invariant: the bits stay.
 */
#include "trace/pass.h"

#include <string.h>

#include "ops/attention.h"

typedef struct pattern {
    int x, dy;                             /* wires; dy as [n, t, heads, width] */
    ls__spec heads;                        /* q's: [n, heads, t, width] */
    ls__node *forward, *backward, *concat; /* the last two: or NULL */
} pattern;

static const ls__spec *spec_of(const ls__graph *g, int wire)
{
    return &g->wires[wire].spec;
}

static bool has_dims(const ls__spec *s, int rank, const int64_t *dims)
{
    return s->rank == rank && memcmp(s->dims, dims, (size_t)rank * sizeof *dims) == 0;
}

/* Whether a node exchanges the two axes in the middle of four. */
static bool is_exchange(const ls__node *node)
{
    static const int64_t want[4] = { 0, 2, 1, 3 };
    if (!node || !ls__node_is(node, "transpose"))
        return false;
    const ls_ints *order = node->attrs;
    for (int i = 0; i < 4; i++)
        if (order->count != 4 || ls__axis(order->at[i], 4) != want[i])
            return false;
    return true;
}

/* The shape of what is side by side: `parts` times w long. */
static bool is_beside(const ls__spec *s, const pattern *a, int parts)
{
    const int64_t *d = a->heads.dims;
    return has_dims(s, 3, (const int64_t[]){ d[0], d[2], parts * d[1] * d[3] });
}

/* ---- forward ------------------------------------------------------------------------ */

/* The split whose part number `part` is taken apart to this wire, or NULL. */
static ls__node *split_of(const ls__graph *g, const pattern *a, int wire, int part)
{
    const ls__node *moved = ls__made_by(g, wire, "transpose");
    if (!is_exchange(moved))
        return NULL;
    const ls__node *shaped = ls__made_by(g, moved->inputs[0], "reshape");
    ls__node *split = shaped ? ls__made_by(g, shaped->inputs[0], "split") : NULL;
    return split && split->n_outputs == 3 && split->outputs[part] == shaped->inputs[0] &&
                   is_beside(spec_of(g, shaped->inputs[0]), a, 1) &&
                   is_beside(spec_of(g, split->inputs[0]), a, 3)
               ? split
               : NULL;
}

static bool match_forward(const ls__graph *g, pattern *a)
{
    const ls__node *node = a->forward;
    const ls__spec *q = spec_of(g, node->inputs[0]);
    /* The axis of the split is known by its shapes; of nothing it would not be. */
    if (q->dtype != LS_F32 || q->rank != 4 || ls__spec_count(q) == 0)
        return false;
    a->heads = *q;
    ls__node *split = split_of(g, a, node->inputs[0], 0);
    for (int i = 1; i < 3; i++)
        if (!split || split_of(g, a, node->inputs[i], i) != split)
            return false;
    a->x = split->inputs[0];
    return true;
}

/* Who uses y: transposes, and the backward pass. */
static bool match_users(const ls__uses *uses, pattern *a)
{
    int y = a->forward->outputs[0];
    for (int i = uses->begin[y]; i < uses->begin[y + 1]; i++) {
        ls__node *user = uses->users[i];
        if (is_exchange(user))
            continue;
        if (!user || !ls__node_is(user, "attention_grad") || a->backward)
            return false;
        a->backward = user;
    }
    return true;
}

/* ---- backward ----------------------------------------------------------------------- */

/* The concat that a gradient is given to as part number `part`, by nobody else wanted. */
static ls__node *concat_of(const ls__graph *g, const ls__uses *uses, const pattern *a, int part)
{
    ls__node *moved = ls__only_user(uses, a->backward->outputs[part]);
    if (!is_exchange(moved))
        return NULL;
    ls__node *shaped = ls__only_user(uses, moved->outputs[0]);
    if (!shaped || !ls__node_is(shaped, "reshape") ||
        !is_beside(spec_of(g, shaped->outputs[0]), a, 1))
        return NULL;
    ls__node *concat = ls__only_user(uses, shaped->outputs[0]);
    return concat && ls__node_is(concat, "concat") && concat->n_inputs == 3 &&
                   concat->inputs[part] == shaped->outputs[0] &&
                   is_beside(spec_of(g, concat->outputs[0]), a, 3)
               ? concat
               : NULL;
}

static bool match_backward(const ls__graph *g, const ls__uses *uses, pattern *a)
{
    const ls__node *node = a->backward, *forward = a->forward;
    if (!node)
        return true;
    for (int i = 0; i < 3; i++)
        if (node->inputs[i] != forward->inputs[i])
            return false;
    if (node->inputs[4] != forward->outputs[0] || node->inputs[5] != forward->outputs[1] ||
        !ls__same_attrs(node->op, node->attrs, forward->attrs))
        return false;
    const ls__node *dy = ls__made_by(g, node->inputs[3], "transpose");
    if (!is_exchange(dy))
        return false;
    a->dy = dy->inputs[0];
    a->concat = concat_of(g, uses, a, 0);
    return a->concat && concat_of(g, uses, a, 1) == a->concat &&
           concat_of(g, uses, a, 2) == a->concat;
}

/* ---- the pass ------------------------------------------------------------------------- */

/* `wire` under another shape, made before `before`; -1 on failure. */
static int reshaped(ls__graph *g, ls__node *before, int wire, int rank, const int64_t *dims)
{
    ls_ints shape = { .count = rank };
    memcpy(shape.at, dims, (size_t)rank * sizeof *dims);
    ls__node *node = ls__graph_call(g, before, ls_op_find("reshape"), &shape, 1, &wire);
    return node ? node->outputs[0] : -1;
}

static ls_status fuse_backward(ls__graph *g, const pattern *a, const void *attrs,
                               const ls__node *forward)
{
    const int64_t *d = a->heads.dims;
    int dy = reshaped(g, a->backward, a->dy, 3, (const int64_t[]){ d[0], d[2], d[1] * d[3] });
    if (dy < 0)
        return ls_error_pending();
    int inputs[4] = { a->x, dy, forward->outputs[0], forward->outputs[1] };
    ls__node *node =
        ls__graph_call(g, a->backward, ls_op_find("attention_qkv_grad"), attrs, 4, inputs);
    if (!node)
        return ls_error_pending();
    ls__graph_redirect(g, a->concat->outputs[0], node->outputs[0], NULL);
    return LS_OK;
}

/* The transposes of y take the new one as it lies; all that is not used any more is left
 * to the dead-node pass. */
static ls_status fuse(ls__graph *g, const ls__uses *uses, const pattern *a)
{
    const ls__attention_attrs *old = a->forward->attrs;
    const int64_t *d = a->heads.dims;
    ls__attention_qkv_attrs attrs;
    memset(&attrs, 0, sizeof attrs);
    attrs.heads = d[1];
    attrs.causal = old->causal;
    attrs.scale = old->scale;
    ls__node *node = ls__graph_call(g, a->forward, ls_op_find("attention_qkv"), &attrs, 1, &a->x);
    int y = node ? reshaped(g, a->forward, node->outputs[0], 4,
                            (const int64_t[]){ d[0], d[2], d[1], d[3] })
                 : -1;
    if (y < 0)
        return ls_error_pending();
    int was = a->forward->outputs[0];
    for (int i = uses->begin[was]; i < uses->begin[was + 1]; i++)
        if (uses->users[i] != a->backward)
            ls__graph_redirect(g, uses->users[i]->outputs[0], y, NULL);
    ls_status st = a->backward ? fuse_backward(g, a, &attrs, node) : LS_OK;
    if (!st)
        ls__graph_redirect(g, a->forward->outputs[1], node->outputs[1], NULL);
    return st;
}

ls_status ls__pass_fuse_heads(ls__graph *g)
{
    ls_status st = LS_OK;
    for (int i = 0; i < g->n_nodes && !st; i++) {
        ls__uses uses;
        ls__node *node = g->nodes[i];
        if (!ls__node_is(node, "attention"))
            continue;
        pattern a = { .forward = node };
        st = ls__uses_find(g, &uses); /* anew: fusing changes them */
        if (st)
            break;
        if (match_forward(g, &a) && match_users(&uses, &a) && match_backward(g, &uses, &a))
            st = fuse(g, &uses, &a);
        ls__uses_free(&uses);
        i = node->at; /* new nodes are before it */
    }
    return st;
}
