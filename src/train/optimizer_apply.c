/*
 * One update: gradients are summed over replicas, clipped and applied. Invariant: all that can
 * fail (checks, slots, copies of live snapshots, sums) is done before the first variable changes.
 *
 * Where nothing needs the sums themselves (no norm, not lazy, ls_check_numerics is off), summing
 * and applying are one pass over memory: X_reduced. A recorded step has the plain rows, and the
 * pass fuse-update finds the same.
 */
#include <lockstep/ops.h>
#include <stdio.h>

#include "base/status.h"
#include "dispatch/context.h"
#include "dispatch/sink.h"
#include "ops/clip_scales.h"
#include "ops/rate.h"
#include "ops/replicas.h"
#include "ops/variable.h"
#include "strategy/strategy.h"
#include "strategy/variable.h"
#include "tensor/tensor.h"
#include "train/optimizer.h"

/* ---- what is refused -------------------------------------------------------------------- */

static const char *strategy_text(const ls_strategy *s)
{
    return s ? ls__strategy_text(s) : "no strategy";
}

static ls_status check_strategy(const char *who, const ls_optimizer *o, const ls_variable *v)
{
    if (v->strategy && v->strategy->freed)
        return ls__fail(LS_STATE, "%s: the strategy of variable '%s' was freed", who, v->name);
    if (!ls__has_updated(o) || !o->bound || o->strategy == (v->strategy ? v->strategy->serial : 0))
        return LS_OK;
    return ls__hint(ls__fail(LS_STATE,
                             "%s: variable '%s' belongs to %s, the optimizer has trained variables "
                             "of %s",
                             who, v->name, strategy_text(v->strategy), o->strategy_text),
                    "make an optimizer for each strategy");
}

ls_status ls__check_pair(const char *who, const ls_optimizer *o, const ls_variable *v,
                         const ls_tensor *gradient, ls__cell **cell)
{
    ls_status st = ls__check_variable_here(who, v);
    char what[160];
    if (!st)
        snprintf(what, sizeof what, "the gradient of variable '%s'", v->name);
    if (!st)
        st = ls__check_tensor(who, what, gradient);
    if (!st)
        st = ls__shared_cell(who, v, cell);
    if (!st)
        st = check_strategy(who, o, v);
    if (st)
        return st;
    const ls__spec *spec = ls__cell_spec(*cell);
    if (spec->dtype != LS_F32 && spec->dtype != LS_F64)
        return ls__fail(LS_SHAPE, "%s: variable '%s' is %s, wants f32 or f64", who, v->name,
                        ls__spec_text(spec));
    if (!ls__spec_equal(spec, &gradient->spec))
        return ls__fail(LS_SHAPE, "%s: variable '%s' is %s, its gradient %s", who, v->name,
                        ls__spec_text(spec), ls_describe(gradient));
    return LS_OK;
}

/* ---- sparse gradients --------------------------------------------------------------------- */

static ls_tensor *all_rows(const ls_tensor *gradient)
{
    int64_t rows = gradient->spec.rank > 0 ? gradient->spec.dims[0] : 1;
    ls_tensor *ones = ls_ones(LS_F32, LS_DIMS(rows));
    if (ones)
        ones->device = gradient->device;
    return ones;
}

/* How often each row is named: not 0 is what counts. */
static ls_tensor *named_rows(ls_tensor *gradient)
{
    ls_tensor *rows = ls_sparse_rows(gradient);
    ls_tensor *ones = rows ? ls_ones(LS_F32, LS_DIMS(rows->spec.dims[0])) : NULL;
    if (!ones)
        return NULL;
    ones->device = rows->device;
    ls_tensor *named = ls_sparse(rows, ones, gradient->spec.dims[0]);
    return named ? ls_densify(named) : NULL;
}

ls_status ls__given_of(const ls_optimizer *o, ls_tensor *gradient, ls__given *out)
{
    out->gradient = ls_densify(gradient);
    out->touched = NULL;
    if (out->gradient && o->lazy)
        out->touched = ls_is_sparse(gradient) ? named_rows(gradient) : all_rows(gradient);
    return out->gradient && (out->touched || !o->lazy) ? LS_OK : ls_error_pending();
}

/* ---- an update ------------------------------------------------------------------------------ */

typedef struct update {
    ls_optimizer *o;
    int replicas, count;
    ls_variable *const *variables;
    ls_tensor *const *gradients, *const *touched; /* of all replicas, or their sums */
    ls__slot_set **sets;
    ls_tensor *rate, *iteration;
    ls_tensor **scales;        /* NULL: no norms */
    ls__update_attrs attrs[2]; /* [1]: of variables that decay */
} update;

static ls_status find_cells(const char *who, update *u)
{
    ls_optimizer *o = u->o;
    ls_status st = LS_OK;
    for (int i = 0; i < u->count && !st; i++) {
        const ls_variable *v = u->variables[i];
        ls__cell *cell = NULL;
        st = ls__check_pair(who, o, v, u->gradients[i * u->replicas], &cell);
        for (int k = 0; k < i && !st; k++)
            if (u->sets[k]->cells[0] == cell)
                st = ls__fail(LS_INVALID, "%s: variable '%s' is listed twice", who, v->name);
        if (!st && i > 0 && v->strategy != u->variables[0]->strategy)
            st = ls__fail(LS_STATE, "%s: variable '%s' belongs to %s, variable '%s' to %s", who,
                          u->variables[0]->name, strategy_text(u->variables[0]->strategy), v->name,
                          strategy_text(v->strategy));
        if (!st)
            st = ls__slots_of(o, v->name, cell, &u->sets[i]);
        for (int k = 0; k < o->kind->cells && !st; k++)
            st = ls__cell_unshare(u->sets[i]->cells[k]);
    }
    return st;
}

/* The first update that goes well fixes the strategy. */
static void bind_strategy(update *u)
{
    ls_optimizer *o = u->o;
    o->traced |= ls__sink_get() != NULL;
    if (ls__has_updated(o) && o->bound)
        return;
    const ls_strategy *s = u->variables[0]->strategy;
    o->bound = true;
    o->strategy = s ? s->serial : 0;
    snprintf(o->strategy_text, sizeof o->strategy_text, "%s", strategy_text(s));
}

/* The rate, and the number of the update to come. Counting it, later, can then not fail. */
static ls_status find_numbers(update *u)
{
    ls_optimizer *o = u->o;
    ls_tensor *schedule = ls__cell_read_op(o->rate), *done = ls__cell_read_op(o->iterations);
    ls_tensor *one = ls_scalar_int(LS_I64, 1);
    if (!schedule || !done || !one)
        return ls_error_pending();
    schedule->device = one->device = done->device;
    u->rate = ls__rate(schedule, done);
    u->iteration = ls_add(done, one);
    return u->rate && u->iteration ? ls__cell_unshare(o->iterations) : ls_error_pending();
}

/* ---- sums ----------------------------------------------------------------------------------- */

/* Of those of one dtype, together. */
static ls_status sum_of(int replicas, int count, ls_tensor *const *parts, ls_dtype dtype,
                        ls_tensor **sums)
{
    ls_tensor **in = ls__frame_alloc(sizeof *in * (size_t)(count * replicas + 1));
    ls_tensor **out = ls__frame_alloc(sizeof *out * (size_t)(count + 1));
    if (!in || !out)
        return LS_NO_MEMORY;
    int n = 0;
    for (int i = 0; i < count; i++) {
        if (parts[i * replicas]->spec.dtype != dtype)
            continue;
        for (int r = 0; r < replicas; r++)
            in[n * replicas + r] = parts[i * replicas + r];
        n++;
    }
    ls_status st = n ? ls__sum_replicas_all(LS_SUM, replicas, n, in, out) : LS_OK;
    n = 0;
    for (int i = 0; i < count && !st; i++)
        if (parts[i * replicas]->spec.dtype == dtype)
            sums[i] = out[n++];
    return st;
}

static ls_status sum_all(update *u)
{
    size_t bytes = sizeof(ls_tensor *) * (size_t)(u->count + 1);
    ls_tensor **sums = ls__frame_alloc(bytes), **touched = ls__frame_alloc(bytes);
    if (!sums || !touched)
        return LS_NO_MEMORY;
    ls_status st = sum_of(u->replicas, u->count, u->gradients, LS_F32, sums);
    if (!st)
        st = sum_of(u->replicas, u->count, u->gradients, LS_F64, sums);
    if (!st && u->touched)
        st = sum_of(u->replicas, u->count, u->touched, LS_F32, touched);
    u->gradients = sums;
    u->touched = u->touched ? touched : NULL;
    u->replicas = 1;
    return st;
}

/* Variables of several devices have one norm: it is found on this thread's. */
static ls_status find_scales(update *u)
{
    size_t bytes = sizeof(ls_tensor *) * (size_t)(u->count + 1);
    ls_tensor **here = ls__frame_alloc(bytes);
    u->scales = ls__frame_alloc(bytes);
    if (!here || !u->scales)
        return LS_NO_MEMORY;
    for (int i = 0; i < u->count; i++) {
        here[i] = ls__here(u->gradients[i]);
        if (!here[i])
            return ls_error_pending();
    }
    return ls__clip_scales(u->o->clip_norm, u->o->clip_global, u->count, here, u->scales);
}

/* ---- applying --------------------------------------------------------------------------------- */

static ls__update_numbers numbers_of(const update *u, bool decays, const ls_tensor *like)
{
    u->rate->device = u->iteration->device = like->device; /* numbers of the host's */
    return (ls__update_numbers){ u->o->kind, &u->attrs[decays], u->rate, u->iteration };
}

static ls_status update_each(const update *u)
{
    ls_status st = LS_OK;
    for (int i = 0; i < u->count && !st; i++) {
        ls__cell *const *cells = u->sets[i]->cells;
        ls__update_numbers numbers =
            numbers_of(u, ls__decays(u->o, u->variables[i], cells[0]), u->gradients[i]);
        if (u->scales)
            u->scales[i]->device = u->gradients[i]->device;
        st = ls__update_one(&numbers, cells, u->gradients[i], u->touched ? u->touched[i] : NULL,
                            u->scales ? u->scales[i] : NULL);
    }
    return st;
}

/* Those that decay, or those that do not, in one call. */
static ls_status update_reduced(const update *u, bool decay)
{
    const int per = u->o->kind->cells, v = u->replicas;
    ls__cell **cells = ls__frame_alloc(sizeof *cells * (size_t)(per * u->count + 1));
    ls_tensor **parts = ls__frame_alloc(sizeof *parts * (size_t)(v * u->count + 1));
    if (!cells || !parts)
        return LS_NO_MEMORY;
    int n = 0;
    for (int i = 0; i < u->count; i++) {
        if (ls__decays(u->o, u->variables[i], u->sets[i]->cells[0]) != decay)
            continue;
        for (int k = 0; k < per; k++)
            cells[n * per + k] = u->sets[i]->cells[k];
        for (int r = 0; r < v; r++)
            parts[n * v + r] = u->gradients[i * v + r];
        n++;
    }
    if (n == 0)
        return LS_OK;
    ls__update_numbers numbers = numbers_of(u, decay, parts[0]);
    return ls__update_reduced(&numbers, v, n, cells, parts);
}

ls_status ls__apply(const char *who, ls_optimizer *o, int replicas, int count,
                    ls_tensor *const *gradients, ls_tensor *const *touched,
                    ls_variable *const *variables)
{
    update u = { .o = o,
                 .replicas = replicas,
                 .count = count,
                 .variables = variables,
                 .gradients = gradients,
                 .touched = touched,
                 .attrs = { o->attrs, o->attrs } };
    u.attrs[0].weight_decay = 0;
    u.sets = ls__frame_alloc(sizeof *u.sets * (size_t)(count + 1));
    if (!u.sets)
        return LS_NO_MEMORY;
    const bool norms = o->clip_norm != 0 && count > 0;
    ls_status st = find_cells(who, &u);
    if (!st)
        st = find_numbers(&u);
    const bool looked_at = norms || o->lazy || ls__sink_get() || ls__numerics() != LS_NUMERICS_OFF;
    if (!st && replicas > 1 && looked_at)
        st = sum_all(&u);
    if (!st && norms)
        st = find_scales(&u);
    if (st)
        return st;
    bind_strategy(&u);
    if (u.replicas == 1)
        st = update_each(&u);
    else {
        st = update_reduced(&u, true);
        if (!st)
            st = update_reduced(&u, false);
    }
    return st ? st : ls__cell_assign(o->iterations, u.iteration);
}
