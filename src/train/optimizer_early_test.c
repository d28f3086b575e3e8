/*
 * Updates that begin before all replicas have come to their meeting (strategy/early.h): that they
 * do, that who reads the weights late reads the old ones, that a replica that fails leaves
 * everything as it was, and that no bit changes where they cannot begin early.
 */
#include <lockstep/function.h>
#include <lockstep/operator.h>
#include <lockstep/ops.h>
#include <lockstep/optimizer.h>
#include <lockstep/strategy.h>
#include <lockstep/tape.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "collective/placement.h"
#include "ops/update_products.h"
#include "strategy/step.h"
#include "tensor/test_support.h"
#include "train/products_test_support.h"

#include "strategy/helped_test_support.h"

enum { IN = 530, OUT = 64, ROWS = 32, MOST = 4 };

/* ---- rows of this test ----------------------------------------------------------------------- */

enum { GOES_ON, SLEEPS, WAITS_FOR_UPDATE, FAILS, WANTS_HELP, WAITS_FOR_WORK };

static _Atomic int *stage_of_update; /* of the weights' */
static _Atomic bool saw_update;
static const ls_strategy *strategy_of_row;

static void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){ .tv_nsec = 1000000L * ms }, NULL);
}

static ls_status first_shape(ls_call *c)
{
    return ls_call_output(c, 0, LS_F32, 0, NULL);
}

/* The first number of input 1, after what input 0 says. */
static ls_status first_kernel(ls_call *c)
{
    const int what = (int)*(const float *)ls_call_in(c, 0);
    if (what == FAILS)
        return ls_call_fail(c, LS_INVALID, "it was told to");
    if (what == SLEEPS)
        sleep_ms(30);
    if (what == WANTS_HELP)
        helped_work(strategy_of_row);
    if (what == WAITS_FOR_WORK)
        helped_wait_for_work();
    for (int i = 0; what == WAITS_FOR_UPDATE && i < 10000 && !saw_update; i++) {
        saw_update = atomic_load(stage_of_update) == LS__PRODUCTS_DONE;
        sleep_ms(1);
    }
    memcpy(ls_call_out(c, 0), ls_call_in(c, 1), sizeof(float));
    return LS_OK;
}

static const ls_op first_row = { .size = sizeof first_row,
                                 .name = "first",
                                 .inputs = 2,
                                 .outputs = 1,
                                 .shape = first_shape,
                                 .kernel = first_kernel };
static const ls_op sure_first_row = { .size = sizeof sure_first_row,
                                      .name = "sure_first",
                                      .inputs = 2,
                                      .outputs = 1,
                                      .flags = LS_OP_TOTAL,
                                      .shape = first_shape,
                                      .kernel = first_kernel };

/* ---- a step ------------------------------------------------------------------------------------ */

typedef struct net {
    ls_strategy *s;
    ls_variable *w, *b;
    ls_optimizer *optimizer;
    ls_function *step;
    int replicas;
    const ls_op *row;   /* that is called when gradients are made, or before */
    bool before;        /* that */
    bool reads_weights; /* it does */
} net;

/* The batch is (x, what); gives what the row made. */
static ls_value *train(ls_value *batch, void *user)
{
    const net *n = user;
    ls_tape *tape = ls_tape_open();
    ls_tensor *x = ls_tanh(ls_item(batch, 0));
    ls_tensor *what = ls_item(batch, 1);
    ls_tensor *w = ls_read(n->w), *b = ls_read(n->b);
    ls_tensor *loss = ls_mean(ls_square(ls_dense(x, w, b)), LS_ALL_AXES, false);
    ls_tensor *given[] = { what, n->reads_weights ? w : what };
    ls_tensor *first = n->before ? ls_apply(n->row, 2, given, NULL) : NULL;
    const int count =
        n->before ? 1 : 2; /* the bias's gradient is a sum, which is made after dy and may fail */
    ls_value *wanted[] = { ls_leaf(w), ls_leaf(b) };
    ls_value *found = ls_gradients(tape, ls_leaf(loss), ls_list(count, wanted));
    ls_tensor *gradients[] = { ls_item(found, 0), ls_item(found, count - 1) };
    if (!n->before)
        first = ls_apply(n->row, 2, given, NULL);
    ls_apply_gradients(n->optimizer, count, gradients, (ls_variable *[]){ n->w, n->b });
    ls_tape_close(tape);
    return ls_leaf(first);
}

static ls_tensor *numbers(int64_t rows, int64_t columns, double by)
{
    float x[IN * OUT];
    assert_true(rows * columns <= IN * OUT);
    for (int64_t i = 0; i < rows * columns; i++)
        x[i] = (float)sin((double)i * by);
    return ls_from(LS_F32, LS_DIMS(rows, columns), x);
}

static net *open_net(int replicas, int devices, ls_mirrored_options options, const char *off)
{
    static net n;
    options.devices = devices == 1 ? "/cpu:0" : "/cpu:0,/cpu:1";
    options.replicas = replicas;
    options.size = sizeof options;
    n = (net){ .s = ls_mirrored(&options), .replicas = replicas, .row = &sure_first_row };
    LS_FRAME
        LS_SCOPE (n.s) {
            n.w = ls_variable_new("w", numbers(IN, OUT, 0.7), true);
            n.b = ls_variable_new("b", ls_zeros(LS_F32, LS_DIMS(OUT)), true);
            n.optimizer = ls_adam(NULL);
        }
    n.step = ls_trace_with(LS_TRACE(.off = off), train, &n);
    assert_non_null(n.step);
    return &n;
}

static void close_net(net *n)
{
    ls_function_free(n->step);
    ls_variable_free(n->w);
    ls_variable_free(n->b);
    ls_optimizer_free(n->optimizer);
    ls_strategy_free(n->s);
}

/* `whose`: the replica that is told `what`. */
static int told(const net *n, int r, int whose, int what)
{
    if (r == whose)
        return what;
    const bool elsewhere = ls__block_of(n->replicas, 2, r) != ls__block_of(n->replicas, 2, whose);
    return what == WANTS_HELP && elsewhere ? WAITS_FOR_WORK : GOES_ON;
}

/* One step; what `first` gave each replica. */
static ls_status step(net *n, int whose, int what, float *first)
{
    ls_status st = LS_NO_MEMORY;
    LS_FRAME {
        ls_value *each[MOST];
        for (int r = 0; r < n->replicas; r++) {
            ls_value *both[] = { ls_leaf(numbers(ROWS, IN, 0.1 + r)),
                                 ls_leaf(ls_scalar(LS_F32, told(n, r, whose, what))) };
            each[r] = ls_list(2, both);
        }
        ls_value *out = ls_run(n->s, n->step, ls_per_replica(n->s, each));
        st = ls_error_pending();
        for (int r = 0; out && r < n->replicas; r++)
            ls_copy_out(ls_leaf_tensor(ls_select(out, r)), &first[r], sizeof *first);
    }
    return st;
}

static void weights(const net *n, float *out)
{
    LS_FRAME
        assert_int_equal(ls_copy_out(ls_read(n->w), out, sizeof(float) * IN * OUT), LS_OK);
}

static const ls__early *early_of(const net *n)
{
    return &((const ls__traced_step *)n->step->steps)->early;
}

/* ---- tests ------------------------------------------------------------------------------- */

static void others_do_not_wait(void **state)
{
    (void)state;
    float first[MOST];
    for (int replicas = 2; replicas <= 4 && ls__products_are_here(); replicas += 2)
        for (int whose = replicas / 2 - 1; whose < replicas;
             whose += replicas / 2) { /* the last of a device */
            net *n = open_net(replicas, 2, (ls_mirrored_options){ 0 }, NULL);
            assert_int_equal(step(n, 0, GOES_ON, first), LS_OK);
            const ls__early *early = early_of(n);
            assert_int_equal(early->n_rows, 1);
            stage_of_update = &early->rows[0].work->stage;
            saw_update = false;
            assert_int_equal(step(n, whose, WAITS_FOR_UPDATE, first), LS_OK);
            assert_true(saw_update);
            close_net(n);
        }
}

/* Who waits for an update to be ready helps those who make it so. */
static void who_brings_late_is_helped(void **state)
{
    (void)state;
    float first[MOST];
    for (int replicas = 2; replicas <= 4; replicas++)
        for (int whose = 0; whose < replicas; whose++) {
            net *n = open_net(replicas, 2, (ls_mirrored_options){ 0 }, NULL);
            n->before = true;
            strategy_of_row = n->s;
            for (int i = 0; i < 3; i++) {
                helped_reset();
                assert_int_equal(step(n, whose, WANTS_HELP, first), LS_OK);
                helped_was_done(n->s);
            }
            close_net(n);
        }
}

static void who_reads_late_reads_the_old(void **state)
{
    (void)state;
    float first[MOST], before[IN * OUT], after[IN * OUT];
    for (int replicas = 2; replicas <= 4; replicas += 2)
        for (int whose = 0; whose < replicas; whose += replicas - 1) {
            net *n = open_net(replicas, 2, (ls_mirrored_options){ 0 }, NULL);
            n->reads_weights = true;
            for (int i = 0; i < 2; i++) {
                weights(n, before);
                assert_int_equal(step(n, whose, SLEEPS, first), LS_OK);
                weights(n, after);
                assert_true(before[0] != after[0]);
                for (int r = 0; r < replicas; r++)
                    assert_true(first[r] == before[0]);
            }
            close_net(n);
        }
}

static void who_brings_late_is_waited_for(void **state)
{
    (void)state;
    float first[MOST], want[IN * OUT], got[IN * OUT];
    for (int replicas = 2; replicas <= 4; replicas += 2)
        for (int whose = -1; whose < replicas; whose++) { /* -1: nobody */
            net *n = open_net(replicas, 2, (ls_mirrored_options){ 0 }, NULL);
            n->before = true;
            for (int i = 0; i < 2; i++)
                assert_int_equal(step(n, whose, SLEEPS, first), LS_OK);
            weights(n, whose < 0 ? want : got);
            if (whose >= 0)
                assert_memory_equal(want, got, sizeof got);
            close_net(n);
        }
}

static void who_fails_leaves_all_as_it_was(void **state)
{
    (void)state;
    float first[MOST], before[IN * OUT], after[IN * OUT], other[IN * OUT];
    for (int devices = 1; devices <= 2; devices++)
        for (int replicas = 2; replicas <= 4; replicas += 2)
            for (int whose = 0; whose < replicas; whose++) {
                net *n = open_net(replicas, devices, (ls_mirrored_options){ 0 }, NULL);
                n->row = &first_row;
                assert_int_equal(step(n, 0, GOES_ON, first), LS_OK);
                weights(n, before);
                assert_int_equal(step(n, whose, FAILS, first), LS_INVALID);
                assert_non_null(strstr(ls_error_report(), "it was told to"));
                weights(n, after);
                assert_memory_equal(before, after, sizeof before);
                assert_int_equal(step(n, whose, SLEEPS, first), LS_OK);
                weights(n, after);
                close_net(n);

                n = open_net(replicas, devices, (ls_mirrored_options){ 0 }, NULL);
                assert_int_equal(step(n, 0, GOES_ON, first), LS_OK);
                assert_int_equal(step(n, 0, GOES_ON, first), LS_OK);
                weights(n, other); /* as if the step that failed had not been */
                assert_memory_equal(after, other, sizeof other);
                close_net(n);
            }
}

static void the_same_bits_without(void **state)
{
    (void)state;
    static const ls_mirrored_options ways[] = {
        { .cross_device = LS_CROSS_DEVICE_DIRECT },
        { .cross_device = LS_CROSS_DEVICE_TO_ONE },
        { .cross_device = LS_CROSS_DEVICE_HIERARCHICAL },
        { .num_packs = 3 }, /* sums that may fail: updates come after them */
    };
    float first[MOST], want[IN * OUT], got[IN * OUT];
    for (int replicas = 2; replicas <= 4; replicas++) {
        net *n = open_net(replicas, 1, (ls_mirrored_options){ 0 }, "early");
        for (int i = 0; i < 3; i++)
            assert_int_equal(step(n, 0, GOES_ON, first), LS_OK);
        assert_int_equal(early_of(n)->n_rows, 0);
        weights(n, want);
        close_net(n);
        for (size_t way = 0; way < sizeof ways / sizeof *ways; way++)
            for (int devices = 1; devices <= 2; devices++) {
                n = open_net(replicas, devices, ways[way], NULL);
                for (int i = 0; i < 3; i++)
                    assert_int_equal(step(n, 0, GOES_ON, first), LS_OK);
                assert_int_equal(early_of(n)->n_rows, ls__products_are_here());
                weights(n, got);
                assert_memory_equal(want, got, sizeof got);
                close_net(n);
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_do_not_wait),
        cmocka_unit_test(who_brings_late_is_helped),
        cmocka_unit_test(who_reads_late_reads_the_old),
        cmocka_unit_test(who_brings_late_is_waited_for),
        cmocka_unit_test(who_fails_leaves_all_as_it_was),
        cmocka_unit_test(the_same_bits_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
