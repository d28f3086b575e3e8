/*
 * Building: from layers to variables. Invariant: a build that fails leaves no variable, no layer that
 * it made, no draw; the model can be built again.
 *
 * What `build` functions draw are initial values: they depend on the seed and on how many were drawn
 * before, on nothing else. The way of the batch without rows through the model is nobody's step:
 * no tape notes it, and what it draws is given back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "dispatch/context.h"
#include "dispatch/sink.h"
#include "dispatch/tape.h"
#include "strategy/context.h"
#include "strategy/variable.h"
#include "tensor/tensor.h"
#include "train/model.h"

/* ---- variables ------------------------------------------------------------------------------ */

const ls__spec *ls__variable_spec(const ls_variable *v)
{
    return ls__cell_spec(v->cells[0]);
}

static ls_status make_room(ls__variable_list *l)
{
    ls_variable **more = ls__grow(l->at, l->count, &l->room, sizeof *more, "a model's variables");
    if (!more)
        return ls_error_pending();
    l->at = more;
    return LS_OK;
}

static ls_status check_new_name(const ls_model *m, const char *full)
{
    for (int i = 0; i < m->variables.count; i++)
        if (!strcmp(ls_variable_name(m->variables.at[i]), full))
            return ls__hint(
                ls__fail(LS_INVALID, "model '%s': a second variable '%s'", m->name, full),
                "names of variables must differ");
    return LS_OK;
}

ls_variable *ls__model_make(ls_model *m, ls_layer *layer, const ls_variable_options *options,
                            const char *name, ls_tensor *initial)
{
    char full[2 * LS__NAME_MOST + 2];
    snprintf(full, sizeof full, "%s%s%s", layer ? layer->name : "", layer ? "/" : "", name);
    if (check_new_name(m, full) || make_room(&m->variables) ||
        (layer && make_room(&layer->variables)))
        return NULL;
    ls_variable *v = ls_variable_with(options, full, initial);
    if (!v)
        return NULL;
    m->variables.at[m->variables.count++] = v;
    if (layer)
        layer->variables.at[layer->variables.count++] = v;
    return v;
}

ls_variable *ls_model_variable(ls_model *m, const char *name, ls_tensor *initial, bool trainable)
{
    static const char who[] = "ls_model_variable";
    if (ls__check_model(who, m))
        return NULL;
    if (!name) {
        ls__fail(LS_INVALID, "%s: the name is NULL", who);
        return NULL;
    }
    if (ls__check_name(who, name))
        return NULL;
    if (m->state != LS__MODEL_MAKING) {
        ls__hint(ls__fail(LS_STATE, "%s: model '%s' is not making its variables now", who, m->name),
                 "call it in the function .build of the model's options");
        return NULL;
    }
    return ls__model_make(m, NULL, LS_VARIABLE(.trainable = trainable ? LS_TRAINABLE : LS_FROZEN),
                          name, initial);
}

/* ---- the two halves of a build ----------------------------------------------------------------- */

static ls_status make_own(ls_model *m)
{
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    m->state = LS__MODEL_MAKING;
    bool before = ls__draw_initialisers(true);
    if (m->build)
        m->build(m, m->net);
    ls__draw_initialisers(before);
    ls_status st = LS_OK;
    if (!m->forward && m->n_layers == 0 && !ls_error_pending())
        st = ls__hint(ls__fail(LS_INVALID, "it has no layers"),
                      "add some (ls_dense_layer...), or give it .forward");
    return ls__error_scope_close(&scope, st, "ls_model_build: model '%s'", m->name);
}

/* A batch of no rows goes through. */
static ls_status meet_layers(ls_model *m)
{
    ls__spec none = { .dtype = m->input.dtype, .rank = m->input.rank + 1 };
    memcpy(none.dims + 1, m->input.dims, sizeof *none.dims * (size_t)m->input.rank);
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    m->state = LS__MODEL_MEETING;
    ls_tensor *x = ls_zeros(none.dtype, none.rank, none.dims);
    ls_tensor *y = ls__model_pass(m, x, false);
    return ls__error_scope_close(&scope, y ? LS_OK : ls_error_pending(), "ls_model_build");
}

static void undo(ls_model *m, int layers)
{
    while (m->n_layers > layers)
        ls__layer_free(m->layers[--m->n_layers]);
    for (int i = 0; i < m->n_layers; i++) {
        m->layers[i]->state = LS__LAYER_NEW;
        m->layers[i]->variables.count = 0;
    }
    while (m->variables.count > 0)
        ls_variable_free(m->variables.at[--m->variables.count]);
    if (m->net_bytes > 0)
        memset(m->net, 0, m->net_bytes);
    m->lacks = false;
    m->state = LS__MODEL_OPEN;
}

/* ---- all of it -------------------------------------------------------------------------------------- */

static ls_status check_here(const ls_model *m)
{
    static const char who[] = "ls_model_build";
    if (m->state != LS__MODEL_OPEN)
        return ls__fail(LS_STATE, "%s: model '%s' is being built", who, m->name);
    if (m->lacks && ls_error_pending())
        return ls_error_pending(); /* that of the layer that could not be made */
    ls_status st = ls__check_alone(who, "build the model before the run, in the strategy's scope");
    if (!st && ls__sink_get())
        st = ls__hint(ls__fail(LS_STATE, "%s: model '%s' is not built, and a step is being traced",
                               who, m->name),
                      "build the model before the step");
    return st;
}

ls_status ls_model_build(ls_model *m)
{
    ls_status st = ls__check_model("ls_model_build", m);
    if (st || m->state == LS__MODEL_BUILT)
        return st;
    st = check_here(m);
    if (st)
        return st;
    const int layers = m->n_layers;
    ls__draw_state before, after;
    ls__draws_get(&before);
    int tapes = ls__tape_pause();
    LS_FRAME {
        st = make_own(m);
        if (!st)
            st = meet_layers(m);
    }
    ls__tape_resume(tapes);
    ls__draws_get(&after);
    if (!st)
        before.initialisers = after.initialisers;
    ls__draws_set(&before);
    if (st)
        undo(m, layers);
    else
        m->state = LS__MODEL_BUILT;
    return st;
}
