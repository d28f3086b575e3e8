/*
 * Compiling a traced step: meetings first, which tell what they only add up, then programs,
 * which put that where it is lent a place. Replicas whose programs are the same but for their
 * variables share one compilation. Undoing is the journal's, for all pieces together.
 */
#include <stdlib.h>

#include "dispatch/context.h"
#include "strategy/step.h"

void ls__step_free(ls__traced_step *step)
{
    if (!step)
        return;
    ls__step_unplace(step);
    /* Plans that are shared are the first replica's of them: freed last. */
    for (int r = step->replicas; step->programs && r-- > 0;)
        ls__piece_free(&step->programs[r]);
    for (int k = 0; k < step->n_meetings; k++)
        ls__piece_free(&step->meetings[k]);
    ls__early_free(&step->early);
    free(step->programs);
    free(step->meetings);
    ls_value_drop(step->results);
    free(step->signature);
    free(step);
}

/* What a meeting gives is read after it has ended: from memory of its own, not from a
 * replica's, which goes on, or a variable's, which may be written. */
static ls_status own_outputs(ls__graph *g)
{
    const ls_op *copy = ls_op_find("copy");
    if (g->calls == 0)
        g->calls = 1; /* the copies are of call 1, then */
    for (int k = 0; k < g->n_outputs; k++) {
        const ls__wire *w = &g->wires[g->outputs[k]];
        if (w->kind == LS__WIRE_RESULT && !(w->node->op->flags & LS_OP_ALIAS))
            continue;
        ls__node *node = ls__graph_call(g, NULL, copy, NULL, 1, &g->outputs[k]);
        if (!node)
            return ls_error_pending();
        g->outputs[k] = node->outputs[0];
    }
    return LS_OK;
}

static unsigned plan_flags(void)
{
    return LS__PLAN_NO_UNDO | (ls__numerics() ? LS__PLAN_CHECKED : 0);
}

static ls_status compile_meeting(ls__traced_step *step, int k, ls__pass_set off)
{
    ls__piece *p = &step->meetings[k];
    ls__graph *copy = ls__graph_copy(p->recorded);
    if (!copy)
        return LS_NO_MEMORY;
    if (own_outputs(copy)) {
        ls__graph_free(copy);
        return ls_error_pending();
    }
    p->plan = ls__plan_make(copy, off, plan_flags());
    ls_status st = p->plan ? LS_OK : ls_error_pending();
    if (!st && ls__numerics() == LS_NUMERICS_OFF) /* a fold is no row: nobody would check it */
        st = ls__folded_find(step, k);
    if (!st)
        st = ls__piece_make_inputs(p);
    return st ? st : ls__instance_open(p->plan, NULL, &p->instance);
}

/* Whether the plan is one for these, too: where they lie was decided when it was made. */
static bool same_lent(const ls__plan *plan, const ls__lent *lent, int n)
{
    if (plan->n_lent != n)
        return false;
    for (int i = 0; i < n; i++)
        if (plan->lent[i].meeting != lent[i].meeting || plan->lent[i].input != lent[i].input ||
            plan->lent[i].offset != lent[i].offset)
            return false;
    return true;
}

static ls_status compile(ls__piece *p, ls__pass_set off, const ls__lent *lent, int n)
{
    ls__graph *copy = ls__graph_copy(p->recorded);
    if (!copy)
        return LS_NO_MEMORY;
    p->plan = ls__plan_make_lent(copy, off, plan_flags() | LS__PLAN_TURNS, n, lent);
    return p->plan ? LS_OK : ls_error_pending();
}

static ls_status compile_program(ls__traced_step *step, int r, ls__pass_set off)
{
    ls__piece *p = &step->programs[r];
    ls__lent *lent = NULL;
    int n = 0;
    ls_status st = ls__folded_lent(step, r, &lent, &n);
    for (int q = 0; q < r && !p->plan && !st; q++)
        if (!step->programs[q].shares_plan && same_lent(step->programs[q].plan, lent, n) &&
            ls__graph_same(p->recorded, step->programs[q].recorded)) {
            p->plan = step->programs[q].plan;
            p->shares_plan = true;
        }
    if (!st && !p->plan)
        st = compile(p, off, lent, n);
    free(lent);
    return st ? st : ls__piece_make_inputs(p);
}

/* Whether anything is written after the last meeting. */
static bool writes_late(const ls__plan *plan)
{
    for (int i = plan->n_instructions; i-- > 0;) {
        unsigned flags = plan->instructions[i].node->op->flags;
        if (flags & LS__OP_SYNC)
            return false;
        if (flags & LS_OP_WRITES)
            return true;
    }
    return false;
}

/* Meetings count as something that can fail, so the tail is behind the last of them. */
static bool can_fail_late(const ls__plan *plan)
{
    return plan->tail > 0 && !(plan->instructions[plan->tail - 1].node->op->flags & LS__OP_SYNC);
}

ls_status ls__step_compile(ls__traced_step *step, ls__pass_set off)
{
    int64_t drawn = 0;
    if (!ls__pass_is_off(off, "products") && !ls__pass_is_off(off, "fuse-update") &&
        ls__numerics() == LS_NUMERICS_OFF) {
        ls_status st = ls__step_move_products(step);
        if (!st && !ls__pass_is_off(off, "early"))
            st = ls__early_take(step);
        if (st)
            return st;
    }
    for (int k = 0; k < step->n_meetings; k++) {
        ls__piece *p = &step->meetings[k];
        ls_status st = compile_meeting(step, k, off);
        if (st)
            return st;
        p->first.ordinal = (uint64_t)drawn;
        drawn += p->recorded->draws;
    }
    step->draws |= drawn > 0;
    for (int r = 0; r < step->replicas; r++) {
        ls_status st = compile_program(step, r, off);
        if (st)
            return st;
        step->draws |= step->programs[r].recorded->draws > 0;
        step->writes_late |= writes_late(step->programs[r].plan);
        step->late_can_fail |= can_fail_late(step->programs[r].plan);
    }
    return ls__early_compile(step, off);
}
