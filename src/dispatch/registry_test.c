/*
 * The table of operators: rows that are refused, names that are found, and that
 * no row of it can be made to do more than answer or fail.
 */
#include <lockstep.h>

#include <stdint.h>

#include "tensor/test_support.h"

/* A complete row: f32[1] of 5. */
static ls_status five_shape(ls_call *c)
{
    return ls_call_output(c, 0, LS_F32, LS_DIMS(1));
}

static ls_status five_kernel(ls_call *c)
{
    *(float *)ls_call_out(c, 0) = 5;
    return LS_OK;
}

static const ls_op five = { .size = sizeof(ls_op),
                            .name = "test.five",
                            .inputs = 1,
                            .outputs = 1,
                            .shape = five_shape,
                            .kernel = five_kernel };

/* An alias that cannot be: another size of element, no input at all, no cell. */
static ls_status wider_shape(ls_call *c)
{
    return ls_call_output(c, 0, LS_F64, ls_call_rank(c, 0), ls_call_shape(c, 0));
}

static ls_status scalar_shape(ls_call *c)
{
    return ls_call_output(c, 0, LS_F32, LS_SCALAR);
}

static void impossible_aliases(void **state)
{
    (void)state;
    static const ls_op wider = { .size = sizeof(ls_op),
                                 .name = "test.wider",
                                 .inputs = 1,
                                 .outputs = 1,
                                 .flags = LS_OP_ALIAS,
                                 .shape = wider_shape };
    static const ls_op nothing = { .size = sizeof(ls_op),
                                   .name = "test.nothing",
                                   .inputs = 0,
                                   .outputs = 1,
                                   .flags = LS_OP_ALIAS,
                                   .shape = scalar_shape };
    static const ls_op cell = { .size = sizeof(ls_op),
                                .name = "test.cell",
                                .inputs = 0,
                                .outputs = 1,
                                .flags = LS_OP_ALIAS | LS_OP_READS,
                                .shape = scalar_shape };
    static const ls_op *const bad[] = { &wider, &nothing, &cell };
    LS_FRAME {
        ls_tensor *x = ls_ones(LS_F32, LS_DIMS(1000));
        for (int i = 0; i < 3; i++) {
            assert_null(ls_apply(bad[i], bad[i]->inputs, &x, NULL));
            failed(LS_INVALID);
        }
    }
}

/* Any row with any inputs and zeroed attributes answers or fails; nothing else. */
static void every_row_survives_nonsense(void **state)
{
    (void)state;
    enum { KINDS = 9, MOST = 6 };
    for (int r = 0; ls_op_at(r); r++) {
        const ls_op *op = ls_op_at(r);
        for (int kind = 0; kind < KINDS; kind++) {
            LS_FRAME {
                ls_tensor *kinds[KINDS] = {
                    ls_scalar(LS_F32, 1),
                    ls_ones(LS_F32, LS_DIMS(3)),
                    ls_ones(LS_F32, LS_DIMS(2, 3)),
                    ls_ones(LS_F64, LS_DIMS(1, 2, 2, 1)),
                    ls_zeros(LS_I32, LS_DIMS(3)),
                    ls_ones(LS_BOOL, LS_DIMS(2, 3)),
                    ls_zeros(LS_F32, LS_DIMS(0, 3)),
                    ls_ones(LS_BF16, LS_DIMS(2, 2)),
                    ls_from_strings(LS_DIMS(1), (const void *[]){ "s" }, NULL),
                };
                _Alignas(16) char attrs[2048] = { 0 };
                assert_true(op->attr_size <= sizeof attrs);
                int n = op->inputs < 0 ? 2 : op->inputs;
                assert_true(n <= MOST);
                ls_tensor *xs[MOST];
                for (int mix = 0; mix < 3; mix++) {
                    for (int i = 0; i < n; i++)
                        xs[i] = kinds[(kind + mix * i) % KINDS];
                    memset(attrs, 0, sizeof attrs);
                    ls_value *v = ls_apply_all(op, n, xs, attrs);
                    assert_true((v == NULL) == (ls_error() != LS_OK));
                    memset(attrs, 0xFF, sizeof attrs); /* -1 and NaN everywhere */
                    v = ls_apply_all(op, n, xs, attrs);
                    assert_true((v == NULL) == (ls_error() != LS_OK));
                }
            }
        }
    }
}

/* ---- the registry -------------------------------------------------------------------- */

static void bad_rows_are_refused(void **state)
{
    (void)state;
    ls_op bad[12];
    for (int i = 0; i < 12; i++) {
        bad[i] = five;
        bad[i].name = "test.bad";
    }
    bad[0].size = 0;
    bad[1].size = sizeof(ls_op) - 8;
    bad[2].name = NULL;
    bad[3].name = "";
    bad[4].shape = NULL;
    bad[5].kernel = NULL;
    bad[6].inputs = -2;
    bad[7].outputs = -3;
    bad[8].outputs = LS_ANY_NUMBER; /* and no count_outputs */
    bad[9].attr_size = 8;           /* and no list */
    static const ls_attr outside[] = { { "x", LS_ATTR_KIND_INT, 8 }, LS_ATTR_END };
    bad[10].attr_size = 8, bad[10].attrs = outside;
    static const ls_attr strange[] = { { "x", (ls_attr_kind)77, 0 }, LS_ATTR_END };
    bad[11].attr_size = 8, bad[11].attrs = strange;
    LS_FRAME {
        ls_tensor *x = ls_ones(LS_F32, LS_DIMS(1));
        for (int i = 0; i < 12; i++) {
            ls_status st = ls_op_register(&bad[i]);
            if (st != LS_INVALID)
                fail_msg("bad row %d: %s", i, ls_status_name(st));
            failed(LS_INVALID);
            int64_t attrs[2] = { 0 };
            assert_null(ls_apply(&bad[i], 1, &x, attrs)); /* nor can it be called */
            failed(LS_INVALID);
        }
        assert_int_equal(ls_op_register(NULL), LS_INVALID);
        failed(LS_INVALID);
    }
    assert_null(ls_op_find("test.bad"));
    ls_error();
}

static void names_are_found_and_unique(void **state)
{
    (void)state;
    assert_null(ls_op_find("test.five"));
    ls_error();
    assert_int_equal(ls_op_register(&five), LS_OK);
    assert_ptr_equal(ls_op_find("test.five"), &five);
    static const ls_op thief = { .size = sizeof(ls_op),
                                 .name = "test.five",
                                 .inputs = 1,
                                 .outputs = 1,
                                 .shape = five_shape,
                                 .kernel = five_kernel };
    assert_int_equal(ls_op_register(&thief), LS_STATE);
    assert_non_null(strstr(ls_error_text(), "test.five"));
    failed(LS_STATE);
    ls_op add = thief;
    add.name = "add";
    assert_int_equal(ls_op_register(&add), LS_STATE); /* a built-in has that name */
    failed(LS_STATE);
    assert_ptr_equal(ls_op_find("test.five"), &five);
    assert_int_equal(ls_op_register(&five), LS_OK); /* itself is no other row */

    int count = 0, seen_add = 0, seen_five = 0;
    for (const ls_op *op; (op = ls_op_at(count)); count++) {
        assert_non_null(op->name);
        assert_ptr_equal(ls_op_find(op->name), op);
        seen_add += strcmp(op->name, "add") == 0;
        seen_five += op == &five;
    }
    assert_true(count > 60);
    assert_int_equal(seen_add, 1);
    assert_int_equal(seen_five, 1);
    assert_null(ls_op_at(count));
    assert_null(ls_op_at(count + 1000));
    assert_null(ls_op_at(-1));
    ls_error();
    assert_null(ls_op_find("no.such.row"));
    assert_null(ls_op_find(NULL));
    ls_error();
}

/* A built-in row is a row like any other. */
static void built_in_rows_can_be_applied(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *xs[2] = { ls_scalar(LS_F32, 2), ls_scalar(LS_F32, 5) };
        assert_true(ls_to_float(ls_apply(ls_op_find("mul"), 2, xs, NULL)) == 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(bad_rows_are_refused, clean),
        cmocka_unit_test_setup(names_are_found_and_unique, clean),
        cmocka_unit_test_setup(built_in_rows_can_be_applied, clean),
        cmocka_unit_test_setup(impossible_aliases, clean),
        cmocka_unit_test_setup(every_row_survives_nonsense, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
