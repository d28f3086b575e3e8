/*
 * Optimizers that are saved and restored: every kind and option goes on with the same bits, eager and
 * traced, also with parts that wait; what does not fit is refused, and nothing has changed then.
 */
#include "ops/rate.h"
#include "train/optimizer.h"
#include "train/optimizer_test_support.h"

enum { V = 3, BEFORE = 2, AFTER = 3 };

static ls_value *apply(ls_value *arguments, void *user)
{
    pair *p = user;
    ls_tensor *g[2];
    slopes(my_id(), 0, g);
    for (int i = 0; i < 2; i++)
        g[i] = ls_mul(g[i], ls_leaf_tensor(arguments));
    ls_apply_gradients(p->o, 2, g, p->v);
    return none();
}

static void train(ls_strategy *s, pair *p, ls_function *f, int from, int to)
{
    for (int k = from; k < to; k++)
        LS_FRAME {
            ls_value *scale = ls_leaf(number(1.0f / (float)(1 + k)));
            if (!(f ? ls_run(s, f, scale) : ls_run_eager(s, apply, p, scale)))
                fail_msg("%s", ls_error_report());
        }
}

typedef struct saved {
    ls_value *weights, *optimizer; /* kept */
} saved;

static saved save(pair *p)
{
    saved out = { 0 };
    LS_FRAME {
        out.weights = ls_value_keep(ls_variables_save(2, p->v));
        out.optimizer = ls_value_keep(ls_optimizer_save(p->o, 2, p->v));
    }
    if (!out.weights || !out.optimizer)
        fail_msg("%s", ls_error_report());
    return out;
}

static void restore(pair *p, const saved *from)
{
    assert_int_equal(ls_variables_restore(2, p->v, from->weights), LS_OK);
    if (ls_optimizer_restore(p->o, 2, p->v, from->optimizer))
        fail_msg("%s", ls_error_report());
}

static void drop(saved *s)
{
    ls_value_drop(s->weights);
    ls_value_drop(s->optimizer);
}

/* ---- going on -------------------------------------------------------------------------------------- */

static void goes_on(int number_of_optimizer, bool trace)
{
    float want[MOST_STATE], got[MOST_STATE];
    ls_strategy *s = replicas(V);
    pair p = make_pair(s, optimizer_number(number_of_optimizer));
    ls_function *f = trace ? ls_trace(apply, &p) : NULL;
    train(s, &p, f, 0, BEFORE);
    saved then = save(&p);
    train(s, &p, f, BEFORE, BEFORE + AFTER);
    int n = state_of(&p, want);
    double rate = ls_rate(p.o);
    ls_function_free(f);
    free_pair(&p);
    ls_strategy_free(s);

    for (int used = 0; used < 2; used++) { /* one that is new, and one that has a life behind it */
        s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0,/cpu:1", .replicas = V));
        p = make_pair(s, optimizer_number(number_of_optimizer));
        f = trace ? ls_trace(apply, &p) : NULL;
        if (used)
            train(s, &p, f, 0, 4);
        restore(&p, &then);
        assert_int_equal(ls_iterations(p.o), BEFORE);
        train(s, &p, f, BEFORE, BEFORE + AFTER);
        assert_int_equal(state_of(&p, got), n);
        same_state(got, want, n);
        assert_true(ls_rate(p.o) == rate);
        if (f)
            assert_int_equal(ls_function_traces(f), 1);
        ls_function_free(f);
        free_pair(&p);
        ls_strategy_free(s);
    }
    drop(&then);
}

static void all_kinds_go_on(void **state)
{
    (void)state;
    for (int o = 0; o < OPTIMIZERS; o++)
        for (int trace = 0; trace < 2; trace++)
            goes_on(o, trace);
}

static ls_value *add_part(ls_value *arguments, void *user)
{
    (void)arguments;
    pair *p = user;
    ls_tensor *g[2];
    slopes(my_id(), p->part, g);
    ls_accumulate_gradients(p->o, 2, g, p->v);
    return none();
}

static ls_optimizer *summing(void)
{
    return ls_adam(LS_ADAM(.accumulates = true));
}

static void parts_wait_on(void **state)
{
    (void)state;
    float want[MOST_STATE], got[MOST_STATE];
    ls_strategy *s = replicas(V);
    pair p = make_pair(s, summing());
    train(s, &p, NULL, 0, 1);
    saved none_wait = save(&p);
    assert_int_equal(ls_length(none_wait.optimizer), 3 + 4); /* sums of zeros are left out */
    LS_FRAME
        runs(s, add_part, &p);
    saved then = save(&p);
    assert_int_equal(ls_length(then.optimizer), 3 + 4 + 2 * V);
    train(s, &p, NULL, 1, 3);
    int n = state_of(&p, want);
    free_pair(&p);

    for (int used = 0; used < 2; used++) {
        p = make_pair(s, summing());
        if (used)
            LS_FRAME
                runs(s, add_part, &p);
        restore(&p, &then);
        train(s, &p, NULL, 1, 3);
        assert_int_equal(state_of(&p, got), n);
        same_state(got, want, n);
        /* and back to where no part waited */
        LS_FRAME
            runs(s, add_part, &p);
        restore(&p, &none_wait);
        saved again = save(&p);
        assert_int_equal(ls_length(again.optimizer), 3 + 4);
        drop(&again);
        free_pair(&p);
    }
    ls_strategy_free(s);
    drop(&then);
    drop(&none_wait);
}

/* ---- what is in the dict -------------------------------------------------------------------------- */

static void named_entries(void **state)
{
    (void)state;
    static const char *const fresh[] = { "iterations", "rate", "settings" };
    static const char *const used[] = { "iterations", "rate",         "settings", "slots/m/bias",
                                        "slots/m/w",  "slots/v/bias", "slots/v/w" };
    pair p = make_pair(NULL, ls_adam(NULL));
    LS_FRAME {
        ls_value *all = ls_optimizer_save(p.o, 2, p.v);
        assert_int_equal(ls_length(all), 3);
        for (int i = 0; i < 3; i++)
            assert_string_equal(ls_key(all, i), fresh[i]);
        ls_tensor *g[2];
        slopes(0, 0, g);
        assert_int_equal(ls_apply_gradients(p.o, 2, g, p.v), LS_OK);
        all = ls_optimizer_save(p.o, 2, p.v);
        assert_int_equal(ls_length(all), 7);
        for (int i = 0; i < 7; i++)
            assert_string_equal(ls_key(all, i), used[i]);
        assert_int_equal(ls_to_int(ls_item(all, 0)), 1);
        /* those of these variables, and no others */
        assert_int_equal(ls_length(ls_optimizer_save(p.o, 1, p.v)), 5);
        assert_int_equal(ls_length(ls_optimizer_save(p.o, 0, NULL)), 3);
        /* looking at slots changes nothing of it */
        pair q = make_pair(NULL, ls_adam(NULL));
        assert_non_null(ls_slot_read(q.o, q.v[0], 0));
        assert_int_equal(ls_length(ls_optimizer_save(q.o, 2, q.v)), 3);
        free_pair(&q);
    }
    free_pair(&p);
}

static void rates_come_back(void **state)
{
    (void)state;
    pair p = make_pair(NULL, optimizer_number(7));
    pair q = make_pair(NULL, optimizer_number(7));
    LS_FRAME {
        const ls_schedule *const schedules[] = {
            LS_SCHEDULE(.rate = 0.25), LS_SCHEDULE(.rate = -1),
            LS_SCHEDULE(.kind = LS_SCHEDULE_COSINE, .steps = 7, .alpha = 0.5, .warmup_steps = 3,
                        .warmup_from = 0.1),
            LS_SCHEDULE(.kind = LS_SCHEDULE_STEP, .count = 1, .boundaries = (int64_t[]){ 0 },
                        .values = (double[]){ 0, 3 })
        };
        for (int i = 0; i < 6; i++) {
            if (i < 4)
                assert_int_equal(ls_set_schedule(p.o, schedules[i]), LS_OK);
            else
                assert_int_equal(ls_set_rate(p.o, i == 4 ? 0.125 : 0), LS_OK);
            assert_int_equal(ls_optimizer_restore(q.o, 2, q.v, ls_optimizer_save(p.o, 2, p.v)),
                             LS_OK);
            assert_memory_equal(ls__cell_data(q.o->rate), ls__cell_data(p.o->rate),
                                LS__RATE_NUMBERS * sizeof(double));
        }
    }
    free_pair(&p);
    free_pair(&q);
}

/* The strategy is that of the first update after it. */
static void belongs_to_one_strategy(void **state)
{
    (void)state;
    ls_strategy *a = replicas(V), *b = replicas(V);
    pair p = make_pair(a, ls_adam(NULL));
    train(a, &p, NULL, 0, 1);
    saved then = save(&p);
    free_pair(&p);
    p = make_pair(b, ls_adam(NULL));
    restore(&p, &then);
    train(b, &p, NULL, 1, 2);
    pair q = make_pair(a, ls_adam(NULL));
    ls_optimizer_free(q.o);
    q.o = p.o;
    LS_FRAME
        assert_null(ls_run_eager(a, apply, &q, ls_leaf(number(1))));
    assert_int_equal(ls_error(), LS_STATE);
    q.o = NULL;
    free_pair(&p);
    free_pair(&q);
    drop(&then);
    ls_strategy_free(a);
    ls_strategy_free(b);
}

/* ---- what is refused -------------------------------------------------------------------------------- */

static void refused(pair *p, ls_value *all, ls_status want, const char *word)
{
    float before[MOST_STATE], after[MOST_STATE];
    const int64_t iterations = ls_iterations(p->o);
    const double rate = ls_rate(p->o);
    int n = state_of(p, before);
    assert_int_equal(ls_optimizer_restore(p->o, 2, p->v, all), want);
    if (ls_error_pending() != want || !strstr(ls_error_text(), word))
        fail_msg("wanted '%s', got %s", word, ls_error_report());
    ls_error();
    assert_int_equal(state_of(p, after), n);
    same_state(after, before, n);
    assert_int_equal(ls_iterations(p->o), iterations);
    assert_true(ls_rate(p->o) == rate);
}

static void other_settings(void **state)
{
    (void)state;
    static const ls_adam_options others[] = {
        { .size = sizeof *others, .weight_decay = 0.5 },
        { .size = sizeof *others, .clip_value = 0.5 },
        { .size = sizeof *others, .clip_norm = 0.5 },
        { .size = sizeof *others, .clip_global_norm = 0.5 },
        { .size = sizeof *others, .lazy = true },
        { .size = sizeof *others, .accumulates = true },
        { .size = sizeof *others, .beta1 = 0.5 },
        { .size = sizeof *others, .beta2 = 0.5 },
        { .size = sizeof *others, .epsilon = 0.5 },
    };
    static const char *const words[] = { "weight_decay", "clip_value", "clip_norm",
                                         "clip_global",  "lazy",       "accumulates",
                                         "beta1",        "beta2",      "epsilon" };
    pair p = make_pair(NULL, ls_adam(NULL));
    LS_FRAME {
        ls_tensor *g[2];
        slopes(0, 0, g);
        assert_int_equal(ls_apply_gradients(p.o, 2, g, p.v), LS_OK);
        for (int i = 0; i < 9; i++) {
            pair q = make_pair(NULL, ls_adam(&others[i]));
            refused(&p, ls_optimizer_save(q.o, 2, q.v), LS_INVALID, words[i]);
            free_pair(&q);
        }
        for (int i = 0; i < 2; i++) {
            pair q = make_pair(NULL, optimizer_number(i));
            refused(&p, ls_optimizer_save(q.o, 2, q.v), LS_INVALID,
                    i ? "is Adam, what was saved is SGD with" : "SGD without momentum");
            free_pair(&q);
        }
        pair q = make_pair(NULL, optimizer_number(2)), r = make_pair(NULL, optimizer_number(1));
        refused(&q, ls_optimizer_save(r.o, 2, r.v), LS_INVALID,
                "clip_value is 0.5, it was saved with 0");
        free_pair(&q);
        free_pair(&r);
    }
    free_pair(&p);
}

/* The dict with this entry another, or without it (NULL). */
static ls_value *changed(const ls_value *all, const char *key, ls_tensor *t)
{
    const char *keys[32];
    ls_value *items[32];
    int n = 0;
    for (int i = 0; i < ls_length(all); i++)
        if (strcmp(ls_key(all, i), key) != 0) {
            keys[n] = ls_key(all, i);
            items[n++] = ls_child(all, i);
        }
    if (t) {
        keys[n] = key;
        items[n++] = ls_leaf(t);
    }
    return ls_dict(n, keys, items);
}

static void other_entries(void **state)
{
    (void)state;
    pair p = make_pair(NULL, summing());
    LS_FRAME {
        ls_tensor *g[2], *zeros = ls_zeros(LS_F32, LS_DIMS(W_COUNT));
        slopes(0, 0, g);
        assert_int_equal(ls_apply_gradients(p.o, 2, g, p.v), LS_OK);
        ls_value *all = ls_optimizer_save(p.o, 2, p.v);
        refused(&p, changed(all, "iterations", NULL), LS_NOT_FOUND, "iterations");
        refused(&p, changed(all, "iterations", ls_scalar_int(LS_I64, -1)), LS_CORRUPT,
                "iterations");
        refused(&p, changed(all, "iterations", ls_scalar_int(LS_I32, 1)), LS_SHAPE, "iterations");
        refused(&p, changed(all, "rate", NULL), LS_NOT_FOUND, "rate");
        refused(&p, changed(all, "rate", ls_scalar(LS_F64, 1)), LS_SHAPE, "rate");
        refused(&p, changed(all, "settings", NULL), LS_NOT_FOUND, "settings");
        refused(&p, changed(all, "settings", ls_zeros(LS_F64, LS_DIMS(12))), LS_INVALID, "SGD");
        refused(&p, changed(all, "settings", ls_full(LS_F64, LS_DIMS(12), 99)), LS_INVALID,
                "not known");
        refused(&p, changed(all, "slots/m/w", g[1]), LS_SHAPE, "slots/m/w");
        ls_tensor *row = ls_from(LS_I64, LS_DIMS(1), (int64_t[]){ 0 });
        ls_tensor *one = ls_ones(LS_F32, LS_DIMS(1));
        refused(&p, changed(all, "slots/m/w", ls_sparse(row, one, W_COUNT)), LS_SHAPE, "slots/m/w");
        refused(&p, changed(all, "slots/m/other", g[0]), LS_NOT_FOUND, "no variable 'other'");
        refused(&p, changed(all, "slots/x/w", g[0]), LS_INVALID, "slots/x/w");
        refused(&p, changed(all, "slots/", g[0]), LS_INVALID, "nothing of an optimizer");
        refused(&p, changed(all, "else", g[0]), LS_INVALID, "nothing of an optimizer");
        refused(&p, changed(all, "sums/1/w", zeros), LS_INVALID, "on 1 replica");
        refused(&p, changed(all, "sums/-1/w", zeros), LS_INVALID, "sums/-1/w");
        refused(&p, changed(all, "sums/0x0/w", zeros), LS_INVALID, "sums/0x0/w");
        refused(&p, changed(all, "sums/99999999999999999999/w", zeros), LS_INVALID, "sums/9");
        refused(&p, changed(all, "sums/0/w", g[1]), LS_SHAPE, "sums/0/w");
        refused(&p, ls_leaf(g[0]), LS_INVALID, "no dict");
        refused(&p, NULL, LS_INVALID, "NULL");
        refused(&p, ls_dict(0, NULL, NULL), LS_NOT_FOUND, "settings");
        assert_int_equal(ls_optimizer_restore(p.o, 1, p.v, all), LS_NOT_FOUND);
        assert_non_null(strstr(ls_error_text(), "no variable 'bias'"));
        ls_error();
        assert_int_equal(ls_optimizer_restore(p.o, 2, p.v, all), LS_OK);
    }
    free_pair(&p);
}

/* Every number of a schedule that cannot be one is refused; the row that reads them believes them. */
static void bad_rates(void **state)
{
    (void)state;
    static const struct {
        int at;
        double number;
    } bad[] = {
        { LS__RATE_KIND, 3 },          { LS__RATE_KIND, -1 },         { LS__RATE_KIND, 0.5 },
        { LS__RATE_KIND, NAN },        { LS__RATE_COUNT, 65 },        { LS__RATE_COUNT, 0 },
        { LS__RATE_COUNT, 1e300 },     { LS__RATE_COUNT, 3 },         { LS__RATE_BOUNDARIES, 2 },
        { LS__RATE_BOUNDARIES, -1 },   { LS__RATE_BOUNDARIES, 0.5 },  { LS__RATE_VALUES, -1 },
        { LS__RATE_VALUES, INFINITY }, { LS__RATE_VALUES + 60, 1 },   { LS__RATE_VALUE, 7 },
        { LS__RATE_OWN, -2 },          { LS__RATE_WARMUP_STEPS, -1 }, { LS__RATE_WARMUP_FROM, -1 },
        { LS__RATE_STEPS, 3 },         { LS__RATE_ALPHA, 0.5 }
    };
    pair p = make_pair(NULL, optimizer_number(7));
    LS_FRAME {
        ls_value *all = ls_optimizer_save(p.o, 2, p.v);
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            double numbers[LS__RATE_NUMBERS];
            assert_int_equal(
                ls_copy_out(ls_leaf_tensor(ls_get(all, "rate")), numbers, sizeof numbers), LS_OK);
            numbers[bad[i].at] = bad[i].number;
            refused(&p, changed(all, "rate", ls_from(LS_F64, LS_DIMS(LS__RATE_NUMBERS), numbers)),
                    LS_CORRUPT, "rate");
        }
    }
    free_pair(&p);
}

static ls_value *save_in_replica(ls_value *arguments, void *user)
{
    pair *p = user;
    ls_optimizer_save(p->o, 2, p->v);
    return arguments;
}

static void wrong_places(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    pair p = make_pair(s, ls_adam(NULL));
    assert_null(ls_optimizer_save(NULL, 0, NULL));
    assert_int_equal(ls_error(), LS_INVALID);
    assert_null(ls_optimizer_save(p.o, -1, p.v));
    assert_int_equal(ls_error(), LS_INVALID);
    assert_null(ls_optimizer_save(p.o, 1, (ls_variable *[]){ NULL }));
    assert_int_equal(ls_error(), LS_INVALID);
    LS_FRAME {
        assert_null(ls_run_eager(s, save_in_replica, &p, none()));
        assert_int_equal(ls_error(), LS_STATE);
        ls_function *f = ls_trace(save_in_replica, &p);
        assert_null(ls_function_call(f, none()));
        assert_int_equal(ls_error(), LS_STATE);
        ls_function_free(f);
    }
    free_pair(&p);
    ls_strategy_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(all_kinds_go_on, clean),
        cmocka_unit_test_setup(parts_wait_on, clean),
        cmocka_unit_test_setup(named_entries, clean),
        cmocka_unit_test_setup(rates_come_back, clean),
        cmocka_unit_test_setup(belongs_to_one_strategy, clean),
        cmocka_unit_test_setup(other_settings, clean),
        cmocka_unit_test_setup(other_entries, clean),
        cmocka_unit_test_setup(bad_rates, clean),
        cmocka_unit_test_setup(wrong_places, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
