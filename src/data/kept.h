/*
 * Elements that a stage keeps for a while, many of them and in no order. Each is one block of memory:
 * words of the stage's, the data and, of data that are small and were borrowed, the bytes. So an element
 * is one place in memory, not several, and keeping one asks nobody for anything once there are blocks.
 *
 *     ls__store store = { .words = 2, .leaves = 1 };
 *     ls__kept *e = ls__store_keep(&store, &chunk, i);    // NULL: no memory
 *     ls__kept_words(e)[0] = ...;
 *     ...
 *     ls__store_begin(&store);                            // a pull begins: what was given is free again
 *     ls__store_give(&store, e, &out);                    // borrowed data: until the next begin
 *     ls__store_free(&store);                             // those that are kept were dropped before
 */
#ifndef LS__DATA_KEPT_H
#define LS__DATA_KEPT_H

#include "data/element.h"

typedef struct ls__kept {
    struct ls__kept *next; /* of those that are free, or given */
    int size_class;
    size_t bytes;  /* of the block */
    int64_t owned; /* bytes that its data own elsewhere */
    int64_t rest[];
} ls__kept;

enum { LS__STORE_CLASSES = 96 };

typedef struct ls__store {
    int words;     /* of an element, for the stage */
    int leaves;    /* of an element */
    int64_t bytes; /* held in all */
    ls__kept *free[LS__STORE_CLASSES];
    ls__kept *given, *given_last; /* a list */
    bool alike;                   /* those given are of one class */
    void **slabs; /* that blocks are cut from */
    int n_slabs;
    size_t in_slabs; /* bytes of all */
    char *at, *end;  /* what is left of the last one */
} ls__store;

/* Element i of a chunk; what the chunk owned of it is the store's then. NULL: no memory, and the chunk is
 * as it was. */
ls__kept *ls__store_keep(ls__store *s, ls__chunk *c, int i);

static inline int64_t *ls__kept_words(ls__kept *e)
{
    return e->rest;
}

static inline ls__datum *ls__kept_data(const ls__store *s, const ls__kept *e)
{
    return (ls__datum *)(uintptr_t)(e->rest + s->words);
}

/* As element out->n, which there is room for; its position is the caller's to write. */
void ls__store_give(ls__store *s, ls__kept *e, ls__chunk *out);
void ls__store_begin(ls__store *s);

void ls__store_drop(ls__store *s, ls__kept *e); /* takes NULL */
void ls__store_free(ls__store *s);

#endif
