/*
 * The phases of a plan: its instructions as a list of stretches that are part of one phase each, so
 * that whoever watches a replay looks at the clock where the phase changes and nowhere else.
 *
 * What a node was part of was noted when it was recorded. Two things are known only now: what is
 * computed after the last gradients is no forward pass any more, and a write that stands there
 * (passes move them to the end) is an update; and in a meeting, what writes is the update, the
 * rest reduces.
 */
#include <stdlib.h>

#include "trace/plan.h"

static ls_phase phase_of(const ls__node *node, bool after_gradients)
{
    const bool writes = node->op->flags & LS_OP_WRITES;
    if (node->op->flags & LS__OP_SYNC)
        return LS_PHASE_REDUCE;
    if (node->phase == LS_PHASE_REDUCE)
        return writes ? LS_PHASE_APPLY : LS_PHASE_REDUCE;
    if (node->phase == LS_PHASE_FORWARD && after_gradients)
        return writes ? LS_PHASE_APPLY : LS_PHASE_OTHER;
    return node->phase;
}

/* The first instruction after the last one that computes gradients; none does: behind all. */
static int end_of_gradients(const ls__plan *plan)
{
    for (int i = plan->n_instructions; i-- > 0;)
        if (plan->instructions[i].node->phase == LS_PHASE_BACKWARD)
            return i + 1;
    return plan->n_instructions;
}

ls_status ls__plan_phases(ls__plan *plan)
{
    const int n = plan->n_instructions, after = end_of_gradients(plan);
    plan->stretches = calloc((size_t)n + 1, sizeof *plan->stretches);
    if (!plan->stretches)
        return ls__fail_memory("a plan", ((size_t)n + 1) * sizeof *plan->stretches);
    for (int i = 0; i < n; i++) {
        ls_phase phase = phase_of(plan->instructions[i].node, i >= after);
        if (i == 0 || phase != plan->stretches[plan->n_stretches - 1].phase)
            plan->stretches[plan->n_stretches++] = (ls__stretch){ i, phase };
    }
    plan->stretches[plan->n_stretches].begin = n; /* where the last one ends */
    return LS_OK;
}
