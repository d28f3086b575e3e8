/* The small passes (dead, common, writes-last) on graphs built by hand, and the switches. */
#include "trace/pass.h"

#include "trace/test_run.h"

static const ls__spec vector = { LS_F32, 1, { 3 } };

static int unary(ls__graph *g, const char *row, int x)
{
    return add_call(g, row, NULL, 1, &x);
}

static int add(ls__graph *g, int a, int b)
{
    return add_call(g, "add", NULL, 2, (int[]){ a, b });
}

static int new_cell(ls__graph *g, const char *name)
{
    static uint64_t serial = 1000;
    return ls__graph_cell_add(g, serial++, name, &vector, NULL);
}

static ls__node *on_cell(ls__graph *g, const char *row, int cell, int n, const int *inputs)
{
    g->calls++;
    ls__node *node = ls__graph_call_cells(g, NULL, ls_op_find(row), NULL, n, inputs, 1, &cell);
    assert_non_null(node);
    return node;
}

/* ---- dead --------------------------------------------------------------------------- */

static void what_nobody_uses_goes(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("t");
    int x = ls__graph_input(g, &vector), kept = unary(g, "exp", x);
    unary(g, "sin", unary(g, "cos", x));
    ls__graph_output(g, unary(g, "neg", kept));
    assert_int_equal(ls__pass_dead(g), LS_OK);
    assert_int_equal(g->n_nodes, 2);
    assert_true(ls__node_is(g->nodes[0], "exp") && ls__node_is(g->nodes[1], "neg"));
    assert_int_equal(g->nodes[1]->at, 1);
    assert_int_equal(ls__graph_verify(g), LS_OK);
    ls__graph_free(g);
}

static void effects_stay(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("t");
    int x = ls__graph_input(g, &vector), c = new_cell(g, "w");
    on_cell(g, "read", c, 0, NULL);
    on_cell(g, "assign", c, 1, (int[]){ unary(g, "exp", x) });
    assert_int_equal(ls__pass_dead(g), LS_OK);
    assert_int_equal(g->n_nodes, 3);
    ls__graph_free(g);
}

/* ---- common --------------------------------------------------------------------------- */

static void equal_calls_are_one(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("t");
    int x = ls__graph_input(g, &vector), y = ls__graph_input(g, &vector);
    int a = add(g, x, y), b = add(g, x, y), c = add(g, y, x);
    int sum = add(g, unary(g, "exp", a), unary(g, "exp", b));
    ls__graph_output(g, add(g, sum, c));
    assert_int_equal(ls__pass_common(g), LS_OK);
    assert_int_equal(ls__pass_dead(g), LS_OK);
    assert_int_equal(count_rows(g, "exp"), 1);
    assert_int_equal(count_rows(g, "add"), 4); /* x + y, y + x, and the two sums */
    assert_int_equal(ls__graph_verify(g), LS_OK);
    ls__graph_free(g);
}

static void attributes_tell_calls_apart(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("t");
    ls__spec matrix = { LS_F32, 2, { 2, 2 } };
    int x = ls__graph_input(g, &matrix);
    struct {
        int64_t ta, tb;
    } one = { 0, 1 }, other = { 1, 0 };
    int a = add_call(g, "matmul", &one, 2, (int[]){ x, x });
    int b = add_call(g, "matmul", &other, 2, (int[]){ x, x });
    int c = add_call(g, "matmul", &one, 2, (int[]){ x, x });
    ls__graph_output(g, add(g, add(g, a, b), c));
    assert_int_equal(ls__pass_common(g), LS_OK);
    assert_int_equal(ls__pass_dead(g), LS_OK);
    assert_int_equal(count_rows(g, "matmul"), 2);
    ls__graph_free(g);
}

static void reads_are_never_joined(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("t");
    int x = ls__graph_input(g, &vector), c = new_cell(g, "w");
    int before = on_cell(g, "read", c, 0, NULL)->outputs[0];
    on_cell(g, "assign", c, 1, &x);
    int after = on_cell(g, "read", c, 0, NULL)->outputs[0];
    ls__graph_output(g, add(g, before, after));
    assert_int_equal(ls__pass_common(g), LS_OK);
    assert_int_equal(count_rows(g, "read"), 2);
    assert_int_not_equal(g->nodes[g->n_nodes - 1]->inputs[0], g->nodes[g->n_nodes - 1]->inputs[1]);
    ls__graph_free(g);
}

static int constant(ls__graph *g, const float *data)
{
    ls__storage *s = ls__storage_new("test", 3 * sizeof *data);
    memcpy(s->data, data, 3 * sizeof *data);
    int wire = ls__graph_constant(g, &vector, s);
    ls__storage_unref(s);
    return wire;
}

static void equal_constants_are_one(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("t");
    int a = constant(g, (float[]){ 1, 2, 3 }), b = constant(g, (float[]){ 1, 2, 3 });
    int c = constant(g, (float[]){ 1, 2, 4 });
    ls__graph_output(g, add(g, add(g, a, b), c));
    assert_int_equal(ls__pass_common(g), LS_OK);
    assert_int_equal(g->nodes[0]->inputs[1], a);
    assert_int_equal(g->nodes[1]->inputs[1], c);
    ls__graph_free(g);
}

/* Joining them is no more work than looking at each: with as many as this, comparing all
 * with all would take minutes. */
static void many_equal_constants(void **state)
{
    (void)state;
    enum { MANY = 4000 };
    ls__graph *g = ls__graph_new("t");
    int x = ls__graph_input(g, &vector);
    for (int i = 0; i < MANY; i++)
        x = add(g, x, constant(g, (float[]){ 1, 1, 1 }));
    ls__graph_output(g, x);
    assert_int_equal(ls__pass_common(g), LS_OK);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(g->nodes[i]->inputs[1], g->nodes[0]->inputs[1]);
    ls__graph_free(g);
}

/* ---- writes last ------------------------------------------------------------------------- */

static void a_write_waits_for_readers_elsewhere(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("t");
    int x = ls__graph_input(g, &vector), w = new_cell(g, "w"), v = new_cell(g, "v");
    int before = on_cell(g, "read", w, 0, NULL)->outputs[0];
    ls__node *write = on_cell(g, "assign", w, 1, &x);
    ls__graph_output(g, unary(g, "exp", before));
    int other = on_cell(g, "read", v, 0, NULL)->outputs[0];
    ls__graph_output(g, unary(g, "sin", other));
    assert_int_equal(ls__pass_writes_last(g), LS_OK);
    assert_ptr_equal(g->nodes[g->n_nodes - 1], write);
    assert_int_equal(ls__graph_verify(g), LS_OK);
    ls__graph_free(g);
}

static void a_read_after_the_write_stays_after(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("t");
    int x = ls__graph_input(g, &vector), w = new_cell(g, "w"), v = new_cell(g, "v");
    ls__node *first = on_cell(g, "assign", v, 1, &x);
    ls__node *write = on_cell(g, "assign_add", w, 1, &x);
    ls__node *read = on_cell(g, "read", w, 0, NULL);
    ls__graph_output(g, unary(g, "exp", read->outputs[0]));
    assert_int_equal(ls__pass_writes_last(g), LS_OK);
    assert_true(first->at < write->at); /* writes keep their order */
    assert_true(write->at < read->at);
    assert_int_equal(ls__graph_verify(g), LS_OK);
    ls__graph_free(g);
}

/* ---- switches --------------------------------------------------------------------------------- */

static void names_are_read(void **state)
{
    (void)state;
    ls__pass_set set = 7;
    assert_int_equal(ls__pass_set_parse("t", NULL, &set), LS_OK);
    assert_int_equal(set, 0);
    assert_int_equal(ls__pass_set_parse("t", "dead,fuse-conv", &set), LS_OK);
    assert_true(ls__pass_is_off(set, "dead") && ls__pass_is_off(set, "fuse-conv"));
    assert_false(ls__pass_is_off(set, "common"));
    assert_int_equal(ls__pass_set_parse("t", "all", &set), LS_OK);
    assert_true(ls__pass_is_off(set, "memory") && ls__pass_is_off(set, "layout"));
}

static void a_wrong_name_is_told(void **state)
{
    (void)state;
    ls__pass_set set = 7;
    assert_int_equal(ls__pass_set_parse("t", "dead,layuot", &set), LS_INVALID);
    assert_non_null(strstr(ls_error_text(), "layuot"));
    assert_non_null(strstr(ls_error_hint(), "layout"));
    assert_int_equal(set, 7);
    ls_error();
    assert_int_equal(ls__pass_set_parse("t", "dead,,common", &set), LS_INVALID);
    failed(LS_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_nobody_uses_goes, clean),
        cmocka_unit_test_setup(effects_stay, clean),
        cmocka_unit_test_setup(equal_calls_are_one, clean),
        cmocka_unit_test_setup(attributes_tell_calls_apart, clean),
        cmocka_unit_test_setup(reads_are_never_joined, clean),
        cmocka_unit_test_setup(equal_constants_are_one, clean),
        cmocka_unit_test_setup(many_equal_constants, clean),
        cmocka_unit_test_setup(a_write_waits_for_readers_elsewhere, clean),
        cmocka_unit_test_setup(a_read_after_the_write_stays_after, clean),
        cmocka_unit_test_setup(names_are_read, clean),
        cmocka_unit_test_setup(a_wrong_name_is_told, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
