/*
 * Products with bias and activation: which are fused, to what extent, and that
 * results keep their bits; for every activation, both dtypes, both sides of the
 * addition, transposes and batches.
 */
#include "ops/matmul.h"
#include "trace/pass.h"
#include "trace/test_run.h"

enum { MOST = 3 };

typedef struct step {
    ls__graph *g;
    int a, b, bias;
    int64_t ta, tb;
} step;

static ls__spec spec_of(ls_dtype dtype, int rank, const int64_t *dims)
{
    ls__spec s;
    assert_int_equal(ls__spec_make(&s, "test", dtype, rank, dims), LS_OK);
    return s;
}

/* Arguments x [2, m, k], w [k, n] (either transposed), bias [n]. */
static step begin(ls_dtype dtype, int64_t m, int64_t n, int64_t k, bool ta, bool tb)
{
    ls__graph *g = ls__graph_new("test");
    assert_non_null(g);
    ls__spec a = spec_of(dtype, 3, (const int64_t[]){ 2, ta ? k : m, ta ? m : k });
    ls__spec b = spec_of(dtype, 2, (const int64_t[]){ tb ? n : k, tb ? k : n });
    ls__spec bias = spec_of(dtype, 1, &n);
    step s = { .g = g, .ta = ta, .tb = tb };
    s.a = ls__graph_input(g, &a);
    s.b = ls__graph_input(g, &b);
    s.bias = ls__graph_input(g, &bias);
    return s;
}

static int product(step *s)
{
    const ls__matmul_attrs attrs = { s->ta, s->tb };
    return add_call(s->g, "matmul", &attrs, 2, (const int[]){ s->a, s->b });
}

static int sum(step *s, int x, int y)
{
    return add_call(s->g, "add", NULL, 2, (const int[]){ x, y });
}

/* Runs the pass and compares the outputs before and after; frees the graph
 * unless the caller wants to look at it. */
static ls__graph *fuse(step *s)
{
    LS_FRAME {
        ls_tensor *arguments[8], *before[MOST], *after[MOST];
        assert_true(s->g->n_outputs <= MOST && s->g->n_inputs <= 8);
        for (int i = 0; i < s->g->n_inputs; i++)
            arguments[i] = some_numbers(&s->g->wires[s->g->inputs[i]].spec, (uint64_t)i + 7);
        run_graph(s->g, arguments, before);
        if (ls__pass_fuse_matmul(s->g))
            fail_msg("%s", ls_error_report());
        if (ls__graph_verify(s->g))
            fail_msg("%s", ls_error_report());
        run_graph(s->g, arguments, after);
        for (int i = 0; i < s->g->n_outputs; i++)
            same_bits(before[i], after[i]);
    }
    return s->g;
}

static int64_t act_at(const ls__graph *g, int node)
{
    assert_true(ls__node_is(g->nodes[node], "matmul_bias_act"));
    return ((const ls__matmul_bias_attrs *)g->nodes[node]->attrs)->act;
}

/* ---- what is fused -------------------------------------------------------------------- */

static const struct {
    const char *row;
    int64_t attr; /* gelu's */
    ls__activation act;
} acts[] = { { NULL, 0, LS__ACT_NONE },   { "relu", 0, LS__ACT_RELU },
             { "tanh", 0, LS__ACT_TANH }, { "sigmoid", 0, LS__ACT_SIGMOID },
             { "gelu", 0, LS__ACT_GELU }, { "gelu", 1, LS__ACT_GELU_TANH } };
enum { ACTS = sizeof acts / sizeof *acts };

static void check_act(int which, ls_dtype dtype, int64_t m, int64_t n, int turn)
{
    step s = begin(dtype, m, n, 9, turn & 1, turn & 2);
    int t = product(&s);
    int y = turn & 4 ? sum(&s, s.bias, t) : sum(&s, t, s.bias);
    if (acts[which].row)
        y = add_call(s.g, acts[which].row, &acts[which].attr, 1, &y);
    assert_int_equal(ls__graph_output(s.g, y), LS_OK);
    fuse(&s);
    assert_int_equal(s.g->n_nodes, 1);
    assert_int_equal(act_at(s.g, 0), acts[which].act);
    ls__graph_free(s.g);
}

/* Rows in one block and in many, rows longer than a block, single columns. */
static void test_activations(void **state)
{
    (void)state;
    for (int turn = 0; turn < 8; turn++)
        for (int which = 0; which < ACTS; which++) {
            ls_dtype dtype = (turn ^ which) & 1 ? LS_F64 : LS_F32;
            check_act(which, dtype, 5, 7, turn);
            check_act(which, LS_F32, 61, 131, turn);
        }
    check_act(1, LS_F32, 3, 5000, 0);
    check_act(1, LS_F64, 40, 1, 2);
    check_act(2, LS_F32, 1, 1, 0);
    check_act(2, LS_F32, 0, 4, 0);
}

/* A second layer on top of the first: both, and the second sees the first's result. */
static void test_layers(void **state)
{
    (void)state;
    step s = begin(LS_F32, 4, 6, 6, false, false);
    int y = sum(&s, product(&s), s.bias);
    y = add_call(s.g, "relu", NULL, 1, &y);
    s.a = y;
    y = sum(&s, s.bias, product(&s));
    y = add_call(s.g, "tanh", NULL, 1, &y);
    assert_int_equal(ls__graph_output(s.g, y), LS_OK);
    fuse(&s);
    assert_int_equal(s.g->n_nodes, 2);
    assert_int_equal(act_at(s.g, 0), LS__ACT_RELU);
    assert_int_equal(act_at(s.g, 1), LS__ACT_TANH);
    ls__graph_free(s.g);
}

/* gelu's gradient wants what gelu got: the bias goes in alone. */
static void test_value_before_activation_used(void **state)
{
    (void)state;
    for (int as_output = 0; as_output < 2; as_output++) {
        const int64_t attr = 0;
        step s = begin(LS_F32, 4, 6, 3, false, true);
        int u = sum(&s, product(&s), s.bias);
        int y = add_call(s.g, "gelu", &attr, 1, &u);
        int dx = as_output ? u : add_call(s.g, "gelu_grad", &attr, 2, (const int[]){ u, y });
        ls__graph_output(s.g, y);
        ls__graph_output(s.g, dx);
        fuse(&s);
        assert_int_equal(act_at(s.g, 0), LS__ACT_NONE);
        assert_int_equal(count_rows(s.g, "add"), 0);
        assert_int_equal(count_rows(s.g, "gelu"), 1);
        ls__graph_free(s.g);
    }
}

/* ---- what is not ------------------------------------------------------------------------ */

static void untouched(step *s, int y)
{
    int before = s->g->n_nodes;
    ls__graph_output(s->g, y);
    fuse(s);
    assert_int_equal(s->g->n_nodes, before);
    assert_int_equal(count_rows(s->g, "matmul_bias_act"), 0);
    ls__graph_free(s->g);
}

static void test_left_alone(void **state)
{
    (void)state;
    step s = begin(LS_F32, 4, 6, 3, false, false); /* the product has another use */
    int t = product(&s);
    ls__graph_output(s.g, t);
    untouched(&s, sum(&s, t, s.bias));

    s = begin(LS_F32, 4, 6, 3, false, false);
    t = product(&s);
    untouched(&s, sum(&s, sum(&s, t, s.bias), t));

    s = begin(LS_F32, 4, 6, 3, false, false); /* not a bias: a number for all columns, */
    ls__spec other = spec_of(LS_F32, 1, (const int64_t[]){ 1 });
    untouched(&s, sum(&s, product(&s), ls__graph_input(s.g, &other)));

    s = begin(LS_F32, 4, 1, 3, false, false); /* or one that widens the product, */
    other = spec_of(LS_F32, 1, (const int64_t[]){ 5 });
    untouched(&s, sum(&s, product(&s), ls__graph_input(s.g, &other)));

    s = begin(LS_F32, 4, 6, 3, false, false); /* or a matrix */
    other = spec_of(LS_F32, 2, (const int64_t[]){ 1, 6 });
    untouched(&s, sum(&s, product(&s), ls__graph_input(s.g, &other)));
}

/* bf16 is rounded between the calls: fusing would change that. */
static void test_bf16(void **state)
{
    (void)state;
    step s = begin(LS_BF16, 4, 6, 3, false, false);
    ls__graph_output(s.g, sum(&s, product(&s), s.bias));
    assert_int_equal(ls__pass_fuse_matmul(s.g), LS_OK);
    assert_int_equal(s.g->n_nodes, 2);
    ls__graph_free(s.g);
}

/* ---- the row itself ----------------------------------------------------------------------- */

static void refused(step *s, int bias, int64_t act, ls_status want)
{
    const ls__matmul_bias_attrs attrs = { .act = act };
    const int inputs[3] = { s->a, s->b, bias };
    assert_null(ls__graph_call(s->g, NULL, ls_op_find("matmul_bias_act"), &attrs, 3, inputs));
    failed(want);
}

static void test_row_refuses(void **state)
{
    (void)state;
    step s = begin(LS_F32, 4, 6, 3, false, false);
    refused(&s, s.bias, LS__ACT_END, LS_INVALID);
    refused(&s, s.bias, -1, LS_INVALID);
    refused(&s, s.b, 0, LS_SHAPE);
    ls__spec other = spec_of(LS_F32, 1, (const int64_t[]){ 5 });
    refused(&s, ls__graph_input(s.g, &other), 0, LS_SHAPE);
    other = spec_of(LS_F64, 1, (const int64_t[]){ 6 });
    refused(&s, ls__graph_input(s.g, &other), 0, LS_SHAPE);
    ls__graph_free(s.g);
    s = begin(LS_BF16, 4, 6, 3, false, false);
    refused(&s, s.bias, 0, LS_SHAPE);
    ls__graph_free(s.g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_activations, clean),
        cmocka_unit_test_setup(test_layers, clean),
        cmocka_unit_test_setup(test_value_before_activation_used, clean),
        cmocka_unit_test_setup(test_left_alone, clean),
        cmocka_unit_test_setup(test_bf16, clean),
        cmocka_unit_test_setup(test_row_refuses, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
