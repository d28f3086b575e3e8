/*
 * Images in blocks of channels around convolutions: pools take them, their gradients make them, and the
 * fused first layer does both, with the results of the plain rows; and what these rows refuse. Where there
 * is no blocked layout the pass must leave all as it is.
 */
#include "trace/pass_layout_test_support.h"

#include "kernels/conv_pool.h"
#include "ops/pool.h"

/* The loss of layers with bias, relu and pool, as of cnn2, and its gradients. */
static int run_pooled(ls_tensor *const *in, ls_tensor **out, const void *user)
{
    const net *m = user;
    int count = 0;
    ls_tape *tape = ls_tape_open();
    ls_tensor *y = in[0];
    for (int i = 0; i < m->layers; i++) {
        y = ls_conv2d(y, ls_read(m->w[i]), LS_CONV(.padding = LS_SAME));
        y = m->bias ? ls_relu(ls_add(y, ls_read(m->b[i]))) : y;
        y = ls_max_pool2d(y, 2, 2, LS_VALID);
    }
    ls_tensor *loss = ls_sum(ls_mul(y, y), LS_ALL_AXES, false);
    ls_tape_stop(tape);
    out[count++] = loss;
    for (int i = 0; i < m->layers && m->gradients; i++) {
        out[count++] = ls_gradient(tape, loss, ls_read(m->w[i]));
        if (m->bias && i < 2)
            out[count++] = ls_gradient(tape, loss, ls_read(m->b[i]));
    }
    return count;
}

static ls__graph *packed_graph(const net *m)
{
    static ls_status (*const before[])(ls__graph *) = {
        ls__pass_common,    ls__pass_dead,           ls__pass_fuse_pool,
        ls__pass_fuse_conv, ls__pass_fuse_conv_pool, ls__pass_dead,
    };
    ls__graph *g = NULL;
    LS_FRAME {
        ls__spec spec = { LS_F32, 4, { m->n, m->size, m->size, m->channels[0] } };
        ls_tensor *x = some_numbers(&spec, 3);
        g = record_step(run_pooled, m, 1, &x);
        for (size_t i = 0; i < sizeof before / sizeof *before; i++)
            run_pass(before[i], g);
        keeps_results(ls__pass_layout, g, &x, 1e-4);
    }
    return g;
}

/* A pool takes its image in blocks; what it makes of it, a quarter, is plain. */
static void test_between_pools(void **state)
{
    (void)state;
    net m = { .layers = 2, .n = 16, .size = 14, .channels = { 64, 64, 64 } };
    const bool there = blocked_there(64, 64);
    make(&m);
    ls__graph *g = packed_graph(&m);
    assert_int_equal(count_rows(g, "max_pool2d_packed"), there ? 2 : 0);
    expect(g, there, 2, 0, 2, 2);
    m.gradients = true;
    g = packed_graph(&m);
    assert_int_equal(count_rows(g, "max_pool2d_grad_packed"), there ? 2 : 0);
    ls__graph_free(g);
    unmake(&m);
}

/* Blocks from the first layer to the last pool and back: no activation is moved at all. What is unpacked is
 * the gradient of weights. */
static void test_grey_images(void **state)
{
    (void)state;
    net m = {
        .layers = 2, .n = 16, .size = 28, .channels = { 1, 32, 64 }, .bias = true, .gradients = true
    };
    make(&m);
    ls__graph *g = packed_graph(&m);
    const bool there = blocked_there(32, 64) && count_rows(g, "conv2d_pool_relu_grad") == 1;
    if (there) {
        assert_int_equal(count_rows(g, "max_pool2d_packed"), 1);
        assert_int_equal(count_rows(g, "max_pool2d_grad_packed"), 1);
    }
    expect(g, there, 0, 1, 2, 3);
    unmake(&m);
}

/* Channels that fill no block, odd sizes, no image at all: right, whatever is chosen. */
static void test_odd_sizes(void **state)
{
    (void)state;
    static const net nets[] = {
        { .layers = 2, .n = 3, .size = 9, .channels = { 19, 37, 5 } },
        { .layers = 3, .n = 2, .size = 17, .channels = { 1, 24, 64, 64 }, .bias = true },
        { .layers = 2, .n = 0, .size = 14, .channels = { 1, 32, 64 }, .bias = true },
        { .layers = 2, .n = 5, .size = 15, .channels = { 1, 48, 64 }, .bias = true },
        { .layers = 2, .n = 4, .size = 14, .channels = { 64, 72, 64 }, .bias = true },
    };
    each_is_right(nets, sizeof nets / sizeof *nets, packed_graph);
}

/* ---- the rows -------------------------------------------------------------------------------- */

static void test_pools_refuse(void **state)
{
    (void)state;
    const ls__pool_packed_attrs good = {
        .window = 2, .stride = 2, .padding = LS_VALID, .shape = { 4, { 2, 6, 6, 32 } }, .block = 16
    };
    ls__graph *g = ls__graph_new("test");
    ls__spec packed = { LS_F32, 1, { 2 * 6 * 6 * 32 } }, wide = { LS_F64, 1, { 2 * 6 * 6 * 32 } };
    ls__spec plain = { LS_F32, 4, { 2, 6, 6, 32 } }, pooled = { LS_F32, 4, { 2, 3, 3, 32 } };
    ls__spec places = { LS_I32, 4, { 2, 3, 3, 32 } };
    const int x = ls__graph_input(g, &packed), other = ls__graph_input(g, &wide);
    const int image = ls__graph_input(g, &plain), dy = ls__graph_input(g, &pooled);
    const int at = ls__graph_input(g, &places);
    const int back[2] = { dy, at }, turned[2] = { at, dy }, large[2] = { image, at };
    add_call(g, "max_pool2d_packed", &good, 1, &x);
    add_call(g, "max_pool2d_grad_packed", &good, 2, back);

    refused(g, &ls__max_pool2d_packed, &good, 1, &other, LS_SHAPE);
    refused(g, &ls__max_pool2d_packed, &good, 1, &image, LS_SHAPE);
    refused(g, &ls__max_pool2d_grad_packed, &good, 2, turned, LS_SHAPE);
    refused(g, &ls__max_pool2d_grad_packed, &good, 2, large, LS_SHAPE);
    ls__pool_packed_attrs bad = good;
    bad.block = 0;
    refused(g, &ls__max_pool2d_packed, &bad, 1, &x, LS_INVALID);
    bad.block = 12;
    refused(g, &ls__max_pool2d_grad_packed, &bad, 2, back, LS_INVALID);
    bad = good, bad.shape.count = 3;
    refused(g, &ls__max_pool2d_packed, &bad, 1, &x, LS_INVALID);
    bad = good, bad.shape.at[0] = -2;
    refused(g, &ls__max_pool2d_packed, &bad, 1, &x, LS_INVALID);
    bad = good, bad.shape.at[1] = bad.shape.at[2] = INT64_C(1) << 40;
    refused(g, &ls__max_pool2d_packed, &bad, 1, &x, LS_INVALID);
    bad = good, bad.window = 0;
    refused(g, &ls__max_pool2d_packed, &bad, 1, &x, LS_INVALID);
    ls__graph_free(g);
}

static void test_first_layer_refuses(void **state)
{
    (void)state;
    const ls_op *forward = ls_op_find("conv2d_pool_relu");
    const ls_op *backward = ls_op_find("conv2d_pool_relu_grad");
    ls__conv_pool_attrs a = { .stride = { 2, { 1, 1 } }, .dilation = { 2, { 1, 1 } } };
    a.padding = LS_VALID;
    ls__graph *g = ls__graph_new("test");
    ls__spec x = { LS_F32, 4, { 2, 8, 8, 1 } }, w = { LS_F32, 4, { 3, 3, 1, 24 } };
    ls__spec bias = { LS_F32, 1, { 24 } }, packed = { LS_F32, 1, { 2 * 3 * 3 * 24 } };
    ls__spec marks = { LS_U8, 4, { 2, 3, 3, 12 } };
    const int in[3] = { ls__graph_input(g, &x), ls__graph_input(g, &w), ls__graph_input(g, &bias) };
    const int back[3] = { in[0], ls__graph_input(g, &packed), ls__graph_input(g, &marks) };
    add_call(g, "conv2d_pool_relu", &a, 3, in);
    a.block = LS__CONV_POOL_BLOCK; /* 24 channels */
    refused(g, forward, &a, 3, in, LS_INVALID);
    a.block = 8;
    refused(g, forward, &a, 3, in, LS_INVALID);
    ls__conv_pool_grad_attrs b = { .stride = a.stride,
                                   .dilation = a.dilation,
                                   .padding = LS_VALID,
                                   .shape = { 4, { 3, 3, 1, 24 } } };
    refused(g, backward, &b, 3, back, LS_SHAPE); /* a vector, and not in blocks */
    b.block = LS__CONV_POOL_BLOCK;
    refused(g, backward, &b, 3, back, LS_INVALID);
    ls__graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_between_pools, clean),
        cmocka_unit_test_setup(test_grey_images, clean),
        cmocka_unit_test_setup(test_odd_sizes, clean),
        cmocka_unit_test_setup(test_pools_refuse, clean),
        cmocka_unit_test_setup(test_first_layer_refuses, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
