/*
 * Saving and restoring a run. Invariants: a checkpoint is whole before it has its name; a restore
 * reads and checks all before it changes anything, and what it then does cannot fail.
 */
#include <lockstep/input.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "kernels/math_profile.h"
#include "os/directory.h"
#include "strategy/strategy.h"
#include "strategy/variable.h"
#include "tensor/tensor.h"
#include "train/checkpoint.h"
#include "train/optimizer.h"

/* ---- saving -------------------------------------------------------------------------------------- */

static ls_status save(const char *who, const char *path, const ls_checkpoint *c)
{
    ls_note notes[LS__CHECKPOINT_NOTES];
    ls_value *state = ls__checkpoint_state(who, c);
    int n = state ? ls__checkpoint_notes(c, notes) : 0;
    if (n == 0)
        return ls_error_pending() ? ls_error_pending() : LS_NO_MEMORY;
    ls_status st = ls__make_directory_of(who, path);
    return st ? st : ls_safetensors_write(path, state, n, notes);
}

ls_status ls_checkpoint_save(const char *path, const ls_checkpoint *c)
{
    ls_status st = LS_OK;
    LS_FRAME
        st = save("ls_checkpoint_save", path, c);
    return st;
}

ls_status ls_checkpoint_save_step(const char *directory, const ls_checkpoint *c, int64_t step,
                                  int keep)
{
    const char *who = "ls_checkpoint_save_step";
    ls_status st = LS_OK;
    if (!directory || !directory[0])
        return ls__fail(LS_INVALID, "%s: the directory is %s", who, directory ? "empty" : "NULL");
    if (step < 0 || step > (int64_t)1 << 59 || keep < 0)
        return ls__hint(ls__fail(LS_INVALID, "%s: step %lld, keep %d", who, (long long)step, keep),
                        "steps are 0 or more; 0 keeps all");
    LS_FRAME {
        const char *path = ls__checkpoint_path(directory, step);
        st = path ? ls__make_directory(who, directory) : LS_NO_MEMORY;
        if (!st)
            ls__checkpoint_clean(directory); /* before: it makes room */
        if (!st)
            st = save(who, path, c);
        if (!st && keep > 0)
            ls__checkpoint_prune(directory, step, keep);
    }
    return st;
}

/* ---- restoring: what is checked ------------------------------------------------------------------ */

static const char *const who = "ls_checkpoint_restore";

static ls_status another(const char *path, const char *what, long long saved, long long here)
{
    return ls__hint(ls__fail(LS_INVALID, "%s: '%s' was saved with %lld %s%s, this run has %lld",
                             who, path, saved, what, saved == 1 ? "" : "s", here),
                    "they are part of the result: go on with %lld", saved);
}

static ls_status check_record(const char *path, const ls_checkpoint_record *r,
                              const ls_checkpoint *c)
{
    const ls_strategy *s = ls__checkpoint_strategy(c);
    const int pipelines = s->pipelines > 0 ? s->pipelines : 1;
    const char *model = c->model ? ls__as_utf8(c->model) : NULL;
    if (c->model && !model)
        return LS_NO_MEMORY;
    if (model && (!r->model || strcmp(model, r->model) != 0))
        return ls__hint(ls__fail(LS_INVALID, "%s: '%s' is of %s%.100s%s, this run trains '%.100s'",
                                 who, path, r->model ? "model '" : "no model by name",
                                 r->model ? r->model : "", r->model ? "'" : "", model),
                        "a run goes on with the model it began with");
    if (r->replicas != s->replicas)
        return another(path, "replica", r->replicas, s->replicas);
    if (r->pipelines != pipelines)
        return another(path, "input pipeline", r->pipelines, pipelines);
    return LS_OK;
}

/* What a state has for each of the optimizers. */
static ls_value *optimizer_part(const ls_value *state, int i)
{
    char prefix[64];
    snprintf(prefix, sizeof prefix, "%s%d/", LS__CHECKPOINT_OPTIMIZERS, i);
    return ls__checkpoint_part(state, prefix);
}

static ls_status plan_optimizers(const ls_checkpoint *c, const ls_value *state,
                                 ls__cell_writes *writes)
{
    for (int i = 0; i <= c->n_optimizers && c->n_optimizers > 0; i++) {
        const ls_value *part = optimizer_part(state, i);
        ls_status st = part ? LS_OK : ls_error_pending();
        if (!st && (ls_length(part) > 0) != (i < c->n_optimizers))
            st =
                ls__hint(ls__fail(LS_INVALID, "%s: %s optimizers were saved than the %d to restore",
                                  who, i < c->n_optimizers ? "fewer" : "more", c->n_optimizers),
                         "a run goes on with as many, in the same order");
        if (!st && i < c->n_optimizers)
            st = ls__optimizer_plan(who, c->optimizers[i], c->n_variables, c->variables, part,
                                    &writes[i]);
        if (st)
            return st;
    }
    return LS_OK;
}

/* Sends the input there; if that fails it goes on where it was. */
static ls_status seek(const ls_checkpoint *c, const ls_value *state)
{
    const ls_value *part = c->input ? ls__checkpoint_part(state, LS__CHECKPOINT_INPUT) : NULL;
    if (!c->input)
        return LS_OK;
    if (!part)
        return ls_error_pending();
    if (ls_length(part) == 0)
        return ls__fail(LS_NOT_FOUND, "%s: no position of the input was saved", who);
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_tensor *before = ls_position(c->input);
    ls_error();
    ls__error_scope_close(&scope, LS_OK, "%s", who);
    ls_status st = ls_seek(c->input, ls_leaf_tensor(ls_child(part, 0)));
    if (st && before) {
        ls__error_record why;
        ls__error_take(&why);
        (void)ls_seek(c->input, before);
        ls_error();
        ls__error_put(&why);
    }
    return st;
}

/* ---- restoring ----------------------------------------------------------------------------------- */

static void warn_of_others(const char *path, const ls_checkpoint_record *r)
{
    if (strcmp(r->profile, ls_math_profile()) != 0)
        ls__log(LS_LOG_WARNING,
                "'%s' was saved by [%s], this is [%s]: what follows may have other bits", path,
                r->profile, ls_math_profile());
}

static ls_status accept(const ls_checkpoint *c, ls_value *extra)
{
    if (!c->accept)
        return LS_OK;
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_status st = c->accept(extra, c->user);
    if (st && !ls_error_pending())
        ls__fail(st, "it was not accepted (%s)", ls_status_name(st));
    return ls__error_scope_close(&scope, st, "%s", who);
}

/* `extra` is of the frame around. */
static ls_status restore(const char *path, const ls_checkpoint *c, ls__safetensors *file,
                         ls_value **extra)
{
    ls_checkpoint_record record;
    ls_strategy *s = ls__checkpoint_strategy(c);
    const bool counts = !ls__is_default(s);
    ls_status st = ls__checkpoint_open(who, path, file, &record);
    if (!st)
        st = check_record(path, &record, c);
    if (!st && counts)
        st = ls_set_steps(s, ls_steps(s)); /* may it be set here and now? */
    if (st)
        return st;
    const ls_value *state = ls__safetensors_tensors(file);
    ls_value *variables = state ? ls__checkpoint_variables(state) : NULL;
    ls_value *own = variables ? ls__checkpoint_part(state, LS__CHECKPOINT_EXTRA) : NULL;
    if (!own || (ls_length(own) > 0 && !(*extra = ls_value_hand_up(own))))
        return ls_error_pending();
    ls__cell_writes *writes = ls__frame_alloc(((size_t)c->n_optimizers + 1) * sizeof *writes);
    st = writes ? ls__variables_plan(c->n_variables, c->variables, variables, &writes[0])
                : LS_NO_MEMORY;
    if (!st)
        st = plan_optimizers(c, state, writes + 1);
    if (!st)
        st = accept(c, *extra);
    for (int i = 0; i <= c->n_optimizers && !st; i++)
        st = ls__cell_writes_unshare(&writes[i]); /* who accepted it may have looked at them */
    if (!st)
        st = seek(c, state);
    if (st)
        return st;
    for (int i = 0; i <= c->n_optimizers; i++)
        ls__cell_writes_do(&writes[i]);
    if (counts)
        st = ls_set_steps(s, record.steps); /* it may, as was seen */
    warn_of_others(path, &record);
    return st;
}

ls_status ls_checkpoint_restore(const char *path, ls_checkpoint *c)
{
    ls_status st = ls__checkpoint_check(who, c);
    if (st)
        return st;
    ls_value *extra = NULL;
    LS_FRAME {
        ls__safetensors file;
        st = restore(path, c, &file, &extra);
        ls__safetensors_close(&file);
    }
    if (!st)
        c->extra = extra;
    return st;
}
