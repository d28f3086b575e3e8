/*
 * Building and changing graphs: what graph.h says of each function.
 */
#include "trace/graph_test_support.h"

static void passes(const ls__graph *g)
{
    if (ls__graph_verify(g))
        fail_msg("%s: %s", g->name, ls_error_report());
}

static void test_name_is_copied(void **state)
{
    (void)state;
    char name[] = "mine";
    ls__graph *g = ls__graph_new(name);
    name[0] = 'x';
    assert_string_equal(g->name, "mine");
    assert_int_equal(g->n_nodes + g->n_wires + g->n_outputs + g->n_inputs, 0);
    ls__graph_free(g);
    ls__graph_free(NULL);
}

static void test_inputs(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("test");
    int a = sample_input(g, LS_F32, 2, 4, 3, 0, 0), b = sample_input(g, LS_I64, 0, 0, 0, 0, 0);
    assert_int_equal(g->n_inputs, 2);
    assert_int_equal(g->inputs[0], a);
    assert_int_equal(g->inputs[1], b);
    assert_int_equal(g->wires[b].kind, LS__WIRE_INPUT);
    assert_int_equal(g->wires[b].index, 1);
    assert_int_equal(g->wires[a].spec.dims[1], 3);
    assert_null(ls__wire_data(g, a));
    double value;
    assert_false(ls__wire_splat(g, a, &value));
    ls__graph_free(g);
}

static void test_constants(void **state)
{
    (void)state;
    static const float same[] = { 2, 2, 2 }, last[] = { 2, 2, 3 }, zeros[] = { 0, -0.0f };
    static const int64_t one[] = { 7 };
    size_t before = memory();
    ls__graph *g = ls__graph_new("test");
    double value = 0;
    int a = sample_constant(g, LS_F32, 1, 3, 0, same);
    assert_true(ls__wire_splat(g, a, &value));
    assert_true(value == 2);
    assert_memory_equal(ls__wire_data(g, a), same, sizeof same);
    assert_false(ls__wire_splat(g, sample_constant(g, LS_F32, 1, 3, 0, last), &value));
    assert_false(ls__wire_splat(g, sample_constant(g, LS_F32, 1, 2, 0, zeros), &value));
    assert_true(ls__wire_splat(g, sample_constant(g, LS_I64, 0, 0, 0, one), &value));
    assert_true(value == 7);
    assert_false(ls__wire_splat(g, sample_constant(g, LS_F32, 1, 0, 0, NULL), &value));
    assert_int_equal(g->n_constants, 5);
    assert_true(memory() > before);
    ls__graph_free(g);
    assert_int_equal(memory(), before);
}

static void test_cells(void **state)
{
    (void)state;
    ls__spec spec = sample_spec(LS_F32, 1, 3, 0, 0, 0);
    ls__graph *g = ls__graph_new("test");
    ls__cell *cell = NULL;
    assert_int_equal(ls__cell_new("w", &spec, &cell), LS_OK);
    int w = ls__graph_cell_add(g, ls__cell_serial(cell), "w", &spec, cell);
    assert_int_equal(w, 0);
    assert_int_equal(ls__graph_cell_add(g, ls__cell_serial(cell), "w", &spec, cell), 0);
    assert_int_equal(ls__graph_cell_add(g, ls__cell_serial(cell) + 1, "v", &spec, NULL), 1);
    assert_int_equal(g->n_cells, 2);
    assert_false(ls__cell_is_hollow(g->cells[0].cell));
    assert_true(ls__cell_is_hollow(g->cells[1].cell));
    ls__cell_unref(cell); /* the graph has a reference of its own */
    int read = sample_wire(g, "read", NULL, NULL, WIRES(w));
    assert_int_equal(ls__wire_cell(g, read), w);
    int twice = sample_wire(g, "identity", NULL, WIRES(read), NULL);
    assert_int_equal(ls__wire_cell(g, twice), -1);
    assert_int_equal(ls__wire_cell(g, sample_input(g, LS_F32, 0, 0, 0, 0, 0)), -1);
    passes(g);
    ls__graph_free(g);
}

/* ---- calls -------------------------------------------------------------------------------- */

static void test_call(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("test");
    int x = sample_input(g, LS_F32, 2, 4, 3, 0, 0);
    ls_ints axes = { .count = 1, .at = { 1 } };
    struct {
        ls_ints axes;
        int64_t keep;
    } attrs = { axes, 1 };
    g->calls = 5;
    const ls_op *sum = ls_op_find("sum");
    assert_int_equal(sum->attr_size, sizeof attrs);
    ls__node *node = ls__graph_call(g, NULL, sum, &attrs, 1, &x);
    assert_non_null(node);
    attrs.axes.at[0] = 0; /* it has its own copy */
    assert_int_equal(((const ls_ints *)node->attrs)->at[0], 1);
    assert_int_equal(node->where, 5);
    assert_int_equal(node->at, 0);
    assert_int_equal(node->n_outputs, 1);
    const ls__wire *out = &g->wires[node->outputs[0]];
    assert_ptr_equal(out->node, node);
    assert_int_equal(out->kind, LS__WIRE_RESULT);
    assert_string_equal(ls__spec_text(&out->spec), "f32[4,1]");
    assert_ptr_equal(ls__made_by(g, node->outputs[0], "sum"), node);
    assert_null(ls__made_by(g, node->outputs[0], "mean"));
    assert_null(ls__made_by(g, x, "sum"));
    assert_false(ls__node_is(NULL, "sum"));
    passes(g);
    ls__graph_free(g);
}

static void test_call_before(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("test");
    int x = sample_input(g, LS_F32, 1, 3, 0, 0, 0);
    ls__node *first = sample_call(g, "neg", NULL, WIRES(x), NULL);
    ls__node *last = sample_call(g, "exp", NULL, WIRES(first->outputs[0]), NULL);
    g->calls = 9; /* it takes the number of the one it stands before */
    ls__node *between = ls__graph_call(g, last, ls_op_find("relu"), NULL, 1, first->outputs);
    assert_int_equal(first->at, 0);
    assert_int_equal(between->at, 1);
    assert_int_equal(last->at, 2);
    assert_ptr_equal(g->nodes[1], between);
    assert_int_equal(between->where, last->where);
    passes(g);
    ls__graph_free(g);
}

static void test_call_refused(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("test");
    int wires[] = { sample_input(g, LS_F32, 1, 3, 0, 0, 0),
                    sample_input(g, LS_F32, 1, 4, 0, 0, 0) };
    int before = g->n_wires;
    assert_null(ls__graph_call(g, NULL, ls_op_find("add"), NULL, 2, wires));
    failed(LS_SHAPE);
    assert_int_equal(g->n_nodes, 0);
    assert_int_equal(g->n_wires, before);
    ls__graph_free(g);
}

static void test_add(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("test");
    int x = sample_input(g, LS_F32, 1, 3, 0, 0, 0);
    ls__spec said = sample_spec(LS_F32, 1, 4, 0, 0, 0); /* no rule is run, so it may lie */
    g->calls = 1;
    ls__node *node = ls__graph_add(g, NULL, ls_op_find("neg"), NULL, 1, &x, 0, NULL, 1, &said);
    assert_string_equal(ls__spec_text(&g->wires[node->outputs[0]].spec), "f32[4]");
    assert_int_equal(ls__graph_verify(g), LS_CORRUPT);
    failed(LS_CORRUPT);
    ls__graph_free(g);
}

static void test_many(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("test");
    int x = sample_input(g, LS_F32, 1, 3, 0, 0, 0);
    for (int i = 0; i < 1000; i++)
        x = sample_wire(g, "neg", NULL, WIRES(x), NULL);
    ls__graph_output(g, x);
    assert_int_equal(g->n_nodes, 1000);
    passes(g);
    ls__graph_free(g);
}

/* ---- changes ------------------------------------------------------------------------------ */

static void test_remove(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("test");
    int x = sample_input(g, LS_F32, 1, 3, 0, 0, 0);
    ls__node *a = sample_call(g, "neg", NULL, WIRES(x), NULL);
    ls__node *b = sample_call(g, "exp", NULL, WIRES(x), NULL);
    ls__node *c = sample_call(g, "relu", NULL, WIRES(a->outputs[0]), NULL);
    ls__graph_output(g, c->outputs[0]);
    ls__graph_remove(g, b);
    assert_int_equal(g->n_nodes, 2);
    assert_ptr_equal(g->nodes[1], c);
    assert_int_equal(c->at, 1);
    passes(g);
    ls__graph_free(g);
}

static void test_redirect(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("test");
    int x = sample_input(g, LS_F32, 1, 3, 0, 0, 0), y = sample_input(g, LS_F32, 1, 3, 0, 0, 0);
    ls__node *both = sample_call(g, "add", NULL, WIRES(x, x), NULL);
    ls__node *spared = sample_call(g, "mul", NULL, WIRES(x, y), NULL);
    ls__graph_output(g, x);
    ls__graph_output(g, spared->outputs[0]);
    ls__graph_redirect(g, x, y, spared);
    assert_int_equal(both->inputs[0], y);
    assert_int_equal(both->inputs[1], y);
    assert_int_equal(spared->inputs[0], x);
    assert_int_equal(g->outputs[0], y);
    assert_int_equal(g->outputs[1], spared->outputs[0]);
    ls__graph_redirect(g, x, y, NULL);
    assert_int_equal(spared->inputs[0], y);
    passes(g);
    ls__graph_free(g);
}

static void test_number(void **state)
{
    (void)state;
    ls__graph *g = made("draws");
    for (int i = 0; i < g->n_nodes; i++)
        g->nodes[i]->at = -1;
    ls__graph_number(g);
    passes(g);
    ls__graph_free(g);
}

static void test_effects(void **state)
{
    (void)state;
    ls__graph *g = made("step");
    assert_true(ls__node_has_effect(node_of(g, "read")));
    assert_true(ls__node_has_effect(node_of(g, "adam_update")));
    assert_false(ls__node_has_effect(node_of(g, "conv2d")));
    ls__graph_free(g);
    g = made("draws");
    assert_true(ls__node_has_effect(node_of(g, "random_normal")));
    assert_false(ls__node_has_effect(node_of(g, "split")));
    ls__graph_free(g);
}

/* ---- uses ---------------------------------------------------------------------------------- */

static void test_uses(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("test");
    int x = sample_input(g, LS_F32, 1, 3, 0, 0, 0), lone = sample_input(g, LS_F32, 0, 0, 0, 0, 0);
    ls__node *a = sample_call(g, "add", NULL, WIRES(x, x), NULL);
    ls__node *b = sample_call(g, "mul", NULL, WIRES(a->outputs[0], x), NULL);
    ls__graph_output(g, x);
    ls__graph_output(g, b->outputs[0]);
    ls__uses uses;
    assert_int_equal(ls__uses_find(g, &uses), LS_OK);
    assert_int_equal(ls__uses_count(&uses, x), 4);
    ls__node *const *users = uses.users + uses.begin[x];
    assert_ptr_equal(users[0], a);
    assert_ptr_equal(users[1], a);
    assert_ptr_equal(users[2], b);
    assert_null(users[3]);
    assert_int_equal(ls__uses_count(&uses, lone), 0);
    assert_null(ls__only_user(&uses, lone));
    assert_null(ls__only_user(&uses, x));
    assert_ptr_equal(ls__only_user(&uses, a->outputs[0]), b);
    assert_int_equal(ls__uses_count(&uses, b->outputs[0]), 1);
    assert_null(ls__only_user(&uses, b->outputs[0])); /* the graph's */
    ls__uses_free(&uses);
    ls__graph_free(g);
}

static void test_same_attrs(void **state)
{
    (void)state;
    struct {
        ls_ints axes;
        int64_t keep;
    } a = { .keep = 1 }, b = { .keep = 1 };
    const ls_op *sum = ls_op_find("sum");
    a.axes = (ls_ints){ .count = 2, .at = { 0, 1, 5 } };
    b.axes = (ls_ints){ .count = 2, .at = { 0, 1, 6 } }; /* beyond the count: not part of it */
    assert_true(ls__same_attrs(sum, &a, &b));
    b.axes.at[1] = 2;
    assert_false(ls__same_attrs(sum, &a, &b));
    b.axes.at[1] = 1;
    b.axes.count = 1;
    assert_false(ls__same_attrs(sum, &a, &b));
    b = a;
    b.keep = 0;
    assert_false(ls__same_attrs(sum, &a, &b));
    a.axes.count = b.axes.count = -1;
    b.keep = 1;
    assert_true(ls__same_attrs(sum, &a, &b));
    assert_true(ls__same_attrs(ls_op_find("neg"), NULL, NULL));
}

/* ---- copies -------------------------------------------------------------------------------- */

static char *text_of(const ls__graph *g)
{
    char *text = ls__graph_text(g);
    assert_non_null(text);
    return text;
}

static void test_copy(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        ls__graph *g = made(samples[i].name);
        ls__graph *copy = ls__graph_copy(g);
        assert_non_null(copy);
        passes(copy);
        char *one = text_of(g), *two = text_of(copy);
        assert_string_equal(one, two);
        assert_int_equal(copy->n_wires, g->n_wires);
        assert_int_equal(copy->draws, g->draws);
        for (int k = 0; k < copy->n_nodes; k++) { /* changing one leaves the other */
            assert_ptr_not_equal(copy->nodes[k], g->nodes[k]);
            copy->nodes[k]->where = 0;
            if (copy->nodes[k]->attrs)
                memset(copy->nodes[k]->attrs, 0, copy->nodes[k]->op->attr_size);
            for (int j = 0; j < copy->nodes[k]->n_inputs; j++)
                copy->nodes[k]->inputs[j] = 0;
        }
        ls__graph_free(copy);
        passes(g);
        free(two);
        two = text_of(g);
        assert_string_equal(one, two);
        free(one);
        free(two);
        ls__graph_free(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_name_is_copied, clean),
        cmocka_unit_test_setup(test_inputs, clean),
        cmocka_unit_test_setup(test_constants, clean),
        cmocka_unit_test_setup(test_cells, clean),
        cmocka_unit_test_setup(test_call, clean),
        cmocka_unit_test_setup(test_call_before, clean),
        cmocka_unit_test_setup(test_call_refused, clean),
        cmocka_unit_test_setup(test_add, clean),
        cmocka_unit_test_setup(test_many, clean),
        cmocka_unit_test_setup(test_remove, clean),
        cmocka_unit_test_setup(test_redirect, clean),
        cmocka_unit_test_setup(test_number, clean),
        cmocka_unit_test_setup(test_effects, clean),
        cmocka_unit_test_setup(test_uses, clean),
        cmocka_unit_test_setup(test_same_attrs, clean),
        cmocka_unit_test_setup(test_copy, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
