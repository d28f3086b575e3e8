/*
 * X_reduced: the gradients of V replicas are added up and applied in one pass over memory
 * (DESIGN rule E): each block of the sum is taken by the update while it is in the first cache, and the
 * sum itself is never stored. Invariants: the bits of sum_replicas followed by X_update; all
 * that can fail is done before the first element changes; what takes the blocks touches its own
 * elements only, since several threads call it at once.
 */
#include "ops/update.h"

#define GROUPS                                                                                     \
    LS_ATTR_INT(ls__reduced_attrs, groups.replicas), LS_ATTR_INT(ls__reduced_attrs, groups.first), \
        LS_ATTR_INT(ls__reduced_attrs, groups.folded)
#define COMMON                                                                                     \
    LS_ATTR_FLOAT(ls__reduced_attrs, update.weight_decay),                                         \
        LS_ATTR_FLOAT(ls__reduced_attrs, update.clip_value)

const ls_attr ls__sgd_reduced_attrs[] = { GROUPS, COMMON, LS_ATTR_END };
const ls_attr ls__momentum_reduced_attrs[] = { GROUPS,
                                               LS_ATTR_FLOAT(ls__reduced_attrs, update.momentum),
                                               LS_ATTR_INT(ls__reduced_attrs, update.nesterov),
                                               COMMON, LS_ATTR_END };
const ls_attr ls__adam_reduced_attrs[] = { GROUPS,
                                           LS_ATTR_FLOAT(ls__reduced_attrs, update.beta1),
                                           LS_ATTR_FLOAT(ls__reduced_attrs, update.beta2),
                                           LS_ATTR_FLOAT(ls__reduced_attrs, update.epsilon),
                                           COMMON,
                                           LS_ATTR_END };

static ls_status shape(ls_call *c)
{
    const ls__update_kind *kind = ls__update_kind_of(c->op);
    const ls__reduced_attrs *a = c->attrs;
    int v = (int)a->groups.replicas, variables = c->n_cells / kind->cells, first = kind->numbers;
    if (a->groups.first != first || a->groups.replicas < 1 ||
        a->groups.replicas > LS__MOST_REPLICAS)
        return ls_call_fail(
            c, LS_INVALID, "%lld replicas from input %lld on, wants 1 to %d from %d on",
            (long long)a->groups.replicas, (long long)a->groups.first, LS__MOST_REPLICAS, first);
    if (variables < 1 || c->n_inputs - first != (int64_t)variables * v)
        return ls_call_fail(c, LS_INVALID, "%d inputs for %d variables of %d replicas", c->n_inputs,
                            variables, v);
    ls_status st = ls__update_check_count(c, kind->cells * variables);
    if (!st)
        st = ls__update_check_numbers(c, kind, 0);
    for (int i = 0; i < variables && !st; i++) {
        st = ls__replicas_alike(c->op->name, v, c->in + first + i * v, -1);
        if (!st)
            st = ls__update_check(c, kind, c->in[first + i * v], c->cells + kind->cells * i);
    }
    return st;
}

/* ---- the kernel -------------------------------------------------------------------------- */

/* What is taken of a scratch: a job of one dtype, with room for all variables. */
typedef struct reduced {
    const ls__update_kind *kind;
    ls__update step;
    ls__update_fn *update;
    size_t width;       /* bytes of an element */
    int64_t *counts;    /* of each array of the job */
    const void **parts; /* arrays x replicas */
    char **at;          /* arrays x cells: where they begin */
    void *room;         /* for ls__replica_sums_run */
} reduced;

static size_t scratch(ls_call *c)
{
    const ls__update_kind *kind = ls__update_kind_of(c->op);
    size_t variables = (size_t)(c->n_cells / kind->cells);
    return variables * sizeof(int64_t) + (size_t)c->n_inputs * sizeof(void *) +
           (size_t)c->n_cells * sizeof(void *) +
           ls__replica_sums_room((int)variables,
                                 (int)((const ls__reduced_attrs *)c->attrs)->groups.replicas);
}

static void take(void *user, int array, int64_t begin, int64_t count, const void *sum)
{
    const reduced *job = user;
    void *at[1 + LS__MOST_SLOTS];
    for (int k = 0; k < job->kind->cells; k++)
        at[k] = job->at[array * job->kind->cells + k] + (size_t)begin * job->width;
    job->update(at, sum, &job->step, count);
}

/* All variables of `dtype`. */
static ls_status run(ls_call *c, reduced *job, ls_dtype dtype)
{
    const ls__reduced_attrs *a = c->attrs;
    const int v = (int)a->groups.replicas, cells = job->kind->cells;
    int arrays = 0;
    for (int i = 0; i < c->n_cells / cells; i++) {
        const void *const *parts = c->in_data + job->kind->numbers + i * v;
        const ls__spec *spec = c->in[job->kind->numbers + i * v];
        if (spec->dtype != dtype)
            continue;
        job->counts[arrays] = ls__spec_count(spec);
        for (int r = 0; r < v; r++)
            job->parts[arrays * v + r] = parts[r];
        for (int k = 0; k < cells; k++) {
            job->at[arrays * cells + k] = ls__cell_write(c->cells[i * cells + k]);
            if (!job->at[arrays * cells + k])
                return LS_NO_MEMORY;
        }
        arrays++;
    }
    job->width = ls_dtype_size(dtype);
    job->update = LS__PICK(ls__update_table)->update[job->kind->id][dtype == LS_F64];
    const ls__replica_sums sums = { .replicas = v,
                                    .folded = a->groups.folded != 0,
                                    .dtype = dtype,
                                    .arrays = arrays,
                                    .counts = job->counts,
                                    .parts = job->parts,
                                    .consume = take,
                                    .user = job,
                                    .room = job->room };
    return arrays ? ls__replica_sums_run(&sums) : LS_OK;
}

static ls_status kernel(ls_call *c)
{
    const ls__update_kind *kind = ls__update_kind_of(c->op);
    const ls__reduced_attrs *a = c->attrs;
    reduced job = { .kind = kind, .step = ls__update_step(c, kind, &a->update, 0) };
    job.counts = c->scratch;
    job.parts = (const void **)(job.counts + c->n_cells / kind->cells);
    job.at = (char **)(job.parts + c->n_inputs);
    job.room = job.at + c->n_cells;
    ls_status st = ls__update_unshare(c);
    if (!st)
        st = run(c, &job, LS_F32);
    return st ? st : run(c, &job, LS_F64);
}

#define ROW(id, list)                                                                              \
    {                                                                                              \
        .size = sizeof(ls_op), .name = id "_reduced", .inputs = LS_ANY_NUMBER,                     \
        .flags = LS_OP_WRITES | LS_OP_TOTAL | LS__OP_FUSED | LS__OP_REDUCES,                       \
        .attr_size = sizeof(ls__reduced_attrs), .attrs = list, .shape = shape, .scratch = scratch, \
        .kernel = kernel                                                                           \
    }

const ls_op ls__update_reduced_rows[LS__UPDATES] = { ROW("sgd", ls__sgd_reduced_attrs),
                                                     ROW("momentum", ls__momentum_reduced_attrs),
                                                     ROW("adam", ls__adam_reduced_attrs) };

const ls_op *const ls__rows_update_reduced[] = { &ls__update_reduced_rows[0],
                                                 &ls__update_reduced_rows[1],
                                                 &ls__update_reduced_rows[2], NULL };

ls_status ls__update_reduced(const ls__update_numbers *u, int replicas, int variables,
                             ls__cell *const *cells, ls_tensor *const *gradients)
{
    const ls__reduced_attrs attrs = { .groups = { .replicas = replicas, .first = u->kind->numbers },
                                      .update = *u->attrs };
    int n = replicas * variables;
    ls_tensor **in = ls__frame_alloc(sizeof *in * (size_t)(u->kind->numbers + n));
    if (!in)
        return LS_NO_MEMORY;
    in[0] = u->rate;
    if (u->kind->numbers > 1)
        in[1] = u->iteration;
    for (int i = 0; i < n; i++)
        in[u->kind->numbers + i] = gradients[i];
    return ls__call(u->kind->reduced, &attrs, u->kind->numbers + n, in, u->kind->cells * variables,
                    cells, NULL);
}
