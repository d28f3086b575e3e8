/*
 * How many threads the kernels called from this thread may use (default 1); what
 * is below 1 counts as 1. Part of the numeric profile: oneDNN's backward-weights
 * differs in its last bits between thread counts.
 */
#ifndef LS__KERNELS_THREADS_H
#define LS__KERNELS_THREADS_H

void ls__kernel_threads(int threads);
int ls__kernel_threads_get(void);

#endif
