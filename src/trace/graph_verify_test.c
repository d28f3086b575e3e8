/*
 * The verifier: good graphs pass, and of each thing graph.h promises a graph that
 * breaks it is refused, with a text that says what and where.
 */
#include "trace/graph_test_support.h"

static void passes(const ls__graph *g)
{
    if (ls__graph_verify(g))
        fail_msg("%s: %s", g->name, ls_error_report());
}

/* Refused as damaged, with `words` in the text. */
static void refused(const ls__graph *g, const char *words)
{
    assert_int_equal(ls__graph_verify(g), LS_CORRUPT);
    assert_int_equal(ls_error(), LS_CORRUPT);
    if (!strstr(ls_error_text(), words))
        fail_msg("'%s' does not say '%s'", ls_error_text(), words);
}

static void test_samples_pass(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        ls__graph *g = made(samples[i].name);
        passes(g);
        ls__graph_free(g);
    }
}

/* Sets `place` to `value` while the graph must be refused. */
#define BREAK(g, place, value, words)                                                              \
    do {                                                                                           \
        __typeof__(place) kept_ = (place);                                                         \
        (place) = (value);                                                                         \
        refused((g), (words));                                                                     \
        (place) = kept_;                                                                           \
        passes(g);                                                                                 \
    } while (0)

static void test_wires(void **state)
{
    (void)state;
    ls__graph *g = made("step");
    ls__node *conv = node_of(g, "conv2d"), *pool = node_of(g, "max_pool2d");
    BREAK(g, conv->inputs[0], -1, "input 0 is wire -1");
    BREAK(g, conv->inputs[0], g->n_wires, "input 0 is wire");
    BREAK(g, conv->inputs[0], pool->outputs[0], "not made before");
    BREAK(g, conv->inputs[0], conv->outputs[0], "not made before");
    BREAK(g, conv->outputs[0], g->n_wires, "output 0 is wire");
    BREAK(g, conv->outputs[0], g->inputs[0], "a second time");
    BREAK(g, pool->outputs[1], pool->outputs[0], "a second time");
    BREAK(g, conv->outputs[0], pool->outputs[0], "another's");
    BREAK(g, g->wires[pool->outputs[0]].index, 1, "another's");
    BREAK(g, g->wires[g->inputs[1]].index, 0, "says it is input 0");
    BREAK(g, g->inputs[1], g->inputs[0], "says it is input 1");
    BREAK(g, g->inputs[1], conv->outputs[0], "input 1");
    BREAK(g, g->wires[g->inputs[0]].kind, (ls__wire_kind)9, "of no kind");
    BREAK(g, g->outputs[0], -1, "output 0");
    BREAK(g, g->outputs[0], g->n_wires, "output 0");
    BREAK(g, g->n_nodes, g->n_nodes - 10, "nobody makes");
    ls__graph_free(g);
}

static void test_constants(void **state)
{
    (void)state;
    ls__graph *g = made("constants");
    int k = 0;
    while (g->wires[k].kind != LS__WIRE_CONSTANT)
        k++;
    BREAK(g, g->wires[k].index, g->n_constants, "says it is constant");
    BREAK(g, g->wires[k].index, -1, "says it is constant");
    BREAK(g, g->constants[0].storage, NULL, "says it is constant");
    BREAK(g, g->wires[k].spec.dtype, LS_BYTES, "strings");
    ls__graph_free(g);
}

static void test_specs(void **state)
{
    (void)state;
    ls__graph *g = made("step");
    ls__node *conv = node_of(g, "conv2d");
    ls__spec *out = &g->wires[conv->outputs[0]].spec;
    BREAK(g, out->dims[1], 5, "its shape rule says f32[2,4,4,2]");
    BREAK(g, out->dtype, LS_F64, "its shape rule says f32[2,4,4,2]");
    BREAK(g, out->dims[1], -4, "size -4 on axis 1");
    BREAK(g, out->dims[1], INT64_MAX, "overflows");
    BREAK(g, out->rank, LS_MAX_RANK + 1, "rank 9");
    BREAK(g, out->dtype, (ls_dtype)77, "no dtype");
    ls__graph_free(g);
}

/* The text has the node, its operator, its call, and what the rule said. */
static void test_rule(void **state)
{
    (void)state;
    ls__graph *g = made("step");
    BREAK(g, g->wires[g->inputs[0]].spec.dims[3], 7, "node 1 (conv2d, call 2): conv2d: ");
    ls_ints *stride = node_of(g, "conv2d")->attrs;
    BREAK(g, stride->at[0], 0, "node 1 (conv2d, call 2): conv2d: ");
    ls__graph_free(g);
}

static void test_arity(void **state)
{
    (void)state;
    ls__graph *g = made("step");
    ls__node *conv = node_of(g, "conv2d"), *adam = node_of(g, "adam_update");
    BREAK(g, conv->n_inputs, 1, "1 inputs, wants 2");
    BREAK(g, conv->n_inputs, -1, "-1 inputs");
    BREAK(g, conv->n_outputs, 0, "0 outputs, wants 1");
    BREAK(g, conv->n_outputs, -1, "-1 outputs");
    BREAK(g, conv->n_cells, 1, "1 cells, wants none");
    BREAK(g, adam->n_cells, 0, "0 cells, wants some");
    BREAK(g, adam->n_cells, -3, "-3 cells");
    BREAK(g, adam->n_cells, 2, "2 cells, wants 3");
    BREAK(g, adam->cells[1], 4, "cell 4 of 4");
    BREAK(g, adam->cells[1], -1, "cell -1 of 4");
    ls__graph_free(g);
    g = made("draws");
    ls__node *concat = node_of(g, "concat"), *split = node_of(g, "split");
    BREAK(g, concat->n_inputs, 0, "0 inputs, wants at least 1");
    BREAK(g, split->n_outputs, 2, "2 outputs, wants 3");
    ls__graph_free(g);
}

static void test_attributes(void **state)
{
    (void)state;
    ls__graph *g = made("step");
    ls__node *conv = node_of(g, "conv2d");
    BREAK(g, conv->attrs, NULL, "no attributes");
    ls_ints *stride = conv->attrs;
    BREAK(g, stride->count, LS_MAX_RANK + 1, "9 numbers of stride");
    BREAK(g, stride->count, -2, "-2 numbers of stride");
    ls_ints *axes = node_of(g, "sum")->attrs;
    assert_int_equal(axes->count, -1);
    ls__graph_free(g);
}

static void test_order(void **state)
{
    (void)state;
    ls__graph *g = made("draws");
    ls__node *first = node_of(g, "random_uniform"), *second = node_of(g, "random_normal");
    BREAK(g, first->draw, -1, "draw -1");
    BREAK(g, first->draw, second->draw, "after draw");
    BREAK(g, first->draw, second->draw + 1, "after draw");
    BREAK(g, g->draws, 2, "draw 2 after draw 1 of 2");
    BREAK(g, g->draws, -1, "-1 draws");
    BREAK(g, g->calls, -1, "-1 calls");
    BREAK(g, first->where, 0, "call 0");
    BREAK(g, first->where, g->calls + 1, "the step has");
    BREAK(g, first->at, 3, "thinks it is node 3");
    BREAK(g, g->nodes[0]->op, NULL, "node 0 has no operator");
    ls__graph_free(g);
}

static ls_status any_shape(ls_call *c)
{
    return ls_call_output(c, 0, LS_F32, 0, NULL);
}

static ls_status silent_shape(ls_call *c)
{
    (void)c;
    return LS_UNSUPPORTED;
}

static void test_rows(void **state)
{
    (void)state;
    ls__graph *g = made("step");
    ls_op row = *node_of(g, "sum")->op;
    ls__node *node = node_of(g, "sum");
    row.kernel = NULL;
    BREAK(g, node->op, &row, "has no kernel");
    row.shape = silent_shape;
    row.flags |= LS_OP_ALIAS;
    BREAK(g, node->op, &row, ls_status_text(LS_UNSUPPORTED));
    row.shape = any_shape; /* as if f32[2,2,2,2] were the memory of a number */
    BREAK(g, node->op, &row, "cannot be the memory");
    row.size = 1;
    BREAK(g, node->op, &row, "has no operator");
    ls__graph_free(g);
}

static void test_cells(void **state)
{
    (void)state;
    ls__graph *g = made("step");
    BREAK(g, g->cells[1].spec.dims[0], 5, "cell 1 is f32[5,3,1,2], and the one behind it");
    BREAK(g, g->cells[1].spec.dims[0], -5, "cell 1: spec: size -5");
    BREAK(g, g->cells[1].serial, g->cells[3].serial, "two cells are variable");
    BREAK(g, g->cells[1].cell, NULL, "no cell behind it");
    BREAK(g, g->cells[1].name, NULL, "no name");
    ls__graph_free(g);
}

/* An error that was pending before stays the first one, and does not fail a good graph. */
static void test_pending(void **state)
{
    (void)state;
    ls__graph *g = made("step");
    ls__fail(LS_IO, "before");
    assert_int_equal(ls__graph_verify(g), LS_OK);
    assert_int_equal(ls_error_pending(), LS_IO);
    g->outputs[0] = -1;
    assert_int_equal(ls__graph_verify(g), LS_CORRUPT);
    assert_int_equal(ls_error(), LS_IO);
    assert_string_equal(ls_error_text(), "before");
    ls__graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_samples_pass, clean), cmocka_unit_test_setup(test_wires, clean),
        cmocka_unit_test_setup(test_constants, clean),    cmocka_unit_test_setup(test_specs, clean),
        cmocka_unit_test_setup(test_rule, clean),         cmocka_unit_test_setup(test_arity, clean),
        cmocka_unit_test_setup(test_attributes, clean),   cmocka_unit_test_setup(test_order, clean),
        cmocka_unit_test_setup(test_rows, clean),         cmocka_unit_test_setup(test_cells, clean),
        cmocka_unit_test_setup(test_pending, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
