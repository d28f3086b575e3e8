/*
 * ls_early_stop. What it knows (the best value, how many epochs ago, and the weights of then when they
 * are wanted) is part of checkpoints, so a resumed run stops where the whole one would have.
 */
#include <lockstep/variable.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "train/callback.h"

typedef struct early_stop {
    ls_callback callback;
    ls__watch watch;
    int patience, waited;
    double least;
    bool wants_best;
    ls_value *best; /* kept: ls_variables_save of the best epoch; NULL: none */
} early_stop;

void ls_early_stop_init(ls_early_stop_options *options)
{
    if (options)
        *options = (ls_early_stop_options){ .size = sizeof *options };
}

static ls_status keep_weights(early_stop *e, const ls_model *m)
{
    ls_value *now = ls_variables_save(ls_model_count(m), ls_model_variables(m));
    ls_value *kept = now ? ls_value_keep(now) : NULL;
    if (!kept)
        return ls_error_pending();
    ls_value_drop(e->best);
    e->best = kept;
    return LS_OK;
}

static ls_status after_epoch(const ls_progress *p, void *user)
{
    early_stop *e = user;
    double value;
    ls_status st = ls__watch_read(&e->watch, p->trainer, &value);
    if (st)
        return st;
    if (ls__watch_better(&e->watch, value, e->least)) {
        e->watch.best = value;
        e->waited = 0;
        return e->wants_best ? keep_weights(e, ls_trainer_model(p->trainer)) : LS_OK;
    }
    return ++e->waited >= e->patience ? LS_END : LS_OK;
}

static ls_status give_best(const ls_progress *p, void *user)
{
    early_stop *e = user;
    const ls_model *m = ls_trainer_model(p->trainer);
    if (!e->best || e->waited == 0)
        return LS_OK;
    return ls_variables_restore(ls_model_count(m), ls_model_variables(m), e->best);
}

/* ---- saving ------------------------------------------------------------------------------------------ */

static ls_value *save(void *user)
{
    const early_stop *e = user;
    enum { MOST = 254 };
    const char *keys[2 + MOST] = { "best", "waited" };
    ls_value *values[2 + MOST] = { ls_leaf(ls_scalar(LS_F64, e->watch.best)),
                                   ls_leaf(ls_scalar(LS_I64, e->waited)) };
    int n = 2;
    for (int i = 0; e->best && i < ls_length(e->best); i++) {
        if (n == MOST) {
            ls__hint(ls__fail(LS_UNSUPPORTED, "early stop: the best weights are too many to save"),
                     "leave .best out, and use ls_best_checkpoint");
            return NULL;
        }
        char *key = ls__frame_alloc(strlen(ls_key(e->best, i)) + sizeof "weights/");
        if (!key)
            return NULL;
        strcat(strcpy(key, "weights/"), ls_key(e->best, i));
        keys[n] = key;
        values[n++] = ls_child(e->best, i);
    }
    return ls_dict(n, keys, values);
}

static ls_status load(ls_value *saved, void *user)
{
    early_stop *e = user;
    const char *keys[256];
    ls_value *values[256];
    int n = 0;
    for (int i = 0; i < ls_length(saved) && n < 256; i++)
        if (strncmp(ls_key(saved, i), "weights/", 8) == 0) {
            keys[n] = ls_key(saved, i) + 8;
            values[n++] = ls_child(saved, i);
        }
    double best = ls_to_double(ls_leaf_tensor(ls_get(saved, "best")));
    int waited = (int)ls_to_int(ls_leaf_tensor(ls_get(saved, "waited")));
    ls_value *weights = n > 0 ? ls_value_keep(ls_dict(n, keys, values)) : NULL;
    if (ls_error_pending())
        return ls_error_pending();
    ls_value_drop(e->best);
    e->best = weights;
    e->watch.best = best;
    e->waited = waited;
    return LS_OK;
}

static void free_early_stop(void *user)
{
    early_stop *e = user;
    ls_value_drop(e->best);
    free(e);
}

ls_callback *ls_early_stop(const ls_early_stop_options *options)
{
    static const ls_early_stop_options defaults = { .size = sizeof defaults };
    const ls_early_stop_options *o = options ? options : &defaults;
    if (o->size != sizeof *o) {
        ls__hint(ls__fail(LS_INVALID, "ls_early_stop: options of %zu bytes, wants %zu", o->size,
                          sizeof *o),
                 "make them with LS_EARLY_STOP(...), or start from ls_early_stop_init");
        return NULL;
    }
    if (o->patience < 0 || !(o->least >= 0)) {
        ls__fail(LS_INVALID, "ls_early_stop: a patience of %d, a least change of %g", o->patience,
                 o->least);
        return NULL;
    }
    ls__watch watch;
    if (ls__watch_open("ls_early_stop", o->watch, &watch))
        return NULL;
    early_stop *e = ls__callback_new("early stop", sizeof *e);
    if (!e)
        return NULL;
    e->watch = watch;
    e->patience = o->patience ? o->patience : 1;
    e->least = o->least;
    e->wants_best = o->best;
    e->callback.epoch = after_epoch;
    e->callback.end = give_best;
    e->callback.save = save;
    e->callback.load = load;
    e->callback.free = free_early_stop;
    return &e->callback;
}
