/*
 * Norms. A batch norm's moving statistics are each replica's own and follow its batches: one value
 * for all, their mean, when read outside of replicas; so does TensorFlow under MirroredStrategy.
 * With `sync` every replica has the statistics of all rows and moves alike. Batches without rows
 * move nothing. Variables of a bf16 batch norm are f32: a hundredth of a step is lost in bf16.
 */
#include <lockstep/strategy.h>
#include <math.h>

#include "strategy/sync_batch_norm.h"
#include "train/model.h"
#include "train/optimizer.h"

/* Floats whose last axis is that of the scale. */
static ls_status norm_takes(const ls_layer *layer, const ls_tensor *x)
{
    if (!ls_dtype_is_float(ls_dtype_of(x)) || ls_rank(x) < 2)
        return ls__refuse_x(x, "floats [n, ..., width]");
    if (layer->state != LS__LAYER_BUILT)
        return LS_OK;
    const ls__spec *scale = ls__variable_spec(layer->variables.at[0]);
    if (ls_shape(x)[ls_rank(x) - 1] != scale->dims[0])
        return ls__refuse_x(x, "a last axis of %lld, as its first was", (long long)scale->dims[0]);
    return LS_OK;
}

/* ---- batch norm ------------------------------------------------------------------------------------ */

static ls_dtype statistics_dtype(const ls_tensor *x)
{
    return ls_dtype_of(x) == LS_BF16 ? LS_F32 : ls_dtype_of(x);
}

static ls_status batch_norm_build(ls_layer *layer, ls_tensor *x)
{
    ls_dtype dtype = statistics_dtype(x);
    ls_tensor *zeros = ls_zeros(dtype, LS_DIMS(ls_dim(x, -1)));
    ls_tensor *ones = ls_ones(dtype, LS_DIMS(ls_dim(x, -1)));
    const bool sync = layer->set.batch_norm.sync; /* then all have the same */
    const ls_variable_options *own =
        LS_VARIABLE(.synchronization = LS_SYNC_ON_READ,
                    .aggregation = sync ? LS_AGGREGATE_ONLY_FIRST : LS_AGGREGATE_MEAN);
    ls__layer_weight(layer, "scale", ones);
    ls__layer_weight(layer, "offset", zeros);
    ls__model_make(layer->model, layer, own, "mean", zeros);
    ls__model_make(layer->model, layer, own, "variance", ones);
    return ls_error_pending();
}

/* `rows` is a tensor, of all replicas, when it is not known; NULL: there are some. */
static ls_status move_towards(ls_variable *moving, ls_tensor *batch, double momentum,
                              ls_tensor *rows)
{
    ls_tensor *old = ls_read(moving);
    ls_tensor *now = ls_add(ls_scale(old, momentum), ls_scale(batch, 1 - momentum));
    if (rows)
        now = ls_where(ls_greater(rows, ls_scalar(ls_dtype_of(rows), 0)), now, old);
    return ls_assign(moving, now);
}

/* A list of the result, mean, variance, and, when only the replicas together know, the rows. */
static ls_value *normed(const ls_batch_norm_layer_options *o, ls_tensor *x, ls_tensor *scale,
                        ls_tensor *offset)
{
    ls_replica *replica = ls_get_replica_context();
    if (!o->sync || !replica || ls_num_replicas(ls_replica_strategy(replica)) == 1)
        return ls_batch_norm(x, scale, offset, o->epsilon);
    return ls__sync_batch_norm(replica, x, scale, offset, o->epsilon);
}

static ls_tensor *train_batch_norm(ls_layer *layer, ls_tensor *x, ls_tensor *scale,
                                   ls_tensor *offset)
{
    const ls_batch_norm_layer_options *o = &layer->set.batch_norm;
    ls_variable *const *v = layer->variables.at;
    ls_value *parts = normed(o, x, scale, offset);
    if (!parts)
        return NULL;
    ls_tensor *rows = ls_length(parts) > 3 ? ls_item(parts, 3) : NULL;
    if ((rows || ls_count(x) > 0) && (move_towards(v[2], ls_item(parts, 1), o->momentum, rows) ||
                                      move_towards(v[3], ls_item(parts, 2), o->momentum, rows)))
        return NULL;
    return ls_item(parts, 0);
}

static ls_tensor *batch_norm_forward(ls_layer *layer, ls_tensor *x, bool training)
{
    ls_variable *const *v = layer->variables.at;
    const ls_dtype dtype = ls_dtype_of(x);
    if (dtype == LS_BF16)
        x = ls_cast(x, LS_F32);
    ls_tensor *scale = ls_read(v[0]), *offset = ls_read(v[1]);
    ls_tensor *y = training ? train_batch_norm(layer, x, scale, offset)
                            : ls_batch_norm_inference(x, scale, offset, ls_read(v[2]),
                                                      ls_read(v[3]), layer->set.batch_norm.epsilon);
    return dtype == LS_BF16 ? ls_cast(y, LS_BF16) : y;
}

static const ls__layer_kind batch_norm_kind = { .name = "batch_norm",
                                                .takes = norm_takes,
                                                .build = batch_norm_build,
                                                .forward = batch_norm_forward };

void ls_batch_norm_layer_init(ls_batch_norm_layer_options *options)
{
    if (options)
        *options = (ls_batch_norm_layer_options){ .size = sizeof *options };
}

ls_layer *ls_batch_norm_layer(ls_model *m, const ls_batch_norm_layer_options *options)
{
    static const char who[] = "ls_batch_norm_layer";
    ls_batch_norm_layer_options o = { .size = sizeof o };
    ls_status st = options ? ls__check_options_size(who, options->size, sizeof o) : LS_OK;
    if (options && !st)
        o = *options;
    o.momentum = ls__or_default(o.momentum, 0.99);
    o.epsilon = ls__or_default(o.epsilon, 1e-3);
    if (!st && !(o.momentum >= 0 && o.momentum <= 1 && o.epsilon >= 0 && isfinite(o.epsilon)))
        st = ls__hint(
            ls__fail(LS_INVALID, "%s: .momentum %g, .epsilon %g", who, o.momentum, o.epsilon),
            "a momentum is in [0, 1], an epsilon 0 or more; -1 stands for 0");
    ls_layer *layer = ls__layer_new(who, st, m, &batch_norm_kind, o.name);
    if (!layer)
        return NULL;
    o.name = NULL; /* it may not last */
    layer->set.batch_norm = o;
    return layer;
}

/* ---- layer norm -------------------------------------------------------------------------------------- */

static ls_status layer_norm_build(ls_layer *layer, ls_tensor *x)
{
    ls__layer_weight(layer, "scale", ls_ones(ls_dtype_of(x), LS_DIMS(ls_dim(x, -1))));
    ls__layer_weight(layer, "offset", ls_zeros(ls_dtype_of(x), LS_DIMS(ls_dim(x, -1))));
    return ls_error_pending();
}

static ls_tensor *layer_norm_forward(ls_layer *layer, ls_tensor *x, bool training)
{
    (void)training;
    ls_variable *const *v = layer->variables.at;
    return ls_layer_norm(x, ls_read(v[0]), ls_read(v[1]), layer->set.epsilon);
}

static const ls__layer_kind layer_norm_kind = { .name = "layer_norm",
                                                .takes = norm_takes,
                                                .build = layer_norm_build,
                                                .forward = layer_norm_forward };

ls_layer *ls_layer_norm_layer(ls_model *m, const char *name, double epsilon)
{
    static const char who[] = "ls_layer_norm_layer";
    ls_status st = LS_OK;
    if (!(epsilon >= 0 && isfinite(epsilon)))
        st = ls__hint(ls__fail(LS_INVALID, "%s: epsilon %g", who, epsilon),
                      "it is finite, above 0; 0: 1e-5");
    ls_layer *layer = ls__layer_new(who, st, m, &layer_norm_kind, name);
    if (layer)
        layer->set.epsilon = epsilon > 0 ? epsilon : 1e-5;
    return layer;
}
