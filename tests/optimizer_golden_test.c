/*
 * The optimizers against Keras: golden_optimizers.txt (made by tools/golden.py)
 * has start values, the gradients of several steps, and the value after each.
 */
#include <lockstep/train.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/case.h"

/* 0, the library's default, for what the case does not name. */
static double setting(const test_case *c, const char *name)
{
    for (int i = 0; i < c->n_attrs; i++)
        if (!strcmp(c->attrs[i].name, name))
            return strtod(c->attrs[i].text, NULL);
    return 0;
}

static ls_optimizer *optimizer_of(const test_case *c)
{
    if (!strcmp(c->op, "sgd"))
        return ls_sgd(LS_SGD(.rate = setting(c, "rate")));
    if (!strcmp(c->op, "adam"))
        return ls_adam(LS_ADAM(.rate = setting(c, "rate"), .beta1 = setting(c, "beta1"),
                               .beta2 = setting(c, "beta2"), .epsilon = setting(c, "epsilon")));
    return NULL;
}

static bool same(const test_case *c, int step, ls_tensor *got)
{
    const case_tensor *want = &c->out[step];
    const void *data = ls_map(got);
    if (!data || ls_dtype_of(got) != want->dtype || ls_count(got) != want->count)
        return false;
    for (int64_t i = 0; i < want->count; i++) {
        double g = case_at(want->dtype, data, i), w = case_at(want->dtype, want->data, i);
        /* Also false when either is NaN. */
        if (fabs(g - w) <= c->tol * fabs(w))
            continue;
        print_error("case %s: step %d, element %lld: got %.17g, want %.17g\n", c->name, step + 1,
                    (long long)i, g, w);
        return false;
    }
    return true;
}

static bool replay(const test_case *c, ls_optimizer *optimizer, ls_variable *w)
{
    bool ok = optimizer && w && c->tol > 0 && c->n_in == c->n_out + 1;
    for (int i = 0; ok && i < c->n_out; i++)
        LS_FRAME {
            ls_tensor *gradient = case_make(&c->in[i + 1]);
            ok = !ls_apply_gradients(optimizer, 1, &gradient, &w) && same(c, i, ls_read(w));
        }
    return ok;
}

static bool check(const test_case *c)
{
    ls_variable *w = NULL;
    LS_FRAME {
        w = ls_variable_new("w", case_make(&c->in[0]), true);
    }
    ls_optimizer *optimizer = optimizer_of(c);
    bool ok = replay(c, optimizer, w);
    if (!ok)
        print_error("case %s differs: %s\n", c->name, ls_error_report());
    ls_optimizer_free(optimizer);
    ls_variable_free(w);
    return ok;
}

static void test_steps(void **state)
{
    (void)state;
    char path[512];
    case_file file;
    snprintf(path, sizeof path, "%s/golden_optimizers.txt", case_root());
    if (!case_file_read(path, &file))
        fail_msg("%s", case_problem());
    /* Settings of each, by optimizer and dtype. */
    int bad = 0, settings[2][2] = { { 0 } };
    for (int i = 0; i < file.count; i++) {
        const test_case *c = &file.cases[i];
        bad += !check(c);
        settings[!strcmp(c->op, "adam")][case_dtype(c, 0) == LS_F64]++;
    }
    case_file_free(&file);
    assert_int_equal(bad, 0);
    for (int i = 0; i < 4; i++)
        assert_true(settings[i / 2][i % 2] >= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_steps) };
    return cmocka_run_group_tests_name("optimizers against Keras", tests, NULL, NULL);
}
