/*
 * Hierarchical copy: the ranks are in two halves, and for each chunk each half has a main. Members
 * send to their half's main, the second main to the first, who completes the sum; it returns the
 * same way. Every main adds what whole nodes of the tree it has and passes on those it cannot add,
 * so the bits are the tree's whatever the halves are.
 *
 * Mains move from chunk to chunk, as TensorFlow's do from tensor to tensor: main0 = c mod n,
 * main1 = main0 + n/2. The second half has one more when n is odd.
 *
 *     hierarchical, 5 ranks, 5 replicas
 *                    chunk 0  chunk 1  chunk 2  chunk 3  chunk 4
 *     start    r0    {0}      {0}      {0}      {0}      {0}
 *              r1    {1}      {1}      {1}      {1}      {1}
 *              r2    {2}      {2}      {2}      {2}      {2}
 *              r3    {3}      {3}      {3}      {3}      {3}
 *              r4    {4}      {4}      {4}      {4}      {4}
 *     round 0  r0    {01}     {0}      {01}     {01}     {0}
 *              r1    {1}      {01}     {1}      {1}      {01}
 *              r2    {23}{4}  {2}      {23}{4}  {2}      {2}
 *              r3    {3}      {23}{4}  {3}      {23}{4}  {3}
 *              r4    {4}      {4}      {4}      {4}      {23}{4}
 *     round 1  r0    {01234}  {0}      {01}     {01}     {0}
 *              r1    {1}      {01234}  {1}      {1}      {01}
 *              r2    {23}{4}  {2}      {01234}  {2}      {2}
 *              r3    {3}      {23}{4}  {3}      {01234}  {3}
 *              r4    {4}      {4}      {4}      {4}      {01234}
 *     round 2  r0    {01234}  {0}      {01234}  {01234}  {0}
 *              r1    {1}      {01234}  {1}      {1}      {01234}
 *              r2    {01234}  {2}      {01234}  {2}      {2}
 *              r3    {3}      {01234}  {3}      {01234}  {3}
 *              r4    {4}      {4}      {4}      {4}      {01234}
 *     round 3  r0    {01234}  {01234}  {01234}  {01234}  {01234}
 *              r1    {01234}  {01234}  {01234}  {01234}  {01234}
 *              r2    {01234}  {01234}  {01234}  {01234}  {01234}
 *              r3    {01234}  {01234}  {01234}  {01234}  {01234}
 *              r4    {01234}  {01234}  {01234}  {01234}  {01234}
 */
#include "collective/placement.h"
#include "collective/schedule.h"

typedef struct half {
    int first, end, main;
} half;

static bool within(const half *h, int rank)
{
    return rank >= h->first && rank < h->end;
}

/* The halves of chunk c; h[0] is the one that has main0. */
static void halve(int ranks, int c, half h[2])
{
    int g = ranks / 2, main0 = c % ranks;
    half low = { .first = 0, .end = g }, high = { .first = g, .end = ranks };
    h[0] = main0 < g ? low : high;
    h[1] = main0 < g ? high : low;
    h[0].main = main0;
    h[1].main = (main0 + g) % ranks;
    if (!within(&h[1], h[1].main)) /* odd n, main0 = g: the next one */
        h[1].main = (h[1].main + 1) % ranks;
}

/* What a half's main has when it added all it can. */
static int nodes_of(const ls__schedule_spec *spec, const half *h, ls__tree_node *out)
{
    return ls__tree_block(ls__block_begin(spec->replicas, spec->ranks, h->first),
                          ls__block_begin(spec->replicas, spec->ranks, h->end), spec->replicas,
                          out);
}

/* ---- the steps, each for one chunk --------------------------------------------------- */

static ls_status members_to_mains(ls__schedule *s, int c, const half h[2])
{
    ls_status st = LS_OK;
    for (int i = 0; i < 2 && !st; i++)
        st = ls__hop_gather(s, 0, h[i].first, h[i].end, h[i].main, (uint32_t)c);
    return st;
}

static ls_status mains_add(ls__schedule *s, int c, const half h[2])
{
    ls_status st = LS_OK;
    for (int i = 0; i < 2 && !st; i++) {
        ls__tree_node nodes[LS__MOST_REPLICAS];
        int n = ls__hop_blocks(&s->spec, h[i].first, h[i].end, nodes);
        st = ls__hop_sum(s, 0, h[i].main, (uint32_t)c, nodes, &n);
    }
    return st;
}

static ls_status main1_to_main0(ls__schedule *s, int c, const half h[2])
{
    ls__tree_node nodes[LS__MOST_BLOCK_NODES];
    int n = nodes_of(&s->spec, &h[1], nodes);
    ls_status st = LS_OK;
    for (int i = 0; i < n && !st; i++)
        st = ls__hop_move(s, 1, h[1].main, h[0].main, (uint32_t)c, nodes[i]);
    return st;
}

static ls_status main0_adds(ls__schedule *s, int c, const half h[2])
{
    const half *low = h[0].first == 0 ? &h[0] : &h[1], *high = low == h ? &h[1] : &h[0];
    ls__tree_node nodes[2 * LS__MOST_BLOCK_NODES];
    int n = nodes_of(&s->spec, low, nodes);
    n += nodes_of(&s->spec, high, nodes + n);
    return ls__hop_sum(s, 1, h[0].main, (uint32_t)c, nodes, &n);
}

static ls_status main0_to_main1(ls__schedule *s, int c, const half h[2])
{
    return ls__hop_move(s, 2, h[0].main, h[1].main, (uint32_t)c, ls__tree_root(s->spec.replicas));
}

static ls_status mains_to_members(ls__schedule *s, int c, const half h[2])
{
    ls_status st = LS_OK;
    for (int i = 0; i < 2 && !st; i++)
        st = ls__hop_spread(s, 3, h[i].main, h[i].first, h[i].end, (uint32_t)c,
                            ls__tree_root(s->spec.replicas));
    return st;
}

ls_status ls__schedule_hierarchical(ls__schedule *s)
{
    static ls_status (*const steps[6])(ls__schedule *, int, const half *) = {
        members_to_mains, mains_add, main1_to_main0, main0_adds, main0_to_main1, mains_to_members
    };
    s->chunks = s->spec.ranks;
    ls_status st = ls__hop_folds(s);
    for (int i = 0; i < 6 && s->spec.ranks > 1; i++)
        for (int c = 0; c < s->chunks && !st; c++) {
            half h[2];
            halve(s->spec.ranks, c, h);
            st = steps[i](s, c, h);
        }
    return st;
}
