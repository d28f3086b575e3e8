/*
 * `lockstep bench`: the table of benchmarks, and the clock they share. How each of them measures
 * is told in its own file.
 */
#include "bench.h"

#include <stdlib.h>
#include <time.h>

#include "cli.h"

static int cmd_help(int argc, char **argv);

static const command commands[] = {
    { "allreduce", "[OPTION]...", "all-reduce of memory, size by size", cmd_bench_allreduce },
    { "dispatch", "[OPTION]...", "what a run costs before any maths", cmd_bench_dispatch },
    { "input", "--data FILES [OPTION]...", "reading and parsing records", cmd_bench_input },
    { "--help", "", "show this text", cmd_help },
};

static const command_table table = {
    .name = "lockstep bench",
    .what = "Measures this machine. Each of them has a --help of its own.",
    .count = sizeof commands / sizeof commands[0],
    .commands = commands
};

static int cmd_help(int argc, char **argv)
{
    return cli_print_commands(&table, argc, argv);
}

int cmd_bench(int argc, char **argv)
{
    return cli_run_command(&table, argc, argv);
}

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
