/*
 * Blocks by size class. Invariant: a block is a header followed, 64 bytes on, by
 * its data, of exactly the size of its class, so a block fits every request of that
 * class. A block let go by another thread than made it goes home: to a list that the
 * maker's thread empties when it has no block left. (Replicas make results, the thread
 * that runs them lets them go: else one would ask the system in every step for what the
 * other hoards.)
 */
#include "tensor/storage.h"

#include <lockstep/tensor.h>
#include <stdlib.h>

#include "base/sanitized.h"
#include "base/status.h"
#include "os/event.h"
#include "os/pages.h"
#include "os/thread.h"

/* Bytes a thread keeps; more goes back at once. */
#define STOCK_LIMIT (LS__SANITIZED ? (size_t)0 : (size_t)1 << 30)

/* From here on blocks lie on large pages: products of dense layers go down the columns of their weights. */
#define LARGE ((size_t)2 * LS__LARGE_PAGE)

#define HEADER 64
#define CLASSES 256
_Static_assert(sizeof(ls__storage) <= HEADER, "the header must fit before the data");

/* What blocks of a thread know of it; lives as long as the thread or any of them. */
struct ls__stock_home {
    _Atomic(ls__storage *) returned; /* by other threads, linked through `backing`; or CLOSED */
    _Atomic int64_t refs;
};

static ls__storage closed; /* the thread has ended: nobody takes blocks back */
#define CLOSED (&closed)

static _Thread_local ls__storage *stock[CLASSES]; /* linked through `backing` */
static _Thread_local size_t stocked;
static _Thread_local struct ls__stock_home *home;

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

static size_t class_size(int class)
{
    size_t base = (size_t)1 << (class / 4 + 6);
    return base + (size_t)(class % 4) * (base / 4);
}

size_t ls__storage_capacity(const ls__storage *s)
{
    return class_size(s->size_class);
}

static void count_bytes(int64_t change)
{
    int64_t now = atomic_fetch_add_explicit(&in_use, change, memory_order_relaxed) + change;
    int64_t most = atomic_load_explicit(&most_used, memory_order_relaxed);
    while (now > most && !atomic_compare_exchange_weak_explicit(
                             &most_used, &most, now, memory_order_relaxed, memory_order_relaxed))
        ;
}

/* ---- homes ----------------------------------------------------------------------------- */

static struct ls__stock_home *my_home(void)
{
    if (!home) {
        home = calloc(1, sizeof *home);
        if (home) {
            atomic_init(&home->refs, 1);
            ls__at_thread_end(ls__storage_thread_end);
        }
    }
    return home;
}

static void let_go_of_home(struct ls__stock_home *h)
{
    if (atomic_fetch_sub_explicit(&h->refs, 1, memory_order_acq_rel) == 1)
        free(h);
}

static void free_block(ls__storage *s)
{
    struct ls__stock_home *h = s->home;
    free(s);
    let_go_of_home(h);
}

static void stock_block(ls__storage *s)
{
    size_t capacity = class_size(s->size_class);
    if (stocked + capacity > STOCK_LIMIT) {
        free_block(s);
        return;
    }
    s->backing = stock[s->size_class];
    stock[s->size_class] = s;
    stocked += capacity;
}

static void send_home(ls__storage *s)
{
    struct ls__stock_home *h = s->home;
    ls__storage *first = atomic_load_explicit(&h->returned, memory_order_relaxed);
    do {
        if (first == CLOSED) {
            free_block(s);
            return;
        }
        s->backing = first;
        /* Release pairs with the acquire of who empties the list. */
    } while (!atomic_compare_exchange_weak_explicit(&h->returned, &first, s, memory_order_release,
                                                    memory_order_relaxed));
}

/* Blocks that came back from other threads join the stock. */
static void empty_list(ls__storage *new_head)
{
    ls__storage *s = atomic_exchange_explicit(&home->returned, new_head, memory_order_acquire);
    while (s) {
        ls__storage *next = s->backing;
        stock_block(s);
        s = next;
    }
}

static ls__storage *from_stock(int class)
{
    if (!stock[class] && home && atomic_load_explicit(&home->returned, memory_order_relaxed))
        empty_list(NULL);
    ls__storage *s = stock[class];
    if (s) {
        stock[class] = s->backing;
        stocked -= class_size(class);
    }
    return s;
}

static ls__storage *from_system(size_t capacity)
{
    const size_t bytes = (HEADER + capacity + 63) & ~(size_t)63;
    if (!my_home())
        return NULL;
    ls__storage *s = bytes < LARGE ? aligned_alloc(64, bytes) : ls__pages_new(bytes);
    if (s)
        atomic_fetch_add_explicit(&home->refs, 1, memory_order_relaxed);
    return s;
}

/* ---- blocks ------------------------------------------------------------------------------ */

static ls__storage *block(const char *who, size_t bytes)
{
    size_t capacity = bytes;
    int class = size_class(&capacity);
    if (class < 0 || class >= CLASSES) {
        ls__fail_memory(who, bytes);
        return NULL;
    }
    ls__storage *s = from_stock(class);
    struct ls__stock_home *maker = s ? s->home : NULL;
    if (!s) {
        s = from_system(capacity);
        maker = home;
    }
    if (!s) {
        ls__fail_memory(who, bytes);
        return NULL;
    }
    count_bytes((int64_t)capacity);
    *s = (ls__storage){ .size_class = (uint16_t) class, .home = maker };
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

/* ---- later ------------------------------------------------------------------------------- */

enum { FILLED = 0, UNFILLED = 1, FILLING = 2 };

ls__storage *ls__storage_later(const char *who, void *data, size_t bytes, size_t extra,
                               void (*release)(void *, void *))
{
    const size_t own = data ? 0 : (bytes + 63) & ~(size_t)63;
    if (own < bytes && !data) { /* wrapped around */
        ls__fail_memory(who, bytes);
        return NULL;
    }
    ls__storage *s = block(who, own > SIZE_MAX - extra ? SIZE_MAX : own + extra);
    if (s) {
        s->data = data ? data : (char *)s + HEADER;
        s->user = (char *)s + HEADER + own;
        s->release = release;
        atomic_init(&s->later, UNFILLED);
    }
    return s;
}

void ls__storage_fill(ls__storage *s)
{
    unsigned char state = UNFILLED;
    if (atomic_compare_exchange_strong_explicit(&s->later, &state, FILLING, memory_order_acquire,
                                                memory_order_acquire)) {
        const ls__later *later = s->user;
        later->fill(later, s->data);
        atomic_store_explicit(&s->later, FILLED, memory_order_release);
    }
    for (int turn = 0; ls__storage_waits(s); turn++) /* somebody else fills it */
        ls__back_off(turn);
}

void ls__storage_unref(ls__storage *s)
{
    /* Release and acquire in one, pairing with itself: the last one out sees every read that others
     * made before they let go. (No fence: the thread sanitizer does not know them.) */
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (s->release)
        s->release(s->data, s->user);
    ls__storage_unref(s->backing);

    count_bytes(-(int64_t)class_size(s->size_class));
    if (s->home == home || STOCK_LIMIT == 0)
        stock_block(s);
    else
        send_home(s);
}

void ls__storage_thread_end(void)
{
    if (!home)
        return;
    empty_list(CLOSED);
    for (int i = 0; i < CLASSES; i++) {
        while (stock[i]) {
            ls__storage *next = stock[i]->backing;
            free_block(stock[i]);
            stock[i] = next;
        }
    }
    stocked = 0;
    let_go_of_home(home);
    home = NULL;
}

void ls_memory(size_t *now, size_t *peak)
{
    if (now)
        *now = (size_t)atomic_load_explicit(&in_use, memory_order_relaxed);
    if (peak)
        *peak = (size_t)atomic_load_explicit(&most_used, memory_order_relaxed);
}
