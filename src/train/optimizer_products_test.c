/*
 * Gradients of dense layers inside the update: where that is done, and that no bit changes, for every
 * optimizer, any number of replicas and devices, and replicas with batches of their own sizes.
 */
#include <lockstep/function.h>
#include <lockstep/ops.h>
#include <lockstep/optimizer.h>
#include <lockstep/strategy.h>
#include <lockstep/tape.h>
#include <math.h>
#include <string.h>

#include "strategy/step.h"
#include "tensor/test_support.h"
#include "train/events.h"
#include "train/products_test_support.h"

enum { IN = 530, MOST_OUT = 544, LAST = 48, STEPS = 2, MOST = 5 };

/* Columns of the weights: many and few, in whole vectors, or not. */
static const int64_t widths[] = { MOST_OUT, 515, 64, 41 };
static int64_t out_columns;

/* What comes in is mostly zeros, which are left out; one number is infinite, so that they are not. */
static bool zeros, infinite;

/* There is a second layer: two updates by products. */
static bool deep;

typedef struct net {
    ls_variable *w, *b, *last;
    ls_optimizer *optimizer;
} net;

/* A dense layer, or two; what comes in is computed, so that it is nobody's but the step's. */
static ls_value *train(ls_value *batch, void *user)
{
    net *n = user;
    ls_tape *tape = ls_tape_open();
    ls_tensor *x = ls_leaf_tensor(batch);
    x = zeros ? ls_relu(ls_sub(x, ls_scalar(LS_F32, 0.5))) : ls_tanh(x);
    ls_tensor *y = ls_dense(x, ls_read(n->w), ls_read(n->b));
    if (deep)
        y = ls_matmul(ls_tanh(y), ls_read(n->last));
    ls_tensor *loss = ls_mean(ls_square(y), LS_ALL_AXES, false);
    ls_minimize(n->optimizer, tape, loss, deep ? 3 : 2, (ls_variable *[]){ n->w, n->b, n->last });
    return ls_leaf(loss);
}

static ls_optimizer *optimizer_of(int kind)
{
    switch (kind) {
    case 0:
        return ls_sgd(LS_SGD(.rate = 0.1));
    case 1:
        return ls_sgd(LS_SGD(.rate = 0.1, .momentum = 0.9, .nesterov = true));
    case 2:
        return ls_adam(NULL);
    case 3:
        return ls_adamw(LS_ADAM(.rate = 0.01, .weight_decay = 0.1));
    default:
        return ls_adam(LS_ADAM(.clip_global_norm = 0.5)); /* wants the sums themselves */
    }
}

static ls_tensor *numbers(int64_t rows, int64_t columns, double by, bool with_infinity)
{
    float *x = ls__frame_alloc(sizeof *x * (size_t)(rows * columns + 1));
    for (int64_t i = 0; i < rows * columns; i++)
        x[i] = (float)sin((double)i * by);
    if (with_infinity)
        x[0] = INFINITY;
    return ls_from(LS_F32, LS_DIMS(rows, columns), x);
}

static ls_value *batch_of(ls_strategy *s, int v, const int64_t *rows, int step)
{
    ls_value *each[MOST];
    for (int r = 0; r < v; r++)
        each[r] = ls_leaf(numbers(rows[r], IN, 0.1 + r + 0.01 * step, infinite && r == 0));
    return ls_per_replica(s, each);
}

/* The weights after some steps; how many updates took products. */
static int run(int kind, int v, int devices, const int64_t *rows, const char *off, float *out)
{
    ls_strategy *s = ls_mirrored(
        LS_MIRRORED(.devices = devices == 1 ? "/cpu:0" : "/cpu:0,/cpu:1", .replicas = v));
    net n = { .optimizer = NULL };
    int found = 0;
    LS_FRAME {
        LS_SCOPE (s) {
            n.w = ls_variable_new("w", ls_scale(numbers(IN, out_columns, 0.7, false), 0.1), true);
            n.last = ls_variable_new("last", numbers(out_columns, LAST, 0.3, false), true);
            n.b = ls_variable_new("b", ls_zeros(LS_F32, LS_DIMS(out_columns)), true);
            n.optimizer = optimizer_of(kind);
        }
        ls_function *step = ls_trace_with(LS_TRACE(.off = off), train, &n);
        for (int i = 0; i < STEPS; i++)
            LS_FRAME
                assert_non_null(ls_run(s, step, batch_of(s, v, rows, i)));
        const ls__traced_step *traced = step->steps;
        const ls__plan *plan = traced->early.n_rows > 0
                                   ? traced->early.piece.plan
                                   : traced->meetings[traced->n_meetings - 1].plan;
        for (int i = 0; i < plan->n_instructions; i++)
            found += strstr(plan->instructions[i].node->op->name, "_products") != NULL;
        assert_non_null(strstr(ls_function_dump(step, LS_DUMP_TEXT, false), "matmul"));
        ls__buffer picture = { 0 }; /* of what was traced: without what has moved */
        assert_int_equal(ls__graph_def("the test", step, &picture), LS_OK);
        ls__buffer_free(&picture);
        const size_t floats = (size_t)(IN * out_columns);
        ls_copy_out(ls_read(n.w), out, sizeof(float) * floats);
        ls_copy_out(ls_read(n.last), out + floats, sizeof(float) * (size_t)out_columns * LAST);
        ls_function_free(step);
    }
    if (ls_error_pending())
        fail_msg("%s", ls_error_report());
    ls_variable_free(n.w);
    ls_variable_free(n.b);
    ls_variable_free(n.last);
    ls_optimizer_free(n.optimizer);
    ls_strategy_free(s);
    return found;
}

static float want[(IN + LAST) * MOST_OUT], got[(IN + LAST) * MOST_OUT];

/* One NaN is like any other. */
static bool same(void)
{
    bool all = true;
    for (int64_t i = 0; i < (IN + LAST) * out_columns; i++)
        all &= memcmp(&want[i], &got[i], sizeof *got) == 0 || (isnan(want[i]) && isnan(got[i]));
    return all;
}

static void compare_width(int kind, int v, const int64_t *rows, bool fits)
{
    assert_int_equal(run(kind, v, 1, rows, "products", want), 0);
    for (int devices = 1; devices <= 2; devices++) {
        assert_int_equal(run(kind, v, devices, rows, NULL, got),
                         ls__products_are_here() && fits ? 1 + deep : 0);
        if (!same())
            fail_msg("other bits: kind %d, %d replicas on %d devices, %d columns", kind, v, devices,
                     (int)out_columns);
    }
}

static void compare(int kind, int v, const int64_t *rows, bool fits)
{
    const size_t n = sizeof widths / sizeof *widths;
    for (size_t i = ls__products_are_here() ? 0 : n - 1; i < n; i++) {
        out_columns = widths[i];
        compare_width(kind, v, rows, fits);
    }
}

static void every_optimizer(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++)
        compare(kind, 2, (const int64_t[]){ 32, 32 }, true);
}

static void any_number_of_replicas(void **state)
{
    (void)state;
    compare(2, 2, (const int64_t[]){ 16, 70 }, true);
    compare(2, 3, (const int64_t[]){ 32, 17, 40 }, true);
    compare(2, 5, (const int64_t[]){ 16, 16, 16, 16, 20 }, true);
}

static void two_layers(void **state)
{
    (void)state;
    deep = true;
    out_columns = MOST_OUT;
    for (int kind = 0; kind < 4 && ls__products_are_here(); kind++)
        compare_width(kind, 2, (const int64_t[]){ 32, 32 }, true);
    if (ls__products_are_here())
        compare_width(2, 3, (const int64_t[]){ 32, 17, 40 }, true);
    deep = false;
}

static void without_zeros(void **state)
{
    (void)state;
    zeros = true;
    every_optimizer(state);
    any_number_of_replicas(state);
    infinite = true;
    compare(2, 2, (const int64_t[]){ 32, 32 }, true);
    assert_true(isnan(want[1]));
    zeros = infinite = false;
}

/* A norm wants the gradient itself, and few rows are others' work. */
static void where_it_is_not(void **state)
{
    (void)state;
    compare(4, 2, (const int64_t[]){ 32, 32 }, false);
    compare(2, 2, (const int64_t[]){ 32, 5 }, false);
    compare(2, 2, (const int64_t[]){ 32, 0 }, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_optimizer), cmocka_unit_test(any_number_of_replicas),
        cmocka_unit_test(two_layers),      cmocka_unit_test(without_zeros),
        cmocka_unit_test(where_it_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
