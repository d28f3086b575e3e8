/*
 * The fast element-wise loops: f32, f64 where it costs nothing, bools. Compiled
 * once per instruction set.
 *
 * Invariant (rule C): an element's bits depend on its operands' values alone.
 * The vector body and the scalar tail of a loop are the same expression, fma is
 * explicit, nothing is reassociated. The functions are in vecmath.h.
 */
#include "kernels/cpu/elementwise_loop.h"
#include "kernels/cpu/vecmath.h"

/* ---- both float types ---------------------------------------------------------------- */

#define FLOATS(s, T, fn)                                                                           \
    LS__LOOP2(add_##s, T, T, a + b)                                                                \
    LS__LOOP2(sub_##s, T, T, a - b)                                                                \
    LS__LOOP2(mul_##s, T, T, (a * b))                                                              \
    LS__LOOP2(div_##s, T, T, a / b)                                                                \
    LS__LOOP2(maximum_##s, T, T, ((a > b) | (a != a)) ? a : b)                                     \
    LS__LOOP2(minimum_##s, T, T, ((a < b) | (a != a)) ? a : b)                                     \
    LS__LOOP2(equal_##s, T, uint8_t, a == b)                                                       \
    LS__LOOP2(not_equal_##s, T, uint8_t, a != b)                                                   \
    LS__LOOP2(less_##s, T, uint8_t, a < b)                                                         \
    LS__LOOP2(less_equal_##s, T, uint8_t, a <= b)                                                  \
    LS__LOOP2(greater_##s, T, uint8_t, a > b)                                                      \
    LS__LOOP2(greater_equal_##s, T, uint8_t, a >= b)                                               \
    LS__LOOP1(neg_##s, T, T, -a)                                                                   \
    LS__LOOP1(abs_##s, T, T, fn(fabs)(a))                                                          \
    LS__LOOP1(sign_##s, T, T, a > 0 ? (T)1 : a < 0 ? (T)-1 : a)                                    \
    LS__LOOP1(square_##s, T, T, (a * a))                                                           \
    LS__LOOP1(relu_##s, T, T, a <= 0 ? (T)0 : a)                                                   \
    LS__LOOP1(sqrt_##s, T, T, fn(sqrt)(a))                                                         \
    LS__LOOP1(rsqrt_##s, T, T, (T)1 / fn(sqrt)(a))                                                 \
    LS__LOOP1(floor_##s, T, T, fn(floor)(a))                                                       \
    LS__LOOP1(ceil_##s, T, T, fn(ceil)(a))                                                         \
    LS__LOOP1(round_##s, T, T, fn(rint)(a))                                                        \
    LS__LOOP1(isfinite_##s, T, uint8_t, fn(fabs)(a) < (T)LS__INFF)                                 \
    LS__LOOP1(isnan_##s, T, uint8_t, a != a)                                                       \
    LS__LOOP2(relu_grad_##s, T, T, a > 0 ? b : (T)0)                                               \
    LS__LOOP2(tanh_grad_##s, T, T, (b * ((T)1 - a * a)))                                           \
    LS__LOOP2(sigmoid_grad_##s, T, T, (b * (a * ((T)1 - a))))

#define NAME_F32(base) __builtin_##base##f
#define NAME_F64(base) __builtin_##base
FLOATS(f32, float, NAME_F32)
FLOATS(f64, double, NAME_F64)

/* The limits of clip are single numbers in practice: that case is the fast one. */
#define CLIP(a, low, high) ((a) < (low) ? (low) : (a) > (high) ? (high) : (a))
#define CLIPS(s, T)                                                                                \
    static void clip_##s(const void *const *in, const int64_t *step, void *out, int64_t n)         \
    {                                                                                              \
        const T *x = in[0], *low = in[1], *high = in[2];                                           \
        T *y = out, l = *low, h = *high;                                                           \
        if (step[0] && !step[1] && !step[2])                                                       \
            LS__EACH y[i] = CLIP(x[i], l, h);                                                      \
        else                                                                                       \
            LS__EACH y[i] = CLIP(x[i * step[0]], low[i * step[1]], high[i * step[2]]);             \
    }                                                                                              \
    static void clip_grad_##s(const void *const *in, const int64_t *step, void *out, int64_t n)    \
    {                                                                                              \
        const T *x = in[0], *dy = in[1], *low = in[2], *high = in[3];                              \
        T *y = out, l = *low, h = *high;                                                           \
        if (step[0] && step[1] && !step[2] && !step[3])                                            \
            LS__EACH y[i] = ((x[i] >= l) & (x[i] <= h)) ? dy[i] : (T)0;                            \
        else                                                                                       \
            LS__EACH                                                                               \
            {                                                                                      \
                T a = x[i * step[0]];                                                              \
                y[i] =                                                                             \
                    ((a >= low[i * step[2]]) & (a <= high[i * step[3]])) ? dy[i * step[1]] : (T)0; \
            }                                                                                      \
    }
CLIPS(f32, float)
CLIPS(f64, double)

/* ---- f32 functions ----------------------------------------------------------------------- */

LS__LOOP2(pow_f32, float, float, ls__powf(a, b))
LS__LOOP1(exp_f32, float, float, ls__expf(a))
LS__LOOP1(log_f32, float, float, ls__logf(a))
LS__LOOP1(log1p_f32, float, float, ls__log1pf(a))
LS__LOOP1(tanh_f32, float, float, ls__tanhf(a))
LS__LOOP1(erf_f32, float, float, ls__erff(a))
LS__LOOP1(sigmoid_f32, float, float, ls__sigmoidf(a))
LS__LOOP1(softplus_f32, float, float, ls__softplusf(a))
LS__LOOP1(gelu_f32, float, float, ls__geluf(a))
LS__LOOP1(gelu_tanh_f32, float, float, ls__gelu_tanhf(a))
LS__LOOP2(gelu_grad_f32, float, float, (b * ls__gelu_slopef(a)))
LS__LOOP2(gelu_tanh_grad_f32, float, float, (b * ls__gelu_tanh_slopef(a)))
LS__LOOP1(sin_near_f32, float, float, ls__sinf(a))
LS__LOOP1(cos_near_f32, float, float, ls__cosf(a))

static uint32_t is_big(float x)
{
    float a = __builtin_fabsf(x);
    return (a >= LS__TRIG_LIMIT) & (a < LS__INFF);
}

/* sin (shift 0) and cos (shift 1): blocks without a huge argument go to the
 * vector loop, the others element by element; an element's own value alone
 * decides which formula it gets. */
static void trig(const float *x, int64_t step, float *y, int64_t n, uint32_t shift)
{
    for (int64_t from = 0; from < n; from += 256) {
        int64_t run = n - from < 256 ? n - from : 256;
        const float *a = x + from * step;
        uint32_t big = 0;
        for (int64_t i = 0; i < run; i++)
            big |= is_big(a[i * step]);
        if (!big) {
            (shift ? cos_near_f32 : sin_near_f32)(&(const void *){ a }, &step, y + from, run);
            continue;
        }
        for (int64_t i = 0; i < run; i++) {
            float v = a[i * step];
            y[from + i] = is_big(v) ? ls__sin_big(v, shift) : shift ? ls__cosf(v) : ls__sinf(v);
        }
    }
}

static void sin_f32(const void *const *in, const int64_t *step, void *out, int64_t n)
{
    trig(in[0], step[0], out, n, 0);
}

static void cos_f32(const void *const *in, const int64_t *step, void *out, int64_t n)
{
    trig(in[0], step[0], out, n, 1);
}

/* ---- bools, selection ------------------------------------------------------------------------ */

LS__LOOP2(logical_and_bool, uint8_t, uint8_t, (a != 0) & (b != 0))
LS__LOOP2(logical_or_bool, uint8_t, uint8_t, (a | b) != 0)
LS__LOOP1(logical_not_bool, uint8_t, uint8_t, a == 0)

/* Both sides are read whatever the condition, so that the loops have no branch. */
#define SELECT(condition, yes, no)                                                                 \
    LS__EACH                                                                                       \
    {                                                                                              \
        T p = (yes), q = (no);                                                                     \
        y[i] = (condition) ? p : q;                                                                \
    }
#define WHERE(size, type)                                                                          \
    static void where_##size(const void *const *in, const int64_t *step, void *out, int64_t n)     \
    {                                                                                              \
        typedef type T;                                                                            \
        const uint8_t *c = in[0];                                                                  \
        const T *a = in[1], *b = in[2];                                                            \
        T *y = out, a0 = *a, b0 = *b;                                                              \
        if (step[0] && step[1] && step[2])                                                         \
            SELECT(c[i], a[i], b[i])                                                               \
        else if (step[0] && step[1])                                                               \
            SELECT(c[i], a[i], b0)                                                                 \
        else if (step[0] && step[2])                                                               \
            SELECT(c[i], a0, b[i])                                                                 \
        else                                                                                       \
            SELECT(c[i * step[0]], a[i * step[1]], b[i * step[2]])                                 \
    }

WHERE(1, uint8_t)
WHERE(2, ls__any16)
WHERE(4, ls__any32)
WHERE(8, ls__any64)

/* ---- the table ------------------------------------------------------------------------- */

#define BOTH(f) [LS__FN_##f] = { [LS_F32] = f##_f32, [LS_F64] = f##_f64 }
#define F32(f) [LS__FN_##f] = { [LS_F32] = f##_f32 }
#define BOOLS(f) [LS__FN_##f] = { [LS_BOOL] = f##_bool }

const ls__elementwise LS__ISA(ls__elementwise_table) = {
    .fn = {
        BOTH(add), BOTH(sub), BOTH(mul), BOTH(div), BOTH(maximum), BOTH(minimum), BOTH(equal),
        BOTH(not_equal), BOTH(less), BOTH(less_equal), BOTH(greater), BOTH(greater_equal),
        BOTH(neg), BOTH(abs), BOTH(sign), BOTH(square), BOTH(relu), BOTH(sqrt), BOTH(rsqrt),
        BOTH(floor), BOTH(ceil), BOTH(round), BOTH(isfinite), BOTH(isnan), BOTH(clip),
        BOTH(relu_grad), BOTH(tanh_grad), BOTH(sigmoid_grad), BOTH(clip_grad),
        F32(pow), F32(exp), F32(log), F32(log1p), F32(sin), F32(cos), F32(tanh), F32(erf),
        F32(sigmoid), F32(softplus), F32(gelu), F32(gelu_tanh), F32(gelu_grad),
        F32(gelu_tanh_grad),
        BOOLS(logical_and), BOOLS(logical_or), BOOLS(logical_not),
    },
    .where = { [1] = where_1, [2] = where_2, [4] = where_4, [8] = where_8 },
};
