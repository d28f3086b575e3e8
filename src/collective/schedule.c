/*
 * Schedules: made from a spec by the algorithm's own file, freed, and the hops out of which the
 * algorithms are made. A list grows by doubling; rounds are counted as hops are added.
 *
 * Invariant: a rank's list is in the order of rounds, and in a round what it adds comes behind what
 * it sends and receives. The algorithms keep it; the verifier checks it.
 */
#include "collective/schedule.h"

#include <stdlib.h>

#include "base/status.h"
#include "collective/placement.h"

static const struct {
    const char *name;
    ls_status (*make)(ls__schedule *s);
    bool same_bits;
    bool blocks; /* a rank may have several replicas */
    bool rooted;
} algorithms[] = {
#define ALGORITHM(id, name, same_bits, blocks, rooted, make)                                       \
    { name, make, same_bits, blocks, rooted },
    LS__ALGORITHM_LIST(ALGORITHM)
#undef ALGORITHM
};

const char *ls__algorithm_name(ls__algorithm a)
{
    return (unsigned)a < LS__ALGORITHMS ? algorithms[a].name : "unknown";
}

bool ls__algorithm_same_bits(ls__algorithm a, int ranks)
{
    return ranks <= 2 || algorithms[a].same_bits; /* a + b = b + a */
}

/* ---- specs ---------------------------------------------------------------------- */

static ls_status out_of_range(const char *what, int given, int least, int most)
{
    return ls__hint(ls__fail(LS_INVALID, "schedule: %s is %d", what, given),
                    "%s must be from %d to %d", what, least, most);
}

static ls_status check_ring(ls__schedule_spec *spec)
{
    if (spec->subdivisions == 0)
        spec->subdivisions = 1;
    if (spec->ranks_per_host == 0)
        spec->ranks_per_host = spec->ranks;
    if (spec->subdivisions < 1 || spec->subdivisions > LS__MOST_SUBDIVISIONS)
        return out_of_range("subdivisions", spec->subdivisions, 1, LS__MOST_SUBDIVISIONS);
    if (spec->ranks_per_host < 1 || spec->ranks_per_host > spec->ranks)
        return out_of_range("ranks per host", spec->ranks_per_host, 1, spec->ranks);
    return LS_OK;
}

/* Fills in defaults, and zeros what the algorithm does not look at. */
static ls_status check(ls__schedule_spec *spec)
{
    if ((unsigned)spec->algorithm >= LS__ALGORITHMS)
        return out_of_range("algorithm", (int)spec->algorithm, 0, LS__ALGORITHMS - 1);
    if (spec->ranks < 1 || spec->ranks > LS__MOST_RANKS)
        return out_of_range("ranks", spec->ranks, 1, LS__MOST_RANKS);
    if (spec->replicas == 0)
        spec->replicas = spec->ranks;
    if (spec->replicas < spec->ranks || spec->replicas > LS__MOST_REPLICAS)
        return out_of_range("replicas", spec->replicas, spec->ranks, LS__MOST_REPLICAS);
    if (spec->replicas > spec->ranks && !algorithms[spec->algorithm].blocks)
        return ls__hint(ls__fail(LS_UNSUPPORTED, "schedule: %s of %d replicas on %d ranks",
                                 algorithms[spec->algorithm].name, spec->replicas, spec->ranks),
                        "it wants a rank for each replica; direct, hierarchical and to-one do not");
    if (!algorithms[spec->algorithm].rooted)
        spec->root = 0;
    if (spec->root < 0 || spec->root >= spec->ranks)
        return out_of_range("root", spec->root, 0, spec->ranks - 1);
    if (spec->algorithm != LS__ALGORITHM_TO_ONE)
        spec->stop_at_root = false;
    if (spec->algorithm == LS__ALGORITHM_RING)
        return check_ring(spec);
    spec->subdivisions = 1;
    spec->ranks_per_host = spec->ranks;
    return LS_OK;
}

/* ---- schedules -------------------------------------------------------------------- */

ls_status ls__schedule_make(const ls__schedule_spec *spec, ls__schedule **out)
{
    ls__schedule_spec full = *spec;
    ls_status st = check(&full);
    if (st)
        return st;
    ls__schedule *s = calloc(1, sizeof *s);
    if (!s)
        return ls__fail_memory("a schedule", sizeof *s);
    s->spec = full;
    s->hops = calloc((size_t)full.ranks, sizeof *s->hops);
    s->n_hops = calloc((size_t)full.ranks, sizeof *s->n_hops);
    if (s->hops && s->n_hops)
        st = algorithms[full.algorithm].make(s);
    else
        st = ls__fail_memory("a schedule's ranks", (size_t)full.ranks * sizeof *s->hops);
    if (st) {
        ls__schedule_free(s);
        return st;
    }
    *out = s;
    return LS_OK;
}

void ls__schedule_free(ls__schedule *s)
{
    if (!s)
        return;
    for (int r = 0; s->hops && r < s->spec.ranks; r++)
        free(s->hops[r]);
    free(s->hops);
    free(s->n_hops);
    free(s);
}

/* ---- nodes --------------------------------------------------------------------------- */

bool ls__node_parts(const ls__schedule_spec *spec, uint32_t node, uint32_t *left, uint32_t *right)
{
    if (!(node & LS__CHAIN))
        return ls__tree_parts(node, spec->replicas, left, right);
    int first = ls__chain_first(node), count = ls__chain_count(node);
    if (count < 2)
        return false;
    *left = ls__chain((first + count - 1) % spec->ranks, 1);
    *right = ls__chain(first, count - 1);
    return true;
}

int ls__node_replica(const ls__schedule_spec *spec, uint32_t chunk, uint32_t node)
{
    if (!(node & LS__CHAIN))
        return ls__tree_level(node) ? -1 : ls__tree_index(node);
    return ls__chain_count(node) == 1 ? ls__ring_rank(spec, chunk, ls__chain_first(node)) : -1;
}

/* ---- hops ---------------------------------------------------------------------------- */

ls_status ls__hop_add(ls__schedule *s, int rank, ls__hop hop)
{
    size_t n = (size_t)s->n_hops[rank];
    if ((n & (n - 1)) == 0) { /* full: 0, 1, 2, 4, 8, ... */
        size_t bytes = (n ? 2 * n : 1) * sizeof hop;
        ls__hop *more = realloc(s->hops[rank], bytes);
        if (!more)
            return ls__fail_memory("a schedule's hops", bytes);
        s->hops[rank] = more;
    }
    s->hops[rank][n] = hop;
    s->n_hops[rank]++;
    if ((int)hop.round >= s->rounds)
        s->rounds = (int)hop.round + 1;
    return LS_OK;
}

ls_status ls__hop_move(ls__schedule *s, int round, int from, int to, uint32_t chunk, uint32_t node)
{
    ls__hop send = { .act = LS__ACT_SEND,
                     .peer = (uint16_t)to,
                     .round = (uint32_t)round,
                     .chunk = chunk,
                     .node = node };
    ls__hop receive = send;
    receive.act = LS__ACT_RECEIVE;
    receive.peer = (uint16_t)from;
    ls_status st = ls__hop_add(s, from, send);
    return st ? st : ls__hop_add(s, to, receive);
}

ls_status ls__hop_sum(ls__schedule *s, int round, int rank, uint32_t chunk, ls__tree_node *nodes,
                      int *n)
{
    int top = 0; /* nodes[0 .. top) are done, no two neighbours have a sum */
    for (int i = 0; i < *n; i++) {
        nodes[top++] = nodes[i];
        ls__tree_node sum;
        while (top > 1 && ls__tree_sum(nodes[top - 2], nodes[top - 1], s->spec.replicas, &sum)) {
            ls__hop add = {
                .act = LS__ACT_ADD, .round = (uint32_t)round, .chunk = chunk, .node = sum
            };
            ls_status st = ls__hop_add(s, rank, add);
            if (st)
                return st;
            nodes[--top - 1] = sum;
        }
    }
    *n = top;
    return LS_OK;
}

int ls__hop_blocks(const ls__schedule_spec *spec, int rank, int end_rank, ls__tree_node *out)
{
    int n = 0;
    for (; rank < end_rank; rank++)
        n += ls__tree_block(ls__block_begin(spec->replicas, spec->ranks, rank),
                            ls__block_begin(spec->replicas, spec->ranks, rank + 1), spec->replicas,
                            out + n);
    return n;
}

ls_status ls__hop_folds(ls__schedule *s)
{
    const ls__schedule_spec *spec = &s->spec;
    ls_status st = LS_OK;
    for (int rank = 0; rank < spec->ranks && !st; rank++) {
        ls__tree_node nodes[LS__MOST_REPLICAS];
        int first = ls__block_begin(spec->replicas, spec->ranks, rank);
        int n = ls__block_begin(spec->replicas, spec->ranks, rank + 1) - first;
        for (int i = 0; i < n; i++)
            nodes[i] = ls__tree_node_at(0, first + i);
        st = ls__hop_sum(s, 0, rank, LS__EVERY_CHUNK, nodes, &n);
    }
    return st;
}

ls_status ls__hop_gather(ls__schedule *s, int round, int rank, int end_rank, int to, uint32_t chunk)
{
    for (; rank < end_rank; rank++) {
        ls__tree_node nodes[LS__MOST_REPLICAS];
        int n = rank == to ? 0 : ls__hop_blocks(&s->spec, rank, rank + 1, nodes);
        for (int i = 0; i < n; i++) {
            ls_status st = ls__hop_move(s, round, rank, to, chunk, nodes[i]);
            if (st)
                return st;
        }
    }
    return LS_OK;
}

ls_status ls__hop_spread(ls__schedule *s, int round, int from, int rank, int end_rank,
                         uint32_t chunk, uint32_t node)
{
    for (; rank < end_rank; rank++) {
        ls_status st = rank == from ? LS_OK : ls__hop_move(s, round, from, rank, chunk, node);
        if (st)
            return st;
    }
    return LS_OK;
}
