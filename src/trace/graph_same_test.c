/*
 * Graphs that are the same but for their variables, and every way not to be.
 */
#include "tensor/test_support.h"

#include "dispatch/registry.h"
#include "tensor/tensor.h"
#include "trace/graph.h"

typedef struct variant {
    const char *op; /* of the last node */
    float constant; /* that is added */
    int64_t length; /* of the variable */
    bool swapped;   /* operands of the first node */
    bool two_outputs;
    int64_t more_draws;
} variant;

static const variant usual = { .op = "exp", .constant = 2, .length = 3 };

/* y = op(x + constant); the variable is read. */
static ls__graph *build(const variant *v)
{
    ls__graph *g = ls__graph_new("t");
    ls__spec spec = { .dtype = LS_F32, .rank = 1, .dims = { 3 } }, cell_spec = spec;
    cell_spec.dims[0] = v->length;
    int x = ls__graph_input(g, &spec);
    ls_tensor *number = ls_full(LS_F32, LS_DIMS(3), v->constant);
    int c = ls__graph_constant(g, &spec, number->storage);
    int cell = ls__graph_cell_add(g, ls__new_id(), "w", &cell_spec, NULL);
    g->calls = 3;
    int operands[2] = { v->swapped ? c : x, v->swapped ? x : c };
    ls__node *sum = ls__graph_call(g, NULL, ls_op_find("add"), NULL, 2, operands);
    ls__node *read = ls__graph_call_cells(g, NULL, ls_op_find("read"), NULL, 0, NULL, 1, &cell);
    ls__node *last = ls__graph_call(g, NULL, ls_op_find(v->op), NULL, 1, sum->outputs);
    assert_non_null(last);
    ls__graph_output(g, last->outputs[0]);
    if (v->two_outputs)
        ls__graph_output(g, read->outputs[0]);
    g->draws = v->more_draws;
    return g;
}

static bool same_as_usual(const variant *v)
{
    bool same = false;
    LS_FRAME {
        ls__graph *a = build(&usual), *b = build(v);
        same = ls__graph_same(a, b);
        assert_true(same == ls__graph_same(b, a));
        ls__graph_free(a);
        ls__graph_free(b);
    }
    return same;
}

static void only_variables_may_differ(void **state)
{
    (void)state;
    assert_true(same_as_usual(&usual)); /* other cells, other memory of the constant */
    variant v = usual;
    v.op = "neg";
    assert_false(same_as_usual(&v));
    v = usual, v.constant = 3;
    assert_false(same_as_usual(&v));
    v = usual, v.length = 4;
    assert_false(same_as_usual(&v));
    v = usual, v.swapped = true;
    assert_false(same_as_usual(&v));
    v = usual, v.two_outputs = true;
    assert_false(same_as_usual(&v));
    v = usual, v.more_draws = 1;
    assert_false(same_as_usual(&v));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(only_variables_may_differ, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
