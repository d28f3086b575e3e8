/*
 * What every file that calls oneDNN shares: the engine, this thread's stream,
 * recycled buffers and plans.
 *
 * A plan is one primitive with its three arguments, each with a plain layout
 * (ours) and a wanted one (oneDNN's), and a bias if the primitive has one, which
 * is always plain. It is made once per (key, thread), found
 * again in a bounded cache of this thread, counted, and run with whatever
 * pointers. Primitives use a scratchpad of the thread that runs them, so a plan
 * may change threads; it may not be on two at once.
 *
 * How to use it
 *
 *     ls__dnnl_key key = { ... };                  // zeroed, then filled
 *     plan = ls__dnnl_find(&key);                  // a reference, or NULL
 *     if (!plan) make a primitive descriptor, then
 *         st = ls__dnnl_plan_make(&key, pd, args, &plan);
 *     st = ls__dnnl_plan_run(plan, pointers);
 *     ls__dnnl_plan_release(plan);
 */
#ifndef LS__KERNELS_CPU_DNNL_ENGINE_H
#define LS__KERNELS_CPU_DNNL_ENGINE_H

#include "base/status.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LS__DNNL_ARGS = 3 };

/* The shared engine, made by the first caller; NULL when oneDNN has none. */
dnnl_engine_t ls__dnnl_engine(void);

/* True when oneDNN may use AVX-512 here, so that our own kernel may too. */
bool ls__dnnl_avx512(void);

/* "oneDNN 2.6.3, avx512_core": the version there is, and the instruction set that it may use at most,
 * here and with the caps that are set. */
void ls__dnnl_describe(char *out, size_t room);

/* This thread's stream, with OpenMP set to `threads`. Call it before any oneDNN
 * work, making primitives and sgemm included. */
ls_status ls__dnnl_enter(int threads, dnnl_stream_t *out);

/* Records what oneDNN answered; LS_OK for success. */
ls_status ls__dnnl_status(dnnl_status_t status, const char *what);

/* Attributes every primitive of ours has: the scratchpad is given by the
 * caller. (oneDNN's own belongs to the thread that made the primitive and
 * crashes on any other.) The caller destroys it. */
ls_status ls__dnnl_attr(dnnl_primitive_attr_t *out);

/* A buffer of this thread, 64-byte aligned, at least `bytes`; NULL (recorded)
 * when out of memory. Its content is the caller's until the next request for the
 * same slot. Slots below LS__DNNL_ARGS belong to the eager paths' arguments. */
enum { LS__DNNL_SCRATCH = LS__DNNL_ARGS, LS__DNNL_WORK, LS__DNNL_GEMM, LS__DNNL_SLOTS };
void *ls__dnnl_buffer(int slot, size_t bytes);

/* What tells plans apart: kind, thread count, then the shape's numbers. */
typedef struct ls__dnnl_key {
    int64_t word[24];
} ls__dnnl_key;

typedef struct ls__dnnl_arg {
    int id;                   /* DNNL_ARG_... */
    dnnl_query_t query;       /* which descriptor of the primitive it is */
    dnnl_memory_desc_t plain; /* how our side lays it out */
} ls__dnnl_arg;

/* A primitive and what it needs of the running thread's scratchpad. */
typedef struct ls__dnnl_step {
    dnnl_primitive_t primitive;
    size_t scratch_bytes;
    dnnl_memory_t scratch;
} ls__dnnl_step;

typedef struct ls__dnnl_plan {
    atomic_int refs;
    int threads;
    ls__dnnl_key key; /* this and the next two belong to the cache it is in */
    struct ls__dnnl_plan *next;
    uint64_t used;
    ls__dnnl_step main;
    struct {
        int id;
        bool plain; /* the wanted layout is ours */
        size_t bytes;
        dnnl_memory_t wanted, ours;
        void *wanted_data;          /* what `wanted` points at */
        ls__dnnl_step pack, unpack; /* empty when plain */
    } arg[LS__DNNL_ARGS];
    dnnl_memory_t bias; /* NULL without one */
    const void *bias_data;
} ls__dnnl_plan;

ls__dnnl_plan *ls__dnnl_find(const ls__dnnl_key *key);

/* Makes the plan and puts it in this thread's cache; *out is a reference. The
 * descriptor stays the caller's. Whether there is a bias is asked of it. */
ls_status ls__dnnl_plan_make(const ls__dnnl_key *key, dnnl_primitive_desc_t pd,
                             const ls__dnnl_arg args[LS__DNNL_ARGS], ls__dnnl_plan **out);
void ls__dnnl_plan_release(ls__dnnl_plan *plan);

/* What the following runs add; call it before each run of a plan with a bias. */
void ls__dnnl_plan_bias(ls__dnnl_plan *plan, const void *bias);

/* Runs on arguments as wanted, in the order given to _make. */
ls_status ls__dnnl_plan_run(ls__dnnl_plan *plan, void *const arg[LS__DNNL_ARGS]);
ls_status ls__dnnl_plan_pack(ls__dnnl_plan *plan, int arg, const void *ours, void *wanted);
ls_status ls__dnnl_plan_unpack(ls__dnnl_plan *plan, int arg, const void *wanted, void *ours);

/* Runs on plain arguments, through this thread's buffers where the layouts
 * differ; `written` is the argument that is an output. */
ls_status ls__dnnl_plan_run_plain(ls__dnnl_plan *plan, void *const arg[LS__DNNL_ARGS], int written);

/* For the cache (dnnl_engine.c) and the plans (dnnl_plan.c). */
void ls__dnnl_cache(const ls__dnnl_key *key, ls__dnnl_plan *plan);

#endif
