/* Convolutions: square windows, NHWC. */
#include "train/model.h"

enum { USUAL_WINDOW = 3 };

static ls_status conv_takes(const ls_layer *layer, const ls_tensor *x)
{
    if (!ls_dtype_is_float(ls_dtype_of(x)) || ls_rank(x) != 4)
        return ls__refuse_x(x, "floats [n, height, width, channels]");
    if (layer->state != LS__LAYER_BUILT)
        return LS_OK;
    const ls__spec *kernel = ls__variable_spec(layer->variables.at[0]);
    if (ls_dtype_of(x) != kernel->dtype || ls_shape(x)[3] != kernel->dims[2])
        return ls__refuse_x(x, "%s [n, height, width, %lld], as its first was",
                            ls_dtype_name(kernel->dtype), (long long)kernel->dims[2]);
    return LS_OK;
}

static ls_status conv_build(ls_layer *layer, ls_tensor *x)
{
    const ls_conv_layer_options *o = &layer->set.conv;
    ls_dtype dtype = ls_dtype_of(x);
    ls_tensor *kernel = ls__kernel_initial(
        o->initial, o->spread, dtype, LS_DIMS(o->window, o->window, ls_dim(x, -1), o->filters));
    ls__layer_weight(layer, "kernel", kernel);
    if (!o->no_bias)
        ls__layer_weight(layer, "bias", ls_zeros(dtype, LS_DIMS(o->filters)));
    return ls_error_pending();
}

static ls_tensor *conv_forward(ls_layer *layer, ls_tensor *x, bool training)
{
    (void)training;
    const ls_conv_layer_options *o = &layer->set.conv;
    ls_tensor *y = ls_conv2d(x, ls_read(layer->variables.at[0]),
                             LS_CONV(.stride = { o->stride, o->stride }, .padding = o->padding));
    if (!o->no_bias)
        y = ls_add(y, ls_read(layer->variables.at[1]));
    return o->activation ? o->activation(y) : y;
}

static const ls__layer_kind conv_kind = {
    .name = "conv", .takes = conv_takes, .build = conv_build, .forward = conv_forward
};

void ls_conv_layer_init(ls_conv_layer_options *options)
{
    if (options)
        *options = (ls_conv_layer_options){ .size = sizeof *options };
}

static ls_status check(const char *who, const ls_conv_layer_options *o)
{
    ls_status st = ls__check_size(who, ".filters", o->filters);
    if (!st)
        st = ls__check_size(who, ".window", o->window);
    if (!st)
        st = ls__check_size(who, ".stride", o->stride);
    if (!st)
        st = ls__check_initial(who, o->initial, o->spread);
    if (!st && o->padding != LS_VALID && o->padding != LS_SAME)
        st = ls__hint(ls__fail(LS_INVALID, "%s: .padding %d", who, (int)o->padding),
                      "it is LS_VALID or LS_SAME");
    return st;
}

ls_layer *ls_conv_layer(ls_model *m, const ls_conv_layer_options *options)
{
    static const char who[] = "ls_conv_layer";
    ls_conv_layer_options o = { .size = sizeof o };
    ls_status st = options ? ls__check_options_size(who, options->size, sizeof o) : LS_OK;
    if (options && !st)
        o = *options;
    if (o.window == 0)
        o.window = USUAL_WINDOW;
    if (o.stride == 0)
        o.stride = 1;
    if (!st)
        st = check(who, &o);
    ls_layer *layer = ls__layer_new(who, st, m, &conv_kind, o.name);
    if (!layer)
        return NULL;
    o.name = NULL; /* it may not last */
    layer->set.conv = o;
    return layer;
}
