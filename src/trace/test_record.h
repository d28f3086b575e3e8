/*
 * For tests of passes that look at whole steps: records a C function into a graph,
 * gradients and all, and compares what a graph gives before and after a pass.
 */
#ifndef LS__TRACE_TEST_RECORD_H
#define LS__TRACE_TEST_RECORD_H

#include <lockstep/function.h>
#include <math.h>

#include "tensor/convert.h"
#include "trace/pass.h"
#include "trace/record.h"
#include "trace/test_run.h"

enum { MOST_RESULTS = 6 };

/* Writes at most MOST_RESULTS results to `out`: how many. */
typedef int (*test_step)(ls_tensor *const *in, ls_tensor **out, const void *user);

/* The graph of a step that takes tensors like `like`. */
static inline ls__graph *record_step(test_step step, const void *user, int n,
                                     ls_tensor *const *like)
{
    ls__graph *g = NULL;
    LS_FRAME {
        ls_tensor *in[MOST_RESULTS] = { NULL }, *out[MOST_RESULTS];
        ls__recorder *r = ls__recorder_open("test");
        assert_non_null(r);
        for (int i = 0; i < n; i++)
            in[i] = ls__recorder_argument(r, &like[i]->spec, like[i]->device);
        int count = step(in, out, user);
        if (ls_error_pending())
            fail_msg("%s", ls_error_report());
        for (int i = 0; i < count; i++) {
            int wire = ls__recorder_wire(r, out[i]);
            assert_true(wire >= 0);
            assert_int_equal(ls__graph_output(ls__recorder_graph(r), wire), LS_OK);
        }
        g = ls__recorder_close(r, true);
    }
    assert_int_equal(ls__graph_verify(g), LS_OK);
    return g;
}

static inline void run_pass(ls_status (*pass)(ls__graph *), ls__graph *g)
{
    if (pass(g) || ls__graph_verify(g))
        fail_msg("%s", ls_error_report());
}

/* Relative to the largest element, which is what sums of products promise. */
static inline void close_to(const ls_tensor *got, const ls_tensor *want, double tolerance)
{
    assert_true(ls__spec_equal(&got->spec, &want->spec));
    double largest = 1;
    for (int64_t i = 0; i < ls_count(want); i++) {
        double x = fabs(ls__load_double(want->spec.dtype, ls__data(want), i));
        largest = x > largest ? x : largest;
    }
    for (int64_t i = 0; i < ls_count(want); i++) {
        double a = ls__load_double(got->spec.dtype, ls__data(got), i);
        double b = ls__load_double(want->spec.dtype, ls__data(want), i);
        if (!(fabs(a - b) <= tolerance * largest))
            fail_msg("element %ld: %g, want %g", (long)i, a, b);
    }
}

/* Runs the pass on the graph; its results stay: within `tolerance`, or bit for bit
 * when that is 0. */
static inline void keeps_results(ls_status (*pass)(ls__graph *), ls__graph *g, ls_tensor *const *in,
                                 double tolerance)
{
    ls_tensor *before[MOST_RESULTS], *after[MOST_RESULTS];
    assert_true(g->n_outputs <= MOST_RESULTS);
    run_graph(g, in, before);
    run_pass(pass, g);
    run_graph(g, in, after);
    for (int i = 0; i < g->n_outputs; i++)
        if (tolerance == 0)
            same_bits(after[i], before[i]);
        else
            close_to(after[i], before[i], tolerance);
}

/* ---- the whole way, by ls_trace --------------------------------------------------------- */

typedef struct traced_step {
    test_step step;
    const void *user;
} traced_step;

static inline ls_value *run_traced(ls_value *arguments, void *user)
{
    const traced_step *t = user;
    ls_tensor *in[MOST_RESULTS] = { NULL }, *out[MOST_RESULTS];
    for (int i = 0; i < ls_length(arguments); i++)
        in[i] = ls_item(arguments, i);
    return ls_tensors(t->step(in, out, t->user), out);
}

/* Calls a traced step `times` times; gives the results of the last, and how many
 * instructions it is. */
static inline int64_t call_traced(const char *off, traced_step t, int n, ls_tensor *const *in,
                                  int times, ls_value **results)
{
    ls_function *f = ls_trace_with(LS_TRACE(.off = off), run_traced, &t);
    ls_function_figures figures = { .size = sizeof figures };
    for (int i = 0; i < times; i++)
        *results = ls_function_call(f, ls_tensors(n, in));
    if (!*results || ls_function_look(f, &figures))
        fail_msg("%s", ls_error_report());
    ls_function_free(f);
    return figures.instructions;
}

/* With the pass a step has fewer instructions than without it, and the same results. */
static inline void traces_alike(const char *pass, test_step step, const void *user, int n,
                                ls_tensor *const *in, double tolerance)
{
    ls_value *with, *without;
    const traced_step t = { step, user };
    int64_t more = call_traced(pass, t, n, in, 2, &without);
    int64_t fewer = call_traced(NULL, t, n, in, 2, &with);
    assert_true(fewer < more);
    for (int i = 0; i < ls_length(with); i++)
        if (tolerance == 0)
            same_bits(ls_item(with, i), ls_item(without, i));
        else
            close_to(ls_item(with, i), ls_item(without, i), tolerance);
}

#endif
