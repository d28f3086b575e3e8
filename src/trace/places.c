/*
 * Where each wire lies. Wires that are one memory (aliases, results written over an
 * operand) are one block; gradients of a bucket are laid side by side. Invariant: two
 * wires that are needed at one instruction overlap only if they are one block.
 */
#include <stdlib.h>

#include "ops/update.h"
#include "trace/memory.h"
#include "trace/plan.h"

/* Measured later, when strategies reduce them: small enough to start early, large
 * enough that what a reduction costs besides moving bytes does not matter. */
#define BUCKET_BYTES ((size_t)4 << 20)

typedef struct layer {
    ls__plan *plan;
    const ls__graph *g;
    int *turn;         /* node -> its instruction, or the next one for an alias */
    int *block;        /* wire -> block, or -1 when it lies elsewhere */
    int *same;         /* block -> the block it was joined to, or itself */
    int *bucket;       /* block -> its bucket, or -1 */
    int *lent;         /* block -> its entry of plan->lent, or -1 */
    bool *own;         /* block -> whether it must stay while others take their turns */
    ls__block *blocks; /* of wires, then of scratch */
    int n_blocks;
} layer;

static int root(const layer *l, int block)
{
    while (l->same[block] != block)
        block = l->same[block];
    return block;
}

static void needed_at(layer *l, int wire, int turn)
{
    int b = l->block[wire];
    if (b >= 0 && l->blocks[b].last < turn)
        l->blocks[b].last = turn;
}

/* ---- blocks and their lifetimes ----------------------------------------------------- */

static void place_outside(layer *l)
{
    for (int w = 0; w < l->g->n_wires; w++) {
        const ls__wire *wire = &l->g->wires[w];
        l->block[w] = -1;
        if (wire->kind == LS__WIRE_INPUT)
            l->plan->places[w] = (ls__place){ LS__AT_INPUT, wire->index, 0 };
        else if (wire->kind == LS__WIRE_CONSTANT)
            l->plan->places[w] = (ls__place){ LS__AT_CONSTANT, wire->index, 0 };
    }
}

static void place_alias(layer *l, const ls__node *node)
{
    int out = node->outputs[0];
    if (node->op->flags & LS_OP_READS) {
        l->plan->places[out] = (ls__place){ LS__AT_CELL, node->cells[0], 0 };
        return;
    }
    l->plan->places[out] = l->plan->places[node->inputs[0]];
    l->block[out] = l->block[node->inputs[0]];
}

static void open_blocks(layer *l, const ls__instruction *i, int turn)
{
    for (int k = 0; k < i->node->n_outputs; k++) {
        int wire = i->node->outputs[k];
        size_t bytes = ls__spec_bytes(&l->g->wires[wire].spec);
        if (i->packs != LS__PACKS_NOTHING) {
            l->plan->places[wire] = (ls__place){ LS__AT_KEPT, 0, l->plan->kept_bytes };
            l->plan->kept_bytes += ls__arena_round(bytes);
            continue;
        }
        l->block[wire] = l->n_blocks;
        l->same[l->n_blocks] = l->n_blocks;
        l->blocks[l->n_blocks++] = (ls__block){ .bytes = bytes, .first = turn, .last = turn };
    }
}

static void find_blocks(layer *l)
{
    const ls__graph *g = l->g;
    int turn = 0;
    for (int i = 0; i < g->n_nodes; i++) {
        const ls__node *node = g->nodes[i];
        l->turn[i] = turn;
        if (node->op->flags & LS_OP_ALIAS)
            place_alias(l, node);
        else
            open_blocks(l, &l->plan->instructions[turn], turn), turn++;
    }
    for (int i = 0; i < g->n_nodes; i++) {
        const ls__node *node = g->nodes[i];
        for (int k = 0; !(node->op->flags & LS_OP_ALIAS) && k < node->n_inputs; k++)
            needed_at(l, node->inputs[k], l->turn[i]);
        if (ls__node_is(node, "save"))
            needed_at(l, node->outputs[0], turn);
    }
    for (int i = 0; i < g->n_outputs; i++)
        needed_at(l, g->outputs[i], turn);
}

/* ---- results over operands -------------------------------------------------------------- */

/* An element-wise result may lie over an operand of its size that nobody needs after. */
static void join_in_place(layer *l)
{
    for (int t = 0; t < l->plan->n_instructions; t++) {
        const ls__node *node = l->plan->instructions[t].node;
        if (!(node->op->flags & LS_OP_ELEMENTWISE) || node->n_outputs != 1)
            continue;
        const ls__spec *out = &l->g->wires[node->outputs[0]].spec;
        int mine = l->block[node->outputs[0]];
        for (int k = 0; mine >= 0 && k < node->n_inputs; k++) {
            const ls__spec *in = &l->g->wires[node->inputs[k]].spec;
            int b = l->block[node->inputs[k]];
            b = b < 0 ? b : root(l, b);
            if (b < 0 || l->blocks[b].last != t || !ls__spec_same_shape(in, out) ||
                ls_dtype_size(in->dtype) != ls_dtype_size(out->dtype))
                continue;
            l->same[mine] = b;
            l->blocks[b].last = l->blocks[mine].last;
            break;
        }
    }
}

/* ---- memory that stays, memory that is lent ------------------------------------------------ */

/* The instruction at which meeting k is; -1 for the one before the first; all of them when there are
 * fewer. */
static int turn_of_meeting(const layer *l, int k)
{
    if (k < 0)
        return -1;
    for (int t = 0; t < l->plan->n_instructions; t++)
        if (l->plan->instructions[t].node->op->flags & LS__OP_SYNC && k-- == 0)
            return t;
    return l->plan->n_instructions;
}

static void own_across(layer *l, int turn)
{
    for (int b = 0; b < l->n_blocks; b++)
        l->own[b] |= l->blocks[b].first < turn && l->blocks[b].last >= turn;
}

/* What a piece leaves for the meeting after it, for later pieces, or as a result. The tail is a
 * piece, too: writes wait until nobody can fail any more. */
static void find_own(layer *l)
{
    const int end = l->plan->n_instructions;
    for (int k = 0, at = turn_of_meeting(l, 0); at < end; at = turn_of_meeting(l, ++k))
        own_across(l, at);
    own_across(l, l->plan->tail);
    own_across(l, end);
}

static bool is_lent(const ls__plan *plan, int meeting, int input)
{
    for (int i = 0; i < plan->n_lent; i++)
        if (plan->lent[i].meeting == meeting && plan->lent[i].input == input)
            return true;
    return false;
}

/* What is lent is gone when the meeting is held: nothing else may be brought that is the same memory
 * by another name (a reshape, or what a pass found to be the same). */
static bool brought_otherwise(const layer *l, int block, int meeting, const ls__node *meet)
{
    for (int k = 0; k < meet->n_inputs; k++) {
        int b = l->block[meet->inputs[k]];
        if (b >= 0 && root(l, b) == block && !is_lent(l->plan, meeting, k))
            return true;
    }
    return false;
}

static void find_lent(layer *l)
{
    for (int i = 0; i < l->plan->n_lent; i++) {
        ls__lent *lent = &l->plan->lent[i];
        int at = turn_of_meeting(l, lent->meeting);
        if (at >= l->plan->n_instructions)
            continue;
        int wire = l->plan->instructions[at].node->inputs[lent->input];
        int b = l->block[wire] < 0 ? -1 : root(l, l->block[wire]);
        if (b < 0 || l->lent[b] >= 0 || l->blocks[b].last != at ||
            l->blocks[b].first <= turn_of_meeting(l, lent->meeting - 1) ||
            l->blocks[b].bytes != ls__spec_bytes(&l->g->wires[wire].spec) ||
            brought_otherwise(l, b, lent->meeting, l->plan->instructions[at].node))
            continue;
        l->lent[b] = i;
        lent->placed = true;
    }
}

/* ---- buckets ------------------------------------------------------------------------------ */

typedef struct gradient {
    int wire, block;
    size_t bytes;
} gradient;

static bool listed(const gradient *list, int n, int block)
{
    for (int i = 0; i < n; i++)
        if (list[i].block == block)
            return true;
    return false;
}

/* The inputs of an update that are gradients: from `first` to `end`. */
static void gradient_inputs(const ls__node *node, int *first, int *end)
{
    const ls__update_kind *kind = ls__update_kind_of(node->op);
    *first = *end = 0;
    if (!kind)
        return;
    if (node->op == kind->one || node->op == kind->lazy)
        *end = 1;
    else {
        *first = kind->numbers;
        *end = node->op == kind->reduced ? node->n_inputs : *first + node->n_cells / kind->cells;
    }
}

/* Those that updates take, if they have memory of their own. */
static int find_gradients(const layer *l, gradient *list)
{
    int n = 0, first, end;
    for (int t = 0; t < l->plan->n_instructions; t++) {
        const ls__node *node = l->plan->instructions[t].node;
        gradient_inputs(node, &first, &end);
        for (int k = first; k < end; k++) {
            int wire = node->inputs[k], b = l->block[wire];
            if (b < 0 || l->lent[root(l, b)] >= 0 || listed(list, n, root(l, b)))
                continue;
            b = root(l, b);
            list[n++] = (gradient){ wire, b, ls__arena_round(l->blocks[b].bytes) };
        }
    }
    return n;
}

/* In the order in which the step finishes them: where the wire is made, not where the
 * block begins, which may have held an operand before. */
static void sort_gradients(const layer *l, gradient *list, int n)
{
    for (int i = 1; i < n; i++)
        for (int k = i;
             k > 0 && l->g->wires[list[k].wire].node->at < l->g->wires[list[k - 1].wire].node->at;
             k--) {
            gradient t = list[k];
            list[k] = list[k - 1];
            list[k - 1] = t;
        }
}

/* Joins the blocks of each bucket into one; `at` gets the offset of each inside. */
static ls_status fill_buckets(layer *l, size_t *at)
{
    ls__plan *plan = l->plan;
    size_t room = (size_t)l->n_blocks + 1;
    gradient *list = calloc(room, sizeof *list);
    size_t *bytes = calloc(room, sizeof *bytes);
    int *counts = calloc(room, sizeof *counts);
    plan->buckets = calloc(room, sizeof *plan->buckets);
    plan->bucket_wires = calloc(room, sizeof *plan->bucket_wires);
    ls_status st = LS_OK;
    if (!list || !bytes || !counts || !plan->buckets || !plan->bucket_wires) {
        st = ls__fail_memory("buckets", room * sizeof *list);
        goto done;
    }
    int n = find_gradients(l, list);
    sort_gradients(l, list, n);
    for (int i = 0; i < n; i++)
        bytes[i] = list[i].bytes;
    plan->n_buckets = ls__bucket_counts(n, bytes, BUCKET_BYTES, counts);
    for (int b = 0, i = 0; b < plan->n_buckets; b++) {
        ls__bucket *bucket = &plan->buckets[b];
        *bucket = (ls__bucket){ .begin = i, .count = counts[b] };
        ls__block *whole = &l->blocks[list[i].block];
        for (int k = 0; k < counts[b]; k++, i++) {
            ls__block *part = &l->blocks[list[i].block];
            plan->bucket_wires[i] = list[i].wire;
            l->bucket[list[i].block] = b;
            at[list[i].block] = bucket->bytes;
            bucket->bytes += list[i].bytes;
            whole->first = part->first < whole->first ? part->first : whole->first;
            whole->last = part->last > whole->last ? part->last : whole->last;
            l->own[whole - l->blocks] |= l->own[list[i].block];
        }
        whole->bytes = bucket->bytes;
    }
done:
    free(list);
    free(bytes);
    free(counts);
    return st;
}

/* ---- the plan ------------------------------------------------------------------------------- */

static int first_of_bucket(const layer *l, int bucket)
{
    return root(l, l->block[l->plan->bucket_wires[l->plan->buckets[bucket].begin]]);
}

/* What memory a layout is for. */
typedef enum part { ARENA, OWN, BOTH } part;

static bool belongs(const layer *l, int b, part which)
{
    int bucket = l->bucket[b];
    if (l->same[b] != b || l->lent[b] >= 0 || (bucket >= 0 && first_of_bucket(l, bucket) != b))
        return false;
    return which == BOTH || l->own[b] == (which == OWN);
}

/* The blocks that get an offset: roots, of a bucket only the first, and scratch, which is the
 * arena's. */
static ls_status lay_out(layer *l, part which, bool reuse, size_t *size)
{
    ls__plan *plan = l->plan;
    int n = 0, most = l->n_blocks + plan->n_instructions;
    ls__block *all = calloc((size_t)most + 1, sizeof *all);
    int *from = calloc((size_t)most + 1, sizeof *from);
    ls_status st =
        all && from ? LS_OK : ls__fail_memory("a memory plan", (size_t)most * sizeof *all);
    for (int b = 0; b < l->n_blocks && !st; b++)
        if (belongs(l, b, which)) {
            from[n] = b;
            all[n++] = l->blocks[b];
        }
    int wires = n;
    for (int t = 0; t < plan->n_instructions && which != OWN && !st; t++)
        if (plan->instructions[t].scratch_bytes > 0) {
            from[n] = t;
            all[n++] =
                (ls__block){ .bytes = plan->instructions[t].scratch_bytes, .first = t, .last = t };
        }
    if (!st)
        st = which == BOTH ? ls__memory_least(n, all, size) : ls__memory_plan(n, all, reuse, size);
    for (int i = 0; i < n && !st && which != BOTH; i++)
        if (i < wires)
            l->blocks[from[i]].offset = all[i].offset;
        else
            plan->instructions[from[i]].scratch_at = all[i].offset;
    free(all);
    free(from);
    return st;
}

static ls__place place_of(const layer *l, int b, const size_t *at)
{
    if (l->lent[b] >= 0) {
        const ls__lent *lent = &l->plan->lent[l->lent[b]];
        return (ls__place){ LS__AT_LENT, lent->meeting, lent->offset };
    }
    int first = l->bucket[b] >= 0 ? first_of_bucket(l, l->bucket[b]) : b;
    return (ls__place){ l->own[first] ? LS__AT_OWN : LS__AT_ARENA, 0,
                        l->blocks[first].offset + at[b] };
}

static void tell_places(layer *l, const size_t *at)
{
    ls__plan *plan = l->plan;
    for (int w = 0; w < l->g->n_wires; w++)
        if (l->block[w] >= 0)
            plan->places[w] = place_of(l, root(l, l->block[w]), at);
    for (int i = 0; i < plan->n_buckets; i++)
        plan->buckets[i].place = plan->places[plan->bucket_wires[plan->buckets[i].begin]];
}

static ls_status lay(layer *l, ls__place_options options, size_t *at)
{
    place_outside(l);
    find_blocks(l);
    if (options.in_place)
        join_in_place(l);
    if (options.turns)
        find_own(l);
    find_lent(l);
    ls_status st = lay_out(l, BOTH, options.reuse, &l->plan->arena_least);
    if (!st && options.buckets)
        st = fill_buckets(l, at);
    if (!st)
        st = lay_out(l, ARENA, options.reuse, &l->plan->arena_bytes);
    if (!st)
        st = lay_out(l, OWN, options.reuse, &l->plan->own_bytes);
    if (!st)
        tell_places(l, at);
    return st;
}

ls_status ls__plan_places(ls__plan *plan, ls__place_options options)
{
    const ls__graph *g = plan->graph;
    size_t wires = (size_t)g->n_wires + 1;
    layer l = { .plan = plan, .g = g };
    l.turn = calloc((size_t)g->n_nodes + 1, sizeof *l.turn);
    l.block = calloc(wires, sizeof *l.block);
    l.same = calloc(wires, sizeof *l.same);
    l.bucket = calloc(wires, sizeof *l.bucket);
    l.lent = calloc(wires, sizeof *l.lent);
    l.own = calloc(wires, sizeof *l.own);
    l.blocks = calloc(wires, sizeof *l.blocks);
    size_t *at = calloc(wires, sizeof *at);
    plan->places = calloc(wires, sizeof *plan->places);
    ls_status st = LS_OK;
    if (!l.turn || !l.block || !l.same || !l.bucket || !l.lent || !l.own || !l.blocks || !at ||
        !plan->places)
        st = ls__fail_memory("a memory plan", wires * sizeof *l.blocks);
    for (size_t i = 0; i < wires && !st; i++)
        l.bucket[i] = l.lent[i] = -1;
    if (!st)
        st = lay(&l, options, at);
    for (int i = 0; i < g->n_constants; i++)
        plan->constant_bytes += ls__storage_capacity(g->constants[i].storage);
    free(l.turn);
    free(l.block);
    free(l.same);
    free(l.bucket);
    free(l.lent);
    free(l.own);
    free(l.blocks);
    free(at);
    return st;
}
