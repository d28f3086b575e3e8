/*
 * Updates of one optimizer: steps keep the bits of every cell; updates of other
 * attributes, numbers or cells that somebody touches in between stay apart.
 */
#include <lockstep/ops.h>
#include <lockstep/tape.h>
#include <lockstep/optimizer.h>

#include "ops/update.h"
#include "ops/variable.h"
#include "trace/test_record.h"

enum { VARIABLES = 2, CELLS = 3 * VARIABLES };

static const int64_t shapes[VARIABLES][2] = { { 3, 7 }, { 1, 33 } };

typedef struct model {
    ls__cell *cells[CELLS]; /* w, m, v of each variable */
} model;

static model new_model(ls_dtype dtype)
{
    model m;
    for (int i = 0; i < CELLS; i++) {
        ls__spec spec = { dtype, 2, { shapes[i / 3][0], shapes[i / 3][1] } };
        assert_int_equal(ls__cell_new("w", &spec, &m.cells[i]), LS_OK);
    }
    return m;
}

static void free_model(model *m)
{
    for (int i = 0; i < CELLS; i++)
        ls__cell_unref(m->cells[i]);
}

/* The same start before every run. Moments of squares are not negative. */
static void start(model *m)
{
    for (int i = 0; i < CELLS; i++)
        LS_FRAME {
            ls_tensor *t = some_numbers(ls__cell_spec(m->cells[i]), (uint64_t)i + 20);
            assert_int_equal(ls__cell_assign(m->cells[i], i % 3 == 2 ? ls_mul(t, t) : t), LS_OK);
        }
}

/* Runs the graph on a fresh start and gives what the cells hold then. */
static void run_model(model *m, const ls__graph *g, ls_tensor *const *in, ls_tensor **out,
                      ls_tensor **after)
{
    start(m);
    run_graph(g, in, out);
    for (int i = 0; i < CELLS; i++) {
        after[i] = ls__cell_read(m->cells[i]);
        assert_non_null(after[i]);
    }
}

/* ---- graphs by hand -------------------------------------------------------------------- */

typedef enum twist {
    PLAIN,
    OTHER_RATE,
    OTHER_ITERATION,
    OTHER_ATTRIBUTES,
    READ_BETWEEN,  /* of the first variable: sees its update */
    WRITE_BETWEEN, /* to a slot of the first variable */
    OTHER_BETWEEN, /* a read of the second variable, before its update */
    SAME_CELLS
} twist;

/* Inputs: two gradients, two rates, two iterations. */
static ls__graph *build(const model *m, ls_dtype dtype, bool adam, twist t)
{
    ls__graph *g = ls__graph_new("test");
    g->calls = 1; /* what `where` of its nodes says */
    const ls__spec rate = { .dtype = LS_F64 }, iteration = { .dtype = LS_I64 };
    int in[6], cells[CELLS];
    for (int i = 0; i < VARIABLES; i++) {
        ls__spec spec = { dtype, 2, { shapes[i][0], shapes[i][1] } };
        in[i] = ls__graph_input(g, &spec);
    }
    for (int i = 2; i < 6; i++)
        in[i] = ls__graph_input(g, i < 4 ? &rate : &iteration);
    for (int i = 0; i < CELLS; i++)
        cells[i] = ls__graph_cell_add(g, ls__cell_serial(m->cells[i]), "w",
                                      ls__cell_spec(m->cells[i]), m->cells[i]);
    ls__update_attrs attrs = { .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-7 };
    const ls_op *op = ls_op_find(adam ? "adam_update" : "sgd_update");
    for (int i = 0; i < VARIABLES; i++) {
        bool second = i == 1;
        int of = t == SAME_CELLS ? 0 : i;
        if (second && t == OTHER_ATTRIBUTES)
            attrs.beta2 = 0.999;
        if (second && (t == READ_BETWEEN || t == OTHER_BETWEEN)) {
            ls__node *read = ls__graph_call_cells(g, NULL, ls_op_find("read"), NULL, 0, NULL, 1,
                                                  &cells[t == READ_BETWEEN ? 0 : 3]);
            ls__graph_output(g, add_call(g, "neg", NULL, 1, &read->outputs[0]));
        }
        if (second && t == WRITE_BETWEEN)
            assert_non_null(ls__graph_call_cells(g, NULL, ls_op_find("assign_add"), NULL, 1, &in[0],
                                                 1, &cells[adam ? 1 : 0]));
        int inputs[3] = { in[of], in[second && t == OTHER_RATE ? 3 : 2],
                          in[second && t == OTHER_ITERATION ? 5 : 4] };
        assert_non_null(ls__graph_call_cells(g, NULL, op, &attrs, adam ? 3 : 2, inputs,
                                             adam ? 3 : 1, &cells[3 * of]));
    }
    assert_int_equal(ls__graph_verify(g), LS_OK);
    return g;
}

static void by_hand(ls_dtype dtype, bool adam, twist t, bool fused)
{
    model m = new_model(dtype);
    LS_FRAME {
        ls__graph *g = build(&m, dtype, adam, t);
        ls_tensor *in[6], *out[2][MOST_RESULTS], *cells[2][CELLS];
        for (int i = 0; i < VARIABLES; i++)
            in[i] = some_numbers(ls__cell_spec(m.cells[3 * i]), (uint64_t)i + 1);
        in[2] = ls_scalar(LS_F64, 0.125);
        in[3] = ls_scalar(LS_F64, 0.25);
        in[4] = ls_scalar_int(LS_I64, 3);
        in[5] = ls_scalar_int(LS_I64, 4);
        run_model(&m, g, in, out[0], cells[0]);
        run_pass(ls__pass_fuse_update, g);
        run_model(&m, g, in, out[1], cells[1]);
        for (int i = 0; i < CELLS; i++)
            same_bits(cells[1][i], cells[0][i]);
        for (int i = 0; i < g->n_outputs; i++)
            same_bits(out[1][i], out[0][i]);
        assert_int_equal(count_rows(g, adam ? "adam_updates" : "sgd_updates"), fused);
        assert_int_equal(count_rows(g, adam ? "adam_update" : "sgd_update"), fused ? 0 : 2);
        ls__graph_free(g);
    }
    free_model(&m);
}

static void fuses(void **state)
{
    (void)state;
    for (int wide = 0; wide < 2; wide++)
        for (int adam = 0; adam < 2; adam++) {
            ls_dtype dtype = wide ? LS_F64 : LS_F32;
            by_hand(dtype, adam, PLAIN, true);
            by_hand(dtype, adam, OTHER_BETWEEN, true);
        }
    by_hand(LS_F32, false, OTHER_ITERATION, true); /* SGD has none */
}

static void stays_apart(void **state)
{
    (void)state;
    for (int adam = 0; adam < 2; adam++) {
        by_hand(LS_F32, adam, OTHER_RATE, false);
        by_hand(LS_F32, adam, READ_BETWEEN, false);
        by_hand(LS_F32, adam, WRITE_BETWEEN, false);
        by_hand(LS_F32, adam, SAME_CELLS, false);
    }
    by_hand(LS_F32, true, OTHER_ITERATION, false);
    by_hand(LS_F32, true, OTHER_ATTRIBUTES, false);
}

/* ---- a step with an optimizer ------------------------------------------------------------- */

typedef struct trainer {
    ls_optimizer *optimizer;
    ls_variable *variables[VARIABLES];
} trainer;

static int train(ls_tensor *const *in, ls_tensor **out, const void *user)
{
    const trainer *t = user;
    ls_tape *tape = ls_tape_open();
    ls_tensor *h = ls_tanh(ls_matmul(in[0], ls_read(t->variables[0])));
    ls_tensor *y = ls_matmul(h, ls_read(t->variables[1]));
    out[0] = ls_mean(ls_mul(y, y), LS_ALL_AXES, false);
    ls_minimize(t->optimizer, tape, out[0], VARIABLES, t->variables);
    return 1;
}

static trainer new_trainer(void)
{
    const ls__spec specs[VARIABLES] = { { LS_F32, 2, { 5, 6 } }, { LS_F32, 2, { 6, 2 } } };
    trainer t = { .optimizer = ls_adam(NULL) };
    for (int i = 0; i < VARIABLES; i++)
        t.variables[i] = ls_variable_new(i ? "b" : "a", some_numbers(&specs[i], 2), true);
    return t;
}

/* Frees it; `after` gets what the variables hold, as values that outlive them. */
static void end_trainer(trainer *t, ls_tensor **after)
{
    assert_int_equal(ls_iterations(t->optimizer), 3);
    for (int i = 0; i < VARIABLES; i++) {
        after[i] = ls_neg(ls_read(t->variables[i]));
        ls_variable_free(t->variables[i]);
    }
    ls_optimizer_free(t->optimizer);
}

static void optimizer_is_one_update(void **state)
{
    (void)state;
    LS_FRAME {
        const ls__spec x = { LS_F32, 2, { 4, 5 } };
        ls_tensor *in = some_numbers(&x, 1), *after[2][VARIABLES], *loss[2];
        for (int fused = 0; fused < 2; fused++) {
            trainer t = new_trainer();
            ls__graph *g = record_step(train, &t, 1, &in);
            assert_int_equal(count_rows(g, "adam_update"), VARIABLES);
            if (fused)
                run_pass(ls__pass_fuse_update, g);
            assert_int_equal(count_rows(g, "adam_update"), fused ? 0 : VARIABLES);
            assert_int_equal(count_rows(g, "adam_updates"), fused);
            for (int step = 0; step < 3; step++)
                run_graph(g, &in, &loss[fused]);
            ls__graph_free(g);
            end_trainer(&t, after[fused]);
        }
        same_bits(loss[1], loss[0]);
        for (int i = 0; i < VARIABLES; i++)
            same_bits(after[1][i], after[0][i]);
    }
}

static void traced(void **state)
{
    (void)state;
    LS_FRAME {
        const ls__spec x = { LS_F32, 2, { 4, 5 } };
        ls_tensor *in = some_numbers(&x, 1), *after[2][VARIABLES];
        int64_t instructions[2];
        ls_value *loss[2];
        for (int fused = 0; fused < 2; fused++) {
            trainer t = new_trainer();
            instructions[fused] = call_traced(fused ? NULL : "fuse-update",
                                              (traced_step){ train, &t }, 1, &in, 3, &loss[fused]);
            end_trainer(&t, after[fused]);
        }
        assert_int_equal(instructions[1], instructions[0] - (VARIABLES - 1));
        same_bits(ls_item(loss[1], 0), ls_item(loss[0], 0));
        for (int i = 0; i < VARIABLES; i++)
            same_bits(after[1][i], after[0][i]);
    }
}

static void rules(void **state)
{
    (void)state;
    model m = new_model(LS_F32);
    LS_FRAME {
        const ls__update_attrs attrs = { .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-7 };
        const ls_op *op = ls_op_find("adam_updates");
        ls_tensor *in[4] = { ls_scalar(LS_F64, 0.1), ls_scalar_int(LS_I64, 1),
                             some_numbers(ls__cell_spec(m.cells[0]), 1),
                             some_numbers(ls__cell_spec(m.cells[3]), 2) };
        assert_int_equal(ls__call(op, &attrs, 4, in, 5, m.cells, NULL), LS_INVALID);
        failed(LS_INVALID);
        assert_int_equal(ls__call(op, &attrs, 2, in, 0, m.cells, NULL), LS_INVALID);
        failed(LS_INVALID);
        ls_tensor *swapped[4] = { in[0], in[1], in[3], in[2] };
        assert_int_equal(ls__call(op, &attrs, 4, swapped, 6, m.cells, NULL), LS_SHAPE);
        failed(LS_SHAPE);
        ls_tensor *numbers[4] = { in[1], in[0], in[2], in[3] };
        assert_int_equal(ls__call(op, &attrs, 4, numbers, 6, m.cells, NULL), LS_SHAPE);
        failed(LS_SHAPE);
    }
    free_model(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(fuses, clean),
        cmocka_unit_test_setup(stays_apart, clean),
        cmocka_unit_test_setup(optimizer_is_one_update, clean),
        cmocka_unit_test_setup(traced, clean),
        cmocka_unit_test_setup(rules, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
