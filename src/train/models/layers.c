/*
 * Layers. Invariant: `variables` lists what was made in the order it was made, and
 * nothing after the first failure; the initialisers draw in that order, so a model's
 * start is a function of the seed.
 */
#include "train/models/layers.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "dispatch/context.h"

enum { NAME_ROOM = 96 };

void ls__layers_free(ls__layers *l)
{
    for (int i = 0; i < l->count; i++)
        ls_variable_free(l->variables[i]);
    free(l->variables);
    *l = (ls__layers){ .variables = NULL };
}

static ls_status grow(ls__layers *l)
{
    if (l->count < l->room)
        return LS_OK;
    int room = l->room ? 2 * l->room : 16;
    ls_variable **more = realloc(l->variables, sizeof *more * (size_t)room);
    if (!more)
        return ls__fail_memory("a model's variables", sizeof *more * (size_t)room);
    l->variables = more;
    l->room = room;
    return LS_OK;
}

ls_variable *ls__layers_variable(ls__layers *l, const char *layer, const char *name,
                                 ls_tensor *initial, bool trainable)
{
    if (!l->status)
        l->status = grow(l);
    if (l->status)
        return NULL;
    char full[NAME_ROOM];
    int length = snprintf(full, sizeof full, "%s/%s", layer, name);
    if (length < 0 || (size_t)length >= sizeof full)
        l->status = ls__fail(LS_INVALID, "the name of a layer, '%.40s...', is too long", layer);
    /* What is not trained are statistics: each replica's own, one value for all when read. */
    const ls_variable_options *options = trainable ? NULL
                                                   : LS_VARIABLE(.synchronization = LS_SYNC_ON_READ,
                                                                 .aggregation = LS_AGGREGATE_MEAN);
    ls_variable *v = l->status ? NULL : ls_variable_with(options, full, initial);
    if (!v && !l->status)
        l->status = ls_error_pending();
    if (v)
        l->variables[l->count++] = v;
    return v;
}

ls_tensor *ls__normal_initial(int rank, const int64_t *dims, double stddev)
{
    bool before = ls__draw_initialisers(true);
    ls_tensor *t = ls_random_normal(LS_F32, rank, dims, 0, stddev);
    ls__draw_initialisers(before);
    return t;
}

/* ---- dense and conv --------------------------------------------------------------- */

ls__dense_layer ls__dense_new(ls__layers *l, const char *name, int64_t in, int64_t out,
                              double stddev)
{
    ls__dense_layer d;
    ls_tensor *kernel = stddev > 0 ? ls__normal_initial(LS_DIMS(in, out), stddev)
                                   : ls_glorot_uniform(LS_F32, LS_DIMS(in, out));
    d.kernel = ls__layers_variable(l, name, "kernel", kernel, true);
    d.bias = ls__layers_variable(l, name, "bias", ls_zeros(LS_F32, LS_DIMS(out)), true);
    return d;
}

ls_tensor *ls__dense(const ls__dense_layer *d, ls_tensor *x)
{
    return ls_dense(x, ls_read(d->kernel), ls_read(d->bias));
}

ls__conv_layer ls__conv_new(ls__layers *l, const char *name, int64_t window, int64_t in,
                            int64_t out)
{
    ls__conv_layer c = { .stride = 1, .padding = LS_VALID };
    ls_tensor *kernel = ls_glorot_uniform(LS_F32, LS_DIMS(window, window, in, out));
    c.kernel = ls__layers_variable(l, name, "kernel", kernel, true);
    c.bias = ls__layers_variable(l, name, "bias", ls_zeros(LS_F32, LS_DIMS(out)), true);
    return c;
}

ls__conv_layer ls__conv_same_new(ls__layers *l, const char *name, int64_t window, int64_t in,
                                 int64_t out, int64_t stride)
{
    ls__conv_layer c = { .stride = stride, .padding = LS_SAME };
    ls_tensor *kernel = ls_he_normal(LS_F32, LS_DIMS(window, window, in, out));
    c.kernel = ls__layers_variable(l, name, "kernel", kernel, true);
    return c;
}

ls_tensor *ls__conv(const ls__conv_layer *c, ls_tensor *x)
{
    const ls_conv_options *options =
        LS_CONV(.stride = { c->stride, c->stride }, .padding = c->padding);
    ls_tensor *y = ls_conv2d(x, ls_read(c->kernel), options);
    return c->bias ? ls_add(y, ls_read(c->bias)) : y;
}

/* ---- norms -------------------------------------------------------------------------- */

static const double momentum = 0.99, batch_epsilon = 1e-3, layer_epsilon = 1e-5;

ls__batch_norm_layer ls__batch_norm_new(ls__layers *l, const char *name, int64_t channels)
{
    ls__batch_norm_layer b;
    ls_tensor *zeros = ls_zeros(LS_F32, LS_DIMS(channels));
    ls_tensor *ones = ls_ones(LS_F32, LS_DIMS(channels));
    b.scale = ls__layers_variable(l, name, "scale", ones, true);
    b.offset = ls__layers_variable(l, name, "offset", zeros, true);
    b.mean = ls__layers_variable(l, name, "mean", zeros, false);
    b.variance = ls__layers_variable(l, name, "variance", ones, false);
    return b;
}

static void move_towards(ls_variable *moving, ls_tensor *batch)
{
    ls_assign(moving, ls_add(ls_scale(ls_read(moving), momentum), ls_scale(batch, 1 - momentum)));
}

ls_tensor *ls__batch_norm(const ls__batch_norm_layer *b, ls_tensor *x, bool training)
{
    ls_tensor *scale = ls_read(b->scale), *offset = ls_read(b->offset);
    if (!training)
        return ls_batch_norm_inference(x, scale, offset, ls_read(b->mean), ls_read(b->variance),
                                       batch_epsilon);
    ls_value *normed = ls_batch_norm(x, scale, offset, batch_epsilon);
    if (!normed)
        return NULL;
    if (ls_count(x) > 0) {
        move_towards(b->mean, ls_item(normed, 1));
        move_towards(b->variance, ls_item(normed, 2));
    }
    return ls_item(normed, 0);
}

ls__layer_norm_layer ls__layer_norm_new(ls__layers *l, const char *name, int64_t width)
{
    ls__layer_norm_layer n;
    n.scale = ls__layers_variable(l, name, "scale", ls_ones(LS_F32, LS_DIMS(width)), true);
    n.offset = ls__layers_variable(l, name, "offset", ls_zeros(LS_F32, LS_DIMS(width)), true);
    return n;
}

ls_tensor *ls__layer_norm(const ls__layer_norm_layer *n, ls_tensor *x)
{
    return ls_layer_norm(x, ls_read(n->scale), ls_read(n->offset), layer_epsilon);
}
