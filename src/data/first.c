/*
 * The first element's type. Invariant: it holds no memory of any element.
 */
#include "data/first.h"

#include <stdlib.h>

#include "base/status.h"
#include "tensor/tensor.h"
#include "tensor/value.h"

static ls_value *same_leaf(const ls_value *leaf, void *user)
{
    (void)leaf;
    return user;
}

/* Its nest with another tensor, of one number, for every leaf: values are kept with their tensors. */
static ls__type *hollow(const ls_value *structure, int count, const ls__leaf_type *leaves)
{
    ls__type *t = NULL;
    LS_FRAME {
        ls_value *number = ls_leaf(ls_scalar_int(LS_U8, 0));
        ls_value *nest = number ? ls__value_map(structure, same_leaf, number) : NULL;
        if (nest)
            t = ls__type_new(nest, count, leaves);
    }
    return t;
}

static ls_status make(ls__type **first, const ls_value *structure, const ls__chunk *c, int i)
{
    ls__leaf_type *leaves = calloc((size_t)c->leaves + 1, sizeof *leaves);
    if (!leaves)
        return ls__fail_memory("the type of elements", (size_t)c->leaves * sizeof *leaves);
    for (int k = 0; k < c->leaves; k++)
        leaves[k] = (ls__leaf_type){ ls__chunk_datum(c, i, k)->spec.dtype, .rank = -1 };
    *first = hollow(structure, c->leaves, leaves);
    free(leaves);
    return *first ? LS_OK : ls_error_pending();
}

ls_status ls__first_check(ls__type **first, const ls_value *structure, const ls__chunk *c, int i)
{
    if (!*first)
        return make(first, structure, c, i);
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_status st = ls_same_structure(ls__type_structure(*first), structure);
    for (int k = 0; k < c->leaves && !st; k++) {
        ls_dtype was = ls__type_leaf(*first, k)->dtype, is = ls__chunk_datum(c, i, k)->spec.dtype;
        if (was != is)
            st = ls__fail(LS_SHAPE, "leaf %d is %s, was %s", k, ls_dtype_name(is),
                          ls_dtype_name(was));
    }
    return ls__error_scope_close(&scope, st, "not like the first element");
}
