/*
 * sum_replicas: the sum or mean of one tensor per replica, of one or more at once. Invariant: all
 * that is added over replicas is added by the executor of schedules (collective/local.h), so
 * bits depend on the values and their number alone.
 */
#include "ops/replicas.h"

#include <lockstep/ops.h>
#include <stdio.h>

#include "collective/team.h"
#include "dispatch/call.h"

/* ---- are they alike? --------------------------------------------------------------- */

static bool alike(const ls__spec *a, const ls__spec *b, int but_axis)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (i != but_axis && a->dims[i] != b->dims[i])
            return false;
    return true;
}

/* "replica 0 has f32[4], replicas 1 to 3 f32[2]", as far as there is room. */
static void tell_specs(int count, const ls__spec *const *specs, char *out, size_t room)
{
    size_t at = 0;
    for (int i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && ls__spec_equal(specs[i], specs[end]);)
            end++;
        char one[160], last[24] = "";
        if (end > i + 1)
            snprintf(last, sizeof last, " to %d", end - 1);
        int length = snprintf(one, sizeof one, "%sreplica%s %d%s%s %s", i ? ", " : "",
                              last[0] ? "s" : "", i, last,
                              i         ? ""
                              : last[0] ? " have"
                                        : " has",
                              ls__spec_text(specs[i]));
        if (at + (size_t)length + 6 > room) {
            snprintf(out + at, room - at, ", ...");
            return;
        }
        at += (size_t)snprintf(out + at, room - at, "%s", one);
    }
}

ls_status ls__replicas_alike(const char *who, int count, const ls__spec *const *specs, int but_axis)
{
    for (int i = 1; i < count; i++) {
        if (alike(specs[0], specs[i], but_axis))
            continue;
        char text[360];
        tell_specs(count, specs, text, sizeof text);
        ls__fail(LS_SHAPE, "%s: %s", who, text);
        if (but_axis >= 0)
            return ls__hint(LS_SHAPE, "replicas may differ in their size along axis %d only",
                            but_axis);
        return ls__hint(LS_SHAPE, "give every replica the same shape and dtype; ls_reduce with an "
                                  "axis takes replicas that differ along it");
    }
    return LS_OK;
}

/* ---- the sum -------------------------------------------------------------------------- */

/* The schedule to read: the team's, when it is of as many replicas. */
static const ls__local *schedule_for(const ls__replica_sums *job, ls__team **team)
{
    ls__team *mine = ls__team_get();
    if (mine && mine->replicas == job->replicas) {
        *team = mine;
        return job->folded ? mine->folded : mine->once;
    }
    *team = NULL;
    if (!job->folded)
        return ls__local_alone(job->replicas);
    ls__fail(LS_STATE, "replicas were folded, and there is no team that knows how");
    return NULL;
}

/* A reduction on its way: pieces of arrays, pack by pack. */
typedef struct reduction {
    const ls__replica_sums *job;
    ls__team *team;
    const ls__local *l;
    ls__packs packs;
    ls__array *arrays; /* one a piece */
    int begin;         /* the pack's first piece */
} reduction;

/* Whoever consumes knows arrays, not pieces of them. */
static void consume_piece(void *user, int piece, int64_t begin, int64_t count, const void *sum)
{
    const reduction *w = user;
    ls__pack_piece p = ls__pack_get(&w->packs, w->begin + piece);
    w->job->consume(w->job->user, p.tensor, p.first + begin, count, sum);
}

/* What list_pieces wants for so many pieces and operands. */
static size_t room_for(size_t pieces, size_t operands)
{
    return pieces * (sizeof(ls__array) + sizeof(void *) + operands * sizeof(void *));
}

size_t ls__replica_sums_room(int arrays, int replicas)
{
    return room_for((size_t)arrays, (size_t)replicas);
}

static ls_status list_pieces(reduction *w)
{
    const ls__replica_sums *job = w->job;
    const ls__tree_node *nodes;
    size_t n = (size_t)ls__local_operands(w->l, &nodes), pieces = (size_t)w->packs.pieces;
    int64_t width = (int64_t)ls_dtype_size(job->dtype);
    /* Without packs there is a piece an array at most. */
    void *room = job->room && !w->packs.ends ? job->room : ls__frame_alloc(room_for(pieces, n) + 1);
    if (!room)
        return LS_NO_MEMORY;
    w->arrays = room;
    void **sums = (void **)(w->arrays + pieces);
    const void **operands = (const void **)(sums + pieces);
    for (int i = 0; i < w->packs.pieces; i++, operands += n) {
        ls__pack_piece p = ls__pack_get(&w->packs, i);
        const void *const *parts = job->parts + (size_t)p.tensor * (size_t)job->replicas;
        for (size_t k = 0; k < n; k++)
            operands[k] = (const char *)parts[ls__tree_first(nodes[k])] + p.first * width;
        if (job->sums)
            sums[i] = (char *)job->sums[p.tensor] + p.first * width;
        w->arrays[i] = (ls__array){ .count = p.count,
                                    .operands = operands,
                                    .results = job->sums ? &sums[i] : NULL };
    }
    return LS_OK;
}

static ls__local_job job_of_pack(reduction *w, int pack)
{
    w->begin = ls__pack_begin(&w->packs, pack);
    return (ls__local_job){ .dtype = w->job->dtype,
                            .divisor = w->job->mean ? w->job->replicas : 0,
                            .n_arrays = ls__pack_end(&w->packs, pack) - w->begin,
                            .arrays = w->arrays + w->begin,
                            .consume = w->job->consume ? consume_piece : NULL,
                            .user = w };
}

/* All that can fail comes before the first pack. */
static ls_status reduce_packs(reduction *w)
{
    size_t most = 0;
    for (int k = 0; k < w->packs.packs; k++) {
        ls__local_job job = job_of_pack(w, k);
        size_t scratch = ls__local_scratch(w->l, &job);
        most = scratch > most ? scratch : most;
    }
    ls__storage *scratch = most ? ls__storage_new("partial sums", most) : NULL;
    if (most && !scratch)
        return LS_NO_MEMORY;
    for (int k = 0; k < w->packs.packs; k++) {
        ls__local_job job = job_of_pack(w, k);
        job.scratch = scratch ? scratch->data : NULL;
        ls__team_reduce(w->team, w->l, &job);
    }
    ls__storage_unref(scratch);
    return LS_OK;
}

bool ls__sums_are_sure(const ls__team *team)
{
    return !ls__packing_asked(&team->packing) && !ls__local_wants_scratch(team->once) &&
           !ls__local_wants_scratch(team->folded);
}

static ls_status plan_packs(reduction *w)
{
    const ls__replica_sums *job = w->job;
    if (!w->team || !ls__packing_asked(&w->team->packing)) {
        w->packs = (ls__packs){ .packs = 1, .pieces = job->arrays, .counts = job->counts };
        return LS_OK;
    }
    ls_dtype *dtypes = ls__frame_alloc(sizeof *dtypes * (size_t)(job->arrays + 1));
    for (int i = 0; dtypes && i < job->arrays; i++)
        dtypes[i] = job->dtype;
    return dtypes ? ls__packs_plan(&w->team->packing, job->arrays, job->counts, dtypes, &w->packs)
                  : LS_NO_MEMORY;
}

static ls_status reduce(reduction *w)
{
    ls_status st = plan_packs(w);
    if (st)
        return st;
    st = list_pieces(w);
    if (!st)
        st = reduce_packs(w);
    ls__packs_free(&w->packs);
    return st;
}

ls_status ls__replica_sums_run(const ls__replica_sums *job)
{
    reduction w = { .job = job };
    w.l = schedule_for(job, &w.team);
    if (!w.l)
        return ls_error_pending();
    if (job->room && !(w.team && ls__packing_asked(&w.team->packing)))
        return reduce(&w);
    ls_status st = LS_NO_MEMORY;
    LS_FRAME
        st = reduce(&w);
    return st;
}

/* ---- the row ------------------------------------------------------------------------- */

typedef struct replicas_attrs {
    ls__reduce_attrs groups;
    int64_t op; /* LS_SUM or LS_MEAN */
} replicas_attrs;

static const ls_attr replicas_attr_list[] = { LS_ATTR_INT(replicas_attrs, groups.replicas),
                                              LS_ATTR_INT(replicas_attrs, groups.first),
                                              LS_ATTR_INT(replicas_attrs, groups.folded),
                                              LS_ATTR_INT(replicas_attrs, op), LS_ATTR_END };

/* A call that does not say how many has one array. */
static int replicas_of(const ls_call *c)
{
    const replicas_attrs *a = c->attrs;
    return a->groups.replicas == 0 ? c->n_inputs : (int)a->groups.replicas;
}

static bool is_whole_mean(const ls_call *c)
{
    return ((const replicas_attrs *)c->attrs)->op == LS_MEAN &&
           ls_dtype_is_integer(c->in[0]->dtype);
}

static ls_status sum_replicas_shape(ls_call *c)
{
    const replicas_attrs *a = c->attrs;
    int v = replicas_of(c);
    if (a->groups.first != 0 || v < 1 || v > LS__MOST_REPLICAS || c->n_inputs < v ||
        c->n_inputs % v != 0)
        return ls_call_fail(c, LS_INVALID, "%d inputs for %d replicas", c->n_inputs, v);
    if (a->op != LS_SUM && a->op != LS_MEAN)
        return ls_call_fail(c, LS_INVALID, "op %lld is neither SUM (%d) nor MEAN (%d)",
                            (long long)a->op, LS_SUM, LS_MEAN);
    ls_status st = ls__want_dtype(c, 0, LS__NUMBERS);
    for (int i = 0; i < c->n_inputs / v && !st; i++) {
        st = ls__want_same_dtype(c, 0, i * v);
        if (!st)
            st = ls__replicas_alike(c->op->name, v, c->in + i * v, -1);
        if (!st)
            st = ls__output_as(c, i, is_whole_mean(c) ? LS_F64 : c->in[0]->dtype, i * v);
    }
    return st;
}

static int sum_replicas_outputs(ls_call *c)
{
    int v = replicas_of(c);
    return v < 1 || c->n_inputs < v ? 1 : c->n_inputs / v;
}

/* The mean of integers is f64: made of their sum, block by block. */
typedef struct whole_mean {
    ls_dtype dtype;
    int replicas;
    void *const *out;
} whole_mean;

static void divide_whole(void *user, int array, int64_t begin, int64_t count, const void *sum)
{
    const whole_mean *m = user;
    double *y = (double *)m->out[array] + begin;
    for (int64_t i = 0; i < count; i++) {
        double x = m->dtype == LS_I32   ? (double)((const int32_t *)sum)[i]
                   : m->dtype == LS_I64 ? (double)((const int64_t *)sum)[i]
                                        : (double)((const uint8_t *)sum)[i];
        y[i] = x / m->replicas;
    }
}

static size_t sum_replicas_scratch(ls_call *c)
{
    int v = replicas_of(c), n = c->n_inputs / v;
    return ls__replica_sums_room(n, v) + (size_t)n * sizeof(int64_t);
}

static ls_status sum_replicas_kernel(ls_call *c)
{
    const replicas_attrs *a = c->attrs;
    int v = replicas_of(c), n = c->n_inputs / v;
    int64_t *counts = c->scratch;
    for (int i = 0; i < n; i++)
        counts[i] = ls__spec_count(c->in[i * v]);
    bool whole = is_whole_mean(c);
    whole_mean mean = { c->in[0]->dtype, v, c->out_data };
    ls__replica_sums job = { .replicas = v,
                             .folded = a->groups.folded,
                             .dtype = c->in[0]->dtype,
                             .mean = a->op == LS_MEAN && !whole,
                             .arrays = n,
                             .counts = counts,
                             .parts = c->in_data,
                             .sums = whole ? NULL : c->out_data,
                             .consume = whole ? divide_whole : NULL,
                             .user = &mean,
                             .room = counts + n };
    return ls__replica_sums_run(&job);
}

static ls_status sum_replicas_gradient(ls_grad *g)
{
    const replicas_attrs *a = ls_grad_attrs(g);
    int v = a->groups.replicas == 0 ? ls_grad_inputs(g) : (int)a->groups.replicas;
    ls_status st = LS_OK;
    for (int i = 0; i < ls_grad_inputs(g) && !st; i++) {
        if (!ls_grad_wanted(g, i))
            continue;
        ls_tensor *dx = ls_grad_output(g, i / v);
        if (a->op == LS_MEAN)
            dx = ls_div(dx, ls__scalar_like(dx, v));
        st = ls_grad_give(g, i, dx);
    }
    return st;
}

static const ls_op sum_replicas = {
    .size = sizeof(ls_op),
    .name = "sum_replicas",
    .inputs = LS_ANY_NUMBER,
    .outputs = LS_ANY_NUMBER,
    .count_outputs = sum_replicas_outputs,
    .flags = LS_OP_BF16_AS_F32 | LS_OP_TOTAL | LS__OP_REDUCES,
    .attr_size = sizeof(replicas_attrs),
    .attrs = replicas_attr_list,
    .shape = sum_replicas_shape,
    .scratch = sum_replicas_scratch,
    .kernel = sum_replicas_kernel,
    .gradient = sum_replicas_gradient,
};

ls_status ls__sum_replicas_all(ls_reduce_op op, int replicas, int tensors, ls_tensor *const *xs,
                               ls_tensor **out)
{
    const replicas_attrs attrs = { .groups = { .replicas = replicas }, .op = op };
    ls__results results;
    ls_status st = ls__call_all(&sum_replicas, &attrs, replicas * tensors, xs, 0, NULL, &results);
    for (int i = 0; i < tensors && !st; i++)
        out[i] = results.at[i];
    return st;
}

ls_tensor *ls__sum_replicas(ls_reduce_op op, int count, ls_tensor *const *xs)
{
    ls_tensor *y = NULL;
    return ls__sum_replicas_all(op, count, 1, xs, &y) ? NULL : y;
}

bool ls__is_sum_of_replicas(const void *attrs, int *replicas)
{
    const replicas_attrs *a = attrs;
    *replicas = (int)a->groups.replicas;
    return a->op == LS_SUM && !a->groups.folded;
}

const ls_op *const ls__rows_replicas[] = { &sum_replicas, NULL };
