/*
 * Checkpoints of a trainer: the variables of its model and metrics, the optimizer, and beside them
 * (`extra`) where the run stands, the input's position, the last figures, and what callbacks save:
 *
 *     at             i64[10] ls__at, whether an epoch is being counted, and what must be the same in
 *                            a run that goes on: global batch, seed, kernel threads
 *     values         f64[n]  of ls_trainer_names
 *     input          u8[n]   ls_position
 *     callback/NAME/KEY      of each callback's `save`
 */
#include <lockstep/safetensors.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "kernels/threads.h"
#include "tensor/tensor.h"
#include "train/entries.h"
#include "train/trainer.h"

enum { AT_NUMBERS = 10 };

/* ---- what is saved -------------------------------------------------------------------------------- */

static ls_status add_callback(ls__entries *e, const ls_callback *c)
{
    ls_value *saved = c->save ? c->save(c->user) : NULL;
    if (!saved || ls_error_pending())
        return ls_error_pending();
    if (ls_kind_of(saved) != LS_DICT)
        return ls__fail(LS_INVALID, "callback '%s': what it saves is no dict", c->name);
    ls_status st = LS_OK;
    for (int i = 0; i < ls_length(saved) && !st; i++)
        st = ls__entries_add(e, ls_leaf(ls_item(saved, i)), "callback/%s/%s", c->name,
                             ls_key(saved, i));
    return st;
}

static ls_tensor *at_numbers(const ls_trainer *t)
{
    const ls__at *at = &t->at;
    return ls_from(LS_I64, LS_DIMS(AT_NUMBERS),
                   (int64_t[]){ at->step, at->epoch, at->epoch_step, at->epoch_steps, at->samples,
                                at->ended, t->counting, t->global_batch, (int64_t)t->seed,
                                ls__kernel_threads_get() });
}

static ls_value *extra_of(ls_trainer *t, const ls__audience *audience)
{
    ls__entries e = { 0 };
    ls_status st = ls__entries_add(&e, ls_leaf(at_numbers(t)), "at");
    if (!st)
        st = ls__entries_add(&e, ls_leaf(ls_from(LS_F64, LS_DIMS(2 * t->n_metrics), t->values)),
                             "values");
    if (!st && t->lost)
        st = ls__fail(LS_STATE, "there was no memory to note where the last fit stood in its data");
    ls_tensor *position = t->input && !st ? ls_position(t->input) : t->position;
    if (!st && (position || ls_error_pending()))
        st = ls__entries_add(&e, ls_leaf(position), "input");
    for (int i = 0; i < audience->count && !st; i++)
        st = add_callback(&e, audience->callbacks[i]);
    return st ? NULL : ls__entries_dict(&e);
}

static ls_variable *const *variables_of(const ls_trainer *t, int *count)
{
    int n = ls_model_count(t->model);
    *count = n + 2 * t->n_metrics;
    ls_variable **all = ls__frame_alloc((size_t)*count * sizeof(ls_variable *));
    if (!all)
        return NULL;
    memcpy(all, ls_model_variables(t->model), (size_t)n * sizeof *all);
    for (int i = 0; i < t->n_metrics; i++)
        memcpy(all + n + 2 * i, ls_metric_variables(t->metrics[i]), 2 * sizeof *all);
    return all;
}

static ls_status describe(ls_trainer *t, ls_checkpoint *c)
{
    *c = (ls_checkpoint){ .size = sizeof *c,
                          .strategy = t->strategy,
                          .n_optimizers = 1,
                          .optimizers = &t->optimizer,
                          .model = ls_model_name(t->model),
                          .seed = t->seed,
                          .command = t->command,
                          .data = t->data };
    c->variables = variables_of(t, &c->n_variables);
    return c->variables ? LS_OK : ls_error_pending();
}

/* What a checkpoint holds of it, in the innermost frame. */
static ls_status take(ls_trainer *t, const ls__audience *audience, ls_checkpoint *out)
{
    ls_status st = describe(t, out);
    if (st)
        return st;
    out->extra = extra_of(t, audience);
    return out->extra ? LS_OK : ls_error_pending();
}

/* ---- saving ------------------------------------------------------------------------------------------ */

/* What is asked of the state: a file, or a digest. */
typedef struct wanted {
    const char *path;
    int keep;
    char *digest; /* not NULL: this, and no file */
    const ls__audience *audience;
} wanted;

/* A run goes on with the exact next sample, or not at all. */
static ls_status check_position(const ls_trainer *t)
{
    if (t->input || t->position || t->lost || t->at.step <= 0)
        return LS_OK; /* extra_of() tells of those that were lost, and data that is read for itself */
    return ls__hint(
        ls__fail(LS_UNSUPPORTED, "the data that it was fitted with cannot tell where it stood"),
        "ls_safetensors_write saves weights alone, ls_checkpoint_save what it is given");
}

static ls_status give(ls_trainer *t, void *user)
{
    const wanted *w = user;
    ls_status st = w->digest ? LS_OK : check_position(t);
    if (st)
        return st;
    st = LS_NO_MEMORY;
    LS_FRAME {
        ls_checkpoint c;
        st = take(t, w->audience, &c);
        if (!st && w->digest)
            st = ls_state_digest(&c, w->digest);
        else if (!st)
            st = w->keep < 0 ? ls_checkpoint_save(w->path, &c)
                             : ls_checkpoint_save_step(w->path, &c, t->at.step, w->keep);
    }
    return st;
}

ls_status ls__trainer_save(ls_trainer *t, const char *path, int keep, const ls__audience *audience)
{
    return ls__as_trained(t, give, &(wanted){ path, keep, NULL, audience });
}

static ls_status check(const char *who, const ls_trainer *t, const char *path, int n,
                       ls_callback *const *callbacks)
{
    ls_status st = ls__check_trainer(who, t);
    if (!st && !path)
        st = ls__fail(LS_INVALID, "%s: the path is NULL", who);
    return st ? st : ls__check_callbacks(who, n, callbacks);
}

ls_status ls_trainer_save(ls_trainer *t, const char *path, int n_callbacks,
                          ls_callback *const *callbacks)
{
    ls_status st = check("ls_trainer_save", t, path, n_callbacks, callbacks);
    return st ? st : ls__trainer_save(t, path, -1, &(ls__audience){ n_callbacks, callbacks });
}

ls_status ls_trainer_digest(ls_trainer *t, int n_callbacks, ls_callback *const *callbacks,
                            char out[LS_DIGEST_MAX])
{
    ls_status st = check("ls_trainer_digest", t, "", n_callbacks, callbacks);
    const ls__audience audience = { n_callbacks, callbacks };
    return st ? st : ls__as_trained(t, give, &(wanted){ NULL, 0, out, &audience });
}

/* ---- resuming ------------------------------------------------------------------------------------------ */

/* The entry of that name, if it is a tensor of this kind and size (-1: any); NULL: there is none. */
static ls_tensor *find(ls_value *extra, const char *key, ls_dtype dtype, int64_t count)
{
    for (int i = 0; extra && i < ls_length(extra); i++) {
        ls_tensor *found = strcmp(ls_key(extra, i), key) == 0 ? ls_item(extra, i) : NULL;
        if (found && ls_dtype_of(found) == dtype && (count < 0 || ls_count(found) == count))
            return found;
    }
    return NULL;
}

/* KEY of "callback/NAME/KEY"; NULL: it is of another. */
static const char *key_of_callback(const char *key, const char *name)
{
    const size_t n = strlen("callback/"), length = strlen(name);
    if (strncmp(key, "callback/", n) != 0 || strncmp(key + n, name, length) != 0)
        return NULL;
    return key[n + length] == '/' ? key + n + length + 1 : NULL;
}

static ls_status load_callback(ls_value *extra, const ls_callback *c)
{
    if (!c->load || !c->name)
        return LS_OK;
    ls__entries e = { 0 };
    for (int i = 0; i < ls_length(extra); i++) {
        const char *key = key_of_callback(ls_key(extra, i), c->name);
        if (key && ls__entries_add(&e, ls_child(extra, i), "%s", key))
            return ls_error_pending();
    }
    ls_value *saved = e.count ? ls__entries_dict(&e) : NULL;
    return e.count == 0 ? LS_OK : saved ? c->load(saved, c->user) : ls_error_pending();
}

/* All of them, or none: what those before the one that failed had is given back to them. */
static ls_status load_callbacks(ls_value *extra, const ls__audience *a)
{
    ls_value **before = ls__frame_alloc((size_t)(a->count + 1) * sizeof(ls_value *));
    ls_status st = before ? LS_OK : ls_error_pending();
    int loaded = 0;
    for (; loaded < a->count && !st; loaded++) {
        const ls_callback *c = a->callbacks[loaded];
        before[loaded] = c->save && c->load ? c->save(c->user) : NULL;
        st = ls_error_pending() ? ls_error_pending() : load_callback(extra, c);
        st = st ? st : ls_error_pending();
    }
    if (!st)
        return LS_OK;
    if (!ls_error_pending())
        ls__fail(st, "callback '%s' does not load what was saved", a->callbacks[loaded - 1]->name);
    ls__error_record failed;
    ls__error_take(&failed);
    for (int i = 0; i < loaded; i++)
        if (before[i])
            (void)a->callbacks[i]->load(before[i], a->callbacks[i]->user);
    ls_error();
    ls__error_put(&failed);
    return st;
}

static void take_at(ls_trainer *t, const int64_t *n)
{
    t->at = (ls__at){ n[0], n[1], n[2], n[3], n[4], n[5] };
    t->counting = n[6];
}

/* What ls_trainer_resume was asked for. */
typedef struct resuming {
    ls_trainer *trainer;
    const char *path;
    ls__audience audience;
} resuming;

static ls_status another(const char *path, const char *what, uint64_t saved, uint64_t here)
{
    return ls__hint(ls__fail(LS_INVALID, "'%s' was saved with a %s of %llu, this run has %llu",
                             path, what, (unsigned long long)saved, (unsigned long long)here),
                    "it is part of the result: go on with %llu", (unsigned long long)saved);
}

/* No run gets there. */
static bool out_of(int64_t count)
{
    return count < 0 || count > INT64_MAX / 2;
}

/* What a run must have in common with the one it goes on with. */
static ls_status check_same(const resuming *r, const int64_t *n)
{
    const ls_trainer *t = r->trainer;
    if (out_of(n[0]) || out_of(n[1]) || out_of(n[2]) || out_of(n[4]) ||
        (n[3] != LS_UNKNOWN && out_of(n[3])))
        return ls__fail(LS_CORRUPT, "'%s' says that it is of step %lld in epoch %lld", r->path,
                        (long long)n[0], (long long)n[1]);
    if (n[7] != t->global_batch)
        return another(r->path, "global batch", (uint64_t)n[7], (uint64_t)t->global_batch);
    if ((uint64_t)n[8] != t->seed)
        return another(r->path, "seed", (uint64_t)n[8], t->seed);
    if (n[9] != ls__kernel_threads_get())
        ls__log(
            LS_LOG_WARNING,
            "'%s' was saved with %lld threads a replica, this run has %d: what follows may have "
            "other bits",
            r->path, (long long)n[9], ls__kernel_threads_get());
    return LS_OK;
}

/* Called when variables and optimizer are known to fit, and are as before. Whatever can fail here comes
 * before what changes the trainer. */
static ls_status accept(ls_value *extra, void *user)
{
    const resuming *r = user;
    ls_trainer *t = r->trainer;
    ls_tensor *at = find(extra, "at", LS_I64, AT_NUMBERS);
    ls_tensor *values = find(extra, "values", LS_F64, 2 * t->n_metrics);
    ls_tensor *input = find(extra, "input", LS_U8, -1);
    if (!at || !values)
        return ls__hint(
            ls__fail(LS_INVALID, "'%s' is no checkpoint of a trainer with these metrics", r->path),
            "ls_checkpoint_restore takes any; ls_trainer_take_weights takes weights alone");
    int64_t numbers[AT_NUMBERS];
    ls_copy_out(at, numbers, sizeof numbers);
    ls_status st = check_same(r, numbers);
    if (st)
        return st;
    ls_tensor *kept = input ? ls_keep(input) : NULL;
    st = input && !kept ? ls_error_pending() : LS_OK;
    if (!st)
        st = load_callbacks(extra, &r->audience);
    if (st) {
        if (kept)
            ls_drop(kept);
        return st;
    }
    ls_copy_out(values, t->values, (size_t)(2 * t->n_metrics) * sizeof *t->values);
    take_at(t, numbers);
    if (t->position)
        ls_drop(t->position);
    t->position = kept;
    t->must_fit = kept != NULL;
    t->lost = false;
    return LS_OK;
}

ls_status ls_trainer_resume(ls_trainer *t, const char *path, int n_callbacks,
                            ls_callback *const *callbacks)
{
    ls_status st = check("ls_trainer_resume", t, path, n_callbacks, callbacks);
    if (!st && (t->fitting || t->aside))
        st = ls__fail(LS_STATE, "ls_trainer_resume: it is being %s",
                      t->fitting ? "fitted" : "asked");
    if (st)
        return st;
    st = LS_NO_MEMORY;
    LS_FRAME {
        char file[4096];
        ls_checkpoint c;
        resuming r = { .trainer = t, .path = file, .audience = { n_callbacks, callbacks } };
        st = ls_checkpoint_newest(path, file, sizeof file);
        if (!st)
            st = describe(t, &c);
        c.accept = accept;
        c.user = &r;
        if (!st)
            st = ls_checkpoint_restore(file, &c);
    }
    return st;
}

ls_status ls_trainer_take_weights(ls_trainer *t, const char *path)
{
    ls_status st = check("ls_trainer_take_weights", t, path, 0, NULL);
    if (st)
        return st;
    st = LS_NO_MEMORY;
    LS_FRAME {
        ls__error_scope scope;
        ls__error_scope_open(&scope);
        ls_value *saved = ls_safetensors_read(path);
        st = saved ? ls_variables_restore(ls_model_count(t->model), ls_model_variables(t->model),
                                          saved)
                   : ls_error_pending();
        st = ls__error_scope_close(&scope, st, "ls_trainer_take_weights: '%s'", path);
    }
    return st;
}
