/*
 * Convolutions with bias and relu: which are fused, how far, and that the results
 * stay; bits where our own kernel or the reference computes.
 */
#include "ops/conv.h"
#include "trace/pass.h"
#include "trace/test_run.h"

#include <math.h>

enum { MOST = 3 };

typedef struct step {
    ls__graph *g;
    int x, w, bias;
    ls__conv_attrs attrs;
} step;

static ls__spec spec_of(ls_dtype dtype, int rank, const int64_t *dims)
{
    ls__spec s;
    assert_int_equal(ls__spec_make(&s, "test", dtype, rank, dims), LS_OK);
    return s;
}

/* Arguments x [2, 7, 6, c], w [3, 3, c, oc], bias [oc]. */
static step begin(ls_dtype dtype, int64_t c, int64_t oc)
{
    ls__graph *g = ls__graph_new("test");
    assert_non_null(g);
    ls__spec x = spec_of(dtype, 4, (const int64_t[]){ 2, 7, 6, c });
    ls__spec w = spec_of(dtype, 4, (const int64_t[]){ 3, 3, c, oc });
    ls__spec bias = spec_of(dtype, 1, &oc);
    step s = { .g = g };
    s.x = ls__graph_input(g, &x);
    s.w = ls__graph_input(g, &w);
    s.bias = ls__graph_input(g, &bias);
    s.attrs.stride = (ls_ints){ 2, { 1, 2 } };
    s.attrs.dilation = (ls_ints){ 2, { 1, 1 } };
    s.attrs.padding = 1;
    return s;
}

static int conv(step *s)
{
    return add_call(s->g, "conv2d", &s->attrs, 2, (const int[]){ s->x, s->w });
}

static int sum(step *s, int a, int b)
{
    return add_call(s->g, "add", NULL, 2, (const int[]){ a, b });
}

static int relu(step *s, int a)
{
    return add_call(s->g, "relu", NULL, 1, &a);
}

static void output(step *s, int wire)
{
    assert_int_equal(ls__graph_output(s->g, wire), LS_OK);
}

static void same(const ls_tensor *a, const ls_tensor *b, bool bits)
{
    if (bits || ls_dtype_of(a) != LS_F32) {
        same_bits(a, b);
        return;
    }
    const float *x = ls__data(a), *y = ls__data(b);
    assert_int_equal(ls_size_in_bytes(a), ls_size_in_bytes(b));
    for (size_t i = 0; i < ls_size_in_bytes(a) / sizeof *x; i++)
        if (!(fabsf(x[i] - y[i]) <= 1e-5f * (1 + fabsf(x[i]))))
            fail_msg("[%zu] is %g, not %g", i, (double)y[i], (double)x[i]);
}

/* Runs the pass and compares the outputs before and after. */
static void fuse(step *s, bool bits)
{
    LS_FRAME {
        ls_tensor *arguments[8], *before[MOST], *after[MOST];
        assert_true(s->g->n_outputs <= MOST && s->g->n_inputs <= 8);
        for (int i = 0; i < s->g->n_inputs; i++)
            arguments[i] = some_numbers(&s->g->wires[s->g->inputs[i]].spec, (uint64_t)i + 7);
        run_graph(s->g, arguments, before);
        if (ls__pass_fuse_conv(s->g) || ls__graph_verify(s->g))
            fail_msg("%s", ls_error_report());
        run_graph(s->g, arguments, after);
        for (int i = 0; i < s->g->n_outputs; i++)
            same(before[i], after[i], bits);
    }
}

/* The one node left is fused, with or without relu; frees the graph. */
static void expect_fused(step *s, bool with_relu)
{
    assert_int_equal(s->g->n_nodes, 1);
    assert_true(ls__node_is(s->g->nodes[0], "conv2d_bias_act"));
    const ls__conv_act_attrs *a = s->g->nodes[0]->attrs;
    assert_int_equal(a->relu, with_relu);
    assert_memory_equal(a, &s->attrs, sizeof s->attrs);
    ls__graph_free(s->g);
}

/* c = 1 with 16 channels is our own kernel's, where there is one. */
static void test_fuses(void **state)
{
    (void)state;
    for (int mode = 0; mode < 16; mode++) {
        const ls_dtype dtype = mode & 1 ? LS_F64 : LS_F32;
        const bool swap = mode & 2, with_relu = mode & 4;
        step s = begin(dtype, mode & 8 ? 1 : 3, 16);
        int y = conv(&s);
        y = swap ? sum(&s, s.bias, y) : sum(&s, y, s.bias);
        output(&s, with_relu ? relu(&s, y) : y);
        fuse(&s, false);
        expect_fused(&s, with_relu);
    }
}

static void expect_rows(step *s, int fused, int convs, int adds, int relus)
{
    assert_int_equal(count_rows(s->g, "conv2d_bias_act"), fused);
    assert_int_equal(count_rows(s->g, "conv2d"), convs);
    assert_int_equal(count_rows(s->g, "add"), adds);
    assert_int_equal(count_rows(s->g, "relu"), relus);
    ls__graph_free(s->g);
}

/* Somebody else wants what would no longer be there. */
static void test_other_uses(void **state)
{
    (void)state;
    step s = begin(LS_F32, 3, 8);
    int t = conv(&s), u = sum(&s, t, s.bias), y = relu(&s, u);
    output(&s, y);
    output(&s, u);
    fuse(&s, false);
    expect_rows(&s, 1, 0, 0, 1);

    s = begin(LS_F32, 3, 8);
    t = conv(&s), u = sum(&s, t, s.bias), y = relu(&s, u);
    output(&s, y);
    output(&s, add_call(s.g, "neg", NULL, 1, &t));
    fuse(&s, true);
    expect_rows(&s, 0, 1, 1, 1);

    s = begin(LS_F32, 3, 8); /* relu's own gradient wants y alone */
    y = relu(&s, sum(&s, conv(&s), s.bias));
    output(&s, add_call(s.g, "relu_grad", NULL, 2, (const int[]){ y, y }));
    fuse(&s, false);
    expect_rows(&s, 1, 0, 0, 0);

    s = begin(LS_F32, 3, 8);
    t = conv(&s);
    output(&s, sum(&s, t, t));
    fuse(&s, true);
    expect_rows(&s, 0, 1, 1, 0);
}

/* What is added is no bias of the channels. */
static void test_no_bias(void **state)
{
    (void)state;
    const int64_t one = 1, image[4] = { 2, 7, 3, 8 }, channels[4] = { 1, 1, 1, 8 };
    const ls__spec others[] = { spec_of(LS_F32, 1, &one), spec_of(LS_F32, 4, image),
                                spec_of(LS_F32, 4, channels), spec_of(LS_F32, 0, NULL) };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        step s = begin(LS_F32, 3, 8);
        int other = ls__graph_input(s.g, &others[i]);
        output(&s, relu(&s, sum(&s, conv(&s), other)));
        fuse(&s, true);
        expect_rows(&s, 0, 1, 1, 1);
    }
    step s = begin(LS_BF16, 3, 8);
    output(&s, relu(&s, sum(&s, conv(&s), s.bias)));
    assert_int_equal(ls__pass_fuse_conv(s.g), LS_OK);
    expect_rows(&s, 0, 1, 1, 1);
}

/* One after the other. */
static void test_several(void **state)
{
    (void)state;
    step s = begin(LS_F64, 3, 3);
    s.attrs.stride.at[1] = 1;
    for (int i = 0; i < 3; i++)
        s.x = relu(&s, sum(&s, s.bias, conv(&s)));
    output(&s, s.x);
    fuse(&s, true);
    expect_rows(&s, 3, 0, 0, 0);

    s = begin(LS_F64, 3, 8); /* and side by side */
    int t = conv(&s), u = conv(&s);
    output(&s, sum(&s, t, s.bias));
    output(&s, relu(&s, sum(&s, u, s.bias)));
    fuse(&s, true);
    expect_rows(&s, 2, 0, 0, 0);
}

/* The row refuses what the pass would never make. */
static void test_row_refuses(void **state)
{
    (void)state;
    const int64_t nine = 9;
    step s = begin(LS_F32, 3, 8);
    ls__spec wrong = spec_of(LS_F32, 1, &nine);
    const ls_op *row = ls_op_find("conv2d_bias_act");
    ls__conv_act_attrs a = { s.attrs.stride, s.attrs.dilation, s.attrs.padding, 2 };
    assert_null(ls__graph_call(s.g, NULL, row, &a, 3, (const int[]){ s.x, s.w, s.bias }));
    assert_int_equal(ls_error(), LS_INVALID);
    a.relu = 1;
    int other = ls__graph_input(s.g, &wrong);
    assert_null(ls__graph_call(s.g, NULL, row, &a, 3, (const int[]){ s.x, s.w, other }));
    assert_int_equal(ls_error(), LS_SHAPE);
    assert_null(ls__graph_call(s.g, NULL, row, &a, 3, (const int[]){ s.x, s.w, s.w }));
    assert_int_equal(ls_error(), LS_SHAPE);
    ls__graph_free(s.g);
    s = begin(LS_BF16, 3, 8);
    assert_null(ls__graph_call(s.g, NULL, row, &a, 3, (const int[]){ s.x, s.w, s.bias }));
    assert_int_equal(ls_error(), LS_SHAPE);
    ls__graph_free(s.g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fuses),       cmocka_unit_test(test_other_uses),
        cmocka_unit_test(test_no_bias),     cmocka_unit_test(test_several),
        cmocka_unit_test(test_row_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
