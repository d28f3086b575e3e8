/*
 * A step whose loss is not finite: ls_require_finite stops it, nothing was written, and the same
 * step run again under ls_check_numerics says where it began. And the check costs no fusion.
 */
#include <lockstep/extended.h>
#include <lockstep/function.h>
#include <lockstep/ops.h>
#include <lockstep/optimizer.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "strategy/step.h"
#include "tensor/test_support.h"

static void says(const char *part)
{
    if (!strstr(ls_error_text(), part) && !strstr(ls_error_hint(), part))
        fail_msg("'%s' (%s) does not say '%s'", ls_error_text(), ls_error_hint(), part);
}

/* ---- alone ---------------------------------------------------------------------------------------- */

static void gives_what_it_gets_or_fails(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = ls_from(LS_F32, LS_DIMS(3), (float[]){ 1, -2, 3e38f });
        ls_tensor *y = ls_require_finite(x);
        assert_memory_equal(ls_data(y), ls_data(x), 3 * sizeof(float));
        ls_tensor *bad = ls_from(LS_F32, LS_DIMS(3), (float[]){ 1, INFINITY, NAN });
        assert_null(ls_require_finite(bad));
        says("require_finite: an infinity at element 1 of f32[3]");
        says("ls_check_numerics");
        failed(LS_NOT_FINITE);
        assert_null(ls_require_finite(NULL));
        failed(LS_INVALID);
    }
}

static ls_value *unused(ls_value *x, void *user)
{
    (void)user;
    ls_require_finite(ls_log(ls_leaf_tensor(x)));
    return ls_leaf(ls_neg(ls_leaf_tensor(x)));
}

static void stays_in_a_step_that_does_not_use_it(void **state)
{
    (void)state;
    ls_function *f = ls_trace(unused, NULL);
    LS_FRAME {
        assert_non_null(ls_function_call(f, ls_leaf(ls_scalar(LS_F32, 1))));
        assert_null(ls_function_call(f, ls_leaf(ls_scalar(LS_F32, -1))));
        says("require_finite: NaN at element 0 of f32[]");
        failed(LS_NOT_FINITE);
        assert_non_null(ls_function_call(f, ls_leaf(ls_scalar(LS_F32, 2))));
    }
    ls_function_free(f);
}

/* ---- a small convolutional net on replicas ------------------------------------------------------------ */

enum { KERNEL, KERNEL_BIAS, WEIGHTS, BIAS, VARIABLES, SIDE = 8 };

typedef struct trained {
    ls_strategy *s;
    ls_variable *v[VARIABLES];
    ls_optimizer *adam;
    bool checks;
    ls_function *step;
} trained;

static ls_tensor *logits_of(const trained *t, ls_tensor *x)
{
    ls_tensor *y = ls_add(ls_conv2d(x, ls_read(t->v[KERNEL]), NULL), ls_read(t->v[KERNEL_BIAS]));
    y = ls_flatten_rows(ls_max_pool2d(ls_relu(y), 2, 2, LS_VALID));
    return ls_dense(y, ls_read(t->v[WEIGHTS]), ls_read(t->v[BIAS]));
}

static ls_value *train_step(ls_value *batch, void *user)
{
    trained *t = user;
    ls_tape *tape = ls_tape_open();
    ls_tensor *logits = logits_of(t, ls_leaf_tensor(ls_child(batch, 0)));
    ls_tensor *losses = ls_sparse_softmax_xent(logits, ls_leaf_tensor(ls_child(batch, 1)));
    ls_tensor *loss = ls_mean(losses, LS_ALL_AXES, false);
    ls_tensor *seen = t->checks ? ls_require_finite(loss) : loss;
    ls_minimize(t->adam, tape, loss, VARIABLES, t->v);
    return ls_leaf(seen);
}

static trained *open_net(int replicas, const char *devices, bool checks)
{
    trained *t = calloc(1, sizeof *t);
    t->s = ls_mirrored(LS_MIRRORED(.devices = devices, .replicas = replicas));
    t->checks = checks;
    LS_FRAME
        LS_SCOPE (t->s) {
            t->v[KERNEL] = ls_variable_new("kernel", ls_full(LS_F32, LS_DIMS(3, 3, 1, 4), 1), true);
            t->v[KERNEL_BIAS] = ls_variable_new("kernel_bias", ls_zeros(LS_F32, LS_DIMS(4)), true);
            t->v[WEIGHTS] = ls_variable_new("weights", ls_full(LS_F32, LS_DIMS(36, 10), 0.1), true);
            t->v[BIAS] = ls_variable_new("bias", ls_zeros(LS_F32, LS_DIMS(10)), true);
        }
    t->adam = ls_adam(NULL);
    t->step = ls_trace_with(LS_TRACE(.name = "train"), train_step, t);
    if (!t->step || !t->v[BIAS])
        fail_msg("%s", ls_error_report());
    return t;
}

static void close_net(trained *t)
{
    ls_function_free(t->step);
    for (int i = 0; i < VARIABLES; i++)
        ls_variable_free(t->v[i]);
    ls_optimizer_free(t->adam);
    assert_int_equal(ls_strategy_free(t->s), LS_OK);
    free(t);
}

/* 4 images, every pixel of which is `pixel`. */
static ls_value *run(trained *t, double pixel)
{
    ls_tensor *x = ls_full(LS_F32, LS_DIMS(4, SIDE, SIDE, 1), pixel);
    ls_tensor *y = ls_from(LS_I32, LS_DIMS(4), (int32_t[]){ 0, 1, 2, 9 });
    return ls_run(t->s, t->step, ls_tensors(2, (ls_tensor *[]){ x, y }));
}

/* What the variables hold, in one number. */
static uint64_t digest(const trained *t)
{
    uint64_t sum = 0;
    for (int i = 0; i < VARIABLES; i++) {
        ls_tensor *v = ls_read(t->v[i]);
        const unsigned char *bytes = ls_data(v);
        for (size_t k = 0; k < ls_size_in_bytes(v); k++)
            sum = (sum ^ bytes[k]) * 0x100000001B3u;
    }
    return sum;
}

static void nothing_happened(const trained *t, uint64_t before, int64_t steps)
{
    assert_true(digest(t) == before);
    assert_int_equal(ls_steps(t->s), steps);
    assert_int_equal(ls_iterations(t->adam), steps);
}

static void a_bad_loss_stops_the_step_and_can_be_looked_into(void **state)
{
    (void)state;
    static const struct {
        const char *devices;
        int replicas;
    } cases[] = { { "/cpu:0", 1 }, { "/cpu:0", 2 }, { "/cpu:0,/cpu:1", 2 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        trained *t = open_net(cases[i].replicas, cases[i].devices, true);
        LS_FRAME {
            assert_non_null(run(t, 0.5));
            const uint64_t before = digest(t);
            assert_null(run(t, 3e38)); /* products of it overflow */
            says("train: operator ");
            says("require_finite: ");
            failed(LS_NOT_FINITE);
            nothing_happened(t, before, 1);
            ls_check_numerics(LS_NUMERICS_NAN_AND_INF);
            assert_null(run(t, 3e38));
            ls_check_numerics(LS_NUMERICS_OFF);
            says("train: operator ");
            says(": conv2d: made an infinity from finite inputs, at element ");
            failed(LS_INVALID);
            nothing_happened(t, before, 1);
            assert_non_null(run(t, 0.5)); /* and on it goes */
            assert_int_equal(ls_steps(t->s), 2);
        }
        close_net(t);
    }
}

static void what_was_bad_before_is_told_apart(void **state)
{
    (void)state;
    for (int replicas = 1; replicas <= 2; replicas++) {
        trained *t = open_net(replicas, "/cpu:0", true);
        ls_variable *bias = t->v[KERNEL_BIAS];
        LS_FRAME {
            assert_non_null(run(t, 0.5));
            ls_tensor *good = ls_read(bias);
            float *numbers = ls__frame_alloc((size_t)ls_count(good) * sizeof *numbers);
            memcpy(numbers, ls_data(good), (size_t)ls_count(good) * sizeof *numbers);
            numbers[3] = NAN;
            ls_check_numerics(LS_NUMERICS_NAN_AND_INF);
            LS_SCOPE (t->s)
                ls_assign(bias, ls_from(LS_F32, ls_rank(good), ls_shape(good), numbers));
            const uint64_t before = digest(t);
            assert_null(run(t, 0.5));
            says("require_finite: NaN");
            says("variable 'kernel_bias' had NaN at element 3 before the step");
            failed(LS_NOT_FINITE);
            nothing_happened(t, before, 1);
            LS_SCOPE (t->s)
                ls_assign(bias, good);
            assert_null(run(t, INFINITY));
            says("argument 0 has an infinity at element 0");
            failed(LS_NOT_FINITE);
            assert_non_null(run(t, 0.5));
            ls_check_numerics(LS_NUMERICS_OFF);
        }
        close_net(t);
    }
}

/* ---- fusions ---------------------------------------------------------------------------------------------- */

/* The rows of a plan, one after the other, without the check. */
static void rows_of(const ls__plan *plan, char *out, size_t room)
{
    size_t n = 0;
    out[0] = 0;
    for (int i = 0; i < plan->n_instructions; i++) {
        const char *name = plan->instructions[i].node->op->name;
        if (strcmp(name, "require_finite") != 0)
            n += (size_t)snprintf(out + n, n < room ? room - n : 0, "%s ", name);
        assert_true(n < room);
    }
}

/* And there are fused ones among them. */
static void same_rows(const ls__plan *with, const ls__plan *without, const char *fused)
{
    static char a[1 << 14], b[1 << 14];
    rows_of(with, a, sizeof a);
    rows_of(without, b, sizeof b);
    assert_string_equal(a, b);
    assert_non_null(strstr(a, fused));
}

static void costs_no_fusion(void **state)
{
    (void)state;
    for (int replicas = 1; replicas <= 2; replicas++) {
        trained *with = open_net(replicas, "/cpu:0", true);
        trained *without = open_net(replicas, "/cpu:0", false);
        LS_FRAME {
            assert_non_null(run(with, 0.5));
            assert_non_null(run(without, 0.5));
        }
        const ls__traced_step *a = with->step->steps, *b = without->step->steps;
        const ls__plan *p = a->programs[0].plan, *q = b->programs[0].plan;
        same_rows(p, q, "sparse_softmax_xent_both");
        assert_int_equal(p->n_instructions, q->n_instructions + 1);
        assert_int_equal(a->n_meetings, replicas > 1);
        if (replicas > 1)
            same_rows(a->meetings[0].plan, b->meetings[0].plan, "adam_reduced");
        assert_int_equal(a->late_can_fail, b->late_can_fail);
        assert_int_equal(p->n_instructions - p->tail, q->n_instructions - q->tail);
        close_net(with);
        close_net(without);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(gives_what_it_gets_or_fails, clean),
        cmocka_unit_test_setup(stays_in_a_step_that_does_not_use_it, clean),
        cmocka_unit_test_setup(a_bad_loss_stops_the_step_and_can_be_looked_into, clean),
        cmocka_unit_test_setup(what_was_bad_before_is_told_apart, clean),
        cmocka_unit_test_setup(costs_no_fusion, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
