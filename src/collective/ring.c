/*
 * The classic ring: each rank sends to the next only. Chunk c starts at position c of its ring,
 * gathers one value a round and is complete at position c - 1; a second turn carries it to all. Its
 * order of addition is a chain that differs from chunk to chunk: fixed, but not the tree's
 * (schedule.h), so above two ranks these are not the bits of the others.
 *
 * A large array is cut finer: s subdivisions give ranks * s chunks, and subdivision i = c % s goes
 * over a ring of its own, which starts elsewhere inside each host and turns the other way there
 * when i is odd, so that subdivisions use different links.
 *
 *     ring, 3 ranks, 3 replicas
 *                    chunk 0  chunk 1  chunk 2
 *     start    r0    {0}      {0}      {0}
 *              r1    {1}      {1}      {1}
 *              r2    {2}      {2}      {2}
 *     round 0  r0    {0}      {0}      {20}
 *              r1    {01}     {1}      {1}
 *              r2    {2}      {12}     {2}
 *     round 1  r0    {0}      {120}    {20}
 *              r1    {01}     {1}      {201}
 *              r2    {012}    {12}     {2}
 *     round 2  r0    {012}    {120}    {20}
 *              r1    {01}     {120}    {201}
 *              r2    {012}    {12}     {201}
 *     round 3  r0    {012}    {120}    {201}
 *              r1    {012}    {120}    {201}
 *              r2    {012}    {120}    {201}
 *
 *     ring, 3 ranks, 3 replicas, 2 subdivisions
 *                    chunk 0  chunk 1  chunk 2  chunk 3  chunk 4  chunk 5
 *     start    r0    {0}      {0}      {0}      {0}      {0}      {0}
 *              r1    {1}      {1}      {1}      {1}      {1}      {1}
 *              r2    {2}      {2}      {2}      {2}      {2}      {2}
 *     round 0  r0    {0}      {10}     {0}      {0}      {20}     {0}
 *              r1    {01}     {1}      {1}      {1}      {1}      {21}
 *              r2    {2}      {2}      {12}     {02}     {2}      {2}
 *     round 1  r0    {0}      {10}     {120}    {0}      {20}     {210}
 *              r1    {01}     {1}      {1}      {021}    {201}    {21}
 *              r2    {012}    {102}    {12}     {02}     {2}      {2}
 *     round 2  r0    {012}    {10}     {120}    {021}    {20}     {210}
 *              r1    {01}     {102}    {120}    {021}    {201}    {21}
 *              r2    {012}    {102}    {12}     {02}     {201}    {210}
 *     round 3  r0    {012}    {102}    {120}    {021}    {201}    {210}
 *              r1    {012}    {102}    {120}    {021}    {201}    {210}
 *              r2    {012}    {102}    {120}    {021}    {201}    {210}
 */
#include "collective/schedule.h"

enum { MOST_CHUNK_BYTES = 4 << 20 };

/* Ranks are host after host; where they do not divide evenly, the last host has fewer. */
static int hosts(int ranks, int ranks_per_host)
{
    return (ranks + ranks_per_host - 1) / ranks_per_host;
}

int ls__ring_subdivisions(int64_t bytes, int ranks, int ranks_per_host)
{
    if (ranks_per_host == 0)
        ranks_per_host = ranks;
    int most = 2 * (ranks / hosts(ranks, ranks_per_host)), s = 1;
    while (s < most && bytes / ((int64_t)ranks * s) > MOST_CHUNK_BYTES)
        s++;
    return s;
}

int ls__ring_rank(const ls__schedule_spec *spec, uint32_t chunk, int position)
{
    int sub = (int)(chunk % (uint32_t)spec->subdivisions);
    int stride = spec->ranks / hosts(spec->ranks, spec->ranks_per_host) / spec->subdivisions;
    int first = position - position % spec->ranks_per_host; /* of this position's host */
    int n = spec->ranks - first < spec->ranks_per_host ? spec->ranks - first : spec->ranks_per_host;
    int i = (position - first + (stride ? stride : 1) * sub) % n;
    return first + (sub % 2 ? n - 1 - i : i);
}

/* What the ring of chunk c does in a round: `at` is the position that sends. */
static ls_status pass_on(ls__schedule *s, int round, uint32_t c, int at, uint32_t node)
{
    int to = (at + 1) % s->spec.ranks;
    return ls__hop_move(s, round, ls__ring_rank(&s->spec, c, at), ls__ring_rank(&s->spec, c, to), c,
                        node);
}

/* First turn, round t: the sum of t + 1 values of chunk c goes one further and gets one more. */
static ls_status gather_round(ls__schedule *s, int t)
{
    int ranks = s->spec.ranks, subs = s->spec.subdivisions;
    ls_status st = LS_OK;
    for (int c = 0; c < s->chunks && !st; c++)
        st = pass_on(s, t, (uint32_t)c, (c / subs + t) % ranks, ls__chain(c / subs, t + 1));
    for (int c = 0; c < s->chunks && !st; c++) {
        ls__hop add = { .act = LS__ACT_ADD,
                        .round = (uint32_t)t,
                        .chunk = (uint32_t)c,
                        .node = ls__chain(c / subs, t + 2) };
        st = ls__hop_add(s, ls__ring_rank(&s->spec, add.chunk, (c / subs + t + 1) % ranks), add);
    }
    return st;
}

ls_status ls__schedule_ring(ls__schedule *s)
{
    int ranks = s->spec.ranks, subs = s->spec.subdivisions;
    s->chunks = ranks * subs;
    ls_status st = LS_OK;
    for (int t = 0; t < ranks - 1 && !st; t++)
        st = gather_round(s, t);
    for (int t = ranks - 1; t < 2 * (ranks - 1); t++)
        for (int c = 0; c < s->chunks && !st; c++)
            st = pass_on(s, t, (uint32_t)c, (c / subs + t) % ranks, ls__chain(c / subs, ranks));
    return st;
}
