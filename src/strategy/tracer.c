/*
 * The tracer. Invariants: inputs of a replica's graph are its arguments' tensors in order,
 * then what meetings gave it, in the order of `gained`; every graph of a replica has one meet
 * node per meeting; a tensor that is no symbol crosses as itself.
 */
#include "strategy/tracer.h"

#include <stdlib.h>

#include "ops/meet.h"
#include "strategy/defect.h"
#include "strategy/step.h"
#include "tensor/tensor.h"
#include "tensor/value.h"
#include "trace/record.h"

/* A meeting while it is recorded. */
typedef struct meeting {
    ls__recorder *recorder;
    ls__sources outputs; /* per output of its graph: .index is its wire */
} meeting;

struct ls__tracer {
    ls_strategy *s;
    ls_value *arguments;      /* the real ones, in the runner's frame */
    ls__recorder **recorders; /* V */
    uint64_t *ids; /* per leaf of the arguments: what a plain one is known as; then as many
                               * for rows of sparse ones */
    int n_leaves;
    meeting *meetings;
    ls__sink *around; /* while a merge function is recorded: the sink of replica 0 */
    ls__traced_step *step;
};

/* ---- making and ending ------------------------------------------------------------------------- */

ls__tracer *ls__tracer_new(ls_strategy *s, const char *name, ls_value *arguments)
{
    ls__tracer *t = calloc(1, sizeof *t);
    if (!t) {
        ls__fail_memory("a traced step", sizeof *t);
        return NULL;
    }
    t->s = s;
    t->arguments = arguments;
    t->n_leaves = ls_leaf_count(arguments);
    t->recorders = calloc((size_t)s->replicas, sizeof *t->recorders);
    t->ids = calloc(2 * (size_t)t->n_leaves + 1, sizeof *t->ids);
    t->step = calloc(1, sizeof *t->step);
    if (t->step)
        t->step->programs = calloc((size_t)s->replicas, sizeof *t->step->programs);
    if (!t->recorders || !t->ids || !t->step || !t->step->programs) {
        ls__fail_memory("a traced step", (size_t)s->replicas * sizeof *t->step->programs);
        ls__tracer_end(t, false);
        return NULL;
    }
    t->step->replicas = s->replicas;
    for (int i = 0; i < 2 * t->n_leaves; i++)
        t->ids[i] = ls__new_id();
    for (int r = 0; r < s->replicas; r++) {
        t->recorders[r] = ls__recorder_new(name);
        if (!t->recorders[r]) {
            ls__tracer_end(t, false);
            return NULL;
        }
    }
    return t;
}

ls__traced_step *ls__tracer_end(ls__tracer *t, bool wanted)
{
    ls__traced_step *step = t->step;
    for (int r = 0; t->recorders && r < t->s->replicas; r++) {
        ls__graph *g = ls__recorder_end(t->recorders[r], wanted);
        if (step && step->programs)
            step->programs[r].recorded = g;
    }
    for (int k = 0; step && k < step->n_meetings; k++) {
        step->meetings[k].recorded = ls__recorder_end(t->meetings[k].recorder, wanted);
        free(t->meetings[k].outputs.at);
    }
    free(t->meetings);
    free(t->recorders);
    free(t->ids);
    free(t);
    if (wanted)
        return step;
    ls__step_free(step);
    return NULL;
}

ls__sink *ls__tracer_sink(ls__tracer *t, int replica)
{
    return ls__recorder_sink(t->recorders[replica]);
}

int ls__tracer_at(const ls__tracer *t, int replica)
{
    return ls__recorder_at(t->recorders[replica]);
}

/* ---- one nest to another ------------------------------------------------------------------------ */

typedef ls_tensor *(*tensor_fn)(const ls_tensor *t, void *user);

typedef struct mapping {
    tensor_fn fn;
    void *user;
} mapping;

/* A sparse tensor crosses as two: its values, then its rows. */
static ls_tensor *map_tensor(const ls_tensor *t, const mapping *m)
{
    if (!t->sparse_rows)
        return m->fn(t, m->user);
    ls_tensor *values = m->fn(ls_sparse_values(t), m->user);
    ls_tensor *rows = m->fn(t->sparse_rows, m->user);
    return values && rows ? ls_sparse(rows, values, t->spec.dims[0]) : NULL;
}

static ls_value *map_leaf(const ls_value *leaf, void *user)
{
    if (ls__leaf_object(leaf))
        return ls_variable_leaf(ls__leaf_object(leaf));
    ls_tensor *t = map_tensor(ls__leaf_component(leaf, 0), user);
    return t ? ls_leaf(t) : NULL;
}

/* A plain nest with fn's tensor for every tensor. */
static ls_value *map_tensors(const ls_value *v, tensor_fn fn, void *user)
{
    mapping m = { fn, user };
    return ls__value_map(v, map_leaf, &m);
}

/* ---- arguments ------------------------------------------------------------------------------------ */

typedef struct walk {
    ls__tracer *t;
    int replica;
    int leaf;
} walk;

static ls_tensor *argument(walk *w, const ls_tensor *t, bool plain, bool rows)
{
    ls__recorder *r = w->t->recorders[w->replica];
    uint64_t id = plain ? w->t->ids[2 * w->leaf + rows] : ls__new_id();
    w->t->step->programs[w->replica].n_arguments++;
    return ls__recorder_argument_as(r, id, &t->spec, ls__device_current());
}

static ls_value *argument_leaf(const ls_value *leaf, void *user)
{
    walk *w = user;
    ls_value *out = NULL;
    if (ls__leaf_object(leaf)) {
        out = ls_variable_leaf(ls__leaf_object(leaf));
    } else {
        const ls_tensor *t = ls__leaf_component(leaf, w->replica);
        bool plain = ls_spread_of(leaf) == LS_SPREAD_PLAIN;
        ls_tensor *mine;
        if (t->sparse_rows) {
            ls_tensor *values = ls_sparse_values(t);
            values = values ? argument(w, values, plain, false) : NULL;
            ls_tensor *rows = values ? argument(w, t->sparse_rows, plain, true) : NULL;
            mine = rows ? ls_sparse(rows, values, t->spec.dims[0]) : NULL;
        } else {
            mine = argument(w, t, plain, false);
        }
        out = mine ? ls_leaf(mine) : NULL;
    }
    w->leaf++;
    return out;
}

ls_value *ls__tracer_arguments(ls__tracer *t, int replica)
{
    walk w = { t, replica, 0 };
    return ls__value_map(t->arguments, argument_leaf, &w);
}

/* ---- meetings: on the way in ---------------------------------------------------------------------- */

/* What one replica brings to the meeting that is being recorded. */
typedef struct bringing {
    ls__tracer *t;
    int replica;
    int count;
    ls_tensor **brought; /* the symbols that became inputs of the meeting */
} bringing;

static ls__piece *last_piece(ls__tracer *t)
{
    return &t->step->meetings[t->step->n_meetings - 1];
}

static meeting *last_meeting(ls__tracer *t)
{
    return &t->meetings[t->step->n_meetings - 1];
}

static ls_tensor *bring(const ls_tensor *t, void *user)
{
    bringing *b = user;
    if (!t->storage->symbol)
        return ls__same_value(t);
    ls__recorder *from = b->t->recorders[b->replica], *to = last_meeting(b->t)->recorder;
    if (ls__recorder_wire(from, t) < 0)
        return NULL; /* a symbol of another replica or step */
    if (!ls__recorder_knows(to, t->id)) {
        if (ls__source_add(&last_piece(b->t)->gained, b->replica, b->count))
            return NULL;
        b->brought[b->count++] = (ls_tensor *)t;
    }
    return ls__recorder_argument_as(to, t->id, &t->spec, ls__device_current());
}

static ls_status new_meeting(ls__tracer *t, const char *name)
{
    ls__traced_step *step = t->step;
    size_t n = (size_t)step->n_meetings + 1;
    meeting *more = realloc(t->meetings, n * sizeof *more);
    if (more)
        t->meetings = more;
    ls__piece *pieces = more ? realloc(step->meetings, n * sizeof *pieces) : NULL;
    if (!pieces)
        return ls__fail_memory("a traced step", n * sizeof *pieces);
    step->meetings = pieces;
    pieces[n - 1] = (ls__piece){ .recorded = NULL };
    more[n - 1] = (meeting){ .recorder = ls__recorder_new(name) };
    if (!more[n - 1].recorder)
        return LS_NO_MEMORY;
    ls__recorder_sink(more[n - 1].recorder)->phase = LS_PHASE_REDUCE;
    step->n_meetings++;
    return LS_OK;
}

static int count_tensors(const ls_value *v)
{
    return 2 * ls_leaf_count(v); /* at most: a sparse one is two */
}

ls_value *ls__tracer_merge_begin(ls__tracer *t, ls__run *run)
{
    const char *what = run->members[0].what;
    t->around = ls__sink_get();
    int n = t->s->replicas;
    ls_value **values = ls__frame_alloc(sizeof *values * (size_t)n);
    if (!values || new_meeting(t, what))
        return NULL;
    for (int r = 0; r < n; r++) {
        ls__member *m = &run->members[r];
        bringing b = { t, r, 0, NULL };
        b.brought = ls__frame_alloc(sizeof *b.brought * (size_t)(count_tensors(m->arguments) + 1));
        /* Symbols that exist are only moved: nothing is recorded by this. */
        ls__sink_set(NULL);
        values[r] = b.brought ? map_tensors(m->arguments, bring, &b) : NULL;
        ls__sink_set(t->around);
        if (!values[r])
            return NULL;
        m->brought = b.brought;
        m->n_brought = b.count;
    }
    ls_value *grouped = ls__regroup(t->s, values, "the arguments");
    ls__sink_set(ls__recorder_sink(last_meeting(t)->recorder));
    return grouped;
}

/* ---- meetings: on the way out ---------------------------------------------------------------------- */

/* The output of the meeting's graph that a symbol of its is; made one when it is none yet. */
static int output_of(meeting *m, const ls_tensor *t)
{
    int wire = ls__recorder_wire(m->recorder, t);
    if (wire < 0)
        return -1;
    for (int i = 0; i < m->outputs.count; i++)
        if (m->outputs.at[i].index == wire)
            return i;
    return ls__source_add(&m->outputs, 0, wire) ? -1 : m->outputs.count - 1;
}

static ls_tensor *check_output(const ls_tensor *t, void *user)
{
    meeting *m = user;
    if (t->storage->symbol && output_of(m, t) < 0)
        return NULL;
    return ls__same_value(t);
}

/* The variables that the meeting writes and the replica has read: it will read them anew. */
static int written_cells(const ls__graph *meeting_graph, const ls__graph *g, ls__cell **out)
{
    int n = 0;
    for (int i = 0; i < g->n_cells; i++) {
        bool written = false;
        for (int k = 0; k < meeting_graph->n_nodes && !written; k++) {
            const ls__node *node = meeting_graph->nodes[k];
            for (int c = 0; node->op->flags & LS_OP_WRITES && c < node->n_cells; c++)
                written |= meeting_graph->cells[node->cells[c]].cell == g->cells[i].cell;
        }
        if (written)
            out[n++] = g->cells[i].cell;
    }
    return n;
}

/* The meeting in the graph of one replica. */
static ls_status note_meeting(ls__tracer *t, ls__member *m, ls__recorder *r)
{
    const ls__graph *g = ls__recorder_graph(r);
    ls__cell **cells = ls__frame_alloc(sizeof *cells * (size_t)(g->n_cells + 1));
    ls_tensor *nothing = m->n_brought ? NULL : ls_scalar(LS_F32, 0);
    if (!cells || (!m->n_brought && !nothing))
        return LS_NO_MEMORY;
    int n = written_cells(ls__recorder_graph(last_meeting(t)->recorder), g, cells);
    return ls__recorder_meet(r, ls__meet_row(n > 0), m->n_brought ? m->n_brought : 1,
                             m->n_brought ? m->brought : &nothing, n, cells);
}

static ls_status give_parts(ls__tracer *t, ls__run *run, ls_value *result)
{
    for (int r = 0; r < t->s->replicas; r++) {
        ls_value *mine = ls_select(result, LS__DEFECT(LS__FIRST_FOR_ALL) ? 0 : r);
        mine = mine ? map_tensors(mine, check_output, last_meeting(t)) : NULL;
        run->members[r].given = mine ? ls_value_keep(mine) : NULL;
        if (!run->members[r].given)
            return ls_error_pending();
    }
    return LS_OK;
}

ls_status ls__tracer_merge_end(ls__tracer *t, ls__run *run, ls_value *result)
{
    ls__sink_set(NULL);
    ls_status st = result ? give_parts(t, run, result) : ls_error_pending();
    for (int r = 0; r < t->s->replicas && !st; r++)
        st = note_meeting(t, &run->members[r], t->recorders[r]);
    ls__sink_set(t->around);
    return st;
}

typedef struct gaining {
    ls__tracer *t;
    int replica;
} gaining;

static ls_tensor *gain(const ls_tensor *t, void *user)
{
    gaining *g = user;
    ls__tracer *tr = g->t;
    if (!t->storage->symbol)
        return ls__same_value(t);
    ls__recorder *r = tr->recorders[g->replica];
    if (!ls__recorder_knows(r, t->id) &&
        ls__source_add(&tr->step->programs[g->replica].gained, tr->step->n_meetings - 1,
                       output_of(last_meeting(tr), t)))
        return NULL;
    return ls__recorder_argument_as(r, t->id, &t->spec, ls__device_current());
}

ls_value *ls__tracer_given(ls__tracer *t, int replica, ls_value *given)
{
    gaining g = { t, replica };
    ls__sink *sink = ls__sink_set(NULL);
    ls_value *mine = given ? map_tensors(given, gain, &g) : NULL;
    ls__sink_set(sink);
    return mine;
}

/* ---- results ----------------------------------------------------------------------------------------- */

static ls_status add_output(ls__recorder *r, const ls_tensor *t)
{
    int wire = ls__recorder_wire(r, t);
    return wire < 0 ? ls_error_pending() : ls__graph_output(ls__recorder_graph(r), wire);
}

static ls_status add_tensor(ls__recorder *r, const ls_tensor *t)
{
    if (t->spec.dtype == LS_BYTES)
        return ls__fail(LS_SHAPE, "a traced function returns %s; strings stay outside",
                        ls_describe(t));
    if (!t->sparse_rows)
        return add_output(r, t);
    ls_tensor *values = ls_sparse_values(t);
    ls_status st = values ? add_output(r, values) : ls_error_pending();
    return st ? st : add_output(r, t->sparse_rows);
}

/* Outputs of meetings are all known now: nobody gains anything any more. */
static ls_status close_meetings(ls__tracer *t)
{
    ls_status st = LS_OK;
    for (int k = 0; k < t->step->n_meetings; k++)
        for (int i = 0; i < t->meetings[k].outputs.count && !st; i++)
            st = ls__graph_output(ls__recorder_graph(t->meetings[k].recorder),
                                  t->meetings[k].outputs.at[i].index);
    return st;
}

ls_value *ls__tracer_results(ls__tracer *t, ls__run *run)
{
    int n = t->s->replicas;
    ls_value **results = ls__frame_alloc(sizeof *results * (size_t)n);
    for (int r = 0; results && r < n; r++)
        results[r] = run->members[r].result;
    ls_value *grouped = results ? ls__regroup(t->s, results, "the results") : NULL;
    int leaves = ls_leaf_count(grouped);
    const ls_value **at = grouped ? ls__frame_alloc(sizeof *at * (size_t)(leaves + 1)) : NULL;
    if (!at || close_meetings(t))
        return NULL;
    ls__leaves(grouped, at);
    for (int i = 0; i < leaves; i++)
        for (int k = 0; k < ls_components(at[i]); k++) {
            const ls_tensor *x = ls__leaf_component(at[i], k);
            if (x && add_tensor(t->recorders[k], x))
                return NULL;
        }
    t->step->results = ls_value_keep(grouped);
    return t->step->results ? grouped : NULL;
}
