/*
 * Learning rates: schedules as numbers in a cell, which a row reads (ops/rate.c). Invariant: what is
 * in the cell was checked, so the row cannot fail; setting a rate or a schedule writes the cell and
 * nothing else, so a recorded step follows it.
 */
#include <lockstep/ops.h>
#include <math.h>
#include <string.h>

#include "base/status.h"
#include "ops/rate.h"
#include "ops/variable.h"
#include "strategy/context.h"
#include "tensor/tensor.h"
#include "train/optimizer.h"

_Static_assert((int)LS_MOST_BOUNDARIES == (int)LS__RATE_MOST_BOUNDARIES, "see ops/rate.h");
_Static_assert((int)LS_SCHEDULE_STEP == (int)LS__RATE_STEP &&
                   (int)LS_SCHEDULE_COSINE == (int)LS__RATE_COSINE,
               "see ops/rate.h");

/* Steps are kept in doubles, which hold whole numbers up to here. */
#define MOST_STEPS ((int64_t)1 << 53)

void ls_schedule_init(ls_schedule *schedule)
{
    if (schedule)
        *schedule = (ls_schedule){ .size = sizeof *schedule };
}

/* ---- checking ------------------------------------------------------------------------- */

ls_status ls__check_rate(const char *who, const char *what, double rate)
{
    if (isfinite(rate) && rate >= 0)
        return LS_OK;
    return ls__hint(ls__fail(LS_INVALID, "%s: %s %g", who, what, rate),
                    "a rate is a finite number, 0 or more");
}

static ls_status check_steps(const char *who, const char *what, int64_t steps, int64_t least)
{
    if (steps >= least && steps <= MOST_STEPS)
        return LS_OK;
    return ls__hint(ls__fail(LS_INVALID, "%s: %s %lld", who, what, (long long)steps),
                    "it is %lld to %lld", (long long)least, (long long)MOST_STEPS);
}

static ls_status step_numbers(const char *who, const ls_schedule *s, double *numbers)
{
    if (s->count < 1 || s->count > LS_MOST_BOUNDARIES || !s->boundaries || !s->values)
        return ls__hint(
            ls__fail(LS_INVALID, "%s: a schedule of %d boundaries in %s and values in %s", who,
                     s->count, s->boundaries ? "a list" : "NULL", s->values ? "a list" : "NULL"),
            "LS_SCHEDULE_STEP wants 1 to %d boundaries, and one value more", LS_MOST_BOUNDARIES);
    if (s->rate != 0)
        return ls__hint(ls__fail(LS_INVALID, "%s: a schedule of steps with rate %g", who, s->rate),
                        "its rates are .values");
    ls_status st = LS_OK;
    for (int i = 0; i < s->count && !st; i++) {
        st = check_steps(who, "boundary", s->boundaries[i], 0);
        if (!st && i > 0 && s->boundaries[i] <= s->boundaries[i - 1])
            st = ls__hint(ls__fail(LS_INVALID, "%s: boundary %lld after boundary %lld", who,
                                   (long long)s->boundaries[i], (long long)s->boundaries[i - 1]),
                          "boundaries rise");
        numbers[LS__RATE_BOUNDARIES + i] = (double)s->boundaries[i];
    }
    for (int i = 0; i <= s->count && !st; i++) {
        st = ls__check_rate(who, "value", s->values[i]);
        numbers[LS__RATE_VALUES + i] = s->values[i];
    }
    numbers[LS__RATE_COUNT] = s->count;
    return st;
}

static ls_status cosine_numbers(const char *who, const ls_schedule *s, double *numbers)
{
    if (!(s->alpha >= 0 && s->alpha <= 1))
        return ls__hint(ls__fail(LS_INVALID, "%s: a schedule with alpha %g", who, s->alpha),
                        "the part of the rate that stays is in [0, 1]");
    numbers[LS__RATE_STEPS] = (double)s->steps;
    numbers[LS__RATE_ALPHA] = s->alpha;
    return check_steps(who, "a schedule whose cosine has steps", s->steps, 1);
}

ls_status ls__schedule_numbers(const char *who, const ls_schedule *schedule, double rate,
                               double *numbers)
{
    const ls_schedule constant = { .size = sizeof constant };
    const ls_schedule *s = schedule ? schedule : &constant;
    if (s->size != sizeof *s)
        return ls__hint(
            ls__fail(LS_INVALID, "%s: a schedule of %zu bytes, wants %zu", who, s->size, sizeof *s),
            "fill it with LS_SCHEDULE, or with ls_schedule_init first");
    memset(numbers, 0, sizeof *numbers * LS__RATE_NUMBERS);
    numbers[LS__RATE_KIND] = s->kind;
    numbers[LS__RATE_VALUE] = ls__or_default(s->rate, rate);
    numbers[LS__RATE_OWN] = rate;
    numbers[LS__RATE_WARMUP_STEPS] = (double)s->warmup_steps;
    numbers[LS__RATE_WARMUP_FROM] = s->warmup_from;
    ls_status st = ls__check_rate(who, "a schedule of rate", numbers[LS__RATE_VALUE]);
    if (!st)
        st = ls__check_rate(who, "warmup_from", s->warmup_from);
    if (!st)
        st = check_steps(who, "warmup_steps", s->warmup_steps, 0);
    if (st || s->kind == LS_SCHEDULE_CONSTANT)
        return st;
    if (s->kind == LS_SCHEDULE_STEP)
        return step_numbers(who, s, numbers);
    if (s->kind == LS_SCHEDULE_COSINE)
        return cosine_numbers(who, s, numbers);
    return ls__hint(ls__fail(LS_INVALID, "%s: a schedule of kind %d", who, (int)s->kind),
                    "one of LS_SCHEDULE_CONSTANT, LS_SCHEDULE_STEP and LS_SCHEDULE_COSINE");
}

/* As far as they can be the numbers of one, they are turned back into a schedule; which then must give
 * the same numbers. */
bool ls__are_schedule_numbers(const double *numbers)
{
    int64_t boundaries[LS_MOST_BOUNDARIES];
    double again[LS__RATE_NUMBERS];
    static const int whole[] = { LS__RATE_KIND, LS__RATE_COUNT, LS__RATE_STEPS,
                                 LS__RATE_WARMUP_STEPS };
    for (int i = 0; i < LS__RATE_NUMBERS; i++)
        if (!isfinite(numbers[i]))
            return false;
    for (int i = 0; i < LS_MOST_BOUNDARIES + 4; i++) {
        double n = numbers[i < 4 ? whole[i] : LS__RATE_BOUNDARIES + i - 4];
        if (n < 0 || n > (double)MOST_STEPS || n != (double)(int64_t)n)
            return false;
    }
    for (int i = 0; i < LS_MOST_BOUNDARIES; i++)
        boundaries[i] = (int64_t)numbers[LS__RATE_BOUNDARIES + i];
    if (numbers[LS__RATE_KIND] > LS_SCHEDULE_COSINE || numbers[LS__RATE_COUNT] > LS_MOST_BOUNDARIES)
        return false;
    const double value = numbers[LS__RATE_VALUE];
    ls_schedule s = { .size = sizeof s,
                      .kind = (ls_schedule_kind)numbers[LS__RATE_KIND],
                      .count = (int)numbers[LS__RATE_COUNT],
                      .boundaries = boundaries,
                      .values = &numbers[LS__RATE_VALUES],
                      .steps = (int64_t)numbers[LS__RATE_STEPS],
                      .alpha = numbers[LS__RATE_ALPHA],
                      .warmup_steps = (int64_t)numbers[LS__RATE_WARMUP_STEPS],
                      .warmup_from = numbers[LS__RATE_WARMUP_FROM] };
    s.rate = s.kind == LS_SCHEDULE_STEP ? 0 : value == 0 ? -1 : value;
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_status st = ls__check_rate("", "", numbers[LS__RATE_OWN]);
    if (!st)
        st = ls__schedule_numbers("", &s, numbers[LS__RATE_OWN], again);
    ls_error();
    ls__error_scope_close(&scope, LS_OK, "a schedule");
    for (int i = 0; i < LS__RATE_NUMBERS && !st; i++)
        if (numbers[i] != again[i])
            return false;
    return !st;
}

/* ---- setting and asking ------------------------------------------------------------------ */

static ls_status set(ls_optimizer *o, const double *numbers)
{
    ls_status st = LS_OK;
    LS_FRAME
        st = ls__cell_assign(o->rate, ls_from(LS_F64, LS_DIMS(LS__RATE_NUMBERS), numbers));
    return st;
}

/* The same, but for the own rate, which stays. In operators: a replay's is not known here. */
static ls_status set_schedule(ls_optimizer *o, const double *numbers, bool wants_own)
{
    enum { REST = LS__RATE_OWN + 1 };
    ls_status st = LS_OK;
    LS_FRAME {
        ls_tensor *before = ls__cell_read_op(o->rate);
        ls_tensor *own = ls_slice(before, 1, (int64_t[]){ LS__RATE_OWN }, (int64_t[]){ 1 });
        ls_tensor *parts[] = { ls_from(LS_F64, LS_DIMS(LS__RATE_VALUE), numbers),
                               wants_own ? own
                                         : ls_from(LS_F64, LS_DIMS(1), &numbers[LS__RATE_VALUE]),
                               own,
                               ls_from(LS_F64, LS_DIMS(LS__RATE_NUMBERS - REST), &numbers[REST]) };
        for (int i = 0; i < 4 && before; i++)
            if (parts[i])
                parts[i]->device = before->device; /* numbers of the host's */
        st = ls__cell_assign(o->rate, ls_concat(4, parts, 0));
    }
    return st;
}

static ls_status check_setting(const char *who, const ls_optimizer *o)
{
    ls_status st = ls__check_optimizer(who, o);
    return st ? st : ls__check_alone(who, "set it between steps, or in a merge function");
}

ls_status ls_set_rate(ls_optimizer *o, double rate)
{
    double numbers[LS__RATE_NUMBERS] = { 0 };
    numbers[LS__RATE_VALUE] = numbers[LS__RATE_OWN] = rate;
    ls_status st = check_setting("ls_set_rate", o);
    if (!st)
        st = ls__check_rate("ls_set_rate", "rate", rate);
    return st ? st : set(o, numbers);
}

ls_status ls_set_schedule(ls_optimizer *o, const ls_schedule *schedule)
{
    double numbers[LS__RATE_NUMBERS];
    ls_status st = check_setting("ls_set_schedule", o);
    if (!st && !schedule)
        st = ls__hint(ls__fail(LS_INVALID, "ls_set_schedule: the schedule is NULL"),
                      "ls_set_rate makes the rate constant");
    if (!st)
        st = ls__schedule_numbers("ls_set_schedule", schedule, 0, numbers);
    return st ? st : set_schedule(o, numbers, schedule->rate == 0);
}

double ls_rate(const ls_optimizer *o)
{
    if (ls__check_known("ls_rate") || !o)
        return (double)NAN;
    return ls__rate_at(ls__cell_data(o->rate), *(const int64_t *)ls__cell_data(o->iterations));
}

int64_t ls_iterations(const ls_optimizer *o)
{
    if (ls__check_known("ls_iterations"))
        return 0;
    return o ? *(const int64_t *)ls__cell_data(o->iterations) : 0;
}
