/*
 * The input plan. Invariant: the pieces of a batch are disjoint, in order, and together all of it.
 */
#include "data/plan.h"

#include <stddef.h>

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Rows of a whole batch, when there is one of so many. */
static int64_t whole(const ls__plan *plan, int64_t rows)
{
    return plan->batch < rows ? rows : plan->batch;
}

/* ---- pieces ----------------------------------------------------------------------------------- */

/* Rows of pieces 0 up to n, in the order of the first pipeline's, which goes on beyond V. Unsigned: twice
 * a batch of all there can be. */
static uint64_t rows_before(const ls__plan *plan, int64_t batch, int64_t n)
{
    const int64_t v = plan->replicas;
    return (uint64_t)n * (uint64_t)(batch / v) +
           (uint64_t)(n / v * (batch % v) + least(n % v, batch % v));
}

/* Where piece n of pipeline p begins in a whole batch. */
static int64_t begins(const ls__plan *plan, int pipeline, int64_t batch, int64_t n)
{
    const int64_t turned = (int64_t)pipeline * ls__plan_each(plan);
    return (int64_t)(rows_before(plan, batch, turned + n) - rows_before(plan, batch, turned));
}

int64_t ls__plan_size(const ls__plan *plan, int pipeline, int piece)
{
    return begins(plan, pipeline, plan->batch, piece + 1) -
           begins(plan, pipeline, plan->batch, piece);
}

int ls__plan_turns(const ls__plan *plan, int pipeline, int64_t rows)
{
    const int64_t batch = whole(plan, rows);
    int turns = plan->pipelines;
    if (plan->cut != LS__CUT_OWN || rows == 0)
        return 1;
    if (rows == batch)
        return turns;
    while (turns > 1 && begins(plan, pipeline, batch, (turns - 1) * ls__plan_each(plan)) >= rows)
        turns--;
    return turns;
}

static ls__window own_window(const ls__plan *plan, int pipeline, int64_t rows, int piece)
{
    const int64_t batch = whole(plan, rows);
    const int64_t first = begins(plan, pipeline, batch, piece);
    const int64_t end = begins(plan, pipeline, batch, piece + 1);
    ls__window w = { .first = least(first, rows) };
    w.count = least(end, rows) - w.first;
    w.without = w.count == 0 && end > first;
    return w;
}

/* Rows of each piece, but for those at the end. */
static int64_t dealt(const ls__plan *plan, int64_t rows)
{
    return rows / plan->replicas + (rows % plan->replicas != 0);
}

static ls__window data_window(const ls__plan *plan, int64_t rows, int piece)
{
    const int64_t batch = whole(plan, rows), each = dealt(plan, rows);
    const int64_t first = least(piece * each, rows);
    ls__window w = { .first = first, .count = least(each, rows - first) };
    w.without = w.count == 0 && piece * dealt(plan, batch) < batch;
    return w;
}

ls__window ls__plan_window(const ls__plan *plan, int pipeline, int64_t rows, int turn, int j)
{
    return plan->cut == LS__CUT_DATA
               ? data_window(plan, rows, pipeline + j * plan->pipelines)
               : own_window(plan, pipeline, rows, turn * ls__plan_each(plan) + j);
}

/* ---- when it ends ----------------------------------------------------------------------------- */

unsigned ls__plan_says(const ls__plan *plan, int pipeline, int64_t rows, int turn)
{
    unsigned says = LS__SAYS_MORE | (rows == 0 ? LS__SAYS_DATA : 0);
    for (int j = 0; j < ls__plan_each(plan); j++) {
        ls__window w = ls__plan_window(plan, pipeline, rows, turn, j);
        says |= (w.count > 0 ? LS__SAYS_DATA : 0) | (w.without ? LS__SAYS_SHORT : 0);
    }
    return says;
}

unsigned ls__plan_says_elements(const ls__plan *plan, int elements)
{
    return (elements > 0 ? LS__SAYS_DATA | LS__SAYS_MORE : 0) |
           (elements < ls__plan_each(plan) ? LS__SAYS_SHORT : 0);
}

ls__step_fate ls__plan_step(const ls__plan *plan, unsigned mine, ls__anyone anyone, void *user)
{
    const unsigned all = anyone ? anyone(user, mine) : mine;
    if (!(all & LS__SAYS_MORE) || (all & LS__SAYS_END) ||
        (plan->whole_steps && (all & LS__SAYS_SHORT)))
        return LS__STEP_END;
    return all & LS__SAYS_DATA ? LS__STEP_GIVE : LS__STEP_SKIP;
}
