/*
 * What the metrics count: of outputs and labels, a number or bool for each row or place. Invariant:
 * shapes are checked, never stretched: [n, 1] beside [n] would be n x n answers to nobody's question.
 */
#include <lockstep/ops.h>
#include <math.h>
#include <string.h>

#include "base/status.h"
#include "tensor/tensor.h"
#include "train/metric.h"

static ls_status refuse(const ls_tensor *outputs, const ls_tensor *labels, const char *hint)
{
    return ls__hint(
        ls__fail(LS_SHAPE, "outputs are %s, labels %s", ls_describe(outputs), ls_describe(labels)),
        "%s", hint);
}

/* ---- classes ------------------------------------------------------------------------------------ */

/* The label of each row of outputs [.., classes], an i64: labels are that, or one-hot. */
static ls_tensor *classes_of(const ls_tensor *outputs, ls_tensor *labels)
{
    const ls__spec *o = &outputs->spec, *l = &labels->spec;
    static const char hint[] = "wants outputs [.., classes], and labels [..] that are "
                               "integers, or [.., classes]";
    if (o->rank < 1 || o->dtype == LS_BYTES || o->dtype == LS_BOOL) {
        refuse(outputs, labels, hint);
        return NULL;
    }
    if (ls__spec_same_shape(o, l) && l->dtype != LS_BYTES)
        return ls_argmax(l->dtype == LS_BOOL ? ls_cast(labels, LS_U8) : labels, -1);
    bool rows = l->rank == o->rank - 1 && ls_dtype_is_integer(l->dtype) &&
                !memcmp(l->dims, o->dims, sizeof *l->dims * (size_t)l->rank);
    if (!rows) {
        refuse(outputs, labels, hint);
        return NULL;
    }
    return ls_cast(labels, LS_I64);
}

static ls_tensor *is_class(ls_tensor *outputs, ls_tensor *labels, void *user)
{
    (void)user;
    ls_tensor *classes = classes_of(outputs, labels);
    return classes ? ls_equal(ls_argmax(outputs, -1), classes) : NULL;
}

static ls_tensor *is_among(ls_tensor *outputs, ls_tensor *labels, void *user)
{
    const ls_metric *m = user;
    ls_tensor *classes = classes_of(outputs, labels);
    ls_value *best = classes ? ls_top_k(outputs, m->k) : NULL;
    if (!best)
        return NULL;
    ls_tensor *hits = ls_equal(ls_item(best, 1), ls_expand_dims(classes, -1));
    return ls_any(hits, LS_AXES(-1), false);
}

ls_metric *ls_accuracy(const char *name)
{
    return ls__metric_new("ls_accuracy", name, "accuracy", is_class, NULL);
}

ls_metric *ls_top_k_accuracy(const char *name, int64_t k)
{
    static const char who[] = "ls_top_k_accuracy";
    if (k < 1) {
        ls__hint(ls__fail(LS_INVALID, "%s: k is %lld", who, (long long)k), "it is 1 or more");
        return NULL;
    }
    ls_metric *m = ls__metric_new(who, name, "top_k_accuracy", is_among, NULL);
    if (m) {
        m->user = m;
        m->k = k;
    }
    return m;
}

/* ---- numbers --------------------------------------------------------------------------------------- */

static ls_status check_pairs(const ls_tensor *outputs, const ls_tensor *labels)
{
    if (ls__spec_same_shape(&outputs->spec, &labels->spec) && outputs->spec.dtype != LS_BYTES &&
        labels->spec.dtype != LS_BYTES)
        return LS_OK;
    return refuse(outputs, labels, "give a label for each output, in the same shape");
}

static ls_tensor *is_side(ls_tensor *outputs, ls_tensor *labels, void *user)
{
    const ls_metric *m = user;
    if (check_pairs(outputs, labels))
        return NULL;
    ls_tensor *wide = ls_cast(outputs, LS_F64);
    ls_tensor *ones = ls_greater(wide, ls_scalar(LS_F64, m->threshold));
    return ls_equal(ls_cast(ones, labels->spec.dtype), labels);
}

ls_metric *ls_binary_accuracy(const char *name, double threshold)
{
    static const char who[] = "ls_binary_accuracy";
    if (isnan(threshold)) {
        ls__hint(ls__fail(LS_INVALID, "%s: the threshold is NaN", who),
                 "0 for logits, 0.5 for probabilities");
        return NULL;
    }
    ls_metric *m = ls__metric_new(who, name, "binary_accuracy", is_side, NULL);
    if (m) {
        m->user = m;
        m->threshold = threshold;
    }
    return m;
}

static ls_tensor *distance(ls_tensor *outputs, ls_tensor *labels, void *user)
{
    (void)user;
    if (check_pairs(outputs, labels))
        return NULL;
    return ls_abs(ls_sub(ls_cast(outputs, LS_F64), ls_cast(labels, LS_F64)));
}

ls_metric *ls_mean_absolute_error(const char *name)
{
    return ls__metric_new("ls_mean_absolute_error", name, "mean_absolute_error", distance, NULL);
}

/* ---- what others say ------------------------------------------------------------------------------------ */

ls_metric *ls_mean_metric(const char *name)
{
    return ls__metric_new("ls_mean_metric", name, "mean", NULL, NULL);
}

ls_metric *ls_own_metric(const char *name, ls_metric_fn fn, void *user)
{
    static const char who[] = "ls_own_metric";
    if (!fn) {
        ls__hint(ls__fail(LS_INVALID, "%s: the function is NULL", who),
                 "it gives a number for each row");
        return NULL;
    }
    return ls__metric_new(who, name, "metric", fn, user);
}
