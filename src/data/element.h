/*
 * What flows between stages: chunks of elements, each element a datum for every leaf, and the
 * position that follows it (iterator.h).
 */
#ifndef LS__DATA_ELEMENT_H
#define LS__DATA_ELEMENT_H

#include <lockstep/value.h>

#include "tensor/device.h"
#include "tensor/spec.h"
#include "tensor/storage.h"

/* Who keeps the memory of a datum. */
typedef enum ls__hold {
    LS__BORROWED, /* until the next pull of the iterator that gave it */
    LS__LASTING,  /* as long as the iterator's dataset; `owner` may be a storage that has it, not
                   * counted, else NULL */
    LS__OWNED     /* `owner`, of which the datum has one reference; rows may be missing (gathered.h) */
} ls__hold;

/* One tensor of one element. */
typedef struct ls__datum {
    ls__spec spec;
    const void *data; /* bytes[]: the string itself; else as a tensor has its elements */
    size_t bytes;     /* of it */
    ls__storage *owner;
    ls__hold hold;
} ls__datum;

typedef struct ls__chunk {
    int n;           /* elements in it */
    int leaves;      /* of an element */
    int lead;        /* words in front of each position that a later stage has asked for (below) */
    int stride;      /* of positions: lead and the words of the iterator that filled it */
    int room;        /* elements there is room for */
    ls__datum *data; /* n x leaves, element after element */
    int64_t *after;  /* n x stride: where the iterator stands after each, lead and words */
    const ls_value *structure; /* of elements; the iterator's, as long as it is open */
} ls__chunk;

/* A chunk starts as zeros. Room for so many elements, of which there are none then, with positions of
 * `words` words. LS_NO_MEMORY.
 *
 * A stage that hands its input's elements on with words of its own in front of theirs lets the input
 * leave room for them:
 *
 *     out->lead += 1;
 *     st = ls__it_pull(input, most, out);
 *     out->lead -= 1;                          // ls__chunk_after is [own][the input's] now
 */
ls_status ls__chunk_room(ls__chunk *c, int elements, int leaves, int words);

/* Lets go of what it owns: it has no elements then. Free: of its memory, too. */
void ls__chunk_clear(ls__chunk *c);
void ls__chunk_free(ls__chunk *c);

static inline ls__datum *ls__chunk_datum(const ls__chunk *c, int element, int leaf)
{
    return &c->data[(size_t)element * (size_t)c->leaves + (size_t)leaf];
}

static inline int64_t *ls__chunk_after(const ls__chunk *c, int element)
{
    return &c->after[(size_t)element * (size_t)c->stride + (size_t)c->lead];
}

/* Makes a datum last as long as somebody wants it: a borrowed one is copied. LS_NO_MEMORY. */
ls_status ls__datum_own(ls__datum *d);
void ls__datum_drop(ls__datum *d); /* its reference, if it has one */

/* Hands a datum on as it is: owned by who gets it, else to be kept by whom it was kept. */
static inline void ls__datum_give(ls__datum *to, ls__datum *from)
{
    *to = *from;
    if (from->hold == LS__OWNED)
        *from = (ls__datum){ .hold = LS__BORROWED };
}

/* Appends element i of `from` to `to` (which has room for it), owned; `from` has it no more. */
ls_status ls__chunk_move(ls__chunk *to, ls__chunk *from, int i);

/* A datum as a tensor of the innermost frame; takes over what it owns. NULL when out of memory. */
ls_tensor *ls__datum_tensor(ls__datum *d, ls__device *device);

/* An element as a value of the innermost frame; takes over what the chunk owns of it. NULL when
 * out of memory. */
ls_value *ls__element_value(ls__chunk *c, int i);

/* The leaves of a value as the data of element c->n, owned; c->n is one more then. The chunk must have
 * room, and c->structure may be NULL: then it is not touched. `later`: who gets it takes rows that are missing
 * yet (gathered.h). LS_SHAPE: a sparse or distributed leaf, a variable. */
ls_status ls__chunk_put(ls__chunk *c, const ls_value *value, bool later);

#endif
