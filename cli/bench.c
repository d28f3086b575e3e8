/*
 * `lockstep bench`: the table of benchmarks, and the clock they share. How each of them measures
 * is told in its own file.
 */
#include "bench.h"

#include <stdlib.h>
#include <time.h>

static const command *const commands[] = {
    &cli_bench_allreduce,
    &cli_bench_dispatch,
    &cli_bench_input,
};

static const command_table table = { .name = "lockstep bench",
                                     .what = "Measures this machine.",
                                     .count = sizeof commands / sizeof commands[0],
                                     .commands = commands };

const command cli_bench = {
    .name = "bench", .arguments = "WHAT", .help = "measure this machine", .commands = &table
};

double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, ascending);
    return values[n / 2];
}
