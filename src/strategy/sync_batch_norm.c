/*
 * ls_sync_batch_norm: batch normalisation with the statistics of all replicas' rows. Replicas meet
 * once with their (mean, variance, rows), which are merged in the order of the tree; each
 * then normalises its own rows with the same numbers.
 *
 * On the tape it is two calls: sync_moments, x -> mean and variance, which only this file notes, and
 * batch_norm_inference, which takes them. The gradient of the first is a meeting again: every row of
 * every replica is in the statistics of all, so what arrives at these is added up over replicas.
 *
 *     dx = (sum of dmean + sum of dvariance 2 (x - mean)) / rows of all
 *
 * It is written in operators and ls_all_reduce, so there are gradients of gradients.
 */
#include <lockstep/ops.h>
#include <lockstep/tape.h>

#include "base/status.h"
#include "dispatch/call.h"
#include "dispatch/tape.h"
#include "ops/moments.h"
#include "strategy/combine.h"
#include "strategy/context.h"
#include "strategy/run.h"
#include "strategy/strategy.h"
#include "strategy/sync_batch_norm.h"

static const char me[] = "ls_sync_batch_norm";

/* ---- in the meeting --------------------------------------------------------------------------- */

/* What each replica has of leaf `i`: V tensors. */
static ls_status gather(ls_strategy *s, ls_value *arguments, int i, ls_tensor **out)
{
    ls__parts parts;
    ls_status st = ls__parts_of(s, me, ls_child(arguments, i), ls__device_of_replica(s, 0), &parts);
    for (int r = 0; r < s->replicas && !st; r++)
        out[r] = parts.at[parts.spread == LS_SPREAD_PER_REPLICA ? r : 0];
    return st;
}

static ls_value *merge(ls_strategy *s, ls_value *arguments, void *user)
{
    (void)user;
    int v = s->replicas;
    ls_tensor **parts = ls__frame_alloc(sizeof *parts * 3 * (size_t)v);
    ls__moments all;
    if (!parts)
        return NULL;
    for (int i = 0; i < 3; i++)
        if (gather(s, arguments, i, parts + i * v))
            return NULL;
    if (ls__merge_moments(v, parts, &all))
        return NULL;
    return ls_list(3, (ls_value *[]){ ls__mirrored_leaf(s, all.mean),
                                      ls__mirrored_leaf(s, all.variance),
                                      ls__mirrored_leaf(s, all.rows) });
}

/* ---- on the tape ------------------------------------------------------------------------------- */

static ls_status sync_moments_gradient(ls_grad *g)
{
    ls_tensor *x = ls_grad_input(g, 0), *mean = ls_grad_result(g, 0);
    ls_tensor *arrived[2] = { ls_grad_output(g, 0), ls_grad_output(g, 1) };
    ls_value *sums = ls_all_reduce(ls_get_replica_context(), LS_SUM, ls_tensors(2, arrived));
    if (!sums)
        return ls_error_pending();
    ls_tensor *rows = ls_cast(ls_stop_gradient(ls_grad_result(g, 2)), ls_dtype_of(x));
    rows = ls_maximum(rows, ls__scalar_like(rows, 1)); /* of none: 0 / 1 */
    ls_tensor *level = ls_div(ls_item(sums, 0), rows);
    ls_tensor *slope = ls_div(ls_scale(ls_item(sums, 1), 2), rows);
    return ls_grad_give(g, 0, ls_add(ls_mul(ls_sub(x, mean), slope), level));
}

/* Only ever noted: a meeting is no call that an executor could make. */
static const ls_op sync_moments_row = {
    .size = sizeof(ls_op),
    .name = "sync_moments",
    .inputs = 1,
    .outputs = 3,
    .gradient = sync_moments_gradient,
};

/* ---- in the replica ----------------------------------------------------------------------------- */

/* NULL: failed, but whoever meets must arrive. */
static ls_value *own_moments(ls_tensor *x)
{
    ls__moments own;
    ls__error_scope scope;
    if (ls__check_tensor(me, "x", x))
        return NULL;
    ls__error_scope_open(&scope);
    ls_status st = ls__error_scope_close(&scope, ls__batch_moments(x, &own), "%s", me);
    return st ? NULL : ls_tensors(3, (ls_tensor *[]){ own.mean, own.variance, own.rows });
}

static ls_tensor *normalised(ls_tensor *x, ls_tensor *scale, ls_tensor *offset, ls_tensor *mean,
                             ls_tensor *variance, double epsilon)
{
    ls__error_scope scope;
    if (ls__check_tensor(me, "scale", scale) || ls__check_tensor(me, "offset", offset))
        return NULL;
    ls__error_scope_open(&scope);
    ls_tensor *y = ls_batch_norm_inference(x, scale, offset, mean, variance, epsilon);
    return ls__error_scope_close(&scope, y ? LS_OK : ls_error_pending(), "%s", me) ? NULL : y;
}

static ls_value *among_replicas(ls_replica *replica, ls_tensor *x, ls_tensor *scale,
                                ls_tensor *offset, double epsilon)
{
    ls_value *got = ls__meet(replica, me, merge, NULL, own_moments(x));
    if (!got)
        return NULL;
    ls_tensor *all[3] = { ls_item(got, 0), ls_item(got, 1), ls_item(got, 2) };
    if (ls__tape_noting() && ls__tape_note(&sync_moments_row, NULL, 1, &x, 3, all))
        return NULL;
    ls_tensor *y = normalised(x, scale, offset, all[0], all[1], epsilon);
    return y ? ls_tensors(4, (ls_tensor *[]){ y, all[0], all[1], all[2] }) : NULL;
}

ls_value *ls__sync_batch_norm(ls_replica *replica, ls_tensor *x, ls_tensor *scale,
                              ls_tensor *offset, double epsilon)
{
    if (!x || ls_dtype_of(x) != LS_BF16)
        return among_replicas(replica, x, scale, offset, epsilon);
    /* Statistics in bf16 would be too coarse. */
    ls_value *wide = among_replicas(replica, ls_cast(x, LS_F32), ls_cast(scale, LS_F32),
                                    ls_cast(offset, LS_F32), epsilon);
    if (!wide)
        return NULL;
    return ls_tensors(4, (ls_tensor *[]){ ls_cast(ls_item(wide, 0), LS_BF16),
                                          ls_cast(ls_item(wide, 1), LS_BF16),
                                          ls_cast(ls_item(wide, 2), LS_BF16), ls_item(wide, 3) });
}

ls_value *ls_sync_batch_norm(ls_replica *replica, ls_tensor *x, ls_tensor *scale, ls_tensor *offset,
                             double epsilon)
{
    if (ls__check_replica(me, replica))
        return NULL;
    if (replica->strategy->replicas == 1)
        return ls_batch_norm(x, scale, offset, epsilon);
    ls_value *all = ls__sync_batch_norm(replica, x, scale, offset, epsilon);
    if (!all)
        return NULL;
    return ls_tensors(3, (ls_tensor *[]){ ls_item(all, 0), ls_item(all, 1), ls_item(all, 2) });
}
