/*
 * What a replica does in a step of training, of testing, and of asking. Ordinary steps for ls_run:
 * nothing here knows how many replicas there are but by way of the strategy.
 */
#include <lockstep/loss.h>
#include <lockstep/ops.h>
#include <lockstep/tape.h>
#include <math.h>

#include "base/status.h"
#include "train/trainer.h"

/* A row may have a loss for each of its places (a text's bytes): its loss is their mean. */
static ls_tensor *row_losses(ls_tensor *each)
{
    if (!each || ls_rank(each) < 2)
        return each;
    int64_t axes[LS_MAX_RANK];
    int n = ls_rank(each) - 1;
    for (int i = 0; i < n; i++)
        axes[i] = 1 + i;
    return ls_mean(each, n, axes, false);
}

static ls_tensor *prepared(const ls_trainer *t, ls_tensor *x)
{
    return t->prepare && x ? t->prepare(x, t->prepare_user) : x;
}

static ls_status count(ls_trainer *t, ls_tensor *each, ls_tensor *outputs, ls_tensor *labels)
{
    ls_status st = ls_metric_add(t->metrics[0], each, NULL);
    for (int i = 1; i < t->n_metrics && !st; i++)
        st = ls_metric_update(t->metrics[i], outputs, labels);
    return st;
}

ls_value *ls__train_step(ls_value *batch, void *user)
{
    ls_trainer *t = user;
    ls_tensor *labels = ls_item(batch, 1), *x = prepared(t, ls_item(batch, 0));
    ls_tape *tape = ls_tape_open();
    ls_tensor *outputs = ls_model_forward(t->model, x, true);
    ls_tensor *each = ls_model_loss(t->model)(outputs, labels);
    ls_tensor *loss = ls_compute_average_loss(row_losses(each), t->global_batch);
    ls_tensor *seen = ls_require_finite(loss); /* before anything is written */
    /* Behind the update nothing may be that can fail: the weights would be saved first, in every step. */
    if (count(t, each, outputs, labels) ||
        ls_minimize(t->optimizer, tape, loss, ls_model_count(t->model),
                    ls_model_variables(t->model)))
        return NULL;
    return ls_leaf(seen);
}

/* As a step of training goes, up to the loss. It is run to be watched: it must not happen, so it always
 * fails. */
ls_value *ls__look_step(ls_value *batch, void *user)
{
    ls_trainer *t = user;
    ls_tensor *outputs = ls_model_forward(t->model, prepared(t, ls_item(batch, 0)), true);
    ls_tensor *each = ls_model_loss(t->model)(outputs, ls_item(batch, 1));
    ls_tensor *loss = ls_compute_average_loss(row_losses(each), t->global_batch);
    return ls_leaf(ls_require_finite(ls_add(loss, ls_scalar(ls_dtype_of(loss), NAN))));
}

ls_value *ls__test_step(ls_value *batch, void *user)
{
    ls_trainer *t = user;
    ls_tensor *labels = ls_item(batch, 1);
    ls_tensor *outputs = ls_model_forward(t->model, prepared(t, ls_item(batch, 0)), false);
    ls_tensor *each = ls_model_loss(t->model)(outputs, labels);
    return count(t, each, outputs, labels) ? NULL : ls_list(0, NULL);
}

ls_value *ls__ask_step(ls_value *batch, void *user)
{
    ls_trainer *t = user;
    ls_tensor *x = ls_kind_of(batch) == LS_LEAF ? ls_leaf_tensor(batch) : ls_item(batch, 0);
    return ls_leaf(ls_model_forward(t->model, prepared(t, x), false));
}

int64_t ls__batch_rows(const char *who, const ls_trainer *t, ls_value *batch)
{
    if (ls_kind_of(batch) != LS_LIST || ls_length(batch) != 2) {
        ls__hint(ls__fail(LS_INVALID, "%s: an element of the data is no list of x and y", who),
                 "ls_map can make one of it: ls_tensors(2, (ls_tensor *[]){ x, y })");
        return -1;
    }
    int64_t rows = 0;
    int replicas = ls_num_replicas(t->strategy);
    for (int i = 0; i < replicas; i++) {
        ls_tensor *y = ls_item(ls_select(batch, i), 0);
        if (!y || ls_rank(y) < 1) {
            ls__fail(LS_INVALID, "%s: x has no axis of rows", who);
            return -1;
        }
        rows += ls_dim(y, 0);
    }
    return rows;
}
