/*
 * Blocks of replicas. With q = V / D and r = V % D, the first r blocks have q + 1 replicas and
 * the others q: block d begins at d * q + min(d, r).
 */
#include "collective/placement.h"

int ls__block_begin(int replicas, int devices, int d)
{
    int each = replicas / devices, longer = replicas % devices;
    return d * each + (d < longer ? d : longer);
}

int ls__block_of(int replicas, int devices, int replica)
{
    int each = replicas / devices, longer = replicas % devices;
    int in_longer = longer * (each + 1); /* replicas in blocks with one more */
    return replica < in_longer ? replica / (each + 1) : longer + (replica - in_longer) / each;
}
