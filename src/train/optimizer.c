/*
 * Making optimizers: options, their defaults and what is refused, and the variables whose
 * weights do not decay. What they do is in optimizer_*.c; optimizer.h has the order.
 */
#include "train/optimizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "dispatch/sink.h"
#include "ops/rate.h"
#include "strategy/context.h"
#include "strategy/variable.h"

/* ---- asked of all ------------------------------------------------------------------- */

ls_status ls__check_optimizer(const char *who, const ls_optimizer *o)
{
    if (o)
        return LS_OK;
    return ls_error_pending() ? ls_error_pending()
                              : ls__fail(LS_INVALID, "%s: the optimizer is NULL", who);
}

ls_status ls__check_lists(const char *who, const ls_optimizer *o, int count, const void *a,
                          const void *b)
{
    ls_status st = ls__check_optimizer(who, o);
    if (!st && (count < 0 || (count > 0 && !b)))
        st = ls__fail(LS_INVALID, "%s: %d variables in %s", who, count, b ? "a list" : "NULL");
    if (!st && count > 0 && !a)
        st =
            ls__fail(LS_INVALID, "%s: %d variables, and the list of gradients is NULL", who, count);
    return st;
}

bool ls__has_updated(const ls_optimizer *o)
{
    return *(const int64_t *)ls__cell_data(o->iterations) > 0;
}

ls_status ls__check_known(const char *who)
{
    if (!ls__sink_get())
        return LS_OK;
    return ls__hint(
        ls__fail(LS_STATE, "%s: a replay has its own, not known while the step is traced", who),
        "ask outside of the traced function");
}

double ls__or_default(double value, double otherwise)
{
    return value == 0 ? otherwise : value == -1 ? 0 : value;
}

/* ---- what all kinds have in common ------------------------------------------------------ */

typedef struct common {
    const char *name;
    const ls__update_kind *kind;
    double rate;
    const ls_schedule *schedule;
    double weight_decay, clip_value, clip_norm, clip_global_norm;
    bool lazy, accumulates;
} common;

static ls_status check_clips(const common *c)
{
    const double clips[] = { c->clip_value, c->clip_norm, c->clip_global_norm };
    static const char *const names[] = { "clip_value", "clip_norm", "clip_global_norm" };
    int asked = -1;
    for (int i = 0; i < 3; i++) {
        if (clips[i] == 0)
            continue;
        if (!isfinite(clips[i]) || clips[i] < 0)
            return ls__hint(ls__fail(LS_INVALID, "%s: %s %g", c->name, names[i], clips[i]),
                            "it is a finite number above 0; 0 or nothing: no clipping");
        if (asked >= 0)
            return ls__hint(
                ls__fail(LS_INVALID, "%s: both %s and %s", c->name, names[asked], names[i]),
                "gradients are clipped in one way: give one of them");
        asked = i;
    }
    if (!isfinite(c->weight_decay) || c->weight_decay < 0)
        return ls__hint(ls__fail(LS_INVALID, "%s: weight_decay %g", c->name, c->weight_decay),
                        "it is a finite number, 0 or more");
    return LS_OK;
}

static ls_status make_cells(ls_optimizer *o, const double *numbers)
{
    static const ls__spec schedule = { .dtype = LS_F64, .rank = 1, .dims = { LS__RATE_NUMBERS } };
    static const ls__spec counter = { .dtype = LS_I64 };
    ls_status st = ls__cell_new("rate", &schedule, &o->rate);
    if (!st)
        st = ls__cell_new("iterations", &counter, &o->iterations);
    double *at = st ? NULL : ls__cell_write(o->rate);
    if (at)
        memcpy(at, numbers, sizeof(double) * LS__RATE_NUMBERS);
    return st || at ? st : LS_NO_MEMORY;
}

/* A sum of parts has no rows that were not touched. */
static ls_status check_sums(const common *c)
{
    if (!c->lazy || !c->accumulates)
        return LS_OK;
    return ls__hint(ls__fail(LS_UNSUPPORTED, "%s: .lazy and .accumulates", c->name),
                    "choose one of them");
}

static _Atomic uint64_t made; /* optimizers so far */

static ls_optimizer *make(const common *c, const ls__update_attrs *attrs)
{
    double numbers[LS__RATE_NUMBERS];
    if (ls__check_rate(c->name, "rate", c->rate) || check_clips(c) || check_sums(c) ||
        ls__schedule_numbers(c->name, c->schedule, c->rate, numbers))
        return NULL;
    ls_optimizer *o = calloc(1, sizeof *o);
    if (!o) {
        ls__fail_memory(c->name, sizeof *o);
        return NULL;
    }
    o->name = c->name;
    o->kind = c->kind;
    o->number = atomic_fetch_add(&made, 1) + 1;
    o->attrs = *attrs;
    o->attrs.weight_decay = c->weight_decay;
    o->attrs.clip_value = c->clip_value;
    o->clip_global = c->clip_global_norm != 0;
    o->clip_norm = o->clip_global ? c->clip_global_norm : c->clip_norm;
    o->lazy = c->lazy;
    o->accumulates = c->accumulates;
    if (make_cells(o, numbers)) {
        ls_optimizer_free(o);
        return NULL;
    }
    return o;
}

/* ---- SGD ---------------------------------------------------------------------------------- */

void ls_sgd_init(ls_sgd_options *options)
{
    if (options)
        *options = (ls_sgd_options){ .size = sizeof *options };
}

ls_optimizer *ls_sgd(const ls_sgd_options *options)
{
    static const ls_sgd_options defaults = { .size = sizeof defaults };
    const ls_sgd_options *a = options ? options : &defaults;
    if (ls__check_options_size("ls_sgd", a->size, sizeof *a))
        return NULL;
    const double momentum = ls__or_default(a->momentum, 0);
    if (!(momentum >= 0 && momentum <= 1)) {
        ls__hint(ls__fail(LS_INVALID, "ls_sgd: momentum %g", momentum), "it is in [0, 1]");
        return NULL;
    }
    const common c = { .name = "ls_sgd",
                       .kind =
                           &ls__update_kinds[momentum > 0 ? LS__UPDATE_MOMENTUM : LS__UPDATE_SGD],
                       .rate = ls__or_default(a->rate, 0.01),
                       .schedule = a->schedule,
                       .weight_decay = ls__or_default(a->weight_decay, 0),
                       .clip_value = ls__or_default(a->clip_value, 0),
                       .clip_norm = ls__or_default(a->clip_norm, 0),
                       .clip_global_norm = ls__or_default(a->clip_global_norm, 0),
                       .lazy = a->lazy,
                       .accumulates = a->accumulates };
    return make(&c, &(ls__update_attrs){ .momentum = momentum, .nesterov = a->nesterov });
}

/* ---- Adam ---------------------------------------------------------------------------------- */

void ls_adam_init(ls_adam_options *options)
{
    if (options)
        *options = (ls_adam_options){ .size = sizeof *options };
}

static ls_optimizer *adam(const char *name, const ls_adam_options *options, double weight_decay)
{
    static const ls_adam_options defaults = { .size = sizeof defaults };
    const ls_adam_options *a = options ? options : &defaults;
    if (ls__check_options_size(name, a->size, sizeof *a))
        return NULL;
    const ls__update_attrs attrs = { .beta1 = ls__or_default(a->beta1, 0.9),
                                     .beta2 = ls__or_default(a->beta2, 0.999),
                                     .epsilon = ls__or_default(a->epsilon, 1e-7) };
    if (!(attrs.beta1 >= 0 && attrs.beta1 < 1 && attrs.beta2 >= 0 && attrs.beta2 < 1 &&
          attrs.epsilon >= 0 && isfinite(attrs.epsilon))) {
        ls__hint(ls__fail(LS_INVALID, "%s: beta1 %g, beta2 %g, epsilon %g", name, attrs.beta1,
                          attrs.beta2, attrs.epsilon),
                 "betas are in [0, 1), epsilon is 0 or more");
        return NULL;
    }
    const common c = { .name = name,
                       .kind = &ls__update_kinds[LS__UPDATE_ADAM],
                       .rate = ls__or_default(a->rate, 0.001),
                       .schedule = a->schedule,
                       .weight_decay = ls__or_default(a->weight_decay, weight_decay),
                       .clip_value = ls__or_default(a->clip_value, 0),
                       .clip_norm = ls__or_default(a->clip_norm, 0),
                       .clip_global_norm = ls__or_default(a->clip_global_norm, 0),
                       .lazy = a->lazy,
                       .accumulates = a->accumulates };
    return make(&c, &attrs);
}

ls_optimizer *ls_adam(const ls_adam_options *options)
{
    return adam("ls_adam", options, 0);
}

ls_optimizer *ls_adamw(const ls_adam_options *options)
{
    return adam("ls_adamw", options, 0.004);
}

void ls_optimizer_free(ls_optimizer *o)
{
    if (!o || ls__check_alone("ls_optimizer_free", "free it between steps, or in a merge function"))
        return;
    ls__slots_free(o);
    ls__parts_free(o);
    for (int i = 0; i < o->n_excluded_names; i++)
        free(o->excluded_names[i]);
    free(o->excluded_names);
    free(o->excluded);
    ls__cell_unref(o->rate);
    ls__cell_unref(o->iterations);
    free(o);
}
