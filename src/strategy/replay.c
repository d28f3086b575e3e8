/*
 * The replay of a step. Its pieces are rounds: in each, the devices run the piece of
 * their replicas side by side; between rounds the runner, alone, holds the meeting or ends the
 * step. Invariants: pieces before the last thing that can fail run under a journal, what
 * comes after it without one (rule E: a fused update saves nothing); nothing is allocated but
 * results and what the journal saves, both from recycled memory.
 */
#include "strategy/replay_state.h"

#include "collective/placement.h"
#include "dispatch/context.h"
#include "kernels/threads.h"
#include "ops/replicas.h"
#include "strategy/defect.h"
#include "strategy/host.h"
#include "strategy/phases.h"
#include "strategy/team.h"
#include "tensor/journal.h"
#include "tensor/tensor.h"
#include "tensor/value.h"
#include "trace/outputs.h"

/* ---- a meeting --------------------------------------------------------------------------------- */

static ls_status run_meeting(ls__replay *p, ls__piece *m, bool final)
{
    int none;
    ls__team *team = ls__team_use(p->s->replicas > 1 ? &p->s->team : NULL);
    ls__journal *before = ls__journal_use(&p->journal);
    int stop = final ? m->plan->tail : m->plan->n_instructions;
    ls_status st = ls__instance_run_to(m->instance, stop, &none);
    if (!st && final) {
        if (ls__sums_are_sure(&p->s->team))
            ls__journal_use(NULL);
        st = ls__instance_run(m->instance, &none);
    }
    ls__journal_use(before);
    ls__team_use(team);
    return st;
}

/* A node of the tree is where all its replicas' values are: the calls that add up look there. */
static void find_folded(ls__replay *p, ls__piece *m, int device)
{
    const ls__fold_stack *stack = ls__replay_folds(p, device);
    for (int i = 0; stack && i < stack->n_nodes; i++) {
        ls__tree_node node = stack->nodes[i];
        for (int r = ls__tree_first(node); r < ls__tree_end(node, p->s->replicas); r++)
            for (int a = 0; a < m->folded.count; a++) {
                const ls__folded_array *array = &m->folded.arrays[a];
                const void **in =
                    (const void **)ls__instance_call(m->instance, array->instruction)->in_data;
                in[array->input + r] = (char *)stack->at[i]->data + array->offset;
            }
    }
}

static void begin_meeting(ls__replay *p, ls__piece *m)
{
    ls__instance_begin(m->instance, m->inputs, &m->first);
    for (int d = 0; d < p->devices; d++)
        find_folded(p, m, d);
}

static ls_status hold_meeting(ls__replay *p, int k)
{
    ls__piece *m = &p->step->meetings[k];
    for (int i = 0; i < m->gained.count; i++) {
        ls__source from = m->gained.at[i];
        ls__instance *instance = p->step->programs[from.from].instance;
        m->inputs[i] =
            ls__instance_call(instance, p->parts[from.from].meeting)->in_data[from.index];
    }
    begin_meeting(p, m);
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    bool final = k == p->step->n_meetings - 1 && !p->step->late_can_fail;
    ls_status st = run_meeting(p, m, final);
    if (!st && LS__DEFECT(LS__MERGED_TWICE)) {
        begin_meeting(p, m);
        st = run_meeting(p, m, final);
    }
    return ls__error_scope_close(&scope, st, "%s", m->recorded->name);
}

/* ---- the last meeting ------------------------------------------------------------------------ */

static void join_all(void *early, int device)
{
    for (int row = 0; row < ((ls__early *)early)->n_rows; row++)
        ls__early_join(early, row, device);
}

/* The round before it and the meeting, with the updates that need not wait for it: before, or, if
 * its sums may fail, after. */
static ls_status run_last(ls__replay *p, int k)
{
    ls__early *early = &p->step->early;
    ls_status st = ls__early_begin(early);
    if (st)
        return st;
    const bool late = early->late || !ls__sums_are_sure(&p->s->team);
    if (!late) {
        ls__early_open(early, p->step, p->devices);
        early->steps++;
        p->early = early;
    }
    st = ls__replay_round(p, true, false);
    p->early = NULL;
    if (!st)
        st = hold_meeting(p, k);
    if (!st && late) {
        ls__early_open(early, p->step, p->devices);
        ls__phases_enter(p->s->phases, 0, p->s->replicas, LS_PHASE_APPLY);
        ls__team_share(&p->s->team, p->devices, join_all, early);
    }
    if (!st)
        ls__early_end(early);
    return st;
}

/* ---- the whole ----------------------------------------------------------------------------- */

/* Whether any replica has something to do after the last meeting: else nobody is woken for it. */
static bool has_more(const ls__replay *p)
{
    for (int r = 0; r < p->step->replicas; r++)
        if (ls__instance_has_work(p->step->programs[r].instance))
            return true;
    return false;
}

static ls_status run_pieces(ls__replay *p)
{
    const ls__traced_step *step = p->step;
    for (int k = 0; k < step->n_meetings; k++) {
        p->piece = k;
        ls_status st;
        if (k == step->n_meetings - 1 && step->early.n_rows > 0) {
            st = run_last(p, k);
        } else {
            st = ls__replay_round(p, true, false);
            if (!st)
                st = hold_meeting(p, k);
        }
        if (st)
            return st;
    }
    p->piece = step->n_meetings;
    if (!has_more(p) && step->n_meetings > 0)
        return LS_OK;
    /* Writes wait until no replica can fail any more. */
    if (step->late_can_fail) {
        ls_status st = ls__replay_round(p, true, step->writes_late);
        if (st || !step->writes_late)
            return st;
    }
    return ls__replay_round(p, false, false);
}

/* The tensors of replica r's arguments, in the order of its graph's inputs. */
static ls_status take_inputs(ls__replay *p, int r, int n, const ls_value *const *leaves)
{
    ls__piece *program = &p->step->programs[r];
    ls__replay_part *mine = &p->parts[r];
    if (LS__DEFECT(LS__WRONG_ARGUMENT))
        r = (r + 1) % p->s->replicas;
    mine->inputs = ls__frame_alloc(sizeof *mine->inputs * (size_t)(program->n_arguments + 1));
    mine->outputs =
        ls__frame_alloc(sizeof *mine->outputs * (size_t)(program->plan->graph->n_outputs + 1));
    if (!mine->inputs || !mine->outputs)
        return LS_NO_MEMORY;
    for (int i = 0, k = 0; i < n; i++) {
        ls_tensor *t = ls__leaf_component(leaves[i], r);
        if (!t)
            continue; /* a variable */
        mine->inputs[k++] = t;
        if (t->sparse_rows)
            mine->inputs[k++] = t->sparse_rows;
    }
    return LS_OK;
}

/* Addresses are taken after snapshots were copied out: an argument may be one. What is there is
 * made later. */
static void begin(ls__replay *p, int r, const ls__draw_state *draws)
{
    ls__piece *program = &p->step->programs[r];
    for (int i = 0; i < program->n_arguments; i++)
        program->inputs[i] = p->parts[r].inputs[i]->storage->data;
    for (int i = 0; i < program->gained.count; i++) {
        ls__source from = program->gained.at[i];
        program->inputs[program->n_arguments + i] =
            ls__instance_output(p->step->meetings[from.from].instance, from.index);
    }
    int key = LS__DEFECT(LS__DRAWS_BY_DEVICE) ? ls__block_of(p->s->replicas, p->devices, r) : r;
    ls__draw draw = { .key = ls__draw_key(draws->seed, LS__DRAW_OPERATOR, key, p->s->steps) };
    if (ls__is_default(p->s)) /* the thread's own go on */
        ls__take_draws(program->plan->graph->draws, &draw);
    ls__instance_begin(program->instance, program->inputs, &draw);
}

static ls_status prepare(ls__replay *p, const ls_value *arguments)
{
    ls__traced_step *step = p->step;
    int n = ls_leaf_count(arguments);
    const ls_value **leaves = ls__frame_alloc(sizeof *leaves * (size_t)(n + 1));
    p->parts = ls__frame_alloc(sizeof *p->parts * (size_t)step->replicas);
    if (!leaves || !p->parts)
        return LS_NO_MEMORY;
    ls__leaves(arguments, leaves);
    ls_status st = p->s->replicas > 1 ? ls__team_make(p->s) : LS_OK;
    if (!st)
        st = ls__step_place(step, p->s);
    if (!st && step->timed)
        st = ls__step_time(step);
    for (int d = 0; d < p->devices && !st; d++)
        for (int k = 0; k < step->n_meetings; k++)
            ls__fold_stack_empty(&step->memory[d].folds[k]);
    for (int r = 0; r < step->replicas && !st; r++) {
        p->parts[r] = (ls__replay_part){ .meeting = -1 };
        st = take_inputs(p, r, n, leaves);
    }
    for (int d = 1; d < p->devices && !st; d++) {
        int first = ls__block_begin(p->s->replicas, p->devices, d);
        st = ls__hosts_start(p->s, first, first + 1);
    }
    return st;
}

/* Nothing the program outside holds is looked at through memory that the step writes. */
static ls_status unshare(ls__replay *p)
{
    ls_status st = LS_OK;
    for (int r = 0; r < p->step->replicas && !st; r++)
        st = ls__instance_unshare(p->step->programs[r].instance);
    for (int k = 0; k < p->step->n_meetings && !st; k++)
        st = ls__instance_unshare(p->step->meetings[k].instance);
    return st || p->step->early.n_rows == 0 ? st
                                            : ls__instance_unshare(p->step->early.piece.instance);
}

static void begin_all(ls__replay *p, const ls__draw_state *draws)
{
    for (int r = 0; r < p->step->replicas; r++)
        begin(p, r, draws);
    for (int k = 0; k < p->step->n_meetings; k++)
        p->step->meetings[k].first.key =
            ls__draw_key(draws->seed, LS__DRAW_OPERATOR, -1, p->s->steps);
}

/* ---- results ------------------------------------------------------------------------------- */

typedef struct results {
    ls__replay *p;
    int *next; /* per replica: its next output */
} results;

static ls_tensor *make_one(results *w, int r, const ls_tensor *like)
{
    const ls__piece *program = &w->p->step->programs[r];
    ls__replay_part *mine = &w->p->parts[r];
    ls__device *device = ls__device_of_replica(w->p->s, r);
    int k = w->next[r]++;
    ls_tensor *t = mine->outputs[k] =
        ls__output_make(program->plan, k, mine->inputs, program->n_arguments, device);
    if (!t || !like->sparse_rows)
        return t;
    k = w->next[r]++;
    ls_tensor *rows = mine->outputs[k] =
        ls__output_make(program->plan, k, mine->inputs, program->n_arguments, device);
    return rows ? ls_sparse(rows, t, like->spec.dims[0]) : NULL;
}

static ls_value *make_leaf(const ls_value *leaf, void *user)
{
    results *w = user;
    if (ls__leaf_object(leaf))
        return ls_variable_leaf(ls__leaf_object(leaf));
    int n = ls_components(leaf);
    ls_tensor **tensors = ls__frame_alloc(sizeof *tensors * (size_t)n);
    for (int r = 0; tensors && r < n; r++) {
        tensors[r] = make_one(w, r, ls__leaf_component(leaf, r));
        if (!tensors[r])
            return NULL;
    }
    if (!tensors)
        return NULL;
    if (LS__DEFECT(LS__SWAPPED_RESULTS) && n > 1) {
        ls_tensor *first = tensors[0];
        tensors[0] = tensors[1];
        tensors[1] = first;
    }
    return ls_spread_of(leaf) == LS_SPREAD_PLAIN
               ? ls_leaf(tensors[0])
               : ls__leaf_spread(LS_SPREAD_PER_REPLICA, n, tensors);
}

static void fill_results(ls__replay *p)
{
    for (int r = 0; r < p->step->replicas; r++) {
        const ls__piece *program = &p->step->programs[r];
        for (int k = 0; k < program->plan->graph->n_outputs; k++)
            ls__output_fill(program->plan, program->instance, k, program->n_arguments,
                            p->parts[r].outputs[k]);
    }
}

/* More changes of phase than one replica sees: stretches of its own and of meetings, where pieces
 * go on in one, and turns. */
static int64_t most_phases(const ls__traced_step *step)
{
    int64_t most = 0, met = 8 * ((int64_t)step->n_meetings + 3) + 4 * (int64_t)step->early.n_rows;
    for (int k = 0; k < step->n_meetings; k++)
        met += step->meetings[k].plan->n_stretches;
    for (int r = 0; r < step->replicas; r++)
        most =
            step->programs[r].plan->n_stretches > most ? step->programs[r].plan->n_stretches : most;
    return most + met;
}

static ls_value *replay(ls__replay *p, const ls_value *arguments)
{
    results w = { p, ls__frame_alloc(sizeof *w.next * (size_t)p->step->replicas) };
    if (!w.next || prepare(p, arguments))
        return NULL;
    for (int r = 0; r < p->step->replicas; r++)
        w.next[r] = 0;
    ls_value *out = ls__value_map(p->step->results, make_leaf, &w);
    if (!out || unshare(p))
        return NULL;
    ls__draw_state draws;
    ls__draws_get(&draws);
    begin_all(p, &draws);
    ls__journal_open(&p->journal, ls__journal_used());
    const int phase = ls__phases_now(p->s->phases);
    if (p->s->phases && p->s->phases->recording)
        ls__phases_room(p->s->phases, most_phases(p->step));
    ls_status st = run_pieces(p);
    ls__phases_enter(p->s->phases, 0, p->s->replicas, phase);
    if (st)
        ls__draws_set(&draws); /* a step that failed never drew */
    if (st && !LS__DEFECT(LS__LOST_UNDO)) {
        ls__journal_undo(&p->journal);
        return NULL;
    }
    ls__journal_commit(&p->journal);
    if (st)
        return NULL;
    fill_results(p);
    return out;
}

ls_value *ls__replay_step(ls_strategy *s, ls__traced_step *step, const ls_value *arguments)
{
    ls__replay p = { .s = s,
                     .step = step,
                     .devices = s->n_devices ? s->n_devices : 1,
                     .numerics = ls__numerics(),
                     .kernel_threads = ls__kernel_threads_get() };
    return replay(&p, arguments);
}
