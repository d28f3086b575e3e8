/* A row of bench/kernels.c: its calls are timed by turns, and a line is printed. */
#ifndef BENCH_KERNELS_REPORT_H
#define BENCH_KERNELS_REPORT_H

#include "kernels_dnnl.h"

/* calls[0] is ours, [1] the reorders (or bench_nothing), [2] eager, then oneDNN's. */
enum { OURS, REORDERS, EAGER, FIRST_RIVAL, MOST_CALLS = 16 };

void bench_nothing(void *context);

/* Whether a line follows for each of oneDNN's. */
extern bool bench_every_call;

void bench_report(const char *model, const char *layer, const char *pass, bench_call *calls, int n);
void bench_free_rivals(bench_call *calls, int n); /* of n calls in all */
void bench_summary(void);

/* Convolutions by Winograd's algorithm, where it pays: forward, and both gradients in one
 * (kernels_winograd.c). */
void bench_winograd_rows(const char *model, const char *layer, const ls__conv_shape *s);

#endif
