/*
 * Buckets: which gradients lie side by side. Invariant: the borders depend on the
 * sizes and their order alone, so every replica and worker finds the same ones.
 */
#include "trace/plan.h"

int ls__bucket_counts(int n, const size_t *bytes, size_t cap, int *counts)
{
    int buckets = 0;
    size_t used = 0;
    for (int i = 0; i < n; i++) {
        if (buckets == 0 || bytes[i] > cap - (used < cap ? used : cap)) {
            counts[buckets++] = 0;
            used = 0;
        }
        counts[buckets - 1]++;
        used += bytes[i];
    }
    return buckets;
}
