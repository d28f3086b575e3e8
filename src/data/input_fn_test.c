/*
 * The iterators of r2.0: functions that are called once a replica and step, waiting for ls_initialize, and
 * what input functions may and may not give.
 */
#include "data/distribute_test_support.h"

/* Counts from `next` up to `end`. */
typedef struct counter {
    int64_t next, end;
    int fails_at; /* a call; 0: none */
    int calls;
    ls_value *(*make)(int64_t number);
} counter;

static ls_value *row(int64_t number)
{
    return ls_leaf(ls_from(LS_I64, LS_DIMS(1), &number));
}

static ls_value *scalar(int64_t number)
{
    return ls_leaf(ls_scalar_int(LS_I64, number));
}

static ls_status count(void *state, ls_value **out)
{
    counter *c = state;
    if (++c->calls == c->fails_at)
        return ls_sum(NULL, LS_ALL_AXES, false) ? LS_OK : ls_error_pending();
    if (c->next == c->end)
        return LS_END;
    *out = c->make(c->next++);
    return *out ? LS_OK : ls_error_pending();
}

typedef struct source {
    counter *counters; /* of each pipeline; NULL: datasets */
    int asked;
} source;

static ls_status give(const ls_input_context *c, void *user, ls_input_source *out)
{
    source *s = user;
    assert_int_equal(c->input_pipeline_id, s->asked++);
    if (!s->counters)
        out->dataset = ls_batch(ls_range(0, 5 + c->input_pipeline_id, 1), 2);
    else {
        out->next = count;
        out->state = &s->counters[c->input_pipeline_id];
    }
    return LS_OK;
}

static ls_iterator *iterator_of(ls_strategy *s, source *from)
{
    ls_iterator *it = ls_make_input_fn_iterator(s, give, from, LS_INPUT_PER_WORKER);
    ls_value *step = NULL;
    assert_non_null(it);
    assert_int_equal(ls_next(it, &step), LS_STATE);
    assert_non_null(strstr(ls_error_hint(), "ls_initialize"));
    failed(LS_STATE);
    assert_int_equal(ls_initialize(it), LS_OK);
    return it;
}

static void functions_are_called_once_a_replica_and_step(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(2, 2, false);
    LS_FRAME {
        char text[MOST_TEXT];
        counter counters[2] = { { .next = 0, .end = 5, .make = scalar },
                                { .next = 10, .end = 100, .make = scalar } };
        ls_iterator *it = iterator_of(s, &(source){ counters, 0 });
        /* the end of one is the end of all */
        assert_string_equal(rest_of(it, 4, text), "[0 | 1 | 10 | 11][2 | 3 | 12 | 13]");
        assert_int_equal(counters[0].calls, 6);
        ls_value *step = NULL;
        assert_int_equal(ls_next(it, &step), LS_END); /* and nobody is called again */
        assert_int_equal(counters[0].calls, 6);
        assert_null(ls_position(it));
        failed(LS_UNSUPPORTED);
        counters[0].next = 20; /* they go on where they are */
        counters[0].end = 22;
        assert_int_equal(ls_initialize(it), LS_OK);
        assert_int_equal(ls_next(it, &step), LS_OK);
        text[0] = '\0';
        put_step(text, step, 4);
        assert_memory_equal(text, "20 | 21 | ", 10);
        ls_iterator_free(it);
    }
    free_strategy(s);
}

static void functions_that_fail(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(1, 2, false);
    LS_FRAME {
        char text[MOST_TEXT];
        counter c = { .end = 5, .make = row, .fails_at = 4 };
        ls_iterator *it = iterator_of(s, &(source){ &c, 0 });
        ls_value *step = NULL;
        assert_int_equal(ls_next(it, &step), LS_OK);
        assert_int_equal(ls_next(it, &step), LS_INVALID);
        assert_non_null(strstr(ls_error_text(), "ls_make_input_fn_iterator"));
        failed(LS_INVALID);
        assert_string_equal(rest_of(it, 2, text), "[2 | 3]"); /* 2 was not lost */
        ls_iterator_free(it);
    }
    free_strategy(s);
}

static ls_value *changes(int64_t number)
{
    return number < 2 ? row(number) : ls_list(1, (ls_value *[]){ row(number) });
}

static ls_status gives_nothing(void *state, ls_value **out)
{
    (void)state, (void)out;
    return LS_OK;
}

static ls_status gives_null(const ls_input_context *c, void *user, ls_input_source *out)
{
    (void)c, (void)user;
    out->next = gives_nothing;
    return LS_OK;
}

static void functions_that_give_something_else(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(1, 1, false);
    LS_FRAME {
        counter c = { .end = 5, .make = changes };
        ls_iterator *it = iterator_of(s, &(source){ &c, 0 });
        ls_value *step = NULL;
        assert_int_equal(ls_next(it, &step), LS_OK);
        assert_int_equal(ls_next(it, &step), LS_OK);
        assert_int_equal(ls_next(it, &step), LS_INVALID);
        failed(LS_INVALID);
        ls_iterator_free(it);
        it = ls_make_input_fn_iterator(s, gives_null, NULL, LS_INPUT_PER_WORKER);
        assert_int_equal(ls_initialize(it), LS_OK);
        assert_int_equal(ls_next(it, &step), LS_INVALID);
        failed(LS_INVALID);
        ls_iterator_free(it);
    }
    free_strategy(s);
}

static void datasets_of_input_functions(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(2, 1, false);
    LS_FRAME {
        char text[MOST_TEXT];
        ls_iterator *it = iterator_of(s, &(source){ NULL, 0 });
        const char *all = "[0 1 | 0 1][2 3 | 2 3][4 | 4 5]";
        assert_string_equal(rest_of(it, 2, text), all);
        assert_int_equal(ls_initialize(it), LS_OK); /* from the beginning */
        ls_value *step = NULL;
        assert_int_equal(ls_next(it, &step), LS_OK);
        ls_tensor *position = ls_position(it);
        ls_iterator *other =
            ls_make_input_fn_iterator(s, give, &(source){ NULL, 0 }, LS_INPUT_PER_WORKER);
        assert_int_equal(ls_seek(other, position), LS_OK); /* begins, too */
        assert_string_equal(rest_of(other, 2, text), all + 11);
        ls_iterator_free(it);
        ls_iterator_free(other);
    }
    free_strategy(s);
}

static ls_status gives_neither(const ls_input_context *c, void *user, ls_input_source *out)
{
    (void)c, (void)user, (void)out;
    return LS_OK;
}

static ls_status gives_both(const ls_input_context *c, void *user, ls_input_source *out)
{
    (void)c, (void)user;
    out->dataset = ls_range(0, 3, 1);
    out->next = count;
    return LS_OK;
}

static ls_status refuses(const ls_input_context *c, void *user, ls_input_source *out)
{
    (void)c, (void)user, (void)out;
    return LS_NOT_FOUND;
}

static void input_functions_that_fail(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(1, 2, false);
    LS_FRAME {
        source from = { NULL, 0 };
        assert_null(ls_make_input_fn_iterator(s, give, &from, (ls_input_replication)1));
        failed(LS_INVALID);
        assert_int_equal(from.asked, 0);
        assert_null(ls_make_input_fn_iterator(s, NULL, NULL, LS_INPUT_PER_WORKER));
        failed(LS_INVALID);
        assert_null(ls_make_input_fn_iterator(s, gives_neither, NULL, LS_INPUT_PER_WORKER));
        assert_non_null(strstr(ls_error_text(), "pipeline 0"));
        failed(LS_INVALID);
        assert_null(ls_make_input_fn_iterator(s, gives_both, NULL, LS_INPUT_PER_WORKER));
        failed(LS_INVALID);
        assert_null(ls_make_input_fn_iterator(s, refuses, NULL, LS_INPUT_PER_WORKER));
        failed(LS_NOT_FOUND);
        assert_int_equal(ls_initialize(NULL), LS_INVALID);
        failed(LS_INVALID);
        assert_null(ls_make_numpy_dataset(s, NULL));
        failed(LS_INVALID);
        assert_null(ls_make_numpy_dataset(s, ls_leaf(ls_scalar_int(LS_I64, 1))));
        assert_non_null(strstr(ls_error_text(), "ls_make_numpy_dataset"));
        failed(LS_SHAPE);
    }
    free_strategy(s);
}

/* Other iterators can be begun anew by it, too. */
static void initialize_begins_anew(void **state)
{
    (void)state;
    LS_FRAME {
        ls_iterator *it = ls_iterate(ls_range(0, 3, 1));
        for (int i = 0; i < 2; i++) {
            ls_value *x = NULL;
            assert_int_equal(ls_next(it, &x), LS_OK);
            assert_int_equal(ls_to_int(ls_leaf_tensor(x)), 0);
            assert_int_equal(ls_initialize(it), LS_OK);
        }
        ls_iterator_free(it);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(functions_are_called_once_a_replica_and_step, clean),
        cmocka_unit_test_setup(functions_that_fail, clean),
        cmocka_unit_test_setup(functions_that_give_something_else, clean),
        cmocka_unit_test_setup(datasets_of_input_functions, clean),
        cmocka_unit_test_setup(input_functions_that_fail, clean),
        cmocka_unit_test_setup(initialize_begins_anew, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
