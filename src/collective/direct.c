/*
 * Direct exchange: as many chunks as ranks, and rank c is the owner of chunk c. All send their part
 * of chunk c to its owner, who adds up in the tree's order and sends the sum to all. Two rounds,
 * the bytes of a ring, the tree's bits. Any number of replicas: a rank that has several folds them
 * first and sends the nodes of its block.
 *
 *     direct, 3 ranks, 8 replicas
 *                    chunk 0     chunk 1     chunk 2
 *     start    r0    {0}{1}{2}   {0}{1}{2}   {0}{1}{2}
 *              r1    {3}{4}{5}   {3}{4}{5}   {3}{4}{5}
 *              r2    {6}{7}      {6}{7}      {6}{7}
 *     folds    r0    {01}{2}     {01}{2}     {01}{2}
 *              r1    {3}{45}     {3}{45}     {3}{45}
 *              r2    {67}        {67}        {67}
 *     round 0  r0    {01234567}  {01}{2}     {01}{2}
 *              r1    {3}{45}     {01234567}  {3}{45}
 *              r2    {67}        {67}        {01234567}
 *     round 1  r0    {01234567}  {01234567}  {01234567}
 *              r1    {01234567}  {01234567}  {01234567}
 *              r2    {01234567}  {01234567}  {01234567}
 */
#include "collective/schedule.h"

/* What owner c adds up when all have sent. */
static ls_status add_up(ls__schedule *s, int c)
{
    ls__tree_node nodes[LS__MOST_REPLICAS];
    int n = ls__hop_blocks(&s->spec, 0, s->spec.ranks, nodes);
    return ls__hop_sum(s, 0, c, (uint32_t)c, nodes, &n);
}

ls_status ls__schedule_direct(ls__schedule *s)
{
    int ranks = s->spec.ranks;
    s->chunks = ranks;
    ls_status st = ls__hop_folds(s);
    for (int c = 0; c < ranks && !st; c++)
        st = ls__hop_gather(s, 0, 0, ranks, c, (uint32_t)c);
    for (int c = 0; c < ranks && !st; c++)
        st = add_up(s, c);
    ls__tree_node root = ls__tree_root(s->spec.replicas);
    for (int c = 0; c < ranks && !st; c++)
        st = ls__hop_spread(s, 1, c, 0, ranks, (uint32_t)c, root);
    return st;
}
