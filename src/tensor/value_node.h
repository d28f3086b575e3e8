/*
 * A value as value.c, value_walk.c and value_spread.c see it; for nobody else.
 */
#ifndef LS__TENSOR_VALUE_NODE_H
#define LS__TENSOR_VALUE_NODE_H

#include "base/status.h"
#include "tensor/tensor.h"
#include "tensor/value.h"

struct ls_value {
    uint32_t live; /* LS__LIVE until its frame closes */
    int depth;     /* of the nest below it */
    ls_value_kind kind;
    bool kept;               /* by ls_value_keep: no frame owns it */
    int count;               /* of entries; 1 for a leaf */
    int n_components;        /* leaf: of a plain one 1, of an object 0 */
    ls_spread spread;        /* leaf */
    ls_tensor *tensor;       /* plain leaf */
    ls_tensor **components;  /* leaf: &tensor, or an array of a distributed one */
    void *object;            /* leaf that is no tensor... */
    const char *object_kind; /* ...and what it is; a literal */
    uint64_t object_serial;
    ls_value **items; /* list, dict */
    char **keys;      /* dict */
};

/* Where the parts of a value are allocated: in the frame (ls__frame_alloc), or one by one (kept). */
typedef void *(*ls__value_alloc)(size_t bytes);
void *ls__value_heap_alloc(size_t bytes);

/* A leaf is a plain one without a tensor yet. */
ls_value *ls__value_node(ls__value_alloc alloc, ls_value_kind kind, int count);

ls_status ls__check_count(const char *who, int count, const void *array);

/* LS_OK when the leaf has a tensor of its own, which distributed leaves and objects do not.
 * The error names it by `word` and, if that is not negative, `index`. */
ls_status ls__check_plain(const char *who, const char *word, int index, const ls_value *leaf);

/* A kept value may be dropped before the one it becomes a part of: that one gets a copy. */
ls_value *ls__value_in_frame(const ls_value *v);

/* Walks are recursive: a nest has a bottom in reach of the stack. */
ls_status ls__value_count_depth(const char *who, ls_value *v, const ls_value *item);

#endif
