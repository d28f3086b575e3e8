/*
 * Blocks by size class. Invariant: a block is a header followed, 64 bytes on, by
 * its data; `capacity` is exactly the size of its class, so a block fits every
 * request of that class. A block may be freed by another thread than made it:
 * it joins the stock of the thread that frees it.
 */
#include "tensor/storage.h"

#include <lockstep/tensor.h>
#include <stdlib.h>

#include "base/status.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STOCK_LIMIT ((size_t)0)
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STOCK_LIMIT ((size_t)0)
#endif
#endif
#ifndef STOCK_LIMIT
#define STOCK_LIMIT ((size_t)1 << 30) /* bytes a thread keeps; more goes back at once */
#endif

#define HEADER 64
#define CLASSES 256
_Static_assert(sizeof(ls__storage) <= HEADER, "the header must fit before the data");

static _Thread_local ls__storage *stock[CLASSES]; /* linked through `backing` */
static _Thread_local size_t stocked;

static _Atomic int64_t in_use;
static _Atomic int64_t most_used;

/* Four classes per power of two from 64 bytes up: at most a fifth is wasted.
 * Returns the class and rounds *bytes up to it; -1 when too large. */
static int size_class(size_t *bytes)
{
    size_t n = *bytes < 64 ? 64 : *bytes;
    if (n > SIZE_MAX / 4)
        return -1;
    int log = 63 - __builtin_clzll((unsigned long long)n);
    size_t step = (size_t)1 << (log - 2);
    size_t quarter = (n - ((size_t)1 << log) + step - 1) / step;
    *bytes = ((size_t)1 << log) + quarter * step;
    return (log - 6) * 4 + (int)quarter;
}

static void count_bytes(int64_t change)
{
    int64_t now = atomic_fetch_add_explicit(&in_use, change, memory_order_relaxed) + change;
    int64_t most = atomic_load_explicit(&most_used, memory_order_relaxed);
    while (now > most && !atomic_compare_exchange_weak_explicit(
                             &most_used, &most, now, memory_order_relaxed, memory_order_relaxed))
        ;
}

static ls__storage *block(const char *who, size_t bytes)
{
    size_t capacity = bytes;
    int class = size_class(&capacity);
    if (class < 0 || class >= CLASSES) {
        ls__fail_memory(who, bytes);
        return NULL;
    }
    ls__storage *s = stock[class];
    if (s) {
        stock[class] = s->backing;
        stocked -= capacity;
    } else {
        s = aligned_alloc(64, (HEADER + capacity + 63) & ~(size_t)63);
        if (!s) {
            ls__fail_memory(who, bytes);
            return NULL;
        }
    }
    count_bytes((int64_t)capacity);
    *s = (ls__storage){ .capacity = capacity };
    atomic_init(&s->refs, 1);
    return s;
}

ls__storage *ls__storage_new(const char *who, size_t bytes)
{
    ls__storage *s = block(who, bytes);
    if (s)
        s->data = (char *)s + HEADER;
    return s;
}

ls__storage *ls__storage_wrap(const char *who, void *data, void (*release)(void *, void *),
                              void *user)
{
    ls__storage *s = block(who, 0);
    if (s) {
        s->data = data;
        s->release = release;
        s->user = user;
    }
    return s;
}

void ls__storage_unref(ls__storage *s)
{
    /* Release pairs with the acquire below: the last one out sees every read
     * that others made before they let go. */
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_release) != 1)
        return;
    atomic_thread_fence(memory_order_acquire);
    if (s->release)
        s->release(s->data, s->user);
    ls__storage_unref(s->backing);

    count_bytes(-(int64_t)s->capacity);
    size_t capacity = s->capacity;
    if (stocked + capacity > STOCK_LIMIT) {
        free(s);
        return;
    }
    int class = size_class(&capacity);
    s->backing = stock[class];
    stock[class] = s;
    stocked += capacity;
}

void ls__storage_thread_end(void)
{
    for (int i = 0; i < CLASSES; i++) {
        while (stock[i]) {
            ls__storage *next = stock[i]->backing;
            free(stock[i]);
            stock[i] = next;
        }
    }
    stocked = 0;
}

void ls_memory(size_t *now, size_t *peak)
{
    if (now)
        *now = (size_t)atomic_load_explicit(&in_use, memory_order_relaxed);
    if (peak)
        *peak = (size_t)atomic_load_explicit(&most_used, memory_order_relaxed);
}
