/*
 * Which instruction set to use. Invariant: decided once, before the first
 * kernel, by the processor and the environment alone.
 */
#include "kernels/isa_select.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static ls__isa_level best_of_processor(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    /* What meson.build compiles the AVX2 files for; f16c is as old as AVX2. */
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                __builtin_cpu_supports("bmi2");
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return LS__ISA_AVX512;
    if (avx2)
        return LS__ISA_AVX2;
#endif
    return LS__ISA_BASE;
}

static ls__isa_level decide(void)
{
    static const char *const names[] = { "base", "avx2", "avx512" };
    ls__isa_level best = best_of_processor();
    const char *cap = getenv("LOCKSTEP_ISA");
    if (!cap || !cap[0])
        return best;
    for (int i = 0; i < 3; i++)
        if (strcmp(cap, names[i]) == 0)
            return (ls__isa_level)i < best ? (ls__isa_level)i : best;
    ls__log(LS_LOG_WARNING, "LOCKSTEP_ISA=%s is none of base, avx2, avx512; using %s", cap,
            names[best]);
    return best;
}

ls__isa_level ls__isa(void)
{
    static _Atomic int decided = -1;
    int level = atomic_load_explicit(&decided, memory_order_relaxed);
    if (level < 0) { /* threads that race here decide alike */
        level = (int)decide();
        atomic_store_explicit(&decided, level, memory_order_relaxed);
    }
    return (ls__isa_level)level;
}
