/* `lockstep bench`, and what its benchmarks measure with. */
#ifndef LOCKSTEP_CLI_BENCH_H
#define LOCKSTEP_CLI_BENCH_H

#include "cli.h"

extern const command cli_bench;
extern const command cli_bench_allreduce;
extern const command cli_bench_dispatch;
extern const command cli_bench_input;

double bench_now(void); /* seconds since some moment */

/* Sorts them on the way, so values[0] is the least then. `n` is at least 1. */
double bench_median(double *values, int n);

#endif
