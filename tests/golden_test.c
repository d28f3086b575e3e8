/*
 * Every operator against TensorFlow: values, dtypes, shapes and gradients, from
 * the files of tests/golden (made by tools/golden.py). A file is a test; all of
 * its cases run, and each that differs says where and by how much.
 */
#include <lockstep/ops.h>
#include <lockstep/tape.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/case.h"

typedef struct tolerance {
    double relative, absolute;
} tolerance;

static tolerance tolerance_of(const test_case *c, ls_dtype dtype)
{
    if (!ls_dtype_is_float(dtype))
        return (tolerance){ 0, 0 };
    if (c->tol > 0)
        return (tolerance){ c->tol, c->tol };
    if (dtype == LS_F64)
        return (tolerance){ 1e-11, 1e-11 };
    if (dtype == LS_F32)
        return (tolerance){ 1e-5, 1e-6 };
    return (tolerance){ 1e-2, 1e-2 };
}

static bool close_enough(double got, double want, tolerance t)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (got == want)
        return true;
    return fabs(got - want) <= t.absolute + t.relative * fabs(want);
}

static void say(const case_file *file, const test_case *c, const char *what)
{
    print_error("%s:%d: case %s: %s\n", file->path, c->line, c->name, what);
}

/* Why a call gave nothing: the case is wrong, or the library refused. Takes the
 * pending error. */
static bool refused(const case_file *file, const test_case *c, const char *what)
{
    char text[1024];
    snprintf(text, sizeof text, "%s: %s%s", what, case_problem(), ls_error_report());
    say(file, c, text);
    return false;
}

static bool integers_differ(const case_tensor *want, const void *got, int64_t i)
{
    return want->dtype == LS_I64 && ((const int64_t *)got)[i] != ((const int64_t *)want->data)[i];
}

static bool same(const case_file *file, const test_case *c, const char *what, int index,
                 ls_tensor *got, const case_tensor *want)
{
    char text[512];
    if (ls_dtype_of(got) != want->dtype || ls_rank(got) != want->rank ||
        (want->rank && memcmp(ls_shape(got), want->dims, (size_t)want->rank * 8) != 0)) {
        LS_FRAME {
            ls_tensor *like = case_make(want);
            snprintf(text, sizeof text, "%s %d is %s, want %s", what, index, ls_describe(got),
                     ls_describe(like));
        }
        say(file, c, text);
        return false;
    }
    if (want->count == 0)
        return true;
    const void *data = ls_data(got);
    if (!data || !want->data)
        return refused(file, c, what);
    tolerance t = tolerance_of(c, want->dtype);
    for (int64_t i = 0; i < want->count; i++) {
        double g = case_at(want->dtype, data, i), w = case_at(want->dtype, want->data, i);
        if (close_enough(g, w, t) && !integers_differ(want, data, i))
            continue;
        snprintf(text, sizeof text, "%s %d, element %lld of %s: got %.17g, want %.17g", what, index,
                 (long long)i, ls_describe(got), g, w);
        say(file, c, text);
        return false;
    }
    return true;
}

static bool check_gradients(const case_file *file, const test_case *c, ls_tape *tape,
                            ls_value *outs, ls_tensor *const *inputs)
{
    ls_tensor *ys[CASE_MOST], *seeds[CASE_MOST], *xs[CASE_MOST];
    for (int i = 0; i < c->n_seed; i++) {
        ys[i] = ls_item(outs, c->seed[i].index);
        seeds[i] = case_make(&c->seed[i]);
    }
    for (int i = 0; i < c->n_grad; i++)
        xs[i] = inputs[c->grad[i].index];
    ls_value *grads = ls_gradients_from(tape, ls_tensors(c->n_seed, ys),
                                        ls_tensors(c->n_seed, seeds), ls_tensors(c->n_grad, xs));
    if (!grads)
        return refused(file, c, "no gradients");
    bool ok = true;
    for (int i = 0; i < c->n_grad; i++) {
        ls_tensor *g = ls_densify(ls_item(grads, i));
        ok = (g ? same(file, c, "gradient of input", c->grad[i].index, g, &c->grad[i])
                : refused(file, c, "gradient")) &&
             ok;
    }
    return ok;
}

/* The public function gives what the row gives. */
static bool check_function(const case_file *file, const test_case *c, ls_tensor *const *inputs)
{
    ls_value *outs = case_call_function(c, c->n_in, inputs);
    if (!outs || ls_length(outs) < c->n_out)
        return refused(file, c, "the public function failed");
    bool ok = true;
    for (int i = 0; i < c->n_out; i++)
        ok = same(file, c, "output of the public function", i, ls_item(outs, i), &c->out[i]) && ok;
    return ok;
}

static bool check_case(const case_file *file, const test_case *c)
{
    bool ok = true;
    LS_FRAME {
        ls_tensor *inputs[CASE_MOST] = { NULL };
        ls_tape *tape = ls_tape_open();
        ls_value *outs = tape ? case_run(c, inputs) : NULL;
        if (!outs) {
            ok = refused(file, c, "failed");
            break;
        }
        if (ls_length(outs) < c->n_out) {
            ok = refused(file, c, "too few outputs");
            break;
        }
        for (int i = 0; i < c->n_out; i++)
            ok = same(file, c, "output", i, ls_item(outs, i), &c->out[i]) && ok;
        if (c->n_grad)
            ok = check_gradients(file, c, tape, outs, inputs) && ok;
        if (case_has_function(c->op))
            ok = check_function(file, c, inputs) && ok;
    }
    if (ls_error_pending())
        ok = refused(file, c, "left an error pending");
    return ok;
}

static void test_file(void **state)
{
    const char *path = *state;
    case_file file;
    if (!case_file_read(path, &file))
        fail_msg("%s", case_problem());
    int bad = 0, count = file.count;
    for (int i = 0; i < count; i++)
        bad += !check_case(&file, &file.cases[i]);
    case_file_free(&file);
    if (bad)
        fail_msg("%d of %d cases of %s differ", bad, count, path);
    assert_true(count > 0);
}

/* golden_test [NAME...]: only the files of these operators. */
int main(int argc, char **argv)
{
    return case_main("golden", test_file, argc, argv);
}
