/*
 * Replicas on different devices really run at once: each of two waits, in one segment of the
 * step, until the other has come as far. On one device, or with .sequential, nobody comes: the
 * wait has an end, and then the step says that it was alone.
 *
 * Eager steps meet in the C function (from its second run on: the first goes in order), replays
 * in the kernel of an operator.
 */
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include <lockstep.h>

#include "tensor/test_support.h"

/* How long a replica waits for the other: for ever, nearly, where it must come; else not long. */
enum { MUST_COME = 20000, NOBODY_COMES = 30 }; /* ms */

static _Atomic int arrived; /* a bit per replica */
static int patience;

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Whether both came before the wait was over. */
static bool meet(int id)
{
    int64_t end = now_ms() + patience;
    atomic_fetch_or(&arrived, 1 << id);
    while (atomic_load(&arrived) != 3) {
        if (now_ms() > end)
            return false;
        sched_yield();
    }
    return true;
}

/* ---- eager ------------------------------------------------------------------------------------ */

static ls_value *eager_step(ls_value *arguments, void *user)
{
    const bool *waits = user;
    int id = ls_replica_id(ls_get_replica_context());
    (void)arguments;
    return ls_leaf(ls_scalar_int(LS_I32, *waits ? meet(id) : 2));
}

/* ---- replayed: an operator that does it --------------------------------------------------------- */

static ls_status rendezvous_shape(ls_call *c)
{
    return ls_call_output(c, 0, LS_I32, ls_call_rank(c, 0), ls_call_shape(c, 0));
}

static ls_status rendezvous_kernel(ls_call *c)
{
    const int32_t *id = ls_call_in(c, 0);
    int32_t *met = ls_call_out(c, 0);
    *met = patience ? meet(*id) : 2;
    return LS_OK;
}

static const ls_op rendezvous = { .size = sizeof rendezvous,
                                  .name = "test_rendezvous",
                                  .inputs = 1,
                                  .outputs = 1,
                                  .shape = rendezvous_shape,
                                  .kernel = rendezvous_kernel };

static ls_value *traced_step(ls_value *arguments, void *user)
{
    ls_tensor *id = ls_leaf_tensor(arguments);
    (void)user;
    return ls_leaf(ls_apply(&rendezvous, 1, &id, NULL));
}

/* ---- both ------------------------------------------------------------------------------------------ */

/* The sum over both replicas of what the second run gave: 2 when they met. On one device the
 * first gives up (0), and the second finds it gone by, or here at last. */
static int64_t second_run(const ls_mirrored_options *options, bool traced, int wait)
{
    int64_t sum = -1;
    bool waits = false;
    LS_FRAME {
        ls_strategy *s = ls_mirrored(options);
        ls_function *step = ls_trace(traced_step, NULL);
        ls_value *ids = ls_per_replica(s, (ls_value *[]){ ls_leaf(ls_scalar_int(LS_I32, 0)),
                                                          ls_leaf(ls_scalar_int(LS_I32, 1)) });
        for (int run = 0; run < 2; run++) {
            atomic_store(&arrived, 0);
            waits = run == 1;
            patience = run == 1 ? wait : 0;
            ls_value *met =
                traced ? ls_run(s, step, ids) : ls_run_eager(s, eager_step, &waits, ids);
            sum = met ? ls_to_int(ls_reduce(s, LS_SUM, met, LS_NO_AXIS)) : -1;
            assert_int_equal(run == 0 ? sum : 4, 4);
        }
        assert_int_equal(ls_error_pending(), LS_OK);
        ls_function_free(step);
        assert_int_equal(ls_strategy_free(s), LS_OK);
    }
    return sum;
}

static void test_eager_replicas_on_two_devices_run_at_once(void **state)
{
    (void)state;
    assert_int_equal(second_run(LS_MIRRORED(.devices = "/cpu:0,/cpu:1"), false, MUST_COME), 2);
}

static void test_replayed_replicas_on_two_devices_run_at_once(void **state)
{
    (void)state;
    assert_int_equal(second_run(LS_MIRRORED(.devices = "/cpu:0,/cpu:1"), true, MUST_COME), 2);
}

/* Replica 0 waits for nothing; replica 1 then finds that it was there. */
static void test_sequential_replicas_do_not(void **state)
{
    (void)state;
    assert_int_equal(second_run(LS_MIRRORED(.devices = "/cpu:0,/cpu:1", .sequential = true), false,
                                NOBODY_COMES),
                     1);
}

static void test_replicas_of_one_device_take_turns(void **state)
{
    (void)state;
    assert_int_equal(
        second_run(LS_MIRRORED(.devices = "/cpu:0", .replicas = 2), false, NOBODY_COMES), 1);
    assert_int_equal(
        second_run(LS_MIRRORED(.devices = "/cpu:0", .replicas = 2), true, NOBODY_COMES), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_eager_replicas_on_two_devices_run_at_once, clean),
        cmocka_unit_test_setup(test_replayed_replicas_on_two_devices_run_at_once, clean),
        cmocka_unit_test_setup(test_sequential_replicas_do_not, clean),
        cmocka_unit_test_setup(test_replicas_of_one_device_take_turns, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
