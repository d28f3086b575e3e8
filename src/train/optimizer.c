/*
 * Optimizers. Each is a row of a small table: how many slots a variable has and
 * which update row runs. Invariant: all that can fail (gradients, slots, copies
 * of live snapshots) is done before the first variable changes. Replicas meet: their
 * gradients are added up, and every variable is updated once for all of them.
 */
#include <lockstep/ops.h>
#include <lockstep/train.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "dispatch/sink.h"
#include "dispatch/tape.h"
#include "ops/replicas.h"
#include "ops/update.h"
#include "ops/variable.h"
#include "strategy/context.h"
#include "strategy/run.h"
#include "strategy/strategy.h"
#include "strategy/variable.h"
#include "tensor/tensor.h"
#include "tensor/value.h"

enum { MOST_SLOTS = 2 };

/* A variable with its slots, as update rows want their cells. */
typedef struct slot_set {
    uint64_t variable; /* ls__cell_serial of cells[0], which may be gone */
    ls__cell *cells[1 + MOST_SLOTS];
    struct slot_set *next;
} slot_set;

typedef struct optimizer_kind {
    const char *name;
    int slots;
    const char *slot_names[MOST_SLOTS]; /* in programs: "w/m" */
    ls_status (*update)(ls_optimizer *o, slot_set *set, ls_tensor *gradient, ls_tensor *rate,
                        ls_tensor *iteration);
} optimizer_kind;

struct ls_optimizer {
    const optimizer_kind *kind;
    uint64_t number; /* 1, 2, ...: its name in errors, by which replicas see that it is one */
    /* Cells, so that a recorded step reads them each time it is replayed. */
    ls__cell *rate;       /* f64[] */
    ls__cell *iterations; /* i64[]: updates done so far */
    ls__adam_attrs adam;
    slot_set *sets;
};

static ls_status sgd(ls_optimizer *o, slot_set *set, ls_tensor *gradient, ls_tensor *rate,
                     ls_tensor *iteration)
{
    (void)o;
    (void)iteration;
    return ls__sgd_update(set->cells[0], gradient, rate);
}

static ls_status adam(ls_optimizer *o, slot_set *set, ls_tensor *gradient, ls_tensor *rate,
                      ls_tensor *iteration)
{
    return ls__adam_update(set->cells, gradient, rate, iteration, &o->adam);
}

static const optimizer_kind sgd_kind = { "ls_sgd", 0, { NULL }, sgd };
static const optimizer_kind adam_kind = { "ls_adam", 2, { "m", "v" }, adam };

/* ---- making ---------------------------------------------------------------------- */

static ls_status check_rate(const char *who, double rate)
{
    if (isfinite(rate) && rate >= 0)
        return LS_OK;
    return ls__hint(ls__fail(LS_INVALID, "%s: rate %g", who, rate),
                    "a rate is a finite number, 0 or more");
}

static _Atomic uint64_t made; /* optimizers so far */

static ls_optimizer *make(const optimizer_kind *kind, double rate)
{
    if (check_rate(kind->name, rate))
        return NULL;
    ls_optimizer *o = calloc(1, sizeof *o);
    if (!o) {
        ls__fail_memory(kind->name, sizeof *o);
        return NULL;
    }
    o->kind = kind;
    o->number = atomic_fetch_add(&made, 1) + 1;
    static const ls__spec number = { .dtype = LS_F64 }, counter = { .dtype = LS_I64 };
    if (ls__cell_new("rate", &number, &o->rate) ||
        ls__cell_new("iterations", &counter, &o->iterations)) {
        ls_optimizer_free(o);
        return NULL;
    }
    double *at = ls__cell_write(o->rate);
    if (!at) {
        ls_optimizer_free(o);
        return NULL;
    }
    *at = rate;
    return o;
}

static ls_status check_size(const char *who, size_t size, size_t want)
{
    if (size == want)
        return LS_OK;
    return ls__hint(ls__fail(LS_INVALID, "%s: options of %zu bytes, wants %zu", who, size, want),
                    "fill options with the macro, or with the _init function first");
}

void ls_sgd_init(ls_sgd_options *options)
{
    if (options)
        *options = (ls_sgd_options){ .size = sizeof *options };
}

void ls_adam_init(ls_adam_options *options)
{
    if (options)
        *options = (ls_adam_options){ .size = sizeof *options };
}

/* Zero means default, -1 means zero. */
static double or_default(double value, double otherwise)
{
    return value == 0 ? otherwise : value == -1 ? 0 : value;
}

ls_optimizer *ls_sgd(const ls_sgd_options *options)
{
    static const ls_sgd_options defaults = { .size = sizeof defaults };
    if (!options)
        options = &defaults;
    if (check_size("ls_sgd", options->size, sizeof *options))
        return NULL;
    return make(&sgd_kind, or_default(options->rate, 0.01));
}

ls_optimizer *ls_adam(const ls_adam_options *options)
{
    static const ls_adam_options defaults = { .size = sizeof defaults };
    if (!options)
        options = &defaults;
    if (check_size("ls_adam", options->size, sizeof *options))
        return NULL;
    ls__adam_attrs attrs = { or_default(options->beta1, 0.9), or_default(options->beta2, 0.999),
                             or_default(options->epsilon, 1e-7) };
    if (!(attrs.beta1 >= 0 && attrs.beta1 < 1 && attrs.beta2 >= 0 && attrs.beta2 < 1 &&
          attrs.epsilon >= 0 && isfinite(attrs.epsilon))) {
        ls__hint(ls__fail(LS_INVALID, "ls_adam: beta1 %g, beta2 %g, epsilon %g", attrs.beta1,
                          attrs.beta2, attrs.epsilon),
                 "betas are in [0, 1), epsilon is 0 or more");
        return NULL;
    }
    ls_optimizer *o = make(&adam_kind, or_default(options->rate, 0.001));
    if (o)
        o->adam = attrs;
    return o;
}

void ls_optimizer_free(ls_optimizer *o)
{
    if (!o || ls__check_alone("ls_optimizer_free", "free it between steps, or in a merge function"))
        return;
    while (o->sets) {
        slot_set *next = o->sets->next;
        for (int i = 0; i < o->kind->slots; i++)
            ls__cell_unref(o->sets->cells[1 + i]);
        free(o->sets);
        o->sets = next;
    }
    ls__cell_unref(o->rate);
    ls__cell_unref(o->iterations);
    free(o);
}

static ls_status check_optimizer(const char *who, const ls_optimizer *o)
{
    if (o)
        return LS_OK;
    return ls_error_pending() ? ls_error_pending()
                              : ls__fail(LS_INVALID, "%s: the optimizer is NULL", who);
}

ls_status ls_set_rate(ls_optimizer *o, double rate)
{
    ls_status st = check_optimizer("ls_set_rate", o);
    if (!st)
        st = ls__check_alone("ls_set_rate", "set it between steps, or in a merge function");
    if (!st)
        st = check_rate("ls_set_rate", rate);
    if (!st) {
        LS_FRAME
            st = ls__cell_assign(o->rate, ls_scalar(LS_F64, rate));
    }
    return st;
}

/* A number read while a step is traced would stay what it was. */
static bool unknown_here(const char *who)
{
    if (!ls__sink_get())
        return false;
    ls__hint(
        ls__fail(LS_STATE, "%s: a replay has its own, not known while the step is traced", who),
        "ask outside of the traced function");
    return true;
}

double ls_rate(const ls_optimizer *o)
{
    if (unknown_here("ls_rate"))
        return (double)NAN;
    return o ? *(const double *)ls__cell_data(o->rate) : (double)NAN;
}

int64_t ls_iterations(const ls_optimizer *o)
{
    if (unknown_here("ls_iterations"))
        return 0;
    return o ? *(const int64_t *)ls__cell_data(o->iterations) : 0;
}

/* ---- updating ---------------------------------------------------------------------- */

static ls_status slots_of(ls_optimizer *o, const char *name, ls__cell *cell, slot_set **out)
{
    for (slot_set *set = o->sets; set; set = set->next)
        if (set->variable == ls__cell_serial(cell)) {
            *out = set;
            return LS_OK;
        }
    slot_set *set = calloc(1, sizeof *set);
    if (!set)
        return ls__fail_memory(o->kind->name, sizeof *set);
    set->variable = ls__cell_serial(cell);
    set->cells[0] = cell;
    for (int i = 1; i <= o->kind->slots; i++) {
        char slot[128];
        snprintf(slot, sizeof slot, "%s/%s", name, o->kind->slot_names[i - 1]);
        ls_status st = ls__cell_new(slot, ls__cell_spec(cell), &set->cells[i]);
        if (st) {
            while (--i > 0)
                ls__cell_unref(set->cells[i]);
            free(set);
            return st;
        }
    }
    set->next = o->sets;
    o->sets = set;
    *out = set;
    return LS_OK;
}

/* Whether this thread may update the variable, with this gradient; its cell. */
static ls_status check_pair(const ls_variable *v, const ls_tensor *gradient, ls__cell **cell)
{
    const char *who = "ls_apply_gradients";
    ls_status st = ls__check_variable_here(who, v);
    if (!st)
        st = ls__check_tensor(who, "a gradient", gradient);
    if (!st)
        st = ls__shared_cell(who, v, cell);
    if (st)
        return st;
    if (v->strategy && v->strategy->freed)
        return ls__fail(LS_STATE, "%s: the strategy of variable '%s' was freed", who, v->name);
    const ls__spec *spec = ls__cell_spec(*cell);
    if (spec->dtype != LS_F32 && spec->dtype != LS_F64)
        return ls__fail(LS_SHAPE, "%s: variable '%s' is %s, wants f32 or f64", who, v->name,
                        ls__spec_text(spec));
    if (!ls__spec_equal(spec, &gradient->spec))
        return ls__fail(LS_SHAPE, "%s: variable '%s' is %s, its gradient %s", who, v->name,
                        ls__spec_text(spec), ls_describe(gradient));
    return LS_OK;
}

/* Everything that can fail, for all variables: `sets` and dense gradients. */
static ls_status prepare(ls_optimizer *o, int count, ls_tensor *const *gradients,
                         ls_variable *const *variables, slot_set **sets, ls_tensor **dense)
{
    for (int i = 0; i < count; i++) {
        ls__cell *cell = NULL;
        ls_status st = check_pair(variables[i], gradients[i], &cell);
        for (int k = 0; k < i && !st; k++)
            if (sets[k]->cells[0] == cell)
                st = ls__fail(LS_INVALID, "ls_apply_gradients: variable '%s' is listed twice",
                              variables[i]->name);
        if (!st)
            st = slots_of(o, variables[i]->name, cell, &sets[i]);
        for (int k = 0; k <= o->kind->slots && !st; k++)
            st = ls__cell_unshare(sets[i]->cells[k]);
        if (st)
            return st;
        dense[i] = ls_densify(gradients[i]);
        if (!dense[i])
            return ls_error_pending();
    }
    return LS_OK;
}

/* The number of the update to come. Counting it, later, can then not fail. */
static ls_status next_iteration(ls_optimizer *o, ls_tensor **out)
{
    ls_tensor *done = ls__cell_read_op(o->iterations), *one = ls_scalar_int(LS_I64, 1);
    if (done && one)
        one->device = done->device;
    *out = ls_add(done, one);
    return *out ? ls__cell_unshare(o->iterations) : ls_error_pending();
}

static ls_status apply(ls_optimizer *o, int count, ls_tensor *const *gradients,
                       ls_variable *const *variables)
{
    slot_set **sets = ls__frame_alloc(sizeof *sets * (size_t)(count + 1));
    ls_tensor **dense = ls__frame_alloc(sizeof *dense * (size_t)(count + 1));
    if (!sets || !dense)
        return LS_NO_MEMORY;
    ls_status st = prepare(o, count, gradients, variables, sets, dense);
    ls_tensor *rate = ls__cell_read_op(o->rate), *iteration = NULL;
    if (!st)
        st = next_iteration(o, &iteration);
    if (!st && !rate)
        st = ls_error_pending();
    for (int i = 0; i < count && !st; i++) {
        rate->device = iteration->device = dense[i]->device; /* numbers of the host's */
        st = o->kind->update(o, sets[i], dense[i], rate, iteration);
    }
    return st ? st : ls__cell_assign(o->iterations, iteration);
}

/* ---- replicas meet ------------------------------------------------------------------ */

/* What a replica brings: its gradients, dense, and the variables they are of, so that all
 * are seen to mean the same ones. */
static ls_value *to_meet(const ls_replica *replica, int count, ls_tensor *const *gradients,
                         ls_variable *const *variables)
{
    ls_value **parts = ls__frame_alloc(sizeof *parts * 2 * (size_t)(count + 1));
    for (int i = 0; parts && i < count; i++) {
        ls__cell *cell;
        if (check_pair(variables[i], gradients[i], &cell))
            return NULL;
        if (!variables[i]->strategy) {
            ls__hint(ls__fail(LS_STATE,
                              "ls_apply_gradients: replica %d of %d updates variable '%s', "
                              "which belongs to no strategy",
                              replica->id, replica->strategy->replicas, variables[i]->name),
                     "make it in the strategy's scope: LS_SCOPE(s) v = ls_variable_new(...)");
            return NULL;
        }
        ls_tensor *dense = ls_densify(gradients[i]);
        parts[i] = dense ? ls_leaf(dense) : NULL;
        parts[count + i] = ls_variable_leaf(ls_value_container(variables[i]));
        if (!parts[i] || !parts[count + i])
            return NULL;
    }
    return parts ? ls_list(2 * count, parts) : NULL;
}

/* The sum over replicas, in the order of the tree; a gradient that is one tensor for all of
 * them was given by each. */
static ls_tensor *sum_of(const ls_strategy *s, const ls_value *leaf)
{
    ls_tensor **parts = ls__frame_alloc(sizeof *parts * (size_t)s->replicas);
    for (int r = 0; parts && r < s->replicas; r++) {
        parts[r] = ls__here(ls__leaf_component(leaf, r));
        if (!parts[r])
            return NULL;
    }
    return parts ? ls__sum_replicas(LS_SUM, s->replicas, parts) : NULL;
}

static ls_value *apply_once(ls_strategy *s, ls_value *arguments, void *user)
{
    int count = ls_length(arguments) / 2;
    ls_tensor **sums = ls__frame_alloc(sizeof *sums * (size_t)(count + 1));
    ls_variable **variables = ls__frame_alloc(sizeof *variables * (size_t)(count + 1));
    for (int i = 0; sums && variables && i < count; i++) {
        sums[i] = sum_of(s, ls_child(arguments, i));
        variables[i] = ls_leaf_variable(ls_child(arguments, count + i));
        if (!sums[i] || !variables[i])
            return NULL;
    }
    if (!sums || !variables || apply(user, count, sums, variables))
        return NULL;
    return ls_list(0, NULL);
}

/* The update by this thread, or with all replicas when it is one of several. What failed
 * before (`st`) still comes to the meeting, so that nobody waits for it. */
static ls_status apply_here(const char *who, ls_status st, ls_optimizer *o, int count,
                            ls_tensor *const *gradients, ls_variable *const *variables)
{
    ls_replica *replica = ls__hosted();
    if (!replica || replica->strategy->replicas == 1)
        return st ? st : apply(o, count, gradients, variables);
    char what[64];
    snprintf(what, sizeof what, "%s of optimizer %llu", who, (unsigned long long)o->number);
    ls_value *arguments = st ? NULL : to_meet(replica, count, gradients, variables);
    if (ls__meet(replica, what, apply_once, o, arguments))
        return LS_OK;
    return ls_error_pending() ? ls_error_pending() : LS_CANCELLED;
}

static ls_status check_lists(const char *who, const ls_optimizer *o, int count, const void *a,
                             const void *b)
{
    ls_status st = check_optimizer(who, o);
    if (!st && (count < 0 || (count > 0 && (!a || !b))))
        st = ls__fail(LS_INVALID, "%s: %d variables in %s", who, count, b ? "a list" : "NULL");
    return st;
}

ls_status ls_apply_gradients(ls_optimizer *o, int count, ls_tensor *const *gradients,
                             ls_variable *const *variables)
{
    ls_status st = check_lists("ls_apply_gradients", o, count, gradients, variables);
    if (!st) {
        LS_FRAME
            st = apply_here("ls_apply_gradients", LS_OK, o, count, gradients, variables);
    }
    return st;
}

/* Of the loss with respect to those that are trained: *out of `trained`, `gradients`. */
static ls_status gradients_of(ls_tape *tape, ls_tensor *loss, int count,
                              ls_variable *const *variables, int *out, ls_variable **trained,
                              ls_tensor **gradients)
{
    ls_tensor **values = ls__frame_alloc(sizeof *values * (size_t)(count + 1));
    if (!values)
        return LS_NO_MEMORY;
    int n = 0;
    for (int i = 0; i < count; i++) {
        ls_status st = ls__check_variable("ls_minimize", variables[i]);
        if (st)
            return st;
        if (!ls_variable_trainable(variables[i]))
            continue;
        trained[n] = variables[i];
        values[n] = ls_read(variables[i]);
        if (!values[n++])
            return ls_error_pending();
    }
    int connected = 0;
    ls_status st = ls__check_tensor("ls_minimize", "loss", loss);
    if (!st)
        st = ls__gradients(tape, 1, &loss, NULL, n, values, gradients, &connected);
    if (!st && n > 0 && connected == 0)
        st = ls__hint(ls__fail(LS_INVALID,
                               "ls_minimize: the loss depends on none of the %d "
                               "trainable variables",
                               n),
                      "compute it after ls_tape_open from ls_read of them, and write them only "
                      "after ls_minimize");
    *out = n;
    return st;
}

static ls_status minimize(ls_optimizer *o, ls_tape *tape, ls_tensor *loss, int count,
                          ls_variable *const *variables)
{
    ls_variable **trained = ls__frame_alloc(sizeof *trained * (size_t)(count + 1));
    ls_tensor **gradients = ls__frame_alloc(sizeof *gradients * (size_t)(count + 1));
    if (!trained || !gradients)
        return LS_NO_MEMORY;
    int n = 0;
    ls_status st = gradients_of(tape, loss, count, variables, &n, trained, gradients);
    return apply_here("ls_minimize", st, o, n, gradients, trained);
}

ls_status ls_minimize(ls_optimizer *o, ls_tape *tape, ls_tensor *loss, int count,
                      ls_variable *const *variables)
{
    ls_status st = check_lists("ls_minimize", o, count, variables, variables);
    if (!st && !tape && !ls_error_pending())
        st = ls__fail(LS_INVALID, "ls_minimize: the tape is NULL");
    if (!st)
        st = ls_tape_stop(tape);
    if (!st) {
        LS_FRAME
            st = minimize(o, tape, loss, count, variables);
    }
    return st;
}
