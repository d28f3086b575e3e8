/*
 * What the fuzz targets of record files share: bytes as a file (in memory), gone through as a dataset,
 * and compared with what a plain reading of the bytes expects.
 *
 * An input is two bytes of choices and the file.
 */
#ifndef LS__FUZZ_RECORDS_INPUT_H
#define LS__FUZZ_RECORDS_INPUT_H

#include <lockstep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static inline void require(bool holds, const char *promise)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz: %s: %s\n", promise, ls_error_report());
    abort();
}

/* What is expected: records, as pieces of the input, and damages, in order. */
typedef struct expected {
    const uint8_t *at[1 << 16];
    size_t bytes[1 << 16]; /* of a record; DAMAGED: not a record */
    size_t n;
    bool known; /* false: nothing is, as the file is packed */
} expected;

#define DAMAGED SIZE_MAX

static inline void expect(expected *e, const uint8_t *at, size_t bytes)
{
    if (e->n < sizeof e->bytes / sizeof *e->bytes) {
        e->at[e->n] = at;
        e->bytes[e->n++] = bytes;
    }
}

/* The path of a file with these bytes; close it after use. */
static inline int make_file(const uint8_t *data, size_t size, char path[64])
{
    int file = memfd_create("fuzz", MFD_CLOEXEC);
    require(file >= 0 && write(file, data, size) == (ssize_t)size, "a file in memory is there");
    snprintf(path, 64, "/proc/self/fd/%d", file);
    return file;
}

static inline void check_event(const expected *e, size_t i, ls_status st, const ls_value *v)
{
    const void *data;
    size_t bytes;
    if (!e->known)
        return;
    require(i < e->n, "no more is given than is there");
    if (e->bytes[i] == DAMAGED) {
        require(st == LS_CORRUPT, "what is damaged is told");
    } else {
        require(st == LS_OK, "what is good is given");
        require(!ls_string_at(ls_leaf_tensor(v), 0, &data, &bytes), "an element is a string");
        require(bytes == e->bytes[i] && memcmp(data, e->at[i], bytes) == 0, "as it is");
    }
}

/* The next event of the iterator, number i. */
static inline ls_status take(ls_iterator *it, const expected *e, size_t i, ls_value **v)
{
    ls_status st = ls_next(it, v);
    require(st == LS_OK || st == LS_CORRUPT || st == LS_END, "it is good or damaged");
    require((st == LS_CORRUPT) == (ls_error_pending() != LS_OK), "damage has a text");
    if (st == LS_END)
        require(!e->known || i == e->n, "nothing is lost");
    else
        check_event(e, i, st, *v);
    ls_error();
    return st;
}

/* Another iterator, put at the position of this one, gives the same next. */
static inline ls_status take_twice(ls_dataset *d, ls_iterator *it, const expected *e, size_t i)
{
    ls_value *a = NULL, *b = NULL;
    const void *x = NULL, *y = NULL;
    size_t nx = 0, ny = 0;
    ls_iterator *other = ls_iterate(d);
    ls_tensor *position = ls_position(it);
    require(other && position && !ls_seek(other, position), "a position can be gone to");
    ls_status st = take(it, e, i, &a);
    require(take(other, e, i, &b) == st, "a position leads to the same");
    if (!st)
        require(!ls_string_at(ls_leaf_tensor(a), 0, &x, &nx) &&
                    !ls_string_at(ls_leaf_tensor(b), 0, &y, &ny) && nx == ny &&
                    memcmp(x, y, nx) == 0,
                "a position leads to the same element");
    ls_iterator_free(other);
    return st;
}

/* Goes through all; a position is tried before event `stop`, if an element comes before that. */
static inline void check_records(ls_dataset *d, const expected *e, size_t stop)
{
    ls_iterator *it = ls_iterate(d);
    require(it != NULL, "an iterator opens");
    ls_status st = LS_OK;
    for (size_t i = 0; st != LS_END; i++) {
        LS_FRAME {
            ls_value *v = NULL;
            st = i == stop && st == LS_OK ? take_twice(d, it, e, i) : take(it, e, i, &v);
        }
        require(i < 1 << 24, "it ends");
    }
    ls_iterator_free(it);
}

/* The same with damaged ones left out. */
static inline void check_skipping(ls_dataset *d, const expected *e)
{
    ls_iterator *it = ls_iterate(d);
    int64_t good = 0, damaged = 0, given = 0;
    ls_value *v = NULL;
    for (size_t i = 0; i < e->n; i++)
        *(e->bytes[i] == DAMAGED ? &damaged : &good) += 1;
    require(it != NULL, "an iterator opens");
    for (ls_status st = LS_OK; st != LS_END; given++) {
        LS_FRAME
            st = ls_next(it, &v);
        require(st == LS_OK || st == LS_END, "what is left out is no error");
    }
    if (e->known)
        require(given == good + 1 && ls_iterator_skipped(it) == damaged, "all else is given");
    ls_iterator_free(it);
}

#endif
