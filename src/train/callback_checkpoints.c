/*
 * ls_checkpoints and ls_best_checkpoint: when a trainer is saved. What else is called by the fit goes
 * into the file, too. A step is saved once, though it may be the last of an epoch and of the run.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "train/callback.h"

typedef struct checkpoints {
    ls_callback callback;
    char *directory;
    int64_t every, saved; /* the step that was saved last; -1: none */
    int keep;             /* 0: all */
} checkpoints;

void ls_checkpoints_init(ls_checkpoints_options *options)
{
    if (options)
        *options = (ls_checkpoints_options){ .size = sizeof *options };
}

static ls_status save_now(const ls_progress *p, checkpoints *c)
{
    if (c->saved == p->step)
        return LS_OK;
    ls_status st = ls__trainer_save(p->trainer, c->directory, c->keep, p->trainer->audience);
    if (!st)
        c->saved = p->step;
    return st;
}

/* Steps that end an epoch are saved when its test is done, so that its figures are in the file. */
static ls_status after_step(const ls_progress *p, void *user)
{
    checkpoints *c = user;
    bool due = c->every > 0 && p->step % c->every == 0 && p->epoch_step != p->epoch_steps;
    return due ? save_now(p, c) : LS_OK;
}

static ls_status after_epoch(const ls_progress *p, void *user)
{
    return save_now(p, user);
}

/* A run that failed is saved as it was before the step that did: that step did not happen. */
static ls_status at_end(const ls_progress *p, void *user)
{
    return p->step > 0 ? save_now(p, user) : LS_OK;
}

static ls_status at_begin(const ls_progress *p, void *user)
{
    (void)p;
    ((checkpoints *)user)->saved = -1;
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
    c->saved = -1;
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
