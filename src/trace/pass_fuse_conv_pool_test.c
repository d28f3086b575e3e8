/*
 * Convolution, bias, pool and relu in one: where that is done, what stays where somebody else wants a
 * part of it, and that results stay (gradients up to the order of their sums).
 */
#include "kernels/conv_pool.h"
#include "ops/conv.h"
#include "ops/pool.h"
#include "trace/pass.h"
#include "trace/test_run.h"

#include <lockstep/ops.h>
#include <math.h>

enum { MOST = 4, SIDE = 9 };

typedef struct sum_attrs {
    ls_ints axes;
    int64_t keep;
} sum_attrs;

typedef struct step {
    ls__graph *g;
    int x, w, bias, dp; /* arguments */
    int u, p, places;   /* forward */
    int du;             /* backward: what the pool gives back */
    ls__conv_act_attrs conv;
    ls__pool_attrs pool;
    ls_ints image, filter;
} step;

static int argument(step *s, const ls_ints *dims)
{
    ls__spec spec;
    assert_int_equal(ls__spec_make(&spec, "test", LS_F32, (int)dims->count, dims->at), LS_OK);
    return ls__graph_input(s->g, &spec);
}

/* Of images of 9 x 9 with c channels, k x k filters, oc of them. */
static step begin(int64_t c, int64_t k, int64_t oc, int64_t window, bool relu)
{
    step s = { .g = ls__graph_new("test"),
               .conv = { .stride = { 2, { 1, 1 } },
                         .dilation = { 2, { 1, 1 } },
                         .padding = LS_VALID,
                         .relu = relu },
               .pool = { window, window, LS_VALID } };
    const ls_ints x = { 4, { 3, SIDE, SIDE, c } }, w = { 4, { k, k, c, oc } };
    s.filter = w;
    s.x = argument(&s, &x);
    s.w = argument(&s, &w);
    s.bias = argument(&s, &(ls_ints){ 1, { oc } });
    s.u = add_call(s.g, "conv2d_bias_act", &s.conv, 3, (const int[]){ s.x, s.w, s.bias });
    s.image.count = 4;
    for (int i = 0; i < 4; i++)
        s.image.at[i] = s.g->wires[s.u].spec.dims[i];
    s.p = add_call(s.g, "max_pool2d_relu", &s.pool, 1, &s.u);
    s.places = s.g->wires[s.p].node->outputs[1];
    assert_int_equal(ls__graph_output(s.g, s.p), LS_OK);
    return s;
}

/* The gradients of the filter and of the bias, which become outputs. */
static void go_back(step *s)
{
    const ls__spec spec = s->g->wires[s->p].spec;
    const ls__pool_grad_attrs pool = { s->pool.window, s->pool.stride, s->pool.padding, s->image };
    const ls__conv_grad_attrs conv = { s->conv.stride, s->conv.dilation, s->conv.padding,
                                       s->filter };
    const sum_attrs sum = { { 3, { 0, 1, 2 } }, 0 };
    s->dp = ls__graph_input(s->g, &spec);
    int m = add_call(s->g, "relu_grad", NULL, 2, (const int[]){ s->p, s->dp });
    s->du = add_call(s->g, "max_pool2d_grad", &pool, 2, (const int[]){ m, s->places });
    int dbias = add_call(s->g, "sum", &sum, 1, &m);
    int dw = add_call(s->g, "conv2d_grad_filter", &conv, 2, (const int[]){ s->x, s->du });
    assert_int_equal(ls__graph_output(s->g, dw), LS_OK);
    assert_int_equal(ls__graph_output(s->g, dbias), LS_OK);
}

static void same(const ls_tensor *a, const ls_tensor *b)
{
    const float *x = ls__data(a), *y = ls__data(b);
    assert_int_equal(ls_size_in_bytes(a), ls_size_in_bytes(b));
    for (size_t i = 0; i < ls_size_in_bytes(a) / sizeof *x; i++)
        if (!(fabsf(x[i] - y[i]) <= 1e-4f * (1 + fabsf(x[i]))))
            fail_msg("[%zu] is %g, not %g", i, (double)y[i], (double)x[i]);
}

/* Runs the pass, compares the outputs before and after; how many layers were fused. Frees the graph. */
static void fuse(step *s, int forward, int backward)
{
    LS_FRAME {
        ls_tensor *arguments[8], *before[MOST], *after[MOST];
        assert_true(s->g->n_outputs <= MOST && s->g->n_inputs <= 8);
        for (int i = 0; i < s->g->n_inputs; i++)
            arguments[i] = some_numbers(&s->g->wires[s->g->inputs[i]].spec, (uint64_t)i + 7);
        run_graph(s->g, arguments, before);
        if (ls__pass_fuse_conv_pool(s->g) || ls__pass_dead(s->g) || ls__graph_verify(s->g))
            fail_msg("%s", ls_error_report());
        run_graph(s->g, arguments, after);
        for (int i = 0; i < s->g->n_outputs; i++)
            same(before[i], after[i]);
    }
    assert_int_equal(count_rows(s->g, "conv2d_pool_relu"), forward);
    assert_int_equal(count_rows(s->g, "conv2d_pool_relu_grad"), backward);
    assert_int_equal(count_rows(s->g, "max_pool2d_relu"), 1 - forward);
    ls__graph_free(s->g);
}

/* Other processors have no kernels: there nothing changes. */
static int here(void)
{
    return LS__PICK(ls__conv_pool_table)->forward != NULL;
}

static void fuses(void **state)
{
    (void)state;
    static const int64_t filters[][2] = { { 3, 32 }, { 3, 24 }, { 5, 16 }, { 5, 48 }, { 3, 8 } };
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        step s = begin(1, filters[i][0], filters[i][1], 2, false);
        fuse(&s, here(), 0);
        s = begin(1, filters[i][0], filters[i][1], 2, false);
        go_back(&s);
        fuse(&s, here(), here());
    }
}

static void other_shapes_stay(void **state)
{
    (void)state;
    step s = begin(2, 3, 16, 2, false); /* two channels */
    fuse(&s, 0, 0);
    s = begin(1, 2, 16, 2, false); /* another filter */
    fuse(&s, 0, 0);
    s = begin(1, 3, 12, 2, false); /* no whole eighths of channels */
    fuse(&s, 0, 0);
    s = begin(1, 3, 16, 3, false); /* another window */
    fuse(&s, 0, 0);
    s = begin(1, 3, 16, 2, true); /* relu comes first */
    fuse(&s, 0, 0);
}

static void other_uses_stay(void **state)
{
    (void)state;
    step s = begin(1, 3, 16, 2, false); /* the convolution itself */
    assert_int_equal(ls__graph_output(s.g, s.u), LS_OK);
    fuse(&s, 0, 0);
    s = begin(1, 3, 16, 2, false); /* its gradient */
    go_back(&s);
    assert_int_equal(ls__graph_output(s.g, s.du), LS_OK);
    fuse(&s, 0, 0);
    s = begin(1, 3, 16, 2, false); /* where the largest were */
    assert_int_equal(ls__graph_output(s.g, s.places), LS_OK);
    fuse(&s, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fuses),
        cmocka_unit_test(other_shapes_stay),
        cmocka_unit_test(other_uses_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
