/*
 * Leaves of several replicas, and leaves that are no tensors. Invariant: a distributed leaf
 * has at least one component, all of them live as long as it does.
 */
#include "tensor/value_node.h"

ls_value *ls__leaf_spread(ls_spread spread, int count, ls_tensor *const *components)
{
    for (int i = 0; i < count; i++)
        if (ls__check_tensor("a distributed value", "a component", components[i]))
            return NULL;
    ls_value *v = ls__value_node(ls__frame_alloc, LS_LEAF, 1);
    ls_tensor **own = ls__frame_alloc(sizeof *own * (size_t)count);
    if (!v || !own)
        return NULL;
    for (int i = 0; i < count; i++) {
        own[i] = ls__same_value(components[i]);
        if (!own[i])
            return NULL;
    }
    v->spread = spread;
    v->n_components = count;
    v->components = own;
    return v;
}

ls_tensor *ls__leaf_component(const ls_value *leaf, int i)
{
    if (leaf->spread == LS_SPREAD_PLAIN)
        return leaf->tensor;
    return i >= 0 && i < leaf->n_components ? leaf->components[i] : NULL;
}

ls_value *ls__object_leaf(void *object, const char *kind, uint64_t serial)
{
    ls_value *v = ls__value_node(ls__frame_alloc, LS_LEAF, 1);
    if (v) {
        v->object = object;
        v->object_kind = kind;
        v->object_serial = serial;
        v->n_components = 0;
    }
    return v;
}

uint64_t ls__leaf_serial(const ls_value *leaf)
{
    return leaf->object_serial;
}

void *ls__leaf_object(const ls_value *leaf)
{
    return leaf->object;
}

/* ---- asking ------------------------------------------------------------------------ */

static ls_spread join(ls_spread a, ls_spread b)
{
    return a == 0 || a == b ? b : b == 0 ? a : LS_SPREAD_MIXED;
}

/* 0 for a nest without leaves. */
static ls_spread spread_below(const ls_value *v)
{
    ls_spread spread = v->spread;
    for (int i = 0; v->kind != LS_LEAF && i < v->count && spread != LS_SPREAD_MIXED; i++)
        spread = join(spread, spread_below(v->items[i]));
    return spread;
}

ls_spread ls_spread_of(const ls_value *v)
{
    if (!v || v->live != LS__LIVE)
        return (ls_spread)0;
    ls_spread spread = spread_below(v);
    return spread == 0 ? LS_SPREAD_PLAIN : spread;
}

static int most_components(const ls_value *v)
{
    int most = v->n_components > 1 ? v->n_components : 1;
    for (int i = 0; v->kind != LS_LEAF && i < v->count; i++) {
        int below = most_components(v->items[i]);
        most = below > most ? below : most;
    }
    return most;
}

int ls_components(const ls_value *v)
{
    return v && v->live == LS__LIVE ? most_components(v) : 0;
}

/* ---- selecting --------------------------------------------------------------------- */

static ls_value *select_leaf(const ls_value *leaf, void *user)
{
    int i = *(const int *)user;
    if (leaf->spread == LS_SPREAD_PLAIN)
        return (ls_value *)leaf;
    if (i < 0 || i >= leaf->n_components) {
        ls__hint(ls__fail(LS_INVALID, "ls_select: component %d of a leaf with %d", i,
                          leaf->n_components),
                 "components are counted from 0 to %d", leaf->n_components - 1);
        return NULL;
    }
    ls_value *out = ls_leaf(leaf->components[i]);
    /* A mirrored value has one identity, yet what replicas make of it differs: each gets it under one
     * of its own, the same whenever it is selected. */
    if (out && leaf->spread == LS_SPREAD_MIRRORED)
        out->tensor->id = ls__id_on_replica(out->tensor->id, i);
    return out;
}

ls_value *ls_select(const ls_value *v, int i)
{
    return ls__check_value("ls_select", v) ? NULL : ls__value_map(v, select_leaf, &i);
}
