/*
 * A device that has done its replicas takes over parts of what another one is still at
 * (os/help.h), wherever it waits. That this changes no bit of what operators compute is tested
 * beside those (kernels/conv_pool_test.c, winograd_test.c).
 */
#include <lockstep/function.h>
#include <lockstep/operator.h>
#include <lockstep/ops.h>
#include <lockstep/strategy.h>

#include "collective/placement.h"
#include "tensor/test_support.h"

#include "strategy/helped_test_support.h"

enum { MOST = 4, ROUNDS = 20 };

/* ---- a row of this test: work that wants help, or waits until there is some -------------------- */

enum { GOES_ON, WANTS_HELP, COMES_EARLY };

static const ls_strategy *strategy_of_row;

static ls_status like_first(ls_call *c)
{
    return ls_call_output(c, 0, LS_F32, 0, NULL);
}

static ls_status work_kernel(ls_call *c)
{
    const float what = *(const float *)ls_call_in(c, 0);
    if (what == WANTS_HELP)
        helped_work(strategy_of_row);
    if (what == COMES_EARLY)
        helped_wait_for_work();
    *(float *)ls_call_out(c, 0) = what;
    return LS_OK;
}

static const ls_op work_row = { .size = sizeof work_row,
                                .name = "work",
                                .inputs = 1,
                                .outputs = 1,
                                .shape = like_first,
                                .kernel = work_kernel };

static ls_value *work(ls_value *what, void *user)
{
    const bool *meet = user;
    ls_tensor *x = ls_leaf_tensor(what);
    ls_value *done = ls_leaf(ls_apply(&work_row, 1, &x, NULL));
    return *meet ? ls_all_reduce(ls_get_replica_context(), LS_SUM, done) : done;
}

/* ---- steps ------------------------------------------------------------------------------------- */

/* `late`: the replica that wants help. */
static void step(ls_strategy *s, ls_function *f, int replicas, int late)
{
    ls_value *each[MOST];
    for (int r = 0; r < replicas; r++) {
        const bool elsewhere = ls__block_of(replicas, 2, r) != ls__block_of(replicas, 2, late);
        const int what = r == late ? WANTS_HELP : elsewhere ? COMES_EARLY : GOES_ON;
        each[r] = ls_leaf(ls_scalar(LS_F32, what));
    }
    helped_reset();
    if (!ls_run(s, f, ls_per_replica(s, each)))
        fail_msg("%s", ls_error_report());
    helped_was_done(s);
}

static void late_replicas_are_helped(bool meet)
{
    for (int replicas = 2; replicas <= MOST; replicas++) {
        ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0,/cpu:1", .replicas = replicas));
        strategy_of_row = s;
        ls_function *f = ls_trace(work, &meet);
        for (int i = 0; i < ROUNDS; i++)
            for (int late = 0; late < replicas; late++)
                LS_FRAME
                    step(s, f, replicas, late);
        ls_function_free(f);
        assert_int_equal(ls_strategy_free(s), LS_OK);
    }
}

static void at_the_end_of_a_step(void **state)
{
    (void)state;
    late_replicas_are_helped(false);
}

static void before_a_meeting(void **state)
{
    (void)state;
    late_replicas_are_helped(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_the_end_of_a_step),
        cmocka_unit_test(before_a_meeting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
