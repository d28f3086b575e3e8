/*
 * Where each wire lies. Wires that are one memory (aliases, results written over an
 * operand) are one block; gradients of a bucket are laid side by side. Invariant: two
 * wires that are needed at one instruction overlap only if they are one block.
 */
#include <limits.h>
#include <stdlib.h>

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
    static const struct {
        const char *row;
        int first, end;
    } updates[] = { { "sgd_update", 0, 1 },
                    { "adam_update", 0, 1 },
                    { "sgd_updates", 1, INT_MAX },
                    { "adam_updates", 2, INT_MAX } };
    *first = *end = 0;
    for (size_t i = 0; i < sizeof updates / sizeof *updates; i++)
        if (ls__node_is(node, updates[i].row)) {
            *first = updates[i].first;
            *end = updates[i].end < node->n_inputs ? updates[i].end : node->n_inputs;
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
            if (b < 0 || listed(list, n, root(l, b)))
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

/* The blocks that get an offset: roots, of a bucket only the first, and scratch. */
static ls_status lay_out(layer *l, bool reuse, bool least_only, size_t *size)
{
    ls__plan *plan = l->plan;
    int n = 0, most = l->n_blocks + plan->n_instructions;
    ls__block *all = calloc((size_t)most + 1, sizeof *all);
    int *from = calloc((size_t)most + 1, sizeof *from);
    ls_status st =
        all && from ? LS_OK : ls__fail_memory("a memory plan", (size_t)most * sizeof *all);
    for (int b = 0; b < l->n_blocks && !st; b++) {
        int bucket = l->bucket[b];
        if (l->same[b] != b || (bucket >= 0 && first_of_bucket(l, bucket) != b))
            continue;
        from[n] = b;
        all[n++] = l->blocks[b];
    }
    int wires = n;
    for (int t = 0; t < plan->n_instructions && !st; t++)
        if (plan->instructions[t].scratch_bytes > 0) {
            from[n] = t;
            all[n++] =
                (ls__block){ .bytes = plan->instructions[t].scratch_bytes, .first = t, .last = t };
        }
    if (!st)
        st = least_only ? ls__memory_least(n, all, size) : ls__memory_plan(n, all, reuse, size);
    for (int i = 0; i < n && !st && !least_only; i++)
        if (i < wires)
            l->blocks[from[i]].offset = all[i].offset;
        else
            plan->instructions[from[i]].scratch_at = all[i].offset;
    free(all);
    free(from);
    return st;
}

static void tell_places(layer *l, const size_t *at)
{
    ls__plan *plan = l->plan;
    for (int w = 0; w < l->g->n_wires; w++) {
        if (l->block[w] < 0)
            continue;
        int b = root(l, l->block[w]);
        size_t offset = l->blocks[b].offset;
        if (l->bucket[b] >= 0)
            offset = l->blocks[first_of_bucket(l, l->bucket[b])].offset + at[b];
        plan->places[w] = (ls__place){ LS__AT_ARENA, 0, offset };
    }
    for (int i = 0; i < plan->n_buckets; i++)
        plan->buckets[i].place = plan->places[plan->bucket_wires[plan->buckets[i].begin]];
}

static ls_status lay(layer *l, ls__place_options options, size_t *at)
{
    place_outside(l);
    find_blocks(l);
    if (options.in_place)
        join_in_place(l);
    ls_status st = lay_out(l, options.reuse, true, &l->plan->arena_least);
    if (!st && options.buckets)
        st = fill_buckets(l, at);
    if (!st)
        st = lay_out(l, options.reuse, false, &l->plan->arena_bytes);
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
    l.blocks = calloc(wires, sizeof *l.blocks);
    size_t *at = calloc(wires, sizeof *at);
    plan->places = calloc(wires, sizeof *plan->places);
    ls_status st = LS_OK;
    if (!l.turn || !l.block || !l.same || !l.bucket || !l.blocks || !at || !plan->places)
        st = ls__fail_memory("a memory plan", wires * sizeof *l.blocks);
    for (size_t i = 0; i < wires && !st; i++)
        l.bucket[i] = -1;
    if (!st)
        st = lay(&l, options, at);
    for (int i = 0; i < g->n_constants; i++)
        plan->constant_bytes += ls__storage_capacity(g->constants[i].storage);
    free(l.turn);
    free(l.block);
    free(l.same);
    free(l.bucket);
    free(l.blocks);
    free(at);
    return st;
}
