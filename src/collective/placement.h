/*
 * Which device hosts which replica, as data: contiguous, balanced blocks of replica numbers.
 * Pure functions, so that any placement is tested without threads.
 */
#ifndef LS__COLLECTIVE_PLACEMENT_H
#define LS__COLLECTIVE_PLACEMENT_H

/* The first replica of block `d` of `devices`: the first replicas % devices blocks have one
 * more. Block d ends where d + 1 begins; ls__block_begin(V, D, D) == V. */
int ls__block_begin(int replicas, int devices, int d);

/* The block that holds a replica. */
int ls__block_of(int replicas, int devices, int replica);

#endif
