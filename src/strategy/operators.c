/*
 * Times of operators: switched on in a function, counted by the instances of its steps (execute.c), and
 * read here. Replicas with one plan count together, instruction by instruction; a meeting is held
 * once, while all devices work for it or wait.
 */
#include <lockstep/profile.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "strategy/step.h"
#include "tensor/tensor.h"
#include "trace/function.h"
#include "trace/work.h"

ls_status ls__step_time(ls__traced_step *step)
{
    ls_status st = LS_OK;
    for (int r = 0; r < step->replicas && !st; r++)
        st = ls__instance_time(step->programs[r].instance);
    for (int k = 0; k < step->n_meetings && !st; k++)
        st = ls__instance_time(step->meetings[k].instance);
    return st ? st : ls__early_time(&step->early, step->devices);
}

static void count_anew(const ls__traced_step *step)
{
    for (int r = 0; r < step->replicas && step->devices; r++)
        ls__instance_time_anew(step->programs[r].instance);
    for (int k = 0; k < step->n_meetings; k++)
        ls__instance_time_anew(step->meetings[k].instance);
    if (step->early.n_rows > 0)
        ls__instance_time_anew(step->early.piece.instance);
}

ls_status ls_operators_start(ls_function *f)
{
    if (!f)
        return ls_error_pending()
                   ? ls_error_pending()
                   : ls__fail(LS_INVALID, "ls_operators_start: the function is NULL");
    ls_status st = ls__function_enter("ls_operators_start", f);
    if (st)
        return st;
    f->timed = true;
    for (const ls__traced_step *step = f->steps; step; step = step->next)
        count_anew(step);
    ls__function_leave(f);
    return LS_OK;
}

/* ---- reading ---------------------------------------------------------------------------------- */

typedef struct reader {
    const ls__traced_step *step;
    ls_operator_seen fn;
    void *user;
} reader;

static void add_spec(char *text, size_t room, const char *before, const ls__spec *spec)
{
    size_t used = strlen(text);
    snprintf(text + used, room - used, "%s%s", before, ls__spec_text(spec));
}

/* "f32[64,784] f32[784,2048] -> f32[64,2048]"; of many operands the first. */
static void shapes_of(const ls__graph *g, const ls__node *node, char *out, size_t room)
{
    enum { MOST = 4 };
    out[0] = '\0';
    for (int i = 0; i < node->n_inputs && i < MOST; i++)
        add_spec(out, room, i ? " " : "", &g->wires[node->inputs[i]].spec);
    for (int i = 0; i < node->n_cells && node->n_inputs == 0 && i < MOST; i++)
        add_spec(out, room, i ? " " : "", &g->cells[node->cells[i]].spec);
    for (int i = 0; i < node->n_outputs && i < MOST; i++)
        add_spec(out, room, i ? " " : " -> ", &g->wires[node->outputs[i]].spec);
}

static ls_phase phase_of(const ls__plan *plan, int instruction)
{
    int k = 0;
    while (k + 1 < plan->n_stretches && plan->stretches[k + 1].begin <= instruction)
        k++;
    return plan->n_stretches > 0 ? plan->stretches[k].phase : LS_PHASE_OTHER;
}

static ls_status give(const reader *r, const ls__plan *plan, int n, ls__time time)
{
    const ls__node *node = plan->instructions[n].node;
    if (node->op->flags & LS__OP_SYNC || time.calls == 0)
        return LS_OK;
    char shapes[512];
    ls_status st = LS_NO_MEMORY;
    LS_FRAME {
        const ls__work work = ls__node_work(plan->graph, node);
        shapes_of(plan->graph, node, shapes, sizeof shapes);
        const ls_operator_time out = { .size = sizeof out,
                                       .name = node->op->name,
                                       .shapes = shapes,
                                       .phase = phase_of(plan, n),
                                       .calls = time.calls,
                                       .seconds = 1e-9 * (double)time.ns,
                                       .flops = work.flops,
                                       .bytes = work.bytes };
        st = r->fn(&out, r->user);
    }
    return st;
}

/* Those of replicas that share the plan of replica `first`. */
static ls_status give_program(const reader *r, int first)
{
    const ls__plan *plan = r->step->programs[first].plan;
    ls_status st = LS_OK;
    for (int q = 0; q < first; q++)
        if (r->step->programs[q].plan == plan)
            return LS_OK; /* given already */
    for (int n = 0; n < plan->n_instructions && !st; n++) {
        ls__time all = { 0, 0 };
        for (int q = first; q < r->step->replicas; q++) {
            if (r->step->programs[q].plan != plan)
                continue;
            const ls__time one = ls__instance_time_of(r->step->programs[q].instance, n);
            all.calls += one.calls;
            all.ns += one.ns;
        }
        st = give(r, plan, n, all);
    }
    return st;
}

static ls_status give_meeting(const reader *r, const ls__piece *meeting)
{
    ls_status st = LS_OK;
    for (int n = 0; n < meeting->plan->n_instructions && !st; n++) {
        ls__time time = ls__instance_time_of(meeting->instance, n);
        time.ns *= r->step->devices;
        st = give(r, meeting->plan, n, time);
    }
    return st;
}

/* Devices count each for itself there, but numbers are the runner's. */
static ls_status give_early(const reader *r, const ls__early *early)
{
    ls_status st = LS_OK;
    for (int n = 0; early->n_rows > 0 && n < early->piece.plan->n_instructions && !st; n++)
        st = give(r, early->piece.plan, n, ls__instance_time_of(early->piece.instance, n));
    return st;
}

/* How often it was replayed since. */
static int64_t times_run(const ls__traced_step *step)
{
    int64_t most = 0;
    const ls__piece *p = &step->programs[0];
    for (int n = 0; n < p->plan->n_instructions && step->timed && step->devices; n++) {
        const ls__time time = ls__instance_time_of(p->instance, n);
        most = time.calls > most ? time.calls : most;
    }
    return most;
}

/* A last batch that is shorter has a step of its own. */
static const ls__traced_step *run_most(const ls_function *f)
{
    const ls__traced_step *best = NULL;
    int64_t most = 0;
    for (const ls__traced_step *step = f->steps; step; step = step->next)
        if (times_run(step) > most) {
            best = step;
            most = times_run(step);
        }
    return best;
}

ls_status ls_operators_read(ls_function *f, ls_operator_seen fn, void *user)
{
    if (!f || !fn)
        return ls_error_pending() ? ls_error_pending()
                                  : ls__fail(LS_INVALID, "ls_operators_read: the %s is NULL",
                                             f ? "callback" : "function");
    ls_status st = ls__function_enter("ls_operators_read", f);
    if (st)
        return st;
    const reader r = { run_most(f), fn, user };
    if (!r.step)
        st = ls__hint(ls__fail(LS_STATE, "ls_operators_read: no step of '%s' was timed", f->name),
                      "ls_operators_start begins it, for what ls_run runs");
    for (int q = 0; !st && q < r.step->replicas; q++)
        st = give_program(&r, q);
    for (int k = 0; !st && k < r.step->n_meetings; k++)
        st = give_meeting(&r, &r.step->meetings[k]);
    if (!st)
        st = give_early(&r, &r.step->early);
    ls__function_leave(f);
    return st;
}
