/*
 * Lets one allocation fail: memory_fails_after(n) makes the n-th from now return NULL, on whichever
 * thread it is; memory_is_back() ends that, and tells whether one failed.
 *
 * The linker puts the functions below in front of the allocator's (`wrapped` in tests/meson.build names
 * them): one file of a test includes this.
 */
#ifndef LS__TESTS_FAILING_MEMORY_H
#define LS__TESTS_FAILING_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "tensor/storage.h"

static _Atomic long memory_countdown = -1; /* allocations until one fails; below 0: none will */
static _Atomic bool memory_failed;

/* For an allocator that is not among those below. */
static inline bool memory_fails_now(void)
{
    if (atomic_load(&memory_countdown) < 0 || atomic_fetch_sub(&memory_countdown, 1) != 0)
        return false;
    memory_failed = true;
    return true;
}

/* What this thread keeps for later is given back, so that it has to be allocated again. Outside of all
 * frames. */
static inline void memory_keep_none(void)
{
    ls__storage_thread_end();
    ls__arena_thread_end();
}

static inline void memory_fails_after(long n)
{
    memory_failed = false;
    memory_countdown = n;
}

static inline bool memory_is_back(void)
{
    memory_countdown = -1;
    return memory_failed;
}

#define LS__WRAP(result, name, parameters, ...)                                                    \
    result __real_##name parameters;                                                               \
    result __wrap_##name parameters;                                                               \
    result __wrap_##name parameters                                                                \
    {                                                                                              \
        return memory_fails_now() ? NULL : __real_##name(__VA_ARGS__);                             \
    }

LS__WRAP(void *, malloc, (size_t n), n)
LS__WRAP(void *, calloc, (size_t n, size_t m), n, m)
LS__WRAP(void *, realloc, (void *p, size_t n), p, n)
LS__WRAP(void *, aligned_alloc, (size_t a, size_t n), a, n)
LS__WRAP(char *, strdup, (const char *s), s)
LS__WRAP(char *, strndup, (const char *s, size_t n), s, n)

#endif
