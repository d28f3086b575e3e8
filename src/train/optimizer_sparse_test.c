/*
 * Sparse gradients of several replicas: as the dense ones they stand for, and with .lazy the
 * touched rows alone, whoever touched them.
 */
#include "train/optimizer_test_support.h"

enum { V = 3, ROWS = 9, WIDTH = 4, NAMED = 3 };

typedef struct table {
    ls_optimizer *o;
    ls_variable *v;
    bool dense; /* gradients are made dense before they are given */
} table;

/* Row 7 is named twice by each, row 8 by none; replica r names row r. */
static ls_value *apply(ls_value *arguments, void *user)
{
    (void)arguments;
    table *t = user;
    int32_t rows[NAMED] = { my_id(), 7, 7 };
    float values[NAMED * WIDTH];
    for (int i = 0; i < NAMED * WIDTH; i++)
        values[i] = slope(my_id(), 0, i);
    ls_tensor *g = ls_sparse(ls_from(LS_I32, LS_DIMS(NAMED), rows),
                             ls_from(LS_F32, LS_DIMS(NAMED, WIDTH), values), ROWS);
    if (t->dense)
        g = ls_densify(g);
    ls_apply_gradients(t->o, 1, &g, &t->v);
    return none();
}

static table make(ls_strategy *s, ls_optimizer *o, bool dense)
{
    table t = { .o = o, .dense = dense };
    LS_FRAME
        LS_SCOPE (s)
            t.v = ls_variable_new("table", ls_ones(LS_F32, LS_DIMS(ROWS, WIDTH)), true);
    assert_true(t.o && t.v);
    return t;
}

static ls_optimizer *optimizer(int kind, bool lazy)
{
    if (kind == 0)
        return ls_sgd(LS_SGD(.rate = 0.1, .weight_decay = 0.5, .lazy = lazy));
    if (kind == 1)
        return ls_sgd(LS_SGD(.rate = 0.1, .momentum = 0.9, .lazy = lazy, .clip_norm = 1));
    return ls_adamw(LS_ADAM(.lazy = lazy, .clip_value = 2));
}

static void train(int kind, bool lazy, bool dense, float *out)
{
    ls_strategy *s = replicas(V);
    table t = make(s, optimizer(kind, lazy), dense);
    for (int k = 0; k < 2; k++)
        LS_FRAME
            runs(s, apply, &t);
    LS_FRAME
        assert_int_equal(ls_copy_out(ls_read(t.v), out, sizeof(float) * ROWS * WIDTH), LS_OK);
    ls_variable_free(t.v);
    ls_optimizer_free(t.o);
    ls_strategy_free(s);
}

static void rows_that_are_touched(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        float want[ROWS * WIDTH], dense[ROWS * WIDTH], lazy[ROWS * WIDTH], all[ROWS * WIDTH];
        train(kind, false, false, want);
        train(kind, false, true, dense);
        same_state(dense, want, ROWS * WIDTH);
        train(kind, true, true, all); /* a dense gradient touches every row */
        same_state(all, want, ROWS * WIDTH);
        train(kind, true, false, lazy);
        for (int r = 0; r < ROWS; r++)
            for (int i = 0; i < WIDTH; i++)
                assert_true(lazy[r * WIDTH + i] == (r < V || r == 7 ? want[r * WIDTH + i] : 1));
        if (kind != 1) /* weights of the others decay */
            assert_true(want[8 * WIDTH] < 1);
    }
}

static void alone(void **state)
{
    (void)state;
    table t = make(ls_default_strategy(), ls_adam(LS_ADAM(.rate = 1, .lazy = true)), false);
    LS_FRAME {
        ls_tensor *rows = ls_from(LS_I64, LS_DIMS(2), ((int64_t[]){ 2, 5 }));
        ls_tensor *g = ls_sparse(rows, ls_ones(LS_F32, LS_DIMS(2, WIDTH)), ROWS);
        assert_int_equal(ls_apply_gradients(t.o, 1, &g, &t.v), LS_OK);
        const float *w = ls_data(ls_read(t.v)), *m = ls_data(ls_slot_read(t.o, t.v, 0));
        for (int i = 0; i < ROWS * WIDTH; i++) {
            bool touched = i / WIDTH == 2 || i / WIDTH == 5;
            assert_true((w[i] == 1) == !touched && (m[i] == 0) == !touched);
        }
        int64_t out_of_range[] = { 9 };
        g = ls_sparse(ls_from(LS_I64, LS_DIMS(1), out_of_range), ls_ones(LS_F32, LS_DIMS(1, WIDTH)),
                      ROWS);
        assert_true(ls_apply_gradients(t.o, 1, &g, &t.v) != LS_OK);
        ls_error();
        assert_int_equal(ls_iterations(t.o), 1);
    }
    ls_variable_free(t.v);
    ls_optimizer_free(t.o);
    assert_null(ls_adam(LS_ADAM(.lazy = true, .accumulates = true)));
    said(LS_UNSUPPORTED, "ls_adam: .lazy and .accumulates", "one of them");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(rows_that_are_touched),
        cmocka_unit_test_setup(alone, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
