/* What benchmarks measure with. */
#ifndef LS__BENCH_MEASURE_H
#define LS__BENCH_MEASURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Seconds since some moment. */
static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts them on the way. */
static inline double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, ascending);
    return values[n / 2];
}

/* A field of /proc/self/status, like "VmRSS"; 0: there is none. */
static inline long status_kib(const char *field)
{
    long kib = 0;
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, field, strlen(field)) == 0 && line[strlen(field)] == ':')
            kib = atol(line + strlen(field) + 1);
    if (f)
        fclose(f);
    return kib;
}

/* Of this process: now, and the most there was. */
static inline long resident_kib(void)
{
    return status_kib("VmRSS");
}
static inline long peak_kib(void)
{
    return status_kib("VmHWM");
}

#endif
