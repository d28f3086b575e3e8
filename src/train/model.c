/*
 * Making models, and asking them. Invariant: what a model was told is checked and copied here;
 * variables come with model_build.c.
 */
#include "train/model.h"

#include <stdlib.h>
#include <string.h>

#include "data/type.h"
#include "strategy/context.h"
#include "strategy/variable.h"

enum { DEFAULT_BATCH = 64 };

/* ---- asked of all ------------------------------------------------------------------------- */

ls_status ls__check_model(const char *who, const ls_model *m)
{
    if (m)
        return LS_OK;
    return ls_error_pending() ? ls_error_pending()
                              : ls__fail(LS_INVALID, "%s: the model is NULL", who);
}

ls_status ls__check_name(const char *who, const char *name)
{
    size_t length = strlen(name);
    bool printable = true;
    for (size_t i = 0; i < length && printable; i++)
        printable = (unsigned char)name[i] >= ' ' && name[i] != 127;
    if (printable && length > 0 && length <= LS__NAME_MOST)
        return LS_OK;
    if (!printable)
        return ls__fail(LS_INVALID, "%s: a name with a control character in it", who);
    return ls__hint(ls__fail(LS_INVALID, "%s: a name of %zu bytes, '%.40s%s'", who, length, name,
                             length > 40 ? "..." : ""),
                    "a name has 1 to %d bytes", (int)LS__NAME_MOST);
}

/* ---- what a sample is ------------------------------------------------------------------------ */

static bool is_sample(const ls__type *type)
{
    if (ls__type_leaves(type) != 1 || ls_kind_of(ls__type_structure(type)) != LS_LEAF)
        return false;
    const ls__leaf_type *leaf = ls__type_leaf(type, 0);
    if (!leaf->dtype || leaf->dtype == LS_BYTES || leaf->rank < 0 || leaf->rank >= LS_MAX_RANK)
        return false;
    for (int i = 0; i < leaf->rank; i++)
        if (leaf->dims[i] < 1)
            return false;
    return true;
}

static ls_status parse_sample(const char *model, const char *field, const char *text, ls__spec *out)
{
    ls__type *type = NULL;
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_status st = ls__type_parse("it", text, &type);
    if (!st && !is_sample(type))
        st = ls__hint(ls__fail(LS_INVALID, "it is '%s'", text),
                      "wants numbers of a known shape, without the axis of the batch: "
                      "\"f32[28,28,1]\", \"i32[]\"");
    if (!st) {
        const ls__leaf_type *leaf = ls__type_leaf(type, 0);
        st = ls__spec_make(out, "it", leaf->dtype, leaf->rank, leaf->dims);
    }
    ls__type_unref(type);
    return ls__error_scope_close(&scope, st, "ls_model_new: .%s of '%s'", field, model);
}

/* ---- making ------------------------------------------------------------------------------------ */

void ls_model_init(ls_model_options *options)
{
    if (options)
        *options = (ls_model_options){ .size = sizeof *options };
}

static ls_status check_options(const ls_model_options *o)
{
    static const char who[] = "ls_model_new";
    if (!o)
        return ls__hint(ls__fail(LS_INVALID, "%s: the options are NULL", who),
                        "give at least LS_MODEL(.input = \"f32[28,28,1]\")");
    ls_status st = ls__check_options_size(who, o->size, sizeof *o);
    if (!st && o->name)
        st = ls__check_name(who, o->name);
    if (st)
        return st;
    const char *name = o->name ? o->name : "model";
    if (!o->input)
        return ls__hint(ls__fail(LS_INVALID, "%s: '%s' has no .input", who, name),
                        "say what one sample is, without the axis of the batch: "
                        "\"f32[28,28,1]\"");
    if (o->batch < 0)
        return ls__hint(ls__fail(LS_INVALID, "%s: .batch of '%s' is %d", who, name, o->batch),
                        "samples per replica: 1 or more; 0: %d", (int)DEFAULT_BATCH);
    if (o->net_bytes > 0 && o->user)
        return ls__hint(ls__fail(LS_INVALID, "%s: '%s' has both .net_bytes and .user", who, name),
                        "the model keeps the struct (.net_bytes), or you do (.user)");
    return LS_OK;
}

static char *copied(const char *text)
{
    return text ? strdup(text) : NULL;
}

/* The texts and the struct; false: out of memory. */
static bool fill(ls_model *m, const ls_model_options *o)
{
    m->name = copied(o->name ? o->name : "model");
    m->what = copied(o->what ? o->what : "");
    m->input_text = copied(ls__spec_text(&m->input));
    m->label_text = copied(ls__spec_text(&m->label));
    m->net_bytes = o->net_bytes;
    m->net = o->net_bytes > 0 ? calloc(1, o->net_bytes) : o->user;
    return m->name && m->what && m->input_text && m->label_text && (m->net || !o->net_bytes);
}

ls_model *ls_model_new(const ls_model_options *options)
{
    ls__spec input, label;
    if (check_options(options))
        return NULL;
    const char *name = options->name ? options->name : "model";
    if (parse_sample(name, "input", options->input, &input) ||
        parse_sample(name, "label", options->label ? options->label : "i32[]", &label))
        return NULL;
    ls_model *m = calloc(1, sizeof *m);
    if (m) {
        m->input = input;
        m->label = label;
    }
    if (!m || !fill(m, options)) {
        ls__fail_memory("a model", sizeof *m + options->net_bytes);
        ls_model_free(m);
        return NULL;
    }
    m->shorter = options->shorter;
    m->batch = options->batch ? options->batch : DEFAULT_BATCH;
    m->loss = options->loss ? options->loss : ls_sparse_softmax_xent;
    m->build = options->build;
    m->forward = options->forward;
    return m;
}

void ls_model_free(ls_model *m)
{
    if (!m || ls__check_alone("ls_model_free", "free it after the run"))
        return;
    for (int i = 0; i < m->n_layers; i++)
        ls__layer_free(m->layers[i]);
    free(m->layers);
    for (int i = 0; i < m->variables.count; i++)
        ls_variable_free(m->variables.at[i]);
    free(m->variables.at);
    if (m->net_bytes > 0)
        free(m->net);
    free(m->name);
    free(m->what);
    free(m->input_text);
    free(m->label_text);
    free(m);
}

/* ---- asking ------------------------------------------------------------------------------------- */

const char *ls_model_name(const ls_model *m)
{
    return m ? m->name : NULL;
}

ls_status ls_model_rename(ls_model *m, const char *name)
{
    const char *who = "ls_model_rename";
    ls_status st = ls__check_model(who, m);
    if (!st && !name)
        st = ls__fail(LS_INVALID, "%s: the name is NULL", who);
    if (!st)
        st = ls__check_name(who, name);
    if (st)
        return st;
    char *its = strdup(name);
    if (!its)
        return ls__fail_memory(who, strlen(name) + 1);
    free(m->name);
    m->name = its;
    return LS_OK;
}

const char *ls_model_what(const ls_model *m)
{
    return m ? m->what : NULL;
}

const char *ls_model_input(const ls_model *m)
{
    return m ? m->input_text : NULL;
}

const char *ls_model_label(const ls_model *m)
{
    return m ? m->label_text : NULL;
}

int ls_model_batch(const ls_model *m)
{
    return m ? m->batch : 0;
}

ls_loss_fn ls_model_loss(const ls_model *m)
{
    return m ? m->loss : NULL;
}

int ls_model_count(const ls_model *m)
{
    return m && m->state == LS__MODEL_BUILT ? m->variables.count : 0;
}

ls_variable *const *ls_model_variables(const ls_model *m)
{
    return ls_model_count(m) ? m->variables.at : NULL;
}

int64_t ls_model_parameters(const ls_model *m)
{
    int64_t sum = 0;
    for (int i = 0; i < ls_model_count(m); i++)
        if (ls_variable_trainable(m->variables.at[i]))
            sum += ls__spec_count(ls__variable_spec(m->variables.at[i]));
    return sum;
}
