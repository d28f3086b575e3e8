/*
 * Losses of one replica, scaled for a sum over all replicas. Made of operators, so gradients and
 * traces come by themselves. Invariant: what is divided by is a number that the program or the
 * strategy knows, never one that replicas would have to meet for.
 */
#include <lockstep/loss.h>
#include <lockstep/ops.h>
#include <lockstep/strategy.h>

#include "base/status.h"
#include "tensor/tensor.h"

static ls_status check_float(const char *who, const char *what, const ls_tensor *t)
{
    ls_status st = ls__check_tensor(who, what, t);
    if (st || ls_dtype_is_float(t->spec.dtype))
        return st;
    return ls__hint(ls__fail(LS_SHAPE, "%s: %s is %s, wants floats", who, what, ls_describe(t)),
                    "ls_cast makes floats of it");
}

static ls_status check_per_example(const char *who, const ls_tensor *t)
{
    ls_status st = check_float(who, "per_example", t);
    if (st || t->spec.rank > 0)
        return st;
    return ls__hint(
        ls__fail(LS_SHAPE, "%s: per_example is %s, wants rank 1 or more", who, ls_describe(t)),
        "give the loss of each row, not their sum or mean");
}

/* The number of replicas that sum up. */
static ls_status count_replicas(const char *who, const char *instead, int *out)
{
    if (ls_in_cross_replica_context())
        return ls__hint(
            ls__fail(LS_STATE, "%s: called in cross-replica context, wants a replica", who), "%s",
            instead);
    *out = ls_num_replicas(ls_get_strategy());
    return LS_OK;
}

static ls_status divisor(const char *who, const ls_tensor *per_example, int64_t global_batch,
                         double *out)
{
    if (global_batch < 0)
        return ls__hint(
            ls__fail(LS_INVALID, "%s: a global batch of %lld", who, (long long)global_batch),
            "the rows of all replicas together; 0: this replica's times their number");
    int replicas = 1;
    if (global_batch == 0) {
        ls_status st = count_replicas(
            who, "call it in the function that ls_run runs, or give the global batch", &replicas);
        if (st)
            return st;
        global_batch = per_example->spec.dims[0];
    }
    *out = (double)global_batch * replicas;
    return LS_OK;
}

/* bf16 cannot tell 256 rows from 257. */
static ls_tensor *sum_divided(ls_tensor *t, double by)
{
    ls_dtype dtype = t ? t->spec.dtype : LS_F32;
    ls_tensor *sum = ls_sum(dtype == LS_BF16 ? ls_cast(t, LS_F32) : t, LS_ALL_AXES, false);
    return ls_cast(ls_div(sum, ls__scalar_like(sum, by > 0 ? by : 1)), dtype);
}

ls_tensor *ls_compute_average_loss(ls_tensor *per_example, int64_t global_batch)
{
    double by;
    if (check_per_example("ls_compute_average_loss", per_example) ||
        divisor("ls_compute_average_loss", per_example, global_batch, &by))
        return NULL;
    return sum_divided(per_example, by);
}

/* ---- weights ------------------------------------------------------------------------------ */

static bool broadcasts(const ls_tensor *from, const ls_tensor *to)
{
    int missing = to->spec.rank - from->spec.rank;
    for (int i = 0; i < from->spec.rank && missing >= 0; i++)
        if (from->spec.dims[i] != 1 && from->spec.dims[i] != to->spec.dims[missing + i])
            return false;
    return missing >= 0;
}

/* With the last axis added or left out that examples and their weights often differ in. */
static ls_tensor *fitted(ls_tensor *weights, const ls_tensor *per_example)
{
    int rank = weights->spec.rank, more = per_example->spec.rank - rank;
    if (rank > 0 && more == 1)
        return ls_expand_dims(weights, -1);
    if (more == -1 && weights->spec.dims[rank - 1] == 1)
        return ls_squeeze(weights, LS_AXES(-1));
    return weights;
}

ls_tensor *ls_compute_weighted_average_loss(ls_tensor *per_example, ls_tensor *weights,
                                            int64_t global_batch)
{
    static const char who[] = "ls_compute_weighted_average_loss";
    double by;
    if (check_per_example(who, per_example) || ls__check_tensor(who, "weights", weights) ||
        divisor(who, per_example, global_batch, &by))
        return NULL;
    ls_tensor *fit = fitted(weights, per_example);
    if (!fit)
        return NULL;
    if (!broadcasts(fit, per_example)) {
        ls__hint(ls__fail(LS_SHAPE, "%s: weights are %s, per_example is %s", who,
                          ls_describe(weights), ls_describe(per_example)),
                 "give a weight for each row, or for each element");
        return NULL;
    }
    return sum_divided(ls_mul(per_example, ls_cast(fit, per_example->spec.dtype)), by);
}

/* ---- what does not depend on the batch ------------------------------------------------------ */

ls_tensor *ls_scale_regularization_loss(ls_tensor *loss)
{
    static const char who[] = "ls_scale_regularization_loss";
    int replicas = 1;
    if (check_float(who, "loss", loss) ||
        count_replicas(who, "call it in the function that ls_run runs on each replica", &replicas))
        return NULL;
    return sum_divided(loss, replicas);
}
