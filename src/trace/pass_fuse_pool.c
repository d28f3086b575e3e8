/*
 * Max pooling with the relu before it, forward and backward. A training step holds
 *
 *     y = relu(x)
 *     p, places = max_pool2d(y)
 *     ...
 *     d = max_pool2d_grad(dp, places)
 *     dx = relu_grad(y, d)
 *     db = sum(dx) over all axes but the last       the bias was added to x
 *
 * and most of that works on the large image. It becomes
 *
 *     p, places = max_pool2d_relu(x)
 *     ...
 *     m = relu_grad(p, dp)
 *     dx = max_pool2d_grad(m, places)
 *     db = sum(m)
 *
 * in three steps, each where its own conditions hold. y is not even made.
 *
 * 1. relu_grad moves before the pool's gradient. Cell i of dx was (y[i] > 0 ? the sum
 *    of dp[o] over the windows o whose place is i : 0), and is the sum of (p[o] > 0 ?
 *    dp[o] : 0) over the same. The pool copies, so p[o] has the bits of y[i]: either
 *    all windows of a cell pass or none does. If all do, it is the same sum in the
 *    same order; if none does, a sum of +0 from +0, which is +0. NaN in y passes nothing
 *    either way. This holds for any y, and keeps the bits.
 *
 * 2. A sum over height and width at least does not care where in an image dp lands,
 *    and every dp lands in one cell. The order of the sum changes.
 *
 * 3. relu moves behind the pool, into its registers. If a window of x has a NaN or a
 *    positive number, the first largest of x is the first largest of y: relu changes
 *    neither NaN nor what is positive, and all else becomes 0 and loses. Otherwise p is
 *    +0 both ways, but the place may be another cell of the window; so whoever uses
 *    places must be a pool's gradient of relu_grad(p, ...), which is +0 there. Adding +0
 *    to another cell changes nothing, as sums that begin with +0 are never -0.0. The
 *    bits stay.
 */
#include "ops/pool.h"
#include "trace/pass.h"

#include <string.h>

/* The max_pool2d whose places `back`, a max_pool2d_grad, follows, with its own
 * windows and image; else NULL: places from elsewhere may lie anywhere. */
static ls__node *pool_of(const ls__graph *g, const ls__node *back)
{
    ls__node *pool = ls__made_by(g, back->inputs[1], "max_pool2d");
    bool fits =
        pool && pool->outputs[1] == back->inputs[1] &&
        memcmp(pool->attrs, back->attrs, sizeof(ls__pool_attrs)) == 0 &&
        ls__spec_same_shape(&g->wires[pool->inputs[0]].spec, &g->wires[back->outputs[0]].spec);
    return fits ? pool : NULL;
}

/* ---- 1 -------------------------------------------------------------------------------- */

static ls_status is_only_use(const ls__graph *g, int wire, const ls__node *user, bool *out)
{
    ls__uses uses;
    ls_status st = ls__uses_find(g, &uses);
    if (st)
        return st;
    *out = ls__only_user(&uses, wire) == user;
    ls__uses_free(&uses);
    return LS_OK;
}

static ls_status relu_grad_first(ls__graph *g, ls__node *relu_grad)
{
    ls__node *back = ls__made_by(g, relu_grad->inputs[1], "max_pool2d_grad");
    ls__node *pool = back ? pool_of(g, back) : NULL;
    bool alone = false;
    if (!pool || pool->inputs[0] != relu_grad->inputs[0])
        return LS_OK;
    ls_status st = is_only_use(g, back->outputs[0], relu_grad, &alone);
    if (st || !alone)
        return st;
    /* Both where the pool's gradient was: it can fail, so it may not move behind a write. */
    const int pooled[2] = { pool->outputs[0], back->inputs[0] };
    ls__node *masked = ls__graph_call(g, back, relu_grad->op, NULL, 2, pooled);
    if (!masked)
        return ls_error_pending();
    const int inputs[2] = { masked->outputs[0], back->inputs[1] };
    ls__node *moved = ls__graph_call(g, back, back->op, back->attrs, 2, inputs);
    if (!moved)
        return ls_error_pending();
    masked->where = relu_grad->where;
    ls__graph_redirect(g, relu_grad->outputs[0], moved->outputs[0], NULL);
    ls__graph_remove(g, relu_grad);
    ls__graph_remove(g, back);
    return LS_OK;
}

/* ---- 2 -------------------------------------------------------------------------------- */

/* Whether a sum over images takes height and width together. */
static bool sums_planes(const ls__node *sum)
{
    ls_ints axes;
    bool height = false, width = false;
    memcpy(&axes, (const char *)sum->attrs + sum->op->attrs[0].offset, sizeof axes);
    for (int64_t i = 0; i < axes.count; i++) {
        height |= axes.at[i] == 1 || axes.at[i] == 1 - 4;
        width |= axes.at[i] == 2 || axes.at[i] == 2 - 4;
    }
    return axes.count < 0 || (height && width);
}

static ls_status sum_before_pool(ls__graph *g, ls__node *sum)
{
    ls__node *back = ls__made_by(g, sum->inputs[0], "max_pool2d_grad");
    if (!back || !pool_of(g, back) || !sums_planes(sum))
        return LS_OK;
    ls_dtype dtype = g->wires[sum->inputs[0]].spec.dtype;
    if (dtype != LS_F32 && dtype != LS_F64) /* others are rounded in between */
        return LS_OK;
    ls__node *moved = ls__graph_call(g, sum, sum->op, sum->attrs, 1, back->inputs);
    if (!moved)
        return ls_error_pending();
    ls__graph_redirect(g, sum->outputs[0], moved->outputs[0], NULL);
    ls__graph_remove(g, sum);
    return LS_OK;
}

/* ---- 3 -------------------------------------------------------------------------------- */

/* Whether `user` puts nothing but zeros where p is not positive. */
static bool is_masked(const ls__graph *g, const ls__node *pool, const ls__node *user)
{
    if (!user || !ls__node_is(user, "max_pool2d_grad") || pool_of(g, user) != pool)
        return false;
    const ls__node *mask = ls__made_by(g, user->inputs[0], "relu_grad");
    return mask && mask->inputs[0] == pool->outputs[0];
}

static bool can_take_relu(const ls__graph *g, const ls__uses *uses, const ls__node *pool)
{
    const int y = pool->inputs[0], places = pool->outputs[1];
    if (ls__only_user(uses, y) != pool ||
        ls__spec_count(&g->wires[pool->outputs[0]].spec) >= ls__spec_count(&g->wires[y].spec))
        return false;
    for (int i = uses->begin[places]; i < uses->begin[places + 1]; i++)
        if (!is_masked(g, pool, uses->users[i]))
            return false;
    return true;
}

static ls_status relu_after_pool(ls__graph *g, ls__node *pool)
{
    ls__node *relu = ls__made_by(g, pool->inputs[0], "relu");
    ls__uses uses;
    if (!relu)
        return LS_OK;
    ls_status st = ls__uses_find(g, &uses); /* of the graph as it is now */
    if (st)
        return st;
    bool can = can_take_relu(g, &uses, pool);
    ls__uses_free(&uses);
    if (!can)
        return LS_OK;
    ls__node *both =
        ls__graph_call(g, pool, ls_op_find("max_pool2d_relu"), pool->attrs, 1, relu->inputs);
    if (!both)
        return ls_error_pending();
    for (int i = 0; i < 2; i++)
        ls__graph_redirect(g, pool->outputs[i], both->outputs[i], NULL);
    ls__graph_remove(g, pool);
    ls__graph_remove(g, relu);
    return LS_OK;
}

/* ---- the pass ------------------------------------------------------------------------- */

/* One step over all nodes of a row. A step changes the list up to its node only, so
 * the one that follows is still there and knows its place. */
static ls_status each(ls__graph *g, const char *row, ls_status (*step)(ls__graph *, ls__node *))
{
    ls_status st = LS_OK;
    ls__node *next = g->n_nodes > 0 ? g->nodes[0] : NULL;
    while (next && !st) {
        ls__node *node = next;
        next = node->at + 1 < g->n_nodes ? g->nodes[node->at + 1] : NULL;
        if (ls__node_is(node, row))
            st = step(g, node);
    }
    return st;
}

ls_status ls__pass_fuse_pool(ls__graph *g)
{
    ls_status st = each(g, "relu_grad", relu_grad_first);
    if (!st)
        st = each(g, "sum", sum_before_pool);
    return st ? st : each(g, "max_pool2d", relu_after_pool);
}
