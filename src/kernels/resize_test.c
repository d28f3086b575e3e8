/*
 * Resizing against its definition, one output element at a time, to the bit; the
 * transpose against the inner product it must keep; places inside the picture
 * for all sizes, the ones at which f32 no longer tells pixels apart included.
 */
#include "kernels/resize.h"

#include <string.h>

#include "kernels/test_numbers.h"

static ls__resize_shape random_shape(void)
{
    return (ls__resize_shape){
        pick(0, 9) ? pick(1, 3) : 0, pick(1, 9),  pick(1, 9),
        pick(0, 9) ? pick(1, 5) : 0, pick(1, 12), pick(1, 12),
    };
}

static int64_t inputs(const ls__resize_shape *s)
{
    return s->n * s->h * s->w * s->c;
}

static int64_t outputs(const ls__resize_shape *s)
{
    return s->n * s->oh * s->ow * s->c;
}

/* Memory of exactly this size, so that a sanitizer sees its end. */
static void *room(int64_t elements, size_t size)
{
    void *p = malloc(elements > 0 ? (size_t)elements * size : 1);
    assert_non_null(p);
    return p;
}

/* ---- places ----------------------------------------------------------------------------- */

static void check_place(int64_t i, int64_t in, int64_t out)
{
    ls__between b = ls__resize_between(i, in, out);
    int64_t nearest = ls__resize_nearest(i, in, out);
    assert_true(b.low >= 0 && b.low <= b.high && b.high < in && b.high - b.low <= 1);
    assert_true(b.part >= 0 && b.part <= 1);
    assert_true(nearest >= 0 && nearest < in);
}

static void places_are_inside(void **state)
{
    (void)state;
    static const int64_t large[] = { 1,       2,       3,         1000,         4097,
                                     1 << 24, 1 << 25, 100000007, 2147483646ll, 2147483647ll };
    enum { LARGE = sizeof large / sizeof *large };
    for (int64_t in = 1; in <= 60; in++)
        for (int64_t out = 1; out <= 60; out++)
            for (int64_t i = 0; i < out; i++)
                check_place(i, in, out);
    for (int a = 0; a < LARGE; a++)
        for (int b = 0; b < LARGE; b++)
            for (int64_t k = 0; k < 50 && k < large[b]; k++) {
                check_place(k, large[a], large[b]);
                check_place(large[b] - 1 - k, large[a], large[b]);
                check_place(below(large[b]), large[a], large[b]);
            }
}

/* Centres at halves: every second pixel of twice the size is a quarter off. */
static void known_places(void **state)
{
    (void)state;
    ls__between b = ls__resize_between(0, 4, 8);
    assert_true(b.low == 0 && b.high == 0);
    b = ls__resize_between(1, 4, 8);
    assert_true(b.low == 0 && b.high == 1 && b.part == 0.25f);
    b = ls__resize_between(7, 4, 8);
    assert_true(b.low == 3 && b.high == 3);
    b = ls__resize_between(1, 6, 2); /* exactly on pixel 4 */
    assert_true(b.low == 4 && b.high == 4 && b.part == 0);
    assert_int_equal(ls__resize_nearest(0, 4, 2), 1); /* a tie goes to the later pixel */
    assert_int_equal(ls__resize_nearest(1, 4, 2), 3);
    assert_int_equal(ls__resize_nearest(2, 3, 3), 2);
}

/* ---- forwards ---------------------------------------------------------------------------- */

static double load(ls_dtype d, const void *x, int64_t i)
{
    switch (d) {
    case LS_F64:
        return ((const double *)x)[i];
    case LS_I32:
        return (double)((const int32_t *)x)[i];
    case LS_I64:
        return (double)((const int64_t *)x)[i];
    case LS_U8:
        return ((const uint8_t *)x)[i];
    default:
        return (double)((const float *)x)[i];
    }
}

/* Fractions in the float dtypes, small numbers of both signs in i32 and i64. */
static void fill(ls_dtype d, void *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t v = pick(0, 255);
        if (d == LS_F64)
            ((double *)x)[i] = (double)v / 7;
        else if (d == LS_I32)
            ((int32_t *)x)[i] = (int32_t)v - 128;
        else if (d == LS_I64)
            ((int64_t *)x)[i] = 128 - v;
        else if (d == LS_U8)
            ((uint8_t *)x)[i] = (uint8_t)v;
        else
            ((float *)x)[i] = number();
    }
}

typedef struct element {
    int64_t n, y, x, k;
} element;

#define WANTED(T, name)                                                                            \
    static T wanted_##name(const ls__resize_shape *s, ls_dtype d, const void *x, element e)        \
    {                                                                                              \
        ls__between v = ls__resize_between(e.y, s->h, s->oh);                                      \
        ls__between u = ls__resize_between(e.x, s->w, s->ow);                                      \
        int64_t top = (e.n * s->h + v.low) * s->w, bottom = (e.n * s->h + v.high) * s->w;          \
        T tl = (T)load(d, x, (top + u.low) * s->c + e.k);                                          \
        T tr = (T)load(d, x, (top + u.high) * s->c + e.k);                                         \
        T bl = (T)load(d, x, (bottom + u.low) * s->c + e.k);                                       \
        T br = (T)load(d, x, (bottom + u.high) * s->c + e.k);                                      \
        T above = tl + (tr - tl) * (T)u.part, under = bl + (br - bl) * (T)u.part;                  \
        return above + (under - above) * (T)v.part;                                                \
    }

WANTED(float, f32)
WANTED(double, f64)

static void check_forward(const ls__resize_shape *s, ls_dtype from)
{
    ls_dtype to = from == LS_F64 ? LS_F64 : LS_F32;
    void *x = room(inputs(s), ls_dtype_size(from)), *y = room(outputs(s), ls_dtype_size(to));
    void *scratch = room((int64_t)ls__resize_scratch(s, to), 1);
    fill(from, x, inputs(s));
    ls__resize_bilinear(s, from, x, y, scratch);
    for (int64_t i = 0; i < outputs(s); i++) {
        element e = { i / s->c / s->ow / s->oh, i / s->c / s->ow % s->oh, i / s->c % s->ow,
                      i % s->c };
        if (to == LS_F64)
            assert_true(((double *)y)[i] == wanted_f64(s, from, x, e));
        else
            assert_true(((float *)y)[i] == wanted_f32(s, from, x, e));
    }
    free(x);
    free(y);
    free(scratch);
}

static void forward_is_the_definition(void **state)
{
    (void)state;
    static const ls_dtype dtypes[] = { LS_F32, LS_F64, LS_I32, LS_I64, LS_U8 };
    for (int round = 0; round < 300; round++) {
        ls__resize_shape s = random_shape();
        check_forward(&s, dtypes[round % 5]);
    }
}

/* ---- backwards ------------------------------------------------------------------------------ */

/* <resize(x), dy> = <x, back(dy)>, in f64; and f32 gives the same but for rounding. */
static void back_is_the_transpose(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        ls__resize_shape s = random_shape();
        int64_t nx = inputs(&s), ny = outputs(&s);
        double *x = room(nx, 8), *y = room(ny, 8), *dy = room(ny, 8), *dx = room(nx, 8);
        float *dy32 = room(ny, 4), *dx32 = room(nx, 4);
        void *scratch = room((int64_t)ls__resize_scratch(&s, LS_F64), 1);
        fill(LS_F64, x, nx);
        for (int64_t i = 0; i < ny; i++)
            dy[i] = dy32[i] = number();
        ls__resize_bilinear(&s, LS_F64, x, y, scratch);
        ls__resize_bilinear_back(&s, LS_F64, dy, dx, scratch);
        ls__resize_bilinear_back(&s, LS_F32, dy32, dx32, scratch);
        double forwards = 0, backwards = 0, size = 1;
        for (int64_t i = 0; i < ny; i++)
            forwards += y[i] * dy[i], size += fabs(y[i] * dy[i]);
        for (int64_t i = 0; i < nx; i++) {
            backwards += x[i] * dx[i];
            assert_true(fabs(dx[i] - dx32[i]) < 1e-4);
        }
        assert_true(fabs(forwards - backwards) < 1e-12 * size);
        free(x), free(y), free(dy), free(dx), free(dy32), free(dx32), free(scratch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_inside),
        cmocka_unit_test(known_places),
        cmocka_unit_test(forward_is_the_definition),
        cmocka_unit_test(back_is_the_transpose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
