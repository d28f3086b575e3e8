/*
 * A dict that grows, in memory of the innermost frame:
 *
 *     ls__entries e = { 0 };
 *     ls_status st = ls__entries_add(&e, ls_leaf(t), "slots/%s/%s", slot, name);
 *     return st ? NULL : ls__entries_dict(&e);
 */
#ifndef LS__TRAIN_ENTRIES_H
#define LS__TRAIN_ENTRIES_H

#include <lockstep/value.h>

typedef struct ls__entry {
    const char *key;
    ls_value *item;
} ls__entry;

typedef struct ls__entries {
    int count, room;
    ls__entry *at;
} ls__entries;

/* `item` NULL: what is pending, or LS_NO_MEMORY. */
__attribute__((format(printf, 3, 4))) ls_status ls__entries_add(ls__entries *e, ls_value *item,
                                                                const char *key, ...);

/* All of a dict, under PREFIX and their keys. NULL: what is pending. */
ls_status ls__entries_add_all(ls__entries *e, const char *prefix, const ls_value *dict);

/* NULL: an error is pending. */
ls_value *ls__entries_dict(ls__entries *e);

#endif
