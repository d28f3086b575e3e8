/*
 * x through a model, and through a layer. Invariant: a model runs only on an x that fits it, a layer
 * on one that it takes, when it has its variables; errors say in which layer of which model.
 */
#include "dispatch/context.h"
#include "tensor/tensor.h"
#include "train/model.h"

/* ---- models ---------------------------------------------------------------------------------- */

/* Whether x is [n, input...]. */
static bool fits(const ls_model *m, const ls_tensor *x)
{
    const ls__spec *want = &m->input;
    const int64_t *dims = ls_shape(x);
    if (ls_dtype_of(x) != want->dtype || ls_rank(x) != want->rank + 1)
        return false;
    for (int i = 0; i < want->rank; i++) {
        bool shorter = i == 0 && m->shorter && dims[1] > 0 && dims[1] < want->dims[0];
        if (dims[1 + i] != want->dims[i] && !shorter)
            return false;
    }
    return true;
}

static ls_tensor *in_sequence(ls_model *m, ls_tensor *x, bool training)
{
    for (int i = 0; i < m->n_layers && x; i++)
        x = ls_forward(m->layers[i], x, training);
    return x;
}

ls_tensor *ls__model_pass(ls_model *m, ls_tensor *x, bool training)
{
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_tensor *y = m->forward ? m->forward(m->net, x, training) : in_sequence(m, x, training);
    ls_status st = y ? LS_OK : ls_error_pending();
    if (!y && !st)
        st = ls__hint(ls__fail(LS_INVALID, "its function .forward gave NULL"),
                      "return what the model makes of x");
    return ls__error_scope_close(&scope, st, "model '%s'", m->name) ? NULL : y;
}

ls_tensor *ls_model_forward(ls_model *m, ls_tensor *x, bool training)
{
    static const char who[] = "ls_model_forward";
    if (ls__check_model(who, m) || ls__check_tensor(who, "x", x))
        return NULL;
    if (m->state != LS__MODEL_BUILT) {
        ls__hint(ls__fail(LS_STATE, "%s: model '%s' is not built", who, m->name),
                 "call ls_model_build first, in the scope of the strategy that trains it");
        return NULL;
    }
    if (!fits(m, x)) {
        ls__fail(LS_SHAPE, "model '%s': x is %s, wants any number of %s%s", m->name, ls_describe(x),
                 m->input_text, m->shorter ? " or shorter" : "");
        return NULL;
    }
    return ls__model_pass(m, x, training);
}

/* ---- layers ------------------------------------------------------------------------------------ */

/* Makes the variables for the first x, when the model meets its layers. */
static ls_status build_layer(ls_layer *layer, ls_tensor *x)
{
    const ls_model *m = layer->model;
    if (layer->state == LS__LAYER_BUILDING)
        return ls__fail(LS_STATE, "it is met while it is built");
    if (m->state == LS__MODEL_BUILT)
        return ls__hint(
            ls__fail(LS_STATE, "it was not met when model '%s' was built, and has no variables",
                     m->name),
            "the model's function .forward must meet every layer also when `training` is "
            "false and x has no rows");
    if (m->state != LS__MODEL_MEETING)
        return ls__hint(ls__fail(LS_STATE, "model '%s' is not built", m->name),
                        "call ls_model_build first");
    ls_status st = LS_OK;
    layer->state = LS__LAYER_BUILDING;
    if (layer->kind->build) {
        bool before = ls__draw_initialisers(true);
        st = layer->kind->build(layer, x);
        ls__draw_initialisers(before);
    }
    if (!st)
        st = ls_error_pending();
    layer->state = st ? LS__LAYER_NEW : LS__LAYER_BUILT;
    return st;
}

static ls_tensor *run_layer(ls_layer *layer, ls_tensor *x, bool training)
{
    if (layer->kind->takes && layer->kind->takes(layer, x))
        return NULL;
    if (layer->state != LS__LAYER_BUILT && build_layer(layer, x))
        return NULL;
    ls_tensor *y = layer->kind->forward(layer, x, training);
    if (!y && !ls_error_pending())
        ls__hint(ls__fail(LS_INVALID, "its function gave NULL"), "return what it makes of x");
    return y;
}

ls_tensor *ls_forward(ls_layer *layer, ls_tensor *x, bool training)
{
    if (!layer && !ls_error_pending())
        ls__hint(ls__fail(LS_INVALID, "ls_forward: the layer is NULL"),
                 "was it made? What makes a layer gives NULL when it fails");
    if (!layer || ls__check_tensor("ls_forward", "x", x))
        return NULL;
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_tensor *y = run_layer(layer, x, training);
    ls_status st = y ? LS_OK : ls_error_pending();
    return ls__error_scope_close(&scope, st, "layer '%s'", layer->name) ? NULL : y;
}
