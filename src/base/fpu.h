/*
 * The floating-point state kernels run in (DESIGN rule C): round to nearest,
 * denormals flushed to zero. Set around every kernel and restored after, so that
 * results depend neither on what the caller's thread has set nor on the cost of
 * denormals.
 */
#ifndef LS__BASE_FPU_H
#define LS__BASE_FPU_H

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>

/* Denormals-are-zero, flush-to-zero, all exceptions masked, nearest. */
#define LS__FPU_STATE 0x9FC0u

static inline uint64_t ls__fpu_enter(void)
{
    unsigned before = _mm_getcsr();
    if ((before & ~0x3Fu) != LS__FPU_STATE) /* the low bits are sticky flags */
        _mm_setcsr(LS__FPU_STATE);
    return before;
}

static inline void ls__fpu_leave(uint64_t before)
{
    if ((before & ~0x3Fu) != LS__FPU_STATE)
        _mm_setcsr((unsigned)before);
}
#elif defined(__aarch64__)
#define LS__FPU_STATE ((uint64_t)1 << 24) /* FZ; rounding mode bits 0: nearest */

static inline uint64_t ls__fpu_enter(void)
{
    uint64_t before;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" : : "r"(LS__FPU_STATE));
    return before;
}

static inline void ls__fpu_leave(uint64_t before)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(before));
}
#else
static inline uint64_t ls__fpu_enter(void)
{
    return 0;
}

static inline void ls__fpu_leave(uint64_t before)
{
    (void)before;
}
#endif

#endif
