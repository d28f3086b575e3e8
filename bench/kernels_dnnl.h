/* The rivals of bench/kernels.c: the oneDNN calls one could make for a layer,
 * written without our plans, so that they are what anybody would write. */
#ifndef BENCH_KERNELS_DNNL_H
#define BENCH_KERNELS_DNNL_H

#include "kernels/conv.h"
#include "kernels/matmul.h"
#include "kernels/pool.h"

#include <stdbool.h>

typedef struct bench_call {
    char name[64]; /* how it was asked for, and oneDNN's name of the kernel */
    void (*run)(void *context);
    void *context;
    double median_us;
} bench_call;

void bench_dnnl_start(void);

/* Each appends the calls oneDNN has for the work, and says how many. */
int bench_conv_calls(const ls__conv_shape *shape, ls__conv_pass pass, bench_call *out);
int bench_matmul_calls(const ls__matmul_shape *shape, bool weights, bench_call *out);
int bench_pool_calls(const ls__pool_shape *shape, bool backward, bench_call *out);

void bench_call_free(bench_call *call);

/* Memory for argument `slot` of a call, filled with numbers between -1 and 1. All
 * calls use the same: equal calls in different memory differ by a tenth. Slots
 * from BENCH_PLAIN on are for arguments in plain layout that are reordered. */
enum { BENCH_PLAIN = 4, BENCH_SLOTS = 8 };
#define BENCH_SLOT_BYTES ((size_t)64 << 20)
float *bench_slot(int slot, size_t bytes);

#endif
