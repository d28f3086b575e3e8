/* The parts of bench/reduce.c. */
#ifndef LS__BENCH_REDUCE_H
#define LS__BENCH_REDUCE_H

#include <lockstep.h>
#include <stdio.h>
#include <stdlib.h>

#include "measure.h"

enum { REDUCE_ROUNDS = 7 };

/* How long a part may take, about: every part does less of the same when it is small. */
typedef struct reduce_options {
    double seconds;  /* of calls in a round, for each case */
    int64_t largest; /* bytes, of the bare sum */
} reduce_options;

void reduce_bare(const reduce_options *o);
void reduce_adam(const reduce_options *o);
void reduce_memory(const reduce_options *o);
int reduce_memory_of(int replicas); /* in a process of its own; an exit status */

/* Ends the program when something failed that must not. */
static inline void must_do(ls_status st)
{
    if (st) {
        fprintf(stderr, "reduce: %s\n", ls_error_report());
        exit(1);
    }
}
static inline void *must_have(void *made)
{
    if (!made) {
        fprintf(stderr, "reduce: %s\n", ls_error_pending() ? ls_error_report() : "out of memory");
        exit(1);
    }
    return made;
}

/* Of floats, each on a line's border, all `value`. */
static inline float *floats(int64_t count, float value)
{
    float *x = must_have(aligned_alloc(64, ((size_t)count * sizeof *x + 63) / 64 * 64));
    for (int64_t i = 0; i < count; i++)
        x[i] = value;
    return x;
}

#endif
