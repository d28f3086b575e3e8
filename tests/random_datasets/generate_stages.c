/*
 * Which stages can follow a dataset, and what is known of their elements.
 */
#include <string.h>

#include "random_datasets/program.h"

/* ---- facts ---------------------------------------------------------------------------------- */

static bool can_stack(const rd_type *t, int64_t n, bool one_shape)
{
    for (int i = 0; i < t->n; i++) {
        const rd_leaf *leaf = &t->leaf[i];
        if (leaf->rank == RD_RANK || leaf->most * n > RD_CELLS)
            return false;
        for (int a = 0; a < leaf->rank && one_shape; a++)
            if (leaf->dims[a] < 0)
                return false;
    }
    return true;
}

static void stack(rd_type *t, int64_t n, bool full)
{
    for (int i = 0; i < t->n; i++) {
        rd_leaf *leaf = &t->leaf[i];
        memmove(leaf->dims + 1, leaf->dims, sizeof leaf->dims - sizeof *leaf->dims);
        leaf->dims[0] = full ? n : -1;
        leaf->rank++;
        leaf->most *= n;
    }
    t->rows = true;
    t->set = -1;
}

static bool can_unbatch(const rd_type *t)
{
    bool rows = true;
    for (int i = 0; i < t->n; i++) {
        if (t->leaf[i].rank == 0)
            return false;
        rows = rows && t->leaf[i].dims[0] >= 0 && t->leaf[i].dims[0] == t->leaf[0].dims[0];
    }
    return rows || t->rows;
}

static void unstack(rd_type *t)
{
    for (int i = 0; i < t->n; i++) {
        rd_leaf *leaf = &t->leaf[i];
        leaf->rank--;
        memmove(leaf->dims, leaf->dims + 1, sizeof leaf->dims - sizeof *leaf->dims);
    }
    t->rows = false;
}

/* Sizes that differ are not known. */
static void join(rd_type *t, const rd_type *other)
{
    for (int i = 0; i < t->n; i++) {
        rd_leaf *leaf = &t->leaf[i];
        for (int a = 0; a < leaf->rank; a++)
            if (leaf->dims[a] != other->leaf[i].dims[a])
                leaf->dims[a] = -1;
        if (leaf->most < other->leaf[i].most)
            leaf->most = other->leaf[i].most;
    }
    t->rows = t->rows && other->rows;
    if (t->set != other->set)
        t->set = -1;
}

/* ---- stages of one input -------------------------------------------------------------------- */

static rd_node *a_map(rd_maker *m, rd_node *d)
{
    rd_fn fn = (rd_fn)rd_draw(m, RD_FNS);
    rd_type type;
    if (!rd_fn_type(&m->p->pool, fn, &d->type, &type))
        return NULL;
    rd_node *node = rd_node_new(m, RD_MAP, 1, &d);
    node->fn = fn;
    node->a = (int64_t)rd_draw(m, 20);
    node->type = type;
    node->parallel = (int)rd_draw(m, 4);
    node->fails = node->fails || fn == RD_FAILS;
    node->endless = d->endless;
    if (rd_draw(m, 2))
        node->spec = rd_spec_of(m, &type);
    return node;
}

/* Strings of more axes than none: ls_batch says LS_UNSUPPORTED. */
static bool has_arrays_of_strings(const rd_type *t)
{
    for (int i = 0; i < t->n; i++)
        if (t->leaf[i].dtype == LS_BYTES && t->leaf[i].rank > 0)
            return true;
    return false;
}

static rd_node *a_batch(rd_maker *m, rd_node *d)
{
    int64_t n = 1 + (int64_t)rd_draw(m, 4);
    if (!can_stack(&d->type, n, true) || has_arrays_of_strings(&d->type))
        return NULL;
    rd_node *node = rd_node_new(m, RD_BATCH, 1, &d);
    node->a = n;
    node->flag = rd_draw(m, 3) == 0;
    node->endless = d->endless;
    stack(&node->type, n, node->flag);
    return node;
}

/* Some shapes are given: what an element has, or one more; never less. */
static void give_shapes(rd_maker *m, rd_node *node, const rd_type *in)
{
    rd_type shapes = *in;
    node->pad = rd_room(&m->p->pool, sizeof(int64_t) * RD_LEAVES * RD_RANK);
    for (int i = 0; i < in->n; i++)
        for (int a = 0; a < in->leaf[i].rank; a++) {
            int64_t size = in->leaf[i].dims[a];
            if (size >= 0 && rd_draw(m, 2))
                size += (int64_t)rd_draw(m, 2);
            else
                size = -1;
            shapes.leaf[i].dims[a] = node->pad[i * RD_RANK + a] = size;
        }
    node->spec = rd_spec_of(m, &shapes);
}

static rd_node *a_padded_batch(rd_maker *m, rd_node *d)
{
    int64_t n = 1 + (int64_t)rd_draw(m, 4);
    if (!can_stack(&d->type, n * 8, false))
        return NULL;
    rd_node *node = rd_node_new(m, RD_PADDED, 1, &d);
    bool strings = false;
    for (int i = 0; i < d->type.n; i++)
        strings = strings || d->type.leaf[i].dtype == LS_BYTES;
    node->a = n;
    node->b = strings ? 0 : (int64_t)rd_draw(m, 2);
    node->flag = rd_draw(m, 3) == 0;
    node->endless = d->endless;
    if (rd_draw(m, 2))
        give_shapes(m, node, &d->type);
    stack(&node->type, n, node->flag);
    for (int i = 0; i < node->type.n; i++) {
        rd_leaf *leaf = &node->type.leaf[i];
        leaf->most *= 4; /* one more in each of two axes */
        for (int a = 1; a < leaf->rank; a++)
            if (node->pad && node->pad[i * RD_RANK + a - 1] >= 0)
                leaf->dims[a] = node->pad[i * RD_RANK + a - 1];
    }
    return node;
}

static rd_node *an_unbatch(rd_maker *m, rd_node *d)
{
    if (!can_unbatch(&d->type))
        return NULL;
    rd_node *node = rd_node_new(m, RD_UNBATCH, 1, &d);
    unstack(&node->type);
    node->endless = d->endless;
    node->counted = false;
    return node;
}

static rd_node *a_shuffle(rd_maker *m, rd_node *d)
{
    rd_node *node = rd_node_new(m, RD_SHUFFLE, 1, &d);
    node->a = rd_draw(m, 6) ? 1 + (int64_t)rd_draw(m, 12) : 100;
    node->seed = rd_draw(m, 5);
    node->flag = rd_draw(m, 4) == 0;
    node->shuffled = node->shuffled || !node->flag;
    node->endless = d->endless;
    node->spec = rd_spec_of(m, &d->type); /* for the twin */
    return node;
}

/* With one number or none: what keeps elements as they are. */
static rd_node *plain_stage(rd_maker *m, rd_node *d, rd_code code, int64_t number)
{
    rd_node *node = rd_node_new(m, code, 1, &d);
    node->a = number;
    node->endless = d->endless;
    return node;
}

/* NULL where it may come to a place after which nothing is kept, for ever. */
static rd_node *a_filter(rd_maker *m, rd_node *d)
{
    if (d->endless && (m->given || d->shuffled))
        return NULL;
    rd_node *node = plain_stage(m, d, RD_FILTER, 2 + (int64_t)rd_draw(m, 3));
    node->b = (int64_t)rd_draw(m, (uint64_t)node->a);
    node->counted = false;
    return node;
}

static rd_node *some_of(rd_maker *m, rd_node *d)
{
    rd_node *node = NULL;
    switch (rd_draw(m, 4)) {
    case 0:
        node = plain_stage(m, d, RD_TAKE, (int64_t)rd_draw(m, 14) - 1);
        node->endless = d->endless && node->a < 0;
        break;
    case 1:
        node = plain_stage(m, d, RD_SKIP, (int64_t)rd_draw(m, 7) - (rd_draw(m, 4) == 0));
        if (d->endless && node->a < 0) /* failing_test.c: it looks at all of them */
            node->a = 0;
        node->endless = d->endless;
        break;
    case 2:
        node = plain_stage(m, d, RD_SHARD, 1 + (int64_t)rd_draw(m, 3));
        node->b = (int64_t)rd_draw(m, (uint64_t)node->a);
        break;
    default:
        node = a_filter(m, d);
    }
    return node ? node : d;
}

static rd_node *a_repeat(rd_maker *m, rd_node *d)
{
    bool for_ever = rd_draw(m, 5) == 0;
    int64_t times = rd_draw(m, 10) ? 1 + (int64_t)rd_draw(m, 3) : 0;
    rd_node *node = plain_stage(m, d, RD_REPEAT, for_ever ? -1 : times);
    node->endless = node->a && (d->endless || for_ever);
    return node;
}

static rd_node *a_cache(rd_maker *m, rd_node *d)
{
    if (d->shuffled)
        return NULL;
    rd_node *node = plain_stage(m, d, RD_CACHE, 0);
    node->flag = !m->given && rd_draw(m, 3) == 0;
    return node;
}

rd_node *rd_make_names_shorter(rd_maker *m, rd_node *d)
{
    uint64_t r = rd_draw(m, 4);
    return r == 0 ? a_shuffle(m, d) : r == 1 ? a_repeat(m, d) : some_of(m, d);
}

/* ---- stages of several ---------------------------------------------------------------------- */

static rd_node *a_zip(rd_maker *m, rd_node *d, int depth)
{
    rd_node *in[RD_INPUTS] = { d };
    const rd_nest *nests[RD_CHILDREN];
    int n = 1 + (int)rd_draw(m, RD_INPUTS);
    for (int i = 1; i < n; i++) {
        in[i] = rd_draw(m, 5) || d->shuffled ? rd_make_chain(m, depth - 1) : d;
        if (in[i]->fails)
            return NULL;
    }
    rd_type type = { .set = -1 };
    for (int i = 0; i < n; i++) {
        nests[i] = in[i]->type.nest;
        if (type.n + in[i]->type.n > RD_LEAVES)
            return NULL;
        memcpy(type.leaf + type.n, in[i]->type.leaf, (size_t)in[i]->type.n * sizeof *type.leaf);
        type.n += in[i]->type.n;
    }
    type.nest = rd_nest_of(&m->p->pool, LS_LIST, n, nests);
    rd_node *node = rd_node_new(m, RD_ZIP, n, in);
    node->type = type;
    node->endless = true;
    for (int i = 0; i < n; i++)
        node->endless = node->endless && in[i]->endless;
    return node;
}

static rd_node *a_concatenation(rd_maker *m, rd_node *d)
{
    rd_node *other = rd_draw(m, 4) || d->shuffled ? rd_make_source_of(m, &d->type) : d;
    for (uint64_t i = other == d ? 0 : rd_draw(m, 3); i > 0; i--)
        other = rd_make_names_shorter(m, other);
    bool first = rd_draw(m, 3) > 0;
    rd_node *in[2] = { first ? d : other, first ? other : d };
    rd_node *node = rd_node_new(m, RD_CONCATENATE, 2, in);
    join(&node->type, &in[1]->type);
    node->endless = in[0]->endless || in[1]->endless;
    return node;
}

static rd_node *an_enumeration(rd_maker *m, rd_node *d)
{
    if (d->type.n == RD_LEAVES)
        return NULL;
    const rd_nest *nests[2] = { &rd_leaf_nest, d->type.nest };
    rd_node *node = plain_stage(m, d, RD_ENUMERATE, (int64_t)rd_draw(m, 9) - 3);
    rd_type type = { .nest = rd_nest_of(&m->p->pool, LS_LIST, 2, nests),
                     .n = d->type.n + 1,
                     .set = -1 };
    type.leaf[0] = (rd_leaf){ .dtype = LS_I64, .most = 1 };
    memcpy(type.leaf + 1, d->type.leaf, (size_t)d->type.n * sizeof *type.leaf);
    node->type = type;
    return node;
}

static rd_node *a_spread(rd_maker *m, rd_node *d, rd_code code, int depth)
{
    const rd_type *around = m->given;
    m->given = &d->type;
    rd_node *body = rd_make_chain(m, depth - 1);
    m->given = around;
    if (body->fails && code == RD_INTERLEAVE)
        return NULL;
    rd_node *node = rd_node_new(m, code, 1, &d);
    node->body = body;
    node->type = body->type;
    node->a = 1 + (int64_t)rd_draw(m, 4);
    node->b = 1 + (int64_t)rd_draw(m, 3);
    node->parallel = (int)rd_draw(m, 4);
    node->shuffled = node->shuffled || body->shuffled;
    node->fails = node->fails || body->fails;
    node->endless = d->endless || body->endless;
    node->counted = false;
    return node;
}

rd_node *rd_make_stage(rd_maker *m, rd_node *d, int depth)
{
    static const rd_code after_failures[] = { RD_MAP, RD_FILTER, RD_PREFETCH, RD_REPEAT,
                                              RD_CONCATENATE };
    rd_code code = d->fails ? after_failures[rd_draw(m, 5)]
                            : (rd_code)(RD_MAP + (int)rd_draw(m, RD_CODES - RD_MAP));
    switch (code) {
    case RD_MAP:
        return a_map(m, d);
    case RD_BATCH:
        return a_batch(m, d);
    case RD_PADDED:
        return a_padded_batch(m, d);
    case RD_UNBATCH:
        return an_unbatch(m, d);
    case RD_SHUFFLE:
        return a_shuffle(m, d);
    case RD_REPEAT:
        return a_repeat(m, d);
    case RD_TAKE:
    case RD_SKIP:
    case RD_SHARD:
        return some_of(m, d);
    case RD_FILTER:
        return a_filter(m, d);
    case RD_CACHE:
        return a_cache(m, d);
    case RD_PREFETCH:
        return plain_stage(m, d, RD_PREFETCH, 1 + (int64_t)rd_draw(m, 4));
    case RD_ZIP:
        return depth > 0 ? a_zip(m, d, depth) : NULL;
    case RD_CONCATENATE:
        return a_concatenation(m, d);
    case RD_ENUMERATE:
        return an_enumeration(m, d);
    case RD_FLAT_MAP:
    case RD_INTERLEAVE:
        return depth > 0 ? a_spread(m, d, code, depth) : NULL;
    default:
        return NULL;
    }
}
