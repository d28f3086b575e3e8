/*
 * Layouts of convolutions: how many moves a step has, that results stay up to the
 * order of sums, trained ones too, and what the rows refuse. Where there is no blocked
 * layout (no oneDNN, a lesser processor) the pass must leave all as it is.
 */
#include "trace/pass_layout_test_support.h"

#include <lockstep/function.h>
#include <lockstep/optimizer.h>

#include "kernels/threads.h"

#ifdef LS_HAVE_DNNL
#include "kernels/cpu/dnnl_engine.h"
#endif

static ls_tensor *forward(const net *m, ls_tensor *x)
{
    for (int i = 0; i < m->layers; i++) {
        x = ls_conv2d(x, ls_read(m->w[i]), LS_CONV(.padding = LS_SAME));
        if (m->bias)
            x = ls_add(x, ls_read(m->b[i]));
        if (i + 1 < m->layers)
            x = m->pools ? ls_max_pool2d(x, 2, 2, LS_SAME) : ls_relu(x);
    }
    return x;
}

static int run_net(ls_tensor *const *in, ls_tensor **out, const void *user)
{
    const net *m = user;
    int count = 0;
    ls_tape *tape = ls_tape_open();
    ls_tensor *y = forward(m, in[0]);
    out[count++] = y;
    if (!m->gradients)
        return count;
    ls_tensor *loss = ls_mean(ls_mul(y, y), LS_ALL_AXES, false);
    ls_tape_stop(tape);
    out[count++] = ls_gradient(tape, loss, in[0]);
    for (int i = 0; i < m->layers; i++)
        out[count++] = ls_gradient(tape, loss, ls_read(m->w[i]));
    return count;
}

/* The net's graph after the pass, whose results are the same up to rounding. */
static ls__graph *packed_graph(const net *m)
{
    ls__graph *g = NULL;
    LS_FRAME {
        ls__spec spec = { LS_F32, 4, { m->n, m->size, m->size, m->channels[0] } };
        ls_tensor *x = some_numbers(&spec, 3);
        g = record_step(run_net, m, 1, &x);
        run_pass(ls__pass_common, g);
        run_pass(ls__pass_dead, g);
        run_pass(ls__pass_fuse_conv, g);
        run_pass(ls__pass_dead, g);
        keeps_results(ls__pass_layout, g, &x, 2e-5);
    }
    return g;
}

/* ---- steps ---------------------------------------------------------------------------------- */

/* Three layers that like blocked layouts: plain at the edges only. */
static void test_inside_blocked(void **state)
{
    (void)state;
    net m = { .layers = 3, .n = 16, .size = 7, .channels = { 64, 64, 64, 64 } };
    make(&m);
    ls__graph *g = packed_graph(&m);
    for (int i = 0; i < g->n_nodes && blocked_there(64, 64); i++)
        if (ls__node_is(g->nodes[i], "relu"))
            assert_int_equal(g->wires[g->nodes[i]->outputs[0]].spec.rank, 1);
    expect(g, blocked_there(64, 64), 1, 1, 3, 3);
    unmake(&m);
}

/* Forward and backward: packed are x, once for the forward pass and the filter's gradient,
 * and dy; relu and its gradient run on packed memory. What is unpacked: the result, dx,
 * and the gradients of the filters. */
static void test_backward(void **state)
{
    (void)state;
    net m = { .layers = 2, .n = 16, .size = 7, .channels = { 64, 64, 64 }, .gradients = true };
    make(&m);
    expect(packed_graph(&m), blocked_there(64, 64), 2, 4, 4, 6);
    unmake(&m);
}

/* With bias and relu in the convolution there is nothing between them. */
static void test_fused(void **state)
{
    (void)state;
    net m = { .layers = 3, .n = 16, .size = 7, .channels = { 64, 64, 64, 64 }, .bias = true };
    make(&m);
    ls__graph *g = packed_graph(&m);
    assert_int_equal(count_rows(g, "relu"), 0);
    expect(g, blocked_there(64, 64), 1, 1, 3, 3);
    m.gradients = true;
    ls__graph_free(packed_graph(&m));
    unmake(&m);
}

/* Odd channels, empty batches, few channels: right, whatever is chosen. */
static void test_odd_sizes(void **state)
{
    (void)state;
    static const net nets[] = {
        { .layers = 2, .n = 3, .size = 9, .channels = { 19, 37, 5 } },
        { .layers = 3, .n = 2, .size = 5, .channels = { 1, 70, 67, 3 } },
        { .layers = 2, .n = 0, .size = 7, .channels = { 64, 64, 64 } },
        { .layers = 3, .n = 4, .size = 14, .channels = { 16, 16, 32, 64 } },
        { .layers = 2, .n = 2, .size = 7, .channels = { 0, 64, 64 } },
    };
    each_is_right(nets, sizeof nets / sizeof *nets, packed_graph);
}

/* The threads of the pass, not of the run, say what the layouts are. */
static void test_threads(void **state)
{
    (void)state;
    net m = { .layers = 2, .n = 16, .size = 7, .channels = { 64, 64, 64 } };
    make(&m);
    ls__kernel_threads(2);
    ls__graph *g = packed_graph(&m);
    ls__kernel_threads(1);
    assert_int_equal(ls__graph_verify(g), LS_OK);
    for (int i = 0; i < g->n_nodes; i++)
        if (ls__node_is(g->nodes[i], "conv2d_packed"))
            assert_int_equal(((ls__conv_packed_attrs *)g->nodes[i]->attrs)->threads, 2);
#ifdef LS_HAVE_DNNL
    for (int i = 0; i < g->n_nodes; i++) {
        ls__conv_plan plan;
        if (!ls__node_is(g->nodes[i], "conv2d_packed"))
            continue;
        assert_int_equal(ls__conv_packed_plan(g->nodes[i]->attrs, &plan), LS_OK);
        assert_int_equal(plan.dnnl->threads, 2);
        ls__conv_plan_close(&plan);
    }
#endif
    assert_int_equal(ls__kernel_threads_get(), 1);
    ls__graph_free(g);
    unmake(&m);
}

/* ---- weights --------------------------------------------------------------------------------- */

static int conv_of(ls_tensor *const *in, ls_tensor **out, const void *user)
{
    const net *m = user;
    out[0] = ls_conv2d(in[0], m->layers ? ls_read(m->w[0]) : in[1], LS_CONV(.padding = LS_SAME));
    if (m->gradients)
        ls_assign_sub(m->w[0], ls_read(m->w[0]));
    return 1;
}

/* Weights are kept packed if they are a variable; and, where the convolution stays plain,
 * if the step leaves the variable alone. */
static void test_weights(void **state)
{
    (void)state;
    LS_FRAME {
        ls__spec spec_x = { LS_F32, 4, { 16, 7, 7, 64 } }, spec_w = { LS_F32, 4, { 3, 3, 64, 64 } };
        ls_tensor *in[2] = { some_numbers(&spec_x, 1), some_numbers(&spec_w, 2) };
        net m = { .layers = 0 };
        ls__graph *g = record_step(conv_of, &m, 2, in);
        keeps_results(ls__pass_layout, g, in, 2e-5);
        expect(g, blocked_there(64, 64), 2, 1, 0, 1);
    }
    for (int written = 0; written < 2; written++)
        LS_FRAME {
            net m = { .layers = 1, .channels = { 16, 16 }, .gradients = written };
            ls__spec spec = { LS_F32, 4, { 1, 9, 9, 16 } };
            ls_tensor *x = some_numbers(&spec, 1);
            make(&m);
            ls__graph *g = record_step(conv_of, &m, 1, &x);
            if (written)
                run_pass(ls__pass_layout, g);
            else
                keeps_results(ls__pass_layout, g, &x, 0);
            expect(g, blocked_there(64, 64), 0, 0, !written, !written);
            unmake(&m);
        }
}

/* ---- training ------------------------------------------------------------------------------- */

typedef struct trained {
    net m;
    ls_optimizer *sgd;
} trained;

static ls_value *train_step(ls_value *arguments, void *user)
{
    trained *t = user;
    ls_tape *tape = ls_tape_open();
    ls_tensor *y = forward(&t->m, ls_leaf_tensor(arguments));
    ls_tensor *loss = ls_mean(ls_mul(y, y), LS_ALL_AXES, false);
    ls_minimize(t->sgd, tape, loss, t->m.layers, t->m.w);
    return ls_leaf(loss);
}

/* The losses of a few steps: packed weights must follow the variables. */
static void train(const net *like, const char *off, int steps, double *losses)
{
    trained t = { .m = *like };
    make(&t.m);
    t.sgd = ls_sgd(LS_SGD(.rate = 0.5));
    ls_function *f = ls_trace_with(LS_TRACE(.off = off), train_step, &t);
    for (int i = 0; i < steps; i++)
        LS_FRAME {
            ls__spec spec = { LS_F32, 4, { like->n, like->size, like->size, like->channels[0] } };
            ls_value *loss = ls_function_call(f, ls_leaf(some_numbers(&spec, 21)));
            if (!loss)
                fail_msg("%s", ls_error_report());
            losses[i] = ls_to_float(ls_leaf_tensor(loss));
        }
    ls_function_free(f);
    ls_optimizer_free(t.sgd);
    unmake(&t.m);
}

static void test_training(void **state)
{
    (void)state;
    enum { STEPS = 5 };
    static const net nets[] = {
        { .layers = 3, .n = 8, .size = 7, .channels = { 64, 64, 64, 64 } },
        { .layers = 2, .n = 8, .size = 7, .channels = { 64, 64, 64 }, .bias = true },
        { .layers = 2, .n = 8, .size = 14, .channels = { 32, 64, 64 }, .pools = true },
    };
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        double with[STEPS], without[STEPS];
        train(&nets[i], NULL, STEPS, with);
        train(&nets[i], "layout", STEPS, without);
        for (int k = 0; k < STEPS; k++)
            if (!(fabs(with[k] - without[k]) <= 1e-4 * fabs(without[k])))
                fail_msg("step %d: loss %g, want %g", k, with[k], without[k]);
        assert_true(without[STEPS - 1] < 0.999 * without[0]);
    }
}

/* Between replays the variable is set from outside: what was packed is packed again. */
static ls_value *infer_step(ls_value *arguments, void *user)
{
    return ls_leaf(forward(user, ls_leaf_tensor(arguments)));
}

static void test_assigned_weights(void **state)
{
    (void)state;
    net m = { .layers = 2, .n = 8, .size = 7, .channels = { 64, 64, 64 } };
    make(&m);
    ls_function *f = ls_trace(infer_step, &m);
    for (int turn = 0; turn < 3; turn++)
        LS_FRAME {
            ls__spec spec = { LS_F32, 4, { m.n, m.size, m.size, 64 } };
            ls_tensor *x = some_numbers(&spec, 5);
            ls_value *y = ls_function_call(f, ls_leaf(x));
            if (!y)
                fail_msg("%s", ls_error_report());
            close_to(ls_leaf_tensor(y), forward(&m, x), 2e-5);
            ls_assign(m.w[0], ls_mul(ls_read(m.w[0]), ls_scalar(LS_F32, -0.5)));
        }
    ls_function_free(f);
    unmake(&m);
}

/* ---- the rows -------------------------------------------------------------------------------- */

/* Packing, computing and unpacking by one plan is what the plain row gives: every pass and
 * layout, channels that fill no block too. */
static void one_plan(int64_t c, int64_t oc, int pass, int layout)
{
    static const char *const rows[] = { "conv2d_bias_act", "conv2d_grad_input",
                                        "conv2d_grad_filter" };
    static const int roles[3][3] = { { LS__CONV_X, LS__CONV_W, LS__CONV_Y },
                                     { LS__CONV_W, LS__CONV_Y, LS__CONV_X },
                                     { LS__CONV_X, LS__CONV_Y, LS__CONV_W } };
    const int *role = roles[pass];
    ls__conv_shape s = { .n = 2, .h = 9, .w = 8, .c = c, .kh = 3, .kw = 3, .oc = oc };
    s.stride_h = s.stride_w = s.dilation_h = s.dilation_w = 1;
    assert_int_equal(ls__conv_shape_complete(&s), LS_OK);
    s.bias = s.relu = pass == LS__CONV_FORWARD;
    const ls__spec spec[3] = { { LS_F32, 4, { s.n, s.h, s.w, c } },
                               { LS_F32, 4, { 3, 3, c, oc } },
                               { LS_F32, 4, { s.n, s.oh, s.ow, oc } } };
    const ls__spec bias = { LS_F32, 1, { oc } };
    ls__conv_packed_attrs a = ls__conv_packed(&s, (ls__conv_pass)pass, (ls__conv_layout)layout);
    union {
        ls__conv_act_attrs act;
        ls__conv_grad_attrs grad;
    } plain = { .grad = { { 2, { 1, 1 } }, { 2, { 1, 1 } }, LS_VALID, { 4, { 0 } } } };
    if (s.bias)
        plain.act.relu = 1;
    else
        memcpy(plain.grad.shape.at, spec[role[2]].dims, 4 * sizeof(int64_t));

    ls__graph *g = ls__graph_new("test");
    int in[3], packed[3], n = s.bias ? 3 : 2;
    for (int i = 0; i < 2; i++)
        in[i] = packed[i] = ls__graph_input(g, &spec[role[i]]);
    in[2] = packed[2] = s.bias ? ls__graph_input(g, &bias) : -1;
    for (int i = 0; i < 2; i++) {
        a.argument = role[i];
        packed[i] = add_call(g, "conv2d_pack", &a, 1, &in[i]);
    }
    a.argument = 0;
    int y = add_call(g, "conv2d_packed", &a, n, packed);
    a.argument = role[2];
    ls__graph_output(g, add_call(g, "conv2d_unpack", &a, 1, &y));
    ls__graph_output(g, add_call(g, rows[pass], &plain, n, in));
    LS_FRAME {
        ls_tensor *arguments[3], *out[2];
        for (int i = 0; i < n; i++)
            arguments[i] = some_numbers(&g->wires[in[i]].spec, 40 + (uint64_t)i);
        for (int turn = 0; turn < 2; turn++) { /* the second in memory that was used before */
            run_graph(g, arguments, out);
            close_to(out[0], out[1], 2e-5);
        }
    }
    ls__graph_free(g);
}

static void test_rows(void **state)
{
    (void)state;
    static const int64_t channels[][2] = {
        { 64, 64 }, { 19, 37 }, { 3, 16 }, { 33, 1 }, { 1, 32 }
    };
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++)
        for (int pass = 0; pass < 3; pass++)
            for (int layout = 0; layout < 3; layout++)
                one_plan(channels[i][0], channels[i][1], pass, layout);
}

static void test_rows_refuse(void **state)
{
    (void)state;
    ls__conv_shape s = { .n = 16, .h = 7, .w = 7, .c = 64, .kh = 3, .kw = 3, .oc = 64 };
    s.stride_h = s.stride_w = s.dilation_h = s.dilation_w = 1;
    assert_int_equal(ls__conv_shape_complete(&s), LS_OK);
    const ls__conv_packed_attrs good = ls__conv_packed(&s, LS__CONV_FORWARD, LS__CONV_WINOGRAD);
    ls__conv_packed_attrs bad, weights = good;
    ls__graph *g = ls__graph_new("test");
    ls__spec x = { LS_F32, 4, { 16, 7, 7, 64 } }, w = { LS_F32, 4, { 3, 3, 64, 64 } };
    ls__spec wide = { LS_F64, 4, { 16, 7, 7, 64 } }, short_x = { LS_F32, 1, { 17 } };
    weights.argument = LS__CONV_W;
    int in[3] = { ls__graph_input(g, &x), ls__graph_input(g, &w), 0 };
    int other = ls__graph_input(g, &wide), small = ls__graph_input(g, &short_x);
    int packed[3] = { add_call(g, "conv2d_pack", &good, 1, &in[0]),
                      add_call(g, "conv2d_pack_weights", &weights, 1, &in[1]) };
    packed[2] = packed[0];
    add_call(g, "conv2d_packed", &good, 2, packed);

    refused(g, &ls__conv2d_pack, &good, 1, &in[1], LS_SHAPE);
    refused(g, &ls__conv2d_pack, &good, 1, &other, LS_SHAPE);
    refused(g, &ls__conv2d_pack_weights, &good, 1, &in[0], LS_INVALID);
    refused(g, &ls__conv2d_unpack, &good, 1, &small, LS_SHAPE);
    refused(g, &ls__conv2d_packed, &good, 2, (const int[]){ small, packed[1] }, LS_SHAPE);
    refused(g, &ls__conv2d_packed, &good, 2, (const int[]){ packed[0], small }, LS_SHAPE);
    refused(g, &ls__conv2d_packed, &good, 3, packed, LS_INVALID);
    refused(g, &ls__conv2d_packed, &good, 1, packed, LS_INVALID);
    bad = good, bad.bias = 1;
    refused(g, &ls__conv2d_packed, &bad, 3, packed, LS_SHAPE);
    bad = good, bad.x.at[3] = 32;
    refused(g, &ls__conv2d_pack, &bad, 1, &in[0], LS_INVALID);
    bad = good, bad.x.at[0] = -1;
    refused(g, &ls__conv2d_pack, &bad, 1, &in[0], LS_INVALID);
    bad = good, bad.pass = 3;
    refused(g, &ls__conv2d_pack, &bad, 1, &in[0], LS_INVALID);
    bad = good, bad.layout = -1;
    refused(g, &ls__conv2d_pack, &bad, 1, &in[0], LS_INVALID);
    bad = good, bad.threads = 0;
    refused(g, &ls__conv2d_packed, &bad, 2, packed, LS_INVALID);
    bad = good, bad.argument = 3;
    refused(g, &ls__conv2d_unpack, &bad, 1, &packed[0], LS_INVALID);
    bad = good, bad.stride.at[0] = 0;
    refused(g, &ls__conv2d_pack, &bad, 1, &in[0], LS_INVALID);
    bad = good, bad.padding.count = 2;
    refused(g, &ls__conv2d_pack, &bad, 1, &in[0], LS_INVALID);
    bad = good, bad.pass = LS__CONV_BACKWARD_DATA, bad.relu = 1;
    refused(g, &ls__conv2d_packed, &bad, 2, (const int[]){ packed[1], packed[0] }, LS_INVALID);
    ls__graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_inside_blocked, clean),
        cmocka_unit_test_setup(test_backward, clean),
        cmocka_unit_test_setup(test_fused, clean),
        cmocka_unit_test_setup(test_odd_sizes, clean),
        cmocka_unit_test_setup(test_threads, clean),
        cmocka_unit_test_setup(test_weights, clean),
        cmocka_unit_test_setup(test_training, clean),
        cmocka_unit_test_setup(test_assigned_weights, clean),
        cmocka_unit_test_setup(test_rows, clean),
        cmocka_unit_test_setup(test_rows_refuse, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
