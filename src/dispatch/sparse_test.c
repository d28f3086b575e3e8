/*
 * Sparse gradients: rows of a table that stand for a dense tensor, everywhere
 * and with the same bits (DESIGN rule K).
 */
#include <lockstep/ops.h>
#include <lockstep/tape.h>

#include <math.h>

#include "tensor/test_support.h"

static ls_tensor *rows_of(int n, const int32_t *rows)
{
    return ls_from(LS_I32, LS_DIMS(n), rows);
}

static void holds(const ls_tensor *t, int n, const float *want)
{
    assert_int_equal(ls_count(t), n);
    const float *got = ls_data(t);
    assert_non_null(got);
    for (int i = 0; i < n; i++)
        if (got[i] != want[i])
            fail_msg("element %d: %g, not %g", i, (double)got[i], (double)want[i]);
}

static void made_by_hand(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *rows = rows_of(3, (int32_t[]){ 3, 0, 3 });
        ls_tensor *values = ls_from(LS_F32, LS_DIMS(3, 2), (float[]){ 1, 2, 3, 4, 5, 6 });
        ls_tensor *s = ls_sparse(rows, values, 5);
        assert_non_null(s);
        assert_true(ls_is_sparse(s));
        assert_string_equal(ls_describe(s), "f32[5,2]"); /* the dense shape */
        assert_int_equal(ls_count(s), 10);
        assert_false(ls_is_sparse(values));
        assert_false(ls_is_sparse(NULL));
        assert_string_equal(ls_describe(ls_sparse_rows(s)), "i32[3]");
        holds(ls_sparse_values(s), 6, (float[]){ 1, 2, 3, 4, 5, 6 });

        float want[10] = { 3, 4, 0, 0, 0, 0, 6, 8, 0, 0 }; /* repeated rows add up */
        ls_tensor *dense = ls_densify(s);
        assert_false(ls_is_sparse(dense));
        holds(dense, 10, want);
        holds(ls_densify(dense), 10, want); /* a dense one stays as it is */

        /* Operators take it as what it stands for. */
        holds(ls_add(s, ls_zeros(LS_F32, LS_DIMS(5, 2))), 10, want);
        holds(ls_identity(s), 10, want);
        holds(ls_sum(s, LS_AXES(0), false), 2, (float[]){ 9, 12 });
        float doubled[10];
        for (int i = 0; i < 10; i++)
            doubled[i] = 2 * want[i];
        holds(ls_add(s, s), 10, doubled);

        /* A table of one axis; no rows at all; 64-bit rows. */
        ls_tensor *flat = ls_sparse(rows, ls_ones(LS_F32, LS_DIMS(3)), 4);
        holds(ls_densify(flat), 4, (float[]){ 1, 0, 0, 2 });
        ls_tensor *none =
            ls_sparse(ls_zeros(LS_I64, LS_DIMS(0)), ls_zeros(LS_F32, LS_DIMS(0, 2)), 2);
        assert_true(ls_is_sparse(none));
        holds(ls_densify(none), 4, (float[]){ 0, 0, 0, 0 });
        assert_int_equal(ls_error_pending(), LS_OK);
    }
}

static void bad_parts(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *rows = rows_of(2, (int32_t[]){ 0, 1 });
        ls_tensor *values = ls_ones(LS_F32, LS_DIMS(2, 3));
        assert_null(ls_sparse(values, values, 4)); /* rows must be integers */
        failed(LS_SHAPE);
        assert_null(ls_sparse(rows, ls_ones(LS_F32, LS_DIMS(3, 3)), 4));
        failed(LS_SHAPE);
        assert_null(ls_sparse(rows, ls_scalar(LS_F32, 1), 4));
        failed(LS_SHAPE);
        assert_null(ls_sparse(ls_zeros(LS_I32, LS_DIMS(1, 2)), values, 4));
        failed(LS_SHAPE);
        assert_null(ls_sparse(rows, values, -1));
        failed(LS_INVALID);
        assert_null(ls_sparse(rows, values, INT64_MAX));
        failed(LS_INVALID);
        assert_null(ls_sparse(NULL, values, 4));
        failed(LS_INVALID);
        assert_null(ls_sparse(rows, NULL, 4));
        failed(LS_INVALID);
        assert_null(ls_sparse_rows(values));
        failed(LS_INVALID);
        assert_null(ls_sparse_values(values));
        failed(LS_INVALID);
        assert_null(ls_densify(NULL));
        failed(LS_INVALID);

        /* A row outside the table is found out, at the latest when it is used. */
        static const int32_t outside[][2] = { { 0, 4 }, { -1, 0 }, { INT32_MAX, 0 } };
        for (int i = 0; i < 3; i++) {
            ls_tensor *s = ls_sparse(rows_of(2, outside[i]), values, 4);
            if (s)
                s = ls_densify(s);
            assert_null(s);
            failed(LS_INVALID);
        }
    }
}

static void handles_carry_the_rows(void **state)
{
    (void)state;
    size_t before = memory();
    ls_tensor *kept = NULL;
    LS_FRAME {
        ls_tensor *up = NULL;
        LS_FRAME {
            ls_tensor *s = ls_sparse(rows_of(2, (int32_t[]){ 2, 0 }),
                                     ls_from(LS_F32, LS_DIMS(2), (float[]){ 7, 8 }), 3);
            up = ls_hand_up(s);
            kept = ls_keep(s);
        }
        assert_true(ls_is_sparse(up));
        holds(ls_densify(up), 3, (float[]){ 8, 0, 7 });
    }
    LS_FRAME {
        assert_true(ls_is_sparse(kept));
        ls_tensor *mine = ls_import(kept);
        ls_drop(kept);
        holds(ls_densify(mine), 3, (float[]){ 8, 0, 7 });
    }
    assert_int_equal(memory(), before);
}

enum { VOCAB = 6, WIDTH = 3 };

static ls_tensor *table(void)
{
    float data[VOCAB * WIDTH];
    for (int i = 0; i < VOCAB * WIDTH; i++)
        data[i] = 0.1f * (float)(i + 1);
    return ls_from(LS_F32, LS_DIMS(VOCAB, WIDTH), data);
}

static ls_tensor *weights(int n)
{
    float data[64];
    for (int i = 0; i < n * WIDTH; i++)
        data[i] = 1.0f / (float)(i + 3);
    return ls_from(LS_F32, LS_DIMS(n, WIDTH), data);
}

static void embedding_gives_a_sparse_gradient(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *t = table(), *ids = rows_of(5, (int32_t[]){ 4, 1, 4, 0, 4 });
        ls_tape *tape = ls_tape_open();
        ls_tensor *y = ls_mul(ls_embedding(t, ids), weights(5));
        ls_tensor *g = ls_gradient(tape, y, t);
        assert_true(ls_is_sparse(g));
        assert_string_equal(ls_describe(g), "f32[6,3]");
        holds(ls_sparse_values(g), 15, ls_data(weights(5)));

        /* Densified, it has the bits of gather's dense gradient. */
        ls_tensor *dense = ls_gradient(tape, ls_mul(ls_gather(t, ids, 0), weights(5)), t);
        assert_false(ls_is_sparse(dense));
        holds(ls_densify(g), VOCAB * WIDTH, ls_data(dense));

        /* Duplicates add in order of appearance: ((0 + a) + b) + c. */
        const float *w = ls_data(weights(5));
        const float *d = ls_data(dense);
        float sum = 0;
        sum += w[0 * WIDTH], sum += w[2 * WIDTH], sum += w[4 * WIDTH];
        assert_true(d[4 * WIDTH] == sum);
        assert_true(d[5 * WIDTH] == 0);
    }
}

static void order_of_duplicates_is_kept(void **state)
{
    (void)state;
    LS_FRAME { /* numbers whose sum depends on the order */
        float big[3] = { 1e8f, 1.0f, -1e8f }, other[3] = { 1e8f, -1e8f, 1.0f };
        ls_tensor *rows = rows_of(3, (int32_t[]){ 0, 0, 0 });
        holds(ls_densify(ls_sparse(rows, ls_from(LS_F32, LS_DIMS(3), big), 1)), 1, (float[]){ 0 });
        holds(ls_densify(ls_sparse(rows, ls_from(LS_F32, LS_DIMS(3), other), 1)), 1,
              (float[]){ 1 });
    }
}

static void two_lookups_of_one_table(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *t = table();
        ls_tensor *a = rows_of(2, (int32_t[]){ 1, 2 }), *b = rows_of(3, (int32_t[]){ 2, 5, 2 });
        ls_tensor *wide = ls_from(LS_I64, LS_DIMS(1), (int64_t[]){ 1 });
        ls_tape *tape = ls_tape_open();
        ls_tensor *y = ls_add(ls_sum(ls_embedding(t, a), LS_ALL_AXES, false),
                              ls_sum(ls_scale(ls_embedding(t, b), 10), LS_ALL_AXES, false));
        ls_tensor *g = ls_gradient(tape, y, t);
        assert_true(ls_is_sparse(g)); /* two sparse ones stay sparse */
        assert_int_equal(ls_count(ls_sparse_rows(g)), 5);
        float want[VOCAB * WIDTH] = { 0 };
        for (int k = 0; k < WIDTH; k++)
            want[1 * WIDTH + k] = 1, want[2 * WIDTH + k] = 21, want[5 * WIDTH + k] = 10;
        holds(ls_densify(g), VOCAB * WIDTH, want);

        /* Rows of both integer types. */
        y = ls_add(y, ls_sum(ls_embedding(t, wide), LS_ALL_AXES, false));
        for (int k = 0; k < WIDTH; k++)
            want[1 * WIDTH + k] = 2;
        holds(ls_densify(ls_gradient(tape, y, t)), VOCAB * WIDTH, want);

        /* With a dense use of the table the gradient is dense. */
        y = ls_add(y, ls_sum(t, LS_ALL_AXES, false));
        ls_tensor *mixed = ls_gradient(tape, y, t);
        assert_false(ls_is_sparse(mixed));
        for (int i = 0; i < VOCAB * WIDTH; i++)
            want[i] += 1;
        holds(mixed, VOCAB * WIDTH, want);
    }
}

static void ids_of_any_shape(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *t = table();
        ls_tape *tape = ls_tape_open();
        ls_tensor *one = ls_scalar_int(LS_I32, 3);
        ls_tensor *y = ls_embedding(t, one);
        assert_string_equal(ls_describe(y), "f32[3]");
        ls_tensor *g = ls_densify(ls_gradient(tape, y, t));
        assert_true(((const float *)ls_data(g))[3 * WIDTH] == 1);
        ls_tensor *none = ls_zeros(LS_I64, LS_DIMS(2, 0));
        y = ls_embedding(t, none);
        assert_string_equal(ls_describe(y), "f32[2,0,3]");
        g = ls_gradient(tape, y, t);
        assert_string_equal(ls_describe(g), "f32[6,3]");
        assert_true(ls_to_float(ls_sum(g, LS_ALL_AXES, false)) == 0);
        ls_tensor *square = ls_from(LS_I32, LS_DIMS(2, 2), (int32_t[]){ 0, 1, 1, 0 });
        g = ls_densify(ls_gradient(tape, ls_embedding(t, square), t));
        assert_true(((const float *)ls_data(g))[0] == 2 && ((const float *)ls_data(g))[WIDTH] == 2);
    }
}

/* Second gradients flow through a sparse first one. */
static void gradient_of_a_sparse_gradient(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *t = table(), *ids = rows_of(3, (int32_t[]){ 4, 1, 4 });
        ls_tape *tape = ls_tape_open();
        ls_tensor *e = ls_embedding(t, ids);
        ls_tensor *g = ls_gradient(tape, ls_mul(ls_mul(e, e), e), t); /* 3 e^2 */
        assert_true(ls_is_sparse(g));
        /* sum over rows of g, squared: d/dt of 3 (count t^2) is 6 count t. */
        ls_tensor *gg = ls_densify(ls_gradient(tape, g, t));
        const float *x = ls_data(t), *got = ls_data(gg);
        for (int k = 0; k < WIDTH; k++) {
            assert_true(fabsf(got[4 * WIDTH + k] - 12 * x[4 * WIDTH + k]) < 1e-4f);
            assert_true(fabsf(got[1 * WIDTH + k] - 6 * x[1 * WIDTH + k]) < 1e-4f);
            assert_true(got[0 * WIDTH + k] == 0);
        }
    }
}

/* A gradient with respect to a sparse tensor has its (dense) shape. */
static void gradient_with_respect_to_a_sparse_tensor(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *s = ls_sparse(rows_of(2, (int32_t[]){ 2, 0 }),
                                 ls_from(LS_F32, LS_DIMS(2), (float[]){ 7, 8 }), 3);
        ls_tape *tape = ls_tape_open();
        ls_tensor *y = ls_mul(s, ls_from(LS_F32, LS_DIMS(3), (float[]){ 10, 20, 30 }));
        ls_tensor *g = ls_gradient(tape, y, s);
        if (!g) { /* refusing is an answer, a wrong shape is none */
            assert_int_not_equal(ls_error(), LS_OK);
            break;
        }
        assert_string_equal(ls_describe(g), "f32[3]");
    }
}

/* Lookups of one table add up as the program made them, like duplicates in one. */
static void lookups_add_up_in_program_order(void **state)
{
    (void)state;
    enum { LOOKUPS = 4, IDS = 50, ROWS = 7 };
    LS_FRAME {
        ls_tensor *t = ls_zeros(LS_F32, LS_DIMS(2));
        ls_tensor *zero = rows_of(1, (int32_t[]){ 0 });
        ls_tape *tape = ls_tape_open();
        const double slopes[] = { 1e8, -1e8, 1 }; /* 1 in this order, 0 from behind */
        ls_tensor *y = NULL;
        for (int i = 0; i < 3; i++) {
            ls_tensor *part = ls_scale(ls_embedding(t, zero), slopes[i]);
            y = y ? ls_add(y, part) : part;
        }
        ls_tensor *g = ls_gradient(tape, y, t);
        assert_true(ls_is_sparse(g));
        holds(ls_sparse_values(g), 3, (float[]){ 1e8f, -1e8f, 1 });
        holds(ls_densify(g), 2, (float[]){ 1, 0 });
    }
    LS_FRAME {
        ls_tensor *t = ls_zeros(LS_F32, LS_DIMS(ROWS));
        ls_tape *tape = ls_tape_open();
        float want[ROWS] = { 0 };
        ls_tensor *y = ls_scalar(LS_F32, 0);
        uint32_t noise = 1;
        for (int k = 0; k < LOOKUPS; k++) {
            int32_t ids[IDS];
            float slope[IDS];
            for (int i = 0; i < IDS; i++) {
                noise = noise * 1664525u + 1013904223u;
                ids[i] = (int32_t)(noise >> 8) % ROWS;
                slope[i] = (float)(int32_t)noise / (float)(1 << (noise >> 5 & 15));
                want[ids[i]] += slope[i];
            }
            ls_tensor *rows = ls_embedding(t, rows_of(IDS, ids));
            ls_tensor *part = ls_mul(rows, ls_from(LS_F32, LS_DIMS(IDS), slope));
            y = ls_add(y, ls_sum(part, LS_ALL_AXES, false));
        }
        ls_tensor *g = ls_gradient(tape, y, t);
        assert_true(ls_is_sparse(g));
        holds(ls_densify(g), ROWS, want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(made_by_hand, clean),
        cmocka_unit_test_setup(bad_parts, clean),
        cmocka_unit_test_setup(handles_carry_the_rows, clean),
        cmocka_unit_test_setup(embedding_gives_a_sparse_gradient, clean),
        cmocka_unit_test_setup(order_of_duplicates_is_kept, clean),
        cmocka_unit_test_setup(two_lookups_of_one_table, clean),
        cmocka_unit_test_setup(ids_of_any_shape, clean),
        cmocka_unit_test_setup(gradient_of_a_sparse_gradient, clean),
        cmocka_unit_test_setup(gradient_with_respect_to_a_sparse_tensor, clean),
        cmocka_unit_test_setup(lookups_add_up_in_program_order, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
