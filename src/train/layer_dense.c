/* Dense layers: x kernel + bias over the last axis. And embeddings: rows of a table. */
#include "train/model.h"

/* ---- dense ------------------------------------------------------------------------------------ */

static ls_status dense_takes(const ls_layer *layer, const ls_tensor *x)
{
    if (!ls_dtype_is_float(ls_dtype_of(x)) || ls_rank(x) < 2)
        return ls__refuse_x(x, "floats [n, ..., in]");
    if (layer->state != LS__LAYER_BUILT)
        return LS_OK;
    const ls__spec *kernel = ls__variable_spec(layer->variables.at[0]);
    if (ls_dtype_of(x) != kernel->dtype || ls_shape(x)[ls_rank(x) - 1] != kernel->dims[0])
        return ls__refuse_x(x, "%s with a last axis of %lld, as its first was",
                            ls_dtype_name(kernel->dtype), (long long)kernel->dims[0]);
    return LS_OK;
}

static ls_status dense_build(ls_layer *layer, ls_tensor *x)
{
    const ls_dense_layer_options *o = &layer->set.dense;
    ls_dtype dtype = ls_dtype_of(x);
    ls_tensor *kernel =
        ls__kernel_initial(o->initial, o->spread, dtype, LS_DIMS(ls_dim(x, -1), o->units));
    ls__layer_weight(layer, "kernel", kernel);
    if (!o->no_bias)
        ls__layer_weight(layer, "bias", ls_zeros(dtype, LS_DIMS(o->units)));
    return ls_error_pending();
}

static ls_tensor *dense_forward(ls_layer *layer, ls_tensor *x, bool training)
{
    (void)training;
    const ls_dense_layer_options *o = &layer->set.dense;
    ls_tensor *kernel = ls_read(layer->variables.at[0]);
    ls_tensor *y =
        o->no_bias ? ls_matmul(x, kernel) : ls_dense(x, kernel, ls_read(layer->variables.at[1]));
    return o->activation ? o->activation(y) : y;
}

static const ls__layer_kind dense_kind = {
    .name = "dense", .takes = dense_takes, .build = dense_build, .forward = dense_forward
};

void ls_dense_layer_init(ls_dense_layer_options *options)
{
    if (options)
        *options = (ls_dense_layer_options){ .size = sizeof *options };
}

ls_layer *ls_dense_layer(ls_model *m, const ls_dense_layer_options *options)
{
    static const char who[] = "ls_dense_layer";
    static const ls_dense_layer_options defaults = { .size = sizeof defaults };
    const ls_dense_layer_options *o = options ? options : &defaults;
    ls_status st = ls__check_options_size(who, o->size, sizeof *o);
    const char *name = st ? NULL : o->name;
    if (!st)
        st = ls__check_size(who, ".units", o->units);
    if (!st)
        st = ls__check_initial(who, o->initial, o->spread);
    ls_layer *layer = ls__layer_new(who, st, m, &dense_kind, name);
    if (!layer)
        return NULL;
    layer->set.dense = *o;
    layer->set.dense.name = NULL; /* it may not last */
    return layer;
}

/* ---- embedding ---------------------------------------------------------------------------------- */

static const double usual_spread = 0.05;

static ls_status embedding_takes(const ls_layer *layer, const ls_tensor *x)
{
    (void)layer;
    if (ls_dtype_of(x) == LS_I32 || ls_dtype_of(x) == LS_I64)
        return LS_OK;
    return ls__refuse_x(x, "i32 or i64, rows of the table");
}

static ls_status embedding_build(ls_layer *layer, ls_tensor *x)
{
    (void)x;
    double spread = layer->set.embedding.spread;
    ls_tensor *table =
        ls_random_normal(LS_F32, LS_DIMS(layer->set.embedding.rows, layer->set.embedding.width), 0,
                         spread > 0 ? spread : usual_spread);
    return ls__layer_weight(layer, "table", table) ? LS_OK : ls_error_pending();
}

static ls_tensor *embedding_forward(ls_layer *layer, ls_tensor *x, bool training)
{
    (void)training;
    return ls_embedding(ls_read(layer->variables.at[0]), x);
}

static const ls__layer_kind embedding_kind = { .name = "embedding",
                                               .takes = embedding_takes,
                                               .build = embedding_build,
                                               .forward = embedding_forward };

ls_layer *ls_embedding_layer(ls_model *m, const char *name, int64_t rows, int64_t width,
                             double spread)
{
    static const char who[] = "ls_embedding_layer";
    ls_status st = ls__check_size(who, "rows", rows);
    if (!st)
        st = ls__check_size(who, "width", width);
    if (!st)
        st = ls__check_initial(who, NULL, spread);
    ls_layer *layer = ls__layer_new(who, st, m, &embedding_kind, name);
    if (!layer)
        return NULL;
    layer->set.embedding.rows = rows;
    layer->set.embedding.width = width;
    layer->set.embedding.spread = spread;
    return layer;
}
