/*
 * Programs from seeds: chains of a source and stages (generate_stages.c). A chain is made with what
 * is known of its elements at hand, so every program is right.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random_datasets/program.h"

uint64_t rd_draw(rd_maker *m, uint64_t below)
{
    m->state = rd_mix(m->state, 1);
    return m->state % below;
}

rd_node *rd_node_new(rd_maker *m, rd_code code, int n_in, rd_node *const *in)
{
    rd_program *p = m->p;
    rd_node *node = rd_room(&p->pool, sizeof *node);
    node->code = code;
    node->number = p->n_nodes;
    node->n_in = n_in;
    node->inside = m->given != NULL;
    node->counted = true;
    for (int i = 0; i < n_in; i++) {
        node->in[i] = in[i];
        node->shuffled = node->shuffled || in[i]->shuffled;
        node->fails = node->fails || in[i]->fails;
        node->counted = node->counted && in[i]->counted;
    }
    node->type.set = -1;
    if (n_in)
        node->type = in[0]->type;
    p->nodes[p->n_nodes++] = node;
    return node;
}

/* ---- types ---------------------------------------------------------------------------------- */

static void some_leaf(rd_maker *m, rd_type *t)
{
    static const ls_dtype dtypes[] = { LS_F32,   LS_F32,   LS_I64,  LS_I64, LS_U8,
                                       LS_U8,    LS_I32,   LS_BOOL, LS_F64, LS_BF16,
                                       LS_BYTES, LS_BYTES, LS_BYTES };
    rd_leaf *leaf = &t->leaf[t->n++];
    leaf->dtype = dtypes[rd_draw(m, sizeof dtypes / sizeof *dtypes)];
    leaf->rank = (int)(rd_draw(m, 3) ? rd_draw(m, 2) : rd_draw(m, 3));
    leaf->most = 1;
    for (int i = 0; i < leaf->rank; i++)
        leaf->most *= leaf->dims[i] = rd_draw(m, 12) ? 1 + (int64_t)rd_draw(m, 3) : 0;
}

static const rd_nest *some_nest(rd_maker *m, rd_type *t, int depth)
{
    uint64_t r = rd_draw(m, depth ? 6 : 10);
    if (depth == 2 || r < 5 || t->n >= RD_LEAVES - 4) {
        some_leaf(m, t);
        return &rd_leaf_nest;
    }
    const rd_nest *child[RD_CHILDREN];
    int n = 1 + (int)rd_draw(m, RD_CHILDREN);
    for (int i = 0; i < n; i++)
        child[i] = some_nest(m, t, depth + 1);
    return rd_nest_of(&m->p->pool, r % 2 ? LS_LIST : LS_DICT, n, child);
}

static rd_type some_type(rd_maker *m)
{
    rd_type t = { .set = -1 };
    do {
        t.n = 0;
        t.nest = some_nest(m, &t, 0);
    } while (t.n > 5);
    return t;
}

const char *rd_spec_of(rd_maker *m, const rd_type *type)
{
    rd_text text = { 0 };
    rd_dump_type(type, &text);
    char *spec = rd_room(&m->p->pool, text.length + 1);
    memcpy(spec, text.at, text.length);
    rd_text_free(&text);
    return spec;
}

/* ---- sources -------------------------------------------------------------------------------- */

static rd_node *with_content(rd_maker *m, rd_code code, const rd_type *type)
{
    rd_node *node = rd_node_new(m, code, 0, NULL);
    node->type = *type;
    node->type.set = -1;
    node->seed = rd_draw(m, 1000000);
    node->a = code == RD_ONCE ? 1 : (int64_t)(rd_draw(m, 8) ? 3 + rd_draw(m, 14) : rd_draw(m, 3));
    node->counted = code != RD_GENERATE;
    if (rd_draw(m, 3))
        node->spec = rd_spec_of(m, type);
    return node;
}

rd_node *rd_make_source_of(rd_maker *m, const rd_type *type)
{
    rd_type fixed = *type;
    for (int i = 0; i < fixed.n; i++) {
        rd_leaf *leaf = &fixed.leaf[i];
        leaf->most = 1;
        for (int a = 0; a < leaf->rank; a++) {
            if (leaf->dims[a] < 0)
                leaf->dims[a] = 2;
            leaf->most *= leaf->dims[a];
        }
    }
    static const rd_code codes[] = { RD_SLICES, RD_SLICES, RD_GENERATE, RD_ONCE };
    return with_content(m, codes[rd_draw(m, 4)], &fixed);
}

static void set_leaf(rd_node *node, ls_dtype dtype, int set)
{
    node->type = (rd_type){ .nest = &rd_leaf_nest, .n = 1, .set = set };
    node->type.leaf[0] = (rd_leaf){ .dtype = dtype, .most = 1 };
}

static rd_node *a_range(rd_maker *m)
{
    static const int64_t begins[] = { 0, 0, 0, -7, 1000000007, INT64_MAX - 60, INT64_MIN + 5 };
    rd_node *node = rd_node_new(m, RD_RANGE, 0, NULL);
    set_leaf(node, LS_I64, -1);
    node->a = begins[rd_draw(m, 7)];
    int64_t count = (int64_t)(rd_draw(m, 8) ? 3 + rd_draw(m, 16) : rd_draw(m, 4));
    int64_t step = 1 + (int64_t)rd_draw(m, 3);
    if (node->a == INT64_MAX - 60 || (node->a != INT64_MIN + 5 && rd_draw(m, 4) == 0))
        step = -step;
    node->b = count;
    node->seed = (uint64_t)step;
    return node;
}

static rd_node *names_of(rd_maker *m, rd_set set)
{
    const char *end = rd_file_of(set, 0)->name + 2; /* ".rec" */
    rd_node *node = rd_node_new(m, RD_FILES, 0, NULL);
    set_leaf(node, LS_BYTES, (int)set);
    node->n_patterns = 1 + (int)rd_draw(m, RD_PATTERNS);
    for (int i = 0; i < node->n_patterns; i++) {
        char first = (char)('0' + rd_draw(m, RD_FILES_OF_A_SET - 1));
        uint64_t r = rd_draw(m, 5);
        const char middle[] = { '[', first, '-', (char)(first + 1), ']', '\0' };
        snprintf(node->pattern[i], sizeof node->pattern[i], "%c%s%s", rd_letter_of(set),
                 r == 0   ? "*"
                 : r == 1 ? "?"
                 : r == 2 ? middle
                          : (char[2]){ middle[1], 0 },
                 end);
    }
    return node;
}

static rd_node *reader_of(rd_maker *m, rd_node *names)
{
    rd_set set = (rd_set)names->type.set;
    rd_code code = set < RD_PLAIN_TEXT    ? RD_TFRECORDS
                   : set < RD_FIXED_BYTES ? RD_TEXT_LINES
                                          : RD_FIXED;
    rd_node *node = rd_node_new(m, code, 1, &names);
    set_leaf(node, LS_BYTES, -1);
    node->type.set = -1;
    node->seed = (uint64_t)set;
    node->endless = names->endless;
    node->counted = false;
    m->p->compressed = m->p->compressed || rd_compression_of(set) != LS_PLAIN;
    if (set == RD_DAMAGED_RECORDS) {
        node->flag = rd_draw(m, 2); /* skips damaged ones */
        node->fails = node->fails || !node->flag;
    }
    if (code == RD_FIXED) {
        static const int64_t sizes[] = { 2, 3, 4, 8, 12, 24 };
        node->a = sizes[rd_draw(m, 6)];
        node->b = (int64_t)rd_draw(m, 4); /* header; the footer is what is left of 3 */
    }
    return node;
}

static rd_node *from_files(rd_maker *m, int depth)
{
    rd_set set = (rd_set)rd_draw(m, RD_SETS);
    rd_node *names = names_of(m, set);
    for (uint64_t i = rd_draw(m, 2); i > 0; i--)
        names = rd_make_names_shorter(m, names);
    return depth > 0 && rd_draw(m, 3) == 0 ? names : reader_of(m, names);
}

static rd_node *of_the_given(rd_maker *m)
{
    rd_node *node;
    uint64_t r = rd_draw(m, 3);
    if (m->given->set >= 0 || r == 0) {
        node = rd_node_new(m, RD_GIVEN, 0, NULL);
        node->type = *m->given;
        return node->type.set >= 0 ? reader_of(m, node) : node;
    }
    bool rows = m->given->rows;
    for (int i = 0; i < m->given->n; i++)
        rows = rows && m->given->leaf[i].rank > 0;
    if (r == 1 && rows) {
        node = rd_node_new(m, RD_GIVEN_ROWS, 0, NULL);
        node->type = *m->given;
        node->type.rows = false;
        for (int i = 0; i < node->type.n; i++) {
            rd_leaf *leaf = &node->type.leaf[i];
            leaf->rank--;
            memmove(leaf->dims, leaf->dims + 1, sizeof leaf->dims - sizeof *leaf->dims);
        }
        return node;
    }
    node = rd_node_new(m, RD_RANGE_OF, 0, NULL);
    set_leaf(node, LS_I64, -1);
    node->a = 1 + (int64_t)rd_draw(m, 6);
    return node;
}

rd_node *rd_make_source(rd_maker *m, int depth)
{
    if (m->given && rd_draw(m, 4))
        return of_the_given(m);
    rd_type type = some_type(m);
    switch (rd_draw(m, 12)) {
    case 0:
    case 1:
    case 2:
        return a_range(m);
    case 3:
    case 4:
    case 5:
        return from_files(m, depth);
    case 6:
    case 7:
    case 8:
        return with_content(m, RD_GENERATE, &type);
    case 9:
        return with_content(m, RD_ONCE, &type);
    default:
        return with_content(m, RD_SLICES, &type);
    }
}

/* ---- chains --------------------------------------------------------------------------------- */

rd_node *rd_make_chain(rd_maker *m, int depth)
{
    rd_node *d = rd_make_source(m, depth);
    int stages = (int)rd_draw(m, depth > 1 ? 7 : 3);
    for (int tries = 0; stages > 0 && tries < 30 && m->p->n_nodes < RD_NODES - 12; tries++) {
        rd_node *next = rd_make_stage(m, d, depth);
        if (next)
            d = next, stages--;
    }
    return d;
}

/* At the end of some programs: an order that is remembered, and gone through again. */
static rd_node *remember(rd_maker *m, rd_node *d)
{
    if (!d->shuffled || d->endless || d->fails)
        return d;
    d = rd_node_new(m, RD_CACHE, 1, &d);
    d = rd_node_new(m, RD_REPEAT, 1, &d);
    d->a = 2 + (int64_t)rd_draw(m, 2);
    m->p->whole = true;
    return d;
}

static int shuffles_in(const rd_node *d)
{
    int n = d->code == RD_SHUFFLE;
    for (int i = 0; i < d->n_in; i++)
        n += shuffles_in(d->in[i]);
    return n + (d->body ? shuffles_in(d->body) : 0);
}

rd_program *rd_make(uint64_t seed)
{
    rd_program *p = calloc(1, sizeof *p);
    if (!p)
        abort();
    p->seed = seed;
    rd_maker m = { .p = p, .state = rd_mix(seed, 0x5eed) };
    p->root = rd_make_chain(&m, 3);
    if (rd_draw(&m, 3) == 0)
        p->root = remember(&m, p->root);
    p->n_shuffles = shuffles_in(p->root);
    for (int i = 0; i < 4 * RD_NODES; i++)
        p->calls[i / RD_NODES][i % RD_NODES] = (rd_call){ .p = p,
                                                          .node = p->nodes[i % RD_NODES],
                                                          .setting = { .threads = i / RD_NODES } };
    return p;
}

void rd_free(rd_program *p)
{
    rd_pool_free(&p->pool);
    free(p);
}
