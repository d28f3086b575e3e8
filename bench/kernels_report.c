/* The calls of a row by turns, and what they took. */
#include "kernels_report.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Turns per row: at least LEAST, then until the row has run for BUDGET_US. The
 * same for every row, whatever it shows: timing only the slow-looking ones again
 * would flatter us. */
enum { LEAST = 40, MOST = 1000, BUDGET_US = 1500000 };

/* Rows below this time the call around the kernel rather than the kernel, and
 * are judged apart. */
#define TINY_US 5.0

typedef struct worst {
    double ratio;
    char name[64];
} worst;

static worst worst_kernel, worst_tiny;
bool bench_every_call;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, ascending);
    return v[n / 2];
}

/* What every call took in every turn. */
static double took[MOST_CALLS][MOST];

static int time_in_turns(bench_call *calls, int n)
{
    double begin = now_us();
    int turn = 0, order[MOST_CALLS];
    uint32_t dice = 1;
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (; turn < MOST && (turn < LEAST || now_us() - begin < BUDGET_US); turn++) {
        for (int k = n - 1; k > 0; k--) { /* what runs before a call matters to its caches */
            dice = dice * 1664525 + 1013904223;
            int other = (int)((dice >> 8) % (uint32_t)(k + 1)), swap = order[k];
            order[k] = order[other];
            order[other] = swap;
        }
        for (int k = 0; k < n; k++) {
            bench_call *call = &calls[order[k]];
            call->run(call->context);
            double t = now_us();
            call->run(call->context);
            took[order[k]][turn] = now_us() - t;
        }
    }
    return turn;
}

/* The median over turns of what we took by what call i took: the processor's
 * clock moves in steps of 12 % that last for many calls, and hit both alike. */
static double ratio_to(int i, int turns)
{
    double ratios[MOST];
    for (int t = 0; t < turns; t++)
        ratios[t] = took[0][t] / took[i][t];
    return median(ratios, turns);
}

void bench_nothing(void *context)
{
    (void)context;
}

void bench_report(const char *model, const char *layer, const char *pass, bench_call *calls, int n)
{
    int best = FIRST_RIVAL, turns = time_in_turns(calls, n);
    double ratio = 0;
    for (int i = FIRST_RIVAL; i < n; i++) {
        double to = ratio_to(i, turns);
        if (to > ratio)
            best = i, ratio = to;
    }
    for (int i = 0; i < n; i++)
        calls[i].median_us = median(took[i], turns);
    printf("%-7s %-9s %-8s %9.1f %9.1f %6.2f %9.1f %9.1f   %s\n", model, layer, pass,
           calls[OURS].median_us, calls[best].median_us, ratio,
           calls[REORDERS].run == bench_nothing ? 0.0 : calls[REORDERS].median_us,
           calls[EAGER].median_us, calls[best].name);
    for (int i = FIRST_RIVAL; bench_every_call && i < n; i++)
        printf("        %9.1f  %s\n", calls[i].median_us, calls[i].name);
    fflush(stdout);
    worst *w = calls[best].median_us < TINY_US ? &worst_tiny : &worst_kernel;
    if (ratio > w->ratio) {
        w->ratio = ratio;
        snprintf(w->name, sizeof w->name, "%s %s %s", model, layer, pass);
    }
}

void bench_free_rivals(bench_call *calls, int n)
{
    for (int i = FIRST_RIVAL; i < n; i++)
        bench_call_free(&calls[i]);
}

void bench_summary(void)
{
    printf("worst ratio %.2f (%s): %s within 1.10 of the best oneDNN call\n", worst_kernel.ratio,
           worst_kernel.name, worst_kernel.ratio <= 1.10 ? "all" : "NOT all");
    if (worst_tiny.ratio > 0)
        printf("below %.0f us, where calling costs as much as computing: worst ratio %.2f (%s)\n",
               TINY_US, worst_tiny.ratio, worst_tiny.name);
}
