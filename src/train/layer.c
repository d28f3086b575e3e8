/*
 * What all layers share: making them, their names and variables, layers of a user's own.
 * Invariant: names of layers differ within a model.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "train/model.h"

/* ---- making ---------------------------------------------------------------------------------- */

static bool is_taken(const ls_model *m, const char *name)
{
    for (int i = 0; i < m->n_layers; i++)
        if (!strcmp(m->layers[i]->name, name))
            return true;
    return false;
}

/* "dense_1": the kind, and how many of it there are with this one; more when that is taken. */
static char *usual_name(const ls_model *m, const char *kind)
{
    char name[LS__NAME_MOST];
    int number = 1;
    for (int i = 0; i < m->n_layers; i++)
        number += !strcmp(m->layers[i]->kind->name, kind);
    do
        snprintf(name, sizeof name, "%s_%d", kind, number++);
    while (is_taken(m, name));
    return strdup(name);
}

static ls_status check_new(const char *who, const ls_model *m, const char *name)
{
    ls_status st = ls__check_model(who, m);
    if (!st && name)
        st = ls__check_name(who, name);
    if (st)
        return st;
    if (m->state == LS__MODEL_BUILT || m->state == LS__MODEL_MEETING)
        return ls__hint(ls__fail(LS_STATE, "%s: model '%s' %s built: no layer can be added", who,
                                 m->name, m->state == LS__MODEL_BUILT ? "is" : "is being"),
                        "make layers before ls_model_build, or in the model's function .build");
    if (name && is_taken(m, name))
        return ls__hint(
            ls__fail(LS_INVALID, "%s: model '%s' has a layer '%s' already", who, m->name, name),
            "names must differ; NULL: the kind and a number");
    return LS_OK;
}

static ls_status make_room(ls_model *m)
{
    ls_layer **more =
        ls__grow(m->layers, m->n_layers, &m->layers_room, sizeof *more, "a model's layers");
    if (!more)
        return ls_error_pending();
    m->layers = more;
    return LS_OK;
}

static ls_layer *make(ls_model *m, const ls__layer_kind *kind, const char *name)
{
    ls_layer *layer = calloc(1, sizeof *layer);
    if (layer)
        layer->name = name ? strdup(name) : usual_name(m, kind->name);
    if (!layer || !layer->name) {
        ls__fail_memory("a layer", sizeof *layer);
        free(layer);
        return NULL;
    }
    layer->model = m;
    layer->kind = kind;
    return layer;
}

ls_layer *ls__layer_new(const char *who, ls_status st, ls_model *m, const ls__layer_kind *kind,
                        const char *name)
{
    if (!st)
        st = check_new(who, m, name);
    if (!st)
        st = make_room(m);
    ls_layer *layer = st ? NULL : make(m, kind, name);
    if (layer)
        m->layers[m->n_layers++] = layer;
    else if (m)
        m->lacks = true;
    return layer;
}

void ls__layer_free(ls_layer *layer)
{
    free(layer->variables.at);
    free(layer->name);
    free(layer);
}

/* ---- for the kinds ------------------------------------------------------------------------------ */

ls_variable *ls__layer_weight(ls_layer *layer, const char *name, ls_tensor *initial)
{
    return ls__model_make(layer->model, layer, NULL, name, initial);
}

ls_status ls__refuse_x(const ls_tensor *x, const char *wants, ...)
{
    char text[128];
    va_list args;
    va_start(args, wants);
    vsnprintf(text, sizeof text, wants, args);
    va_end(args);
    return ls__fail(LS_SHAPE, "x is %s, wants %s", ls_describe(x), text);
}

ls_tensor *ls__kernel_initial(ls_initialiser initial, double spread, ls_dtype dtype, int rank,
                              const int64_t *dims)
{
    if (spread > 0)
        return ls_random_normal(dtype, rank, dims, 0, spread);
    return (initial ? initial : ls_glorot_uniform)(dtype, rank, dims);
}

ls_status ls__check_initial(const char *who, ls_initialiser initial, double spread)
{
    if (!(spread >= 0 && isfinite(spread)))
        return ls__hint(ls__fail(LS_INVALID, "%s: .spread %g", who, spread),
                        "it is a standard deviation: finite, above 0");
    if (initial && spread > 0)
        return ls__hint(ls__fail(LS_INVALID, "%s: both .initial and .spread", who),
                        "give one of them");
    return LS_OK;
}

ls_status ls__check_size(const char *who, const char *what, int64_t count)
{
    if (count >= 1)
        return LS_OK;
    return ls__hint(ls__fail(LS_INVALID, "%s: %s %lld", who, what, (long long)count),
                    "it is 1 or more");
}

/* ---- asking --------------------------------------------------------------------------------------- */

static ls_status check_layer(const char *who, const ls_layer *layer)
{
    if (layer)
        return LS_OK;
    return ls_error_pending() ? ls_error_pending()
                              : ls__fail(LS_INVALID, "%s: the layer is NULL", who);
}

const char *ls_layer_name(const ls_layer *layer)
{
    return layer ? layer->name : NULL;
}

/* What of a variable's name is behind the layer's. */
static const char *own_name(const ls_layer *layer, int i)
{
    return ls_variable_name(layer->variables.at[i]) + strlen(layer->name) + 1;
}

static void no_variable(const ls_layer *layer, const char *name)
{
    char names[160] = "";
    size_t used = 0;
    for (int i = 0; i < layer->variables.count; i++) {
        const char *one = own_name(layer, i);
        if (used + strlen(one) + 3 > sizeof names)
            break;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", one);
    }
    ls__hint(ls__fail(LS_NOT_FOUND, "layer '%s' has no variable '%s'", layer->name, name),
             used ? "it has: %s" : "it has none%s", names);
}

ls_variable *ls_layer_variable(const ls_layer *layer, const char *name)
{
    static const char who[] = "ls_layer_variable";
    if (check_layer(who, layer))
        return NULL;
    if (!name) {
        ls__fail(LS_INVALID, "%s: the name is NULL", who);
        return NULL;
    }
    for (int i = 0; i < layer->variables.count; i++)
        if (!strcmp(own_name(layer, i), name))
            return layer->variables.at[i];
    if (layer->state == LS__LAYER_BUILT)
        no_variable(layer, name);
    else
        ls__hint(ls__fail(LS_STATE, "%s: layer '%s' is not built", who, layer->name),
                 "it has its variables after ls_model_build");
    return NULL;
}

/* ---- layers of a user's own ---------------------------------------------------------------------------- */

static ls_status own_build(ls_layer *layer, ls_tensor *x)
{
    const ls_layer_options *own = &layer->set.own;
    ls_status st = own->build ? own->build(layer, x, own->user) : LS_OK;
    if (st && !ls_error_pending())
        ls__fail(st, "its function .build failed");
    return st;
}

static ls_tensor *own_forward(ls_layer *layer, ls_tensor *x, bool training)
{
    return layer->set.own.forward(layer, x, training, layer->set.own.user);
}

static const ls__layer_kind own_kind = { .name = "layer",
                                         .build = own_build,
                                         .forward = own_forward };

void ls_layer_init(ls_layer_options *options)
{
    if (options)
        *options = (ls_layer_options){ .size = sizeof *options };
}

ls_layer *ls_own_layer(ls_model *m, const ls_layer_options *options)
{
    static const char who[] = "ls_own_layer";
    static const ls_layer_options defaults = { .size = sizeof defaults };
    const ls_layer_options *o = options ? options : &defaults;
    ls_status st = ls__check_options_size(who, o->size, sizeof *o);
    if (!st && !o->forward)
        st = ls__hint(ls__fail(LS_INVALID, "%s: no .forward", who),
                      "it says what the layer makes of x");
    ls_layer *layer = ls__layer_new(who, st, m, &own_kind, st ? NULL : o->name);
    if (!layer)
        return NULL;
    layer->set.own = *o;
    layer->set.own.name = NULL;
    return layer;
}

ls_variable *ls_layer_make(ls_layer *layer, const ls_variable_options *options, const char *name,
                           ls_tensor *initial)
{
    static const char who[] = "ls_layer_make";
    if (check_layer(who, layer))
        return NULL;
    if (!name) {
        ls__fail(LS_INVALID, "%s: the name is NULL", who);
        return NULL;
    }
    if (ls__check_name(who, name))
        return NULL;
    if (layer->state != LS__LAYER_BUILDING) {
        ls__hint(
            ls__fail(LS_STATE, "%s: layer '%s' is not making its variables now", who, layer->name),
            "call it in the layer's function .build");
        return NULL;
    }
    return ls__model_make(layer->model, layer, options, name, initial);
}
