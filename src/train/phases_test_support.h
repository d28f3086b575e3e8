/*
 * For tests of phases: a training step in which one operator sleeps, there and back, so that
 * phases have times that are known: as long, or longer.
 */
#ifndef LS__TRAIN_PHASES_TEST_SUPPORT_H
#define LS__TRAIN_PHASES_TEST_SUPPORT_H

#include <lockstep/input.h>
#include <lockstep/operator.h>
#include <lockstep/ops.h>
#include <lockstep/optimizer.h>
#include <lockstep/profile.h>
#include <string.h>
#include <time.h>

#include "os/clock.h"
#include "tensor/test_support.h"

#define NAP 0.001 /* seconds */

static inline void nap(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = (long)(NAP * 1e9) }, NULL);
}

static inline ls_status nap_shape(ls_call *c)
{
    return ls_call_output(c, 0, LS_F32, ls_call_rank(c, 0), ls_call_shape(c, 0));
}

static inline ls_status nap_kernel(ls_call *c)
{
    nap();
    memcpy(ls_call_out(c, 0), ls_call_in(c, 0), sizeof(float) * (size_t)ls_call_count(c, 0));
    return LS_OK;
}

static inline ls_status nap_gradient(ls_grad *g);
static const ls_op nap_row = { .size = sizeof(ls_op),
                               .name = "nap",
                               .inputs = 1,
                               .outputs = 1,
                               .shape = nap_shape,
                               .kernel = nap_kernel,
                               .gradient = nap_gradient };

static inline ls_tensor *napping(ls_tensor *x)
{
    return ls_apply(&nap_row, 1, &x, NULL);
}

static inline ls_status nap_gradient(ls_grad *g)
{
    return ls_grad_give(g, 0, napping(ls_grad_output(g, 0)));
}

/* ---- what is trained ------------------------------------------------------------------------- */

enum { WIDTH = 64 };

typedef struct world {
    ls_strategy *strategy;
    ls_variable *w, *seen; /* seen: each replica's own, written by the forward pass */
    ls_optimizer *sgd;
    ls_function *train, *test;
} world;

/* x: f32[rows, WIDTH]. */
static inline ls_value *world_train(ls_value *x, void *user)
{
    world *t = user;
    ls_tape *tape = ls_tape_open();
    ls_tensor *y = napping(ls_matmul(ls_leaf_tensor(x), ls_read(t->w)));
    ls_assign_add(t->seen, ls_scalar(LS_F32, 1));
    ls_tensor *loss = ls_mean(ls_square(y), LS_ALL_AXES, false);
    ls_minimize(t->sgd, tape, loss, 1, &t->w);
    return ls_leaf(loss);
}

static inline ls_value *world_test(ls_value *x, void *user)
{
    world *t = user;
    return ls_leaf(
        ls_mean(napping(ls_matmul(ls_leaf_tensor(x), ls_read(t->w))), LS_ALL_AXES, false));
}

static inline world *world_open(const char *devices, int replicas, const ls_sgd_options *sgd)
{
    static world t;
    t = (world){ .strategy = ls_mirrored(
                     LS_MIRRORED(.devices = devices, .replicas = replicas, .prefetch = -1)) };
    LS_FRAME
        LS_SCOPE (t.strategy) {
            t.w = ls_variable_new("w", ls_full(LS_F32, LS_DIMS(WIDTH, 4), 0.5), true);
            t.seen = ls_variable_with(
                LS_VARIABLE(.synchronization = LS_SYNC_ON_READ, .aggregation = LS_AGGREGATE_SUM),
                "seen", ls_scalar(LS_F32, 0));
        }
    t.sgd = ls_sgd(sgd);
    t.train = ls_trace(world_train, &t);
    t.test = ls_trace(world_test, &t);
    if (!t.train || !t.test || !t.sgd || !t.seen)
        fail_msg("%s", ls_error_report());
    return &t;
}

static inline void world_run(world *t, ls_function *f, int times)
{
    for (int i = 0; i < times; i++)
        LS_FRAME {
            ls_value *x = ls_leaf(ls_full(LS_F32, LS_DIMS(8, WIDTH), 0.01));
            if (!ls_run(t->strategy, f, x))
                fail_msg("%s", ls_error_report());
        }
}

static inline void world_close(world *t)
{
    ls_function_free(t->train);
    ls_function_free(t->test);
    ls_optimizer_free(t->sgd);
    ls_variable_free(t->w);
    ls_variable_free(t->seen);
    assert_int_equal(ls_strategy_free(t->strategy), LS_OK);
}

static inline double seconds_now(void)
{
    return (double)ls__now() / 1e9;
}

#endif
