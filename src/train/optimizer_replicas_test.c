/*
 * Optimizers in steps of several replicas: gradients are added up in the order of the tree, and
 * every variable, slot and counter moves once a step; eager and traced.
 */
#include <math.h>
#include <stdio.h>

#include "strategy/variable_test_support.h"

enum { V = 5, N = 37 };

typedef struct model {
    ls_variable *w, *table;
    ls_optimizer *o;
    int bad; /* the replica that fails; -1: none */
} model;

static model make(ls_strategy *s, ls_optimizer *o)
{
    model m = { .o = o, .bad = -1 };
    float start[N];
    for (int i = 0; i < N; i++)
        start[i] = cosf((float)i);
    LS_FRAME
        LS_SCOPE (s) {
            m.w = ls_variable_new("w", ls_from(LS_F32, LS_DIMS(N), start), true);
            m.table = ls_variable_new("table", ls_ones(LS_F32, LS_DIMS(6, 2)), true);
        }
    assert_non_null(m.w);
    assert_non_null(m.table);
    return m;
}

static void free_all(model *m)
{
    ls_variable_free(m->w);
    ls_variable_free(m->table);
    ls_optimizer_free(m->o);
}

/* A gradient with which the order of a sum shows. */
static float slope(int replica, int i)
{
    return sinf(0.7f * (float)replica + (float)i) * powf(10, (float)((i + replica) % 5 - 2));
}

static ls_tensor *slopes(int replica)
{
    float g[N];
    for (int i = 0; i < N; i++)
        g[i] = slope(replica, i);
    return ls_from(LS_F32, LS_DIMS(N), g);
}

/* ((0+1)+(2+3))+4. */
static float tree_sum(int i)
{
    float a = slope(0, i) + slope(1, i), b = slope(2, i) + slope(3, i);
    return (a + b) + slope(4, i);
}

static ls_value *apply_slopes(ls_value *arguments, void *user)
{
    (void)arguments;
    model *m = user;
    ls_tensor *g = my_id() == m->bad ? ls_zeros(LS_F32, LS_DIMS(1)) : slopes(my_id());
    ls_apply_gradients(m->o, 1, &g, &m->w);
    return none();
}

static void same_bits(const ls_variable *v, const float *want)
{
    const float *got = ls__cell_data(v->cells[0]);
    for (int i = 0; i < N; i++)
        if (memcmp(&got[i], &want[i], sizeof(float)) != 0)
            fail_msg("element %d is %a, not %a", i, (double)got[i], (double)want[i]);
}

/* What the update does to one replica's variable, given the sum. */
static void expect(ls_optimizer *o, int steps, float *out)
{
    LS_FRAME {
        float g[N], start[N];
        for (int i = 0; i < N; i++) {
            g[i] = tree_sum(i);
            start[i] = cosf((float)i);
        }
        ls_variable *alone = ls_variable_new("w", ls_from(LS_F32, LS_DIMS(N), start), true);
        ls_tensor *sum = ls_from(LS_F32, LS_DIMS(N), g);
        for (int k = 0; k < steps; k++)
            assert_int_equal(ls_apply_gradients(o, 1, &sum, &alone), LS_OK);
        assert_int_equal(ls_copy_out(ls_read(alone), out, N * sizeof *out), LS_OK);
        ls_variable_free(alone);
    }
    ls_optimizer_free(o);
}

static void gradients_add_up_in_the_order_of_the_tree(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    for (int k = 0; k < 2; k++) {
        float want[N];
        expect(k ? ls_adam(NULL) : ls_sgd(LS_SGD(.rate = 0.1)), 3, want);
        model m = make(s, k ? ls_adam(NULL) : ls_sgd(LS_SGD(.rate = 0.1)));
        ls_function *f = ls_trace(apply_slopes, &m);
        for (int step = 0; step < 3; step++)
            LS_FRAME
                assert_non_null(traced ? ls_run(s, f, none()) : runs(s, apply_slopes, &m));
        assert_int_equal(ls_function_traces(f) > 0, traced);
        ls_function_free(f);
        same_bits(m.w, want);
        assert_int_equal(ls_iterations(m.o), 3); /* not 15 */
        free_all(&m);
    }
    ls_strategy_free(s);
}

static void a_step_that_fails_did_not_happen(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    float want[N];
    expect(ls_adam(NULL), 2, want);
    model m = make(s, ls_adam(NULL));
    LS_FRAME {
        runs(s, apply_slopes, &m);
        m.bad = 3;
        assert_null(run(s, apply_slopes, &m));
        said(LS_SHAPE, "replica 3: ", "variable 'w' is f32[37], its gradient f32[1]");
        assert_int_equal(ls_iterations(m.o), 1);
        m.bad = -1;
        runs(s, apply_slopes, &m);
        same_bits(m.w, want);
    }
    free_all(&m);
    ls_strategy_free(s);
}

/* Each replica looks up rows of its own: its gradient of the table is sparse. */
static ls_value *minimize_rows(ls_value *arguments, void *user)
{
    (void)arguments;
    model *m = user;
    int32_t ids[] = { my_id(), 1, 1 };
    ls_tape *tape = ls_tape_open();
    ls_tensor *x = ls_embedding(ls_read(m->table), ls_from(LS_I32, LS_DIMS(3), ids));
    ls_tensor *loss = ls_sum(x, LS_ALL_AXES, false);
    ls_variable *both[] = { m->w, m->table };
    ls_minimize(m->o, tape, loss, 2, both);
    return ls_leaf(loss);
}

static void sparse_gradients_of_all_replicas(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    model m = make(s, ls_sgd(LS_SGD(.rate = 0.5)));
    LS_FRAME {
        ls_value *losses = runs(s, minimize_rows, &m);
        assert_int_equal(ls_spread_of(losses), LS_SPREAD_PER_REPLICA);
        holds(ls_leaf_tensor(ls_select(losses, 4)), 6);
        const float *got = ls__cell_data(m.table->cells[0]);
        const int times[6] = { 1, 11, 1, 1, 1, 0 };
        for (int i = 0; i < 12; i++)
            assert_true(got[i] == 1 - 0.5f * (float)times[i / 2]);
        assert_int_equal(ls_iterations(m.o), 1);
    }
    free_all(&m);
    ls_strategy_free(s);
}

/* ---- what is refused -------------------------------------------------------------------------- */

typedef struct job {
    ls_optimizer *o[2];
    ls_variable *v[2]; /* of even and odd replicas */
    bool no_loss;
} job;

static ls_value *minimize_one(ls_value *arguments, void *user)
{
    (void)arguments;
    job *j = user;
    int odd = my_id() % 2;
    ls_tape *tape = ls_tape_open();
    ls_tensor *loss = j->no_loss && odd ? number(1) : ls_square(ls_read(j->v[odd]));
    ls_minimize(j->o[odd], tape, loss, 1, &j->v[odd]);
    return none();
}

static ls_variable *scalar_of(ls_strategy *s, const ls_variable_options *options, const char *name)
{
    ls_variable *v = NULL;
    LS_SCOPE (s)
        v = ls_variable_with(options, name, number(1));
    assert_non_null(v);
    return v;
}

static void refused(ls_strategy *s, job *j, ls_status want, const char *part, const char *other)
{
    assert_null(run(s, minimize_one, j));
    said(want, part, other);
}

static void what_replicas_cannot_train(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2), *two = replicas(2);
    LS_FRAME {
        ls_optimizer *o = ls_sgd(NULL), *o2 = ls_sgd(NULL);
        ls_variable *w = scalar_of(s, NULL, "w"), *u = scalar_of(s, NULL, "u");
        ls_variable *plain = ls_variable_new("p", number(1), true);
        ls_variable *foreign = scalar_of(two, NULL, "f");
        ls_variable *local = scalar_of(s, LS_VARIABLE(.local_writes = true), "l");
        refused(s, &(job){ { o, o }, { plain, plain }, false }, LS_STATE,
                "replica 0 of 2 updates variable 'p', which belongs to no strategy", "LS_SCOPE");
        refused(s, &(job){ { o, o }, { foreign, foreign }, false }, LS_STATE,
                "mixing strategies: variable 'f'", NULL);
        refused(s, &(job){ { o, o }, { local, local }, false }, LS_UNSUPPORTED,
                "every replica has its own copy of variable 'l' (.local_writes)", "ON_WRITE");
        refused(s, &(job){ { o, o }, { w, w }, true }, LS_INVALID,
                "the loss depends on none of the 1 trainable variables", "replica 1");
        refused(s, &(job){ { o, o }, { w, u }, false }, LS_INVALID, "ls_minimize", "variable");
        assert_null(run(s, minimize_one, &(job){ { o, o2 }, { w, w }, false }));
        int first = 0, second = 0;
        const char *of = strstr(ls_error_text(), "replica 0 came to");
        assert_non_null(of);
        assert_int_equal(sscanf(of,
                                "replica 0 came to ls_minimize of optimizer %d (ls_sgd); "
                                "replica 1 came to ls_minimize of optimizer %d (ls_sgd)",
                                &first, &second),
                         2);
        assert_true(first > 0 && first < 100 && second == first + 1); /* counted by themselves */
        said(LS_STATE, "replicas did not meet", NULL);
        assert_true(copy_of(w, 0) == 1 && copy_of(u, 0) == 1);
        assert_int_equal(ls_iterations(o), 0);
        runs(s, minimize_one, &(job){ { o, o }, { w, w }, false });
        assert_true(copy_of(w, 0) == 1 - 0.01f * 4);
        ls_variable_free(w);
        ls_variable_free(u);
        ls_variable_free(plain);
        ls_variable_free(foreign);
        ls_variable_free(local);
        ls_optimizer_free(o);
        ls_optimizer_free(o2);
    }
    ls_strategy_free(s);
    ls_strategy_free(two);
}

static ls_value *set_rate(ls_value *arguments, void *user)
{
    (void)arguments;
    ls_set_rate(user, 0.5);
    return none();
}

static ls_value *set_rate_once(ls_strategy *s, ls_value *arguments, void *user)
{
    (void)s;
    return set_rate(arguments, user);
}

static ls_value *meet_to_set_rate(ls_value *arguments, void *user)
{
    return ls_merge_call(ls_get_replica_context(), set_rate_once, user, arguments);
}

static void the_rate_is_set_for_all_replicas_or_by_none(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2), *alone = replicas(1);
    LS_FRAME {
        ls_optimizer *o = ls_sgd(LS_SGD(.rate = 0.1));
        for (int twice = 0; twice < 2; twice++) {
            assert_null(run(s, set_rate, o));
            said(LS_STATE, "ls_set_rate: called by replica 0 of 2, for all of them",
                 "set it between steps, or in a merge function");
            assert_true(ls_rate(o) == 0.1);
        }
        runs(s, meet_to_set_rate, o);
        assert_true(ls_rate(o) == 0.5);
        assert_int_equal(ls_set_rate(o, 0.1), LS_OK);
        runs(alone, set_rate, o);
        assert_true(ls_rate(o) == 0.5);
        ls_optimizer_free(o);
    }
    ls_strategy_free(s);
    ls_strategy_free(alone);
}

static void a_gradient_that_all_share_counts_for_each(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    LS_FRAME {
        ls_optimizer *o = ls_sgd(LS_SGD(.rate = 1));
        ls_variable *w = scalar_of(s, NULL, "w");
        job j = { .o = { o, o }, .v = { w, w } };
        runs(s, minimize_one, &j); /* 5 times 2 w, where w is 1 */
        assert_true(copy_of(w, 0) == -9);
        /* In cross-replica context there is one gradient. */
        ls_tensor *g = number(1);
        LS_SCOPE (s)
            assert_int_equal(ls_apply_gradients(o, 1, &g, &w), LS_OK);
        assert_true(copy_of(w, 0) == -10);
        ls_variable_free(w);
        ls_optimizer_free(o);
    }
    ls_strategy_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(gradients_add_up_in_the_order_of_the_tree),
        BOTH(a_step_that_fails_did_not_happen),
        BOTH(sparse_gradients_of_all_replicas),
        BOTH(what_replicas_cannot_train),
        BOTH(a_gradient_that_all_share_counts_for_each),
        BOTH(the_rate_is_set_for_all_replicas_or_by_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
