/*
 * Pooling after relu, forward and backward: which steps are taken, and that every
 * result keeps its bits (but sums, which keep their value): overlapping windows,
 * leftover rows, padding, NaN, -0.0, infinity and windows without a positive number.
 */
#include "ops/pool.h"
#include "trace/pass.h"
#include "trace/test_run.h"

#include <lockstep/ops.h>
#include <math.h>

enum { MOST = 4 };

typedef struct sum_attrs {
    ls_ints axes;
    int64_t keep;
} sum_attrs;

typedef struct step {
    ls__graph *g;
    ls__pool_attrs attrs;
    int x, dp;          /* arguments: the image and what arrives behind the pool */
    int y, p, places;   /* forward */
    ls_ints shape;      /* of x */
    unsigned reordered; /* outputs, as bits, that are sums */
} step;

/* x -> relu -> max_pool2d, of [2, 7, 6, 5]. */
static step begin(ls_dtype dtype, int64_t window, int64_t stride, int64_t padding)
{
    step s = { .g = ls__graph_new("test"), .attrs = { window, stride, padding } };
    s.shape = (ls_ints){ 4, { 2, 7, 6, 5 } };
    ls__spec spec;
    assert_non_null(s.g);
    assert_int_equal(ls__spec_make(&spec, "test", dtype, 4, s.shape.at), LS_OK);
    s.x = ls__graph_input(s.g, &spec);
    s.y = add_call(s.g, "relu", NULL, 1, &s.x);
    s.p = add_call(s.g, "max_pool2d", &s.attrs, 1, &s.y);
    s.places = s.g->wires[s.p].node->outputs[1];
    spec = s.g->wires[s.p].spec;
    s.dp = ls__graph_input(s.g, &spec);
    return s;
}

static int back(step *s, int d)
{
    const ls__pool_grad_attrs a = { s->attrs.window, s->attrs.stride, s->attrs.padding, s->shape };
    return add_call(s->g, "max_pool2d_grad", &a, 2, (const int[]){ d, s->places });
}

static int relu_grad(step *s, int y, int d)
{
    return add_call(s->g, "relu_grad", NULL, 2, (const int[]){ y, d });
}

static int sum_over(step *s, int wire, ls_ints axes)
{
    const sum_attrs a = { axes, 0 };
    return add_call(s->g, "sum", &a, 1, &wire);
}

static void output(step *s, int wire)
{
    assert_int_equal(ls__graph_output(s->g, wire), LS_OK);
}

static void sum_output(step *s, int wire)
{
    s->reordered |= 1u << s->g->n_outputs;
    output(s, wire);
}

/* Numbers of which few are distinct, most not positive and some special. */
static ls_tensor *odd_numbers(const ls__spec *spec, unsigned salt, bool specials)
{
    static const double odd[] = { NAN, -0.0, 0.0, INFINITY, -INFINITY };
    int64_t n = ls__spec_count(spec);
    double *v = ls__frame_alloc(sizeof *v * (size_t)n);
    for (int64_t i = 0; i < n; i++) {
        salt = salt * 1664525u + 1013904223u;
        unsigned r = salt >> 16;
        v[i] = (double)(r % 9) / 4 - 1.5;
        if (r % 13 == 0)
            v[i] = specials ? odd[r / 13 % 5] : odd[1 + r / 13 % 2];
    }
    return ls_cast(ls_from(LS_F64, spec->rank, spec->dims, v), spec->dtype);
}

static void same_value(const ls_tensor *a, const ls_tensor *b)
{
    const float *x = ls__data(a), *y = ls__data(b);
    const double *wide_x = ls__data(a), *wide_y = ls__data(b);
    for (int64_t i = 0; i < ls_count(a); i++) {
        double u = ls_dtype_of(a) == LS_F32 ? (double)x[i] : wide_x[i];
        double v = ls_dtype_of(b) == LS_F32 ? (double)y[i] : wide_y[i];
        if (!(fabs(u - v) <= 1e-5 * (1 + fabs(u))))
            fail_msg("sum %lld is %g, not %g", (long long)i, v, u);
    }
}

static void remove_unused(ls__graph *g)
{
    for (int i = g->n_nodes - 1; i >= 0; i--) {
        ls__uses uses;
        int used = 0;
        assert_int_equal(ls__uses_find(g, &uses), LS_OK);
        for (int k = 0; k < g->nodes[i]->n_outputs; k++)
            used += ls__uses_count(&uses, g->nodes[i]->outputs[k]);
        ls__uses_free(&uses);
        if (!used)
            ls__graph_remove(g, g->nodes[i]);
    }
}

/* Runs the pass, compares the outputs before and after. Sums see no specials. */
static void fuse(step *s)
{
    LS_FRAME {
        ls__graph *g = s->g;
        ls_tensor *arguments[4], *before[MOST], *after[MOST];
        assert_true(g->n_outputs <= MOST && g->n_inputs <= 4);
        ls__graph *old = ls__graph_copy(g);
        assert_non_null(old);
        if (ls__pass_fuse_pool(g) || ls__graph_verify(g))
            fail_msg("%s", ls_error_report());
        remove_unused(g);
        for (unsigned salt = 1; salt <= 6; salt++) {
            for (int i = 0; i < g->n_inputs; i++)
                arguments[i] = odd_numbers(&g->wires[g->inputs[i]].spec, salt * 31 + (unsigned)i,
                                           !s->reordered);
            run_graph(old, arguments, before);
            run_graph(g, arguments, after);
            for (int i = 0; i < g->n_outputs; i++)
                if (s->reordered >> i & 1)
                    same_value(before[i], after[i]);
                else
                    same_bits(before[i], after[i]);
        }
        ls__graph_free(old);
    }
}

static void expect_rows(const step *s, int relus, int pools, int relu_pools)
{
    assert_int_equal(count_rows(s->g, "relu"), relus);
    assert_int_equal(count_rows(s->g, "max_pool2d"), pools);
    assert_int_equal(count_rows(s->g, "max_pool2d_relu"), relu_pools);
}

/* Tiles, tiles with padding, overlapping windows, windows with gaps. */
static const int64_t windows[][3] = { { 2, 2, 0 }, { 2, 2, 1 }, { 3, 2, 0 }, { 3, 2, 1 },
                                      { 4, 3, 1 }, { 1, 2, 0 }, { 2, 3, 0 } };
enum { WINDOWS = sizeof windows / sizeof *windows };

/* The whole pattern; with no sums in it every bit stays, specials included. */
static void test_training(void **state)
{
    (void)state;
    const ls_dtype dtypes[] = { LS_F32, LS_F64, LS_BF16 };
    for (int i = 0; i < 3 * WINDOWS; i++) {
        const int64_t *w = windows[i / 3];
        step s = begin(dtypes[i % 3], w[0], w[1], w[2]);
        int dx = relu_grad(&s, s.y, back(&s, s.dp));
        output(&s, s.p);
        output(&s, dx);
        fuse(&s);
        expect_rows(&s, 0, 0, 1);
        assert_int_equal(s.g->n_nodes, 3);
        const ls__node *mask = s.g->nodes[1];
        assert_true(ls__node_is(mask, "relu_grad"));
        assert_int_equal(mask->inputs[1], s.dp);
        ls__graph_free(s.g);
    }
}

/* Without a backward pass nobody asks for places. */
static void test_forward(void **state)
{
    (void)state;
    for (int i = 0; i < WINDOWS; i++) {
        step s = begin(LS_F32, windows[i][0], windows[i][1], windows[i][2]);
        output(&s, s.p);
        fuse(&s);
        expect_rows(&s, 0, 0, 1);
        ls__graph_free(s.g);
    }
    step s = begin(LS_F32, 3, 1, 1); /* as many as before: nothing is saved */
    output(&s, s.p);
    fuse(&s);
    expect_rows(&s, 1, 1, 0);
    ls__graph_free(s.g);
}

static void test_bias_gradient(void **state)
{
    (void)state;
    const ls_ints over[] = { { 3, { 0, 1, 2 } }, { 2, { -2, 1 } }, { -1, { 0 } } };
    for (int i = 0; i < 2 * WINDOWS; i++)
        for (int k = 0; k < 3; k++) {
            const int64_t *w = windows[i / 2];
            step s = begin(i % 2 ? LS_F64 : LS_F32, w[0], w[1], w[2]);
            int dx = relu_grad(&s, s.y, back(&s, s.dp));
            sum_output(&s, sum_over(&s, dx, over[k]));
            fuse(&s);
            assert_int_equal(count_rows(s.g, "max_pool2d_grad"), 0);
            assert_int_equal(count_rows(s.g, "sum"), 1);
            ls__graph_free(s.g);
        }
}

/* Sums that do care where in the image a number lies, and those of bf16. */
static void test_other_sums(void **state)
{
    (void)state;
    const ls_ints over[] = { { 2, { 0, 1 } }, { 2, { 0, -2 } }, { 0, { 0 } }, { 3, { 0, 1, 2 } } };
    for (int k = 0; k < 4; k++) {
        step s = begin(k == 3 ? LS_BF16 : LS_F32, 3, 2, 1);
        output(&s, sum_over(&s, back(&s, s.dp), over[k]));
        fuse(&s);
        assert_int_equal(count_rows(s.g, "max_pool2d_grad"), 1);
        ls__graph_free(s.g);
    }
}

/* Somebody wants y, or the places as such, or a gradient that is not masked. */
static void test_other_uses(void **state)
{
    (void)state;
    step s = begin(LS_F32, 3, 2, 1); /* y: relu's gradient moves, relu does not */
    output(&s, relu_grad(&s, s.y, back(&s, s.dp)));
    output(&s, s.y);
    fuse(&s);
    expect_rows(&s, 1, 1, 0);
    assert_true(ls__node_is(s.g->wires[s.g->outputs[0]].node, "max_pool2d_grad"));
    ls__graph_free(s.g);

    s = begin(LS_F32, 3, 2, 1); /* places */
    output(&s, s.p);
    output(&s, s.places);
    fuse(&s);
    expect_rows(&s, 1, 1, 0);
    ls__graph_free(s.g);

    s = begin(LS_F32, 3, 2, 1); /* the pool's gradient itself */
    int d = back(&s, s.dp);
    output(&s, d);
    output(&s, relu_grad(&s, s.y, d));
    fuse(&s);
    expect_rows(&s, 1, 1, 0);
    assert_true(ls__node_is(s.g->wires[s.g->outputs[1]].node, "relu_grad"));
    ls__graph_free(s.g);

    s = begin(LS_F32, 3, 2, 1); /* masked by something else of p's shape */
    output(&s, back(&s, relu_grad(&s, s.dp, s.p)));
    fuse(&s);
    expect_rows(&s, 1, 1, 0);
    ls__graph_free(s.g);

    s = begin(LS_F32, 3, 2, 1); /* masked by another image than was pooled */
    output(&s, relu_grad(&s, s.x, back(&s, s.dp)));
    fuse(&s);
    expect_rows(&s, 1, 1, 0);
    assert_true(ls__node_is(s.g->wires[s.g->outputs[0]].node, "relu_grad"));
    ls__graph_free(s.g);
}

/* Places that are an argument, or of other windows, may lie anywhere. */
static void test_foreign_places(void **state)
{
    (void)state;
    step s = begin(LS_F32, 2, 2, 0);
    s.places = ls__graph_input(s.g, &s.g->wires[s.places].spec);
    int d = back(&s, s.dp);
    output(&s, relu_grad(&s, s.y, d));
    output(&s, sum_over(&s, d, (ls_ints){ 3, { 0, 1, 2 } }));
    assert_int_equal(ls__pass_fuse_pool(s.g), LS_OK);
    assert_true(ls__node_is(s.g->wires[s.g->outputs[0]].node, "relu_grad"));
    assert_int_equal(s.g->wires[s.g->outputs[1]].node->inputs[0], d);
    ls__graph_free(s.g);

    s = begin(LS_F32, 3, 2, 1);
    s.attrs.window = 2; /* SAME: as many windows, and other ones */
    output(&s, relu_grad(&s, s.y, back(&s, s.dp)));
    fuse(&s);
    assert_true(ls__node_is(s.g->wires[s.g->outputs[0]].node, "relu_grad"));
    ls__graph_free(s.g);
}

/* Two pools beside each other: a change at one does not hide the other. */
static void test_two(void **state)
{
    (void)state;
    step s = begin(LS_F32, 2, 2, 0);
    int x = add_call(s.g, "neg", NULL, 1, &s.x);
    int y[2] = { s.y, add_call(s.g, "relu", NULL, 1, &x) };
    output(&s, s.p);
    int first = s.places;
    s.p = add_call(s.g, "max_pool2d", &s.attrs, 1, &y[1]);
    s.places = s.g->wires[s.p].node->outputs[1];
    output(&s, s.p);
    output(&s, relu_grad(&s, y[1], back(&s, s.dp)));
    s.places = first;
    output(&s, relu_grad(&s, y[0], back(&s, s.dp)));
    fuse(&s);
    expect_rows(&s, 0, 0, 2);
    ls__graph_free(s.g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training),      cmocka_unit_test(test_forward),
        cmocka_unit_test(test_bias_gradient), cmocka_unit_test(test_other_sums),
        cmocka_unit_test(test_other_uses),    cmocka_unit_test(test_foreign_places),
        cmocka_unit_test(test_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
