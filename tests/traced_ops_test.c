/*
 * Every operator, traced and eager. Each golden case is run as the step of a traced
 * function whose arguments are its inputs and seeds and whose results are its outputs,
 * its gradients and, in f64, the gradients of those; and the same C function is run
 * eagerly. The two agree in every bit unless a pass ran that may change the order of
 * sums, and such differences are small and few.
 *
 * What an operator refuses is refused too: by its shapes while tracing, by its values when
 * replayed, and both errors say where in the step.
 */
#include <lockstep.h>
#include <lockstep/function.h>

#include <stdio.h>
#include <string.h>

#include "support/case.h"
#include "support/same.h"
#include "tensor/test_support.h"
#include "trace/pass.h"

enum { ROOM = 512, MOST_RESULTS = 8 * CASE_MOST, REPLAYS = 2 };

/* Which derivatives a step gives beside the outputs. */
typedef struct traced_case {
    const test_case *c;
    bool gradients, second;
} traced_case;

/* ---- the step --------------------------------------------------------------------- */

typedef struct results {
    int n;
    ls_tensor *at[MOST_RESULTS];
} results;

static void give_all(results *r, ls_value *v)
{
    for (int i = 0; v && i < ls_length(v) && r->n < MOST_RESULTS; i++)
        r->at[r->n++] = ls_item(v, i);
}

/* The gradients of the sum of all squares of `first`. */
static ls_value *second_gradients(ls_tape *tape, ls_value *first, ls_value *xs)
{
    ls_tensor *squares[2 * CASE_MOST];
    for (int i = 0; i < ls_length(first); i++)
        squares[i] = ls_sum(ls_square(ls_densify(ls_item(first, i))), LS_ALL_AXES, false);
    return ls_gradients(tape, ls_tensors(ls_length(first), squares), xs);
}

static ls_value *step(ls_value *arguments, void *user)
{
    const traced_case *t = user;
    const test_case *c = t->c;
    ls_tensor *in[CASE_MOST] = { NULL }, *seeds[CASE_MOST], *ys[CASE_MOST], *xs[2 * CASE_MOST];
    results r = { 0 };
    for (int i = 0; i < c->n_in; i++)
        in[i] = ls_item(arguments, i);
    ls_tape *tape = t->gradients ? ls_tape_open() : NULL;
    ls_value *outs = case_call(c, c->n_in, in);
    if (!outs)
        return NULL;
    give_all(&r, outs);
    for (int i = 0; i < c->n_seed && t->gradients; i++) {
        seeds[i] = ls_item(arguments, c->n_in + i);
        ys[i] = ls_item(outs, c->seed[i].index);
    }
    if (t->gradients) {
        for (int i = 0; i < c->n_grad; i++)
            xs[i] = in[c->grad[i].index];
        ls_value *first =
            ls_gradients_from(tape, ls_tensors(c->n_seed, ys), ls_tensors(c->n_seed, seeds),
                              ls_tensors(c->n_grad, xs));
        give_all(&r, first);
        for (int i = 0; i < c->n_seed; i++)
            xs[c->n_grad + i] = seeds[i];
        if (first && t->second)
            give_all(&r, second_gradients(tape, first, ls_tensors(c->n_grad + c->n_seed, xs)));
    }
    return ls_error_pending() ? NULL : ls_tensors(r.n, r.at);
}

static ls_value *arguments_of(const test_case *c, bool gradients)
{
    ls_tensor *all[2 * CASE_MOST];
    int n = 0;
    for (int i = 0; i < c->n_in; i++)
        all[n++] = case_make(&c->in[i]);
    for (int i = 0; gradients && i < c->n_seed; i++)
        all[n++] = case_make(&c->seed[i]);
    return ls_tensors(n, all);
}

/* ---- what is compared ---------------------------------------------------------------- */

typedef struct tally {
    int cases, seconds, loose;
    int by_shape, by_value;
} tally;
static tally total;

static bool differ(const test_case *c, const char *off, const char *what)
{
    print_error("case %s (line %d) without \"%s\": %s\n", c->name, c->line, off, what);
    return false;
}

static bool compare(const test_case *c, const char *off, bool bits, ls_value *want, ls_value *got,
                    bool *loose)
{
    char text[ROOM];
    if (!got) {
        snprintf(text, sizeof text, "failed: %s", ls_error_report());
        return differ(c, off, text);
    }
    if (ls_length(got) != ls_length(want))
        return differ(c, off, "gave another number of results");
    for (int i = 0; i < ls_length(want); i++) {
        ls_tensor *a = ls_item(want, i), *b = ls_item(got, i);
        if (same_bits(a, b))
            continue;
        double d = same_apart(a, b), most = same_near(ls_dtype_of(a));
        most = c->tol > most ? c->tol : most;
        *loose = true;
        if (!bits && d <= most)
            continue;
        snprintf(text, sizeof text, "result %d, %s, is %.3g from the eager one%s", i,
                 ls_describe(a), d, bits ? ", but the passes that ran keep bits" : "");
        return differ(c, off, text);
    }
    return true;
}

/* Replays the step compiled without the passes `off`. */
static bool check_traced(const traced_case *t, const char *off, bool bits, ls_value *want,
                         bool *loose)
{
    bool ok = true;
    ls_function *f =
        ls_trace_with(LS_TRACE(.off = off, .name = "golden"), step, (void *)(uintptr_t)t);
    assert_non_null(f);
    for (int k = 0; k < REPLAYS && ok; k++)
        LS_FRAME {
            ls_random_step(3);
            ls_value *arguments = arguments_of(t->c, t->gradients);
            ok = compare(t->c, off, bits, want, ls_function_call(f, arguments), loose);
        }
    if (ok && ls_function_traces(f) != 1)
        ok = differ(t->c, off, "was traced again");
    ls_function_free(f);
    return ok;
}

/* Passes that may change the order of sums, as a list. */
static const char *loose_passes(void)
{
    static char names[ROOM];
    names[0] = 0;
    for (int i = 0, at = 0; ls__passes[i].name; i++)
        if (!ls__passes[i].keeps_bits)
            at += snprintf(names + at, sizeof names - (size_t)at, "%s%s", at ? "," : "",
                           ls__passes[i].name);
    return names;
}

/* In a frame of its own: under an open tape traced functions would run eagerly too. */
static ls_value *run_eagerly(const traced_case *t)
{
    ls_value *got = NULL;
    LS_FRAME {
        ls_random_step(3);
        got = step(arguments_of(t->c, t->gradients), (void *)(uintptr_t)t);
        got = got ? ls_value_hand_up(got) : NULL;
    }
    return got;
}

static bool check_case(const test_case *c)
{
    bool ok = true, loose = false;
    traced_case t = { c, c->n_grad > 0, case_has_second(c) };
    LS_FRAME {
        ls_value *want = run_eagerly(&t);
        if (!want) {
            ok = differ(c, "tracing", ls_error_report());
            break;
        }
        assert_true(ls_length(want) >= c->n_out + c->n_grad);
        ok = check_traced(&t, "all", true, want, &loose) &&
             check_traced(&t, loose_passes(), true, want, &loose) &&
             check_traced(&t, "", false, want, &loose);
    }
    total.cases++;
    total.seconds += t.second;
    total.loose += loose;
    return ok && !ls_error_pending();
}

static void test_file(void **state)
{
    case_file file;
    if (!case_file_read(*state, &file))
        fail_msg("%s", case_problem());
    int bad = 0, count = file.count;
    for (int i = 0; i < count; i++)
        bad += !check_case(&file.cases[i]);
    case_file_free(&file);
    if (bad)
        fail_msg("%d of %d cases of %s differ", bad, count, (const char *)*state);
    assert_true(count > 0);
}

/* ---- what is refused --------------------------------------------------------------------- */

static bool has_strings(const test_case *c)
{
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i].dtype == LS_BYTES)
            return true;
    return false;
}

/* What the error that was just taken lacks, or "". */
static const char *lacks(const test_case *c, ls_status status)
{
    static char what[2 * ROOM];
    const char *text = ls_error_text();
    int n, m;
    what[0] = 0;
    const char *place = strstr(text, "refused: operator ");
    bool tracing = strstr(text, "refused: tracing, at operator ");
    bool replaying = place && sscanf(place, "refused: operator %d of %d", &n, &m) == 2 && n >= 1 && n <= m;
    if (status != c->fail)
        snprintf(what, sizeof what, "%s, want %s: %s", ls_status_name(status),
                 ls_status_name(c->fail), text);
    else if (tracing == replaying)
        snprintf(what, sizeof what, "the text does not say where: %s", text);
    else if (status == LS_SHAPE && !tracing)
        snprintf(what, sizeof what, "shapes are refused only when replayed: %s", text);
    for (int i = 0; i < c->n_words && !what[0]; i++)
        if (!strstr(text, c->words[i]) && !strstr(ls_error_hint(), c->words[i]))
            snprintf(what, sizeof what, "the text lacks '%s': %s", c->words[i], text);
    total.by_shape += tracing;
    total.by_value += replaying;
    return what;
}

static bool check_refusal(const test_case *c, const char *off)
{
    const char *what = "";
    traced_case t = { c, false, false };
    ls_function *f = ls_trace_with(LS_TRACE(.off = off, .name = "refused"), step, &t);
    for (int k = 0; k < REPLAYS && !what[0]; k++)
        LS_FRAME {
            ls_value *got = ls_function_call(f, arguments_of(c, false));
            ls_status status = ls_error();
            what = got ? "accepted" : lacks(c, status);
        }
    ls_function_free(f);
    return !what[0] || differ(c, off, what);
}

static void test_refused(void **state)
{
    (void)state;
    char path[ROOM];
    case_file file;
    snprintf(path, sizeof path, "%s/cases/bad_input.txt", case_root());
    if (!case_file_read(path, &file))
        fail_msg("%s", case_problem());
    int bad = 0;
    for (int i = 0; i < file.count; i++)
        if (!has_strings(&file.cases[i]))
            bad += !check_refusal(&file.cases[i], "all") || !check_refusal(&file.cases[i], "");
    case_file_free(&file);
    assert_int_equal(bad, 0);
    print_message("refused: %d by shapes while tracing, %d by values when replayed\n",
                  total.by_shape, total.by_value);
    assert_true(total.by_shape > 100 && total.by_value > 20);
}

/* After all files: the comparisons above must have been made, and nearly all to the bit. */
static int judge(void)
{
    print_message("%d cases traced, %d with second gradients, %d not to the bit\n", total.cases,
                  total.seconds, total.loose);
    if (total.seconds * 10 < total.cases || total.loose * 20 > total.cases) {
        print_error("too few second gradients, or too many cases not to the bit\n");
        return 1;
    }
    return 0;
}

/* traced_ops_test [NAME...]: only the files of these operators. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test_setup(test_refused, clean) };
    int bad = case_main("traced operators", test_file, argc, argv);
    if (argc > 1)
        return bad;
    bad += judge();
    return bad + cmocka_run_group_tests(tests, NULL, NULL);
}
