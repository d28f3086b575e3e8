/*
 * What a strategy costs before any maths: a run of a step that does nothing, eager and
 * traced, and an all-reduce of one number, on 2 replicas with a device each; and the
 * all-reduce on 8 replicas that share the 2 devices. Prints one JSON object a line, as
 * bench/eager.c does.
 *
 *     strategy [-s SECONDS]
 *
 * An all-reduce is what a step with 101 of them, each of the result of the one before,
 * takes longer than a step with one, divided by 100. All are timed by turns (turns.h).
 */
#include <lockstep.h>
#include <lockstep/strategy.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "turns.h"

enum { MORE = 100 }; /* all-reduces that the longer step has more than the shorter one */

/* Ends the program when something is NULL that must not be. */
static void *must(void *made)
{
    if (!made) {
        fprintf(stderr, "strategy: %s\n", ls_error_report());
        exit(1);
    }
    return made;
}

/* ---- the steps -------------------------------------------------------------------------- */

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

typedef struct bout {
    ls_strategy *strategy;
    ls_function *traced; /* NULL: eager */
    int reductions;
} bout;

static void run(void *user)
{
    bout *b = user;
    ls_tensor *one[] = { b->reductions > 0 ? ls_scalar(LS_F64, 1) : NULL };
    ls_value *arguments = ls_tensors(b->reductions > 0, one);
    ls_value *result = must(b->traced ? ls_run(b->strategy, b->traced, arguments)
                                      : ls_run_eager(b->strategy, step, &b->reductions, arguments));
    if (b->reductions == 0)
        return;
    double sum = ls_to_double(ls_leaf_tensor(ls_select(result, 0)));
    if (sum != pow(ls_num_replicas(b->strategy), b->reductions)) {
        fprintf(stderr, "strategy: %d all-reduces of 1 give %g\n", b->reductions, sum);
        exit(1);
    }
}

/* ---- the cases ---------------------------------------------------------------------------- */

/* Nothing, one all-reduce, and MORE of them: measured in one go, one way. */
typedef struct group {
    const char *way;
    bool traced;
    int replicas;
    bout bouts[3];
} group;

enum { GROUPS = 3, EACH = 3 };
static group groups[GROUPS] = {
    { .way = "eager", .replicas = 2 },
    { .way = "traced", .traced = true, .replicas = 2 },
    { .way = "traced", .traced = true, .replicas = 8 },
};

static void open_group(group *g, job *jobs)
{
    static const int reductions[EACH] = { 0, 1, 1 + MORE };
    ls_strategy *s =
        must(ls_mirrored(LS_MIRRORED(.devices = "/cpu:0,/cpu:1", .replicas = g->replicas)));
    for (int i = 0; i < EACH; i++) {
        bout *b = &g->bouts[i];
        *b = (bout){ .strategy = s, .reductions = reductions[i] };
        if (g->traced)
            b->traced = must(ls_trace(step, &b->reductions));
        jobs[i] = (job){ .call = run, .user = b };
    }
}

static void report(const group *g, const char *bench, double seconds)
{
    printf("{\"system\":\"lockstep\",\"bench\":\"%s\",\"way\":\"%s\",\"replicas\":%d,"
           "\"devices\":2,\"us\":%.3f}\n",
           bench, g->way, g->replicas, 1e6 * seconds);
}

static void close_group(group *g)
{
    for (int i = 0; i < EACH; i++)
        ls_function_free(g->bouts[i].traced);
    ls_strategy_free(g->bouts[0].strategy);
}

int main(int argc, char **argv)
{
    job jobs[GROUPS * EACH];
    int option;
    while ((option = getopt(argc, argv, "s:")) != -1) {
        window = option == 's' ? atof(optarg) : 0;
        if (!(window > 0)) {
            fprintf(stderr, "usage: strategy [-s SECONDS]\n");
            return 2;
        }
    }
    for (int i = 0; i < GROUPS; i++)
        open_group(&groups[i], jobs + EACH * i);
    time_by_turns(GROUPS * EACH, jobs);
    for (int i = 0; i < GROUPS; i++) {
        const job *j = jobs + EACH * i;
        report(&groups[i], "empty_run", j[0].took[0]);
        report(&groups[i], "scalar_all_reduce", (j[2].took[0] - j[1].took[0]) / MORE);
        close_group(&groups[i]);
    }
    if (ls_error_pending()) {
        fprintf(stderr, "strategy: %s\n", ls_error_report());
        return 1;
    }
    return 0;
}
