/*
 * The input plan against plain loops: every combination of small numbers, and the cases that CASES names,
 * pipelines beside one another that know of each other by the callback alone.
 */
#include "data/plan.h"

#include "tensor/test_support.h"

enum { MOST = 64 };

static ls__plan plan_of(ls__cut cut, int64_t batch, int pipelines, int each)
{
    return (ls__plan){
        .cut = cut, .replicas = pipelines * each, .pipelines = pipelines, .batch = batch
    };
}

/* ---- sizes ------------------------------------------------------------------------------------ */

/* The sizes as a list that is turned. */
static void list_of(int64_t batch, int pipelines, int each, int pipeline, int64_t *out)
{
    const int v = pipelines * each;
    for (int i = 0; i < v; i++) {
        int at = (i + pipeline * each) % v;
        out[i] = batch / v + (at < batch % v);
    }
}

static void expect_sizes(int64_t batch, int pipelines, int each, int pipeline, const int64_t *want)
{
    ls__plan plan = plan_of(LS__CUT_OWN, batch, pipelines, each);
    for (int i = 0; i < plan.replicas; i++)
        assert_int_equal(ls__plan_size(&plan, pipeline, i), want[i]);
}

static void t20_batch_sizes_for_a_worker(void **state)
{
    (void)state;
    for (int p = 0; p < 2; p++)
        expect_sizes(8, 2, 2, p, (int64_t[]){ 2, 2, 2, 2 });
    expect_sizes(7, 2, 2, 0, (int64_t[]){ 2, 2, 2, 1 });
    expect_sizes(7, 2, 2, 1, (int64_t[]){ 2, 1, 2, 2 });
    expect_sizes(4, 3, 1, 0, (int64_t[]){ 2, 1, 1 });
    expect_sizes(4, 3, 1, 1, (int64_t[]){ 1, 1, 2 });
    expect_sizes(4, 3, 1, 2, (int64_t[]){ 1, 2, 1 });
}

/* Every step uses B rows, whoever takes how many, and no two replicas differ by more than one. */
static void t20_every_step_uses_the_batch(void **state)
{
    (void)state;
    for (int pipelines = 1; pipelines <= 5; pipelines++)
        for (int each = 1; each <= 5; each++)
            for (int64_t batch = 0; batch <= 27; batch++) {
                ls__plan plan = plan_of(LS__CUT_OWN, batch, pipelines, each);
                for (int step = 0; step < pipelines; step++) {
                    int64_t total = 0, low = batch, high = 0;
                    for (int i = 0; i < plan.replicas; i++) {
                        int64_t n = ls__plan_size(&plan, i / each, step * each + i % each);
                        total += n;
                        low = n < low ? n : low;
                        high = n > high ? n : high;
                    }
                    assert_int_equal(total, batch);
                    assert_true(high - low <= 1);
                }
                for (int p = 0; p < pipelines; p++) {
                    int64_t want[MOST];
                    list_of(batch, pipelines, each, p, want);
                    expect_sizes(batch, pipelines, each, p, want);
                }
            }
}

static void d1_the_one_rule(void **state)
{
    (void)state;
    expect_sizes(32, 1, 5, 0, (int64_t[]){ 7, 7, 6, 6, 6 });
    expect_sizes(10, 1, 4, 0, (int64_t[]){ 3, 3, 2, 2 });
    expect_sizes(5, 1, 4, 0, (int64_t[]){ 2, 1, 1, 1 });
    expect_sizes(4, 1, 5, 0, (int64_t[]){ 1, 1, 1, 1, 0 });
}

/* ---- windows ---------------------------------------------------------------------------------- */

static void expect_rows(const ls__plan *plan, int64_t rows, int turn, const int64_t *want)
{
    int64_t next = 0;
    for (int j = 0; j < plan->replicas; j++) {
        ls__window w = ls__plan_window(plan, 0, rows, turn, j);
        assert_int_equal(w.count, want[j]);
        assert_int_equal(w.first, next);
        next += w.count;
    }
}

static void d2_d3_a_partial_batch_fills_them_in_order(void **state)
{
    (void)state;
    ls__plan plan = plan_of(LS__CUT_OWN, 8, 1, 2);
    expect_rows(&plan, 6, 0, (int64_t[]){ 4, 2 });
    plan.batch = -1; /* not known: this is a whole one */
    expect_rows(&plan, 6, 0, (int64_t[]){ 3, 3 });
    plan = plan_of(LS__CUT_OWN, 32, 1, 4);
    expect_rows(&plan, 8, 0, (int64_t[]){ 8, 0, 0, 0 });
    assert_false(ls__plan_window(&plan, 0, 8, 0, 0).without);
    assert_true(ls__plan_window(&plan, 0, 8, 0, 1).without);
    plan = plan_of(LS__CUT_OWN, 4, 1, 5); /* 0 rows are what the last has in every whole batch */
    assert_false(ls__plan_window(&plan, 0, 4, 0, 4).without);
    plan = plan_of(LS__CUT_DATA, 8, 1, 2);
    expect_rows(&plan, 6, 0, (int64_t[]){ 3, 3 });
    plan = plan_of(LS__CUT_DATA, 8, 1, 5);
    expect_rows(&plan, 16, 0, (int64_t[]){ 4, 4, 4, 4, 0 });
}

/* Turns and windows of one batch, against the list of sizes that rows are filled into. */
static void check_own(const ls__plan *plan, int pipeline, int64_t rows)
{
    const int each = plan->replicas / plan->pipelines;
    const int64_t batch = plan->batch < rows ? rows : plan->batch;
    int64_t sizes[MOST], at = 0;
    int last = 0;
    list_of(batch, plan->pipelines, each, pipeline, sizes);
    for (int i = 0; i < plan->replicas; i++) {
        ls__window w = ls__plan_window(plan, pipeline, rows, i / each, i % each);
        int64_t n = sizes[i] < rows - at ? sizes[i] : rows - at;
        assert_int_equal(w.count, n);
        assert_int_equal(w.first, at);
        assert_int_equal(w.without, n == 0 && sizes[i] > 0);
        at += n;
        if (n > 0)
            last = i / each;
    }
    assert_int_equal(at, rows);
    int turns = ls__plan_turns(plan, pipeline, rows);
    assert_int_equal(turns, rows == batch && rows > 0 ? plan->pipelines : last + 1);
    for (int t = 0; t < turns; t++) {
        unsigned says = ls__plan_says(plan, pipeline, rows, t);
        int64_t now = 0;
        bool without = false;
        for (int j = 0; j < each; j++) {
            now += ls__plan_window(plan, pipeline, rows, t, j).count;
            without |= ls__plan_window(plan, pipeline, rows, t, j).without;
        }
        assert_int_equal(says & LS__SAYS_DATA, now > 0 || rows == 0 ? LS__SAYS_DATA : 0);
        assert_int_equal(says & LS__SAYS_SHORT, without ? LS__SAYS_SHORT : 0);
        assert_true(says & LS__SAYS_MORE);
    }
}

static void check_data(const ls__plan *plan, int64_t rows)
{
    const int each = plan->replicas / plan->pipelines;
    bool seen[MOST] = { false };
    const int64_t piece = (rows + plan->replicas - 1) / plan->replicas;
    const int64_t batch = plan->batch < rows ? rows : plan->batch;
    const int64_t most = (batch + plan->replicas - 1) / plan->replicas; /* of a whole one */
    for (int p = 0; p < plan->pipelines; p++) {
        assert_int_equal(ls__plan_turns(plan, p, rows), 1);
        for (int j = 0; j < each; j++) {
            ls__window w = ls__plan_window(plan, p, rows, 0, j);
            int64_t first = (p + j * plan->pipelines) * piece;
            assert_int_equal(w.first, first < rows ? first : rows);
            assert_int_equal(w.without, w.count == 0 && (p + j * plan->pipelines) * most < batch);
            for (int64_t i = w.first; i < w.first + w.count; i++) {
                assert_false(seen[i]);
                seen[i] = true;
            }
        }
    }
    for (int64_t i = 0; i < rows; i++)
        assert_true(seen[i]);
}

static void every_batch_is_cut_into_all_its_rows(void **state)
{
    (void)state;
    for (int pipelines = 1; pipelines <= 4; pipelines++)
        for (int each = 1; each <= 4; each++)
            for (int64_t batch = -1; batch <= 20; batch++)
                for (int64_t rows = 0; rows <= 20; rows++) {
                    ls__plan plan = plan_of(LS__CUT_OWN, batch, pipelines, each);
                    for (int p = 0; p < pipelines; p++)
                        check_own(&plan, p, rows);
                    plan.cut = LS__CUT_DATA;
                    check_data(&plan, rows);
                }
}

static void a_batch_of_everything(void **state)
{
    (void)state;
    ls__plan plan = plan_of(LS__CUT_OWN, INT64_MAX, 4, 2);
    for (int p = 0; p < 4; p++) {
        assert_int_equal(ls__plan_turns(&plan, p, 100), 1);
        assert_int_equal(ls__plan_window(&plan, p, 100, 0, 0).count, 100);
        assert_int_equal(ls__plan_window(&plan, p, 100, 0, 1).count, 0);
    }
}

/* ---- pipelines beside one another --------------------------------------------------------------- */

/* A pipeline as a worker has it: batches of some rows, and where it is. */
typedef struct worker {
    int64_t batches[8];
    int count, at, turn;
} worker;

typedef struct workers {
    const ls__plan *plan;
    worker *at;
} workers;

static unsigned says(const ls__plan *plan, const worker *w, int p)
{
    return w->at == w->count ? LS__SAYS_SHORT : ls__plan_says(plan, p, w->batches[w->at], w->turn);
}

static unsigned ask_all(void *user, unsigned mine)
{
    const workers *all = user;
    unsigned out = 0;
    for (int p = 0; p < all->plan->pipelines; p++)
        out |= says(all->plan, &all->at[p], p);
    assert_int_equal(out | mine, out);
    return out;
}

static void next_turn(const ls__plan *plan, worker *w, int p)
{
    if (w->at < w->count && ++w->turn == ls__plan_turns(plan, p, w->batches[w->at])) {
        w->turn = 0;
        w->at++;
    }
}

/* One step of all; rows[r] of replica r. All workers come to the same fate. */
static ls__step_fate step(const ls__plan *plan, worker *all, int64_t *rows)
{
    const int each = plan->replicas / plan->pipelines;
    workers w = { plan, all };
    ls__step_fate fate = LS__STEP_SKIP;
    while (fate == LS__STEP_SKIP) {
        for (int p = 0; p < plan->pipelines; p++) {
            ls__step_fate one = ls__plan_step(plan, says(plan, &all[p], p), ask_all, &w);
            assert_true(p == 0 || one == fate);
            fate = one;
        }
        for (int r = 0; r < plan->replicas && fate == LS__STEP_GIVE; r++) {
            const worker *own = &all[r / each];
            rows[r] = own->at == own->count ? 0
                                            : ls__plan_window(plan, r / each, own->batches[own->at],
                                                              own->turn, r % each)
                                                  .count;
        }
        for (int p = 0; p < plan->pipelines; p++)
            next_turn(plan, &all[p], p);
    }
    return fate;
}

static void d8_those_that_end_first_give_nothing_until_all_have(void **state)
{
    (void)state;
    ls__plan plan = plan_of(LS__CUT_OWN, 4, 2, 1);
    worker all[2] = { { .batches = { 4, 3 }, .count = 2 }, { .batches = { 4 }, .count = 1 } };
    const int64_t want[][2] = { { 2, 2 }, { 2, 2 }, { 2, 0 }, { 1, 0 } };
    int64_t rows[2];
    for (int i = 0; i < 4; i++) {
        assert_int_equal(step(&plan, all, rows), LS__STEP_GIVE);
        assert_memory_equal(rows, want[i], sizeof rows);
    }
    assert_int_equal(step(&plan, all, rows), LS__STEP_END);
    assert_int_equal(step(&plan, all, rows), LS__STEP_END);
}

static void whole_steps_end_where_a_replica_goes_without(void **state)
{
    (void)state;
    ls__plan plan = plan_of(LS__CUT_OWN, 4, 2, 1);
    plan.whole_steps = true;
    worker all[2] = { { .batches = { 4, 3 }, .count = 2 }, { .batches = { 4 }, .count = 1 } };
    int64_t rows[2];
    assert_int_equal(step(&plan, all, rows), LS__STEP_GIVE);
    assert_int_equal(step(&plan, all, rows), LS__STEP_GIVE);
    assert_int_equal(step(&plan, all, rows), LS__STEP_END);
}

/* One row for four pipelines: three steps of a batch have nothing for this one. They are no steps when
 * nobody else has anything. */
static void steps_that_nobody_has_a_row_in_are_none(void **state)
{
    (void)state;
    ls__plan plan = plan_of(LS__CUT_OWN, 1, 4, 1);
    for (int p = 0; p < 4; p++) {
        worker all[4] = { { .count = 0 } };
        int64_t rows[4];
        all[p] = (worker){ .batches = { 1, 1 }, .count = 2 };
        for (int i = 0; i < 2; i++) {
            assert_int_equal(step(&plan, all, rows), LS__STEP_GIVE);
            assert_int_equal(rows[p], 1);
        }
        assert_int_equal(step(&plan, all, rows), LS__STEP_END);
    }
    for (int known = 0; known < 2; known++) { /* a batch of no rows is one */
        worker all[4] = { { .batches = { 0 }, .count = 1 } };
        int64_t rows[4];
        plan.batch = known ? 1 : -1;
        assert_int_equal(step(&plan, all, rows), LS__STEP_GIVE);
        assert_int_equal(step(&plan, all, rows), LS__STEP_END);
    }
}

static void t27_each_sees_everything(void **state)
{
    (void)state;
    const int64_t known[] = { 4, 4, 4 }, unknown[] = { 4, 4, 2, 2 };
    for (int i = 0; i < 2; i++) {
        ls__plan plan = plan_of(LS__CUT_OWN, i == 0 ? 8 : -1, 2, 1);
        worker all[2] = { { .batches = { 8, 4 }, .count = 2 },
                          { .batches = { 8, 4 }, .count = 2 } };
        int64_t rows[2];
        for (int k = 0; k < 3 + i; k++) {
            assert_int_equal(step(&plan, all, rows), LS__STEP_GIVE);
            assert_int_equal(rows[0], (i == 0 ? known : unknown)[k]);
            assert_int_equal(rows[1], rows[0]);
        }
        assert_int_equal(step(&plan, all, rows), LS__STEP_END);
    }
}

static void t22_t24_data_is_dealt_out(void **state)
{
    (void)state;
    ls__plan plan = plan_of(LS__CUT_DATA, 8, 2, 1);
    const int64_t firsts[][2] = { { 0, 4 },
                                  { 0, 3 } }; /* rows 8 to 13 of 14 are 0 to 5 of the second */
    const int64_t rows[] = { 8, 6 };
    for (int b = 0; b < 2; b++)
        for (int p = 0; p < 2; p++) {
            ls__window w = ls__plan_window(&plan, p, rows[b], 0, 0);
            assert_int_equal(w.first, firsts[b][p]);
            assert_int_equal(w.count, rows[b] / 2);
        }
    plan = plan_of(LS__CUT_DATA, 4, 2, 2); /* by turns: pieces 0 and 2, 1 and 3 */
    for (int p = 0; p < 2; p++)
        for (int j = 0; j < 2; j++)
            assert_int_equal(ls__plan_window(&plan, p, 4, 0, j).first, p + 2 * j);
    plan = plan_of(LS__CUT_DATA, 2, 2, 1);
    assert_int_equal(ls__plan_window(&plan, 0, 1, 0, 0).count, 1);
    assert_int_equal(ls__plan_window(&plan, 1, 1, 0, 0).count, 0);
    assert_true(ls__plan_window(&plan, 1, 1, 0, 0).without);
    plan.batch = 1; /* then this one never has any */
    assert_false(ls__plan_window(&plan, 1, 1, 0, 0).without);
}

/* Any number of batches of any size: all rows are given, no step is empty, all end together. */
static void pipelines_of_any_length_give_all_they_have(void **state)
{
    (void)state;
    for (int pipelines = 1; pipelines <= 3; pipelines++)
        for (int each = 1; each <= 3; each++)
            for (int batch = 1; batch <= 7; batch++)
                for (unsigned mix = 0; mix < 64; mix++) {
                    ls__plan plan = plan_of(LS__CUT_OWN, batch, pipelines, each);
                    worker all[3] = { { .count = 0 } };
                    int64_t want = 0, got = 0, rows[MOST];
                    for (int p = 0; p < pipelines; p++) {
                        all[p].count = (int)(mix >> 2 * p & 3);
                        for (int i = 0; i < all[p].count; i++) {
                            all[p].batches[i] = 1 + (int64_t)(mix + 3u * (unsigned)i) % batch;
                            want += all[p].batches[i];
                        }
                    }
                    while (step(&plan, all, rows) == LS__STEP_GIVE) {
                        int64_t total = 0;
                        for (int r = 0; r < plan.replicas; r++)
                            total += rows[r];
                        assert_true(total > 0);
                        got += total;
                    }
                    assert_int_equal(got, want);
                }
}

static void elements_for_one_replica_each(void **state)
{
    (void)state;
    ls__plan plan = plan_of(LS__CUT_NONE, -1, 2, 3);
    assert_int_equal(ls__plan_says_elements(&plan, 0), LS__SAYS_SHORT);
    assert_int_equal(ls__plan_says_elements(&plan, 2),
                     LS__SAYS_DATA | LS__SAYS_MORE | LS__SAYS_SHORT);
    assert_int_equal(ls__plan_says_elements(&plan, 3), LS__SAYS_DATA | LS__SAYS_MORE);
    assert_int_equal(ls__plan_step(&plan, LS__SAYS_SHORT, NULL, NULL), LS__STEP_END);
    assert_int_equal(ls__plan_step(&plan, 7, NULL, NULL), LS__STEP_GIVE);
    assert_int_equal(ls__plan_step(&plan, 7 | LS__SAYS_END, NULL, NULL), LS__STEP_END);
    plan.whole_steps = true;
    assert_int_equal(ls__plan_step(&plan, 7, NULL, NULL), LS__STEP_END);
    assert_int_equal(ls__plan_step(&plan, 3, NULL, NULL), LS__STEP_GIVE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t20_batch_sizes_for_a_worker),
        cmocka_unit_test(t20_every_step_uses_the_batch),
        cmocka_unit_test(d1_the_one_rule),
        cmocka_unit_test(d2_d3_a_partial_batch_fills_them_in_order),
        cmocka_unit_test(every_batch_is_cut_into_all_its_rows),
        cmocka_unit_test(a_batch_of_everything),
        cmocka_unit_test(d8_those_that_end_first_give_nothing_until_all_have),
        cmocka_unit_test(whole_steps_end_where_a_replica_goes_without),
        cmocka_unit_test(steps_that_nobody_has_a_row_in_are_none),
        cmocka_unit_test(t27_each_sees_everything),
        cmocka_unit_test(t22_t24_data_is_dealt_out),
        cmocka_unit_test(pipelines_of_any_length_give_all_they_have),
        cmocka_unit_test(elements_for_one_replica_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
