/*
 * Random programs (support/random_graph.h), eager and traced. From one initial state a
 * program runs a few steps as the C function it is, and replayed, compiled with
 * subsets of the passes. What is compared after every step: all results and all
 * variables; bit for bit if the passes that ran keep bits, else as near as another
 * order of sums leaves them.
 *
 * Some programs are given a step that must fail. The replay says at which operator, and
 * variables and the optimizer are what they were before it.
 *
 * Passes are also run one by one over what was recorded; the graph must obey its
 * invariants after each.
 *
 * A program that fails is made as small as it stays failing, and printed with its seed:
 *
 *     random_graphs_test SEED [COUNT]
 */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/threads.h"
#include "support/random_graph.h"
#include "support/same.h"
#include "tensor/test_support.h"
#include "kernels/conv_pool.h"
#include "kernels/winograd.h"
#include "trace/pass.h"
#include "trace/record.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifdef SANITIZED
enum { PROGRAMS = 30 };
#elif defined(__clang__) || !defined(LS_HAVE_DNNL)
enum { PROGRAMS = 40 };
#else
enum { PROGRAMS = 60 };
#endif

enum { STEPS = 3, ROOM = 512, MOST_PASSES = 64 };

static uint64_t first_seed = 1;
static int programs = PROGRAMS;

/* What is wrong, of the check that last gave false. */
static char wrong[2048];
static bool is_wrong(const char *format, ...) LS_PRINTF(1, 2);
static bool is_wrong(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(wrong, sizeof wrong, format, list);
    va_end(list);
    return false;
}

/* ---- running ------------------------------------------------------------------------ */

typedef struct outcome {
    ls_value *results[STEPS]; /* kept; NULL of the step that fails */
    ls_tensor *variables[STEPS][RG_VARIABLES];
    ls_tensor *drawn[STEPS]; /* after the step: it took as many draws */
    int64_t iterations;
} outcome;

static void drop(outcome *o)
{
    for (int k = 0; k < STEPS; k++) {
        ls_value_drop(o->results[k]);
        ls_drop(o->drawn[k]);
        for (int i = 0; i < RG_VARIABLES; i++)
            ls_drop(o->variables[k][i]);
    }
    *o = (outcome){ 0 };
}

/* A step that must fail: it does, says where, and leaves everything as it was. */
static bool fails_cleanly(rg_world *w, ls_function *f, int k)
{
    void *before[RG_VARIABLES];
    int64_t iterations = ls_iterations(w->optimizer);
    for (int i = 0; i < RG_VARIABLES; i++) {
        ls_tensor *t = ls_read(w->variables[i]);
        before[i] = malloc(ls_size_in_bytes(t) + 1);
        assert_int_equal(ls_copy_out(t, before[i], ls_size_in_bytes(t)), LS_OK);
    }
    bool ok = true;
    ls_value *got = ls_function_call(f, rg_arguments(w, k, true));
    ls_status status = ls_error();
    if (got || status != LS_INVALID || !strstr(ls_error_text(), "random: operator "))
        ok = is_wrong("the bad step gave %s: %s", got ? "results" : ls_status_name(status),
                      ls_error_text());
    if (ls_iterations(w->optimizer) != iterations)
        ok = is_wrong("the bad step counted as an iteration");
    for (int i = 0; i < RG_VARIABLES; i++) {
        ls_tensor *t = ls_read(w->variables[i]);
        size_t bytes = ls_size_in_bytes(t);
        if (bytes && memcmp(ls_data(t), before[i], bytes))
            ok = is_wrong("the bad step changed variable '%s'", ls_variable_name(w->variables[i]));
        free(before[i]);
    }
    return ok;
}

/* What a program may do to its variables between steps. */
static void between(rg_world *w, int k)
{
    if (k == 1)
        ls_set_rate(w->optimizer, 0.005);
    if (k == 2) {
        ls_assign(w->variables[RG_WIDE_W], ls_scale(ls_read(w->variables[RG_WIDE_W]), 0.5));
        ls_assign(w->variables[RG_KDEEP], ls_scale(ls_read(w->variables[RG_KDEEP]), 0.5));
    }
}

static bool run_step(const rg_program *p, rg_world *w, ls_function *f, int k, outcome *out)
{
    ls_random_step(k);
    if (p->fault && k == (p->seed % 3 == 0 ? 0 : 1)) /* now and then it is traced for it */
        return f ? fails_cleanly(w, f, k) : true;
    ls_value *arguments = rg_arguments(w, k, false);
    ls_value *got = f ? ls_function_call(f, arguments) : rg_step(arguments, w);
    if (!got || ls_error_pending())
        return is_wrong("step %d failed: %s", k, ls_error_report());
    out->results[k] = ls_value_keep(got);
    out->drawn[k] = ls_keep(ls_random_uniform(LS_F32, LS_DIMS(2), 0, 1));
    for (int i = 0; i < RG_VARIABLES; i++)
        out->variables[k][i] = ls_keep(ls_read(w->variables[i]));
    return true;
}

/* Eagerly if `off` is NULL, else traced without those passes. */
static bool run(const rg_program *p, const char *off, outcome *out)
{
    bool ok = true;
    ls_random_seed(p->seed);
    ls__kernel_threads(p->seed % 16 == 0 ? 2 : 1);
    rg_world *w = rg_world_open(p);
    ls_function *f = off ? ls_trace_with(LS_TRACE(.off = off, .name = "random"), rg_step, w) : NULL;
    for (int k = 0; k < STEPS && ok; k++) {
        LS_FRAME
            between(w, k);
        LS_FRAME
            ok = run_step(p, w, f, k, out);
    }
    if (ok && f && ls_function_traces(f) != 1)
        ok = is_wrong("traced %lld times", (long long)ls_function_traces(f));
    ls__kernel_threads(1);
    out->iterations = ls_iterations(w->optimizer);
    ls_function_free(f);
    rg_world_close(w);
    return ok;
}

/* ---- comparing ----------------------------------------------------------------------- */

static bool compare_tensor(const rg_program *p, bool bits, int step, const char *what, int index,
                           ls_tensor *want, ls_tensor *got)
{
    if (same_bits(want, got))
        return true;
    double d = same_apart(want, got);
    /* Hundreds of operators lie between here and the reordered sum. */
    double most = 3 * same_near(ls_dtype_of(want));
    if (bits ? false : p->jumps || d <= most)
        return true;
    return is_wrong("step %d: %s %d, %s, is %.3g from the eager one%s", step, what, index,
                    ls_describe(want), d, bits ? ", but the passes that ran keep bits" : "");
}

static bool compare(const rg_program *p, bool bits, const outcome *want, const outcome *got)
{
    if (want->iterations != got->iterations)
        return is_wrong("%lld iterations, want %lld", (long long)got->iterations,
                        (long long)want->iterations);
    for (int k = 0; k < STEPS; k++) {
        if (!want->results[k])
            continue;
        int n = ls_leaf_count(want->results[k]);
        ls_tensor *a[RG_RESULTS + 1], *b[RG_RESULTS + 1];
        assert_true(n <= RG_RESULTS + 1);
        if (ls_same_structure(want->results[k], got->results[k]))
            return is_wrong("%s", ls_error_report());
        ls_flatten(want->results[k], a);
        ls_flatten(got->results[k], b);
        for (int i = 0; i < n; i++)
            if (!compare_tensor(p, bits, k, "result", i, a[i], b[i]))
                return false;
        if (!compare_tensor(p, true, k, "draw", 0, want->drawn[k], got->drawn[k]))
            return false;
        for (int i = 0; i < RG_VARIABLES; i++)
            if (!compare_tensor(p, bits, k, "variable", i, want->variables[k][i],
                                got->variables[k][i]))
                return false;
    }
    return true;
}

/* ---- the graph after each pass ---------------------------------------------------------- */

static ls__graph *record(const rg_program *p)
{
    ls__graph *g = NULL;
    rg_world *w = rg_world_open(p);
    LS_FRAME {
        ls_tensor *like[RG_ARGUMENTS], *leaves[RG_RESULTS + 1];
        ls_flatten(rg_arguments(w, 0, false), like);
        ls__recorder *r = ls__recorder_open("random");
        for (int i = 0; i < RG_ARGUMENTS; i++)
            like[i] = ls__recorder_argument(r, &like[i]->spec, like[i]->device);
        ls_value *results = rg_step(ls_tensors(RG_ARGUMENTS, like), w);
        int n = results ? ls_leaf_count(results) : 0;
        for (int i = 0; results && i < n; i++) {
            ls_flatten(results, leaves);
            ls__graph_output(ls__recorder_graph(r), ls__recorder_wire(r, ls_densify(leaves[i])));
        }
        g = ls__recorder_close(r, results && !ls_error_pending());
    }
    rg_world_close(w);
    return g;
}

static bool verify(ls__graph *g, const char *after, ls_status st)
{
    if (!st)
        st = ls__graph_verify(g);
    return !st || is_wrong("the graph after %s: %s", after, ls_error_report());
}

/* There and back as bytes. */
static bool verify_bytes(const ls__graph *g)
{
    void *bytes = NULL;
    size_t size = 0;
    if (ls__graph_write(g, &bytes, &size))
        return is_wrong("not written: %s", ls_error_report());
    ls__graph *back = ls__graph_read(bytes, size);
    free(bytes);
    if (!back)
        return is_wrong("not read again: %s", ls_error_report());
    char *a = ls__graph_text(g), *b = ls__graph_text(back);
    bool same = a && b && !strcmp(a, b);
    free(a);
    free(b);
    ls__graph_free(back);
    return same || is_wrong("another graph came back from bytes");
}

/* How often what was compared was something. */
static struct {
    int operators, faults, finite, trained;
    int busy[MOST_PASSES]; /* programs in which this pass found something to do */
} seen;

/* Runs a pass; notes whether it changed anything. */
static bool run_pass(int i, ls__graph *g)
{
    char *before = ls__graph_text(g);
    bool ok = verify(g, ls__passes[i].name, ls__passes[i].run(g));
    char *after = ls__graph_text(g);
    seen.busy[i] += before && after && strcmp(before, after) != 0;
    free(before);
    free(after);
    return ok;
}

/* Each pass alone, and all one after the other. */
static bool check_passes(const rg_program *p)
{
    ls__graph *recorded = record(p);
    if (!recorded)
        return is_wrong("not recorded: %s", ls_error_report());
    bool ok = verify(recorded, "recording", LS_OK) && verify_bytes(recorded);
    seen.operators += recorded->n_nodes;
    ls__graph *all = ls__graph_copy(recorded);
    for (int i = 0; ls__passes[i].name && ok; i++) {
        if (!ls__passes[i].run)
            continue;
        ls__graph *alone = ls__graph_copy(recorded);
        ok = verify(alone, "copying", LS_OK) &&
             verify(alone, ls__passes[i].name, ls__passes[i].run(alone)) && run_pass(i, all) &&
             verify(all, "dead nodes went", ls__pass_dead(all));
        ls__graph_free(alone);
    }
    ok = ok && verify_bytes(all);
    ls__graph_free(all);
    ls__graph_free(recorded);
    return ok;
}

/* ---- subsets of passes --------------------------------------------------------------------- */

/* The passes that `runs` leaves out as text, and whether those that run keep bits. */
static bool describe(const bool *runs, char *off)
{
    bool bits = true;
    int at = 0;
    off[0] = 0;
    for (int i = 0; ls__passes[i].name; i++)
        if (runs[i])
            bits &= ls__passes[i].keeps_bits;
        else
            at += snprintf(off + at, ROOM - (size_t)at, "%s%s", at ? "," : "", ls__passes[i].name);
    return bits;
}

static bool try_subset(const rg_program *p, const outcome *want, const bool *runs)
{
    char off[ROOM], said[sizeof wrong];
    bool bits = describe(runs, off);
    outcome got = { 0 };
    bool ok = run(p, off, &got) && compare(p, bits, want, &got);
    drop(&got);
    if (!ok) {
        snprintf(said, sizeof said, "%s", wrong);
        is_wrong("without \"%s\": %.1500s", off, said);
    }
    return ok;
}

/* None, all, all that keep bits and a random part of those; and of each pass alone and all
 * but each, those that `turn` says. */
static bool try_subsets(const rg_program *p, const outcome *want, int turn)
{
    bool runs[MOST_PASSES] = { false };
    uint64_t s = p->seed;
    int n = 0;
    while (ls__passes[n].name)
        n++;
    bool ok = try_subset(p, want, runs);
    if (turn % 5 == 0 && !p->odd) { /* operators stay as they are, and each is looked at */
        ls_numerics before = ls_check_numerics(LS_NUMERICS_NAN);
        ok = ok && try_subset(p, want, runs);
        ls_check_numerics(before);
    }
    for (int i = turn % 5; i < n && ok; i += 5) {
        runs[i] = true;
        ok = try_subset(p, want, runs);
        runs[i] = false;
    }
    for (int i = 0; i < n; i++)
        runs[i] = ls__passes[i].keeps_bits;
    ok = ok && try_subset(p, want, runs);
    for (int i = 0; i < n; i++)
        runs[i] = ls__passes[i].keeps_bits && rg_draw(&s, 2);
    ok = ok && try_subset(p, want, runs);
    for (int i = 0; i < n; i++)
        runs[i] = true;
    ok = ok && try_subset(p, want, runs);
    for (int i = turn % 5; i < n && ok; i += 5) {
        runs[i] = false;
        ok = try_subset(p, want, runs);
        runs[i] = true;
    }
    return ok;
}

/* Whether a loss that is not a number has made all variables so, and with them the rest. */
static bool is_finite(const outcome *o)
{
    for (int i = 0; i < RG_VARIABLES; i++) {
        bool finite;
        LS_FRAME
            finite = ls_to_int(ls_all(ls_isfinite(o->variables[STEPS - 1][i]), LS_ALL_AXES, false));
        if (!finite)
            return false;
    }
    return true;
}

/* ---- a program -------------------------------------------------------------------------------- */

static bool check(const rg_program *p)
{
    outcome want = { 0 };
    bool ok = run(p, NULL, &want);
    if (!ok) {
        drop(&want);
        char said[sizeof wrong];
        snprintf(said, sizeof said, "%s", wrong);
        return is_wrong("eagerly: %.1500s", said);
    }
    seen.finite += is_finite(&want) || p->odd;
    seen.faults += p->fault != RG_NO_FAULT;
    seen.trained += want.iterations > 0;
    ok = check_passes(p) && try_subsets(p, &want, (int)(p->seed % 5));
    drop(&want);
    return ok && !ls_error_pending();
}

/* Takes out every choice that is not needed for it to fail. */
static void shrink(rg_program *p)
{
    for (int i = p->count - 1; i >= 0; i--) {
        rg_program less = *p;
        less.count--;
        memmove(less.choices + i, less.choices + i + 1,
                sizeof *less.choices * (size_t)(less.count - i));
        less.fault_at -= i <= less.fault_at && less.fault_at > 0;
        if (less.count > 0 && !check(&less))
            *p = less;
    }
    check(p); /* says again what is wrong */
}

static void report(const rg_program *failed)
{
    rg_program p = *failed;
    print_error("program %llu: %s\n", (unsigned long long)p.seed, wrong);
    shrink(&p);
    print_error("made small, %d choices, %s, batch %lld: %s\n", p.count, ls_dtype_name(p.dtype),
                (long long)p.batch, wrong);
    ls__graph *g = record(&p);
    char *text = g ? ls__graph_text(g) : NULL;
    print_error("%s\n", text ? text : ls_error_report());
    free(text);
    ls__graph_free(g);
}

/* Whether a pass can find something here: packed layouts are oneDNN's, and some kernels are not for
 * every processor. */
static bool has_work(const ls__pass *pass)
{
#ifndef LS_HAVE_DNNL
    if (!strcmp(pass->name, "pack") || !strcmp(pass->name, "layout"))
        return false;
#endif
    if (!strcmp(pass->name, "fuse-conv-pool") && !LS__PICK(ls__conv_pool_table)->forward)
        return false;
    if (!strcmp(pass->name, "winograd") && !LS__PICK(ls__winograd_table)->fast)
        return false;
    return pass->run != NULL;
}

/* A generator that makes nothing of interest would prove nothing. */
static void judge(void)
{
    int idle = 0;
    print_message("%d programs, %d operators; %d trained, %d with a bad step, %d stay finite or "
                  "were given NaN\n",
                  programs, seen.operators, seen.trained, seen.faults, seen.finite);
    for (int i = 0; ls__passes[i].name; i++) {
        if (ls__passes[i].run)
            print_message("  %-16s %d\n", ls__passes[i].name, seen.busy[i]);
        idle += has_work(&ls__passes[i]) && seen.busy[i] == 0;
    }
    if (programs < PROGRAMS)
        return; /* as asked for by hand */
    assert_int_equal(idle, 0);
    assert_true(seen.operators > 50 * programs);
    assert_true(seen.finite * 10 > programs * 9);
    assert_true(seen.trained * 3 > programs && seen.faults * 6 > programs);
}

static void test_programs(void **state)
{
    (void)state;
    int bad = 0;
    for (int i = 0; i < programs && bad < 5; i++) {
        rg_program p;
        rg_make(&p, first_seed + (uint64_t)i);
        if (check(&p))
            continue;
        report(&p);
        ls_error();
        bad++;
    }
    assert_int_equal(bad, 0);
    judge();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test_setup(test_programs, clean) };
    if (argc > 1) {
        first_seed = strtoull(argv[1], NULL, 10);
        programs = argc > 2 ? atoi(argv[2]) : 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
