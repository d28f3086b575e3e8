/*
 * All variables of an optimizer in one call, X_updates: the numbers, the gradients and, if
 * norms are clipped, a scale for each. Put into graphs by trace/pass_fuse_update.c.
 * Invariant: the bits of the single rows, and all that can fail is done before the
 * first variable changes. An element's bits do not depend on the slice it is in.
 */
#include "collective/team.h"
#include "ops/update.h"

static ls_status shape(ls_call *c)
{
    const ls__update_kind *kind = ls__update_kind_of(c->op);
    int variables = c->n_cells / kind->cells, first = kind->numbers;
    if (variables < 1 || c->n_inputs < first + 1)
        return ls_call_fail(c, LS_INVALID, "there is no gradient");
    ls_status st = ls__update_check_count(c, kind->cells * variables);
    if (!st && c->n_inputs != first + variables && c->n_inputs != first + 2 * variables)
        st = ls_call_fail(c, LS_INVALID, "%d inputs for %d variables, wants %d, or %d with scales",
                          c->n_inputs, variables, first + variables, first + 2 * variables);
    if (!st)
        st = ls__update_check_numbers(c, kind, 0);
    for (int i = 0; i < variables && !st; i++)
        st = ls__update_check(c, kind, c->in[first + i], c->cells + kind->cells * i);
    for (int i = first + variables; i < c->n_inputs && !st; i++)
        st = ls__update_check_scale(c, i);
    return st;
}

/* ---- the kernel: the ranks of a team, if there is one, take slices of every variable ------ */

typedef struct updates {
    const ls_call *c;
    const ls__update_kind *kind;
    ls__update step;
    int variables, ranks;
    char **at; /* variables x cells: where they begin */
} updates;

static size_t scratch(ls_call *c)
{
    return (size_t)c->n_cells * sizeof(char *);
}

static void take_slices(void *arg, int rank)
{
    const updates *u = arg;
    const int first = u->kind->numbers;
    const void *const *gradients = u->c->in_data + first, *const *scales = gradients + u->variables;
    for (int i = 0; i < u->variables; i++) {
        const ls__spec *spec = u->c->in[first + i];
        const int64_t n = ls__spec_count(spec), line = 64;
        const int64_t width = (int64_t)ls_dtype_size(spec->dtype);
        const int64_t begin = n * rank / u->ranks / line * line;
        const int64_t end = rank + 1 == u->ranks ? n : n * (rank + 1) / u->ranks / line * line;
        ls__update step = u->step;
        if (u->c->n_inputs > first + u->variables)
            step.scale = *(const double *)scales[i];
        void *at[1 + LS__MOST_SLOTS];
        for (int k = 0; k < u->kind->cells; k++)
            at[k] = u->at[i * u->kind->cells + k] + begin * width;
        LS__PICK(ls__update_table)
            ->update[u->kind->id][spec->dtype == LS_F64](
                at, (const char *)gradients[i] + begin * width, &step, end - begin);
    }
}

static ls_status kernel(ls_call *c)
{
    const ls__update_kind *kind = ls__update_kind_of(c->op);
    updates u = { .c = c,
                  .kind = kind,
                  .step = ls__update_step(c, kind, c->attrs, 0),
                  .variables = c->n_cells / kind->cells,
                  .at = c->scratch };
    ls_status st = ls__update_unshare(c);
    for (int i = 0; i < c->n_cells && !st; i++) {
        u.at[i] = ls__cell_write(c->cells[i]);
        st = u.at[i] ? LS_OK : LS_NO_MEMORY;
    }
    if (st)
        return st;
    ls__team *team = ls__update_team(u.variables, c->in + kind->numbers, &u.ranks);
    ls__team_share(team, u.ranks, take_slices, &u);
    return LS_OK;
}

#define ROW(id, list)                                                                              \
    {                                                                                              \
        .size = sizeof(ls_op), .name = id "_updates", .inputs = LS_ANY_NUMBER,                     \
        .flags = LS_OP_WRITES | LS__OP_FUSED | LS_OP_TOTAL, .attr_size = sizeof(ls__update_attrs), \
        .attrs = list, .shape = shape, .scratch = scratch, .kernel = kernel                        \
    }

const ls_op ls__update_many_rows[LS__UPDATES] = { ROW("sgd", ls__sgd_attr_list),
                                                  ROW("momentum", ls__momentum_attr_list),
                                                  ROW("adam", ls__adam_attr_list) };

const ls_op *const ls__rows_fused_update[] = { &ls__update_many_rows[0], &ls__update_many_rows[1],
                                               &ls__update_many_rows[2], NULL };
