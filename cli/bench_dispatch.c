/*
 * `lockstep bench dispatch`: what a run costs before any maths, on 2 replicas with a device each: a step
 * that does nothing, eager and traced, and what one all-reduced number adds to a traced step.
 *
 * The latter is what a step with 101 all-reduces, each of the result of the one before, takes longer than
 * a step with one, divided by 100. All steps are timed by turns, in windows, so that a busy
 * neighbour hits all of them alike; the median window counts. Results of the all-reduces are checked.
 */
#include <lockstep.h>
#include <lockstep/strategy.h>
#include <math.h>

#include "bench.h"
#include "cli.h"

enum { REPLICAS = 2, MORE = 100, ROUNDS = 7 };

enum { EAGER, TRACED, ONE, MANY, STEPS };

typedef struct timed {
    ls_strategy *strategy;
    ls_function *traced; /* NULL: eager */
    int reductions;
    int turns; /* runs in a window */
    double took[ROUNDS];
} timed;

/* So many dependent all-reduces of one number; none: nothing at all. */
static ls_value *step(ls_value *arguments, void *user)
{
    int reductions = *(const int *)user;
    if (reductions == 0)
        return ls_list(0, NULL);
    ls_value *sum = ls_child(arguments, 0);
    for (int i = 0; i < reductions; i++)
        sum = ls_all_reduce(ls_get_replica_context(), LS_SUM, sum);
    return sum;
}

/* False: an error is pending, or `*sum` is not what it must be. */
static bool run_once(timed *t, double *sum)
{
    ls_tensor *one[] = { t->reductions > 0 ? ls_scalar(LS_F64, 1) : NULL };
    ls_value *arguments = ls_tensors(t->reductions > 0, one);
    ls_value *result = t->traced ? ls_run(t->strategy, t->traced, arguments)
                                 : ls_run_eager(t->strategy, step, &t->reductions, arguments);
    if (!result)
        return false;
    if (t->reductions == 0)
        return true;
    *sum = ls_to_double(ls_leaf_tensor(ls_select(result, 0)));
    return *sum == pow(REPLICAS, t->reductions);
}

/* Seconds a run of one window; negative: see run_once. */
static double time_window(timed *t, double *sum)
{
    bool good = true;
    double start = bench_now();
    for (int i = 0; i < t->turns && good; i++)
        LS_FRAME
            good = run_once(t, sum);
    return good ? (bench_now() - start) / t->turns : -1;
}

/* Leaves all windows' times in took. */
static bool time_by_turns(timed *steps, double window, double *sum)
{
    for (int i = 0; i < STEPS; i++) {
        steps[i].turns = 2; /* the first traces, and starts the threads */
        double each = time_window(&steps[i], sum);
        each = each < 0 ? each : time_window(&steps[i], sum);
        if (each < 0)
            return false;
        steps[i].turns = each < window ? (int)fmin(window / each, 1e9) : 1;
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < STEPS; i++)
            if ((steps[i].took[round] = time_window(&steps[i], sum)) < 0)
                return false;
    return true;
}

static bool open_steps(timed *steps, ls_strategy *strategy)
{
    static const int reductions[STEPS] = { [ONE] = 1, [MANY] = 1 + MORE };
    for (int i = 0; i < STEPS; i++) {
        steps[i] = (timed){ .strategy = strategy, .reductions = reductions[i] };
        if (i != EAGER && !(steps[i].traced = ls_trace(step, &steps[i].reductions)))
            return false;
    }
    return true;
}

static void print_results(const cli *c, timed *steps)
{
    double us[STEPS];
    for (int i = 0; i < STEPS; i++)
        us[i] = 1e6 * bench_median(steps[i].took, ROUNDS);
    double reduction = (us[MANY] - us[ONE]) / MORE;
    if (c->json) {
        json j = json_open(stdout);
        json_text(&j, "bench", "dispatch");
        json_number(&j, "run_eager_us", us[EAGER]);
        json_number(&j, "run_traced_us", us[TRACED]);
        json_number(&j, "allreduce_scalar_us", reduction);
        json_close(&j);
        return;
    }
    printf("empty run on %d replicas, eager   %9.3f us\n", REPLICAS, us[EAGER]);
    printf("empty run on %d replicas, traced  %9.3f us\n", REPLICAS, us[TRACED]);
    printf("one all-reduced scalar, traced   %9.3f us\n", reduction);
}

static int measure(const cli *c, double window)
{
    timed steps[STEPS] = { 0 };
    double sum = 0;
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0,/cpu:1", .replicas = REPLICAS));
    bool done = s && open_steps(steps, s) && time_by_turns(steps, window, &sum);
    int status = EXIT_DONE;
    if (done)
        print_results(c, steps);
    else if (ls_error_pending())
        status = cli_failed(c);
    else
        status = cli_error(c, EXIT_FAILED, LS_CORRUPT, "please report this",
                           "all-reduces of 1 give %g", sum);
    for (int i = 0; i < STEPS; i++)
        ls_function_free(steps[i].traced);
    ls_strategy_free(s);
    return status == EXIT_DONE ? cli_done(c) : status;
}

/* ---- the command ------------------------------------------------------------------------------ */

typedef struct request {
    double window; /* seconds */
} request;

static void default_request(void *to)
{
    *(request *)to = (request){ .window = 0.2 };
}

static int run(const cli *c, void *request_, int n, char **positional)
{
    (void)n, (void)positional;
    const request *r = request_;
    return measure(c, r->window);
}

static const cli_option options[] = {
    { "--seconds", "X", "length of a window; 28 are timed (0.2)", CLI_SECONDS_EXPECTED, cli_seconds,
      .at = offsetof(request, window) },
};

const command cli_bench_dispatch = {
    .name = "dispatch",
    .help = "what a run costs before any maths",
    .about =
        "Times what a run costs before any maths, on 2 replicas with a device each: a step that "
        "does nothing, eager and traced, and what one all-reduced number adds to a traced "
        "step.",
    .examples = "  lockstep bench dispatch --json",
    .environment = "LOCKSTEP_ISA",
    CLI_OPTIONS(options),
    .request_bytes = sizeof(request),
    .defaults = default_request,
    .run = run,
};
