/*
 * Counts who asks for memory and who takes locks. For one test program, which is
 * linked with --wrap for every name under WRAP (tests/meson.build):
 *
 *   ours    calls of the allocator and of the system's memory from objects linked into the program,
 *           which the linker sends through the functions below first
 *   locks   calls of locks and conditions from them
 *   all     calls of the allocator from anywhere, shared libraries included: malloc and its
 *           family are defined here. Not in sanitizer builds (COUNTS_ALL), whose allocator
 *           has them
 */
#ifndef LS__TESTS_SUPPORT_COUNTED_CALLS_H
#define LS__TESTS_SUPPORT_COUNTED_CALLS_H

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static atomic_bool counting;
static atomic_long ours, locks, all;

static inline void note(atomic_long *counter)
{
    if (atomic_load_explicit(&counting, memory_order_relaxed))
        atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* ---- calls from our objects ---------------------------------------------------------- */

#define WRAP(counter, result, name, parameters, ...)                                               \
    result __real_##name parameters;                                                               \
    result __wrap_##name parameters;                                                               \
    result __wrap_##name parameters                                                                \
    {                                                                                              \
        note(&(counter));                                                                          \
        return __real_##name(__VA_ARGS__);                                                         \
    }

WRAP(ours, void *, malloc, (size_t n), n)
WRAP(ours, void *, calloc, (size_t n, size_t m), n, m)
WRAP(ours, void *, realloc, (void *p, size_t n), p, n)
WRAP(ours, void *, aligned_alloc, (size_t a, size_t n), a, n)
WRAP(ours, int, posix_memalign, (void **p, size_t a, size_t n), p, a, n)
WRAP(ours, char *, strdup, (const char *s), s)
WRAP(ours, char *, strndup, (const char *s, size_t n), s, n)
WRAP(ours, void *, mmap, (void *p, size_t n, int protection, int flags, int fd, long at), p, n,
     protection, flags, fd, at)
WRAP(ours, void *, mmap64, (void *p, size_t n, int protection, int flags, int fd, long at), p, n,
     protection, flags, fd, at)
WRAP(ours, void *, mremap, (void *p, size_t n, size_t m, int flags, void *to), p, n, m, flags, to)
WRAP(ours, int, brk, (void *p), p)
WRAP(ours, void *, sbrk, (long n), n)

WRAP(locks, int, pthread_mutex_lock, (void *m), m)
WRAP(locks, int, pthread_mutex_trylock, (void *m), m)
WRAP(locks, int, pthread_rwlock_rdlock, (void *l), l)
WRAP(locks, int, pthread_rwlock_wrlock, (void *l), l)
WRAP(locks, int, pthread_spin_lock, (void *l), l)
WRAP(locks, int, pthread_cond_wait, (void *c, void *m), c, m)
WRAP(locks, int, pthread_cond_timedwait, (void *c, void *m, const void *t), c, m, t)
WRAP(locks, int, pthread_cond_signal, (void *c), c)
WRAP(locks, int, pthread_cond_broadcast, (void *c), c)

/* ---- calls from anywhere -------------------------------------------------------------- */

#if defined(__GLIBC__) && !SANITIZED
#define COUNTS_ALL 1

/* The C library's own names of them. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t m);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t a, size_t n);

void *malloc(size_t n)
{
    note(&all);
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t m)
{
    note(&all);
    return __libc_calloc(n, m);
}

void *realloc(void *p, size_t n)
{
    note(&all);
    return __libc_realloc(p, n);
}

void *aligned_alloc(size_t a, size_t n)
{
    note(&all);
    return __libc_memalign(a, n);
}

int posix_memalign(void **p, size_t a, size_t n)
{
    note(&all);
    void *at = __libc_memalign(a, n);
    if (!at)
        return ENOMEM;
    *p = at;
    return 0;
}

/* <sys/mman.h> would make one of the other, so it is not included. */
void *mmap(void *p, size_t n, int protection, int flags, int fd, long at);
void *mmap64(void *p, size_t n, int protection, int flags, int fd, long at);

void *mmap(void *p, size_t n, int protection, int flags, int fd, long at)
{
    note(&all);
    return (void *)syscall(SYS_mmap, p, n, protection, flags, fd, at);
}

void *mmap64(void *p, size_t n, int protection, int flags, int fd, long at)
{
    return mmap(p, n, protection, flags, fd, at);
}
#else
#define COUNTS_ALL 0
#endif

/* From zero, until `counting` is false. */
static inline void start_counting(void)
{
    atomic_store(&ours, 0);
    atomic_store(&locks, 0);
    atomic_store(&all, 0);
    atomic_store(&counting, true);
}

#endif
