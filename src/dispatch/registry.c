/*
 * The table of operators: the built-in rows, then those that users registered.
 * Invariant: names are unique; rows are only ever added, so a row once found
 * stays valid.
 */
#include "dispatch/registry.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

typedef struct node {
    const ls_op *op;
    struct node *next;
} node;

static const ls_op *const *const *builtin; /* families, each ending with NULL; then NULL */
static _Atomic(node *) added;               /* newest first */
static atomic_flag adding = ATOMIC_FLAG_INIT;

void ls__registry_builtin(const ls_op *const *const *families)
{
    builtin = families;
}

bool ls__row_is_builtin(const ls_op *op)
{
    for (const ls_op *const *const *family = builtin; family && *family; family++)
        for (const ls_op *const *row = *family; *row; row++)
            if (*row == op)
                return true;
    return false;
}

static ls_status check_row(const ls_op *op)
{
    if (!op)
        return ls__fail(LS_INVALID, "ls_op_register: the row is NULL");
    if (op->size != sizeof *op)
        return ls__hint(ls__fail(LS_INVALID, "ls_op_register: a row of %zu bytes, wants %zu",
                                 op->size, sizeof *op),
                        "set .size = sizeof(ls_op), and build against this version's headers");
    return ls__row_complete(op);
}

/* Every attribute lies inside the struct the row says it has. */
static ls_status check_attrs(const ls_op *op)
{
    for (const ls_attr *a = op->attrs; a->kind != LS_ATTR_KIND_END; a++) {
        size_t bytes = a->kind == LS_ATTR_KIND_INT     ? sizeof(int64_t)
                       : a->kind == LS_ATTR_KIND_FLOAT ? sizeof(double)
                       : a->kind == LS_ATTR_KIND_INTS  ? sizeof(ls_ints)
                                                       : 0;
        if (!a->name || bytes == 0 || a->offset % 8 != 0 || op->attr_size < bytes ||
            a->offset > op->attr_size - bytes)
            return ls__fail(LS_INVALID, "operator row '%s': attribute '%s' of kind %d at byte %zu "
                                        "of %zu", op->name, a->name ? a->name : "NULL",
                            (int)a->kind, a->offset, op->attr_size);
    }
    return LS_OK;
}

ls_status ls__row_complete(const ls_op *op)
{
    const char *name = op->name && op->name[0] ? op->name : NULL;
    if (!name)
        return ls__fail(LS_INVALID, "operator row without a name");
    if (!op->shape)
        return ls__fail(LS_INVALID, "operator row '%s' has no shape rule", name);
    if (!op->kernel && !(op->flags & LS_OP_ALIAS))
        return ls__fail(LS_INVALID, "operator row '%s' has no kernel", name);
    if (op->inputs < LS_ANY_NUMBER || op->outputs < LS_ANY_NUMBER)
        return ls__fail(LS_INVALID, "operator row '%s': %d inputs, %d outputs", name, op->inputs,
                        op->outputs);
    if (op->outputs == LS_ANY_NUMBER && !op->count_outputs)
        return ls__fail(LS_INVALID, "operator row '%s' has any number of outputs and no "
                                    "count_outputs", name);
    if ((op->attr_size == 0) != (op->attrs == NULL))
        return ls__fail(LS_INVALID, "operator row '%s': attr_size and attrs go together", name);
    if (op->flags & LS_OP_ALIAS && (op->outputs != 1 || (op->inputs == 0 && !(op->flags & LS_OP_READS))))
        return ls__fail(LS_INVALID, "operator row '%s': an alias has one output and an input", name);
    return op->attrs ? check_attrs(op) : LS_OK;
}

ls_status ls_op_register(const ls_op *op)
{
    ls_status st = check_row(op);
    if (st)
        return st;
    node *entry = malloc(sizeof *entry);
    if (!entry)
        return ls__fail_memory("ls_op_register", sizeof *entry);
    while (atomic_flag_test_and_set_explicit(&adding, memory_order_acquire))
        ;
    const ls_op *same = ls_op_find(op->name);
    if (!same) {
        *entry = (node){ op, atomic_load_explicit(&added, memory_order_relaxed) };
        atomic_store_explicit(&added, entry, memory_order_release); /* pairs with the walkers */
    }
    atomic_flag_clear_explicit(&adding, memory_order_release);
    if (!same)
        return LS_OK;
    free(entry);
    if (same == op)
        return LS_OK;
    return ls__hint(ls__fail(LS_STATE, "ls_op_register: there is an operator '%s' already",
                             op->name),
                    "give yours another name, with a prefix of your project's");
}

const ls_op *ls_op_at(int index)
{
    if (index < 0)
        return NULL;
    for (const ls_op *const *const *family = builtin; family && *family; family++)
        for (const ls_op *const *row = *family; *row; row++)
            if (index-- == 0)
                return *row;
    node *entry = atomic_load_explicit(&added, memory_order_acquire);
    while (entry && index-- > 0)
        entry = entry->next;
    return entry ? entry->op : NULL;
}

const ls_op *ls_op_find(const char *name)
{
    const ls_op *op = NULL;
    for (int i = 0; name && (op = ls_op_at(i)) != NULL; i++)
        if (strcmp(op->name, name) == 0)
            return op;
    return NULL;
}
