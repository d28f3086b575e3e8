/*
 * Making and freeing variables. Invariant: a variable of a strategy has V components, which share
 * its cells; a component owns nothing but its name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "dispatch/sink.h"
#include "ops/variable.h"
#include "strategy/context.h"
#include "strategy/run.h"
#include "strategy/strategy.h"
#include "strategy/variable.h"
#include "tensor/journal.h"
#include "tensor/tensor.h"

/* ---- options ------------------------------------------------------------------------- */

void ls_variable_init(ls_variable_options *options)
{
    if (options)
        *options = (ls_variable_options){ .size = sizeof *options };
}

static ls_status check_synchronization(const char *who, const char *name, ls_synchronization sync)
{
    switch (sync) {
    case LS_SYNC_AUTO:
    case LS_SYNC_ON_WRITE:
    case LS_SYNC_ON_READ:
        return LS_OK;
    case LS_SYNC_NONE:
        return ls__hint(ls__fail(LS_INVALID,
                                 "%s: NONE variable synchronization is not supported "
                                 "(variable '%s')",
                                 who, name),
                        "LS_SYNC_ON_READ keeps a copy per replica, LS_SYNC_ON_WRITE one for all");
    default:
        return ls__hint(
            ls__fail(LS_INVALID, "%s: synchronization %d of variable '%s'", who, (int)sync, name),
            "it is one of LS_SYNC_AUTO, LS_SYNC_ON_WRITE, LS_SYNC_ON_READ");
    }
}

static ls_status check_aggregation(const char *who, const char *name, ls_aggregation aggregation,
                                   const ls__spec *spec)
{
    if (aggregation == LS_AGGREGATE_NONE)
        return LS_OK;
    if (!ls__reduce_op_of(aggregation)) {
        const char *op = ls_reduce_op_name((ls_reduce_op)(int)aggregation);
        if (op[0] != '?')
            return ls__hint(ls__fail(LS_INVALID,
                                     "%s: aggregation %d of variable '%s' is LS_%s, an "
                                     "ls_reduce_op",
                                     who, (int)aggregation, name, op),
                            "LS_AGGREGATE_%s is what a variable takes", op);
        return ls__hint(ls__fail(LS_INVALID, "%s: aggregation %d of variable '%s'", who,
                                 (int)aggregation, name),
                        "it is one of LS_AGGREGATE_NONE, _SUM, _MEAN, _ONLY_FIRST");
    }
    if (aggregation == LS_AGGREGATE_MEAN && spec->dtype != LS_F32 && spec->dtype != LS_F64 &&
        spec->dtype != LS_BF16)
        return ls__hint(ls__fail(LS_INVALID, "%s: variable '%s' of %s has no MEAN of its dtype",
                                 who, name, ls__spec_text(spec)),
                        "make it f32, f64 or bf16, or aggregate with SUM");
    return LS_OK;
}

static ls_status check_options(const char *who, const ls_variable_options *o, const char *name,
                               const ls__spec *spec)
{
    if (o->size != sizeof *o)
        return ls__hint(
            ls__fail(LS_INVALID, "%s: options of %zu bytes, wants %zu", who, o->size, sizeof *o),
            "fill options with the macro, or with ls_variable_init first");
    ls_status st = check_synchronization(who, name, o->synchronization);
    if (!st)
        st = check_aggregation(who, name, o->aggregation, spec);
    if (!st && (o->trainable < LS_TRAINABLE_DEFAULT || o->trainable > LS_FROZEN))
        st = ls__hint(
            ls__fail(LS_INVALID, "%s: trainable %d of variable '%s'", who, (int)o->trainable, name),
            "it is one of LS_TRAINABLE_DEFAULT, LS_TRAINABLE, LS_FROZEN");
    if (!st && o->local_writes &&
        (o->synchronization == LS_SYNC_ON_READ || o->aggregation != LS_AGGREGATE_NONE))
        st = ls__hint(ls__fail(LS_INVALID, "%s: .local_writes of variable '%s', which is %s", who,
                               name,
                               o->synchronization == LS_SYNC_ON_READ
                                   ? "LS_SYNC_ON_READ: its writes are local already"
                                   : "aggregated: its writes are meetings"),
                      ".local_writes is for LS_SYNC_ON_WRITE without an aggregation");
    return st;
}

static ls_status check_initial(const char *who, const char *name, const ls_tensor *initial)
{
    ls_status st = ls__check_tensor(who, "initial", initial);
    if (st)
        return st;
    if (!name || !name[0])
        return ls__fail(LS_INVALID, "%s: a variable of %s without a name", who,
                        ls_describe(initial));
    if (initial->spec.dtype == LS_BYTES)
        return ls__fail(LS_SHAPE, "%s: '%s' of %s; variables hold numbers", who, name,
                        ls_describe(initial));
    if (initial->storage->symbol)
        return ls__hint(ls__fail(LS_STATE,
                                 "%s: the initial value of '%s' is not known while the "
                                 "step is traced",
                                 who, name),
                        "make variables before the step, or of values from outside it");
    return LS_OK;
}

/* ---- making ----------------------------------------------------------------------------- */

static const char *component_name(const char *name, int replica)
{
    return replica == 0 ? name : ls__copy_name(name, replica);
}

/* The initial value is written now, by no step: not by every replay of the one being traced, and
 * for good if the one that runs fails. */
static ls_status fill_cells(ls_variable *v, ls_tensor *initial)
{
    ls__sink *sink = ls__sink_set(NULL);
    ls__journal *journal = ls__journal_use(NULL);
    ls_status st = LS_OK;
    for (int i = 0; i < v->n_cells && !st; i++) {
        const char *name = component_name(v->name, i);
        st = name ? ls__cell_new(name, &initial->spec, &v->cells[i]) : LS_NO_MEMORY;
        if (!st)
            st = ls__cell_assign(v->cells[i], initial);
    }
    ls__journal_use(journal);
    ls__sink_set(sink);
    return st;
}

static ls_status make_components(ls_variable *v)
{
    v->components = calloc((size_t)v->n_components, sizeof *v->components);
    if (!v->components)
        return ls__fail_memory("a variable", (size_t)v->n_components * sizeof *v->components);
    for (int i = 0; i < v->n_components; i++) {
        ls_variable *c = &v->components[i];
        *c = *v;
        c->serial = ls__new_id();
        const char *name = component_name(v->name, i);
        c->name = name ? strdup(name) : NULL;
        if (!c->name)
            return ls__fail_memory("a variable", strlen(v->name));
        c->n_cells = 1;
        c->cells = &v->cells[v->n_cells > 1 ? i : 0];
        c->n_components = 1;
        c->components = NULL;
        c->container = v;
        c->replica = i;
    }
    return LS_OK;
}

static void destroy(ls_variable *v)
{
    ls__own_remove(v);
    for (int i = 0; v->components && i < v->n_components; i++)
        free(v->components[i].name);
    free(v->components);
    for (int i = 0; v->cells && i < v->n_cells; i++)
        ls__cell_unref(v->cells[i]);
    free(v->cells);
    if (v->strategy)
        ls__strategy_unref(v->strategy);
    free(v->name);
    free(v);
}

static ls_variable *make(ls_strategy *s, const ls_variable_options *o, const char *name,
                         ls_tensor *initial)
{
    bool on_read = o->synchronization == LS_SYNC_ON_READ;
    ls_variable *v = calloc(1, sizeof *v);
    if (!v) {
        ls__fail_memory("a variable", sizeof *v);
        return NULL;
    }
    v->synchronization = on_read ? LS_SYNC_ON_READ : LS_SYNC_ON_WRITE;
    v->serial = ls__new_id();
    v->aggregation = o->aggregation;
    v->local_writes = o->local_writes;
    v->trainable = o->trainable == LS_TRAINABLE_DEFAULT ? !on_read : o->trainable == LS_TRAINABLE;
    v->strategy = s ? ls__strategy_ref(s) : NULL;
    v->n_components = s ? s->replicas : 1;
    v->n_cells = ls__has_own_cells(v) ? v->n_components : 1;
    v->name = strdup(name);
    v->cells = calloc((size_t)v->n_cells, sizeof *v->cells);
    if (!v->name || !v->cells)
        ls__fail_memory("a variable", sizeof *v);
    else if (!fill_cells(v, initial) && (!s || !make_components(v))) {
        ls__own_add(v);
        return v;
    }
    destroy(v);
    return NULL;
}

/* The strategy whose variables this thread makes; NULL: none but the default one. */
static ls_strategy *strategy_here(void)
{
    const ls__mode *mode = ls__mode_now();
    return mode && !ls__is_default(mode->strategy) ? mode->strategy : NULL;
}

/* Replicas after the first get what that one made; what they would have made must fit. */
static ls_variable *made_before(const char *who, const ls_replica *replica, ls_variable *v,
                                const ls_tensor *initial)
{
    const ls__spec *spec = ls__cell_spec(v->cells[0]);
    if (ls__spec_equal(spec, &initial->spec))
        return v;
    ls__hint(ls__fail(LS_SHAPE, "%s: variable '%s' is %s on replica 0, and %s on replica %d", who,
                      v->name, ls__spec_text(spec), ls_describe(initial), replica->id),
             "a variable has the same shape and dtype on all replicas");
    return NULL;
}

static ls_variable *create(const char *who, const ls_variable_options *o, const char *name,
                           ls_tensor *initial)
{
    if (check_initial(who, name, initial) || check_options(who, o, name, &initial->spec))
        return NULL;
    ls_replica *replica = ls__hosted();
    ls_variable *v = NULL;
    if (replica && ls__created_find(replica, name, &v))
        return NULL;
    if (v)
        return made_before(who, replica, v, initial);
    v = make(strategy_here(), o, name, initial);
    if (v && replica && ls__created_add(replica, name, v)) {
        destroy(v);
        return NULL;
    }
    return v;
}

ls_variable *ls_variable_new(const char *name, ls_tensor *initial, bool trainable)
{
    return create("ls_variable_new", LS_VARIABLE(.trainable = trainable ? LS_TRAINABLE : LS_FROZEN),
                  name, initial);
}

ls_variable *ls_variable_with(const ls_variable_options *options, const char *name,
                              ls_tensor *initial)
{
    static const ls_variable_options defaults = { .size = sizeof defaults };
    return create("ls_variable_with", options ? options : &defaults, name, initial);
}

void ls_variable_free(ls_variable *v)
{
    if (!v)
        return;
    if (v->container) {
        ls__hint(ls__fail(LS_INVALID, "ls_variable_free: '%s' is component %d of variable '%s'",
                          v->name, v->replica, v->container->name),
                 "free the variable: its components go with it");
        return;
    }
    if (!ls__check_alone("ls_variable_free", "free it after the run"))
        destroy(v);
}
