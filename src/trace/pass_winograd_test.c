/*
 * Convolutions by Winograd's algorithm: which of them go that way, alone, in pairs of gradients and with their
 * pools; what stays where somebody else wants a part of it; and that results stay, up to rounding.
 */
#include "kernels/threads.h"
#include "kernels/winograd.h"
#include "ops/conv.h"
#include "ops/pool.h"
#include "trace/pass.h"
#include "trace/test_run.h"
#include "trace/work.h"

#include <lockstep/ops.h>
#include <math.h>

enum { MOST = 6, SIDE = 9, ROWS = 5 };

typedef struct sum_attrs {
    ls_ints axes;
    int64_t keep;
} sum_attrs;

typedef struct step {
    ls__graph *g;
    int x, w, bias;   /* arguments */
    int y, p, places; /* forward */
    int dy, du;       /* backward: the argument, and what a pool gives back */
    ls__conv_act_attrs conv;
    ls_ints x_dims, w_dims, y_dims;
} step;

static int argument(step *s, const ls_ints *dims)
{
    ls__spec spec;
    assert_int_equal(ls__spec_make(&spec, "test", LS_F32, (int)dims->count, dims->at), LS_OK);
    return ls__graph_input(s->g, &spec);
}

static step begin_with(int64_t c, int64_t oc, int64_t k, int64_t stride)
{
    step s = { .g = ls__graph_new("test"),
               .conv = { .stride = { 2, { stride, stride } },
                         .dilation = { 2, { 1, 1 } },
                         .padding = LS_VALID },
               .x_dims = { 4, { ROWS, SIDE, SIDE, c } },
               .w_dims = { 4, { k, k, c, oc } } };
    s.x = argument(&s, &s.x_dims);
    s.w = argument(&s, &s.w_dims);
    s.bias = argument(&s, &(ls_ints){ 1, { oc } });
    return s;
}

static step begin(int64_t c, int64_t oc)
{
    return begin_with(c, oc, 3, 1);
}

static void output(step *s, int wire)
{
    assert_int_equal(ls__graph_output(s->g, wire), LS_OK);
}

static int64_t dim(const step *s, int wire, int i)
{
    return s->g->wires[wire].spec.dims[i];
}

static void forward(step *s, bool bias, bool relu)
{
    s->conv.relu = relu;
    s->y = bias ? add_call(s->g, "conv2d_bias_act", &s->conv, 3, (int[]){ s->x, s->w, s->bias })
                : add_call(s->g, "conv2d", &s->conv, 2, (int[]){ s->x, s->w });
    s->y_dims.count = 4;
    for (int i = 0; i < 4; i++)
        s->y_dims.at[i] = dim(s, s->y, i);
}

static void pool(step *s)
{
    s->p = add_call(s->g, "max_pool2d_relu", &(ls__pool_attrs){ 2, 2, LS_VALID }, 1, &s->y);
    s->places = s->g->wires[s->p].node->outputs[1];
    output(s, s->p);
}

static int gradient(step *s, const char *row, int other, int dy, const ls_ints *shape)
{
    const ls__conv_grad_attrs attrs = { s->conv.stride, s->conv.dilation, s->conv.padding, *shape };
    const int wire = add_call(s->g, row, &attrs, 2, (int[]){ other, dy });
    output(s, wire);
    return wire;
}

static void gradients(step *s, int dy, bool filter, bool input)
{
    if (filter)
        gradient(s, "conv2d_grad_filter", s->x, dy, &s->w_dims);
    if (input)
        gradient(s, "conv2d_grad_input", s->w, dy, &s->x_dims);
}

static void back_through_pool(step *s)
{
    const ls__spec spec = s->g->wires[s->p].spec;
    const ls__pool_grad_attrs attrs = { 2, 2, LS_VALID, s->y_dims };
    const sum_attrs sum = { { 3, { 0, 1, 2 } }, 0 };
    s->dy = ls__graph_input(s->g, &spec);
    const int m = add_call(s->g, "relu_grad", NULL, 2, (int[]){ s->p, s->dy });
    s->du = add_call(s->g, "max_pool2d_grad", &attrs, 2, (int[]){ m, s->places });
    output(s, add_call(s->g, "sum", &sum, 1, &m));
}

static void same(const ls_tensor *a, const ls_tensor *b)
{
    const float *x = ls__data(a), *y = ls__data(b);
    assert_int_equal(ls_size_in_bytes(a), ls_size_in_bytes(b));
    for (size_t i = 0; i < ls_size_in_bytes(a) / sizeof *x; i++)
        if (!(fabsf(x[i] - y[i]) <= 1e-4f * (1 + fabsf(x[i]))))
            fail_msg("[%zu] is %g, not %g", i, (double)y[i], (double)x[i]);
}

/* By plain sums, whoever computes them. */
static double operations(const ls__graph *g)
{
    double all = 0;
    for (int i = 0; i < g->n_nodes; i++)
        all += ls__node_work(g, g->nodes[i]).flops;
    return all;
}

/* Runs the pass and compares the outputs before and after; how many rows of each kind there are then, where
 * this processor has kernels: elsewhere none. Frees the graph. */
static void becomes(step *s, int alone, int grads, int pools, int pool_grads)
{
    const int here = LS__PICK(ls__winograd_table)->fast;
    LS_FRAME {
        ls_tensor *arguments[8], *before[MOST], *after[MOST];
        assert_true(s->g->n_outputs <= MOST && s->g->n_inputs <= 8);
        for (int i = 0; i < s->g->n_inputs; i++)
            arguments[i] = some_numbers(&s->g->wires[s->g->inputs[i]].spec, (uint64_t)i + 7);
        run_graph(s->g, arguments, before);
        const double work = operations(s->g);
        if (ls__pass_winograd(s->g) || ls__pass_dead(s->g) || ls__graph_verify(s->g))
            fail_msg("%s", ls_error_report());
        run_graph(s->g, arguments, after);
        for (int i = 0; i < s->g->n_outputs; i++)
            same(before[i], after[i]);
        if (pools == 0) /* of the pooled image, cells that no window has are not counted */
            assert_true(operations(s->g) == work);
        else
            assert_in_range((int)(100 * operations(s->g) / work), 60, 100);
    }
    assert_int_equal(count_rows(s->g, "conv2d_winograd"), here * alone);
    assert_int_equal(count_rows(s->g, "conv2d_winograd_grad"), here * grads);
    assert_int_equal(count_rows(s->g, "conv2d_winograd_pool"), here * pools);
    assert_int_equal(count_rows(s->g, "conv2d_winograd_pool_grad"), here * pool_grads);
    ls__graph_free(s->g);
}

static void convolutions_alone(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        step s = begin(16, 24);
        forward(&s, kind > 0, kind > 1);
        output(&s, s.y);
        becomes(&s, 1, 0, 0, 0);
    }
}

static void gradients_in_pairs(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        step s = begin(16, 24);
        forward(&s, false, false);
        output(&s, s.y);
        s.dy = argument(&s, &s.y_dims);
        gradients(&s, s.dy, kind != 1, kind != 2);
        becomes(&s, 1, kind == 0, 0, 0);
    }
}

/* Two convolutions of one dy: each gradient is taken once. */
static void gradients_of_a_sum(void **state)
{
    (void)state;
    step s = begin(16, 16);
    forward(&s, false, false);
    output(&s, s.y);
    s.dy = argument(&s, &s.y_dims);
    gradients(&s, s.dy, true, true);
    s.x = argument(&s, &s.x_dims);
    s.w = argument(&s, &s.w_dims);
    gradients(&s, s.dy, true, true);
    becomes(&s, 1, 2, 0, 0);
}

/* The gradient of one is that from which the next are made. */
static void one_behind_the_other(void **state)
{
    (void)state;
    step s = begin(16, 16);
    s.conv.padding = LS_SAME;
    forward(&s, false, false);
    const int first = s.x;
    s.x = s.y;
    forward(&s, false, false);
    output(&s, s.y);
    s.dy = argument(&s, &s.y_dims);
    gradient(&s, "conv2d_grad_filter", s.x, s.dy, &s.w_dims);
    const int dx = gradient(&s, "conv2d_grad_input", s.w, s.dy, &s.x_dims);
    s.x = first;
    gradients(&s, dx, true, true);
    becomes(&s, 2, 2, 0, 0);
}

static void with_pools(void **state)
{
    (void)state;
    step s = begin(16, 24);
    forward(&s, true, false);
    pool(&s);
    becomes(&s, 0, 0, 1, 0);
    s = begin(16, 24);
    forward(&s, true, false);
    pool(&s);
    back_through_pool(&s);
    gradients(&s, s.du, true, true);
    becomes(&s, 0, 0, 1, 1);
}

/* Then the convolution goes alone, and so do its gradients, if both are there. */
static void parts_that_others_want(void **state)
{
    (void)state;
    step s = begin(16, 24); /* what is pooled */
    forward(&s, true, false);
    pool(&s);
    output(&s, s.y);
    becomes(&s, 1, 0, 0, 0);
    s = begin(16, 24); /* its gradient */
    forward(&s, true, false);
    pool(&s);
    back_through_pool(&s);
    gradients(&s, s.du, true, true);
    output(&s, s.du);
    becomes(&s, 1, 1, 0, 0);
    s = begin(16, 24); /* one of the gradients, nobody */
    forward(&s, true, false);
    pool(&s);
    back_through_pool(&s);
    gradients(&s, s.du, true, false);
    becomes(&s, 1, 0, 0, 0);
    s = begin(16, 24); /* relu before the pool */
    forward(&s, true, true);
    pool(&s);
    becomes(&s, 1, 0, 0, 0);
}

static void other_shapes_stay(void **state)
{
    (void)state;
    static const int64_t shapes[][4] = {
        { 8, 32, 3, 1 }, { 32, 8, 3, 1 }, { 16, 16, 5, 1 }, { 16, 16, 1, 1 }, { 16, 16, 3, 2 }
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        step s = begin_with(shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3]);
        forward(&s, false, false);
        output(&s, s.y);
        s.dy = argument(&s, &s.y_dims);
        gradients(&s, s.dy, true, true);
        becomes(&s, 0, 0, 0, 0);
    }
    step s = begin(16, 2320); /* a filter that no cache holds */
    forward(&s, false, false);
    output(&s, s.y);
    becomes(&s, 0, 0, 0, 0);
    s = begin(16, 16); /* more threads: oneDNN's */
    forward(&s, false, false);
    output(&s, s.y);
    ls__kernel_threads(2);
    becomes(&s, 0, 0, 0, 0);
    ls__kernel_threads(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_alone), cmocka_unit_test(gradients_in_pairs),
        cmocka_unit_test(gradients_of_a_sum), cmocka_unit_test(one_behind_the_other),
        cmocka_unit_test(with_pools),         cmocka_unit_test(parts_that_others_want),
        cmocka_unit_test(other_shapes_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
