/* The calling thread's number of kernel threads. */
#include "kernels/threads.h"

static _Thread_local int kernel_threads = 1;

void ls__kernel_threads(int threads)
{
    kernel_threads = threads < 1 ? 1 : threads;
}

int ls__kernel_threads_get(void)
{
    return kernel_threads;
}
