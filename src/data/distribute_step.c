/*
 * A step: what each replica gets of what the pipelines have. Invariant: a step that cannot be made leaves
 * nothing behind in the chunk.
 */
#include "data/distribute_state.h"
#include "strategy/strategy.h"
#include "tensor/tensor.h"
#include "tensor/value.h"

static ls__datum window_of(const ls__datum *batch, ls__window w)
{
    ls__datum d = *batch;
    d.spec.dims[0] = 1;
    const size_t row = ls__spec_bytes(&d.spec);
    d.spec.dims[0] = w.count;
    d.data = (const char *)batch->data + (size_t)w.first * row;
    d.bytes = (size_t)w.count * row;
    if (d.hold == LS__OWNED)
        ls__storage_ref(d.owner);
    return d;
}

/* A replica without: no rows, the other sizes kept where they are known before there are any. */
static ls_status empty_of(const ls__type *type, int leaf, const ls__spec *other, ls__datum *out)
{
    static const char nothing[64];
    const ls__leaf_type *t = leaf < ls__type_leaves(type) ? ls__type_leaf(type, leaf) : NULL;
    ls__spec spec = *other;
    if (t && t->dtype && t->rank >= 0) {
        spec = (ls__spec){ .dtype = t->dtype, .rank = t->rank };
        for (int i = 0; i < t->rank; i++)
            spec.dims[i] = t->dims[i] < 0 ? 0 : t->dims[i];
    }
    if (spec.rank == 0)
        return ls__hint(
            ls__fail(LS_INVALID,
                     "ls_next: the data ends within a step, and leaf %d is %s, of which "
                     "a replica cannot have none",
                     leaf, ls__spec_text(&spec)),
            "batch the elements, or make the strategy with .whole_steps");
    spec.dims[0] = 0;
    *out = (ls__datum){ .spec = spec, .data = nothing, .hold = LS__BORROWED };
    return LS_OK;
}

/* Which of the elements held is a replica's; -1: it goes without. */
static int element_of(const ls__plan *plan, const ls__source *own, int j)
{
    return own->held.n == 0 ? -1 : plan->cut != LS__CUT_NONE ? 0 : j < own->held.n ? j : -1;
}

static ls_status fill_replica(const ls__it *it, int replica, const ls__chunk *first, ls__chunk *out)
{
    const ls__plan *plan = &ls__distribution_of(it)->plan;
    const int p = replica / ls__plan_each(plan), j = replica % ls__plan_each(plan);
    const ls__distributing *s = it->state;
    ls__source *own = ls__source_of(s, p);
    const int element = element_of(plan, own, j);
    ls_status st = LS_OK;
    for (int k = 0; k < first->leaves && !st; k++) {
        ls__datum *to = ls__chunk_datum(out, 0, replica * first->leaves + k);
        if (element < 0) {
            st = empty_of(own->input->dataset->type, k, &ls__chunk_datum(first, 0, k)->spec, to);
            continue;
        }
        ls__datum *from = ls__chunk_datum(&own->held, element, k);
        if (plan->cut == LS__CUT_NONE) {
            *to = *from;
            *from = (ls__datum){ .spec = from->spec, .hold = LS__BORROWED };
        } else {
            *to = window_of(from, ls__plan_window(plan, p, own->rows, own->turn, j));
        }
    }
    return st;
}

/* Elements of several datasets, of which not all was known before. Shapes may differ: so they may
 * within one. */
static ls_status check_alike(const ls__chunk *first, const ls__chunk *other)
{
    ls_status st = LS_OK;
    if (other->n == 0)
        return LS_OK;
    if (other->structure != first->structure) {
        ls__error_scope scope;
        ls__error_scope_open(&scope);
        st = ls__error_scope_close(&scope, ls_same_structure(first->structure, other->structure),
                                   "ls_next: the pipelines' elements differ");
    }
    for (int k = 0; k < first->leaves && !st; k++) {
        const ls_dtype a = ls__chunk_datum(first, 0, k)->spec.dtype;
        const ls_dtype b = ls__chunk_datum(other, 0, k)->spec.dtype;
        if (a != b)
            st = ls__fail(LS_SHAPE, "ls_next: the pipelines' elements differ: leaf %d is %s and %s",
                          k, ls_dtype_name(a), ls_dtype_name(b));
    }
    return st;
}

ls_status ls__step_fill(const ls__it *it, ls__chunk *out)
{
    const ls__plan *plan = &ls__distribution_of(it)->plan;
    const ls__distributing *s = it->state;
    int with = 0;
    while (s->sources[with].held.n == 0)
        with++;
    const ls__chunk *first = &s->sources[with].held;
    ls_status st = ls__chunk_room(out, 1, plan->replicas * first->leaves, it->words);
    for (int i = with + 1; i < s->count && !st; i++)
        st = check_alike(first, &s->sources[i].held);
    if (st)
        return st;
    out->n = 1;
    out->structure = first->structure;
    for (int r = 0; r < plan->replicas && !st; r++)
        st = fill_replica(it, r, first, out);
    if (st)
        ls__chunk_clear(out);
    return st;
}

/* ---- as values ----------------------------------------------------------------------------- */

typedef struct packing {
    const ls_strategy *strategy;
    ls__chunk *chunk;
    int element, leaves, leaf;
} packing;

static ls_value *pack_leaf(const ls_value *leaf, void *user)
{
    packing *p = user;
    const int v = p->strategy->replicas, k = p->leaf++;
    ls_tensor **parts = ls__frame_alloc(sizeof *parts * (size_t)v);
    (void)leaf;
    for (int r = 0; parts && r < v; r++) {
        parts[r] = ls__datum_tensor(ls__chunk_datum(p->chunk, p->element, r * p->leaves + k),
                                    ls__device_of_replica(p->strategy, r));
        if (!parts[r])
            return NULL;
    }
    return !parts   ? NULL
           : v == 1 ? ls_leaf(parts[0])
                    : ls__leaf_spread(LS_SPREAD_PER_REPLICA, v, parts);
}

ls_value *ls__step_value(ls__it *it, ls__chunk *c, int i)
{
    const ls_strategy *s = ls__distribution_of(it)->strategy;
    return ls__value_map(c->structure, pack_leaf,
                         &(packing){ s, c, .element = i, .leaves = c->leaves / s->replicas });
}
