/*
 * One engine for the process; stream, buffers and plan cache per thread, freed
 * when the thread ends. Invariant: nothing here is shared between threads but
 * the engine and the plans' reference counts, so running takes no lock of ours.
 *
 * The cache is a hash table of at most MOST_PLANS; one more drops the plan used
 * longest ago, whatever its key, so that programs whose plans fit together never lose
 * one. Plans somebody still holds live on until released.
 */
#include "kernels/cpu/dnnl_engine.h"

#include "base/fpu.h"
#include "kernels/isa_select.h"
#include "os/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* oneDNN runs on libgomp here; a build of it on another runtime has no such symbols. */
extern void omp_set_num_threads(int) __attribute__((weak));
extern void GOMP_parallel(void (*)(void *), void *, unsigned, unsigned) __attribute__((weak));

/* As many as oneDNN itself keeps. A training step of resnet, eager and traced, has 37. */
enum { BUCKETS = 256, MOST_PLANS = 1024 };

typedef struct thread_state {
    dnnl_stream_t stream;
    int omp_threads; /* what OpenMP was last told on this thread */
    uint64_t clock;
    struct {
        void *data;
        size_t bytes;
    } buffer[LS__DNNL_SLOTS];
    int plans;
    ls__dnnl_plan *cache[BUCKETS]; /* linked through `next` */
} thread_state;

static ls__once started;
static dnnl_engine_t engine;
static bool avx512;
static _Thread_local thread_state *state;

/* A hypervisor that shows AMX but hides its tile palette makes oneDNN's bf16
 * kernels die with SIGILL: leave AMX out there. A cap set by the user in the
 * environment is lower already and must not be raised. */
static bool amx_is_broken(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d, palette;
    const char *cap = getenv("ONEDNN_MAX_CPU_ISA");
    if (!cap)
        cap = getenv("DNNL_MAX_CPU_ISA");
    if (cap && !strstr(cap, "AMX") && strcmp(cap, "ALL") != 0 && strcmp(cap, "DEFAULT") != 0)
        return false;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d >> 24 & 1))
        return false;
    return !__get_cpuid_count(0x1d, 0, &palette, &b, &c, &d) || palette == 0;
#else
    return false;
#endif
}

/* Takes the plan that `link` leads to out of the cache. */
static void forget(thread_state *s, ls__dnnl_plan **link)
{
    ls__dnnl_plan *plan = *link;
    *link = plan->next;
    s->plans--;
    ls__dnnl_plan_release(plan);
}

static void free_state(void)
{
    thread_state *s = state;
    if (!s)
        return;
    for (int i = 0; i < BUCKETS; i++)
        while (s->cache[i])
            forget(s, &s->cache[i]);
    for (int i = 0; i < LS__DNNL_SLOTS; i++)
        free(s->buffer[i].data);
    if (s->stream)
        dnnl_stream_destroy(s->stream);
    free(s);
    state = NULL;
}

static void start(void)
{
    if (ls__isa() == LS__ISA_BASE)
        dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41);
    else if (ls__isa() == LS__ISA_AVX2)
        dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
    else if (amx_is_broken())
        dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16);
    unsigned isa = (unsigned)dnnl_get_effective_cpu_isa();
    avx512 = (isa & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core;
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success)
        engine = NULL;
}

dnnl_engine_t ls__dnnl_engine(void)
{
    ls__call_once(&started, start);
    return engine;
}

bool ls__dnnl_avx512(void)
{
    return ls__dnnl_engine() && avx512;
}

void ls__dnnl_describe(char *out, size_t room)
{
    static const struct {
        dnnl_cpu_isa_t isa;
        const char *name;
    } names[] = { { dnnl_cpu_isa_sse41, "sse41" },
                  { dnnl_cpu_isa_avx, "avx" },
                  { dnnl_cpu_isa_avx2, "avx2" },
                  { dnnl_cpu_isa_avx2_vnni, "avx2_vnni" },
                  { dnnl_cpu_isa_avx512_core, "avx512_core" },
                  { dnnl_cpu_isa_avx512_core_vnni, "avx512_core_vnni" },
                  { dnnl_cpu_isa_avx512_core_bf16, "avx512_core_bf16" },
                  { dnnl_cpu_isa_avx512_core_amx, "avx512_core_amx" } };
    const dnnl_version_t *version = dnnl_version();
    (void)ls__dnnl_engine(); /* which sets the caps */
    const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
    char other[32];
    snprintf(other, sizeof other, "isa %x", (unsigned)isa);
    const char *name = other;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].isa == isa)
            name = names[i].name;
    snprintf(out, room, "oneDNN %d.%d.%d, %s", version->major, version->minor, version->patch,
             name);
}

static thread_state *this_thread(void)
{
    if (state)
        return state;
    if (!ls__dnnl_engine())
        return NULL;
    thread_state *s = calloc(1, sizeof *s);
    if (s && dnnl_stream_create(&s->stream, engine, dnnl_stream_default_flags) != dnnl_success) {
        free(s);
        s = NULL;
    }
    if (!s) {
        ls__fail_memory("oneDNN's state of a thread", sizeof *s);
        return NULL;
    }
    ls__at_thread_end(free_state);
    return state = s;
}

/* Kernels' floating-point state for OpenMP's threads too: they have whatever was
 * set when the pool was made. The calling thread's is set around each kernel. */
static void set_state(void *unused)
{
    (void)unused;
    ls__fpu_enter();
}

ls_status ls__dnnl_enter(int threads, dnnl_stream_t *out)
{
    thread_state *s = this_thread();
    if (!s)
        return engine ? LS_NO_MEMORY : ls__fail(LS_UNSUPPORTED, "oneDNN has no CPU engine");
    if (s->omp_threads != threads && omp_set_num_threads)
        omp_set_num_threads(threads);
    s->omp_threads = threads;
    if (threads > 1 && GOMP_parallel) {
        uint64_t mine = ls__fpu_enter();
        GOMP_parallel(set_state, NULL, (unsigned)threads, 0);
        ls__fpu_leave(mine);
    }
    *out = s->stream;
    return LS_OK;
}

ls_status ls__dnnl_status(dnnl_status_t status, const char *what)
{
    switch (status) {
    case dnnl_success:
        return LS_OK;
    case dnnl_out_of_memory:
        return ls__fail(LS_NO_MEMORY, "%s: oneDNN is out of memory", what);
    case dnnl_unimplemented:
        return ls__fail(LS_UNSUPPORTED, "%s: oneDNN has no kernel for this shape", what);
    default:
        return ls__fail(LS_INVALID, "%s: oneDNN answered %d", what, (int)status);
    }
}

ls_status ls__dnnl_attr(dnnl_primitive_attr_t *out)
{
    dnnl_primitive_attr_t attr;
    dnnl_status_t st = dnnl_primitive_attr_create(&attr);
    if (st)
        return ls__dnnl_status(st, "attributes");
    st = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (st)
        dnnl_primitive_attr_destroy(attr);
    else
        *out = attr;
    return ls__dnnl_status(st, "attributes");
}

void *ls__dnnl_buffer(int slot, size_t bytes)
{
    thread_state *s = this_thread();
    if (!s)
        return NULL;
    if (s->buffer[slot].bytes >= bytes && s->buffer[slot].data)
        return s->buffer[slot].data;
    /* A quarter more than asked: sizes that creep up do not allocate each time. */
    size_t room = (bytes + bytes / 4 + 4096) / 4096 * 4096;
    void *data = aligned_alloc(4096, room);
    if (!data) {
        ls__fail_memory("a buffer of the oneDNN kernels", room);
        return NULL;
    }
    free(s->buffer[slot].data);
    s->buffer[slot].data = data;
    s->buffer[slot].bytes = room;
    return data;
}

static ls__dnnl_plan **bucket_of(thread_state *s, const ls__dnnl_key *key)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < sizeof key->word / sizeof *key->word; i++)
        hash = (hash ^ (uint64_t)key->word[i]) * 0x9E3779B97F4A7C15u;
    return &s->cache[hash >> 56];
}
_Static_assert(BUCKETS == 1 << 8, "a bucket is the first 8 bits of a hash");

ls__dnnl_plan *ls__dnnl_find(const ls__dnnl_key *key)
{
    thread_state *s = this_thread();
    if (!s)
        return NULL;
    for (ls__dnnl_plan *plan = *bucket_of(s, key); plan; plan = plan->next)
        if (memcmp(&plan->key, key, sizeof *key) == 0) {
            plan->used = ++s->clock;
            atomic_fetch_add_explicit(&plan->refs, 1, memory_order_relaxed);
            return plan;
        }
    return NULL;
}

/* Looking at all of them is nothing beside the making of the one that comes. */
static void forget_oldest(thread_state *s)
{
    ls__dnnl_plan **oldest = NULL;
    for (int i = 0; i < BUCKETS; i++)
        for (ls__dnnl_plan **link = &s->cache[i]; *link; link = &(*link)->next)
            if (!oldest || (*link)->used < (*oldest)->used)
                oldest = link;
    if (oldest)
        forget(s, oldest);
}

void ls__dnnl_cache(const ls__dnnl_key *key, ls__dnnl_plan *plan)
{
    thread_state *s = this_thread();
    if (!s)
        return;
    if (s->plans == MOST_PLANS)
        forget_oldest(s);
    atomic_fetch_add_explicit(&plan->refs, 1, memory_order_relaxed);
    ls__dnnl_plan **bucket = bucket_of(s, key);
    plan->key = *key;
    plan->used = ++s->clock;
    plan->next = *bucket;
    *bucket = plan;
    s->plans++;
}
