/*
 * What ls_cache is made of: records (an element as bytes, cache_record.c), and two places to keep them,
 * memory (cache_memory.c) and a file (cache_file.c, cache_file_write.c).
 *
 * A place is filled by a recorder and, when it has all elements, read as a store. Both are told what
 * the input's positions are like (ls__cache_head), so that a position in a store is the
 * same, bit for bit, as one in the input:
 *
 *     light input     a record has the input's words after its element
 *     another         some records have a mark, the input's position behind them (cache_input.c)
 */
#ifndef LS__DATA_CACHE_H
#define LS__DATA_CACHE_H

#include "data/element.h"
#include "data/iterator.h"
#include "data/marks.h"

typedef enum ls__cache_positions {
    LS__CACHE_NONE,  /* the input cannot be saved */
    LS__CACHE_WORDS, /* it is light */
    LS__CACHE_MARKS
} ls__cache_positions;

typedef struct ls__cache_head {
    uint64_t fingerprint; /* of the input */
    ls__cache_positions positions;
    int words;           /* of the input's positions */
    int64_t *start;      /* those of its beginning, or */
    ls__mark start_mark; /* its position there */
    int leaves;
    ls_value *structure; /* kept; NULL: there are no elements */
    int64_t n;           /* elements */
} ls__cache_head;

void ls__cache_head_free(ls__cache_head *h); /* what it has, not itself */

/* The structure of all elements is the first one's; LS_INVALID for another. */
ls_status ls__cache_structure(ls__cache_head *h, const ls__chunk *c);

/* ---- records ----------------------------------------------------------------------------------- */

enum { LS__RECORD_CRC = 4 }; /* bytes in front that are whoever's who keeps the record */

/* Element i of a chunk whose positions are one word and then the input's. `mark` may be NULL. The
 * size is a multiple of 8, and so must be the address. */
size_t ls__record_size(const ls__cache_head *h, const ls__chunk *c, int i, const ls__mark *mark);
void ls__record_write(const ls__cache_head *h, const ls__chunk *c, int i, const ls__mark *mark,
                      unsigned char *to);

/* Appends the element to `out`, which has room; it points into the bytes, which `owner` has (LASTING), or
 * which are BORROWED (NULL). The position is [number + 1][the input's]; a mark is added to marks.
 * LS_CORRUPT, without an error recorded: these bytes are no record. LS_NO_MEMORY. */
ls_status ls__record_read(const ls__cache_head *h, const unsigned char *at, size_t bytes,
                          int64_t number, ls__storage *owner, ls__chunk *out, ls__marks *marks);

/* ---- places ------------------------------------------------------------------------------------ */

typedef struct ls__store ls__store;
typedef struct ls__recorder ls__recorder;

struct ls__store {
    ls__cache_head head;
    size_t bytes; /* of memory it holds */

    /* Up to `most` elements from `number` on, which is less than head.n. After a failure, element
     * `number` is lost. */
    ls_status (*read)(ls__store *s, int64_t number, int most, ls__chunk *out, ls__marks *marks);
    void (*close)(ls__store *s);
};

struct ls__recorder {
    ls__cache_head head;
    size_t bytes;
    ls_status (*add)(ls__recorder *r, const ls__chunk *c, int i, const ls__mark *mark);
    ls_status (*finish)(ls__recorder *r); /* all are there: others find it. Frees it */
    void (*discard)(ls__recorder *r);     /* frees it, too */
};

/* The place of a dataset's elements in memory, which all its iterators share. Starts as zeros. */
typedef struct ls__cache_shared {
    _Atomic(struct ls__memory_store *) stores; /* complete ones, of different inputs */
} ls__cache_shared;

/* NULL: it is not there yet. It takes over what the head has, also when it fails. */
ls__store *ls__memory_find(ls__cache_shared *shared, uint64_t fingerprint);
ls_status ls__memory_record(ls__cache_shared *shared, ls__cache_head *head, ls__recorder **out);
void ls__memory_free(ls__cache_shared *shared);

/* *out NULL and LS_OK: there is no such file; somebody else is writing it. LS_INVALID: another dataset's
 * file, or none of ours; LS_CORRUPT; LS_IO. */
ls_status ls__file_find(const char *path, uint64_t fingerprint, ls__store **out);
ls_status ls__file_record(const char *path, ls__cache_head *head, ls__recorder **out);

/* ---- the stage --------------------------------------------------------------------------------- */

typedef struct ls__cache_options {
    char *file;  /* NULL: in memory */
    uint64_t of; /* the input that the file's name was given for */
    ls__cache_shared shared;
} ls__cache_options;

typedef struct ls__cache_state {
    char *file;             /* NULL: in memory */
    ls__store *store;       /* reads */
    ls__it *input;          /* fills or passes */
    ls__recorder *recorder; /* fills */
    int64_t at;             /* elements and failures so far */
    int64_t *now;           /* reads: the words of this place */
    ls__marks marks;        /* of an input that is not light */
    size_t cost;            /* bytes of elements since the last */
    size_t holds;           /* what was told of memory */
    bool unsaved;           /* the input cannot be saved, because: */
    ls__error_record why;
    ls__error_record waiting; /* for the next pull */
} ls__cache_state;

/* Fills or passes from here on. */
ls_status ls__cache_open_input(ls__it *it);

ls_status ls__cache_pull_input(ls__it *it, int most, ls__chunk *out);

/* Stands at element `at`, which is behind this mark; passes from there on. */
ls_status ls__cache_load_input(ls__it *it, int64_t at, const ls__mark *mark);

/* Fills no more: passes. */
void ls__cache_stop(ls__cache_state *s);

#endif
