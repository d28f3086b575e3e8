/*
 * Losses of each row, made of operators: gradients and traces come by themselves. Invariant: outputs
 * and labels have one shape and dtype; nothing is stretched, for [n, 1] beside [n] would be n x n.
 */
#include <lockstep/loss.h>
#include <lockstep/ops.h>
#include <math.h>

#include "base/status.h"
#include "tensor/tensor.h"

static ls_status check_pair(const char *who, const ls_tensor *outputs, const ls_tensor *labels)
{
    ls_status st = ls__check_tensor(who, "outputs", outputs);
    if (!st)
        st = ls__check_tensor(who, "labels", labels);
    if (st)
        return st;
    const ls__spec *o = &outputs->spec;
    if (ls_dtype_is_float(o->dtype) && o->rank > 0 && ls__spec_equal(o, &labels->spec))
        return LS_OK;
    return ls__hint(ls__fail(LS_SHAPE, "%s: outputs are %s, labels %s", who, ls_describe(outputs),
                             ls_describe(labels)),
                    "wants floats of one dtype and shape, [n, ...]");
}

static ls_tensor *mean_of_rows(ls_tensor *t)
{
    return ls_mean(t, LS_AXES(-1), false);
}

ls_tensor *ls_mae(ls_tensor *prediction, ls_tensor *target)
{
    if (check_pair("ls_mae", prediction, target))
        return NULL;
    return mean_of_rows(ls_abs(ls_sub(prediction, target)));
}

/* With q = min(|d|, delta): q^2 / 2 + delta (|d| - q). */
static ls_tensor *huber(ls_tensor *prediction, ls_tensor *target, double delta)
{
    ls_tensor *far = ls_abs(ls_sub(prediction, target));
    ls_tensor *near = ls_minimum(far, ls__scalar_like(far, delta));
    ls_tensor *beyond = ls_scale(ls_sub(far, near), delta);
    return mean_of_rows(ls_add(ls_scale(ls_square(near), 0.5), beyond));
}

ls_tensor *ls_huber(ls_tensor *prediction, ls_tensor *target)
{
    return check_pair("ls_huber", prediction, target) ? NULL : huber(prediction, target, 1);
}

ls_tensor *ls_huber_delta(ls_tensor *prediction, ls_tensor *target, double delta)
{
    static const char who[] = "ls_huber_delta";
    if (check_pair(who, prediction, target))
        return NULL;
    if (!(delta > 0 && isfinite(delta))) {
        ls__hint(ls__fail(LS_INVALID, "%s: delta %g", who, delta),
                 "where squares end and straight lines begin: a number above 0");
        return NULL;
    }
    return huber(prediction, target, delta);
}

ls_tensor *ls_hinge(ls_tensor *outputs, ls_tensor *labels)
{
    if (check_pair("ls_hinge", outputs, labels))
        return NULL;
    ls_tensor *short_of = ls_shift(ls_neg(ls_mul(labels, outputs)), 1);
    return mean_of_rows(ls_maximum(short_of, ls__scalar_like(outputs, 0)));
}

ls_tensor *ls_binary_xent(ls_tensor *logits, ls_tensor *labels)
{
    if (check_pair("ls_binary_xent", logits, labels))
        return NULL;
    return mean_of_rows(ls_sigmoid_xent(logits, labels));
}

ls_tensor *ls_kl_divergence(ls_tensor *outputs, ls_tensor *labels)
{
    const double least = 1e-7; /* as Keras: the log of 0 is none */
    if (check_pair("ls_kl_divergence", outputs, labels))
        return NULL;
    ls_tensor *p = ls_clip(labels, least, 1), *q = ls_clip(outputs, least, 1);
    return ls_sum(ls_mul(p, ls_log(ls_div(p, q))), LS_AXES(-1), false);
}

ls_tensor *ls_smooth_labels(ls_tensor *labels, double amount)
{
    static const char who[] = "ls_smooth_labels";
    if (ls__check_tensor(who, "labels", labels))
        return NULL;
    const ls__spec *l = &labels->spec;
    if (!ls_dtype_is_float(l->dtype) || l->rank < 1 || l->dims[l->rank - 1] < 1) {
        ls__hint(ls__fail(LS_SHAPE, "%s: labels are %s, wants floats [.., classes]", who,
                          ls_describe(labels)),
                 "ls_one_hot makes them of class numbers");
        return NULL;
    }
    if (!(amount >= 0 && amount <= 1)) {
        ls__hint(ls__fail(LS_INVALID, "%s: amount %g", who, amount),
                 "the share that all classes have alike: 0 to 1, often 0.1");
        return NULL;
    }
    return ls_shift(ls_scale(labels, 1 - amount), amount / (double)l->dims[l->rank - 1]);
}
