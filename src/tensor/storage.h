/*
 * Storage: the memory behind tensors, with an atomic count of the handles on it.
 * Immutable once computed. Freed blocks go back to a stock, by size, of the thread
 * that made them, so a training loop that makes the same tensors every step asks the
 * system for nothing, also when one thread makes them and another lets them go. (Sanitizer builds keep no stock, so that they see every misuse.)
 */
#ifndef LS__TENSOR_STORAGE_H
#define LS__TENSOR_STORAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ls__storage {
    _Atomic int64_t refs;
    void *data;                      /* 64-byte aligned when it is ours */
    uint16_t size_class;             /* of the block behind this header */
    bool view;                       /* of a cell: `data` changes place when the cell is written */
    _Atomic unsigned char later;     /* not 0: nobody has filled it yet (ls__storage_later) */
    struct ls__storage *backing;     /* where a view's contents were copied out to */
    void (*release)(void *, void *); /* wrapped memory */
    void *user;
    uint64_t symbol; /* not 0: no memory but the unknown value of a step being traced, this one */
    struct ls__stock_home *home; /* of the thread that asked the system for the block */
} ls__storage;

/* `bytes` of uninitialised memory, one reference. NULL and an error when out of
 * memory; `who` says what it was for. */
ls__storage *ls__storage_new(const char *who, size_t bytes);

/* A header onto memory of somebody else's: a user's, or a cell's. */
ls__storage *ls__storage_wrap(const char *who, void *data, void (*release)(void *, void *),
                              void *user);

/* What a storage that is filled later has as `user`, with more behind it. */
typedef struct ls__later {
    void (*fill)(const struct ls__later *later, void *data);
} ls__later;

/* Memory that is filled by who first looks at it, on its thread: what is made for one of several cores is made on
 * that one. `data` NULL: `bytes` of its own. `user` has room for `extra` bytes, which the caller sets, an ls__later in
 * front; release(data, user), which may be NULL, is called in the end, filled or not. */
ls__storage *ls__storage_later(const char *who, void *data, size_t bytes, size_t extra,
                               void (*release)(void *, void *));
void ls__storage_fill(ls__storage *s);

static inline bool ls__storage_waits(const ls__storage *s)
{
    return atomic_load_explicit(&s->later, memory_order_acquire) != 0;
}

/* Its contents. (Who wants the address only reads `data`.) */
static inline void *ls__storage_look(ls__storage *s)
{
    if (ls__storage_waits(s))
        ls__storage_fill(s);
    return s->data;
}

static inline ls__storage *ls__storage_ref(ls__storage *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void ls__storage_unref(ls__storage *s);

/* Bytes of its block. */
size_t ls__storage_capacity(const ls__storage *s);

/* Gives the calling thread's stock back to the system. */
void ls__storage_thread_end(void);

#endif
