/*
 * A collective written down as data: for each rank the list of hops it takes. Pure: no memory
 * of tensors, no threads, no sockets. Readers: the verifier (verify.c), the executor in shared
 * memory (local.h), later those over transports, the cost model and the flight recorder.
 *
 * Words. rank: who takes part (a device, a worker). replica: whose values are added up; rank r
 * has those of block r, contiguous and balanced (tree.h). chunk: one of equal slices of the
 * array. node: which partial sum a hop carries (tree.h), so an operand is (rank, chunk, node).
 * round: hops of one round happen at once; a rank's hops of round t begin when those of round
 * t - 1 are done.
 *
 * In a round a rank sends values it had when the round began, receives, and then adds, in the
 * order of its list; folds (below) come before its first send. It keeps what it sends and what it
 * added from: values are never changed.
 *
 *     direct, 2 ranks, chunks 0 1      rank 0                      rank 1
 *     round 0                          send 1 {0} to 1             send 0 {1} to 0
 *                                      receive 0 {1} from 1        receive 1 {0} from 0
 *                                      add 0 {01}                  add 1 {01}
 *     round 1                          send 0 {01} to 1            send 1 {01} to 0
 *                                      receive 1 {01} from 1       receive 0 {01} from 0
 */
#ifndef LS__COLLECTIVE_SCHEDULE_H
#define LS__COLLECTIVE_SCHEDULE_H

#include <lockstep/status.h>
#include <stddef.h>
#include <stdint.h>

#include "collective/tree.h"

typedef enum ls__act {
    LS__ACT_SEND,    /* (chunk, node) to peer */
    LS__ACT_RECEIVE, /* (chunk, node) from peer, who sends it in the same round */
    LS__ACT_ADD      /* node = its left part + its right part, both of which it has */
} ls__act;

/* Folds: sums of a rank's own replicas, over the whole array. They come first in its list, in
 * round 0, in the order in which the replicas finish, so that they can be done as they do. A sum
 * whose both parts are the rank's own is always a fold. */
#define LS__EVERY_CHUNK UINT32_MAX

typedef struct ls__hop {
    uint8_t act;
    uint16_t peer; /* 0 for add */
    uint32_t round;
    uint32_t chunk;
    uint32_t node; /* ls__tree_node, or a chain of the ring */
} ls__hop;

/* The ring adds in an order of its own: a chain of n values from f on is own + received,
 * x[f+n-1] + (... + (x[f+1] + x[f])), numbers mod ranks. A chain of 1 is x[f]. The numbers are
 * positions in the ring of the chunk's subdivision: x[p] is the value of rank
 * ls__ring_rank(spec, chunk, p). */
#define LS__CHAIN 0x80000000u
static inline uint32_t ls__chain(int first, int count)
{
    return LS__CHAIN | (uint32_t)first << 12 | (uint32_t)count;
}
static inline int ls__chain_first(uint32_t node)
{
    return (int)(node >> 12 & 0x7ffff);
}
static inline int ls__chain_count(uint32_t node)
{
    return (int)(node & 0xfff);
}

/* X(id, name, same bits, blocks, rooted, make). same bits: adds in the tree's order, as all others
 * that do. blocks: a rank may have several replicas. rooted: one rank is the root. */
#define LS__ALGORITHM_LIST(X)                                                                      \
    X(DIRECT, "direct", true, true, false, ls__schedule_direct)                                    \
    X(RING, "ring", false, false, false, ls__schedule_ring)                                        \
    X(HALVING, "halving", true, false, false, ls__schedule_halving)                                \
    X(HIERARCHICAL, "hierarchical", true, true, false, ls__schedule_hierarchical)                  \
    X(TO_ONE, "to-one", true, true, true, ls__schedule_to_one)                                     \
    X(BROADCAST, "broadcast", true, false, true, ls__schedule_broadcast)

typedef enum ls__algorithm {
#define LS__ALGORITHM_ENUM(id, name, same_bits, blocks, rooted, make) LS__ALGORITHM_##id,
    LS__ALGORITHM_LIST(LS__ALGORITHM_ENUM)
#undef LS__ALGORITHM_ENUM
        LS__ALGORITHMS
} ls__algorithm;

const char *ls__algorithm_name(ls__algorithm a);
bool ls__algorithm_same_bits(ls__algorithm a, int ranks);

enum { LS__MOST_RANKS = 1024, LS__MOST_SUBDIVISIONS = 2 * LS__MOST_RANKS };

typedef struct ls__schedule_spec {
    ls__algorithm algorithm;
    int ranks;          /* 1 to LS__MOST_RANKS */
    int replicas;       /* V >= ranks; equal for ring, halving and broadcast. 0: as many as ranks */
    int root;           /* of to-one and broadcast */
    int subdivisions;   /* of the ring, 1 or more: each rank's chunk in as many parts, whose rings
                         * start and turn differently (ring.c); 0: 1 */
    int ranks_per_host; /* of the ring's subdivisions; 0: all ranks */
    bool stop_at_root;  /* of to-one: the sum is wanted at the root alone (a reduction) */
} ls__schedule_spec;

typedef struct ls__schedule {
    ls__schedule_spec spec; /* with defaults filled in */
    int chunks;
    int rounds;     /* 0: nothing to do, as for one replica on one rank */
    ls__hop **hops; /* per rank, in the order of rounds; in a round adds come last */
    int *n_hops;
} ls__schedule;

/* LS_INVALID for a spec out of range, LS_UNSUPPORTED for V > ranks where it must be equal. */
ls_status ls__schedule_make(const ls__schedule_spec *spec, ls__schedule **out);
void ls__schedule_free(ls__schedule *s);

/* Proves it: every send has its receive in the same round and the reverse (so nothing waits
 * for ever), nobody uses what he does not have, nothing is lost or done twice, and at the end
 * every rank that should has, for every chunk, the promised sum: the tree's root as an expression
 * over replicas, the ring's chain of all ranks, the broadcast's value. LS_CORRUPT names rank,
 * round and hop. */
ls_status ls__schedule_verify(const ls__schedule *s);

/* Malloc'ed text: what each rank has after each round, as in the pictures above the algorithms.
 * NULL: out of memory (error recorded). */
char *ls__schedule_text(const ls__schedule *s);

/* A node as in that text, "{01}". */
void ls__node_text(const ls__schedule_spec *spec, uint32_t chunk, uint32_t node, char *out,
                   size_t size);

/* ---- for readers: what a node is, of the tree or a chain ----------------------------- */

/* The two nodes whose sum it is (an add is left + right, in this order); false: a replica's own. */
bool ls__node_parts(const ls__schedule_spec *spec, uint32_t node, uint32_t *left, uint32_t *right);

/* The replica whose own value it is in this chunk; -1: a sum. */
int ls__node_replica(const ls__schedule_spec *spec, uint32_t chunk, uint32_t node);

/* ---- for the algorithms, a file each ------------------------------------------------ */

/* Adds a hop to a rank's list; LS_NO_MEMORY. */
ls_status ls__hop_add(ls__schedule *s, int rank, ls__hop hop);

/* Both ends of a transfer. So what one rank sends another in a round is received in that order. */
ls_status ls__hop_move(ls__schedule *s, int round, int from, int to, uint32_t chunk, uint32_t node);

/* The folds of all ranks: round 0, every chunk. */
ls_status ls__hop_folds(ls__schedule *s);

/* The nodes of the blocks of ranks [rank, end_rank), in replica order; how many. */
int ls__hop_blocks(const ls__schedule_spec *spec, int rank, int end_rank, ls__tree_node *out);

/* Ranks [rank, end_rank) send the nodes of their blocks to `to`, who may be one of them. */
ls_status ls__hop_gather(ls__schedule *s, int round, int rank, int end_rank, int to,
                         uint32_t chunk);

/* `from` sends a node to ranks [rank, end_rank) but itself. */
ls_status ls__hop_spread(ls__schedule *s, int round, int from, int rank, int end_rank,
                         uint32_t chunk, uint32_t node);

/* A rank adds up what whole nodes it can of `n` nodes in replica order; leaves the nodes that
 * remain, and how many. */
ls_status ls__hop_sum(ls__schedule *s, int round, int rank, uint32_t chunk, ls__tree_node *nodes,
                      int *n);

/* Fills chunks, rounds and hops of an empty schedule whose spec is checked. */
ls_status ls__schedule_direct(ls__schedule *s);
ls_status ls__schedule_ring(ls__schedule *s);
ls_status ls__schedule_halving(ls__schedule *s);
ls_status ls__schedule_hierarchical(ls__schedule *s);
ls_status ls__schedule_to_one(ls__schedule *s);
ls_status ls__schedule_broadcast(ls__schedule *s);

/* ---- the ring's own rules (ring.c) ----------------------------------------------------- */

/* How many subdivisions an array of so many bytes gets: the fewest with chunks of at most
 * 4 MiB, and no more than two for each rank of a host. ranks_per_host 0: all on one host. */
int ls__ring_subdivisions(int64_t bytes, int ranks, int ranks_per_host);

/* The rank at a position of the ring of this chunk's subdivision. spec with defaults filled in. */
int ls__ring_rank(const ls__schedule_spec *spec, uint32_t chunk, int position);

#endif
