/*
 * rate_at: the learning rate as a function of the updates done. Invariant: a fixed list of
 * additions, products and quotients, nothing of libm, so that every build gives the same bits.
 */
#include "ops/rate.h"

#include "dispatch/call.h"

/* ---- half a wave ----------------------------------------------------------------------- */

#define PI 3.141592653589793

/* Their series, to where the next term is below 2^-53, for t up to pi / 4. */
static double cos_small(double t)
{
    static const double c[] = {
        -1.0 / 2,         1.0 / 24,          -1.0 / 720,           1.0 / 40320,
        -1.0 / 3628800.0, 1.0 / 479001600.0, -1.0 / 87178291200.0, 1.0 / 20922789888000.0
    };
    double x = t * t, y = 0;
    for (int i = 8; i-- > 0;)
        y = __builtin_fma(y, x, c[i]);
    return __builtin_fma(y, x, 1);
}

static double sin_small(double t)
{
    static const double c[] = { -1.0 / 6,
                                1.0 / 120,
                                -1.0 / 5040,
                                1.0 / 362880.0,
                                -1.0 / 39916800.0,
                                1.0 / 6227020800.0,
                                -1.0 / 1307674368000.0,
                                1.0 / 355687428096000.0 };
    double x = t * t, y = 0;
    for (int i = 8; i-- > 0;)
        y = __builtin_fma(y, x, c[i]);
    return __builtin_fma(y * x, t, t);
}

double ls__cos_pi(double x)
{
    if (x > 0.5)
        return -ls__cos_pi(1 - x);
    return x <= 0.25 ? cos_small(PI * x) : sin_small(PI * (0.5 - x));
}

/* ---- schedules ---------------------------------------------------------------------------- */

static double after_warmup(const double *p, double step)
{
    int kind = (int)p[LS__RATE_KIND];
    if (kind == LS__RATE_COSINE) {
        double steps = p[LS__RATE_STEPS], alpha = p[LS__RATE_ALPHA];
        double wave = 0.5 * (1 + ls__cos_pi(step < steps ? step / steps : 1));
        return p[LS__RATE_VALUE] * ((1 - alpha) * wave + alpha);
    }
    if (kind == LS__RATE_STEP) {
        int i = 0;
        while (i < (int)p[LS__RATE_COUNT] && step > p[LS__RATE_BOUNDARIES + i])
            i++;
        return p[LS__RATE_VALUES + i];
    }
    return p[LS__RATE_VALUE];
}

double ls__rate_at(const double *p, int64_t step)
{
    double at = (double)step, warmup = p[LS__RATE_WARMUP_STEPS], from = p[LS__RATE_WARMUP_FROM];
    if (at < warmup)
        return (after_warmup(p, 0) - from) * (at / warmup) + from;
    return after_warmup(p, at - warmup);
}

/* ---- the row --------------------------------------------------------------------------------- */

enum { NUMBERS, STEP };

static ls_status shape(ls_call *c)
{
    const ls__spec *p = c->in[NUMBERS], *step = c->in[STEP];
    if (p->dtype != LS_F64 || p->rank != 1 || p->dims[0] != LS__RATE_NUMBERS)
        return ls_call_fail(c, LS_SHAPE, "a schedule wants f64[%d]", LS__RATE_NUMBERS);
    if (step->dtype != LS_I64 || step->rank != 0)
        return ls_call_fail(c, LS_SHAPE, "the step wants i64[]");
    return ls_call_output(c, 0, LS_F64, 0, NULL);
}

/* A program that was read from bytes may hold any numbers: none may lead outside. */
static bool sound(const double *p)
{
    double count = p[LS__RATE_COUNT], kind = p[LS__RATE_KIND];
    return count >= 0 && count <= LS__RATE_MOST_BOUNDARIES && kind >= 0 && kind <= LS__RATE_COSINE;
}

static ls_status kernel(ls_call *c)
{
    const double *p = c->in_data[NUMBERS];
    *(double *)c->out_data[0] =
        sound(p) ? ls__rate_at(p, *(const int64_t *)c->in_data[STEP]) : __builtin_nan("");
    return LS_OK;
}

static const ls_op rate_at = { .size = sizeof(ls_op),
                               .name = "rate_at",
                               .inputs = 2,
                               .outputs = 1,
                               .flags = LS_OP_TOTAL,
                               .shape = shape,
                               .kernel = kernel };

const ls_op *const ls__rows_rate[] = { &rate_at, NULL };

ls_tensor *ls__rate(ls_tensor *numbers, ls_tensor *step)
{
    return ls__call2(&rate_at, NULL, numbers, step);
}
