/*
 * ls_checkpoints and ls_best_checkpoint: when a trainer is saved. What else is called by the fit goes
 * into the file, too. The end of a run is its last epoch, and not saved twice, unless another callback gave
 * it other weights meanwhile (those of its best epoch, say) or may know more itself.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "strategy/variable.h"
#include "tensor/cell.h"
#include "train/callback.h"
#include "train/optimizer.h"

typedef struct checkpoints {
    ls_callback callback;
    char *directory;
    int64_t every;
    int keep;         /* 0: all */
    int64_t epoch_at; /* the step at which an epoch was saved last; -1: none */
    uint64_t stamp;   /* ...and of that state */
} checkpoints;

void ls_checkpoints_init(ls_checkpoints_options *options)
{
    if (options)
        *options = (ls_checkpoints_options){ .size = sizeof *options };
}

/* Weights that are no numbers are no state to go on from: the last good checkpoint stays the newest. */
static ls_status check_finite(const ls_progress *p)
{
    const char *name = ls__variable_not_finite(p->trainer);
    if (!name)
        return ls_error_pending();
    return ls__hint(ls__fail(LS_NOT_FINITE, "step %lld: its update made variable '%s' not finite",
                             (long long)p->step, name),
                    "a lower rate, or .clip_global_norm, often helps");
}

static ls_status save_now(const ls_progress *p, const checkpoints *c)
{
    ls_status st = check_finite(p);
    return st ? st : ls__trainer_save(p->trainer, c->directory, c->keep, p->trainer->audience);
}

/* Steps that end an epoch are saved when its test is done, so that its figures are in the file. */
static ls_status after_step(const ls_progress *p, void *user)
{
    checkpoints *c = user;
    bool due = c->every > 0 && p->step % c->every == 0 && p->epoch_step != p->epoch_steps;
    return due ? save_now(p, c) : LS_OK;
}

/* Another one between two steps: somebody else wrote to what is trained. */
static uint64_t stamp_of(const ls_trainer *t)
{
    uint64_t sum = ls__cell_version(t->optimizer->rate);
    for (int i = 0; i < ls_model_count(t->model); i++) {
        const ls_variable *v = ls_model_variables(t->model)[i];
        for (int k = 0; k < v->n_cells; k++)
            sum += ls__cell_version(v->cells[k]);
    }
    return sum;
}

static ls_status after_epoch(const ls_progress *p, void *user)
{
    checkpoints *c = user;
    ls_status st = save_now(p, c);
    if (st)
        return st;
    c->epoch_at = p->step;
    c->stamp = stamp_of(p->trainer);
    return LS_OK;
}

static bool others_may_know_more(const ls__audience *audience)
{
    bool may = false;
    for (int i = 0; i < audience->count && !may; i++)
        may = audience->callbacks[i]->end && audience->callbacks[i]->save;
    return may;
}

/* A run that failed is saved as it was before the step that did: that step did not happen. */
static ls_status at_end(const ls_progress *p, void *user)
{
    const checkpoints *c = user;
    if (p->step == 0 || ls__variable_not_finite(p->trainer))
        return LS_OK;
    if (c->epoch_at == p->step && c->stamp == stamp_of(p->trainer) &&
        !others_may_know_more(p->trainer->audience))
        return LS_OK;
    return save_now(p, c);
}

static ls_status at_begin(const ls_progress *p, void *user)
{
    (void)p;
    ((checkpoints *)user)->epoch_at = -1;
    return LS_OK;
}

static void free_checkpoints(void *user)
{
    checkpoints *c = user;
    free(c->directory);
    free(c);
}

static ls_status check_options(const ls_checkpoints_options *o)
{
    if (!o || o->size != sizeof *o)
        return ls__hint(ls__fail(LS_INVALID, "ls_checkpoints: options of %zu bytes, wants %zu",
                                 o ? o->size : 0, sizeof *o),
                        "make them with LS_CHECKPOINTS(...), or start from ls_checkpoints_init");
    if (!o->directory || !o->directory[0])
        return ls__fail(LS_INVALID, "ls_checkpoints: there is no .directory");
    if (o->every < 0 || o->keep < -1)
        return ls__fail(LS_INVALID, "ls_checkpoints: every %lld steps, keep %d",
                        (long long)o->every, o->keep);
    return LS_OK;
}

ls_callback *ls_checkpoints(const ls_checkpoints_options *options)
{
    if (check_options(options))
        return NULL;
    checkpoints *c = ls__callback_new("checkpoints", sizeof *c);
    if (!c)
        return NULL;
    c->directory = strdup(options->directory);
    if (!c->directory) {
        ls__fail_memory("ls_checkpoints", strlen(options->directory));
        free(c);
        return NULL;
    }
    c->every = options->every;
    c->keep = options->keep == 0 ? 3 : options->keep < 0 ? 0 : options->keep;
    c->epoch_at = -1;
    c->callback.last = true;
    c->callback.begin = at_begin;
    c->callback.step = after_step;
    c->callback.epoch = after_epoch;
    c->callback.end = at_end;
    c->callback.free = free_checkpoints;
    return &c->callback;
}

/* ---- the best ------------------------------------------------------------------------------------------ */

typedef struct best {
    ls_callback callback;
    ls__watch watch;
    char *file, *name;
} best;

static ls_status save_if_better(const ls_progress *p, void *user)
{
    best *b = user;
    double value;
    ls_status st = ls__watch_read(&b->watch, p, &value);
    if (st || !ls__watch_better(&b->watch, value, 0))
        return st;
    st = check_finite(p);
    if (st)
        return st;
    double before = b->watch.best;
    b->watch.best = value; /* it is part of the file */
    st = ls__trainer_save(p->trainer, b->file, -1, p->trainer->audience);
    if (st)
        b->watch.best = before;
    return st;
}

static ls_value *save_best(void *user)
{
    const best *b = user;
    return ls_dict(1, (const char *[]){ "best" },
                   (ls_value *[]){ ls_leaf(ls_scalar(LS_F64, b->watch.best)) });
}

static ls_status load_best(ls_value *saved, void *user)
{
    best *b = user;
    double value = ls_to_double(ls_leaf_tensor(ls_get(saved, "best")));
    if (!ls_error_pending())
        b->watch.best = value;
    return ls_error_pending();
}

static void free_best(void *user)
{
    best *b = user;
    free(b->file);
    free(b->name);
    free(b);
}

ls_callback *ls_best_checkpoint(const char *file, const char *watch)
{
    ls__watch watched;
    if (!file || !file[0]) {
        ls__fail(LS_INVALID, "ls_best_checkpoint: there is no file");
        return NULL;
    }
    if (ls__watch_open("ls_best_checkpoint", watch, &watched))
        return NULL;
    best *b = ls__callback_new("best checkpoint", sizeof *b);
    if (!b)
        return NULL;
    b->watch = watched;
    b->file = strdup(file);
    if (!b->file || asprintf(&b->name, "best checkpoint %s", watched.name) < 0) {
        ls__fail_memory("ls_best_checkpoint", strlen(file));
        free(b->file);
        free(b);
        return NULL;
    }
    b->callback.name = b->name;
    b->callback.last = true;
    b->callback.epoch = save_if_better;
    b->callback.save = save_best;
    b->callback.load = load_best;
    b->callback.free = free_best;
    return &b->callback;
}
