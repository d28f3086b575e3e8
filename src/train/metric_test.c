/*
 * Metrics against plain C loops: what each kind counts, weights, partial batches, replicas with no
 * rows; traced and eager, on one device and on two, the same bits; counts beyond 2^31; a step that
 * fails has counted nothing; saving; and what is refused.
 */
#include <lockstep.h>
#include <math.h>

#include "tensor/test_support.h"

enum { ROWS = 6, CLASSES = 4, MOST_REPLICAS = 3 };

/* No two outputs of a row are equal. */
static const float outputs[ROWS][CLASSES] = { { 1, 4, 2, 3 },    { 9, 1, 2, 3 }, { -1, -2, -3, -4 },
                                              { 0.5f, 0, 3, 1 }, { 2, 3, 1, 0 }, { 7, 6, 5, 8 } };
static const int32_t labels[ROWS] = { 1, 3, 0, 3, 2, 3 };

static ls_tensor *output_rows(int from, int count)
{
    return ls_from(LS_F32, LS_DIMS(count, CLASSES), outputs[from]);
}

static ls_tensor *label_rows(int from, int count)
{
    return ls_from(LS_I32, LS_DIMS(count), labels + from);
}

/* How many of a row's outputs are larger than the label's. */
static int place_of(int row)
{
    int larger = 0;
    for (int c = 0; c < CLASSES; c++)
        larger += outputs[row][c] > outputs[row][labels[row]];
    return larger;
}

/* ---- what is counted ---------------------------------------------------------------------------- */

static void classes(void **state)
{
    (void)state;
    for (int64_t k = 1; k <= CLASSES; k++)
        LS_FRAME {
            int hits = 0;
            for (int i = 0; i < ROWS; i++)
                hits += place_of(i) < k;
            ls_metric *top = ls_top_k_accuracy("top", k), *best = ls_accuracy(NULL);
            ls_tensor *one_hot = ls_one_hot(label_rows(0, ROWS), CLASSES, LS_F32);
            assert_int_equal(ls_metric_update(top, output_rows(0, 2), label_rows(0, 2)), LS_OK);
            assert_int_equal(
                ls_metric_update(top, output_rows(2, ROWS - 2), label_rows(2, ROWS - 2)), LS_OK);
            assert_true(ls_metric_result(top) == (double)hits / ROWS);
            assert_int_equal(ls_metric_samples(top), ROWS);
            assert_int_equal(ls_metric_update(best, output_rows(0, ROWS), one_hot), LS_OK);
            if (k == 1)
                assert_true(ls_metric_result(best) == ls_metric_result(top));
            assert_int_equal(ls_metric_reset(top), LS_OK);
            assert_true(isnan(ls_metric_result(top)));
            assert_int_equal(ls_metric_update(top, output_rows(0, ROWS), one_hot), LS_OK);
            assert_true(ls_metric_result(top) == (double)hits / ROWS);
            assert_string_equal(ls_metric_name(top), "top");
            assert_string_equal(ls_metric_name(best), "accuracy");
            ls_metric_free(top);
            ls_metric_free(best);
        }
}

/* A label for each place of a text, any integer dtype, bools as one-hot, bf16 outputs. */
static void other_shapes(void **state)
{
    (void)state;
    LS_FRAME {
        ls_metric *m = ls_accuracy("a");
        ls_tensor *x = ls_reshape(output_rows(0, ROWS), LS_DIMS(2, 3, CLASSES));
        ls_tensor *y = ls_reshape(label_rows(0, ROWS), LS_DIMS(2, 3));
        assert_int_equal(ls_metric_update(m, x, y), LS_OK);
        double want = ls_metric_result(m);
        assert_int_equal(ls_metric_samples(m), ROWS);
        assert_int_equal(ls_metric_update(m, ls_cast(x, LS_BF16), ls_cast(y, LS_U8)), LS_OK);
        assert_int_equal(ls_metric_update(m, x, ls_cast(y, LS_I64)), LS_OK);
        assert_int_equal(ls_metric_update(m, x, ls_one_hot(y, CLASSES, LS_BOOL)), LS_OK);
        assert_int_equal(ls_metric_samples(m), 4 * ROWS);
        assert_true(ls_metric_result(m) == want);
        ls_metric_free(m);
    }
}

static void numbers(void **state)
{
    (void)state;
    const float x[] = { -1, 0, 0.25f, 3 }, y[] = { 0, 1, 1, 1 };
    LS_FRAME {
        ls_tensor *out = ls_from(LS_F32, LS_DIMS(4), x), *label = ls_from(LS_F32, LS_DIMS(4), y);
        ls_metric *logits = ls_binary_accuracy("logits", 0),
                  *half = ls_binary_accuracy("half", 0.5);
        ls_metric *error = ls_mean_absolute_error(NULL);
        assert_int_equal(ls_metric_update(logits, out, label), LS_OK);
        assert_true(ls_metric_result(logits) == 0.75); /* 0 is not above 0 */
        assert_int_equal(ls_metric_update(half, out, ls_cast(label, LS_BOOL)), LS_OK);
        assert_true(ls_metric_result(half) == 0.5);
        assert_int_equal(ls_metric_update(error, out, ls_cast(label, LS_I32)), LS_OK);
        assert_true(ls_metric_result(error) == (1 + 1 + 0.75 + 2) / 4);
        ls_metric_free(logits);
        ls_metric_free(half);
        ls_metric_free(error);
    }
}

static void weights(void **state)
{
    (void)state;
    LS_FRAME {
        ls_metric *m = ls_mean_metric("loss");
        ls_tensor *values = ls_from(LS_F32, LS_DIMS(2, 2), (float[]){ 1, 2, 4, 8 });
        assert_int_equal(ls_metric_add(m, values, NULL), LS_OK);
        assert_true(ls_metric_result(m) == 3.75);
        ls_tensor *w = ls_from(LS_F64, LS_DIMS(2, 2), (double[]){ 0, 0.5, -1, 0 });
        assert_int_equal(ls_metric_add(m, values, w), LS_OK);
        assert_int_equal(ls_metric_samples(m), 6);
        assert_true(ls_metric_result(m) == (15.0 + 1 - 4) / 6);
        ls_tensor *yes = ls_from(LS_BOOL, LS_DIMS(2, 2), (bool[]){ true, false, false, false });
        assert_int_equal(ls_metric_add(m, values, yes), LS_OK);
        assert_int_equal(ls_metric_samples(m), 7);
        assert_true(ls_metric_result(m) == (15.0 + 1 - 4 + 1) / 7);
        assert_int_equal(ls_metric_add(m, ls_scalar(LS_I32, 5), NULL), LS_OK); /* one value */
        assert_int_equal(ls_metric_samples(m), 8);
        ls_tensor *failed_weights = ls_add(values, ls_zeros(LS_F32, LS_DIMS(3)));
        assert_int_equal(ls_metric_add(m, values, failed_weights), LS_SHAPE); /* not: without */
        assert_int_equal(ls_error(), LS_SHAPE);
        assert_int_equal(ls_metric_samples(m), 8);
        ls_metric_free(m);
    }
}

static ls_tensor *doubled(ls_tensor *x, ls_tensor *y, void *user)
{
    *(int *)user += 1;
    (void)y;
    return ls_scale(x, 2);
}

static ls_tensor *without_user(ls_tensor *x, ls_tensor *y, void *user)
{
    (void)y;
    assert_null(user);
    return x;
}

static void functions_of_ones_own(void **state)
{
    (void)state;
    LS_FRAME {
        int calls = 0;
        ls_metric *m = ls_own_metric("mine", doubled, &calls);
        ls_metric *other = ls_own_metric(NULL, without_user, NULL);
        ls_tensor *x = ls_full(LS_F32, LS_DIMS(3), 4);
        assert_int_equal(ls_metric_update(m, x, x), LS_OK);
        assert_int_equal(ls_metric_update(other, x, x), LS_OK);
        assert_int_equal(calls, 1);
        assert_true(ls_metric_result(m) == 8);
        ls_metric_free(m);
        ls_metric_free(other);
    }
}

/* ---- in replicas ---------------------------------------------------------------------------------- */

typedef struct job {
    ls_metric *loss, *hits;
    bool fails; /* after it has counted, on the last replica */
} job;

static ls_value *step(ls_value *arguments, void *user)
{
    job *j = user;
    ls_tensor *x = ls_item(arguments, 0), *y = ls_item(arguments, 1);
    ls_metric_update(j->hits, x, y);
    ls_metric_add(j->loss, ls_sparse_softmax_xent(x, y), NULL);
    ls_replica *replica = ls_get_replica_context();
    if (j->fails && ls_replica_id(replica) == ls_num_replicas(ls_replica_strategy(replica)) - 1)
        return ls_leaf(ls_matmul(x, x));
    return ls_list(0, NULL);
}

static const int share[MOST_REPLICAS] = { 3, 0, 3 };

static ls_value *rows_of(int replica, int replicas, void *user)
{
    (void)user;
    int from = 0, count = replica == replicas - 1 ? ROWS : share[replica];
    for (int i = 0; i < replica; i++)
        from += share[i];
    if (replica == replicas - 1)
        count = ROWS - from;
    return ls_tensors(2, (ls_tensor *[]){ output_rows(from, count), label_rows(from, count) });
}

static double component(ls_variable *v, int replica)
{
    return ls_to_double(ls_read(ls_variable_component(v, replica)));
}

/* The mean loss of two steps. */
static double run(int replicas, const char *devices, bool traced)
{
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = devices, .replicas = replicas));
    job j = { 0 };
    double loss = 0;
    LS_SCOPE (s) {
        j.loss = ls_mean_metric("loss");
        j.hits = ls_accuracy("hits");
    }
    ls_function *f = ls_trace(step, &j);
    for (int turn = 0; turn < 3; turn++)
        LS_FRAME {
            j.fails = turn == 2;
            ls_function *g = j.fails ? ls_trace(step, &j) : f;
            ls_value *rows = ls_distribute_values(s, rows_of, NULL);
            ls_value *done = traced ? ls_run(s, g, rows) : ls_run_eager(s, step, &j, rows);
            assert_int_equal(!done, j.fails);
            if (j.fails) {
                failed(LS_SHAPE);
                ls_function_free(g);
            }
        }
    LS_FRAME {
        int hits = 0;
        for (int i = 0; i < ROWS; i++)
            hits += place_of(i) == 0;
        assert_int_equal(ls_metric_samples(j.hits), 2 * ROWS);
        assert_int_equal(ls_metric_samples(j.loss), 2 * ROWS);
        assert_true(ls_metric_result(j.hits) == (double)hits / ROWS);
        ls_variable *sum = ls_metric_variables(j.loss)[0];
        double all = component(sum, 0); /* the tree of two and of three goes from the left */
        for (int i = 1; i < replicas; i++)
            all += component(sum, i);
        loss = ls_metric_result(j.loss);
        assert_true(loss == all / (2 * ROWS));
        LS_SCOPE (s)
            assert_true(ls_metric_result(j.loss) == loss);
    }
    assert_int_equal(ls_metric_reset(j.loss), LS_OK);
    assert_true(isnan(ls_metric_result(j.loss)));
    ls_function_free(f);
    ls_metric_free(j.loss);
    ls_metric_free(j.hits);
    assert_int_equal(ls_strategy_free(s), LS_OK);
    return loss;
}

static void in_replicas(void **state)
{
    (void)state;
    for (int v = 1; v <= MOST_REPLICAS; v++) {
        double eager = run(v, "/cpu:0", false);
        assert_true(eager == run(v, "/cpu:0", true));
        if (v > 1) {
            assert_true(eager == run(v, "/cpu:0,/cpu:1", false));
            assert_true(eager == run(v, "/cpu:0,/cpu:1", true));
        }
    }
}

static ls_value *count_pair(ls_value *pair, void *user)
{
    return ls_metric_update(user, ls_item(pair, 0), ls_item(pair, 1)) ? NULL : ls_list(0, NULL);
}

/* A replay counts, the trace does not. */
static void in_a_traced_function(void **state)
{
    (void)state;
    ls_metric *m = ls_accuracy("a");
    ls_function *f = ls_trace(count_pair, m);
    for (int turn = 1; turn <= 3; turn++)
        LS_FRAME {
            ls_value *pair =
                ls_tensors(2, (ls_tensor *[]){ output_rows(0, ROWS), label_rows(0, ROWS) });
            assert_non_null(ls_function_call(f, pair));
            assert_int_equal(ls_metric_samples(m), turn * ROWS);
        }
    assert_int_equal(ls_function_traces(f), 1);
    ls_function_free(f);
    ls_metric_free(m);
}

static void counts_beyond_32_bits(void **state)
{
    (void)state;
    const int64_t many = 7000000001;
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0,/cpu:1", .replicas = 3));
    job j = { 0 };
    LS_SCOPE (s) {
        j.loss = ls_mean_metric("loss");
        j.hits = ls_accuracy("hits");
        LS_FRAME {
            ls_assign(ls_metric_variables(j.hits)[0], ls_scalar(LS_F64, 7e9 / 2));
            ls_assign(ls_metric_variables(j.hits)[1], ls_scalar_int(LS_I64, many));
        }
    }
    LS_FRAME
        assert_non_null(ls_run_eager(s, step, &j, ls_distribute_values(s, rows_of, NULL)));
    assert_true(ls_metric_samples(j.hits) == many + ROWS);
    assert_float_equal(ls_metric_result(j.hits), 0.5, 1e-8);
    ls_metric_free(j.loss);
    ls_metric_free(j.hits);
    assert_int_equal(ls_strategy_free(s), LS_OK);
}

/* ---- saving ------------------------------------------------------------------------------------------ */

static void saved_and_restored(void **state)
{
    (void)state;
    LS_FRAME {
        ls_metric *m = ls_accuracy("a");
        assert_int_equal(ls_metric_update(m, output_rows(0, ROWS), label_rows(0, ROWS)), LS_OK);
        double want = ls_metric_result(m);
        assert_string_equal(ls_variable_name(ls_metric_variables(m)[0]), "a/sum");
        assert_string_equal(ls_variable_name(ls_metric_variables(m)[1]), "a/count");
        ls_value *saved = ls_variables_save(2, ls_metric_variables(m));
        assert_int_equal(ls_metric_reset(m), LS_OK);
        assert_int_equal(ls_variables_restore(2, ls_metric_variables(m), saved), LS_OK);
        assert_true(ls_metric_result(m) == want);
        assert_int_equal(ls_metric_samples(m), ROWS);
        ls_metric_free(m);
    }
}

/* ---- refused ----------------------------------------------------------------------------------------- */

static void bad_arguments(void **state)
{
    (void)state;
    size_t before = memory();
    assert_null(ls_top_k_accuracy("top", 0));
    failed(LS_INVALID);
    assert_null(ls_binary_accuracy("b", NAN));
    failed(LS_INVALID);
    assert_null(ls_own_metric("o", NULL, NULL));
    failed(LS_INVALID);
    assert_null(ls_accuracy(""));
    failed(LS_INVALID);
    assert_null(ls_accuracy("a\nb"));
    failed(LS_INVALID);
    ls_metric_free(NULL);
    assert_null(ls_metric_name(NULL));
    assert_null(ls_metric_variables(NULL));
    assert_true(isnan(ls_metric_result(NULL)));
    assert_int_equal(ls_metric_samples(NULL), 0);
    assert_int_equal(ls_error_pending(), LS_OK);
    assert_int_equal(ls_metric_reset(NULL), LS_INVALID);
    failed(LS_INVALID);
    assert_int_equal(ls_metric_update(NULL, NULL, NULL), LS_INVALID);
    failed(LS_INVALID);
    assert_int_equal(ls_metric_add(NULL, NULL, NULL), LS_INVALID);
    failed(LS_INVALID);
    assert_int_equal(memory(), before);
}

static ls_tensor *nothing(ls_tensor *x, ls_tensor *y, void *user)
{
    (void)x;
    (void)y;
    (void)user;
    return NULL;
}

static void bad_values(void **state)
{
    (void)state;
    LS_FRAME {
        ls_metric *a = ls_accuracy("a"), *top = ls_top_k_accuracy("top", 9);
        ls_metric *mean = ls_mean_metric("mean"), *error = ls_mean_absolute_error("error");
        ls_metric *none = ls_own_metric("none", nothing, NULL);
        ls_tensor *x = output_rows(0, ROWS), *y = label_rows(0, ROWS);
        ls_tensor *column = ls_expand_dims(y, -1),
                  *words = ls_from_strings(LS_DIMS(1), (const void *[]){ "w" }, NULL);
        assert_int_equal(ls_metric_update(a, x, column), LS_SHAPE);
        assert_non_null(
            strstr(ls_error_text(), "metric 'a': outputs are f32[6,4], labels i32[6,1]"));
        failed(LS_SHAPE);
        assert_int_equal(ls_metric_update(a, x, ls_cast(y, LS_F32)), LS_SHAPE);
        failed(LS_SHAPE);
        assert_int_equal(ls_metric_update(a, x, label_rows(0, 2)), LS_SHAPE);
        failed(LS_SHAPE);
        assert_int_equal(ls_metric_update(top, x, y), LS_INVALID); /* 9 of 4 classes */
        failed(LS_INVALID);
        assert_int_equal(ls_metric_update(error, column, y), LS_SHAPE); /* not [6,6] */
        failed(LS_SHAPE);
        assert_int_equal(ls_metric_update(mean, x, y), LS_INVALID);
        assert_non_null(strstr(ls_error_hint(), "ls_metric_add"));
        failed(LS_INVALID);
        assert_int_equal(ls_metric_update(none, x, y), LS_INVALID);
        failed(LS_INVALID);
        assert_int_equal(ls_metric_add(mean, x, y), LS_SHAPE);
        failed(LS_SHAPE);
        assert_int_equal(ls_metric_add(mean, words, NULL), LS_SHAPE);
        failed(LS_SHAPE);
        assert_int_equal(ls_metric_add(mean, NULL, NULL), LS_INVALID);
        failed(LS_INVALID);
        ls_metric *const all[] = { a, top, mean, error, none };
        for (int i = 0; i < 5; i++) {
            assert_int_equal(ls_metric_samples(all[i]), 0); /* nothing was counted */
            ls_metric_free(all[i]);
        }
    }
}

/* What is asked in a replica, and counted outside of one. */
static ls_value *asks(ls_value *arguments, void *user)
{
    job *j = user;
    (void)arguments;
    assert_true(isnan(ls_metric_result(j->hits)));
    failed(LS_STATE);
    assert_int_equal(ls_metric_reset(j->hits), LS_STATE);
    failed(LS_STATE);
    assert_null(ls_accuracy("late"));
    failed(LS_STATE);
    ls_metric_free(j->hits);
    failed(LS_STATE);
    return ls_list(0, NULL);
}

static void where_it_does_not_belong(void **state)
{
    (void)state;
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0", .replicas = 2));
    job j = { 0 };
    ls_metric *plain = ls_accuracy("plain");
    LS_SCOPE (s)
        j.hits = ls_accuracy("hits");
    LS_FRAME {
        assert_non_null(ls_run_eager(s, asks, &j, ls_list(0, NULL)));
        assert_int_equal(ls_metric_update(j.hits, output_rows(0, 1), label_rows(0, 1)), LS_STATE);
        failed(LS_STATE);
        LS_SCOPE (s)
            assert_int_equal(ls_metric_update(j.hits, output_rows(0, 1), label_rows(0, 1)),
                             LS_STATE);
        failed(LS_STATE);
        /* A metric of no strategy cannot count what replicas of one do. */
        job wrong = { .hits = plain, .loss = plain };
        assert_null(ls_run_eager(s, step, &wrong, ls_distribute_values(s, rows_of, NULL)));
        assert_int_not_equal(ls_error(), LS_OK);
        assert_int_equal(ls_metric_samples(plain), 0);
    }
    ls_metric_free(plain);
    ls_metric_free(j.hits);
    assert_int_equal(ls_strategy_free(s), LS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(classes, clean),
        cmocka_unit_test_setup(other_shapes, clean),
        cmocka_unit_test_setup(numbers, clean),
        cmocka_unit_test_setup(weights, clean),
        cmocka_unit_test_setup(functions_of_ones_own, clean),
        cmocka_unit_test_setup(in_replicas, clean),
        cmocka_unit_test_setup(in_a_traced_function, clean),
        cmocka_unit_test_setup(counts_beyond_32_bits, clean),
        cmocka_unit_test_setup(saved_and_restored, clean),
        cmocka_unit_test_setup(bad_arguments, clean),
        cmocka_unit_test_setup(bad_values, clean),
        cmocka_unit_test_setup(where_it_does_not_belong, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
