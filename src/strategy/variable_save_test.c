/*
 * Saving variables to a dict and restoring them: the same bits on as many replicas, the combined
 * value on others; and that a restore which is refused has written nothing.
 */
#include "strategy/variable_test_support.h"

/* The variables of a small program: one of each kind. */
typedef struct model {
    ls_variable *all[4]; /* w, sum, none, local */
} model;

enum { W, SUM, NONE, LOCAL, COUNT };

static model make(ls_strategy *s, double x)
{
    model m = { { NULL } };
    LS_FRAME
        LS_SCOPE (s) {
            ls_tensor *t = number(x);
            m.all[W] = ls_variable_new("w", t, true);
            m.all[SUM] = ls_variable_with(
                LS_VARIABLE(.synchronization = LS_SYNC_ON_READ, .aggregation = LS_AGGREGATE_SUM),
                "sum", t);
            m.all[NONE] =
                ls_variable_with(LS_VARIABLE(.synchronization = LS_SYNC_ON_READ), "none", t);
            m.all[LOCAL] = ls_variable_with(LS_VARIABLE(.local_writes = true), "local", t);
        }
    for (int i = 0; i < COUNT; i++)
        assert_non_null(m.all[i]);
    return m;
}

static void free_all(model *m)
{
    for (int i = 0; i < COUNT; i++)
        ls_variable_free(m->all[i]);
}

/* Copy i of each variable of copies: 10, 11, 12... and so on. */
static void part_copies(model *m)
{
    for (int k = SUM; k < COUNT; k++)
        for (int i = 0; i < ls_variable_components(m->all[k]); i++)
            assert_int_equal(ls_assign(ls_variable_component(m->all[k], i), number(10 * k + i)),
                             LS_OK);
}

static void a_dict_of_names(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    model m = make(s, 5);
    LS_FRAME {
        part_copies(&m);
        ls_value *saved = ls_variables_save(COUNT, m.all);
        const char *const keys[] = { "local/replica_0",
                                     "local/replica_1",
                                     "none/replica_0",
                                     "none/replica_1",
                                     "sum",
                                     "sum/replica_0",
                                     "sum/replica_1",
                                     "w" };
        const double values[] = { 30, 31, 20, 21, 21, 10, 11, 5 };
        assert_int_equal(ls_length(saved), 8);
        for (int i = 0; i < 8; i++) {
            assert_string_equal(ls_key(saved, i), keys[i]);
            holds(ls_item(saved, i), values[i]);
        }
        assert_int_equal(ls_assign(m.all[W], number(6)), LS_OK);
        holds(ls_leaf_tensor(ls_get(saved, "w")), 5); /* snapshots */
        assert_int_equal(ls_length(ls_variables_save(0, NULL)), 0);
    }
    free_all(&m);
    ls_strategy_free(s);
}

static void the_same_copies_on_as_many_replicas(void **state)
{
    (void)state;
    ls_strategy *s = replicas(3);
    model m = make(s, 5), other = make(s, 0);
    LS_FRAME {
        part_copies(&m);
        assert_int_equal(ls_variables_restore(COUNT, other.all, ls_variables_save(COUNT, m.all)),
                         LS_OK);
        for (int i = 0; i < 3; i++)
            for (int k = 0; k < COUNT; k++)
                assert_true(copy_of(m.all[k], i) == copy_of(other.all[k], i));
        assert_true(copy_of(other.all[LOCAL], 2) == 32);
        /* Into themselves, after they changed. */
        ls_value *saved = ls_variables_save(COUNT, m.all);
        for (int k = 0; k < COUNT; k++)
            assert_int_equal(ls_assign(m.all[k], number(99)), LS_OK);
        assert_int_equal(ls_variables_restore(COUNT, m.all, saved), LS_OK);
        assert_true(copy_of(m.all[SUM], 1) == 11 && copy_of(m.all[W], 0) == 5);
    }
    free_all(&m);
    free_all(&other);
    ls_strategy_free(s);
}

static void the_combined_value_on_others(void **state)
{
    (void)state;
    ls_strategy *three = replicas(3), *two = replicas(2);
    model m = make(three, 5), other = make(two, 0);
    LS_FRAME {
        part_copies(&m); /* sum: 10 + 11 + 12 */
        ls_value *saved = ls_variables_save(COUNT, m.all);
        assert_int_equal(ls_variables_restore(2, other.all, saved), LS_OK); /* w, sum */
        holds(ls_read(other.all[W]), 5);
        assert_true(copy_of(other.all[SUM], 0) == 16.5f && copy_of(other.all[SUM], 1) == 16.5f);
        assert_int_equal(ls_variables_restore(COUNT, other.all, saved), LS_NOT_FOUND);
        said(LS_NOT_FOUND, "no 'none', and the copies of it are not of 2 replicas",
             "as many replicas");
        /* From fewer to more, too. */
        saved = ls_variables_save(COUNT, other.all);
        assert_int_equal(ls_variables_restore(2, m.all, saved), LS_OK);
        assert_true(copy_of(m.all[SUM], 2) == 11);
        /* A variable of no strategy, from one of a strategy. */
        ls_variable *plain = ls_variable_new("sum", number(0), true);
        assert_int_equal(ls_variables_restore(1, &plain, saved), LS_OK);
        holds(ls_read(plain), 33);
        ls_variable_free(plain);
    }
    free_all(&m);
    free_all(&other);
    ls_strategy_free(three);
    ls_strategy_free(two);
}

static void a_count_is_whole_on_other_replicas(void **state)
{
    (void)state;
    ls_strategy *two = replicas(2), *three = replicas(3);
    LS_FRAME {
        ls_strategy *s[] = { two, three };
        ls_variable *n[2];
        for (int i = 0; i < 2; i++)
            LS_SCOPE (s[i])
                n[i] = ls_variable_with(LS_VARIABLE(.synchronization = LS_SYNC_ON_READ,
                                                    .aggregation = LS_AGGREGATE_SUM),
                                        "n", ls_scalar_int(LS_I64, 0));
        assert_int_equal(ls_assign(n[0], ls_scalar_int(LS_I64, 11)), LS_OK);
        assert_int_equal(ls_variables_restore(1, &n[1], ls_variables_save(1, &n[0])), LS_OK);
        holds(ls_read(n[1]), 11);
        for (int k = 0; k < 3; k++)
            holds(ls_read(ls_variable_component(n[1], k)), k ? 3 : 5);
        ls_variable_free(n[0]);
        ls_variable_free(n[1]);
    }
    ls_strategy_free(two);
    ls_strategy_free(three);
}

static void all_or_nothing(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    model m = make(s, 5);
    LS_FRAME {
        ls_value *wide[] = { ls_leaf(number(1)), ls_leaf(ls_zeros(LS_F32, LS_DIMS(2))),
                             ls_leaf(number(1)) };
        const char *keys[] = { "w", "sum", "other" };
        assert_int_equal(ls_variables_restore(2, m.all, ls_dict(3, keys, wide)), LS_SHAPE);
        said(LS_SHAPE, "variable 'sum' is f32[], and 'sum' was saved as f32[2]", NULL);
        assert_int_equal(ls_variables_restore(2, m.all, ls_dict(1, keys, wide)), LS_NOT_FOUND);
        said(LS_NOT_FOUND, "ls_variables_restore: no 'sum'", "names");
        wide[1] = ls_list(0, NULL);
        assert_int_equal(ls_variables_restore(2, m.all, ls_dict(3, keys, wide)), LS_SHAPE);
        said(LS_SHAPE, "'sum' is no tensor but a nest", NULL);
        ls_tensor *row = ls_from(LS_I64, LS_DIMS(1), (int64_t[]){ 3 });
        ls_variable *table = ls_variable_new("sum", ls_zeros(LS_F32, LS_DIMS(4, 2)), true);
        wide[1] = ls_leaf(ls_sparse(row, ls_ones(LS_F32, LS_DIMS(1, 2)), 4));
        assert_int_equal(ls_variables_restore(1, &table, ls_dict(3, keys, wide)), LS_SHAPE);
        said(LS_SHAPE, "'sum' is no dense tensor of numbers", NULL);
        ls_variable_free(table);
        holds(ls_read(m.all[W]), 5); /* w would have fitted */
        wide[1] = ls_leaf(number(8));
        assert_int_equal(ls_variables_restore(2, m.all, ls_dict(3, keys, wide)), LS_OK);
        holds(ls_read(m.all[W]), 1);
        holds(ls_read(m.all[SUM]), 8);
    }
    free_all(&m);
    ls_strategy_free(s);
}

static ls_value *save_inside(ls_value *arguments, void *user)
{
    (void)arguments;
    model *m = user;
    return ls_variables_save(COUNT, m->all);
}

static void bad_calls(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    model m = make(s, 5);
    LS_FRAME {
        ls_variable *twice[] = { m.all[W], m.all[W] };
        assert_null(ls_variables_save(2, twice));
        said(LS_INVALID, "two variables under the name 'w'", "a name of its own");
        twice[1] = NULL;
        assert_null(ls_variables_save(2, twice));
        said(LS_INVALID, "ls_variables_save: the variable is NULL", NULL);
        twice[1] = ls_variable_component(m.all[W], 1);
        assert_null(ls_variables_save(2, twice));
        said(LS_INVALID, "'w/replica_1' is a component of variable 'w'", "ls_value_container");
        assert_null(ls_variables_save(1, NULL));
        said(LS_INVALID, "1 variables in NULL", NULL);
        assert_int_equal(ls_variables_restore(1, m.all, NULL), LS_INVALID);
        said(LS_INVALID, "`saved` is NULL", "ls_variables_save");
        assert_int_equal(ls_variables_restore(1, m.all, none()), LS_INVALID);
        said(LS_INVALID, "`saved` is no dict", NULL);
        assert_null(ls_run_eager(s, save_inside, &m, none()));
        said(LS_STATE, "ls_variables_save: called by a replica of a run", "between runs");
        ls_function *f = ls_trace(save_inside, &m);
        assert_null(ls_function_call(f, none()));
        said(LS_STATE, "ls_variables_save: called while a step is traced", NULL);
        ls_function_free(f);
        ls_value *saved = ls_variables_save(COUNT, m.all);
        ls_strategy_free(s); /* they may still be read, and so be saved */
        assert_int_equal(ls_length(ls_variables_save(COUNT, m.all)), 8);
        assert_int_equal(ls_variables_restore(1, m.all, saved), LS_STATE);
        said(LS_STATE, "ls_variables_restore: the strategy of variable 'w' was freed", NULL);
    }
    free_all(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_dict_of_names, clean),
        cmocka_unit_test_setup(the_same_copies_on_as_many_replicas, clean),
        cmocka_unit_test_setup(the_combined_value_on_others, clean),
        cmocka_unit_test_setup(a_count_is_whole_on_other_replicas, clean),
        cmocka_unit_test_setup(all_or_nothing, clean),
        cmocka_unit_test_setup(bad_calls, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
