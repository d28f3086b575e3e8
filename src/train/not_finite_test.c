/*
 * A fit whose loss is not finite: the step did not happen, and the error says in which step and where
 * it began.
 */
#include "fit_test_support.h"

#include <math.h>
#include <string.h>

static ls_tensor *grow(ls_tensor *x)
{
    return ls_exp(ls_scale(x, 1e4));
}

static void where_a_nan_began(void **state)
{
    (void)state;
    ls_model *m = ls_model_new(LS_MODEL(.name = "grows", .input = "f32[2]"));
    ls_dense_layer(m, LS_DENSE_LAYER(.units = 4));
    ls_activation_layer(m, grow);
    ls_strategy *s = replicas(2, 2);
    ls_random_seed(3);
    ls_trainer *t = ls_trainer_new(LS_TRAINER(.strategy = s, .model = m));
    char before[LS_DIGEST_MAX], after[LS_DIGEST_MAX];
    ls_weights_digest(ls_model_count(m), ls_model_variables(m), before);
    LS_FRAME
        assert_int_equal(ls_fit(t, LS_FIT(.data = batches())), LS_NOT_FINITE);
    assert_string_equal(ls_status_name(ls_error_pending()), "LS_NOT_FINITE");
    if (!strstr(ls_error_text(), "step 1:") || !strstr(ls_error_text(), "exp"))
        fail_msg("%s", ls_error_text());
    ls_error();
    ls_weights_digest(ls_model_count(m), ls_model_variables(m), after);
    assert_string_equal(before, after);
    ls_trainer_free(t);
    ls_strategy_free(s);
    assert_clean();
}

static void a_variable_that_is_not_finite(void **state)
{
    (void)state;
    ls_random_seed(3);
    ls_trainer *t = ls_trainer_new(
        LS_TRAINER(.model = small_model(0), .optimizer = ls_sgd(LS_SGD(.rate = 1e38))));
    LS_FRAME {
        ls_variable *first = ls_model_variables(ls_trainer_model(t))[0];
        ls_assign(first, ls_scale(ls_read(first), INFINITY));
        assert_int_equal(ls_fit(t, LS_FIT(.data = batches())), LS_NOT_FINITE);
    }
    assert_error(LS_NOT_FINITE, "variable 'dense_1/kernel' is not");
    ls_trainer_free(t);
}

/* One pixel in all the data, which the model never makes itself. */
static void data_that_is_not_finite(void **state)
{
    (void)state;
    static const float bad[] = { NAN, INFINITY };
    for (int i = 0; i < 2; i++) {
        ls_strategy *s = replicas(2, 2);
        ls_trainer *t = small_trainer(s, 0);
        LS_FRAME {
            float x[] = { 0, 1, 2, 3, 4, 5, 6, bad[i] };
            ls_dataset *data =
                ls_slices(ls_tensors(2, (ls_tensor *[]){ ls_from(LS_F32, LS_DIMS(4, 2), x),
                                                         ls_zeros(LS_I32, LS_DIMS(4)) }));
            assert_int_equal(ls_fit(t, LS_FIT(.data = ls_batch(data, 2))), LS_NOT_FINITE);
            assert_non_null(strstr(ls_error_text(), "step 2:"));
            assert_error(LS_NOT_FINITE, "since the data is not");
            assert_int_equal(ls_iterations(ls_trainer_optimizer(t)), 1);
        }
        ls_trainer_free(t);
        ls_strategy_free(s);
        assert_clean();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_a_nan_began),
        cmocka_unit_test(a_variable_that_is_not_finite),
        cmocka_unit_test(data_that_is_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
