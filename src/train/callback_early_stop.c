/*
 * ls_early_stop. What it knows (the best value, how many epochs ago, and the weights of then when they
 * are wanted) is part of checkpoints, so a resumed run stops where the whole one would have.
 */
#include <lockstep/variable.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "train/callback.h"

typedef struct early_stop {
    ls_callback callback;
    ls__watch watch;
    int patience, waited;
    double least;
    bool wants_best, stopped;
    char name[96];
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
    ls_status st = ls__watch_read(&e->watch, p, &value);
    if (st)
        return st;
    if (ls__watch_better(&e->watch, value, e->least)) {
        e->watch.best = value;
        e->waited = 0;
        e->stopped = false;
        return e->wants_best ? keep_weights(e, ls_trainer_model(p->trainer)) : LS_OK;
    }
    e->stopped = ++e->waited >= e->patience;
    return e->stopped ? LS_END : LS_OK;
}

/* A run that was stopped and is resumed, or fitted again, stays where it stopped. */
static ls_status at_begin(const ls_progress *p, void *user)
{
    (void)p;
    return ((early_stop *)user)->stopped ? LS_END : LS_OK;
}

/* Only of a run that it stopped itself: any other may go on where it stands. */
static ls_status give_best(const ls_progress *p, void *user)
{
    early_stop *e = user;
    const ls_model *m = ls_trainer_model(p->trainer);
    if (!e->best || !e->stopped)
        return LS_OK;
    return ls_variables_restore(ls_model_count(m), ls_model_variables(m), e->best);
}

/* ---- saving ------------------------------------------------------------------------------------------ */

static const char prefix[] = "weights/";

static ls_value *save(void *user)
{
    const early_stop *e = user;
    size_t room = 3 + (e->best ? (size_t)ls_length(e->best) : 0);
    const char **keys = ls__frame_alloc(room * sizeof *keys);
    ls_value **values = ls__frame_alloc(room * sizeof(ls_value *));
    if (!keys || !values)
        return NULL;
    int n = 0;
    keys[n] = "best", values[n++] = ls_leaf(ls_scalar(LS_F64, e->watch.best));
    keys[n] = "waited", values[n++] = ls_leaf(ls_scalar(LS_I64, e->waited));
    keys[n] = "stopped", values[n++] = ls_leaf(ls_scalar(LS_I64, e->stopped));
    for (int i = 0; e->best && i < ls_length(e->best); i++) {
        char *key = ls__frame_alloc(strlen(ls_key(e->best, i)) + sizeof prefix);
        if (!key)
            return NULL;
        keys[n] = strcat(strcpy(key, prefix), ls_key(e->best, i));
        values[n++] = ls_child(e->best, i);
    }
    return ls_dict(n, keys, values);
}

/* The weights among what was saved, kept; NULL: there are none, or an error is pending. */
static ls_value *saved_weights(ls_value *saved)
{
    const char **keys = ls__frame_alloc((size_t)ls_length(saved) * sizeof *keys);
    ls_value **values = ls__frame_alloc((size_t)ls_length(saved) * sizeof(ls_value *));
    int n = 0;
    for (int i = 0; keys && values && i < ls_length(saved); i++)
        if (strncmp(ls_key(saved, i), prefix, sizeof prefix - 1) == 0) {
            keys[n] = ls_key(saved, i) + sizeof prefix - 1;
            values[n++] = ls_child(saved, i);
        }
    return n > 0 ? ls_value_keep(ls_dict(n, keys, values)) : NULL;
}

static ls_status load(ls_value *saved, void *user)
{
    early_stop *e = user;
    double best = ls_to_double(ls_leaf_tensor(ls_get(saved, "best")));
    int waited = (int)ls_to_int(ls_leaf_tensor(ls_get(saved, "waited")));
    bool stopped = ls_to_int(ls_leaf_tensor(ls_get(saved, "stopped")));
    ls_value *weights = saved_weights(saved);
    if (ls_error_pending()) {
        ls_value_drop(weights);
        return ls_error_pending();
    }
    ls_value_drop(e->best);
    e->best = weights;
    e->watch.best = best;
    e->waited = waited;
    e->stopped = stopped;
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
    snprintf(e->name, sizeof e->name, "early stop %s", watch.name);
    e->callback.name = e->name;
    e->patience = o->patience ? o->patience : 1;
    e->least = o->least;
    e->wants_best = o->best;
    e->callback.begin = at_begin;
    e->callback.epoch = after_epoch;
    e->callback.end = give_best;
    e->callback.save = save;
    e->callback.load = load;
    e->callback.free = free_early_stop;
    return &e->callback;
}
