/*
 * Winograd's algorithm: near the plain sums in f64, both ways, whatever the sizes; the same bits in every build
 * and for an image whatever is around it; and with the pool what pooling its own output gives.
 */
#include "kernels/winograd.h"

#include <string.h>

#include "kernels/conv_pool.h"
#include "kernels/ref/ref_conv.h"
#include "kernels/test_numbers.h"
#include "os/help_test_support.h"

typedef struct setting {
    ls__conv_shape s;
    int64_t nx, nw, ny;
    float *x, *w, *bias, *dy;
} setting;

static const struct {
    int64_t n, h, w, c, oc, pad;
} cases[] = {
    { 7, 13, 13, 32, 64, 0 }, { 2, 28, 28, 16, 16, 1 }, { 30, 7, 7, 64, 48, 1 },
    { 3, 12, 9, 24, 40, 0 },  { 1, 3, 3, 16, 16, 0 },   { 2, 4, 17, 5, 80, 1 },
    { 1, 5, 6, 1, 3, 2 },     { 50, 6, 6, 17, 33, 0 },  { 0, 8, 8, 16, 16, 0 },
    { 2, 2, 2, 16, 16, 0 },   { 1, 1, 9, 16, 96, 1 },   { 1, 10, 10, 3, 112, 0 },
    { 5, 28, 28, 16, 33, 1 }, /* the most parts, of one image and of two */
};

enum { CASES = sizeof cases / sizeof cases[0] };

static setting make(int64_t n, int64_t h, int64_t w, int64_t c, int64_t oc, int64_t pad)
{
    setting t = { .s = { .n = n,
                         .h = h,
                         .w = w,
                         .c = c,
                         .kh = 3,
                         .kw = 3,
                         .oc = oc,
                         .stride_h = 1,
                         .stride_w = 1,
                         .dilation_h = 1,
                         .dilation_w = 1,
                         .pad_top = pad,
                         .pad_left = pad,
                         .pad_bottom = pad,
                         .pad_right = pad,
                         .multiplier = 1 } };
    assert_int_equal(ls__conv_shape_complete(&t.s), LS_OK);
    assert_true(ls__winograd_can(&t.s));
    t.nx = ls__conv_count(&t.s, LS__CONV_X);
    t.nw = ls__conv_count(&t.s, LS__CONV_W);
    t.ny = ls__conv_count(&t.s, LS__CONV_Y);
    t.x = numbers(t.nx);
    t.w = numbers(t.nw);
    t.bias = numbers(oc);
    t.dy = numbers(t.ny);
    return t;
}

static setting make_case(int i)
{
    return make(cases[i].n, cases[i].h, cases[i].w, cases[i].c, cases[i].oc, cases[i].pad);
}

static void drop(setting *t)
{
    free(t->x);
    free(t->w);
    free(t->bias);
    free(t->dy);
}

/* With what a kernel must not leave in it, and not a byte more, so that the address sanitizer sees who
 * writes behind it. */
static float *dirty(int64_t n)
{
    void *room = NULL;
    assert_int_equal(posix_memalign(&room, 64, (size_t)n * sizeof(float)), 0);
    float *p = room;
    for (int64_t i = 0; i < n; i++)
        p[i] = NAN;
    return p;
}

typedef struct results {
    float *y, *dx, *dw;
} results;

static void drop_results(results *r)
{
    free(r->y);
    free(r->dx);
    free(r->dw);
}

static results run(const setting *t, const float *bias)
{
    results r = { dirty(t->ny), dirty(t->nx), dirty(t->nw) };
    float *there = dirty(ls__winograd_scratch(&t->s, false));
    float *back = dirty(ls__winograd_scratch(&t->s, true));
    ls__winograd_forward(&t->s, t->x, t->w, bias, r.y, NULL, there);
    ls__winograd_backward(&t->s, t->x, t->w, t->dy, NULL, r.dx, r.dw, NULL, back);
    free(there);
    free(back);
    return r;
}

static double *wide(const float *x, int64_t n)
{
    double *d = calloc((size_t)n + 1, sizeof *d);
    assert_non_null(d);
    for (int64_t i = 0; x && i < n; i++)
        d[i] = x[i];
    return d;
}

/* Sums of k products of numbers up to 1 are some sqrt(k) large; the errors of a few of them add up. */
static void near_sums(const char *what, const float *got, const double *want, int64_t n, int64_t k)
{
    const double tolerance = 4e-6 * sqrt((double)k + 1);
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= tolerance))
            fail_msg("%s[%ld] of %ld: %g, want %g", what, (long)i, (long)n, got[i], want[i]);
}

static void near_plain_sums(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        setting t = make_case(i);
        results r = run(&t, NULL);
        double *x = wide(t.x, t.nx), *w = wide(t.w, t.nw), *dy = wide(t.dy, t.ny);
        double *y = wide(NULL, t.ny), *dx = wide(NULL, t.nx), *dw = wide(NULL, t.nw);
        ls__ref_conv_forward_f64(&t.s, x, w, y);
        ls__ref_conv_backward_data_f64(&t.s, dy, w, dx);
        ls__ref_conv_backward_weights_f64(&t.s, x, dy, dw);
        near_sums("y", r.y, y, t.ny, 9 * t.s.c);
        near_sums("dx", r.dx, dx, t.nx, 9 * t.s.oc);
        near_sums("dw", r.dw, dw, t.nw, t.s.n * t.s.oh * t.s.ow);
        double *all[] = { x, w, dy, y, dx, dw };
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            free(all[k]);
        drop_results(&r);
        drop(&t);
    }
}

static void same(const char *what, const void *a, const void *b, int64_t bytes)
{
    if (bytes > 0 && memcmp(a, b, (size_t)bytes) != 0)
        fail_msg("%s differs", what);
}

static void bias_and_relu_come_last(void **state)
{
    (void)state;
    setting t = make(2, 9, 9, 16, 24, 1);
    results plain = run(&t, NULL);
    t.s.relu = true;
    results more = run(&t, t.bias);
    for (int64_t i = 0; i < t.ny; i++) {
        const float v = plain.y[i] + t.bias[i % t.s.oc], want = v > 0 ? v : 0;
        same("y", &more.y[i], &want, sizeof want);
    }
    drop_results(&plain);
    drop_results(&more);
    drop(&t);
}

/* An image alone gives what it gives among others, though it falls into other blocks. */
static void an_image_is_alone(void **state)
{
    (void)state;
    setting t = make(13, 13, 13, 16, 32, 0);
    results all = run(&t, NULL);
    setting one = t;
    one.s.n = 1;
    one.nx /= t.s.n;
    one.ny /= t.s.n;
    for (int64_t n = 0; n < t.s.n; n++, one.x += one.nx, one.dy += one.ny) {
        results r = run(&one, NULL);
        same("y", r.y, all.y + n * one.ny, one.ny * 4);
        same("dx", r.dx, all.dx + n * one.nx, one.nx * 4);
        drop_results(&r);
    }
    drop_results(&all);
    drop(&t);
}

/* ---- with the pool ------------------------------------------------------------------------------ */

static int64_t windows(const ls__conv_shape *s)
{
    return s->n * (s->oh / 2) * (s->ow / 2);
}

/* The largest of a window of y by plain loops, and where it is. */
static int64_t largest(const setting *t, const float *y, int64_t at)
{
    const ls__conv_shape *s = &t->s;
    const int64_t c = at % s->oc, px = at / s->oc % (s->ow / 2), py = at / s->oc / (s->ow / 2);
    const int64_t n = py / (s->oh / 2), row = py % (s->oh / 2) * 2;
    int64_t best = -1;
    for (int q = 0; q < 4; q++) {
        const int64_t i = ((n * s->oh + row + q / 2) * s->ow + 2 * px + q % 2) * s->oc + c;
        if (best < 0 || y[i] > y[best])
            best = i;
    }
    return best;
}

typedef struct pooled_results {
    int64_t np, n_marks;
    results r; /* y is pooled */
    float *dp, *db;
    uint16_t *marks;
} pooled_results;

static pooled_results run_pooled(const setting *t)
{
    const int64_t np = windows(&t->s) * t->s.oc;
    const int64_t n_marks = windows(&t->s) * ls__conv_pool_groups(t->s.oc) * LS__CONV_POOL_WORDS;
    pooled_results p = { .np = np,
                         .n_marks = n_marks,
                         .r = { dirty(np), dirty(t->nx), dirty(t->nw) },
                         .dp = calloc((size_t)np + 1, sizeof(float)),
                         .db = dirty(t->s.oc),
                         .marks = calloc((size_t)n_marks + 1, sizeof(uint16_t)) };
    for (int64_t i = 0; i < np; i++)
        p.dp[i] = (float)sin((double)i);
    float *scratch = dirty(ls__winograd_scratch(&t->s, true));
    ls__winograd_forward(&t->s, t->x, t->w, t->bias, p.r.y, p.marks, scratch);
    ls__winograd_backward(&t->s, t->x, t->w, p.dp, p.marks, p.r.dx, p.r.dw, p.db, scratch);
    free(scratch);
    return p;
}

static void drop_pooled(pooled_results *p)
{
    drop_results(&p->r);
    free(p->dp);
    free(p->db);
    free(p->marks);
}

static void pooled_is_what_pooling_gives(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        setting t = make_case(i);
        float *sums = calloc((size_t)t.s.oc, sizeof *sums);
        pooled_results got = run_pooled(&t);
        results plain = run(&t, NULL);
        memset(t.dy, 0, (size_t)t.ny * sizeof *t.dy);
        for (int64_t k = 0; k < got.np; k++) {
            const int64_t place = largest(&t, plain.y, k);
            const float v = plain.y[place] + t.bias[k % t.s.oc], want = v > 0 ? v : 0;
            same("p", &got.r.y[k], &want, sizeof want);
            t.dy[place] = v > 0 ? got.dp[k] : 0;
            sums[k % t.s.oc] += v > 0 ? got.dp[k] : 0;
        }
        results want = run(&t, NULL);
        near(got.r.dx, want.dx, t.nx, 1e-4);
        near(got.r.dw, want.dw, t.nw, 1e-4);
        near(got.db, sums, t.s.oc, 1e-4);
        drop_pooled(&got);
        drop_results(&plain);
        drop_results(&want);
        free(sums);
        drop(&t);
    }
}

/* What is no number makes its tile none, and is not lost in the pool. */
static void numbers_that_are_not(void **state)
{
    (void)state;
    setting t = make(1, 6, 6, 16, 16, 0);
    t.x[(2 * 6 + 2) * 16] = NAN; /* all windows see it */
    float *p = dirty(windows(&t.s) * 16), *scratch = dirty(ls__winograd_scratch(&t.s, false));
    uint16_t marks[4 * LS__CONV_POOL_WORDS];
    ls__winograd_forward(&t.s, t.x, t.w, t.bias, p, marks, scratch);
    for (int i = 0; i < 4 * 16; i++)
        assert_true(isnan(p[i]));
    for (int i = 0; i < 4; i++)
        assert_int_equal(marks[i * LS__CONV_POOL_WORDS + LS__CONV_POOL_PASSES], 0);
    free(p);
    free(scratch);
    drop(&t);
}

/* ---- with helpers ------------------------------------------------------------------------------ */

/* `leaves` parts of each job to helpers; how many they took. */
static int64_t check_helped(const setting *t, ls__help *help, int64_t leaves)
{
    ls__help_member *m = help->members;
    const uint32_t given = m->given;
    results want = run(t, t->bias);
    pooled_results want_pooled = run_pooled(t);
    m->leaves = leaves;
    ls__help_member *before = ls__help_join(help, 0);
    results got = run(t, t->bias);
    pooled_results got_pooled = run_pooled(t);
    ls__help_leave(before);
    same("y", got.y, want.y, t->ny * 4);
    same("dx", got.dx, want.dx, t->nx * 4);
    same("dw", got.dw, want.dw, t->nw * 4);
    same("p", got_pooled.r.y, want_pooled.r.y, want_pooled.np * 4);
    same("marks", got_pooled.marks, want_pooled.marks, want_pooled.n_marks * 2);
    same("dx of p", got_pooled.r.dx, want_pooled.r.dx, t->nx * 4);
    same("dw of p", got_pooled.r.dw, want_pooled.r.dw, t->nw * 4);
    same("dbias", got_pooled.db, want_pooled.db, t->s.oc * 4);
    drop_results(&got);
    drop_results(&want);
    drop_pooled(&got_pooled);
    drop_pooled(&want_pooled);
    return m->given - given;
}

static void helpers_change_no_bit(void **state)
{
    (void)state;
    enum { MOST_BACK = 4, ALL = 1000 };
    ls__help help;
    crew c;
    assert_true(ls__help_open(&help, 1));
    crew_begin(&c, &help, 1);
    for (int i = 0; i < CASES; i++) {
        setting t = make_case(i);
        const int64_t tiles = t.s.n * ((t.s.oh + 3) / 4) * ((t.s.ow + 3) / 4);
        const int64_t blocks = (tiles + LS__WINOGRAD_TILES - 1) / LS__WINOGRAD_TILES;
        const int64_t there = blocks > 1 ? blocks : 0;
        int64_t back = tiles / LS__WINOGRAD_TILES;
        back = back < MOST_BACK ? back : MOST_BACK;
        back = back < t.s.n ? back : t.s.n;
        back = back > 1 ? back : 0; /* a single part is no job */
        check_helped(&t, &help, 1);
        assert_int_equal(check_helped(&t, &help, ALL), 2 * (there + back));
        drop(&t);
    }
    crew_end(&c);
    ls__help_close(&help);
}

/* ---- builds ------------------------------------------------------------------------------------ */

enum { SIDE = LS__WINOGRAD_POSITIONS };

/* All that a build makes of a block of tiles, one behind the other. */
static float *by_build(const ls__winograd_kernels *k, const setting *t, bool pooled, int64_t *n)
{
    const ls__conv_shape *s = &t->s;
    ls__winograd_tiles tiles = { .h = s->h,
                                 .w = s->w,
                                 .c = s->c,
                                 .oh = pooled ? s->oh / 2 : s->oh,
                                 .ow = pooled ? s->ow / 2 : s->ow,
                                 .oc = s->oc,
                                 .pad_top = s->pad_top,
                                 .pad_left = s->pad_left,
                                 .down = (s->oh + 3) / 4,
                                 .across = (s->ow + 3) / 4,
                                 .cs = (s->c + 15) / 16 * 16,
                                 .os = (s->oc + 15) / 16 * 16 };
    const int64_t nu = SIDE * ls__winograd_plane(tiles.cs, tiles.os);
    const int64_t nv = SIDE * ls__winograd_plane(LS__WINOGRAD_TILES, tiles.cs);
    const int64_t nm = SIDE * ls__winograd_plane(LS__WINOGRAD_TILES, tiles.os);
    tiles.count = s->n * tiles.down * tiles.across;
    assert_in_range(tiles.count, 1, LS__WINOGRAD_TILES);
    *n = 3 * nu + 2 * nv + 2 * nm + t->ny + t->nx + t->nw + s->oc;
    float *all = aligned_alloc(64, ((size_t)*n * 4 + 127) / 64 * 64);
    memset(all, 0, (size_t)*n * 4);
    float *u = all, *turned = u + nu, *du = turned + nu, *v = du + nu, *dv = v + nv, *m = dv + nv,
          *dm = m + nm, *y = dm + nm, *dx = y + t->ny, *dw = dx + t->nx, *db = dw + t->nw;
    uint16_t *marks = calloc((size_t)t->ny + 1, sizeof *marks);
    k->filter(&tiles, t->w, u);
    k->filter_turned(&tiles, t->w, turned);
    k->take(&tiles, t->x, v);
    k->product(tiles.count, tiles.cs, tiles.os, v, u, m);
    if (pooled) {
        k->give_pooled(&tiles, m, t->bias, y, marks);
        k->give_back_pooled(&tiles, t->dy, marks, dm, db);
    } else {
        k->give(&tiles, m, t->bias, true, y);
        k->give_back(&tiles, t->dy, dm);
    }
    k->product(tiles.count, tiles.os, tiles.cs, dm, turned, dv);
    k->take_back(&tiles, dv, dx);
    k->product_turned(tiles.count, tiles.cs, tiles.os, v, dm, du, false);
    k->filter_back(&tiles, du, dw);
    free(marks);
    return all;
}

static void every_build_has_the_same_bits(void **state)
{
    (void)state;
    const ls__winograd_kernels *builds[3];
    const int n_builds = TABLES(ls__winograd_table, builds);
    int compared = 0;
    for (int i = 0; i < CASES; i++) {
        setting t = make_case(i);
        const int64_t tiles = t.s.n * ((t.s.oh + 3) / 4) * ((t.s.ow + 3) / 4);
        for (int pooled = 0; pooled < 2 && tiles > 0 && tiles <= LS__WINOGRAD_TILES; pooled++) {
            int64_t n;
            float *want = by_build(builds[0], &t, pooled, &n);
            for (int b = 1; b < n_builds; b++) {
                float *got = by_build(builds[b], &t, pooled, &n);
                same("a build", got, want, n * 4);
                free(got);
            }
            free(want);
            compared++;
        }
        drop(&t);
    }
    assert_true(compared >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_plain_sums),
        cmocka_unit_test(bias_and_relu_come_last),
        cmocka_unit_test(an_image_is_alone),
        cmocka_unit_test(pooled_is_what_pooling_gives),
        cmocka_unit_test(numbers_that_are_not),
        cmocka_unit_test(helpers_change_no_bit),
        cmocka_unit_test(every_build_has_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
