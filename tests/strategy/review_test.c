/*
 * Corners that a review found by hand, each kept as a test: runs inside merge functions, arguments
 * that are no ordinary tensors, and what a failed run leaves behind.
 */
#include "strategy/strategy_support.h"

#include <lockstep/random.h>

/* ---- draws and initialisers of runs inside runs -------------------------------------------- */

static ls_value *draw(ls_value *arguments, void *user)
{
    (void)arguments, (void)user;
    return ls_leaf(ls_random_uniform(LS_F32, LS_SCALAR, 0, 1));
}

static ls_value *run_draw(ls_strategy *s, ls_value *arguments, void *user)
{
    return ls_run_eager(s, draw, user, arguments);
}

static ls_value *draw_inside(ls_value *arguments, void *user)
{
    return ls_merge_call(ls_get_replica_context(), run_draw, user, arguments);
}

/* Two steps with each of two seeds: 4 n draws. */
static void draw_all(ls_strategy *s, int n, bool traced, float *out)
{
    for (uint64_t seed = 1; seed <= 2; seed++) {
        ls_random_seed(seed);
        OK(ls_set_steps(s, 0));
        for (int step = 0; step < 2; step++) {
            ls_value *v = run_step(s, traced, draw_inside, NULL, nothing());
            GAVE(v);
            for (int i = 0; i < n; i++)
                *out++ = ls_to_float(part(v, i));
        }
    }
}

static void check_nested_draws(ls_strategy *s, int n, bool traced)
{
    float first[4 * MOST_REPLICAS], again[4 * MOST_REPLICAS];
    if (traced && n > 1) {
        assert_null(run_step(s, traced, draw_inside, NULL, nothing()));
        FAILS(LS_UNSUPPORTED, "a random draw in a run that is part of a traced function");
        return;
    }
    draw_all(s, n, traced, first);
    draw_all(s, n, traced, again);
    for (int i = 0; i < 4 * n; i++) {
        assert_float_equal(first[i], again[i], 0);
        for (int k = 0; k < i; k++)
            if (first[i] == first[k])
                fail_msg("draws %d and %d are both %g", k, i, (double)first[i]);
    }
}

EVERYWHERE(draws_of_a_run_inside_depend_on_seed_step_and_replica, check_nested_draws)

typedef struct three {
    ls_variable *in_replicas, *in_merge, *after;
} three;

static ls_variable *initialised(const char *name)
{
    return ls_variable_new(name, ls_glorot_uniform(LS_F32, LS_DIMS(2, 2)), true);
}

static ls_value *make_in_replicas(ls_value *arguments, void *user)
{
    three *t = user;
    ls_variable *v = initialised("in_replicas");
    if (my_id() == 0)
        t->in_replicas = v;
    return v ? arguments : NULL;
}

static ls_value *make_in_merge(ls_strategy *s, ls_value *arguments, void *user)
{
    three *t = user;
    ls_value *v = ls_run_eager(s, make_in_replicas, t, arguments);
    t->in_merge = initialised("in_merge");
    return t->in_merge ? v : NULL;
}

static ls_value *make_inside(ls_value *arguments, void *user)
{
    return ls_merge_call(ls_get_replica_context(), make_in_merge, user, arguments);
}

static void check_nested_initialisers(ls_strategy *s, int n, bool traced)
{
    (void)n;
    three made = { 0 }, plain = { 0 };
    ls_random_seed(7);
    GAVE(run_step(s, traced, make_inside, &made, nothing()));
    LS_SCOPE (s)
        made.after = initialised("after");
    ls_random_seed(7);
    LS_SCOPE (s) {
        plain.in_replicas = initialised("in_replicas");
        plain.in_merge = initialised("in_merge");
        plain.after = initialised("after");
    }
    ls_variable *got[] = { made.in_replicas, made.in_merge, made.after };
    ls_variable *want[] = { plain.in_replicas, plain.in_merge, plain.after };
    for (int i = 0; i < 3; i++) {
        double w[4];
        GAVE(got[i]);
        OK(ls_copy_out(ls_cast(ls_read(want[i]), LS_F64), w, sizeof w));
        HOLDS(ls_read(got[i]), w[0], w[1], w[2], w[3]);
    }
    for (int i = 0; i < 3; i++) {
        ls_variable_free(got[i]);
        ls_variable_free(want[i]);
    }
}

EVERYWHERE(initialisers_of_a_run_inside_are_drawn_in_the_order_of_making, check_nested_initialisers)

/* ---- failed runs ----------------------------------------------------------------------------- */

/* Draws, then fails while it runs: not when it is traced. */
static ls_value *draw_and_fail(ls_value *arguments, void *user)
{
    (void)user;
    ls_tensor *x = ls_random_uniform(LS_F32, LS_DIMS(2), 0, 1);
    return ls_leaf(ls_gather(x, ls_leaf_tensor(arguments), 0));
}

static float next_draw(void)
{
    return ls_to_float(ls_random_uniform(LS_F32, LS_SCALAR, 0, 1));
}

static void check_failed_draws(ls_strategy *s, int n, bool traced)
{
    ls_value *bad = ls_leaf(ls_full(LS_I32, LS_DIMS(1), 9));
    ls_strategy *each[] = { s, ls_default_strategy() };
    (void)n;
    ls_random_seed(3);
    float want = next_draw();
    for (int i = 0; i < 2; i++) {
        ls_random_seed(3);
        assert_null(run_step(each[i], traced, draw_and_fail, NULL, bad));
        FAILS(LS_INVALID, "index 9");
        assert_float_equal(next_draw(), want, 0);
    }
}

EVERYWHERE(a_failed_run_gives_its_draws_back, check_failed_draws)

typedef struct counters {
    ls_variable *sum, *own;
    ls_function *inner;
    bool fails;
    int failures_read;
} counters;

static counters make_counters(ls_strategy *s)
{
    counters c = { 0 };
    LS_SCOPE (s) {
        c.sum = ls_variable_with(LS_VARIABLE(.aggregation = LS_AGGREGATE_SUM), "sum",
                                 ls_scalar(LS_F32, 0));
        c.own = ls_variable_with(
            LS_VARIABLE(.synchronization = LS_SYNC_ON_READ, .aggregation = LS_AGGREGATE_SUM), "own",
            ls_scalar(LS_F32, 0));
    }
    GAVE(c.own);
    return c;
}

static void free_counters(counters *c)
{
    ls_variable_free(c->sum);
    ls_variable_free(c->own);
}

static ls_value *count(ls_value *arguments, void *user)
{
    counters *c = user;
    ls_status st = ls_assign_add(c->sum, my_number(1, 0));
    return st || ls_assign_add(c->own, my_number(1, 0)) ? NULL : arguments;
}

static ls_value *run_count(ls_strategy *s, ls_value *arguments, void *user)
{
    counters *c = user;
    return ls_run(s, c->inner, arguments);
}

static ls_value *count_and_fail(ls_value *arguments, void *user)
{
    counters *c = user;
    ls_value *v = ls_merge_call(ls_get_replica_context(), run_count, c, arguments);
    return c->fails ? fail_here("no luck") : v;
}

static void check_nested_undo(ls_strategy *s, int n, bool traced)
{
    counters c = make_counters(s);
    c.inner = ls_trace(count, &c);
    for (int turn = 1; turn <= 3; turn++) {
        c.fails = false;
        GAVE(run_step(s, traced, count_and_fail, &c, nothing()));
        c.fails = true;
        assert_null(run_step(s, traced, count_and_fail, &c, nothing()));
        FAILS(LS_NOT_FOUND, "no luck", replica_named(0, n));
        HOLDS(ls_read(c.sum), turn * n);
        HOLDS(ls_read(c.own), turn * n);
    }
    ls_function_free(c.inner);
    free_counters(&c);
}

EVERYWHERE(what_a_traced_run_inside_wrote_is_undone_with_the_run_around_it, check_nested_undo)

/* The last replica fails after it wrote. */
static ls_value *write_and_fail(ls_value *arguments, void *user)
{
    counters *c = user;
    if (!count(arguments, c) ||
        !ls_all_reduce(ls_get_replica_context(), LS_SUM, ls_leaf(my_number(1, 1))))
        return NULL;
    bool last = my_id() == ls_num_replicas(ls_get_strategy()) - 1;
    return last ? fail_here("no luck") : arguments;
}

static ls_value *read_the_failure(ls_strategy *s, ls_value *arguments, void *user)
{
    counters *c = user;
    if (!ls_run_eager(s, write_and_fail, c, arguments))
        c->failures_read += mentions(ls_error_report(), "no luck");
    ls_error();
    return ls_assign_add(c->sum, ls_scalar(LS_F32, 1)) ? NULL : ls_leaf(ls_read(c->sum));
}

/* Meets again afterwards. */
static ls_value *go_on_after_failure(ls_value *arguments, void *user)
{
    ls_replica *r = ls_get_replica_context();
    ls_value *v = ls_merge_call(r, read_the_failure, user, arguments);
    return v ? ls_all_reduce(r, LS_MEAN, v) : NULL;
}

static void check_failure_read(ls_strategy *s, int n, bool traced)
{
    counters c = make_counters(s);
    ls_function *f = ls_trace(go_on_after_failure, &c);
    for (int turn = 1; turn <= 3; turn++) {
        ls_value *v =
            traced ? ls_run(s, f, nothing()) : ls_run_eager(s, go_on_after_failure, &c, nothing());
        HOLDS_EACH(v, n, turn, 0);
        assert_int_equal(c.failures_read, traced ? 1 : turn);
        HOLDS(ls_read(c.sum), turn);
        HOLDS(ls_read(c.own), 0);
    }
    ls_function_free(f);
    free_counters(&c);
}

EVERYWHERE(a_failed_run_inside_did_not_happen_when_its_failure_was_read, check_failure_read)

/* ---- errors left unread -------------------------------------------------------------------------- */

static ls_value *refuse(ls_strategy *s, ls_value *arguments, void *user)
{
    (void)s, (void)arguments, (void)user;
    return fail_here("of the merge function");
}

static ls_value *leave_unread(ls_value *arguments, void *user)
{
    if (my_id() >= *(int *)user)
        ls_add(ls_ones(LS_F32, LS_DIMS(2)), ls_ones(LS_F32, LS_DIMS(3)));
    return ls_merge_call(ls_get_replica_context(), refuse, NULL, arguments);
}

static void check_unread(ls_strategy *s, int n, bool traced)
{
    for (int first = 0; first < n; first++) {
        assert_null(run_step(s, traced, leave_unread, &first, nothing()));
        FAILS(LS_SHAPE, "broadcast", replica_named(first, n));
    }
    assert_null(run_step(s, traced, leave_unread, &n, nothing()));
    FAILS(LS_NOT_FOUND, "of the merge function");
}

EVERYWHERE(an_error_left_unread_goes_before_that_of_the_merge_function, check_unread)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(draws_of_a_run_inside_depend_on_seed_step_and_replica),
        TEST(initialisers_of_a_run_inside_are_drawn_in_the_order_of_making),
        TEST(a_failed_run_gives_its_draws_back),
        TEST(what_a_traced_run_inside_wrote_is_undone_with_the_run_around_it),
        TEST(a_failed_run_inside_did_not_happen_when_its_failure_was_read),
        TEST(an_error_left_unread_goes_before_that_of_the_merge_function),
    };
    return RUN_TESTS(tests);
}
