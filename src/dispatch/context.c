/*
 * The thread's context. Invariant: a draw's key is a function of (seed, domain,
 * replica, step) and draws of a step are numbered in program order, so the
 * numbers do not depend on what other threads do.
 */
#include "dispatch/context.h"

#include "dispatch/sink.h"
#include "tensor/convert.h"

static _Thread_local ls__draw_state draws;
static _Thread_local ls_numerics checking;

/* A replay draws with the seed and the step of its caller: setting them in a traced step
 * would happen once and be forgotten. */
static bool refused_here(const char *who)
{
    if (!ls__sink_get())
        return false;
    ls__hint(ls__fail(LS_STATE, "%s: not while a step is traced", who),
             "set it before calling the traced function; every replay looks at it");
    return true;
}

void ls_random_seed(uint64_t seed)
{
    if (refused_here("ls_random_seed"))
        return;
    draws = (ls__draw_state){ .seed = seed, .replica = draws.replica };
}

void ls_random_step(int64_t step)
{
    if (refused_here("ls_random_step"))
        return;
    draws.step = step;
    draws.draws = 0;
}

void ls__draws_get(ls__draw_state *out)
{
    *out = draws;
}

void ls__draws_set(const ls__draw_state *in)
{
    draws = *in;
}

void ls__next_draw(ls__draw *out)
{
    if (draws.initialising) {
        out->key = ls__draw_key(draws.seed, LS__DRAW_INITIALISER, 0, 0);
        out->ordinal = draws.initialisers++;
    } else {
        out->key = ls__draw_key(draws.seed, LS__DRAW_OPERATOR, draws.replica, draws.step);
        out->ordinal = draws.draws++;
    }
}

bool ls__drawing_initialisers(void)
{
    return draws.initialising;
}

void ls__take_draws(int64_t count, ls__draw *first)
{
    first->key = ls__draw_key(draws.seed, LS__DRAW_OPERATOR, draws.replica, draws.step);
    first->ordinal = draws.draws;
    draws.draws += (uint64_t)count;
}

void ls__give_back_draws(const ls__draw *first)
{
    draws.draws = first->ordinal;
}

int64_t ls__replica(void)
{
    return draws.replica;
}

bool ls__draw_initialisers(bool on)
{
    bool before = draws.initialising;
    draws.initialising = on;
    return before;
}

static _Thread_local bool one_of_many;

bool ls__is_one_of_many(void)
{
    return one_of_many;
}

bool ls__set_one_of_many(bool is)
{
    bool before = one_of_many;
    one_of_many = is;
    return before;
}

ls_numerics ls_check_numerics(ls_numerics check)
{
    ls_numerics before = checking;
    checking = check;
    return before;
}

ls_numerics ls__numerics(void)
{
    return checking;
}

int64_t ls__first_bad(const ls__spec *spec, const void *data)
{
    if (!ls_dtype_is_float(spec->dtype))
        return -1;
    int64_t count = ls__spec_count(spec);
    for (int64_t i = 0; i < count; i++) {
        double x = ls__load_double(spec->dtype, data, i);
        if (x != x || (checking == LS_NUMERICS_NAN_AND_INF && x - x != 0))
            return i;
    }
    return -1;
}

ls_status ls__check_outputs(const ls_call *c)
{
    for (int i = 0; i < c->n_outputs; i++) {
        int64_t at = c->op->flags & LS_OP_ALIAS ? -1 : ls__first_bad(&c->out[i], c->out_data[i]);
        if (at < 0)
            continue;
        for (int k = 0; k < c->n_inputs; k++)
            if (ls__first_bad(c->in[k], c->in_data[k]) >= 0)
                return LS_OK; /* not made here: it came in */
        double x = ls__load_double(c->out[i].dtype, c->out_data[i], at);
        return ls__hint(
            ls_call_fail(c, LS_INVALID, "made %s from %s, at element %lld of output %d %s",
                         x != x ? "NaN" : "an infinity",
                         checking == LS_NUMERICS_NAN ? "inputs without NaN" : "finite inputs",
                         (long long)at, i, ls__spec_text(&c->out[i])),
            "ls_check_numerics(LS_NUMERICS_OFF) lets them pass");
    }
    return LS_OK;
}
