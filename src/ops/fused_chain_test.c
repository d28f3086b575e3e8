/*
 * The row `chain` by itself: the numbers that files hold, results against the
 * separate rows, and every way a program can lie.
 */
#include "ops/fused_chain.h"

#include <lockstep/ops.h>
#include <stdio.h>

#include "tensor/test_support.h"

/* ---- the file format -------------------------------------------------------------------- */

/* Every function has a number of its own. */
static void test_codes_are_complete(void **state)
{
    (void)state;
    for (int fn = 0; fn < LS__FN_COUNT; fn++) {
        int64_t code = ls__chain_code((ls__fn)fn);
        assert_true(code > LS__CHAIN_CAST);
        for (int other = 0; other < fn; other++)
            assert_true(ls__chain_code((ls__fn)other) != code);
    }
#define OPERANDS(name, operands)                                                                   \
    assert_int_equal(ls__chain_operands(ls__chain_code(LS__FN_##name)), operands);
    LS__FN_LIST(OPERANDS)
    assert_int_equal(ls__chain_operands(LS__CHAIN_WHERE), 3);
    assert_int_equal(ls__chain_operands(LS__CHAIN_CAST), 1);
    for (int64_t code = -3; code < 300; code++)
        if (code <= 0 || (code > LS__CHAIN_CAST && code < 10) || code > 56)
            assert_int_equal(ls__chain_operands(code), 0);
}

/* Numbers that were given out stay: a hash over all of 10 to 56 with their names. When
 * this fails, a graph that somebody stored now computes something else. */
static void test_codes_stay(void **state)
{
    (void)state;
    uint64_t hash = 14695981039346656037u;
    char entry[64];
#define HASH(name, code)                                                                           \
    snprintf(entry, sizeof entry, "%s=%d;", #name, code);                                          \
    for (const char *c = entry; (code) <= 56 && *c; c++)                                           \
        hash = (hash ^ (uint8_t)*c) * 1099511628211u;
    LS__CHAIN_CODES(HASH)
    assert_true(LS__CHAIN_WHERE == 1 && LS__CHAIN_CAST == 2);
    if (hash != 16755927794804365605u)
        fail_msg("the hash is now %llu", (unsigned long long)hash);
}

/* ---- results ------------------------------------------------------------------------------ */

enum { ADD = 10, DIV = 13, RELU = 21, LESS = 25, EXP = 33 };

#define INTS(...)                                                                                  \
    {                                                                                              \
        sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t),                                      \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

/* relu(x + bias), x + bias < 1 ? x : bias, and its integers. */
static const ls__chain_attrs good = {
    .step = { INTS(ADD, LS_F32, LS_F32, 0, 1), INTS(RELU, LS_F32, LS_F32, 3),
              INTS(LESS, LS_F32, LS_BOOL, 3, 2), INTS(1, LS_F32, LS_F32, 5, 0, 1),
              INTS(2, LS_F32, LS_I32, 6) },
    .outs = INTS(1, 3, 4)
};

static ls_status call(const ls__chain_attrs *a, int n, ls_tensor *const *in, ls_tensor **out)
{
    return ls__call(&ls__chain_row, a, n, in, 0, NULL, out);
}

static void same(const ls_tensor *a, const ls_tensor *b)
{
    assert_string_equal(ls_describe(a), ls_describe(b));
    assert_memory_equal(ls_data(a), ls_data(b), ls_size_in_bytes(a));
}

static void test_results(void **state)
{
    (void)state;
    for (int64_t rows = 0; rows < 400; rows += 133)
        LS_FRAME {
            ls_tensor *x = ls_random_normal(LS_F32, LS_DIMS(rows, 13), 0, 3);
            ls_tensor *in[3] = { x, ls_random_normal(LS_F32, LS_DIMS(13), 0, 3),
                                 ls_scalar(LS_F32, 1) };
            ls_tensor *out[3];
            assert_int_equal(call(&good, 3, in, out), LS_OK);
            ls_tensor *sum = ls_add(x, in[1]);
            ls_tensor *chosen = ls_where(ls_less(sum, in[2]), x, in[1]);
            same(out[0], ls_relu(sum));
            same(out[1], chosen);
            same(out[2], ls_cast(chosen, LS_I32));
        }
}

/* ---- programs that lie ---------------------------------------------------------------------- */

static ls_tensor *inputs[9];

static void refused(const ls__chain_attrs *a, int n, ls_status want, const char *text)
{
    ls_tensor *out[8];
    assert_int_equal(call(a, n, inputs, out), want);
    if (!strstr(ls_error_text(), text) || strncmp(ls_error_text(), "chain: ", 7) != 0)
        fail_msg("'%s' does not say '%s'", ls_error_text(), text);
    failed(want);
}

/* The good program with number `at` of step `step` changed; -1 is its count. */
static void refused_step(int step, int at, int64_t number, ls_status want, const char *text)
{
    ls__chain_attrs a = good;
    if (at < 0)
        a.step[step].count = number;
    else
        a.step[step].at[at] = number;
    refused(&a, 3, want, text);
}

static void refused_outs(ls_ints outs, const char *text)
{
    ls__chain_attrs a = good;
    a.outs = outs;
    refused(&a, 3, LS_INVALID, text);
}

static void test_lies(void **state)
{
    (void)state;
    LS_FRAME {
        for (int i = 0; i < 9; i++)
            inputs[i] = ls_ones(LS_F32, LS_DIMS(4));
        refused_step(0, 0, 0, LS_INVALID, "no known function");
        refused_step(0, 0, -1, LS_INVALID, "no known function");
        refused_step(0, 0, INT64_MAX, LS_INVALID, "no known function");
        refused_step(0, 0, 1 + (1ll << 32), LS_INVALID, "no known function");
        refused_step(0, 0, RELU, LS_INVALID, "5 numbers, wants 4");
        refused_step(0, -1, 4, LS_INVALID, "4 numbers, wants 5");
        refused_step(0, -1, -1, LS_INVALID, "no known function");
        refused_step(0, -1, 0, LS_INVALID, "follows the end");
        refused_step(0, 1, LS_BYTES, LS_INVALID, "does not go");
        refused_step(0, 1, 99, LS_INVALID, "does not go");
        refused_step(0, 1, -1, LS_INVALID, "does not go");
        refused_step(0, 2, LS_BOOL, LS_INVALID, "does not go");
        refused_step(1, 1, LS_BF16, LS_INVALID, "does not go");
        refused_step(4, 2, LS_F32, LS_INVALID, "does not go"); /* a cast to what it is */
        refused_step(0, 3, 3, LS_INVALID, "reads value 3");    /* itself */
        refused_step(0, 3, -1, LS_INVALID, "reads value -1");
        refused_step(2, 3, INT64_MAX, LS_INVALID, "reads value");
        refused_step(1, 3, 7, LS_INVALID, "reads value 7"); /* one that comes later */
        refused_step(3, 3, 0, LS_SHAPE, "operand 0 is f32, wants bool");
        refused_step(3, 4, 5, LS_SHAPE, "operand 1 is bool, wants f32");

        refused_outs((ls_ints){ 0 }, "0 outputs");
        refused_outs((ls_ints){ -1, { 0 } }, "outputs");
        refused_outs((ls_ints){ 5, { 0, 1, 2, 3, 4 } }, "5 outputs");
        refused_outs((ls_ints){ 1, { 5 } }, "step 5 of 5");
        refused_outs((ls_ints){ 1, { -1 } }, "step -1");
        refused_outs((ls_ints){ 2, { 1, 1 } }, "ascend");
        refused_outs((ls_ints){ 2, { 3, 1 } }, "ascend");

        refused(&(ls__chain_attrs){ .outs = { 1, { 0 } } }, 3, LS_INVALID, "step 0 of 0");
        refused(&good, 9, LS_INVALID, "9 inputs");
        refused(&good, 2, LS_INVALID, "reads value");
        inputs[1] = ls_ones(LS_F32, LS_DIMS(3));
        refused(&good, 3, LS_SHAPE, "do not broadcast");
        inputs[1] = ls_ones(LS_F64, LS_DIMS(4));
        refused(&good, 3, LS_SHAPE, "operand 1 is f64, wants f32");

        /* A division that can fail has no place here; one that cannot has. */
        ls__chain_attrs a = { .step = { INTS(DIV, LS_I32, LS_I32, 0, 0) }, .outs = { 1, { 0 } } };
        inputs[0] = ls_ones(LS_I32, LS_DIMS(4));
        refused(&a, 1, LS_INVALID, "does not go");
        a.step[0].at[1] = a.step[0].at[2] = LS_F32;
        inputs[0] = ls_ones(LS_F32, LS_DIMS(4));
        ls_tensor *out;
        assert_int_equal(call(&a, 1, inputs, &out), LS_OK);
        same(out, inputs[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_codes_are_complete, clean),
        cmocka_unit_test_setup(test_codes_stay, clean),
        cmocka_unit_test_setup(test_results, clean),
        cmocka_unit_test_setup(test_lies, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
