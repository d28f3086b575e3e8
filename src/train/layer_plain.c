/* Layers without variables: pools, flatten, dropout, activations. */
#include "train/model.h"

/* ---- pools -------------------------------------------------------------------------------------- */

static ls_tensor *max_pool_forward(ls_layer *layer, ls_tensor *x, bool training)
{
    (void)training;
    return ls_max_pool2d(x, layer->set.window, layer->set.window, LS_VALID);
}

static ls_tensor *avg_pool_forward(ls_layer *layer, ls_tensor *x, bool training)
{
    (void)training;
    return ls_avg_pool2d(x, layer->set.window, layer->set.window, LS_VALID);
}

static ls_tensor *global_avg_pool_forward(ls_layer *layer, ls_tensor *x, bool training)
{
    (void)layer;
    (void)training;
    return ls_global_avg_pool2d(x);
}

static const ls__layer_kind max_pool_kind = { .name = "max_pool", .forward = max_pool_forward };
static const ls__layer_kind avg_pool_kind = { .name = "avg_pool", .forward = avg_pool_forward };
static const ls__layer_kind global_avg_pool_kind = { .name = "global_avg_pool",
                                                     .forward = global_avg_pool_forward };

static ls_layer *pool(const char *who, ls_model *m, const ls__layer_kind *kind, int64_t window)
{
    ls_layer *layer = ls__layer_new(who, ls__check_size(who, "window", window), m, kind, NULL);
    if (layer)
        layer->set.window = window;
    return layer;
}

ls_layer *ls_max_pool_layer(ls_model *m, int64_t window)
{
    return pool("ls_max_pool_layer", m, &max_pool_kind, window);
}

ls_layer *ls_avg_pool_layer(ls_model *m, int64_t window)
{
    return pool("ls_avg_pool_layer", m, &avg_pool_kind, window);
}

ls_layer *ls_global_avg_pool_layer(ls_model *m)
{
    return ls__layer_new("ls_global_avg_pool_layer", LS_OK, m, &global_avg_pool_kind, NULL);
}

/* ---- flatten, dropout, activation ------------------------------------------------------------------ */

static ls_tensor *flatten_forward(ls_layer *layer, ls_tensor *x, bool training)
{
    (void)layer;
    (void)training;
    return ls_flatten_rows(x);
}

static const ls__layer_kind flatten_kind = { .name = "flatten", .forward = flatten_forward };

ls_layer *ls_flatten_layer(ls_model *m)
{
    return ls__layer_new("ls_flatten_layer", LS_OK, m, &flatten_kind, NULL);
}

static ls_tensor *dropout_forward(ls_layer *layer, ls_tensor *x, bool training)
{
    return training && layer->set.rate > 0 ? ls_dropout(x, layer->set.rate) : x;
}

static const ls__layer_kind dropout_kind = { .name = "dropout", .forward = dropout_forward };

ls_layer *ls_dropout_layer(ls_model *m, double rate)
{
    static const char who[] = "ls_dropout_layer";
    ls_status st = LS_OK;
    if (!(rate >= 0 && rate < 1))
        st = ls__hint(ls__fail(LS_INVALID, "%s: rate %g", who, rate),
                      "the share of numbers that become 0: in [0, 1)");
    ls_layer *layer = ls__layer_new(who, st, m, &dropout_kind, NULL);
    if (layer)
        layer->set.rate = rate;
    return layer;
}

static ls_tensor *activation_forward(ls_layer *layer, ls_tensor *x, bool training)
{
    (void)training;
    return layer->set.activation(x);
}

static const ls__layer_kind activation_kind = { .name = "activation",
                                                .forward = activation_forward };

ls_layer *ls_activation_layer(ls_model *m, ls_activation activation)
{
    static const char who[] = "ls_activation_layer";
    ls_status st = LS_OK;
    if (!activation)
        st = ls__hint(ls__fail(LS_INVALID, "%s: the activation is NULL", who),
                      "give ls_relu, ls_tanh, or a function of yours");
    ls_layer *layer = ls__layer_new(who, st, m, &activation_kind, NULL);
    if (layer)
        layer->set.activation = activation;
    return layer;
}
