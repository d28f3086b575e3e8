/*
 * Elements as the oracle of random datasets has them: plain structs, filled by plain loops. They
 * know nothing of Lockstep but its dtypes; model_value.c turns them into values and back, which is
 * also how callbacks of random datasets do their work.
 */
#ifndef LS__TESTS_RANDOM_DATASETS_MODEL_H
#define LS__TESTS_RANDOM_DATASETS_MODEL_H

#include <lockstep/value.h>

enum {
    RD_RANK = 4,    /* of a leaf, at most */
    RD_LEAVES = 8,  /* of an element, at most */
    RD_CHILDREN = 3 /* of a list or dict, at most */
};

/* ---- memory: all at once -------------------------------------------------------------------- */

typedef struct rd_pool {
    struct rd_block *first;
} rd_pool;
void *rd_room(rd_pool *pool, size_t bytes); /* zeros */
void rd_pool_free(rd_pool *pool);

/* ---- text ----------------------------------------------------------------------------------- */

typedef struct rd_text {
    char *at;
    size_t length, room;
} rd_text;
void rd_print(rd_text *to, const char *format, ...) LS_PRINTF(2, 3);
void rd_text_free(rd_text *text);

/* ---- elements ------------------------------------------------------------------------------- */

/* Entries of a dict have the keys "a", "b", "c", in that order. */
typedef struct rd_nest {
    ls_value_kind kind;
    int count;
    const struct rd_nest *child[RD_CHILDREN];
} rd_nest;
extern const rd_nest rd_leaf_nest;
const rd_nest *rd_nest_of(rd_pool *pool, ls_value_kind kind, int count,
                          const rd_nest *const *child);
int rd_nest_leaves(const rd_nest *nest);

/* Numbers are small integers in every dtype; an element of LS_BYTES is a string. */
typedef struct rd_cell {
    int64_t number;
    const char *string;
    int length;
} rd_cell;

typedef struct rd_tensor {
    ls_dtype dtype;
    int rank;
    int64_t dims[RD_RANK];
    int64_t count;
    rd_cell *cells;
} rd_tensor;

typedef struct rd_element {
    const rd_nest *nest;
    int n; /* leaves, depth first */
    rd_tensor leaf[RD_LEAVES];
} rd_element;

rd_tensor rd_tensor_of(rd_pool *pool, ls_dtype dtype, int rank, const int64_t *dims);
rd_element *rd_number(rd_pool *pool, int64_t number); /* i64[] */
rd_element *rd_string(rd_pool *pool, const char *string, int length);
void rd_store(rd_cell *cell, ls_dtype dtype, int64_t number); /* wrapped to what the dtype holds */

/* Of all that is in its leaves. */
uint64_t rd_hash(const rd_element *e);
uint64_t rd_mix(uint64_t a, uint64_t b);

/* "(i64[]{3}, {a: bytes[2]{2:ab,0:}})". */
void rd_print_element(rd_text *to, const rd_element *e);

/* n elements of one shape as one, with a new axis in front; row i of all leaves; a list of elements. */
rd_element *rd_stacked(rd_pool *pool, int n, rd_element *const *e);
rd_element *rd_row(rd_pool *pool, const rd_element *e, int64_t i);
rd_element *rd_listed(rd_pool *pool, int n, rd_element *const *e);

/* Entry i of a list or dict. */
rd_element *rd_child(rd_pool *pool, const rd_element *e, int i);

/* Stacked, each filled up with `fill` to the largest, or where `dims` of a leaf (RD_RANK numbers
 * each, or NULL) is not -1 to that. */
rd_element *rd_padded(rd_pool *pool, int n, rd_element *const *e, const int64_t *dims,
                      int64_t fill);

/* ---- values (model_value.c) ----------------------------------------------------------------- */

ls_value *rd_value(const rd_element *e); /* NULL: the library failed */

/* NULL when it has more axes, leaves or entries than there is room for here; says so in *why. */
rd_element *rd_read(rd_pool *pool, const ls_value *v, const char **why);

#endif
