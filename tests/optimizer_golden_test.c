/*
 * The optimizers against Keras: golden_optimizers.txt (made by tools/golden.py)
 * has start values, the gradients of several steps, and the value after each. Every option has a
 * case; the steps run eagerly and traced, with the same bits.
 */
#include <lockstep.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/case_optimizer.h"

enum { MOST_VARIABLES = 2 };

typedef struct trained {
    ls_optimizer *o;
    int count;
    ls_variable *w[MOST_VARIABLES];
} trained;

static bool same(const test_case *c, int out, ls_tensor *got)
{
    const case_tensor *want = &c->out[out];
    const void *data = ls_data(got);
    if (!data || ls_dtype_of(got) != want->dtype || ls_count(got) != want->count)
        return false;
    for (int64_t i = 0; i < want->count; i++) {
        double g = case_at(want->dtype, data, i), w = case_at(want->dtype, want->data, i);
        /* Near zero what cancelled was larger. Also false when either is NaN. */
        if (fabs(g - w) <= c->tol * fmax(fabs(w), 0.1))
            continue;
        print_error("case %s: output %d, element %lld: got %.17g, want %.17g\n", c->name, out,
                    (long long)i, g, w);
        return false;
    }
    return true;
}

/* The arguments are the gradients. */
static ls_value *step(ls_value *arguments, void *user)
{
    trained *t = user;
    ls_tensor *gradients[MOST_VARIABLES];
    for (int i = 0; i < t->count; i++)
        gradients[i] = ls_leaf_tensor(ls_child(arguments, i));
    ls_apply_gradients(t->o, t->count, gradients, t->w);
    return ls_list(0, NULL);
}

static bool replay(const test_case *c, trained *t, ls_function *f)
{
    const int n = t->count, steps = c->n_out / n;
    bool ok = t->o && c->tol > 0 && steps >= 3 && c->n_in == n + c->n_out;
    for (int i = 0; i < n; i++)
        ok = ok && t->w[i];
    for (int k = 0; ok && k < steps; k++)
        LS_FRAME {
            ls_value *gradients[MOST_VARIABLES] = { NULL };
            for (int i = 0; i < n; i++)
                gradients[i] = ls_leaf(case_make(&c->in[n + k * n + i]));
            ls_value *arguments = ls_list(n, gradients);
            ok = f ? ls_function_call(f, arguments) != NULL : step(arguments, t) != NULL;
            ok = ok && !ls_error_pending();
            for (int i = 0; ok && i < n; i++)
                ok = same(c, k * n + i, ls_read(t->w[i]));
        }
    return ok;
}

/* What the variables hold in the end goes to `end`. */
static bool check(const test_case *c, bool traced, double *end)
{
    static const char *const names[MOST_VARIABLES] = { "w", "bias" };
    trained t = { .o = case_optimizer(c), .count = (int)case_setting(c, "variables") };
    t.count = t.count ? t.count : 1;
    LS_FRAME
        for (int i = 0; i < t.count; i++)
            t.w[i] = ls_variable_new(names[i], case_make(&c->in[i]), true);
    ls_function *f = traced ? ls_trace(step, &t) : NULL;
    bool ok = replay(c, &t, f);
    if (!ok)
        print_error("case %s %s differs: %s\n", c->name, traced ? "traced" : "eager",
                    ls_error_report());
    LS_FRAME
        for (int i = 0, at = 0; ok && i < t.count; i++) {
            ls_tensor *w = ls_read(t.w[i]);
            for (int64_t k = 0; k < ls_count(w); k++)
                end[at++] = case_at(ls_dtype_of(w), ls_data(w), k);
        }
    ls_function_free(f);
    ls_optimizer_free(t.o);
    for (int i = 0; i < t.count; i++)
        ls_variable_free(t.w[i]);
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
    static const char *const ops[] = { "sgd", "adam", "adamw" };
    int bad = 0, settings[3][2] = { { 0 } }; /* by optimizer and dtype */
    for (int i = 0; i < file.count; i++) {
        const test_case *c = &file.cases[i];
        double end[2][32] = { { 0 } };
        bad += !check(c, false, end[0]) || !check(c, true, end[1]);
        if (memcmp(end[0], end[1], sizeof end[0]) != 0)
            bad += 1, print_error("case %s: eager and traced differ\n", c->name);
        for (int k = 0; k < 3; k++)
            settings[k][case_dtype(c, 0) == LS_F64] += !strcmp(c->op, ops[k]);
    }
    case_file_free(&file);
    assert_int_equal(bad, 0);
    for (int i = 0; i < 2; i++)
        assert_true(settings[0][i] >= 14 && settings[1][i] >= 8 && settings[2][i] >= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_steps) };
    return cmocka_run_group_tests_name("optimizers against Keras", tests, NULL, NULL);
}
