/*
 * ls_fit, ls_evaluate, ls_predict: what is done in which order, what figures are, and where it ends.
 * Figures are compared with plain C over what ls_predict gives.
 */
#include "fit_test_support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- who is called when ------------------------------------------------------------------------------ */

typedef struct diary {
    char text[4096];
    int64_t stop_at, stop_in_test;
    ls_status stop_with;
} diary;

static void note(diary *d, const char *format, ...)
{
    size_t used = strlen(d->text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(d->text + used, sizeof d->text - used, format, arguments);
    va_end(arguments);
}

static ls_status at_begin(const ls_progress *p, void *user)
{
    note(user, "begin %d/%d ", (int)p->step, (int)p->last_step);
    return LS_OK;
}

static ls_status at_step(const ls_progress *p, void *user)
{
    diary *d = user;
    note(d, "%d.%d/%d:%d ", (int)p->epoch, (int)p->epoch_step, (int)p->epoch_steps, (int)p->rows);
    return p->step == d->stop_at ? d->stop_with : LS_OK;
}

static ls_status at_test_step(const ls_progress *p, void *user)
{
    diary *d = user;
    note(d, "t%d/%d ", (int)p->test_step, (int)p->test_steps);
    return p->test_step == d->stop_in_test ? LS_END : LS_OK;
}

static ls_status at_epoch(const ls_progress *p, void *user)
{
    note(user, "epoch %d/%d ", (int)p->epoch, (int)p->epochs);
    return LS_OK;
}

static ls_status at_end(const ls_progress *p, void *user)
{
    note(user, "end %d samples %d", (int)p->step, (int)p->samples);
    return LS_OK;
}

static ls_callback diary_callback(diary *d)
{
    return *LS_CALLBACK(.user = d, .name = "diary", .begin = at_begin, .step = at_step,
                        .test_step = at_test_step, .epoch = at_epoch, .end = at_end);
}

static void callbacks_are_called_in_order(void **state)
{
    (void)state;
    diary d = { .stop_at = 0 };
    ls_callback c = diary_callback(&d);
    ls_strategy *s = replicas(2, 1);
    ls_trainer *t = small_trainer(s, 0);
    LS_FRAME
        ls_fit(t, LS_FIT(.data = ls_batch(points(5), 2), .test = ls_batch(points(3), 2),
                         .epochs = 2, .n_callbacks = 1, .callbacks = (ls_callback *[]){ &c }));
    assert_clean();
    assert_string_equal(d.text, "begin 0/6 1.1/3:2 1.2/3:2 1.3/3:1 t1/2 t2/2 epoch 1/2 "
                                "2.1/3:2 2.2/3:2 2.3/3:1 t1/2 t2/2 epoch 2/2 end 6 samples 10");
    ls_trainer_free(t);
    ls_strategy_free(s);
    assert_clean();
}

static void a_callback_can_end_it(void **state)
{
    (void)state;
    diary d = { .stop_at = 2, .stop_with = LS_END };
    ls_callback c = diary_callback(&d);
    ls_trainer *t = small_trainer(NULL, 0);
    const ls_fit_options *o = LS_FIT(.data = ls_batch(points(6), 2), .epochs = 2, .n_callbacks = 1,
                                     .callbacks = (ls_callback *[]){ &c });
    LS_FRAME {
        assert_int_equal(ls_fit(t, o), LS_OK);
        assert_string_equal(d.text, "begin 0/6 1.1/3:2 1.2/3:2 end 2 samples 4");
        d.text[0] = '\0';
        assert_int_equal(ls_fit(t, o), LS_OK); /* goes on where it was */
        assert_string_equal(d.text, "begin 2/6 1.3/3:2 epoch 1/2 2.1/3:2 2.2/3:2 2.3/3:2 epoch 2/2 "
                                    "end 6 samples 12");
    }
    ls_trainer_free(t);
    assert_clean();
}

/* Until its test is done, an epoch is not over. */
static void ended_within_a_test_it_goes_on_with_the_test(void **state)
{
    (void)state;
    diary d = { .stop_in_test = 1 };
    ls_callback c = diary_callback(&d);
    ls_trainer *t = small_trainer(NULL, 0);
    const ls_fit_options *o = LS_FIT(.data = ls_batch(points(4), 2), .test = ls_batch(points(4), 2),
                                     .n_callbacks = 1, .callbacks = (ls_callback *[]){ &c });
    LS_FRAME {
        assert_int_equal(ls_fit(t, o), LS_OK);
        assert_string_equal(d.text, "begin 0/2 1.1/2:2 1.2/2:2 t1/2 end 2 samples 4");
        assert_true(isnan(ls_trainer_value(t, "test_loss")));
        d = (diary){ .stop_at = 0 };
        assert_int_equal(ls_fit(t, o), LS_OK);
        assert_string_equal(d.text, "begin 2/2 t1/2 t2/2 epoch 1/1 end 2 samples 4");
        assert_false(isnan(ls_trainer_value(t, "test_loss")));
    }
    ls_trainer_free(t);
    assert_clean();
}

static void a_callback_that_fails_fails_it(void **state)
{
    (void)state;
    diary d = { .stop_at = 1, .stop_with = LS_IO };
    ls_callback c = diary_callback(&d);
    ls_trainer *t = small_trainer(NULL, 0);
    LS_FRAME
        assert_int_equal(ls_fit(t, LS_FIT(.data = ls_batch(points(6), 2), .n_callbacks = 1,
                                          .callbacks = (ls_callback *[]){ &c })),
                         LS_IO);
    assert_error(LS_IO, "diary: it returned LS_IO");
    assert_string_equal(d.text, "begin 0/3 1.1/3:2 end 1 samples 2");
    ls_trainer_free(t);
}

static void steps_end_it_earlier(void **state)
{
    (void)state;
    diary d = { .stop_at = 0 };
    ls_callback c = diary_callback(&d);
    ls_trainer *t = small_trainer(NULL, 0);
    LS_FRAME {
        const ls_fit_options *o = LS_FIT(.data = ls_batch(points(4), 2), .epochs = 9, .steps = 3,
                                         .n_callbacks = 1, .callbacks = (ls_callback *[]){ &c });
        assert_int_equal(ls_fit(t, o), LS_OK);
        assert_string_equal(d.text, "begin 0/3 1.1/2:2 1.2/2:2 epoch 1/9 2.1/2:2 end 3 samples 6");
        d.text[0] = '\0';
        assert_int_equal(ls_fit(t, o), LS_OK); /* it is over */
        assert_string_equal(d.text, "begin 3/3 end 3 samples 6");
    }
    ls_trainer_free(t);
    assert_clean();
}

static ls_value *same(ls_value *element, void *user)
{
    (void)user;
    return element;
}

static bool all(ls_value *element, void *user)
{
    (void)element, (void)user;
    return true;
}

static void data_of_unknown_length(void **state)
{
    (void)state;
    diary d = { .stop_at = 0 };
    ls_callback c = diary_callback(&d);
    ls_trainer *t = small_trainer(NULL, 0);
    LS_FRAME {
        ls_dataset *data = ls_map(ls_filter(ls_batch(points(4), 2), all, NULL), LS_MAP(.fn = same));
        assert_int_equal(ls_fit(t, LS_FIT(.data = data, .epochs = 2, .steps = 3, .n_callbacks = 1,
                                          .callbacks = (ls_callback *[]){ &c })),
                         LS_OK);
    }
    assert_string_equal(d.text, "begin 0/3 1.1/-2:2 1.2/-2:2 epoch 1/2 2.1/2:2 end 3 samples 6");
    ls_trainer_free(t);
    assert_clean();
}

/* ---- figures --------------------------------------------------------------------------------------------- */

typedef struct counted {
    double loss;
    int hits, rows;
} counted;

static ls_status count(ls_tensor *outputs, ls_value *batch, void *user)
{
    counted *c = user;
    const float *logits = ls_data(outputs);
    const int32_t *labels = ls_data(ls_item(batch, 1));
    for (int64_t i = 0; i < ls_dim(outputs, 0); i++, c->rows++) {
        double sum = 0;
        int best = 0;
        for (int k = 0; k < 4; k++) {
            sum += exp(logits[4 * i + k]);
            best = logits[4 * i + k] > logits[4 * i + best] ? k : best;
        }
        c->loss += log(sum) - logits[4 * i + labels[i]];
        c->hits += best == labels[i];
    }
    return LS_OK;
}

/* 30 rows in batches of 8 over 3 replicas: the last batch has 6, and 2 a replica. */
static void figures_are_means_over_rows(void **state)
{
    (void)state;
    ls_strategy *s = replicas(3, 2);
    ls_trainer *t = small_trainer(s, 0.2);
    counted c = { 0 };
    LS_FRAME {
        ls_fit(t, LS_FIT(.data = batches(), .test = test_batches(), .epochs = 3));
        ls_predict(t, test_batches(), count, &c);
    }
    assert_clean();
    assert_int_equal(c.rows, 30);
    assert_float_equal(ls_trainer_value(t, "test_loss"), c.loss / 30, 1e-5);
    assert_float_equal(ls_trainer_value(t, "test_accuracy"), c.hits / 30.0, 0);
    assert_true(isnan(ls_trainer_value(t, "test_fun")));
    assert_string_equal(ls_trainer_names(t, 0), "loss");
    assert_string_equal(ls_trainer_names(t, 1), "accuracy");
    assert_string_equal(ls_trainer_names(t, 2), "test_loss");
    assert_string_equal(ls_trainer_names(t, 3), "test_accuracy");
    assert_null(ls_trainer_names(t, 4));
    ls_trainer_free(t);
    ls_strategy_free(s);
}

static void it_learns(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2, 2);
    ls_trainer *t = small_trainer(s, 0);
    LS_FRAME
        ls_fit(t, LS_FIT(.data = batches(), .test = ls_batch(points(POINTS), BATCH), .epochs = 60));
    assert_clean();
    assert_true(ls_trainer_value(t, "test_accuracy") > 0.9);
    assert_true(ls_trainer_value(t, "loss") < 0.5);
    ls_trainer_free(t);
    ls_strategy_free(s);
}

/* A test in the middle of an epoch does not touch a bit of training. */
static ls_status test_now(const ls_progress *p, void *user)
{
    (void)user;
    double before = ls_trainer_value(p->trainer, "loss");
    ls_status st = ls_evaluate(p->trainer, test_batches());
    assert_true(ls_trainer_value(p->trainer, "loss") == before);
    return st;
}

static void digest_of_run(int v, int devices, bool tests, char *out)
{
    ls_callback c = *LS_CALLBACK(.name = "tests", .step = test_now);
    ls_strategy *s = replicas(v, devices);
    ls_trainer *t = small_trainer(s, 0.3);
    LS_FRAME
        ls_fit(t, LS_FIT(.data = batches(), .epochs = 2, .n_callbacks = tests,
                         .callbacks = (ls_callback *[]){ &c }));
    ls_weights_digest(ls_model_count(ls_trainer_model(t)), ls_model_variables(ls_trainer_model(t)),
                      out);
    assert_clean();
    ls_trainer_free(t);
    ls_strategy_free(s);
}

static void the_same_bits_on_any_devices(void **state)
{
    (void)state;
    char one[LS_DIGEST_MAX], other[LS_DIGEST_MAX];
    digest_of_run(3, 1, false, one);
    for (int devices = 1; devices <= 3; devices++) {
        digest_of_run(3, devices, devices != 1, other);
        assert_string_equal(one, other);
    }
    digest_of_run(2, 1, false, other);
    assert_string_not_equal(one, other);
}

/* ---- what is refused -------------------------------------------------------------------------------------- */

static void wrong_options(void **state)
{
    (void)state;
    LS_FRAME {
        ls_trainer *t = small_trainer(NULL, 0);
        assert_int_equal(ls_fit(t, NULL), LS_INVALID);
        assert_error(LS_INVALID, "LS_FIT");
        assert_int_equal(ls_fit(t, LS_FIT(.epochs = 1)), LS_INVALID);
        assert_error(LS_INVALID, "no .data");
        assert_int_equal(ls_fit(t, LS_FIT(.data = batches(), .epochs = -1)), LS_INVALID);
        assert_error(LS_INVALID, "-1 epochs");
        assert_int_equal(ls_fit(t, LS_FIT(.data = batches(), .n_callbacks = 1)), LS_INVALID);
        assert_error(LS_INVALID, "1 callbacks in NULL");
        assert_int_equal(ls_fit(t, LS_FIT(.data = ls_batch(ls_range(0, 4, 1), 2))), LS_INVALID);
        assert_error(LS_INVALID, "no list of x and y");
        assert_int_equal(ls_fit(t, LS_FIT(.data = ls_batch_full(points(3), 4))), LS_INVALID);
        assert_error(LS_INVALID, "no element");
        assert_int_equal(ls_evaluate(t, NULL), LS_INVALID);
        assert_error(LS_INVALID, "the data is NULL");
        assert_int_equal(ls_predict(t, batches(), NULL, NULL), LS_INVALID);
        assert_error(LS_INVALID, "the callback is NULL");
        ls_trainer_free(t);
    }
    ls_trainer_free(NULL);
    assert_int_equal(ls_fit(NULL, LS_FIT(.epochs = 1)), LS_INVALID);
    assert_error(LS_INVALID, "the trainer is NULL");
}

/* ---- found in review ------------------------------------------------------------------------------- */

/* Of the first 50 elements 24, then all: an epoch of two batches, then one of five. */
static bool fewer_at_first(ls_value *element, void *user)
{
    (void)element;
    int n = ++*(int *)user;
    return n > 50 || n <= 24;
}

static void steps_are_a_limit_when_epochs_differ(void **state)
{
    (void)state;
    int seen = 0;
    ls_trainer *t = small_trainer(NULL, 0);
    LS_FRAME
        ls_fit(t, LS_FIT(.data = ls_batch(ls_filter(points(50), fewer_at_first, &seen), 12),
                         .epochs = 5, .steps = 4));
    const int64_t steps = ls_iterations(ls_trainer_optimizer(t));
    ls_trainer_free(t);
    assert_clean();
    assert_int_equal(steps, 4);
}

static ls_status fail_at_2(const ls_progress *p, void *user)
{
    (void)user;
    return p->step == 2 ? LS_IO : LS_OK;
}

static ls_status fail_at_end(const ls_progress *p, void *user)
{
    (void)p, (void)user;
    return LS_CORRUPT;
}

/* What made a run fail is what it says, not what failed on the way out. */
static void the_first_failure_is_told(void **state)
{
    (void)state;
    ls_trainer *t = small_trainer(NULL, 0);
    ls_callback first = *LS_CALLBACK(.name = "first", .step = fail_at_2);
    ls_callback last = *LS_CALLBACK(.name = "last", .end = fail_at_end);
    ls_callback *both[] = { &first, &last };
    LS_FRAME
        assert_int_equal(ls_fit(t, LS_FIT(.data = batches(), .n_callbacks = 2, .callbacks = both)),
                         LS_IO);
    ls_trainer_free(t);
    assert_error(LS_IO, "first");
}

static ls_status enough(ls_tensor *outputs, ls_value *batch, void *user)
{
    (void)outputs, (void)batch, (void)user;
    return LS_END;
}

/* LS_OK, or an error: not both. */
static void asking_ends_early(void **state)
{
    (void)state;
    ls_trainer *t = small_trainer(NULL, 0);
    ls_status st = LS_OK;
    LS_FRAME
        st = ls_predict(t, test_batches(), enough, NULL);
    const ls_status pending = ls_error();
    ls_trainer_free(t);
    assert_int_equal(st, pending);
}

/* Until something else ends it. (The undefined-behaviour sanitizer sees an overflow.) */
static void epochs_without_an_end(void **state)
{
    (void)state;
    ls_trainer *t = small_trainer(NULL, 0);
    LS_FRAME
        ls_fit(t, LS_FIT(.data = batches(), .epochs = INT64_MAX, .steps = 2));
    ls_trainer_free(t);
    assert_clean();
}

static ls_status test_with_other_data(const ls_progress *p, void *user)
{
    *(double *)user = NAN;
    if (p->test_step != 2)
        return LS_OK;
    ls_status st = ls_evaluate(p->trainer, batches());
    *(double *)user = ls_trainer_value(p->trainer, "test_loss");
    return st ? st : LS_END;
}

/* A test within a test counts its own rows, and leaves those of the one around it. */
static void a_test_within_a_test(void **state)
{
    (void)state;
    double inner, alone, figures[2];
    ls_callback c = *LS_CALLBACK(.name = "test", .user = &inner, .test_step = test_with_other_data);
    ls_callback *all = &c;
    ls_trainer *t = small_trainer(NULL, 0);
    LS_FRAME {
        ls_fit(t, LS_FIT(.data = batches(), .test = test_batches(), .n_callbacks = 1,
                         .callbacks = &all));
        figures[0] = inner;
        ls_evaluate(t, batches());
        alone = ls_trainer_value(t, "test_loss");
    }
    figures[1] = alone;
    ls_trainer_free(t);
    assert_clean();
    assert_true(figures[0] == figures[1]);
}

static ls_status note_loss(const ls_progress *p, void *user)
{
    ((double *)user)[p->step - 1] = p->loss;
    return LS_OK;
}

/* Replicas without a row have no part in the loss that is shown. */
static void the_loss_of_a_short_batch(void **state)
{
    (void)state;
    double own[2], global[2];
    ls_strategy *s = replicas(4, 1);
    for (int64_t batch = 0; batch <= 4; batch += 4) {
        ls_random_seed(3);
        ls_trainer *t =
            ls_trainer_new(LS_TRAINER(.strategy = s, .model = small_model(0), .global_batch = batch,
                                      .optimizer = ls_sgd(LS_SGD(.rate = -1))));
        ls_callback c = *LS_CALLBACK(.user = batch ? global : own, .step = note_loss);
        ls_callback *all = &c;
        LS_FRAME
            ls_fit(t, LS_FIT(.data = ls_batch(points(5), 4), .n_callbacks = 1, .callbacks = &all));
        assert_clean();
        ls_trainer_free(t);
    }
    ls_strategy_free(s);
    assert_float_equal(own[0], global[0], 1e-6);
    assert_float_equal(own[1], global[1], 1e-6);
}

static ls_value *of_twenty(ls_value *element, void *user)
{
    (void)user;
    ls_tensor *items[20];
    for (int i = 0; i < 20; i++)
        items[i] = i == 0 ? ls_item(element, 0) : ls_add(ls_item(element, 1), ls_scalar(LS_I32, i));
    return ls_tensors(20, items);
}

static ls_status see_twenty(ls_tensor *outputs, ls_value *batch, void *user)
{
    (void)outputs;
    assert_int_equal(ls_length(batch), 20);
    const int32_t *first = ls_data(ls_item(batch, 1)), *last = ls_data(ls_item(batch, 19));
    for (int64_t i = 0; i < ls_dim(outputs, 0); i++, ++*(int *)user)
        assert_int_equal(last[i], first[i] + 18);
    return LS_OK;
}

/* The first item is what the model is asked; the others come along, however many. */
static void asked_with_many_items(void **state)
{
    (void)state;
    int rows = 0;
    ls_strategy *s = replicas(3, 2);
    ls_trainer *t = small_trainer(s, 0);
    LS_FRAME
        ls_predict(t, ls_map(test_batches(), LS_MAP(.fn = of_twenty)), see_twenty, &rows);
    assert_clean();
    assert_int_equal(rows, 30);
    ls_trainer_free(t);
    ls_strategy_free(s);
}

/* Each has two variables that replicas keep for themselves. */
static void a_test_of_many_batch_norms(void **state)
{
    (void)state;
    ls_random_seed(3);
    ls_model *m = ls_model_new(LS_MODEL(.name = "norms", .input = "f32[2]"));
    ls_dense_layer(m, LS_DENSE_LAYER(.units = 4));
    for (int i = 0; i < 600; i++)
        ls_batch_norm_layer(m, NULL);
    ls_strategy *s = replicas(2, 1);
    ls_trainer *t = ls_trainer_new(LS_TRAINER(.strategy = s, .model = m));
    LS_FRAME
        ls_evaluate(t, test_batches());
    assert_clean();
    assert_true(isfinite(ls_trainer_value(t, "test_loss")));
    ls_trainer_free(t);
    ls_strategy_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callbacks_are_called_in_order),
        cmocka_unit_test(a_callback_can_end_it),
        cmocka_unit_test(ended_within_a_test_it_goes_on_with_the_test),
        cmocka_unit_test(a_callback_that_fails_fails_it),
        cmocka_unit_test(steps_end_it_earlier),
        cmocka_unit_test(data_of_unknown_length),
        cmocka_unit_test(figures_are_means_over_rows),
        cmocka_unit_test(it_learns),
        cmocka_unit_test(the_same_bits_on_any_devices),
        cmocka_unit_test(wrong_options),
        cmocka_unit_test(steps_are_a_limit_when_epochs_differ),
        cmocka_unit_test(the_first_failure_is_told),
        cmocka_unit_test(asking_ends_early),
        cmocka_unit_test(epochs_without_an_end),
        cmocka_unit_test(a_test_within_a_test),
        cmocka_unit_test(the_loss_of_a_short_batch),
        cmocka_unit_test(asked_with_many_items),
        cmocka_unit_test(a_test_of_many_batch_norms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
