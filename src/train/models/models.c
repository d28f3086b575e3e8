/*
 * The table of models, and what all of them share: making, asking, checking x,
 * and the loss. Invariant: forward is only called on an x that fits the row.
 */
#include "train/models/models.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "tensor/tensor.h"
#include "train/models/kinds.h"
#include "train/models/layers.h"

struct ls__model {
    const ls__model_kind *kind;
    void *net;
    ls__layers layers; /* owns the variables */
};

const ls__model_kind *const ls__model_kinds[] = { &ls__model_cnn, &ls__model_cnn2,
                                                  &ls__model_mlp, &ls__model_resnet,
                                                  &ls__model_gpt, NULL };

/* ---- making ------------------------------------------------------------------------ */

static ls_status unknown(const char *name)
{
    char names[128] = "";
    for (const ls__model_kind *const *k = ls__model_kinds; *k; k++) {
        if (strlen(names) + strlen((*k)->name) + 3 > sizeof names)
            break;
        strcat(strcat(names, names[0] ? ", " : ""), (*k)->name);
    }
    return ls__hint(ls__fail(LS_NOT_FOUND, "there is no model '%s'", name), "the models are: %s",
                    names);
}

ls__model *ls__model_new(const char *name)
{
    if (!name) {
        ls__fail(LS_INVALID, "ls__model_new: the name is NULL");
        return NULL;
    }
    for (const ls__model_kind *const *k = ls__model_kinds; *k; k++)
        if (!strcmp((*k)->name, name))
            return ls__model_make(*k);
    unknown(name);
    return NULL;
}

ls__model *ls__model_make(const ls__model_kind *kind)
{
    ls__model *m = calloc(1, sizeof *m);
    void *net = calloc(1, kind->net_size);
    if (!m || !net) {
        ls__fail_memory("a model", sizeof *m + kind->net_size);
        free(net);
        free(m);
        return NULL;
    }
    m->kind = kind;
    m->net = net;
    LS_FRAME {
        kind->build(&m->layers, net);
    }
    if (!m->layers.status)
        return m;
    ls__model_free(m);
    return NULL;
}

void ls__model_free(ls__model *m)
{
    if (!m)
        return;
    ls__layers_free(&m->layers);
    free(m->net);
    free(m);
}

/* ---- asking -------------------------------------------------------------------------- */

const ls__model_kind *ls__model_kind_of(const ls__model *m)
{
    return m ? m->kind : NULL;
}

int ls__model_count(const ls__model *m)
{
    return m ? m->layers.count : 0;
}

ls_variable *const *ls__model_variables(const ls__model *m)
{
    return m ? m->layers.variables : NULL;
}

int64_t ls__model_parameters(const ls__model *m)
{
    int64_t sum = 0;
    LS_FRAME {
        for (int i = 0; i < ls__model_count(m); i++)
            if (ls_variable_trainable(m->layers.variables[i]))
                sum += ls_count(ls_read(m->layers.variables[i]));
    }
    return sum;
}

/* ---- running --------------------------------------------------------------------------- */

/* Whether x is [n, input...]. */
static bool fits(const ls__model_kind *kind, const ls_tensor *x)
{
    const ls__spec *want = &kind->input;
    const int64_t *dims = ls_shape(x);
    if (ls_dtype_of(x) != want->dtype || ls_rank(x) != want->rank + 1)
        return false;
    for (int i = 0; i < want->rank; i++) {
        bool shorter = i == 0 && kind->shorter && dims[1] > 0 && dims[1] < want->dims[0];
        if (dims[1 + i] != want->dims[i] && !shorter)
            return false;
    }
    return true;
}

static ls_status check_input(const char *who, const ls__model *m, const ls_tensor *x)
{
    if (!m)
        return ls_error_pending() ? ls_error_pending()
                                  : ls__fail(LS_INVALID, "%s: the model is NULL", who);
    ls_status st = ls__check_tensor(who, "x", x);
    if (st || fits(m->kind, x))
        return st;
    return ls__fail(LS_SHAPE, "model '%s': x is %s, wants any number of %s%s", m->kind->name,
                    ls_describe(x), ls__spec_text(&m->kind->input),
                    m->kind->shorter ? " or shorter" : "");
}

ls_tensor *ls__model_forward(ls__model *m, ls_tensor *x, bool training)
{
    if (check_input("ls__model_forward", m, x))
        return NULL;
    return m->kind->forward(m->net, x, training);
}

ls_tensor *ls__model_loss(ls__model *m, ls_value *batch, bool training)
{
    if (batch && m && (ls_kind_of(batch) != LS_LIST || ls_length(batch) != 2)) {
        ls__hint(ls__fail(LS_INVALID, "model '%s': the batch is not a list of two", m->kind->name),
                 "give ls_tensors(2, (ls_tensor *[]){ x, y })");
        return NULL;
    }
    ls_tensor *logits = ls__model_forward(m, ls_item(batch, 0), training);
    return ls_mean(ls_sparse_softmax_xent(logits, ls_item(batch, 1)), LS_ALL_AXES, false);
}
