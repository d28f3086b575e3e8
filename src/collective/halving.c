/*
 * Halving and doubling: neighbours at distance 1 first, as in the tree. At each node the two sides,
 * which have both parts of all chunks between them, split the chunks: one side sends its part of a
 * chunk, the other adds. When the tree's root is reached every rank has the sum of its share; the
 * way back, pairs exchange what they have. A power of two n: log2 n rounds of halving, each rank
 * then has 1/n of the array, log2 n rounds of doubling. Any other n: a node without a right part is
 * its left part and waits.
 *
 *     halving, 4 ranks, 4 replicas
 *                    chunk 0  chunk 1  chunk 2  chunk 3
 *     start    r0    {0}      {0}      {0}      {0}
 *              r1    {1}      {1}      {1}      {1}
 *              r2    {2}      {2}      {2}      {2}
 *              r3    {3}      {3}      {3}      {3}
 *     round 0  r0    {01}     {01}     {0}      {0}
 *              r1    {1}      {1}      {01}     {01}
 *              r2    {23}     {23}     {2}      {2}
 *              r3    {3}      {3}      {23}     {23}
 *     round 1  r0    {0123}   {01}     {0}      {0}
 *              r1    {1}      {1}      {0123}   {01}
 *              r2    {23}     {0123}   {2}      {2}
 *              r3    {3}      {3}      {23}     {0123}
 *     round 2  r0    {0123}   {0123}   {0}      {0}
 *              r1    {1}      {1}      {0123}   {0123}
 *              r2    {0123}   {0123}   {2}      {2}
 *              r3    {3}      {3}      {0123}   {0123}
 *     round 3  r0    {0123}   {0123}   {0123}   {0123}
 *              r1    {0123}   {0123}   {0123}   {0123}
 *              r2    {0123}   {0123}   {0123}   {0123}
 *              r3    {0123}   {0123}   {0123}   {0123}
 *
 *     halving, 3 ranks, 3 replicas
 *                    chunk 0  chunk 1  chunk 2
 *     start    r0    {0}      {0}      {0}
 *              r1    {1}      {1}      {1}
 *              r2    {2}      {2}      {2}
 *     round 0  r0    {01}     {01}     {0}
 *              r1    {1}      {1}      {01}
 *              r2    {2}      {2}      {2}
 *     round 1  r0    {012}    {01}     {0}
 *              r1    {1}      {1}      {012}
 *              r2    {2}      {012}    {2}
 *     round 2  r0    {012}    {012}    {0}
 *              r1    {1}      {1}      {012}
 *              r2    {012}    {012}    {012}
 *     round 3  r0    {012}    {012}    {012}
 *              r1    {012}    {012}    {012}
 *              r2    {012}    {012}    {012}
 */
#include "collective/schedule.h"

typedef struct split {
    int ranks;
    int slot[LS__MOST_RANKS]; /* per chunk: the rank that ends with it */
} split;

/* Chunks are numbered so that what a full node's rank is responsible for is contiguous: slots in
 * the order of their numbers with the bits reversed, n = 8: 0 4 2 6 1 5 3 7. */
static void fill_slots(split *p)
{
    int bits = 0, n = 0;
    while (1 << bits < p->ranks)
        bits++;
    for (int i = 0; i < 1 << bits; i++) {
        int reversed = 0;
        for (int b = 0; b < bits; b++)
            reversed |= (i >> b & 1) << (bits - 1 - b);
        if (reversed < p->ranks)
            p->slot[n++] = reversed;
    }
}

/* Who has a chunk's value of node (k, m) when it is added up: the rank of the node that agrees with
 * the chunk's slot in the last k bits. A node of fewer than 2^k ranks may lack it; then the one
 * without the top bit. So it is always one of the two who had the parts. */
static int holder(const split *p, int k, int m, int chunk)
{
    int first = m << k, at = p->slot[chunk] & ((1 << k) - 1);
    while (first + at >= p->ranks) {
        int top = 1;
        while (2 * top <= at)
            top *= 2;
        at -= top;
    }
    return first + at;
}

/* Both parts of every node of level k + 1 that has two meet: up in round k, or down. */
static ls_status meet(ls__schedule *s, const split *p, int k, int round, bool up)
{
    int n = s->spec.ranks;
    ls__tree_node root = ls__tree_root(n);
    ls_status st = LS_OK;
    for (int m = 0; (2 * m + 1) << k < n; m++)
        for (int c = 0; c < s->chunks && !st; c++) {
            int left = holder(p, k, 2 * m, c), right = holder(p, k, 2 * m + 1, c);
            int has = holder(p, k + 1, m, c), other = has == left ? right : left;
            uint32_t part = ls__tree_name(k, other == left ? 2 * m : 2 * m + 1, n);
            if (up)
                st = ls__hop_move(s, round, other, has, (uint32_t)c, part);
            else
                st = ls__hop_move(s, round, has, other, (uint32_t)c, root);
        }
    for (int m = 0; up && (2 * m + 1) << k < n; m++)
        for (int c = 0; c < s->chunks && !st; c++) {
            ls__hop add = { .act = LS__ACT_ADD,
                            .round = (uint32_t)round,
                            .chunk = (uint32_t)c,
                            .node = ls__tree_name(k + 1, m, n) };
            st = ls__hop_add(s, holder(p, k + 1, m, c), add);
        }
    return st;
}

ls_status ls__schedule_halving(ls__schedule *s)
{
    split p = { .ranks = s->spec.ranks };
    fill_slots(&p);
    s->chunks = s->spec.ranks;
    int levels = 0;
    while (1 << levels < p.ranks)
        levels++;
    ls_status st = LS_OK;
    for (int k = 0; k < levels && !st; k++)
        st = meet(s, &p, k, k, true);
    for (int k = levels - 1; k >= 0 && !st; k--)
        st = meet(s, &p, k, 2 * levels - 1 - k, false);
    return st;
}
