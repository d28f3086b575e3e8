/*
 * One structure for all elements of an iterator. Invariant: what a chunk points at after settle lives
 * as long as the iterator or its dataset.
 */
#include "data/structure.h"

#include <stdlib.h>

#include "base/status.h"

static ls_status compare(const char *who, const ls_value *want, const ls_value *got)
{
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    return ls__error_scope_close(&scope, ls_same_structure(want, got), "%s: an element differs",
                                 who);
}

ls_status ls__structure_settle(const char *who, const ls__it *it, ls__structure *s, ls__chunk *c)
{
    const ls_value *want = ls__type_structure(it->dataset->type);
    ls_status st = LS_OK;
    if (!want && !s->kept) {
        s->kept = ls_value_keep((ls_value *)(uintptr_t)c->structure);
        if (!s->kept)
            st = LS_NO_MEMORY;
        s->seen = c->structure;
    }
    want = want ? want : s->kept;
    if (!st && c->structure != s->seen && c->structure != want)
        st = compare(who, want, c->structure);
    if (st) {
        ls__chunk_clear(c);
        return st;
    }
    s->seen = c->structure;
    c->structure = want;
    return LS_OK;
}

ls_value *ls__structure_list(int count, const ls_value *const *items)
{
    ls_value *kept = NULL;
    LS_FRAME {
        ls_value *list = ls_list(count, (ls_value *const *)(uintptr_t)items);
        kept = list ? ls_value_keep(list) : NULL;
    }
    return kept;
}

/* All are known. */
static ls__type *list_of_known(int count, const ls__type *const *items, ls__leaf_type *leaves,
                               const ls_value **structures)
{
    int n = 0;
    for (int i = 0; i < count; i++) {
        structures[i] = ls__type_structure(items[i]);
        for (int k = 0; k < ls__type_leaves(items[i]); k++)
            leaves[n++] = *ls__type_leaf(items[i], k);
    }
    ls_value *list = ls__structure_list(count, structures);
    ls__type *t = list ? ls__type_new(list, n, leaves) : NULL;
    ls_value_drop(list);
    return t;
}

ls__type *ls__type_list(int count, const ls__type *const *items)
{
    size_t n = 1;
    for (int i = 0; i < count; i++) {
        if (!ls__type_structure(items[i]))
            return ls__type_unknown();
        n += (size_t)ls__type_leaves(items[i]);
    }
    ls__leaf_type *leaves = calloc(n, sizeof *leaves);
    const ls_value **structures = calloc((size_t)count + 1, sizeof *structures);
    ls__type *t = NULL;
    if (leaves && structures)
        t = list_of_known(count, items, leaves, structures);
    else
        ls__fail_memory("the type of elements", n * sizeof *leaves);
    free(leaves);
    free(structures);
    return t;
}

void ls__structure_free(ls__structure *s)
{
    ls_value_drop(s->kept);
    *s = (ls__structure){ 0 };
}
