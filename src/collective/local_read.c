/*
 * Reads a schedule: walks the hops of all ranks round by round and notes what values there are, who
 * adds them when, and which each rank ends with. A value is received by name and added from the
 * parts of its name, so what a rank has under a name is that expression and no other; a hop that is
 * missing, altered or out of turn leaves somebody without what he needs, and that is an error.
 *
 * The one thing it knows of algorithms is what they promise, not how they keep it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/status.h"
#include "collective/local_map.h"
#include "collective/local_plan.h"
#include "collective/placement.h"

/* ---- what ranks have ------------------------------------------------------------------ */

typedef struct reader {
    const ls__schedule *s;
    ls__reading *out;
    ls__map has;  /* rank, chunk, node */
    ls__map sent; /* in this round: from and to, chunk, node */
    int *at;      /* each rank's next hop */
} reader;

static ls_status wrong(const reader *r, int rank, int hop, const char *format, ...) LS_PRINTF(4, 5);

static ls_status wrong(const reader *r, int rank, int hop, const char *format, ...)
{
    char what[200];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    const ls__hop *h = &r->s->hops[rank][hop];
    return ls__fail(LS_CORRUPT, "schedule of %s: rank %d, hop %d (round %u, chunk %u): %s",
                    ls__algorithm_name(r->s->spec.algorithm), rank, hop, h->round, h->chunk, what);
}

/* A chain of one is its replica; whatever is neither chain nor node of this tree gets no name. */
static bool node_name(const reader *r, uint32_t chunk, uint32_t node, uint32_t *name)
{
    const ls__schedule_spec *spec = &r->s->spec;
    *name = node;
    if (node & LS__CHAIN) {
        if (ls__chain_first(node) >= spec->ranks || ls__chain_count(node) < 1 ||
            ls__chain_count(node) > spec->ranks || spec->replicas != spec->ranks)
            return false;
        int replica = ls__node_replica(spec, chunk == LS__EVERY_CHUNK ? 0 : chunk, node);
        if (replica >= 0)
            *name = ls__tree_node_at(0, replica);
        return true;
    }
    int k = ls__tree_level(node), m = ls__tree_index(node);
    return k <= LS__TREE_LEVELS && m < spec->replicas && m << k < spec->replicas &&
           ls__tree_name(k, m, spec->replicas) == node;
}

/* -1: the rank has no such value. One spent by folding has neither parts nor a place. */
static int find(const reader *r, int rank, uint32_t chunk, uint32_t node)
{
    uint32_t name;
    if (!node_name(r, chunk, node, &name))
        return -1;
    int v = ls__map_get(&r->has, (uint32_t)rank, chunk, name);
    if (v < 0)
        v = ls__map_get(&r->has, (uint32_t)rank, LS__EVERY_CHUNK, name);
    return v >= 0 && r->out->values[v].left < 0 && r->out->values[v].operand < 0 ? -1 : v;
}

static bool completes(const ls__schedule_spec *spec, uint32_t name)
{
    if (spec->algorithm == LS__ALGORITHM_BROADCAST)
        return name == ls__tree_node_at(0, spec->root);
    if (name & LS__CHAIN)
        return ls__chain_count(name) == spec->ranks;
    return name == ls__tree_root(spec->replicas) &&
           (spec->algorithm != LS__ALGORITHM_RING || spec->ranks == 1);
}

static ls_status gain(reader *r, int rank, uint32_t chunk, uint32_t node, int value)
{
    uint32_t name = node;
    node_name(r, chunk, node, &name);
    if (completes(&r->s->spec, name)) {
        uint32_t begin = chunk == LS__EVERY_CHUNK ? 0 : chunk;
        uint32_t end = chunk == LS__EVERY_CHUNK ? (uint32_t)r->s->chunks : chunk + 1;
        for (uint32_t c = begin; c < end; c++)
            r->out->ends[(size_t)rank * (size_t)r->s->chunks + c] = value;
    }
    return ls__map_put(&r->has, (uint32_t)rank, chunk, name, value);
}

static int new_value(ls__reading *out, ls__value value)
{
    ls__value *more =
        ls__grow(out->values, out->n_values, &out->room, sizeof *more, "reading a schedule");
    if (!more)
        return -1;
    out->values = more;
    out->values[out->n_values] = value;
    return out->n_values++;
}

/* ---- hops ------------------------------------------------------------------------------ */

static ls_status add(reader *r, int rank, int hop, int round)
{
    const ls__hop *h = &r->s->hops[rank][hop];
    uint32_t name, left_node, right_node;
    if (!node_name(r, h->chunk, h->node, &name) ||
        !ls__node_parts(&r->s->spec, h->node, &left_node, &right_node))
        return wrong(r, rank, hop, "adds node %#x, which is no sum", h->node);
    if (find(r, rank, h->chunk, h->node) >= 0)
        return wrong(r, rank, hop, "adds node %#x, which it has", h->node);
    int left = find(r, rank, h->chunk, left_node), right = find(r, rank, h->chunk, right_node);
    if (left < 0 || right < 0)
        return wrong(r, rank, hop, "adds node %#x without its part %#x", h->node,
                     left < 0 ? left_node : right_node);
    int v = new_value(r->out, (ls__value){ .node = name,
                                           .chunk = h->chunk,
                                           .left = left,
                                           .right = right,
                                           .operand = -1,
                                           .rank = rank,
                                           .round = round });
    return v < 0 ? LS_NO_MEMORY : gain(r, rank, h->chunk, h->node, v);
}

static uint32_t way(int from, int to)
{
    return (uint32_t)from << 16 | (uint32_t)to;
}

static ls_status send(reader *r, int rank, int hop)
{
    const ls__hop *h = &r->s->hops[rank][hop];
    int v = find(r, rank, h->chunk, h->node);
    if (v < 0)
        return wrong(r, rank, hop, "sends node %#x, which it has not", h->node);
    if (ls__map_get(&r->sent, way(rank, h->peer), h->chunk, h->node) >= 0)
        return wrong(r, rank, hop, "sends node %#x to rank %d again", h->node, h->peer);
    return ls__map_put(&r->sent, way(rank, h->peer), h->chunk, h->node, v);
}

/* What was received is marked in the map by the value's number behind all others. */
static ls_status receive(reader *r, int rank, int hop)
{
    const ls__hop *h = &r->s->hops[rank][hop];
    int v = ls__map_get(&r->sent, way(h->peer, rank), h->chunk, h->node);
    if (v < 0 || v == INT32_MAX)
        return wrong(r, rank, hop, "receives node %#x, which rank %d does not send", h->node,
                     h->peer);
    if (find(r, rank, h->chunk, h->node) >= 0)
        return wrong(r, rank, hop, "receives node %#x, which it has", h->node);
    ls__map_at(&r->sent, way(h->peer, rank), h->chunk, h->node)->value = INT32_MAX;
    return gain(r, rank, h->chunk, h->node, v);
}

static ls_status check_hop(const reader *r, int rank, int hop, uint32_t round)
{
    const ls__hop *h = &r->s->hops[rank][hop];
    if (h->act > LS__ACT_ADD)
        return wrong(r, rank, hop, "does %d, which is no act", h->act);
    if (h->chunk >= (uint32_t)r->s->chunks)
        return wrong(r, rank, hop, "there are %d chunks, and folds come first", r->s->chunks);
    if (h->round < round || h->round >= (uint32_t)r->s->rounds)
        return wrong(r, rank, hop, "stands behind hops of round %u, of %d rounds", round,
                     r->s->rounds);
    if (h->act != LS__ACT_ADD && (h->peer >= r->s->spec.ranks || h->peer == rank))
        return wrong(r, rank, hop, "peer %d of %d ranks", h->peer, r->s->spec.ranks);
    return LS_OK;
}

/* A rank's hops of this round that are not sends (or are); advances past all of them when told. */
static ls_status walk(reader *r, int rank, uint32_t round, bool sends)
{
    const ls__schedule *s = r->s;
    int i = r->at[rank];
    ls_status st = LS_OK;
    for (; i < s->n_hops[rank] && s->hops[rank][i].round <= round && !st; i++) {
        int act = s->hops[rank][i].act;
        if (sends)
            st = check_hop(r, rank, i, round);
        if (st || (act == LS__ACT_SEND) != sends)
            continue;
        st = sends                    ? send(r, rank, i)
             : act == LS__ACT_RECEIVE ? receive(r, rank, i)
                                      : add(r, rank, i, (int)round);
    }
    if (!sends)
        r->at[rank] = i;
    return st;
}

static ls_status read_round(reader *r, uint32_t round)
{
    const ls__schedule *s = r->s;
    ls_status st = LS_OK;
    ls__map_empty(&r->sent);
    for (int rank = 0; rank < s->spec.ranks && !st; rank++)
        st = walk(r, rank, round, true);
    for (int rank = 0; rank < s->spec.ranks && !st; rank++)
        st = walk(r, rank, round, false);
    for (size_t i = 0; i < r->sent.room && r->sent.used && !st; i++) {
        const ls__map_entry *e = &r->sent.entries[i];
        if (e->value >= 0 && e->value != INT32_MAX)
            st = ls__fail(LS_CORRUPT,
                          "schedule of %s: round %u, chunk %u: rank %u sends node %#x to rank %u, "
                          "who does not receive it",
                          ls__algorithm_name(s->spec.algorithm), round, e->b, e->a >> 16, e->c,
                          e->a & 0xffff);
    }
    return st;
}

/* ---- before the first round: what ranks give, and folds --------------------------------- */

static ls_status give(reader *r, int rank, int replica)
{
    ls__tree_node node = ls__tree_node_at(0, replica);
    int v = new_value(r->out, (ls__value){ .node = node,
                                           .chunk = LS__EVERY_CHUNK,
                                           .left = -1,
                                           .right = -1,
                                           .operand = replica,
                                           .rank = rank,
                                           .round = -1 });
    return v < 0 ? LS_NO_MEMORY : gain(r, rank, LS__EVERY_CHUNK, node, v);
}

static ls_status fold(reader *r, int rank, ls__local_ends ends)
{
    const ls__schedule *s = r->s;
    ls__reading *out = r->out;
    ls_status st = LS_OK;
    int i = 0, n = out->first_fold[rank];
    for (; i < s->n_hops[rank] && s->hops[rank][i].chunk == LS__EVERY_CHUNK && !st; i++) {
        const ls__hop *h = &s->hops[rank][i];
        if (h->act != LS__ACT_ADD || h->round != 0)
            return wrong(r, rank, i, "a fold adds, in round 0");
        st = add(r, rank, i, -1);
        if (!st && ends == LS__LOCAL_FOLDED) {
            const ls__value *v = &out->values[out->n_values - 1];
            out->folds[n++] =
                (ls__fold){ v->node, out->values[v->left].node, out->values[v->right].node };
        }
    }
    r->at[rank] = i;
    out->first_fold[rank + 1] = n;
    return st;
}

/* The nodes of a rank's block become what it gives; all others of it are spent. */
static ls_status give_block(reader *r, int rank, int first_value)
{
    const ls__schedule_spec *spec = &r->s->spec;
    ls__reading *out = r->out;
    ls__tree_node nodes[LS__MOST_REPLICAS];
    int n = ls__hop_blocks(spec, rank, rank + 1, nodes);
    int keep[LS__MOST_REPLICAS];
    for (int i = 0; i < n; i++) {
        keep[i] = find(r, rank, LS__EVERY_CHUNK, nodes[i]);
        if (keep[i] < 0)
            return ls__fail(LS_CORRUPT,
                            "schedule of %s: rank %d does not fold node %#x of its block",
                            ls__algorithm_name(spec->algorithm), rank, nodes[i]);
    }
    for (int v = first_value; v < out->n_values; v++)
        out->values[v].left = out->values[v].right = out->values[v].operand = -1;
    for (int i = 0; i < n; i++) {
        out->values[keep[i]].operand = out->n_operands;
        out->operands[out->n_operands++] = nodes[i];
    }
    return LS_OK;
}

static ls_status begin(reader *r, ls__local_ends ends)
{
    const ls__schedule_spec *spec = &r->s->spec;
    ls_status st = LS_OK;
    for (int rank = 0; rank < spec->ranks && !st; rank++) {
        int first = ls__block_begin(spec->replicas, spec->ranks, rank);
        int end = ls__block_begin(spec->replicas, spec->ranks, rank + 1);
        int first_value = r->out->n_values;
        for (int i = first; i < end && !st; i++) {
            st = give(r, rank, i);
            if (ends != LS__LOCAL_FOLDED)
                r->out->operands[r->out->n_operands++] = ls__tree_node_at(0, i);
        }
        if (!st)
            st = fold(r, rank, ends);
        if (!st && ends == LS__LOCAL_FOLDED)
            st = give_block(r, rank, first_value);
    }
    return st;
}

/* ---- the whole ---------------------------------------------------------------------------- */

/* Who is promised the sum has it, and all have the same one of a chunk. */
static ls_status check_ends(const reader *r)
{
    const ls__schedule_spec *spec = &r->s->spec;
    const ls__reading *out = r->out;
    for (int c = 0; c < r->s->chunks; c++) {
        int *root = &out->ends[(size_t)spec->root * (size_t)r->s->chunks + (size_t)c];
        for (int rank = 0; rank < spec->ranks; rank++) {
            int *end = &out->ends[(size_t)rank * (size_t)r->s->chunks + (size_t)c];
            if (spec->stop_at_root && rank != spec->root) {
                *end = -1;
                continue;
            }
            if (*end < 0)
                return ls__fail(LS_CORRUPT, "schedule of %s: rank %d does not end with chunk %d",
                                ls__algorithm_name(spec->algorithm), rank, c);
            if (*root >= 0 && out->values[*end].node != out->values[*root].node)
                return ls__fail(
                    LS_CORRUPT,
                    "schedule of %s: ranks %d and %d end with different sums of chunk %d",
                    ls__algorithm_name(spec->algorithm), spec->root, rank, c);
        }
    }
    return LS_OK;
}

static ls_status prepare(reader *r)
{
    const ls__schedule_spec *spec = &r->s->spec;
    ls__reading *out = r->out;
    size_t ends = (size_t)spec->ranks * (size_t)r->s->chunks;
    out->ends = malloc(ends * sizeof *out->ends);
    out->operands = malloc((size_t)spec->replicas * sizeof *out->operands);
    out->folds = malloc((size_t)spec->replicas * sizeof *out->folds);
    out->first_fold = calloc((size_t)spec->ranks + 1, sizeof *out->first_fold);
    r->at = calloc((size_t)spec->ranks, sizeof *r->at);
    if (!out->ends || !out->operands || !out->folds || !out->first_fold || !r->at)
        return ls__fail_memory("reading a schedule", ends * sizeof *out->ends);
    memset(out->ends, 0xff, ends * sizeof *out->ends);
    return LS_OK;
}

static ls_status check_spec(const ls__schedule *s, ls__local_ends ends)
{
    const ls__schedule_spec *spec = &s->spec;
    if (s->chunks < 1 || spec->ranks < 1 || spec->ranks > LS__MOST_RANKS ||
        spec->replicas < spec->ranks || spec->replicas > LS__MOST_REPLICAS)
        return ls__fail(LS_CORRUPT, "schedule of %s: %d chunks, %d replicas on %d ranks",
                        ls__algorithm_name(spec->algorithm), s->chunks, spec->replicas,
                        spec->ranks);
    if (ends == LS__LOCAL_OWN && spec->replicas != spec->ranks)
        return ls__fail(LS_INVALID, "a copy for each of %d ranks, of %d replicas: wants as many",
                        spec->ranks, spec->replicas);
    return LS_OK;
}

ls_status ls__reading_make(const ls__schedule *s, ls__local_ends ends, ls__reading *out)
{
    *out = (ls__reading){ 0 };
    reader r = { .s = s, .out = out };
    ls_status st = check_spec(s, ends);
    if (!st)
        st = prepare(&r);
    if (!st)
        st = begin(&r, ends);
    for (int round = 0; round < s->rounds && !st; round++)
        st = read_round(&r, (uint32_t)round);
    for (int rank = 0; rank < s->spec.ranks && !st; rank++)
        if (r.at[rank] < s->n_hops[rank])
            st = check_hop(&r, rank, r.at[rank], (uint32_t)s->rounds);
    if (!st)
        st = check_ends(&r);
    free(r.has.entries);
    free(r.sent.entries);
    free(r.at);
    return st;
}

void ls__reading_clear(ls__reading *r)
{
    free(r->values);
    free(r->ends);
    free(r->operands);
    free(r->folds);
    free(r->first_fold);
    *r = (ls__reading){ 0 };
}
