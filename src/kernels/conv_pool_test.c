/*
 * relu(max_pool(conv + bias)) in one pass: this processor's kernels have the bits of the reference, and
 * the reference gives what convolution, bias, relu and pool give one after the other, both ways.
 */
#include "kernels/conv_pool.h"

#include <math.h>
#include <string.h>

#include "kernels/pool.h"
#include "kernels/test_numbers.h"
#include "os/help_test_support.h"

typedef struct setting {
    ls__conv_shape s;
    int64_t pooled, words; /* of all images */
    float *x, *w, *bias, *dp;
} setting;

static setting make(int64_t n, int64_t h, int64_t w, int64_t k, int64_t oc, bool same)
{
    setting t = { .s = { .n = n,
                         .h = h,
                         .w = w,
                         .c = 1,
                         .kh = k,
                         .kw = k,
                         .oc = oc,
                         .stride_h = 1,
                         .stride_w = 1,
                         .dilation_h = 1,
                         .dilation_w = 1,
                         .multiplier = 1 } };
    if (same)
        t.s.pad_top = t.s.pad_left = t.s.pad_bottom = t.s.pad_right = k / 2;
    assert_int_equal(ls__conv_shape_complete(&t.s), LS_OK);
    assert_true(ls__conv_pool_can(&t.s));
    const int64_t windows = n * (t.s.oh / 2) * (t.s.ow / 2);
    t.pooled = windows * oc;
    t.words = windows * ls__conv_pool_groups(oc) * LS__CONV_POOL_WORDS;
    t.x = numbers(n * h * w);
    t.w = numbers(k * k * oc);
    t.bias = numbers(oc);
    t.dp = numbers(t.pooled);
    return t;
}

static void drop(setting *t)
{
    free(t->x);
    free(t->w);
    free(t->bias);
    free(t->dp);
}

typedef struct results {
    float *p, *dw, *db;
    uint16_t *marks;
} results;

static results room_for(const setting *t)
{
    return (results){ .p = calloc((size_t)t->pooled + 1, sizeof(float)),
                      .dw = calloc((size_t)(t->s.kh * t->s.kw * t->s.oc) + 1, sizeof(float)),
                      .db = calloc((size_t)t->s.oc + 1, sizeof(float)),
                      .marks = calloc((size_t)t->words + 1, sizeof(uint16_t)) };
}

static void drop_results(results *r)
{
    free(r->p);
    free(r->dw);
    free(r->db);
    free(r->marks);
}

static results with_kernels(const setting *t)
{
    results r = room_for(t);
    float *scratch = malloc((size_t)ls__conv_pool_scratch(&t->s) * sizeof *scratch);
    ls__conv_pool_forward(&t->s, false, t->x, t->w, t->bias, r.p, r.marks, scratch);
    ls__conv_pool_backward(&t->s, false, t->x, t->dp, r.marks, r.dw, r.db, scratch);
    free(scratch);
    return r;
}

enum { PARTS = 8 };

/* Gradients of some images: of the filter and behind it of the bias. */
typedef struct part {
    float *sums;
    int64_t n_dw, n;
} part;

/* `parts` of them into the first, as replicas are added up. */
static void add_up(part *of, int parts)
{
    for (int gap = 1; gap < parts; gap *= 2)
        for (int k = 0; k + gap < parts; k += 2 * gap)
            for (int64_t i = 0; i < of->n; i++)
                of[k].sums[i] += of[k + gap].sums[i];
}

/* The same by the reference, image by image. */
static results with_reference(const setting *t)
{
    const ls__conv_shape *s = &t->s;
    results r = room_for(t);
    const int64_t row = s->w + s->pad_left + s->pad_right;
    const int parts = s->n < PARTS ? (int)s->n : PARTS;
    part of[PARTS];
    for (int k = 0; k < PARTS; k++) {
        of[k] = (part){ .n_dw = s->kh * s->kw * s->oc, .n = (s->kh * s->kw + 1) * s->oc };
        of[k].sums = calloc((size_t)of[k].n + 1, sizeof(float));
    }
    float *frame = calloc((size_t)ls__conv_pool_scratch(s), sizeof *frame);
    const ls__conv_pool_image image = { .row = row,
                                        .k = s->kh,
                                        .oc = s->oc,
                                        .ph = s->oh / 2,
                                        .pw = s->ow / 2,
                                        .pixel = s->oc,
                                        .group = 16,
                                        .data = frame };
    for (int64_t n = 0, k = 0; n < s->n; n++) {
        for (int64_t y = 0; y < s->h; y++)
            memcpy(frame + (y + s->pad_top) * row + s->pad_left, t->x + (n * s->h + y) * s->w,
                   (size_t)s->w * sizeof *frame);
        const int64_t p = n * t->pooled / s->n, m = n * t->words / s->n;
        while (n >= s->n * (k + 1) / parts)
            k++;
        ls__conv_pool_reference.forward(&image, t->w, t->bias, r.p + p, r.marks + m);
        ls__conv_pool_reference.backward(&image, t->dp + p, r.marks + m, of[k].sums,
                                         of[k].sums + of[k].n_dw);
    }
    add_up(of, parts);
    memcpy(r.dw, of->sums, (size_t)of->n_dw * sizeof(float));
    memcpy(r.db, of->sums + of->n_dw, (size_t)s->oc * sizeof(float));
    for (int k = 0; k < PARTS; k++)
        free(of[k].sums);
    free(frame);
    return r;
}

static void same_bytes(const void *a, const void *b, size_t bytes, const char *what)
{
    if (bytes > 0 && memcmp(a, b, bytes) != 0)
        fail_msg("%s differs from the reference", what);
}

static void same_results(const setting *t, const results *a, const results *b)
{
    same_bytes(a->p, b->p, (size_t)t->pooled * sizeof(float), "p");
    same_bytes(a->marks, b->marks, (size_t)t->words * sizeof(uint16_t), "marks");
    same_bytes(a->dw, b->dw, (size_t)(t->s.kh * t->s.kw * t->s.oc) * sizeof(float), "dw");
    same_bytes(a->db, b->db, (size_t)t->s.oc * sizeof(float), "dbias");
}

static const struct {
    int64_t n, h, w, k, oc;
    bool same;
} cases[] = {
    { 3, 28, 28, 3, 32, false }, { 2, 28, 28, 5, 32, false }, { 2, 9, 11, 3, 24, true },
    { 1, 12, 7, 5, 48, true },   { 2, 6, 6, 3, 8, false },    { 2, 8, 8, 5, 16, false },
    { 1, 4, 5, 3, 40, false },   { 1, 7, 7, 3, 5, false },    { 1, 6, 9, 5, 17, true },
    { 2, 3, 3, 3, 16, false },   { 0, 8, 8, 3, 16, false },   { 1, 30, 3, 3, 33, true },
    { 19, 8, 7, 3, 32, false },  { 9, 7, 8, 5, 16, true },
};

enum { CASES = sizeof cases / sizeof cases[0] };

static setting make_case(int i)
{
    return make(cases[i].n, cases[i].h, cases[i].w, cases[i].k, cases[i].oc, cases[i].same);
}

static void the_bits_of_the_reference(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        setting t = make_case(i);
        results got = with_kernels(&t), want = with_reference(&t);
        same_results(&t, &got, &want);
        drop_results(&got);
        drop_results(&want);
        drop(&t);
    }
}

/* The first member's jobs are helped with. */
static void check_helped(const setting *t, ls__help *help, int64_t leaves)
{
    const int64_t parts = t->s.n < PARTS ? t->s.n : PARTS;
    ls__help_member *m = help->members;
    const uint32_t given = m->given;
    results want = with_kernels(t);
    m->leaves = leaves;
    ls__help_member *before = ls__help_join(help, 0);
    results got = with_kernels(t);
    ls__help_leave(before);
    same_results(t, &got, &want);
    if (parts > 1) /* there, and back */
        assert_true(m->given - given >= 2 * (leaves < parts ? leaves : parts));
    drop_results(&got);
    drop_results(&want);
}

static void helpers_change_no_bit(void **state)
{
    (void)state;
    static const int64_t leaves[] = { 1, 5, PARTS };
    ls__help help;
    crew c;
    assert_true(ls__help_open(&help, 1));
    crew_begin(&c, &help, 1);
    for (int i = 0; i < CASES; i++) {
        setting t = make_case(i);
        for (int k = 0; k < 3; k++)
            check_helped(&t, &help, leaves[k]);
        drop(&t);
    }
    crew_end(&c);
    ls__help_close(&help);
}

/* What the rows that it stands for compute. */
static void what_one_after_the_other_gives(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        setting t = make_case(i);
        const ls__conv_shape *s = &t.s;
        ls__pool_shape pool = { .n = s->n,
                                .h = s->oh,
                                .w = s->ow,
                                .c = s->oc,
                                .kh = 2,
                                .kw = 2,
                                .stride_h = 2,
                                .stride_w = 2 };
        if (s->oh < 2 || s->ow < 2) {
            drop(&t);
            continue;
        }
        assert_int_equal(ls__pool_shape_complete(&pool), LS_OK);
        const int64_t cells = s->n * s->oh * s->ow * s->oc;
        float *y = calloc((size_t)cells + 1, sizeof *y), *dy = calloc((size_t)cells + 1, sizeof *y);
        int32_t *places = calloc((size_t)t.pooled + 1, sizeof *places);
        results want = room_for(&t), got = with_kernels(&t);
        ls__conv_shape biased = *s;
        biased.bias = true;
        assert_int_equal(ls__conv_forward_fused_f32(&biased, t.x, t.w, t.bias, y), LS_OK);
        ls__max_pool_forward_relu_f32(&pool, y, want.p, places);
        near(got.p, want.p, t.pooled, 1e-5);
        for (int64_t k = 0; k < t.pooled; k++) {
            t.dp[k] = want.p[k] > 0 ? t.dp[k] : 0;
            want.db[k % s->oc] += t.dp[k];
        }
        assert_true(ls__max_pool_backward_f32(&pool, t.dp, places, dy));
        assert_int_equal(ls__conv_backward_weights_f32(s, t.x, dy, want.dw), LS_OK);
        near(got.dw, want.dw, s->kh * s->kw * s->oc, 3e-4);
        near(got.db, want.db, s->oc, 3e-4);
        drop_results(&got);
        drop_results(&want);
        free(places);
        free(dy);
        free(y);
        drop(&t);
    }
}

/* What is pooled, pixel by pixel, in blocks of 16 channels; the other way if `back`. */
static void move_blocks(const setting *t, const float *from, float *to, bool back)
{
    const int64_t oc = t->s.oc, pixels = (t->s.oh / 2) * (t->s.ow / 2);
    for (int64_t i = 0; i < t->pooled; i++) {
        const int64_t c = i % oc, pixel = i / oc % pixels, n = i / oc / pixels;
        const int64_t k = ((n * (oc / 16) + c / 16) * pixels + pixel) * 16 + c % 16;
        to[back ? i : k] = from[back ? k : i];
    }
}

/* Where what is pooled lies changes no bit. */
static void in_blocks_of_channels(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        if (cases[i].oc % LS__CONV_POOL_BLOCK != 0)
            continue;
        setting t = make_case(i);
        results want = with_kernels(&t), got = room_for(&t);
        float *scratch = malloc((size_t)ls__conv_pool_scratch(&t.s) * sizeof *scratch);
        float *packed = calloc((size_t)t.pooled + 1, sizeof *packed);
        ls__conv_pool_forward(&t.s, true, t.x, t.w, t.bias, packed, got.marks, scratch);
        move_blocks(&t, packed, got.p, true);
        move_blocks(&t, t.dp, packed, false);
        ls__conv_pool_backward(&t.s, true, t.x, packed, got.marks, got.dw, got.db, scratch);
        same_results(&t, &got, &want);
        free(packed);
        free(scratch);
        drop_results(&got);
        drop_results(&want);
        drop(&t);
    }
}

/* What is pooled is the reference's, where that is a number; elsewhere it is none, either. */
static void pooled_alike(const setting *t, bool gradients)
{
    results got = with_kernels(t), want = with_reference(t);
    for (int64_t i = 0; i < t->pooled; i++) {
        assert_int_equal(isnan(got.p[i]), isnan(want.p[i]));
        assert_true(isnan(got.p[i]) || !memcmp(&got.p[i], &want.p[i], sizeof(float)));
    }
    same_bytes(got.marks, want.marks, (size_t)t->words * sizeof(uint16_t), "marks");
    for (int64_t i = 0; gradients && i < t->s.kh * t->s.kw * t->s.oc; i++)
        assert_int_equal(isnan(got.dw[i]), isnan(want.dw[i]));
    drop_results(&got);
    drop_results(&want);
}

static const float bad[] = { NAN, INFINITY, -INFINITY };

/* NaN wins its windows and lets no gradient through; an infinity does not meet a gradient of 0. */
static void numbers_that_are_not(void **state)
{
    (void)state;
    for (int b = 0; b < 3; b++)
        for (int at = 0; at < 36; at++) {
            setting t = make(1, 6, 6, 3, 16, false);
            t.x[at] = bad[b];
            pooled_alike(&t, b == 0);
            drop(&t);
        }
}

/* The same in weights and bias, of one channel; the others' numbers stay. */
static void weights_that_are_no_numbers(void **state)
{
    (void)state;
    for (int b = 0; b < 3; b++)
        for (int at = 0; at < 10; at++) {
            setting t = make(2, 6, 6, 3, 48, false);
            *(at < 9 ? &t.w[at * 48 + 7] : &t.bias[7]) = bad[b];
            pooled_alike(&t, false);
            drop(&t);
        }
}

/* Images, the second of three, whose sums go beyond all numbers, to both sides and so to none. */
static void sums_that_overflow(void **state)
{
    (void)state;
    for (int k = 3; k <= 5; k += 2)
        for (int power = 15; power <= 21; power++) {
            setting t = make(3, 8, 8, k, 32, true);
            for (int i = 0; i < 64; i++)
                t.x[64 + i] *= powf(10, (float)power);
            for (int i = 0; i < k * k * 32; i++)
                t.w[i] *= 1e18f;
            pooled_alike(&t, false);
            drop(&t);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bits_of_the_reference),
        cmocka_unit_test(helpers_change_no_bit),
        cmocka_unit_test(what_one_after_the_other_gives),
        cmocka_unit_test(in_blocks_of_channels),
        cmocka_unit_test(numbers_that_are_not),
        cmocka_unit_test(weights_that_are_no_numbers),
        cmocka_unit_test(sums_that_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
