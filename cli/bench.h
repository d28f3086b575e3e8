/* `lockstep bench`, and what its benchmarks measure with. */
#ifndef LOCKSTEP_CLI_BENCH_H
#define LOCKSTEP_CLI_BENCH_H

int cmd_bench(int argc, char **argv);
int cmd_bench_allreduce(int argc, char **argv);
int cmd_bench_dispatch(int argc, char **argv);
int cmd_bench_input(int argc, char **argv);

double bench_now(void); /* seconds since some moment */

/* Sorts them on the way, so values[0] is the least then. `n` is at least 1. */
double bench_median(double *values, int n);

#endif
