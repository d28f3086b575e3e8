/*
 * What many replicas cost in memory: weights and slots are there once; replicas that take turns on
 * a device share its arena and packed weights, and fold their gradients (rule B), so a device
 * of r replicas has at most 2 log2(r) + 2 buffers for them.
 */
#include <lockstep/optimizer.h>

#include "strategy/step.h"
#include "strategy/strategy_support.h"
#include "tensor/tensor.h"
#include "trace/function.h"

enum { WIDE = 24, ROWS = 4, VARIABLES = 4 };

typedef struct net {
    ls_variable *v[VARIABLES];
    ls_optimizer *adam;
    bool eager;
    const void *seen[MOST_REPLICAS]; /* where each replica finds weight 0 */
} net;

static void make_net(net *n, ls_strategy *s)
{
    ls_random_seed(3);
    LS_SCOPE (s) {
        n->v[0] = ls_variable_new("w0", ls_glorot_uniform(LS_F32, LS_DIMS(WIDE, WIDE)), true);
        n->v[1] = ls_variable_new("b0", ls_zeros(LS_F32, LS_DIMS(WIDE)), true);
        n->v[2] = ls_variable_new("w1", ls_glorot_uniform(LS_F32, LS_DIMS(WIDE, 3)), true);
        n->v[3] = ls_variable_new("b1", ls_zeros(LS_F32, LS_DIMS(3)), true);
    }
    n->adam = ls_adam(NULL);
    GAVE(n->adam);
}

static void free_net(net *n)
{
    for (int i = 0; i < VARIABLES; i++)
        ls_variable_free(n->v[i]);
    ls_optimizer_free(n->adam);
}

static ls_value *train_step(ls_value *batch, void *user)
{
    net *n = user;
    int id = ls_replica_id(ls_get_replica_context());
    ls_tape *tape = ls_tape_open();
    ls_tensor *w = ls_read(n->v[0]);
    ls_tensor *h = ls_relu(ls_dense(ls_item(batch, 0), w, ls_read(n->v[1])));
    ls_tensor *y = ls_dense(h, ls_read(n->v[2]), ls_read(n->v[3]));
    ls_tensor *loss = ls_mean(ls_mul(y, y), LS_ALL_AXES, false);
    if (n->eager)
        n->seen[id] = ls__data(w);
    ls_minimize(n->adam, tape, loss, VARIABLES, n->v);
    return ls_leaf(loss);
}

static int log2_of(int n)
{
    int k = 0;
    while (n >> (k + 1))
        k++;
    return k;
}

static ls_value *batch_for(int replica, int replicas, void *user)
{
    (void)replicas;
    (void)user;
    ls_tensor *x = ls_full(LS_F32, LS_DIMS(ROWS, WIDE), 0.25 * (replica + 1));
    return ls_tensors(1, &x);
}

static void run_once(ls_strategy *s, ls_function *f)
{
    LS_FRAME
        GAVE(ls_run(s, f, ls_distribute_values(s, batch_for, NULL)));
}

static void buffers_of(int replicas, int devices)
{
    ls_strategy *s = replicas_on(replicas, devices);
    net n = { 0 };
    make_net(&n, s);
    ls_function *f = ls_trace(train_step, &n);
    run_once(s, f);
    const ls__traced_step *step = f->steps;
    assert_non_null(step);
    assert_int_equal(step->n_meetings, replicas > 1);
    for (int d = 0; d < devices && replicas > 1; d++) {
        int r = replicas / devices + (d < replicas % devices);
        const ls__fold_stack *stack = &step->memory[d].folds[0];
        if (stack->n_buffers < 1 || stack->n_buffers > 2 * log2_of(r) + 2)
            fail_msg("%d buffers for %d replicas of device %d", stack->n_buffers, r, d);
    }
    /* All gradients are made where they are folded. */
    for (int i = 0; i < step->programs[0].plan->n_lent; i++)
        assert_true(step->programs[0].plan->lent[i].placed);
    assert_int_equal(step->programs[0].plan->n_lent, replicas > 1 ? VARIABLES : 0);
    ls_function_free(f);
    free_net(&n);
    free_strategy(s);
}

static void gradients_are_folded(void **state)
{
    (void)state;
    static const int replicas[] = { 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 33, 64 };
    for (size_t i = 0; i < sizeof replicas / sizeof *replicas; i++)
        for (int d = 1; d <= 3 && d <= replicas[i]; d++)
            buffers_of(replicas[i], d);
}

/* What one traced step keeps, beside variables and slots. */
static size_t kept_by_step(int replicas, int devices)
{
    ls_strategy *s = replicas_on(replicas, devices);
    net n = { 0 };
    make_net(&n, s);
    ls_function *f = ls_trace(train_step, &n);
    run_once(s, f); /* slots */
    size_t before, after, peak;
    ls_memory(&after, &peak);
    ls_function_free(f);
    ls_memory(&before, &peak);
    free_net(&n);
    free_strategy(s);
    return after - before;
}

static void arenas_are_shared(void **state)
{
    (void)state;
    size_t one = kept_by_step(1, 1), eight = kept_by_step(8, 1);
    /* One arena and one set of packed weights; of gradients four buffers instead of one; results
     * and small things of eight replicas. */
    size_t gradients = sizeof(float) * (WIDE * WIDE + WIDE + WIDE * 3 + 3) + 4 * 64;
    if (eight > one + 4 * gradients + 8 * 1024)
        fail_msg("a step of 1 replica keeps %zu bytes, of 8 %zu; gradients are %zu", one, eight,
                 gradients);
}

static void weights_and_slots_are_there_once(void **state)
{
    (void)state;
    size_t bytes[2];
    for (int i = 0; i < 2; i++) {
        ls_strategy *s = replicas_on(i ? MOST_REPLICAS : 1, 1);
        size_t before, after, peak;
        ls_memory(&before, &peak);
        net n = { .eager = true };
        make_net(&n, s);
        for (int turn = 0; turn < 2; turn++)
            LS_FRAME
                GAVE(ls_run_eager(s, train_step, &n, ls_distribute_values(s, batch_for, NULL)));
        ls_memory(&after, &peak);
        bytes[i] = after - before;
        const void *first = n.seen[0];
        assert_non_null(first);
        for (int r = 0; i && r < MOST_REPLICAS; r++)
            assert_ptr_equal(n.seen[r], first);
        free_net(&n);
        free_strategy(s);
    }
    assert_int_equal(bytes[0], bytes[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(gradients_are_folded, fresh),
        cmocka_unit_test_setup(arenas_are_shared, fresh),
        cmocka_unit_test_setup(weights_and_slots_are_there_once, fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
