/*
 * Making a trainer, and asking it. It owns the model, optimizer and metrics it was given, from the
 * moment at which nothing can fail any more.
 */
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/utf8.h"
#include "tensor/tensor.h"

void ls_trainer_init(ls_trainer_options *options)
{
    if (options)
        *options = (ls_trainer_options){ .size = sizeof *options };
}

ls_status ls__check_trainer(const char *who, const ls_trainer *t)
{
    if (t)
        return LS_OK;
    return ls_error_pending() ? ls_error_pending()
                              : ls__fail(LS_INVALID, "%s: the trainer is NULL", who);
}

/* ---- options --------------------------------------------------------------------------------- */

static ls_status check_options(const ls_trainer_options *o)
{
    if (!o || o->size != sizeof *o)
        return ls__hint(ls__fail(LS_INVALID, "ls_trainer_new: options of %zu bytes, wants %zu",
                                 o ? o->size : 0, sizeof *o),
                        "make them with LS_TRAINER(...), or start from ls_trainer_init");
    if (!o->model)
        return ls_error_pending() ? ls_error_pending()
                                  : ls__fail(LS_INVALID, "ls_trainer_new: there is no .model");
    if (o->global_batch < 0)
        return ls__hint(ls__fail(LS_INVALID, "ls_trainer_new: a global batch of %lld",
                                 (long long)o->global_batch),
                        "the rows of all replicas together; 0: a replica's own times their number");
    if (o->n_metrics < 0 || (o->n_metrics > 0 && !o->metrics))
        return ls__fail(LS_INVALID, "ls_trainer_new: %d metrics in %s", o->n_metrics,
                        o->metrics ? "a list" : "NULL");
    for (int i = 0; i < o->n_metrics; i++)
        if (!o->metrics[i])
            return ls_error_pending()
                       ? ls_error_pending()
                       : ls__fail(LS_INVALID, "ls_trainer_new: metric %d is NULL", i);
    if (ls_get_replica_context() && ls_has_strategy())
        return ls__fail(LS_STATE, "ls_trainer_new: called in a replica");
    return LS_OK;
}

/* ---- metrics ------------------------------------------------------------------------------------ */

/* Labels that are indices have an accuracy. */
static bool has_classes(const ls_model *m)
{
    const char *label = ls_model_label(m);
    return label && (label[0] == 'i' || label[0] == 'u') &&
           ls_model_loss(m) == ls_sparse_softmax_xent;
}

static ls_status check_metric_name(const ls_trainer *t, int i)
{
    const char *name = ls_metric_name(t->metrics[i]);
    if (!name)
        return ls_error_pending();
    for (int j = 0; j < i; j++)
        if (strcmp(name, ls_metric_name(t->metrics[j])) == 0)
            return ls__hint(
                ls__fail(LS_INVALID, "ls_trainer_new: two metrics are named '%s'", name),
                "the loss is one of them");
    if (strncmp(name, "test_", 5) == 0)
        return ls__fail(LS_INVALID,
                        "ls_trainer_new: metric '%s': names of figures that begin with 'test_' are "
                        "those of tests",
                        name);
    return LS_OK;
}

/* A checkpoint has both by name. */
static ls_status check_metric_variables(const ls_trainer *t, int i)
{
    ls_variable *const *own = ls_metric_variables(t->metrics[i]);
    for (int k = 0; k < 2; k++)
        for (int v = 0; v < ls_model_count(t->model); v++) {
            const char *name = ls_variable_name(ls_model_variables(t->model)[v]);
            if (strcmp(ls_variable_name(own[k]), name) == 0)
                return ls__fail(LS_INVALID,
                                "ls_trainer_new: metric '%s' and the model both have a variable "
                                "'%s'",
                                ls_metric_name(t->metrics[i]), name);
        }
    return LS_OK;
}

/* "test_" and the name; NULL: an error is pending. */
static char *test_name(const char *name)
{
    size_t bytes = strlen(name) + sizeof "test_";
    char *out = malloc(bytes);
    if (!out) {
        ls__fail_memory("a metric's name", bytes);
        return NULL;
    }
    snprintf(out, bytes, "test_%s", name);
    return out;
}

/* The loss, then what was asked for. Those of ours are made in the scope. */
static ls_status take_metrics(ls_trainer *t, const ls_trainer_options *o)
{
    bool accuracy = !o->metrics && has_classes(t->model);
    t->n_metrics = 1 + o->n_metrics + accuracy;
    t->metrics = calloc((size_t)t->n_metrics, sizeof *t->metrics);
    t->test_names = calloc((size_t)t->n_metrics, sizeof *t->test_names);
    t->values = calloc(2 * (size_t)t->n_metrics, sizeof *t->values);
    if (!t->metrics || !t->test_names || !t->values)
        return ls__fail_memory("metrics", (size_t)t->n_metrics * sizeof *t->values);
    t->metrics[0] = ls_mean_metric("loss");
    if (accuracy)
        t->metrics[1] = ls_accuracy("accuracy");
    for (int i = 0; i < o->n_metrics; i++)
        t->metrics[1 + i] = o->metrics[i];
    for (int i = 0; i < t->n_metrics; i++) {
        if (check_metric_name(t, i) || check_metric_variables(t, i))
            return ls_error_pending();
        t->test_names[i] = test_name(ls_metric_name(t->metrics[i]));
        if (!t->test_names[i])
            return ls_error_pending();
        t->values[i] = t->values[t->n_metrics + i] = NAN;
    }
    return LS_OK;
}

/* ---- making --------------------------------------------------------------------------------------- */

/* What cannot be saved is refused before anything is trained: checkpoints have names of their own, and
 * all are UTF-8. */
static ls_status check_name(const char *name)
{
    if (strncmp(name, "lockstep/", 9) == 0)
        return ls__fail(LS_INVALID,
                        "ls_trainer_new: variable '%s': no name begins with 'lockstep/'", name);
    if (ls__utf8_good(name) < strlen(name))
        return ls__fail(LS_INVALID, "ls_trainer_new: variable '%s': its name is no UTF-8", name);
    return LS_OK;
}

static ls_status check_names(const ls_trainer *t)
{
    ls_status st = LS_OK;
    for (int i = 0; i < ls_model_count(t->model) && !st; i++)
        st = check_name(ls_variable_name(ls_model_variables(t->model)[i]));
    for (int i = 0; i < 2 * t->n_metrics && !st; i++)
        st = check_name(ls_variable_name(ls_metric_variables(t->metrics[i / 2])[i % 2]));
    return st;
}

static ls_status make(ls_trainer *t, const ls_trainer_options *o)
{
    LS_SCOPE (t->strategy) {
        if (ls_model_build(t->model) || take_metrics(t, o) || check_names(t))
            return ls_error_pending();
        if (!t->optimizer)
            t->optimizer = ls_adam(NULL);
    }
    t->train = ls_trace_with(LS_TRACE(.name = "train"), ls__train_step, t);
    t->test = ls_trace_with(LS_TRACE(.name = "test"), ls__test_step, t);
    t->ask = ls_trace_with(LS_TRACE(.name = "predict"), ls__ask_step, t);
    if (o->command && !(t->command = strdup(o->command)))
        return ls__fail_memory("a command", strlen(o->command));
    if (o->data && !(t->data = strdup(o->data)))
        return ls__fail_memory("a name of data", strlen(o->data));
    return ls_error_pending();
}

/* What the program gave stays its own. */
static void give_back(ls_trainer *t, const ls_trainer_options *o)
{
    t->model = NULL;
    if (o->optimizer)
        t->optimizer = NULL;
    for (int i = 0; t->metrics && i < o->n_metrics; i++)
        t->metrics[1 + i] = NULL;
}

ls_trainer *ls_trainer_new(const ls_trainer_options *options)
{
    if (check_options(options))
        return NULL;
    ls_trainer *t = calloc(1, sizeof *t);
    if (!t) {
        ls__fail_memory("ls_trainer_new", sizeof *t);
        return NULL;
    }
    t->strategy = options->strategy ? options->strategy : ls_default_strategy();
    t->model = options->model;
    t->optimizer = options->optimizer;
    t->prepare = options->prepare;
    t->prepare_user = options->prepare_user;
    t->global_batch = options->global_batch;
    t->seed = options->seed;
    t->at.epoch_steps = LS_UNKNOWN;
    ls_status st = LS_NO_MEMORY;
    LS_FRAME
        st = make(t, options);
    if (!st)
        return t;
    give_back(t, options);
    ls_trainer_free(t);
    return NULL;
}

void ls_trainer_free(ls_trainer *t)
{
    if (!t)
        return;
    if (t->fitting || t->aside) {
        ls__fail(LS_STATE, "ls_trainer_free: it is being %s", t->fitting ? "fitted" : "asked");
        return;
    }
    ls_function_free(t->train);
    ls_function_free(t->test);
    ls_function_free(t->ask);
    for (int i = 0; i < t->n_metrics; i++) {
        if (t->metrics)
            ls_metric_free(t->metrics[i]);
        if (t->test_names)
            free(t->test_names[i]);
    }
    ls_optimizer_free(t->optimizer);
    ls_model_free(t->model);
    if (t->position)
        ls_drop(t->position);
    free(t->metrics);
    free(t->test_names);
    free(t->values);
    free(t->command);
    free(t->data);
    free(t);
}

/* ---- asking ---------------------------------------------------------------------------------------- */

ls_strategy *ls_trainer_strategy(const ls_trainer *t)
{
    return t ? t->strategy : NULL;
}

ls_model *ls_trainer_model(const ls_trainer *t)
{
    return t ? t->model : NULL;
}

ls_optimizer *ls_trainer_optimizer(const ls_trainer *t)
{
    return t ? t->optimizer : NULL;
}

ls_function *ls_trainer_step(const ls_trainer *t)
{
    return t ? t->train : NULL;
}

const char *ls_trainer_names(const ls_trainer *t, int i)
{
    if (!t || i < 0 || i >= 2 * t->n_metrics)
        return NULL;
    return i < t->n_metrics ? ls_metric_name(t->metrics[i]) : t->test_names[i - t->n_metrics];
}

double ls_trainer_value(const ls_trainer *t, const char *name)
{
    const char *known;
    for (int i = 0; name && (known = ls_trainer_names(t, i)); i++)
        if (strcmp(known, name) == 0)
            return i < t->n_metrics && t->counting ? ls_metric_result(t->metrics[i]) : t->values[i];
    return NAN;
}
