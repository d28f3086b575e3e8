/*
 * Reduction to one device: one chunk; all send to the root, who adds up in the tree's order and
 * sends the sum to all, or keeps it (stop_at_root).
 *
 *     to-one, 3 ranks, 8 replicas, root 1
 *              rank 0      rank 1      rank 2
 *     start    {0}{1}{2}   {3}{4}{5}   {6}{7}
 *     folds    {01}{2}     {3}{45}     {67}
 *     round 0  {01}{2}     {01234567}  {67}
 *     round 1  {01234567}  {01234567}  {01234567}
 */
#include "collective/schedule.h"

ls_status ls__schedule_to_one(ls__schedule *s)
{
    int ranks = s->spec.ranks, root = s->spec.root;
    s->chunks = 1;
    ls_status st = ls__hop_folds(s);
    if (!st)
        st = ls__hop_gather(s, 0, 0, ranks, root, 0);
    ls__tree_node nodes[LS__MOST_REPLICAS];
    int n = ls__hop_blocks(&s->spec, 0, ranks, nodes);
    if (!st)
        st = ls__hop_sum(s, 0, root, 0, nodes, &n);
    if (!st && !s->spec.stop_at_root)
        st = ls__hop_spread(s, 1, root, 0, ranks, 0, ls__tree_root(s->spec.replicas));
    return st;
}
