/*
 * tf.train.Example on the wire: its features one after another, and their values where they lie.
 *
 *     Example   { Features features = 1; }
 *     Features  { repeated Entry feature = 1; }              a map: the last entry of a key counts
 *     Entry     { string key = 1; Feature value = 2; }
 *     Feature   { BytesList = 1 | FloatList = 2 | Int64List = 3 }    the last kind counts
 *     ...List   { repeated value = 1; }                      numbers packed or one by one
 *
 * A field may come again, in any order and with fields between that nobody knows: messages of one
 * field count as if their bytes were behind one another. Values are given as runs of
 * bytes, and nothing is copied: a run of a float list is little-endian floats, of an int64 list
 * varints, of a bytes list one string.
 */
#ifndef LS__DATA_EXAMPLE_WIRE_H
#define LS__DATA_EXAMPLE_WIRE_H

#include "data/wire.h"

/* Their field numbers. */
typedef enum ls__list_kind {
    LS__NO_LIST = 0, /* a feature that says nothing: as if it were not there */
    LS__BYTES_LIST = 1,
    LS__FLOAT_LIST = 2,
    LS__INT64_LIST = 3,
} ls__list_kind;

/* The values of a feature: fields of `kind` from `at` on, and in values that follow in the entry. */
typedef struct ls__list {
    ls__list_kind kind;
    const uint8_t *at, *feature_end, *entry_end;
} ls__list;

typedef struct ls__entry {
    const uint8_t *key;
    size_t key_length;
    ls__list list;
} ls__entry;

typedef struct ls__example {
    ls__wire wire;
    const uint8_t *features_end, *end;
} ls__example;

void ls__example_open(ls__example *e, const void *data, size_t length);

/* The next entry. False at the end, and where it is damaged: e->wire.why is not NULL then. What
 * is in the lists is not looked at. */
bool ls__example_next(ls__example *e, ls__entry *out);

typedef struct ls__runs {
    ls__wire wire;
    ls__list_kind kind;
    const uint8_t *list_end, *feature_end, *entry_end;
} ls__runs;

void ls__runs_open(ls__runs *r, const ls__list *list);

/* The next run. False at the end, and where it is damaged: r->wire.why is not NULL then. Runs of floats
 * have a multiple of 4 bytes; the varints in runs were not looked at. */
bool ls__runs_next(ls__runs *r, const uint8_t **at, const uint8_t **end);

#endif
