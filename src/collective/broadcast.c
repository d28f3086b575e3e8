/*
 * Tree broadcast of the root's own value: ranks stand in a row, the root moved to its front; place
 * i sends to places 2i + 1 and 2i + 2. One chunk, as many rounds as the tree is deep.
 *
 *     broadcast, 7 ranks, 7 replicas, root 2
 *              rank 0  rank 1  rank 2  rank 3  rank 4  rank 5  rank 6
 *     start    {0}     {1}     {2}     {3}     {4}     {5}     {6}
 *     round 0  {0}{2}  {1}{2}  {2}     {3}     {4}     {5}     {6}
 *     round 1  {0}{2}  {1}{2}  {2}     {2}{3}  {2}{4}  {2}{5}  {2}{6}
 */
#include "collective/schedule.h"

/* Who stands at place i: the root, then the others in their order. */
static int rank_at(int i, int root)
{
    if (i == 0)
        return root;
    return i <= root ? i - 1 : i;
}

ls_status ls__schedule_broadcast(ls__schedule *s)
{
    int ranks = s->spec.ranks, root = s->spec.root;
    s->chunks = 1;
    ls_status st = LS_OK;
    for (int i = 1, depth = 1; i < ranks && !st; i++) {
        if (i + 1 == 2 << depth) /* 2^depth - 1 is the first place at this depth */
            depth++;
        st = ls__hop_move(s, depth - 1, rank_at((i - 1) / 2, root), rank_at(i, root), 0,
                          ls__tree_node_at(0, root));
    }
    return st;
}
