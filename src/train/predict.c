/*
 * ls_predict: what the model makes of every element of a dataset, in the order of the data: replicas
 * share each batch, and their outputs are put together again.
 */
#include <lockstep/input.h>

#include "base/status.h"
#include "tensor/tensor.h"
#include "train/trainer.h"

/* The batch as one: what the program gave, before replicas shared it. */
static ls_value *whole(ls_strategy *s, ls_value *batch)
{
    if (ls_kind_of(batch) == LS_LEAF)
        return ls_leaf(ls_gather_replicas(s, batch, 0));
    int n = ls_length(batch);
    ls_value **parts = ls__frame_alloc((size_t)(n + 1) * sizeof(ls_value *));
    for (int i = 0; parts && i < n; i++)
        parts[i] = ls_leaf(ls_gather_replicas(s, ls_child(batch, i), 0));
    return parts ? ls_list(n, parts) : NULL;
}

static ls_status predict_one(ls_trainer *t, ls_iterator *it, ls_predicted fn, void *user)
{
    ls_value *batch = NULL;
    ls_status st = ls_next(it, &batch);
    if (st)
        return st;
    ls_value *parts = ls_run(t->strategy, t->ask, batch);
    ls_tensor *outputs = ls_gather_replicas(t->strategy, parts, 0);
    ls_value *all = outputs ? whole(t->strategy, batch) : NULL;
    if (!all)
        return ls_error_pending();
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    st = fn(outputs, all, user);
    bool enough = st == LS_END && !ls_error_pending();
    if (enough)
        st = LS_OK;
    if (st && !ls_error_pending())
        ls__fail(st, "it returned %s", ls_status_name(st));
    st = ls__error_scope_close(&scope, st, "ls_predict: the callback");
    return st ? st : enough ? LS_END : LS_OK;
}

typedef struct asked {
    ls_dataset *data;
    ls_predicted fn;
    void *user;
} asked;

static ls_status predict_all(ls_trainer *t, void *user)
{
    const asked *a = user;
    ls_iterator *it = ls_iterate(ls_distribute(t->strategy, a->data));
    ls_status st = it ? LS_OK : ls_error_pending();
    while (!st)
        LS_FRAME
            st = predict_one(t, it, a->fn, a->user);
    ls_iterator_free(it);
    return st == LS_END ? LS_OK : st;
}

ls_status ls_predict(ls_trainer *t, ls_dataset *data, ls_predicted fn, void *user)
{
    ls_status st = ls__check_trainer("ls_predict", t);
    if (!st && !data)
        st = ls_error_pending() ? ls_error_pending()
                                : ls__fail(LS_INVALID, "ls_predict: the data is NULL");
    if (!st && !fn)
        st = ls__fail(LS_INVALID, "ls_predict: the callback is NULL");
    return st ? st : ls__aside(t, predict_all, &(asked){ data, fn, user });
}
