/*
 * Gradients against central finite differences, in f64, for every golden case
 * that has a gradient and is away from kinks (case_has_fd).
 *
 * First order:   f(x) = sum over outputs of <out_k, seed_k>; the tape's df/dx_i.
 * Second order:  g(x, seed) = sum over inputs of <df/dx_i, direction_i>, with
 *                fixed directions; the tape's dg/dx_i and dg/dseed_k. The second
 *                of these looks at how a backward row treats what arrives.
 *
 * Outputs that the golden file does not know, which a row saves for its gradient,
 * are values like others: they get seeds too.
 */
#include <lockstep/ops.h>
#include <lockstep/tape.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/case.h"

#define FIRST_TOLERANCE 1e-5
#define SECOND_TOLERANCE 1e-4

/* The places a case is differentiated at: its inputs that have a gradient, then
 * its seeds. Each holds its own copy of the elements, so that they can move. */
typedef struct place {
    const case_tensor *spec;
    double *at;
    double *direction; /* of the second order; inputs only */
} place;

typedef struct problem {
    const case_file *file;
    const test_case *c;
    int n_inputs, n_seeds; /* places: first inputs, then seeds */
    place places[2 * CASE_MOST];
    case_tensor saved[CASE_MOST]; /* what the seeds of further outputs are like */
} problem;

static double *copy(const case_tensor *t)
{
    double *to = calloc((size_t)t->count + 1, sizeof *to);
    if (to && t->data)
        memcpy(to, t->data, (size_t)t->count * sizeof *to);
    return to;
}

/* Seeds for the f64 outputs beyond the case's. A call that fails is reported by
 * those that follow. */
static void add_saved(problem *p)
{
    ls_tensor *inputs[CASE_MOST];
    ls_value *outs = case_run(p->c, inputs);
    for (int i = p->c->n_out; outs && i < ls_length(outs) && i < CASE_MOST; i++) {
        ls_tensor *t = ls_item(outs, i);
        if (ls_dtype_of(t) != LS_F64)
            continue;
        case_tensor *like = &p->saved[i];
        *like =
            (case_tensor){ .index = i, .dtype = LS_F64, .rank = ls_rank(t), .count = ls_count(t) };
        for (int k = 0; k < like->rank; k++)
            like->dims[k] = ls_shape(t)[k];
        place *w = &p->places[p->n_inputs + p->n_seeds++];
        *w = (place){ .spec = like, .at = copy(like) };
        for (int64_t k = 0; w->at && k < like->count; k++)
            w->at[k] = cos(0.9 * (double)k + i);
    }
    ls_error();
}

static void problem_open(problem *p, const case_file *file, const test_case *c)
{
    *p = (problem){ .file = file, .c = c, .n_inputs = c->n_grad, .n_seeds = c->n_seed };
    for (int i = 0; i < c->n_grad; i++) {
        place *w = &p->places[i];
        w->spec = &c->in[c->grad[i].index];
        w->at = copy(w->spec);
        w->direction = calloc((size_t)w->spec->count + 1, sizeof(double));
        assert_non_null(w->direction);
        for (int64_t k = 0; k < w->spec->count; k++)
            w->direction[k] = sin(0.7 * (double)k + 1.3 * i + 0.4);
    }
    for (int i = 0; i < c->n_seed; i++) {
        p->places[c->n_grad + i].spec = &c->seed[i];
        p->places[c->n_grad + i].at = copy(&c->seed[i]);
    }
    LS_FRAME {
        add_saved(p);
    }
    for (int i = 0; i < p->n_inputs + p->n_seeds; i++)
        assert_non_null(p->places[i].at);
}

static void problem_close(problem *p)
{
    for (int i = 0; i < p->n_inputs + p->n_seeds; i++) {
        free(p->places[i].at);
        free(p->places[i].direction);
    }
}

static ls_tensor *tensor_of(const place *w, const double *data)
{
    return ls_from(LS_F64, w->spec->rank, w->spec->dims, data);
}

/* ---- one evaluation ----------------------------------------------------------- */

typedef struct evaluation {
    ls_tensor *places[2 * CASE_MOST]; /* handles of the inputs asked about and of the seeds */
    ls_tensor *outs[CASE_MOST];       /* the outputs that have a seed */
} evaluation;

static bool evaluate(const problem *p, evaluation *e)
{
    const test_case *c = p->c;
    ls_tensor *inputs[CASE_MOST];
    for (int i = 0; i < c->n_in; i++)
        inputs[i] = NULL;
    for (int i = 0; i < p->n_inputs + p->n_seeds; i++)
        e->places[i] = tensor_of(&p->places[i], p->places[i].at);
    for (int i = 0; i < p->n_inputs; i++)
        inputs[c->grad[i].index] = e->places[i];
    for (int i = 0; i < c->n_in; i++)
        if (!inputs[i])
            inputs[i] = case_make(&c->in[i]);
    ls_value *outs = case_call(c, c->n_in, inputs);
    for (int i = 0; outs && i < p->n_seeds; i++)
        e->outs[i] = ls_item(outs, p->places[p->n_inputs + i].spec->index);
    return outs && !ls_error_pending();
}

static double dot(ls_tensor *t, const double *with)
{
    const double *data = ls_data(t);
    double sum = 0;
    for (int64_t i = 0; data && i < ls_count(t); i++)
        sum += data[i] * with[i];
    return sum;
}

/* f(x) */
static bool first_value(const problem *p, double *f)
{
    bool ok = true;
    LS_FRAME {
        evaluation e;
        *f = 0;
        ok = evaluate(p, &e);
        for (int i = 0; ok && i < p->n_seeds; i++)
            *f += dot(e.outs[i], p->places[p->n_inputs + i].at);
    }
    return ok;
}

/* The gradients of f, dense, in this frame; and, with `second`, those of g with
 * respect to inputs and seeds in `grads` instead. */
static bool gradients(const problem *p, bool second, ls_tensor **grads)
{
    evaluation e;
    int n = p->n_inputs, all = n + p->n_seeds;
    ls_tape *tape = ls_tape_open();
    if (!evaluate(p, &e))
        return false;
    ls_value *first =
        ls_gradients_from(tape, ls_tensors(p->n_seeds, e.outs),
                          ls_tensors(p->n_seeds, e.places + n), ls_tensors(n, e.places));
    for (int i = 0; first && i < n; i++)
        grads[i] = ls_densify(ls_item(first, i));
    if (!first || !second)
        return first && !ls_error_pending();
    ls_tensor *directions[CASE_MOST];
    for (int i = 0; i < n; i++)
        directions[i] = tensor_of(&p->places[i], p->places[i].direction);
    ls_value *again = ls_gradients_from(tape, ls_tensors(n, grads), ls_tensors(n, directions),
                                        ls_tensors(all, e.places));
    for (int i = 0; again && i < all; i++)
        grads[i] = ls_densify(ls_item(again, i));
    return again && !ls_error_pending();
}

/* g(x, seed) */
static bool second_value(const problem *p, double *g)
{
    bool ok = true;
    LS_FRAME {
        ls_tensor *grads[2 * CASE_MOST];
        *g = 0;
        ok = gradients(p, false, grads);
        for (int i = 0; ok && i < p->n_inputs; i++)
            *g += dot(grads[i], p->places[i].direction);
    }
    return ok;
}

/* ---- the comparison --------------------------------------------------------------- */

typedef bool (*value_fn)(const problem *p, double *value);

static bool say(const problem *p, const char *order, const char *what)
{
    print_error("%s:%d: case %s: %s order: %s\n", p->file->path, p->c->line, p->c->name, order,
                what);
    return false;
}

static bool refused(const problem *p, const char *order)
{
    char text[1024];
    snprintf(text, sizeof text, "failed: %s%s", case_problem(), ls_error_report());
    return say(p, order, text);
}

static bool slope(problem *p, double *x, value_fn value, double *out)
{
    double old = *x, h = 1e-5 * fmax(1, fabs(old)), up, down;
    *x = old + h;
    bool ok = value(p, &up);
    *x = old - h;
    ok = ok && value(p, &down);
    *x = old;
    *out = ok ? (up - down) / (2 * h) : NAN;
    return ok;
}

static bool compare(problem *p, int which, ls_tensor *grad, value_fn value, double tol,
                    const char *order)
{
    const place *w = &p->places[which];
    const double *got = ls_data(grad);
    if (!got || ls_count(grad) != w->spec->count)
        return refused(p, order);
    for (int64_t k = 0; k < w->spec->count; k++) {
        double want;
        if (!slope(p, &w->at[k], value, &want))
            return refused(p, order);
        /* Also false when either is NaN. */
        if (fabs(got[k] - want) <= tol * fmax(1, fabs(want)))
            continue;
        char text[256];
        bool seed = which >= p->n_inputs;
        snprintf(text, sizeof text, "%s %d, element %lld: the tape says %.10g, differences %.10g",
                 seed ? "seed of output" : "input", seed ? w->spec->index : p->c->grad[which].index,
                 (long long)k, got[k], want);
        return say(p, order, text);
    }
    return true;
}

/* The gradients for the frame around this call; the tape goes. */
static bool gradients_up(const problem *p, bool second, int n, ls_tensor **grads)
{
    bool ok = true;
    LS_FRAME {
        ok = gradients(p, second, grads);
        for (int i = 0; ok && i < n; i++)
            grads[i] = ls_hand_up(grads[i]);
    }
    return ok;
}

static bool check(problem *p, bool second)
{
    int n = second ? p->n_inputs + p->n_seeds : p->n_inputs;
    value_fn value = second ? second_value : first_value;
    double tol = second ? SECOND_TOLERANCE : FIRST_TOLERANCE;
    const char *order = second ? "second" : "first";
    bool ok = true;
    LS_FRAME {
        ls_tensor *grads[2 * CASE_MOST];
        ok = gradients_up(p, second, n, grads) || refused(p, order);
        if (!ok)
            break;
        for (int i = 0; i < n; i++)
            ok = compare(p, i, grads[i], value, tol, order) && ok;
    }
    return ok;
}

static void test_file(void **state)
{
    const char *path = *state;
    case_file file;
    if (!case_file_read(path, &file))
        fail_msg("%s", case_problem());
    int bad = 0, ran = 0;
    for (int i = 0; i < file.count; i++) {
        const test_case *c = &file.cases[i];
        const ls_op *op = case_row(c);
        if (!case_has_fd(c) || (op && !op->gradient))
            continue;
        problem p;
        problem_open(&p, &file, c);
        bad += !check(&p, false);
        if (case_has_second(c))
            bad += !check(&p, true);
        problem_close(&p);
        ran++;
    }
    case_file_free(&file);
    if (bad)
        fail_msg("%d gradients of %s differ", bad, path);
    if (!ran)
        skip();
}

/* gradient_test [NAME...]: only the files of these operators. */
int main(int argc, char **argv)
{
    return case_main("gradients", test_file, argc, argv);
}
