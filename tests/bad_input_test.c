/*
 * What operators refuse, and how they say so. The cases of cases/bad_input.txt
 * are particular to an operator; the tests below hold for every row of the
 * table: NULL and dead tensors, strings, too few inputs. A refusal must name the
 * operator, and the thread must be clean once the error is taken.
 */
#include <lockstep/ops.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "dispatch/call.h"
#include "support/case.h"

/* ---- the cases --------------------------------------------------------------- */

static bool check_case(const case_file *file, const test_case *c)
{
    char what[1024] = "";
    LS_FRAME {
        ls_tensor *inputs[CASE_MOST] = { NULL };
        ls_value *got = case_run(c, inputs);
        if (got)
            snprintf(what, sizeof what, "accepted, gave %s",
                     ls_length(got) ? ls_describe(ls_item(got, 0)) : "nothing");
        else if (case_problem()[0])
            snprintf(what, sizeof what, "%s", case_problem());
    }
    ls_status status = ls_error();
    if (!what[0] && status != c->fail)
        snprintf(what, sizeof what, "%s, want %s: %s", ls_status_name(status),
                 ls_status_name(c->fail), ls_error_text());
    for (int i = 0; i < c->n_words && !what[0]; i++)
        if (!strstr(ls_error_text(), c->words[i]) && !strstr(ls_error_hint(), c->words[i]))
            snprintf(what, sizeof what, "the text lacks '%s': %s (%s)", c->words[i],
                     ls_error_text(), ls_error_hint());
    if (!what[0] && ls_error_pending())
        snprintf(what, sizeof what, "an error is still pending: %s", ls_error_report());
    if (what[0])
        print_error("%s:%d: case %s: %s\n", file->path, c->line, c->name, what);
    return !what[0];
}

static void test_cases(void **state)
{
    (void)state;
    char path[512];
    case_file file;
    snprintf(path, sizeof path, "%s/cases/bad_input.txt", case_root());
    if (!case_file_read(path, &file))
        fail_msg("%s", case_problem());
    int bad = 0, count = file.count;
    for (int i = 0; i < count; i++)
        bad += !check_case(&file, &file.cases[i]);
    case_file_free(&file);
    if (bad)
        fail_msg("%d of %d cases", bad, count);
}

/* ---- every row ------------------------------------------------------------------ */

enum { MOST_INPUTS = 16, WITH_CELL = LS_OP_READS | LS_OP_WRITES };

static bool takes_tensors(const ls_op *op)
{
    return op->inputs != 0 && op->inputs <= MOST_INPUTS;
}

static ls_value *apply(const ls_op *op, int count, ls_tensor *const *inputs)
{
    static const union {
        char bytes[1024];
        double align;
    } zeros;
    return ls_apply_all(op, count, inputs, op->attr_size ? zeros.bytes : NULL);
}

static int inputs_of(const ls_op *op)
{
    return op->inputs == LS_ANY_NUMBER ? 2 : op->inputs;
}

/* The row refused with this status and a text with its name in it. */
static bool refused(const ls_op *op, const char *what, ls_value *got, ls_status want)
{
    ls_status status = ls_error();
    bool ok = !got && status == want && strstr(ls_error_text(), op->name) && !ls_error_pending();
    if (!ok)
        print_error("row %s, %s: got %s '%s', want %s and the row's name\n", op->name, what,
                    got ? "a result and" : ls_status_name(status), ls_error_text(),
                    ls_status_name(want));
    return ok;
}

/* One row at a time: NULL at each place, the others good. */
static void test_null(void **state)
{
    (void)state;
    int bad = 0;
    const ls_op *op;
    for (int i = 0; (op = ls_op_at(i)); i++)
        for (int at = 0; takes_tensors(op) && at < inputs_of(op); at++)
            LS_FRAME {
                ls_tensor *inputs[MOST_INPUTS];
                for (int k = 0; k < inputs_of(op); k++)
                    inputs[k] = k == at ? NULL : ls_zeros(LS_F32, LS_DIMS(1));
                bad += !refused(op, "NULL", apply(op, inputs_of(op), inputs), LS_INVALID);
            }
    assert_int_equal(bad, 0);
}

/* With an error pending, NULL passes it on: the same status, the same text. */
static void test_pending(void **state)
{
    (void)state;
    int bad = 0;
    const ls_op *op;
    for (int i = 0; (op = ls_op_at(i)); i++) {
        if (!takes_tensors(op))
            continue;
        ls_tensor *inputs[MOST_INPUTS] = { NULL };
        char before[512];
        assert_null(ls_zeros(LS_F32, LS_MAX_RANK + 1, NULL));
        ls_status status = ls_error_pending();
        assert_int_not_equal(status, LS_OK);
        snprintf(before, sizeof before, "%s", ls_error_text());
        ls_value *got = apply(op, inputs_of(op), inputs);
        if (got || ls_error_pending() != status || strcmp(before, ls_error_text())) {
            print_error("row %s: the pending error became '%s'\n", op->name, ls_error_text());
            bad++;
        }
        ls_error();
        assert_int_equal(ls_error_pending(), LS_OK);
    }
    assert_int_equal(bad, 0);
}

static void test_dead_handles(void **state)
{
    (void)state;
    int bad = 0;
    const ls_op *op;
    for (int i = 0; (op = ls_op_at(i)); i++) {
        if (!takes_tensors(op))
            continue;
        ls_tensor *dead = NULL, *inputs[MOST_INPUTS];
        LS_FRAME {
            dead = ls_zeros(LS_F32, LS_DIMS(1));
        }
        for (int k = 0; k < inputs_of(op); k++)
            inputs[k] = dead;
        bad += !refused(op, "dead tensor", apply(op, inputs_of(op), inputs), LS_INVALID);
    }
    assert_int_equal(bad, 0);
}

static void test_strings(void **state)
{
    (void)state;
    int bad = 0;
    const ls_op *op;
    for (int i = 0; (op = ls_op_at(i)); i++)
        LS_FRAME {
            if (!takes_tensors(op) || op->flags & (LS_OP_TAKES_STRINGS | WITH_CELL | LS__OP_FUSED))
                break;
            ls_tensor *inputs[MOST_INPUTS];
            const void *text[] = { "two", "words" };
            for (int k = 0; k < inputs_of(op); k++)
                inputs[k] = ls_from_strings(LS_DIMS(2), text, NULL);
            bad += !refused(op, "strings", apply(op, inputs_of(op), inputs), LS_SHAPE);
        }
    assert_int_equal(bad, 0);
}

static void test_number_of_inputs(void **state)
{
    (void)state;
    int bad = 0;
    const ls_op *op;
    for (int i = 0; (op = ls_op_at(i)); i++)
        LS_FRAME {
            ls_tensor *inputs[MOST_INPUTS + 1];
            for (int k = 0; k <= MOST_INPUTS; k++)
                inputs[k] = ls_zeros(LS_F32, LS_DIMS(1));
            if (op->inputs != 0)
                bad += !refused(op, "no inputs", apply(op, 0, inputs), LS_INVALID);
            if (op->inputs >= 0 && op->inputs <= MOST_INPUTS)
                bad += !refused(op, "an input too many", apply(op, op->inputs + 1, inputs),
                                LS_INVALID);
            if (op->attr_size > 0 && takes_tensors(op))
                bad += !refused(op, "no attributes", ls_apply_all(op, inputs_of(op), inputs, NULL),
                                LS_INVALID);
        }
    assert_int_equal(bad, 0);
}

/* Rows of variables cannot be called from outside: nobody hands them a cell. */
static void test_no_cell(void **state)
{
    (void)state;
    int bad = 0;
    const ls_op *op;
    for (int i = 0; (op = ls_op_at(i)); i++)
        LS_FRAME {
            if (!(op->flags & WITH_CELL))
                break;
            ls_tensor *inputs[MOST_INPUTS];
            for (int k = 0; k < inputs_of(op); k++)
                inputs[k] = ls_zeros(LS_F32, LS_SCALAR);
            bad += !refused(op, "no cell", apply(op, inputs_of(op), inputs), LS_INVALID);
        }
    assert_int_equal(bad, 0);
}

/* A failed call leaves a thread on which the next call works. */
static void test_goes_on(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *a = ls_ones(LS_F32, LS_DIMS(2)), *b = ls_ones(LS_F32, LS_DIMS(3));
        assert_null(ls_mul(ls_add(a, b), a));
        assert_int_equal(ls_error_pending(), LS_SHAPE);
        assert_non_null(strstr(ls_error_text(), "add"));
        assert_int_equal(ls_error(), LS_SHAPE);
        assert_int_equal(ls_error(), LS_OK);
        ls_tensor *sum = ls_sum(ls_add(a, a), LS_ALL_AXES, false);
        assert_true(ls_to_float(sum) == 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),   cmocka_unit_test(test_null),
        cmocka_unit_test(test_pending), cmocka_unit_test(test_dead_handles),
        cmocka_unit_test(test_strings), cmocka_unit_test(test_number_of_inputs),
        cmocka_unit_test(test_no_cell), cmocka_unit_test(test_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
