/*
 * Gradient accumulation: parts add up per replica in step order and are reduced once; a step
 * that fails leaves the sums as they were; eager and traced; what is refused.
 */
#include "train/optimizer.h"
#include "train/optimizer_test_support.h"

enum { V = 3, PARTS = 3 };

static ls_optimizer *summing(ls_optimizer *o)
{
    o->accumulates = true;
    return o;
}

static ls_value *add_part(ls_value *arguments, void *user)
{
    (void)arguments;
    pair *p = user;
    ls_tensor *g[2];
    slopes(my_id(), p->part, g);
    ls_accumulate_gradients(p->o, 2, g, p->v);
    if (my_id() == p->bad)
        ls_add(ls_zeros(LS_F32, LS_DIMS(2)), ls_zeros(LS_F32, LS_DIMS(3)));
    return none();
}

static ls_value *last_part(ls_value *arguments, void *user)
{
    (void)arguments;
    pair *p = user;
    ls_tensor *g[2];
    slopes(my_id(), p->part, g);
    if (my_id() == p->bad)
        g[0] = g[1];
    ls_apply_gradients(p->o, 2, g, p->v);
    return none();
}

/* All parts of a replica, then replicas in the order of the tree. */
static float whole(int i, int parts)
{
    float of[V];
    for (int r = 0; r < V; r++) {
        of[r] = 0;
        for (int k = 0; k < parts; k++)
            of[r] += slope(r, k, i);
    }
    return (of[0] + of[1]) + of[2];
}

static void expect(int optimizer, int updates, int parts, float *out)
{
    pair p = make_pair(NULL, optimizer_number(optimizer));
    float sum[FLAT];
    for (int i = 0; i < FLAT; i++)
        sum[i] = whole(i, parts);
    for (int k = 0; k < updates; k++)
        LS_FRAME {
            ls_tensor *g[] = { ls_from(LS_F32, LS_DIMS(W_COUNT), sum),
                               ls_from(LS_F32, LS_DIMS(B_COUNT), sum + W_COUNT) };
            assert_int_equal(ls_apply_gradients(p.o, 2, g, p.v), LS_OK);
        }
    state_of(&p, out);
    free_pair(&p);
}

/* A step that is called as it is set: traced once per part, or eager. */
static void do_part(ls_strategy *s, pair *p, int part, bool last)
{
    p->part = part;
    LS_FRAME
        runs(s, last ? last_part : add_part, p);
}

static void parts_are_reduced_once(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    for (int o = 0; o < OPTIMIZERS; o++) {
        float want[MOST_STATE], got[MOST_STATE], start[MOST_STATE];
        expect(o, 2, PARTS, want);
        pair p = make_pair(s, summing(optimizer_number(o)));
        int n = state_of(&p, start);
        for (int update = 0; update < 2; update++)
            for (int part = 0; part < PARTS; part++) {
                do_part(s, &p, part, part == PARTS - 1);
                if (update == 0 && part < PARTS - 1) {
                    state_of(&p, got);
                    same_state(got, start, n); /* nothing moved yet */
                    assert_int_equal(ls_iterations(p.o), 0);
                }
            }
        assert_int_equal(ls_iterations(p.o), 2);
        state_of(&p, got);
        same_state(got, want, n);
        free_pair(&p);
    }
    ls_strategy_free(s);
}

/* One traced function for the parts and one for the update, replayed. */
static ls_value *add_given(ls_value *arguments, void *user)
{
    pair *p = user;
    ls_tensor *g[2];
    slopes(my_id(), 0, g);
    ls_tensor *scale = ls_leaf_tensor(arguments);
    for (int i = 0; i < 2; i++)
        g[i] = ls_mul(g[i], scale);
    ls_accumulate_gradients(p->o, 2, g, p->v);
    return none();
}

static ls_value *apply_given(ls_value *arguments, void *user)
{
    pair *p = user;
    ls_tensor *g[2];
    slopes(my_id(), 0, g);
    ls_tensor *scale = ls_leaf_tensor(arguments);
    for (int i = 0; i < 2; i++)
        g[i] = ls_mul(g[i], scale);
    ls_apply_gradients(p->o, 2, g, p->v);
    return none();
}

static void replays(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    float ends[2][MOST_STATE];
    int n = 0;
    for (int way = 0; way < 2; way++) {
        pair p = make_pair(s, summing(optimizer_number(4)));
        ls_function *add = ls_trace(add_given, &p), *apply = ls_trace(apply_given, &p);
        for (int k = 0; k < 9; k++)
            LS_FRAME {
                bool last = k % 3 == 2;
                ls_value *scale = ls_leaf(number(1.0 / (1 + k)));
                ls_value *done = way ? ls_run(s, last ? apply : add, scale)
                                     : ls_run_eager(s, last ? apply_given : add_given, &p, scale);
                if (!done)
                    fail_msg("%s", ls_error_report());
            }
        if (way)
            assert_true(ls_function_traces(add) == 1 && ls_function_traces(apply) == 1);
        assert_int_equal(ls_iterations(p.o), 3);
        n = state_of(&p, ends[way]);
        ls_function_free(add);
        ls_function_free(apply);
        free_pair(&p);
    }
    same_state(ends[1], ends[0], n);
    ls_strategy_free(s);
}

static void a_step_that_fails_did_not_happen(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    float want[MOST_STATE], got[MOST_STATE];
    expect(4, 1, PARTS, want);
    pair p = make_pair(s, summing(optimizer_number(4)));
    do_part(s, &p, 0, false);
    p.bad = 1; /* after its part was added */
    p.part = 1;
    LS_FRAME {
        assert_null(run(s, add_part, &p));
        said(LS_SHAPE, "replica 1", NULL);
    }
    p.bad = -1;
    do_part(s, &p, 1, false);
    p.bad = 2; /* after others have taken their sums */
    p.part = 2;
    LS_FRAME {
        assert_null(run(s, last_part, &p));
        said(LS_SHAPE, "replica 2", "its gradient");
    }
    assert_int_equal(ls_iterations(p.o), 0);
    p.bad = -1;
    do_part(s, &p, 2, true);
    int n = state_of(&p, got);
    same_state(got, want, n);
    free_pair(&p);
    ls_strategy_free(s);
}

/* Outside of any run nobody undoes but the optimizer itself. */
static void alone(void **state)
{
    (void)state;
    pair p = make_pair(NULL, ls_sgd(LS_SGD(.rate = 1, .accumulates = true)));
    LS_FRAME {
        ls_tensor *one[] = { ls_ones(LS_F32, LS_DIMS(W_COUNT)), ls_ones(LS_F32, LS_DIMS(B_COUNT)) };
        float before[MOST_STATE], after[MOST_STATE];
        state_of(&p, before);
        assert_int_equal(ls_accumulate_gradients(p.o, 2, one, p.v), LS_OK);
        assert_int_equal(ls_accumulate_gradients(p.o, 1, one, p.v), LS_OK);
        ls_tensor *bad[] = { one[0], one[0] };
        assert_int_equal(ls_apply_gradients(p.o, 2, bad, p.v), LS_SHAPE);
        failed(LS_SHAPE);
        assert_int_equal(ls_apply_gradients(p.o, 1, one, p.v), LS_OK); /* w alone: 1 + 1 + 1 */
        state_of(&p, after);
        assert_true(after[0] == before[0] - 3 && after[W_COUNT] == before[W_COUNT]);
        assert_int_equal(ls_apply_gradients(p.o, 2, one, p.v), LS_OK); /* w: 1, bias: 1 + 1 */
        state_of(&p, after);
        assert_true(after[0] == before[0] - 3 - 1 && after[W_COUNT] == before[W_COUNT] - 2);
    }
    free_pair(&p);
}

static ls_value *accumulate_loss(ls_value *arguments, void *user)
{
    pair *p = user;
    bool last = ls_to_int(ls_leaf_tensor(arguments)) != 0;
    ls_tape *tape = ls_tape_open();
    ls_tensor *loss = ls_sum(ls_square(ls_read(p->v[1])), LS_ALL_AXES, false);
    if (last)
        ls_minimize(p->o, tape, loss, 2, p->v);
    else
        ls_accumulate(p->o, tape, loss, 2, p->v);
    return none();
}

/* The loss does not depend on w: its gradient is zero. */
static void losses(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    pair p = make_pair(s, summing(ls_sgd(LS_SGD(.rate = 0.125))));
    float before[MOST_STATE], after[MOST_STATE];
    state_of(&p, before);
    for (int k = 0; k < 2; k++)
        LS_FRAME {
            ls_value *last = ls_leaf(ls_scalar_int(LS_I32, k));
            assert_non_null(ls_run_eager(s, accumulate_loss, &p, last));
        }
    state_of(&p, after);
    same_state(after, before, W_COUNT);
    for (int i = W_COUNT; i < FLAT; i++)
        assert_true(after[i] == before[i] - 0.125f * 4 * 2 * before[i]);
    free_pair(&p);
    LS_FRAME {
        pair q = make_pair(NULL, summing(ls_sgd(NULL)));
        ls_tape *tape = ls_tape_open();
        ls_tensor *loss = ls_scalar(LS_F32, 1);
        assert_int_equal(ls_accumulate(q.o, tape, loss, 2, q.v), LS_INVALID);
        said(LS_INVALID, "ls_accumulate: the loss depends on none of the 2", "after ls_accumulate");
        assert_int_equal(ls_accumulate(q.o, NULL, loss, 2, q.v), LS_INVALID);
        said(LS_INVALID, "ls_accumulate: the tape is NULL", NULL);
        free_pair(&q);
    }
    ls_strategy_free(s);
}

/* ---- what is refused ---------------------------------------------------------------------- */

static ls_value *apply_in_merge(ls_strategy *s, ls_value *arguments, void *user)
{
    (void)s;
    (void)arguments;
    pair *p = user;
    ls_tensor *g[2];
    slopes(0, 0, g);
    ls_apply_gradients(p->o, 2, g, p->v);
    return none();
}

static ls_value *merge(ls_value *arguments, void *user)
{
    return ls_merge_call(ls_get_replica_context(), apply_in_merge, user, arguments);
}

static void what_is_refused(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    pair p = make_pair(s, summing(ls_sgd(NULL)));
    LS_FRAME {
        ls_tensor *g[2];
        slopes(0, 0, g);
        LS_SCOPE (s)
            assert_int_equal(ls_accumulate_gradients(p.o, 2, g, p.v), LS_STATE);
        said(LS_STATE, "ls_accumulate_gradients: replicas accumulate gradients of variable 'w'",
             "in the replicas");
        assert_int_equal(ls_accumulate_gradients(p.o, 2, g, p.v),
                         LS_STATE); /* nor outside of all */
        failed(LS_STATE);
        runs(s, add_part, &p);
        LS_SCOPE (s)
            assert_int_equal(ls_apply_gradients(p.o, 2, g, p.v), LS_STATE);
        said(LS_STATE, "replicas accumulate gradients of variable 'w'", "in the replicas");
        assert_int_equal(ls_apply_gradients(p.o, 2, g, p.v), LS_STATE);
        said(LS_STATE, "replicas accumulate gradients of variable 'w'", "in the replicas");
        assert_null(run(s, merge, &p));
        said(LS_STATE, "replicas accumulate gradients", NULL);
        ls_variable *twice[] = { p.v[0], p.v[0] };
        ls_tensor *same[] = { g[0], g[0] };
        pair q = make_pair(NULL, summing(ls_sgd(NULL)));
        twice[0] = twice[1] = q.v[0];
        assert_int_equal(ls_accumulate_gradients(q.o, 2, same, twice), LS_INVALID);
        said(LS_INVALID, "'w' is listed twice", NULL);
        ls_tensor *missing[] = { g[0], NULL };
        assert_int_equal(ls_accumulate_gradients(q.o, 2, missing, q.v), LS_INVALID);
        said(LS_INVALID, "the gradient of variable 'bias'", NULL);
        assert_int_equal(ls_accumulate_gradients(q.o, 2, NULL, q.v), LS_INVALID);
        failed(LS_INVALID);
        free_pair(&q);
    }
    free_pair(&p);
    ls_strategy_free(s);
}

static void only_when_asked_for(void **state)
{
    (void)state;
    pair p = make_pair(NULL, ls_sgd(NULL));
    LS_FRAME {
        ls_tensor *g[2];
        slopes(0, 0, g);
        assert_int_equal(ls_accumulate_gradients(p.o, 2, g, p.v), LS_STATE);
        said(LS_STATE, "ls_accumulate_gradients: the optimizer keeps no sums", ".accumulates");
    }
    free_pair(&p);
}

/* In any order: an update that was traced first takes what is accumulated later. */
static void an_update_may_be_traced_first(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    float want[MOST_STATE], got[MOST_STATE];
    pair p = make_pair(s, summing(ls_sgd(NULL))), q = make_pair(s, summing(ls_sgd(NULL)));
    ls_function *f = ls_trace(last_part, &p);
    for (int k = 0; k < 2; k++)
        LS_FRAME {
            assert_non_null(ls_run(s, f, none()));
            runs(s, last_part, &q);
            assert_non_null(ls_run_eager(s, add_part, &p, none()));
            runs(s, add_part, &q);
        }
    int n = state_of(&p, got);
    state_of(&q, want);
    same_state(got, want, n);
    ls_function_free(f);
    free_pair(&p);
    free_pair(&q);
    ls_strategy_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(parts_are_reduced_once),
        cmocka_unit_test_setup(replays, clean),
        BOTH(a_step_that_fails_did_not_happen),
        cmocka_unit_test_setup(alone, clean),
        cmocka_unit_test_setup(losses, clean),
        BOTH(what_is_refused),
        cmocka_unit_test_setup(an_update_may_be_traced_first, clean),
        cmocka_unit_test_setup(only_when_asked_for, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
