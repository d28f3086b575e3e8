/*
 * What is known of the elements of a dataset before there is one: their structure, and dtype and
 * shape of each leaf as far as they are known. As text, "u8[?,28,28], i64[?]", it is what users read
 * and give.
 *
 *     type  = nest { "," nest }                 two or more: a list
 *     nest  = leaf | "(" [ nest { "," nest } [","] ] ")" | "{" [ key ":" nest { "," key ":" nest } ] "}"
 *     leaf  = "?" | dtype | dtype "[" [ size { "," size } ] "]"          size: a number or "?"
 */
#ifndef LS__DATA_TYPE_H
#define LS__DATA_TYPE_H

#include <lockstep/value.h>

#include "tensor/spec.h"

typedef struct ls__leaf_type {
    ls_dtype dtype;            /* 0: nothing is known */
    int rank;                  /* -1: not known */
    int64_t dims[LS_MAX_RANK]; /* -1: not known */
} ls__leaf_type;

/* Counted; never changes. */
typedef struct ls__type ls__type;

/* `structure` is any value of the nest wanted (its tensors do not matter), NULL: not known; then
 * count is 0. NULL when out of memory. */
ls__type *ls__type_new(const ls_value *structure, int count, const ls__leaf_type *leaves);
ls__type *ls__type_unknown(void);
ls__type *ls__type_of_value(const ls_value *value); /* all of it is known */

/* LS_INVALID says at which letter; `who` begins the text. */
ls_status ls__type_parse(const char *who, const char *text, ls__type **out);

ls__type *ls__type_ref(const ls__type *t);
void ls__type_unref(ls__type *t); /* takes NULL */

const ls_value *ls__type_structure(const ls__type *t); /* NULL: not known */
int ls__type_leaves(const ls__type *t);                /* 0: not known, or there are none */
const ls__leaf_type *ls__type_leaf(const ls__type *t, int i);
const char *ls__type_text(const ls__type *t);

/* The same structure with other leaves. */
ls__type *ls__type_with(const ls__type *t, const ls__leaf_type *leaves);

/* A row less in front, or one more of this size (-1: not known), of every leaf. LS_SHAPE when a leaf is
 * known to be a scalar, or to have LS_MAX_RANK axes. */
ls_status ls__type_row(const char *who, const ls__type *t, ls__type **out);
ls_status ls__type_stacked(const char *who, const ls__type *t, int64_t n, ls__type **out);

/* What both are; LS_INVALID or LS_SHAPE when they cannot be of one dataset. */
ls_status ls__type_common(const char *who, const ls__type *a, const ls__type *b, ls__type **out);

/* Whether an element may be one of these. LS_SHAPE or LS_INVALID; names the leaf. */
ls_status ls__type_check(const char *who, const ls__type *t, const ls_value *structure, int leaves,
                         const ls__spec *const *specs);

#endif
