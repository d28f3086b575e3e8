/*
 * Every optimizer and option: the whole state has the same bits eager and traced, on one device
 * and on three, and those of one replica that is given the sums of the tree; weights and slots
 * exist once.
 */
#include "strategy/step.h"
#include "trace/plan.h"
#include "train/optimizer_test_support.h"

enum { V = 3, STEPS = 4 };

static ls_value *apply(ls_value *arguments, void *user)
{
    pair *p = user;
    ls_tensor *g[2];
    slopes(my_id(), 0, g);
    ls_tensor *scale = ls_leaf_tensor(arguments); /* a step's own gradients */
    for (int i = 0; i < 2; i++)
        g[i] = ls_mul(g[i], scale);
    ls_apply_gradients(p->o, 2, g, p->v);
    return none();
}

static float step_scale(int step)
{
    return 1.0f / (float)(1 << step);
}

static int train(int number_of_optimizer, const char *devices, bool trace, float *out)
{
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = devices, .replicas = V));
    assert_non_null(s);
    pair p = make_pair(s, optimizer_number(number_of_optimizer));
    ls_function *f = trace ? ls_trace(apply, &p) : NULL;
    for (int k = 0; k < STEPS; k++)
        LS_FRAME {
            ls_value *scale = ls_leaf(number(step_scale(k)));
            ls_value *done = f ? ls_run(s, f, scale) : ls_run_eager(s, apply, &p, scale);
            if (!done)
                fail_msg("optimizer %d: %s", number_of_optimizer, ls_error_report());
        }
    if (f)
        assert_int_equal(ls_function_traces(f), 1);
    ls_function_free(f);
    assert_int_equal(ls_iterations(p.o), STEPS);
    int n = state_of(&p, out);
    free_pair(&p);
    ls_strategy_free(s);
    return n;
}

/* (0 + 1) + 2 by one replica. */
static int train_alone(int number_of_optimizer, float *out)
{
    pair p = make_pair(NULL, optimizer_number(number_of_optimizer));
    for (int k = 0; k < STEPS; k++)
        LS_FRAME {
            ls_tensor *g[V][2];
            for (int r = 0; r < V; r++) {
                slopes(r, 0, g[r]);
                for (int i = 0; i < 2; i++)
                    g[r][i] = ls_mul(g[r][i], number(step_scale(k)));
            }
            ls_tensor *sums[2];
            for (int i = 0; i < 2; i++)
                sums[i] = ls_add(ls_add(g[0][i], g[1][i]), g[2][i]);
            assert_int_equal(ls_apply_gradients(p.o, 2, sums, p.v), LS_OK);
        }
    int n = state_of(&p, out);
    free_pair(&p);
    return n;
}

static void on_any_number_of_devices(void **state)
{
    (void)state;
    static const char *const devices[] = { "/cpu:0", "/cpu:0,/cpu:1,/cpu:2" };
    for (int i = 0; i < OPTIMIZERS; i++) {
        float want[MOST_STATE], got[MOST_STATE];
        int n = train_alone(i, want);
        for (int way = 0; way < 4; way++) {
            assert_int_equal(train(i, devices[way / 2], way % 2, got), n);
            same_state(got, want, n);
        }
    }
}

/* Large enough for the threads of all devices to take part in norms and updates. */
enum { LARGE = 70001 };

static ls_value *apply_large(ls_value *arguments, void *user)
{
    pair *p = user;
    ls_tensor *scale = ls_leaf_tensor(arguments);
    static float g[V][LARGE]; /* of each replica its own */
    float *mine = g[my_id()];
    for (int i = 0; i < LARGE; i++)
        mine[i] = slope(my_id(), 0, i);
    ls_tensor *gradient = ls_mul(ls_from(LS_F32, LS_DIMS(LARGE), mine), scale);
    ls_apply_gradients(p->o, 2, (ls_tensor *[]){ gradient, ls_neg(gradient) }, p->v);
    return none();
}

static void large_ones_too(void **state)
{
    (void)state;
    static float ends[2][2 * LARGE];
    for (int way = 0; way < 6; way++) {
        const char *devices = way % 3 == 0   ? "/cpu:0"
                              : way % 3 == 1 ? "/cpu:0,/cpu:1"
                                             : "/cpu:0,/cpu:1,/cpu:2";
        ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = devices, .replicas = V));
        pair p = { .o = ls_adamw(LS_ADAM(.clip_global_norm = 1, .rate = 0.1)) };
        LS_FRAME
            LS_SCOPE (s)
                for (int i = 0; i < 2; i++)
                    p.v[i] = ls_variable_new("w", ls_ones(LS_F32, LS_DIMS(LARGE)), true);
        ls_function *f = ls_trace(apply_large, &p);
        for (int k = 0; k < 2; k++)
            LS_FRAME {
                ls_value *scale = ls_leaf(number(step_scale(k)));
                ls_value *done =
                    way < 3 ? ls_run(s, f, scale) : ls_run_eager(s, apply_large, &p, scale);
                if (!done)
                    fail_msg("%s", ls_error_report());
            }
        for (int i = 0; i < 2; i++)
            LS_FRAME
                assert_int_equal(
                    ls_copy_out(ls_read(p.v[i]), ends[way > 0] + i * LARGE, LARGE * sizeof(float)),
                    LS_OK);
        if (way > 0)
            same_state(ends[1], ends[0], 2 * LARGE);
        ls_function_free(f);
        free_pair(&p);
        ls_strategy_free(s);
    }
}

static ls_value *apply_one(ls_value *arguments, void *user)
{
    (void)arguments;
    pair *p = user;
    ls_tensor *g[2];
    slopes(my_id(), 0, g);
    ls_apply_gradients(p->o, 2, g, p->v);
    return none();
}

static void weights_and_slots_exist_once(void **state)
{
    (void)state;
    size_t bytes[2];
    for (int i = 0; i < 2; i++) {
        ls_strategy *s = replicas(i ? 8 : 1);
        pair p = make_pair(s, ls_adam(NULL));
        size_t before = memory();
        LS_FRAME
            runs(s, apply_one, &p);
        float now[MOST_STATE];
        assert_int_equal(state_of(&p, now), 3 * FLAT);
        bytes[i] = memory() - before;
        free_pair(&p);
        ls_strategy_free(s);
    }
    assert_int_equal(bytes[0], bytes[1]);
}

/* How many instructions of the meetings of a traced step are calls of `row`. */
static int count_row(const ls_function *f, const char *row)
{
    const ls__traced_step *step = f->steps;
    int n = 0;
    for (int m = 0; m < step->n_meetings; m++)
        for (int i = 0; i < step->meetings[m].plan->n_instructions; i++)
            n += strcmp(step->meetings[m].plan->instructions[i].node->op->name, row) == 0;
    return n;
}

/* Rule E: in one pass where nothing needs the sums, with its own norms else. */
static void traced_steps_sum_and_apply_in_one_pass(void **state)
{
    (void)state;
    static const struct {
        int optimizer;
        const char *row;
        int rows, sums;
    } want[] = {
        { 0, "sgd_reduced", 1, 0 },  { 2, "momentum_reduced", 1, 0 }, { 3, "clip_scales", 1, 1 },
        { 3, "sgd_updates", 1, 1 },  { 4, "adam_reduced", 1, 0 },     { 5, "adam_lazy", 2, 1 },
        { 6, "adam_reduced", 2, 0 }, { 7, "adam_reduced", 1, 0 },
    };
    ls_strategy *s = replicas(V);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        pair p = make_pair(s, optimizer_number(want[i].optimizer));
        ls_function *f = ls_trace(apply, &p); /* with an argument: constants are summed at once */
        LS_FRAME
            assert_non_null(ls_run(s, f, ls_leaf(number(1))));
        assert_int_equal(count_row(f, want[i].row), want[i].rows);
        assert_int_equal(count_row(f, "sum_replicas"), want[i].sums);
        ls_function_free(f);
        free_pair(&p);
    }
    ls_strategy_free(s);
}

/* Two optimizers in a step: two meetings, each with its own variables, slots and count. */
static ls_value *apply_two(ls_value *arguments, void *user)
{
    (void)arguments;
    pair *p = user; /* of two */
    ls_tensor *g[2];
    slopes(my_id(), 0, g);
    ls_apply_gradients(p[0].o, 1, &g[0], &p[0].v[0]);
    ls_apply_gradients(p[1].o, 1, &g[1], &p[1].v[1]);
    return none();
}

static void two_optimizers_in_a_step(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    pair two[2] = { make_pair(s, optimizer_number(1)), make_pair(s, optimizer_number(4)) };
    pair momentum = make_pair(s, optimizer_number(1)), adam = make_pair(s, optimizer_number(4));
    for (int k = 0; k < 3; k++)
        LS_FRAME {
            runs(s, apply_two, two);
            runs(s, apply_one, &momentum);
            runs(s, apply_one, &adam);
        }
    assert_int_equal(ls_iterations(two[0].o), 3);
    assert_int_equal(ls_iterations(two[1].o), 3);
    const ls_variable *got[] = { two[0].v[0], two[1].v[1] };
    const ls_variable *want[] = { momentum.v[0], adam.v[1] };
    for (int i = 0; i < 2; i++)
        same_state(ls__cell_data(got[i]->cells[0]), ls__cell_data(want[i]->cells[0]),
                   i ? B_COUNT : W_COUNT);
    free_pair(&two[0]);
    free_pair(&two[1]);
    free_pair(&momentum);
    free_pair(&adam);
    ls_strategy_free(s);
}

/* Two gradients whose sum is too large. */
static ls_value *apply_huge(ls_value *arguments, void *user)
{
    pair *p = user;
    ls_tensor *scale = ls_leaf_tensor(arguments);
    ls_tensor *g[] = { ls_mul(ls_ones(LS_F32, LS_DIMS(W_COUNT)), scale),
                       ls_mul(ls_ones(LS_F32, LS_DIMS(B_COUNT)), scale) };
    ls_apply_gradients(p->o, 2, g, p->v);
    return none();
}

/* ls_check_numerics sees the sum over replicas, wherever they are and however it is made: what
 * is checked must not depend on the placement either. */
static void sums_are_checked_on_any_number_of_devices(void **state)
{
    (void)state;
    for (int way = 0; way < 4 * OPTIMIZERS; way++) {
        ls_strategy *s = ls_mirrored(
            LS_MIRRORED(.devices = way % 2 ? "/cpu:0,/cpu:1" : "/cpu:0", .replicas = 2));
        pair p = make_pair(s, optimizer_number(way / 4));
        ls_function *f = way & 2 ? ls_trace(apply_huge, &p) : NULL;
        LS_FRAME {
            ls_value *scale = ls_leaf(number(3e38f));
            ls_check_numerics(LS_NUMERICS_NAN_AND_INF);
            ls_value *done = f ? ls_run(s, f, scale) : ls_run_eager(s, apply_huge, &p, scale);
            ls_check_numerics(LS_NUMERICS_OFF);
            if (done)
                fail_msg("way %d: nobody noticed", way);
            said(LS_INVALID, "sum_replicas: made an infinity from finite inputs", NULL);
        }
        assert_int_equal(ls_iterations(p.o), 0);
        assert_true(((const float *)ls__cell_data(p.v[0]->cells[0]))[0] == 1);
        ls_function_free(f);
        free_pair(&p);
        ls_strategy_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(on_any_number_of_devices, clean),
        cmocka_unit_test_setup(large_ones_too, clean),
        BOTH(weights_and_slots_exist_once),
        cmocka_unit_test_setup(traced_steps_sum_and_apply_in_one_pass, clean),
        BOTH(two_optimizers_in_a_step),
        cmocka_unit_test_setup(sums_are_checked_on_any_number_of_devices, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
