/*
 * The executor. Invariant: between open and close every address but those of inputs and of lent
 * memory is fixed; begin and lend patch these into the calls that use them.
 */
#include "trace/execute.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fpu.h"
#include "dispatch/context.h"
#include "os/clock.h"
#include "tensor/convert.h"

/* An address that changes, and where it has to be written: an input's, or a place in the memory
 * lent for a meeting. */
typedef struct patch {
    int index;
    const void **at;
    size_t offset;
} patch;

typedef struct patches {
    patch *list;
    int count;
} patches;

/* A number that ls_check_numerics looks for, in what a step was given. */
typedef struct bad_number {
    const char *variable; /* NULL: in an input */
    int input;
    int64_t element; /* -1: there is none */
    double value;
} bad_number;

struct ls__instance {
    const ls__plan *plan;
    ls__storage *arena, *own, *kept;
    ls__cell **cells;
    ls_call *calls; /* one per instruction */
    patches inputs_at, lent_at;
    const void **inputs;
    void **lent; /* per meeting: the memory lent for it */
    uint64_t
        *packed; /* per instruction: 1 + the version its packed copy is of; the twin's, if any */
    ls__instance *twin;
    ls__arena memory; /* what the calls point at */
    int at;           /* the next instruction */
    int stretch;      /* of the plan: the one it is in */
    ls__watch watch;
    ls__time *times; /* per instruction; NULL: nobody asks */
    ls__draw draw;
    bool checked;
    bad_number came; /* checked: what is bad before the step has done anything */
};

/* ---- opening ------------------------------------------------------------------------ */

static void *address(const ls__instance *i, const ls__place *p)
{
    switch (p->base) {
    case LS__AT_ARENA:
        return (char *)i->arena->data + p->offset;
    case LS__AT_OWN:
        return (char *)i->own->data + p->offset;
    case LS__AT_LENT:
        return (char *)i->lent[p->index] + p->offset;
    case LS__AT_KEPT:
        return (char *)i->kept->data + p->offset;
    case LS__AT_CONSTANT:
        return (char *)i->plan->graph->constants[p->index].storage->data + p->offset;
    case LS__AT_CELL:
        return (char *)ls__cell_data(i->cells[p->index]) + p->offset;
    default: /* an input: known at begin */
        return (void *)i->inputs[p->index];
    }
}

/* Notes an address that is not known yet. */
static void note_patch(ls__instance *i, const ls__place *place, const void **at)
{
    patches *to = place->base == LS__AT_INPUT ? &i->inputs_at : &i->lent_at;
    to->list[to->count++] = (patch){ place->index, at, place->offset };
}

static bool is_fixed(const ls__place *place)
{
    return place->base != LS__AT_INPUT && place->base != LS__AT_LENT;
}

static ls_status fill_call(ls__instance *i, int n)
{
    const ls__plan *plan = i->plan;
    const ls__graph *g = plan->graph;
    const ls__instruction *from = &plan->instructions[n];
    const ls__node *node = from->node;
    const ls__spec **in = ls__arena_alloc(&i->memory, sizeof *in * (size_t)(node->n_inputs + 1));
    const void **in_data =
        ls__arena_alloc(&i->memory, sizeof *in_data * (size_t)(node->n_inputs + 1));
    ls__spec *out = ls__arena_alloc(&i->memory, sizeof *out * (size_t)(node->n_outputs + 1));
    void **out_data = ls__arena_alloc(&i->memory, sizeof *out_data * (size_t)(node->n_outputs + 1));
    ls__cell **cells = ls__arena_alloc(&i->memory, sizeof *cells * (size_t)(node->n_cells + 1));
    if (!in || !in_data || !out || !out_data || !cells)
        return LS_NO_MEMORY;
    for (int k = 0; k < node->n_inputs; k++) {
        const ls__place *place = &plan->places[node->inputs[k]];
        in[k] = &g->wires[node->inputs[k]].spec;
        if (is_fixed(place))
            in_data[k] = address(i, place);
        else
            note_patch(i, place, &in_data[k]);
    }
    for (int k = 0; k < node->n_outputs; k++) {
        const ls__place *place = &plan->places[node->outputs[k]];
        out[k] = g->wires[node->outputs[k]].spec;
        if (is_fixed(place))
            out_data[k] = address(i, place);
        else
            note_patch(i, place, (const void **)&out_data[k]);
    }
    for (int k = 0; k < node->n_cells; k++)
        cells[k] = i->cells[node->cells[k]];
    i->calls[n] = (ls_call){ .op = node->op,
                             .attrs = node->attrs,
                             .n_inputs = node->n_inputs,
                             .n_outputs = node->n_outputs,
                             .n_cells = node->n_cells,
                             .in = in,
                             .out = out,
                             .in_data = in_data,
                             .out_data = out_data,
                             .cells = cells };
    if (from->scratch_bytes > 0)
        i->calls[n].scratch = (char *)i->arena->data + from->scratch_at;
    return LS_OK;
}

static ls_status bind_cells(ls__instance *i, ls__cell *const *cells)
{
    const ls__graph *g = i->plan->graph;
    for (int k = 0; k < g->n_cells; k++) {
        ls__cell *cell = cells ? cells[k] : g->cells[k].cell;
        if (ls__cell_is_hollow(cell))
            return ls__hint(
                ls__fail(LS_STATE, "%s: variable '%s' of the program is not here", g->name,
                         g->cells[k].name),
                "a program that came from elsewhere wants a variable for each of its cells");
        if (!ls__spec_equal(ls__cell_spec(cell), &g->cells[k].spec))
            return ls__fail(LS_SHAPE, "%s: variable '%s' is %s, the program wants %s", g->name,
                            g->cells[k].name, ls__spec_text(ls__cell_spec(cell)),
                            ls__spec_text(&g->cells[k].spec));
        i->cells[k] = ls__cell_ref(cell);
    }
    return LS_OK;
}

/* Whether what one has packed is good for the other, too: of the same weights. */
static bool can_share_packed(const ls__instance *twin, const ls__plan *plan, ls__cell *const *cells)
{
    if (!twin || twin->plan != plan)
        return false;
    for (int n = 0; n < plan->n_instructions; n++) {
        int packs = plan->instructions[n].packs;
        if (packs >= 0 && twin->cells[packs] != (cells ? cells : twin->cells)[packs])
            return false;
    }
    return true;
}

static ls_status find_memory(ls__instance *i, ls__storage *arena)
{
    const ls__plan *plan = i->plan;
    i->arena = arena ? ls__storage_ref(arena)
                     : ls__storage_new("the memory of a traced step", plan->arena_bytes);
    if (!i->arena)
        return LS_NO_MEMORY;
    i->own = ls__storage_new("the memory of a traced step", plan->own_bytes);
    if (!i->own)
        return LS_NO_MEMORY;
    i->kept = i->twin ? ls__storage_ref(i->twin->kept)
                      : ls__storage_new("packed weights", plan->kept_bytes);
    return i->kept ? LS_OK : LS_NO_MEMORY;
}

static ls_status make_lists(ls__instance *i)
{
    const ls__plan *plan = i->plan;
    const ls__graph *g = plan->graph;
    size_t n = (size_t)plan->n_instructions, uses = 1, meetings = 1;
    for (int k = 0; k < plan->n_instructions; k++) {
        const ls__node *node = plan->instructions[k].node;
        uses += (size_t)node->n_inputs + (size_t)node->n_outputs;
        meetings += (node->op->flags & LS__OP_SYNC) != 0;
    }
    i->cells = calloc((size_t)g->n_cells + 1, sizeof *i->cells);
    i->calls = calloc(n + 1, sizeof *i->calls);
    i->packed = i->twin ? i->twin->packed : calloc(n + 1, sizeof *i->packed);
    i->inputs = calloc((size_t)g->n_inputs + 1, sizeof *i->inputs);
    i->lent = calloc(meetings, sizeof *i->lent);
    i->inputs_at.list = calloc(uses, sizeof *i->inputs_at.list);
    i->lent_at.list = calloc(uses, sizeof *i->lent_at.list);
    if (!i->cells || !i->calls || !i->packed || !i->inputs || !i->lent || !i->inputs_at.list ||
        !i->lent_at.list)
        return ls__fail_memory("a traced step", (n + 1) * sizeof *i->calls);
    return LS_OK;
}

ls_status ls__instance_open(const ls__plan *plan, ls__cell *const *cells, ls__instance **out)
{
    return ls__instance_open_with(plan, cells, NULL, NULL, out);
}

ls_status ls__instance_open_with(const ls__plan *plan, ls__cell *const *cells, ls__storage *arena,
                                 ls__instance *twin, ls__instance **out)
{
    ls__instance *i = calloc(1, sizeof *i);
    if (!i)
        return ls__fail_memory("a traced step", sizeof *i);
    i->plan = plan;
    i->twin = can_share_packed(twin, plan, cells) ? twin : NULL;
    ls_status st = find_memory(i, arena);
    if (!st)
        st = make_lists(i);
    if (!st)
        st = bind_cells(i, cells);
    for (int n = 0; n < plan->n_instructions && !st; n++)
        st = fill_call(i, n);
    if (st) {
        ls__instance_close(i);
        return st;
    }
    *out = i;
    return LS_OK;
}

void ls__instance_close(ls__instance *i)
{
    if (!i)
        return;
    for (int k = 0; i->cells && k < i->plan->graph->n_cells; k++)
        ls__cell_unref(i->cells[k]);
    ls__storage_unref(i->arena);
    ls__storage_unref(i->own);
    ls__storage_unref(i->kept);
    ls__arena_clear(&i->memory);
    free(i->cells);
    free(i->calls);
    if (!i->twin)
        free(i->packed);
    free(i->inputs);
    free(i->lent);
    free(i->inputs_at.list);
    free(i->lent_at.list);
    free(i->times);
    free(i);
}

/* ---- replaying ---------------------------------------------------------------------- */

ls_status ls__instance_unshare(ls__instance *i)
{
    ls_status st = LS_OK;
    for (int n = 0; n < i->plan->n_instructions && !st; n++) {
        const ls_call *c = &i->calls[n];
        for (int k = 0; c->op->flags & LS_OP_WRITES && k < c->n_cells && !st; k++)
            st = ls__cell_unshare(c->cells[k]);
    }
    return st;
}

/* Variables first: an argument is seen by who gives it. */
static bad_number find_bad(const ls__instance *i)
{
    const ls__graph *g = i->plan->graph;
    for (int n = 0; n < g->n_nodes; n++)
        for (int k = 0; g->nodes[n]->op->flags & LS_OP_READS && k < g->nodes[n]->n_cells; k++) {
            const int c = g->nodes[n]->cells[k];
            const ls__spec *spec = &g->cells[c].spec;
            const void *data = ls__cell_data(i->cells[c]);
            int64_t at = ls__first_bad(spec, data);
            if (at >= 0)
                return (bad_number){ .variable = ls__cell_name(i->cells[c]),
                                     .element = at,
                                     .value = ls__load_double(spec->dtype, data, at) };
        }
    for (int k = 0; k < g->n_inputs; k++) {
        const ls__wire *w = &g->wires[g->inputs[k]];
        int64_t at = w->after ? -1 : ls__first_bad(&w->spec, i->inputs[k]);
        if (at >= 0)
            return (bad_number){ .input = k,
                                 .element = at,
                                 .value = ls__load_double(w->spec.dtype, i->inputs[k], at) };
    }
    return (bad_number){ .element = -1 };
}

void ls__instance_inputs(ls__instance *i, const void *const *inputs)
{
    for (int k = 0; k < i->plan->graph->n_inputs; k++)
        i->inputs[k] = inputs[k];
    for (int k = 0; k < i->inputs_at.count; k++)
        *i->inputs_at.list[k].at = inputs[i->inputs_at.list[k].index];
}

void ls__instance_begin(ls__instance *i, const void *const *inputs, const ls__draw *draw)
{
    ls__instance_inputs(i, inputs);
    i->at = 0;
    i->stretch = 0;
    i->checked = ls__numerics() != LS_NUMERICS_OFF;
    i->draw = *draw;
    if (i->checked)
        i->came = find_bad(i);
}

void ls__instance_lend(ls__instance *i, int meeting, void *memory)
{
    i->lent[meeting] = memory;
    for (int k = 0; k < i->lent_at.count; k++) {
        const patch *p = &i->lent_at.list[k];
        if (p->index == meeting)
            *p->at = (char *)memory + p->offset;
    }
}

/* What a check has found was not made by this step, if no operator of it was blamed before. */
static void describe_bad(const bad_number *bad, char *out, size_t room)
{
    const char *kind = bad->value != bad->value ? "NaN" : "an infinity";
    if (bad->element >= 0 && bad->variable)
        snprintf(out, room, "; variable '%s' had %s at element %lld before the step", bad->variable,
                 kind, (long long)bad->element);
    else if (bad->element >= 0)
        snprintf(out, room, "; argument %d has %s at element %lld", bad->input, kind,
                 (long long)bad->element);
}

ls_status ls__instance_failed(const ls__instance *i, int n, ls_status st)
{
    const ls__node *node = i->plan->instructions[n].node;
    if (!ls_error_pending())
        ls__fail(st, "%s: its kernel failed: %s", node->op->name, ls_status_text(st));
    ls__error_record record;
    ls__error_take(&record);
    char replica[24] = "";
    if (node->replica >= 0)
        snprintf(replica, sizeof replica, "replica %d: ", node->replica);
    char came[200] = "";
    if (i->checked && node->op->flags & LS__OP_CHECKS)
        describe_bad(&i->came, came, sizeof came);
    ls__fail(record.status, "operator %d of %d: %s%s%s", node->where, i->plan->graph->calls,
             replica, record.text, came);
    return record.hint[0] ? ls__hint(record.status, "%s", record.hint) : record.status;
}

/* Whether the packed copy is still that of the cell's contents; if not, notes that it
 * is about to be. */
static bool still_packed(ls__instance *i, int n, int cell)
{
    uint64_t version = cell == LS__PACKS_CONSTANT ? 1 : 1 + ls__cell_version(i->cells[cell]);
    if (i->packed[n] == version)
        return true;
    i->packed[n] = version;
    return false;
}

static ls_status run_timed(ls__instance *i, int n)
{
    const int64_t begin = ls__now();
    ls_status st = i->calls[n].op->kernel(&i->calls[n]);
    i->times[n].ns += ls__now() - begin;
    i->times[n].calls++;
    return st;
}

static ls_status run_stretch(ls__instance *i, int stop, int *meeting)
{
    const ls__plan *plan = i->plan;
    while (i->at < stop) {
        int n = i->at++;
        ls_call *c = &i->calls[n];
        unsigned flags = c->op->flags;
        int packs = plan->instructions[n].packs;
        if (packs != LS__PACKS_NOTHING && still_packed(i, n, packs))
            continue;
        if (flags & LS_OP_DRAWS) {
            c->draw = i->draw;
            c->draw.ordinal += (uint64_t)plan->instructions[n].node->draw;
        }
        if (flags & LS__OP_SYNC) {
            *meeting = n;
            return LS_OK;
        }
        ls_status st = i->times ? run_timed(i, n) : c->op->kernel(c);
        if (!st && i->checked && !(flags & LS_OP_READS)) /* a variable's NaN was not made here */
            st = ls__check_outputs(c);
        if (!st)
            st = ls_error_pending();
        if (st) {
            i->packed[n] = 0;
            return ls__instance_failed(i, n, st);
        }
    }
    *meeting = -1;
    return LS_OK;
}

/* Who watches is told where a phase begins, and where a piece goes on in one. */
static ls_status run_watched(ls__instance *i, int stop, int *meeting)
{
    const ls__stretch *stretches = i->plan->stretches;
    *meeting = -1;
    while (i->at < stop) {
        while (stretches[i->stretch + 1].begin <= i->at)
            i->stretch++;
        i->watch.enter(i->watch.who, stretches[i->stretch].phase);
        int end = stretches[i->stretch + 1].begin;
        ls_status st = run_stretch(i, end < stop ? end : stop, meeting);
        if (st || *meeting >= 0)
            return st;
    }
    return LS_OK;
}

ls_status ls__instance_run_to(ls__instance *i, int stop, int *meeting)
{
    uint64_t fpu = ls__fpu_enter();
    ls_status st = (i->watch.enter ? run_watched : run_stretch)(i, stop, meeting);
    ls__fpu_leave(fpu);
    return st;
}

ls_status ls__instance_run(ls__instance *i, int *meeting)
{
    return ls__instance_run_to(i, i->plan->n_instructions, meeting);
}

void ls__instance_watch(ls__instance *i, ls__watch watch)
{
    i->watch = watch;
}

ls_status ls__instance_time(ls__instance *i)
{
    if (!i->times)
        i->times = calloc((size_t)i->plan->n_instructions + 1, sizeof *i->times);
    return i->times ? LS_OK : ls__fail_memory("times of operators", sizeof *i->times);
}

ls__time ls__instance_time_of(const ls__instance *i, int instruction)
{
    return i->times ? i->times[instruction] : (ls__time){ 0, 0 };
}

void ls__instance_time_anew(ls__instance *i)
{
    if (i->times)
        memset(i->times, 0, sizeof *i->times * (size_t)i->plan->n_instructions);
}

void ls__instance_time_add(ls__instance *i, int instruction, int64_t ns)
{
    if (!i->times)
        return;
    i->times[instruction].calls++;
    i->times[instruction].ns += ns;
}

bool ls__instance_has_work(const ls__instance *i)
{
    return i->at < i->plan->n_instructions && !(i->calls[i->at].op->flags & LS__OP_SYNC);
}

ls_status ls__instance_end(ls__instance *i, ls_status st)
{
    for (int k = i->plan->n_undo; st && k-- > 0;) { /* what was saved first is restored last */
        const ls__undo *undo = &i->plan->undo[k];
        if (undo->instruction < i->at)
            ls__cell_restore(i->cells[undo->cell], address(i, &undo->saved));
    }
    return st;
}

ls_call *ls__instance_call(ls__instance *i, int instruction)
{
    return &i->calls[instruction];
}

const void *ls__instance_output(const ls__instance *i, int k)
{
    return address(i, &i->plan->places[i->plan->graph->outputs[k]]);
}
