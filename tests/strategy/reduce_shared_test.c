/*
 * Sums that devices share: the same bits whoever computes them, whatever the floating-point state of
 * a thread, and whether they are folded, packed, stored or applied at once.
 */
#include <lockstep/optimizer.h>

#include "strategy/strategy_support.h"
#include "tensor/value.h"

enum { COUNT = 20000, REPLICAS = 4, DENORMAL_FROM = 100 };

/* The sum of two neighbours is too small for a normal number, from some element on. */
static ls_value *part_of(int replica, int replicas, void *user)
{
    (void)replicas;
    (void)user;
    static float x[COUNT];
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)((i * 37 + replica * 101) % 1009) * 0.01f * (replica % 2 ? -1.0f : 1.7f);
        if (i >= DENORMAL_FROM)
            x[i] = replica % 2 ? -1.5e-38f : 2e-38f;
    }
    ls_tensor *t = ls_from(LS_F32, LS_DIMS(COUNT), x);
    return ls_tensors(1, &t);
}

typedef struct net {
    ls_variable *w;
    ls_optimizer *sgd;
} net;

/* The sum itself, and weights that it was applied to. */
static ls_value *step(ls_value *arguments, void *user)
{
    net *n = user;
    ls_tensor *x = ls_item(arguments, 0);
    ls_tape *tape = ls_tape_open();
    ls_tensor *loss = ls_sum(ls_mul(ls_read(n->w), x), LS_ALL_AXES, false);
    ls_minimize(n->sgd, tape, loss, 1, &n->w);
    return ls_all_reduce(ls_get_replica_context(), LS_SUM, ls_leaf(x));
}

typedef struct result {
    float sum[COUNT], w[COUNT];
} result;

static void run(const ls_mirrored_options *options, bool traced, result *out)
{
    ls_strategy *s = ls_mirrored(options);
    GAVE(s);
    net n = { .sgd = ls_sgd(LS_SGD(.rate = 1)) };
    LS_SCOPE (s)
        n.w = ls_variable_new("w", ls_zeros(LS_F32, LS_DIMS(COUNT)), true);
    ls_function *f = ls_trace(step, &n);
    LS_FRAME {
        ls_value *parts = ls_distribute_values(s, part_of, NULL);
        ls_value *sums = traced ? ls_run(s, f, parts) : ls_run_eager(s, step, &n, parts);
        GAVE(sums);
        ls_tensor *sum = ls__leaf_component(sums, REPLICAS - 1);
        assert_int_equal(ls_copy_out(sum, out->sum, sizeof out->sum), LS_OK);
        assert_int_equal(ls_copy_out(ls_read(n.w), out->w, sizeof out->w), LS_OK);
    }
    ls_function_free(f);
    ls_variable_free(n.w);
    ls_optimizer_free(n.sgd);
    free_strategy(s);
}

static void the_same_bits_on_every_thread(void **state)
{
    (void)state;
    static const char *const devices[] = { "/cpu:0", "/cpu:0,/cpu:1", "/cpu:0,/cpu:1,/cpu:2",
                                           "/cpu:0,/cpu:1,/cpu:2,/cpu:3" };
    static const ls_cross_device how[] = { LS_CROSS_DEVICE_DIRECT, LS_CROSS_DEVICE_TO_ONE,
                                           LS_CROSS_DEVICE_HIERARCHICAL };
    static result want, got;
    run(LS_MIRRORED(.devices = devices[0], .replicas = REPLICAS), false, &want);
    assert_true(want.sum[0] != 0 && want.sum[1] != 0);
    for (int i = DENORMAL_FROM; i < COUNT; i++) /* denormals are zero */
        assert_true(want.sum[i] == 0);
    for (int i = 0; i < COUNT; i++)
        assert_true(want.w[i] == -want.sum[i]);
    for (int d = 0; d < 4; d++)
        for (int k = 0; k < 3; k++)
            for (int way = 0; way < 4; way++) {
                run(LS_MIRRORED(.devices = devices[d], .replicas = REPLICAS, .cross_device = how[k],
                                .num_packs = way & 2 ? 7 : 0),
                    way & 1, &got);
                assert_memory_equal(&got, &want, sizeof want);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_same_bits_on_every_thread, fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
