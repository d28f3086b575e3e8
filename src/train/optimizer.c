/*
 * Optimizers. Each is a row of a small table: how many slots a variable has and
 * which update row runs. Invariant: all that can fail (gradients, slots, copies
 * of live snapshots) is done before the first variable changes.
 */
#include <lockstep/ops.h>
#include <lockstep/train.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "dispatch/sink.h"
#include "dispatch/tape.h"
#include "ops/update.h"
#include "ops/variable.h"
#include "strategy/variable.h"
#include "tensor/tensor.h"

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
    static const ls__spec number = { .dtype = LS_F64 }, counter = { .dtype = LS_I64 };
    if (ls__cell_new("rate", &number, &o->rate) ||
        ls__cell_new("iterations", &counter, &o->iterations)) {
        ls_optimizer_free(o);
        return NULL;
    }
    *(double *)ls__cell_write(o->rate) = rate;
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
    *options = (ls_sgd_options){ .size = sizeof *options };
}

void ls_adam_init(ls_adam_options *options)
{
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
    if (!o)
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
        st = check_rate("ls_set_rate", rate);
    if (!st) {
        LS_FRAME st = ls__cell_assign(o->rate, ls_scalar(LS_F64, rate));
    }
    return st;
}

/* A number read while a step is traced would stay what it was. */
static bool unknown_here(const char *who)
{
    if (!ls__sink_get())
        return false;
    ls__hint(ls__fail(LS_STATE, "%s: a replay has its own, not known while the step is traced", who),
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

static ls_status slots_of(ls_optimizer *o, ls_variable *v, slot_set **out)
{
    for (slot_set *set = o->sets; set; set = set->next)
        if (set->variable == ls__cell_serial(v->cell)) {
            *out = set;
            return LS_OK;
        }
    slot_set *set = calloc(1, sizeof *set);
    if (!set)
        return ls__fail_memory(o->kind->name, sizeof *set);
    set->variable = ls__cell_serial(v->cell);
    set->cells[0] = v->cell;
    for (int i = 1; i <= o->kind->slots; i++) {
        char name[128];
        snprintf(name, sizeof name, "%s/%s", v->name, o->kind->slot_names[i - 1]);
        ls_status st = ls__cell_new(name, ls__cell_spec(v->cell), &set->cells[i]);
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

static ls_status check_gradient(const ls_variable *v, const ls_tensor *gradient)
{
    ls_status st = ls__check_tensor("ls_apply_gradients", "a gradient", gradient);
    if (st)
        return st;
    const ls__spec *spec = ls__cell_spec(v->cell);
    if (spec->dtype != LS_F32 && spec->dtype != LS_F64)
        return ls__fail(LS_SHAPE, "ls_apply_gradients: variable '%s' is %s, wants f32 or f64",
                        v->name, ls__spec_text(spec));
    if (!ls__spec_equal(spec, &gradient->spec))
        return ls__fail(LS_SHAPE, "ls_apply_gradients: variable '%s' is %s, its gradient %s",
                        v->name, ls__spec_text(spec), ls_describe(gradient));
    return LS_OK;
}

/* Everything that can fail, for all variables: `sets` and dense gradients. */
static ls_status prepare(ls_optimizer *o, int count, ls_tensor *const *gradients,
                         ls_variable *const *variables, slot_set **sets, ls_tensor **dense)
{
    for (int i = 0; i < count; i++) {
        ls_status st = ls__check_variable("ls_apply_gradients", variables[i]);
        for (int k = 0; k < i && !st; k++)
            if (variables[k] == variables[i])
                st = ls__fail(LS_INVALID, "ls_apply_gradients: variable '%s' is listed twice",
                              variables[i]->name);
        if (!st)
            st = check_gradient(variables[i], gradients[i]);
        if (!st)
            st = slots_of(o, variables[i], &sets[i]);
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
        LS_FRAME st = apply(o, count, gradients, variables);
    }
    return st;
}

static ls_status minimize(ls_optimizer *o, ls_tape *tape, ls_tensor *loss, int count,
                          ls_variable *const *variables)
{
    ls_variable **trained = ls__frame_alloc(sizeof *trained * (size_t)(count + 1));
    ls_tensor **values = ls__frame_alloc(sizeof *values * (size_t)(count + 1));
    ls_tensor **gradients = ls__frame_alloc(sizeof *gradients * (size_t)(count + 1));
    if (!trained || !values || !gradients)
        return LS_NO_MEMORY;
    int n = 0;
    for (int i = 0; i < count; i++) {
        ls_status st = ls__check_variable("ls_minimize", variables[i]);
        if (st)
            return st;
        if (!variables[i]->trainable)
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
        st = ls__hint(ls__fail(LS_INVALID, "ls_minimize: the loss depends on none of the %d "
                                           "trainable variables", n),
                      "compute it after ls_tape_open from ls_read of them, and write them only "
                      "after ls_minimize");
    return st ? st : apply(o, n, gradients, trained);
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
        LS_FRAME st = minimize(o, tape, loss, count, variables);
    }
    return st;
}
