/*
 * A program as a dataset of Lockstep. Callbacks read an element into the oracle's form, do with it what
 * the oracle does, and make a value of the result: they may run on any thread, so they touch nothing
 * else. A twin's are called by one thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random_datasets/program.h"

typedef struct builder {
    rd_program *p;
    rd_setting setting;
    const rd_element *given;
    ls_dataset *made[RD_NODES]; /* a node that is used twice is one dataset */
} builder;

static ls_dataset *build(builder *b, const rd_node *node);

static rd_call *call_of(const builder *b, const rd_node *node)
{
    return &b->p->calls[b->setting.learn ? 3 : b->setting.threads][node->number];
}

/* ---- callbacks ------------------------------------------------------------------------------ */

static ls_value *fail_not_found(void)
{
    ls_value *leaf = ls_leaf(ls_scalar(LS_F32, 0));
    return ls_get(ls_dict(1, (const char *[]){ "here" }, &leaf), "not here");
}

static ls_value *map_fn(ls_value *element, void *user)
{
    const rd_call *call = user;
    rd_pool pool = { 0 };
    const char *why;
    rd_element *e = rd_read(&pool, element, &why);
    e = e ? rd_fn_apply(&pool, call->node, e) : NULL;
    ls_value *out = e ? rd_value(e) : fail_not_found();
    rd_pool_free(&pool);
    return out;
}

static bool filter_fn(ls_value *element, void *user)
{
    const rd_call *call = user;
    rd_pool pool = { 0 };
    const char *why;
    rd_element *e = rd_read(&pool, element, &why);
    bool keeps = e && rd_filter_keeps(call->node, e);
    rd_pool_free(&pool);
    return keeps;
}

static ls_dataset *body_fn(ls_value *element, void *user)
{
    const rd_call *call = user;
    rd_pool pool = { 0 };
    const char *why;
    builder *b = calloc(1, sizeof *b);
    if (!b)
        abort();
    b->p = (rd_program *)(uintptr_t)call->p;
    b->setting = call->setting;
    b->given = rd_read(&pool, element, &why);
    ls_dataset *d = b->given ? build(b, call->node->body) : NULL;
    free(b);
    rd_pool_free(&pool);
    return d;
}

/* ---- generators ----------------------------------------------------------------------------- */

typedef struct counter {
    const rd_call *call;
    int64_t at, iteration;
    int order; /* a twin's, from its first element on */
} counter;

static void *counter_open(void *user, int64_t iteration)
{
    counter *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    c->call = user;
    c->iteration = iteration;
    c->order = -1;
    return c;
}

static ls_status content_next(void *state, ls_value **out)
{
    counter *c = state;
    rd_pool pool = { 0 };
    if (c->at >= c->call->node->a)
        return LS_END;
    *out = rd_value(rd_content(&pool, c->call->node, c->at++));
    rd_pool_free(&pool);
    return *out ? LS_OK : ls_error_pending();
}

static ls_tensor *counter_save(void *state)
{
    counter *c = state;
    return ls_from(LS_U8, LS_DIMS(sizeof c->at), &c->at);
}

static ls_status counter_load(void *state, const ls_tensor *saved)
{
    counter *c = state;
    return ls_copy_out(saved, &c->at, sizeof c->at);
}

/* ---- what a twin does around a shuffle ------------------------------------------------------ */

static int new_order(rd_orders *o, int shuffle, int64_t iteration)
{
    if (o->n == o->room) {
        o->room = 2 * o->room + 8;
        o->order = realloc(o->order, (size_t)o->room * sizeof *o->order);
        if (!o->order)
            abort();
    }
    o->order[o->n] = (rd_order){ .shuffle = shuffle,
                                 .epoch = o->epoch,
                                 .opening = o->openings[shuffle]++,
                                 .iteration = iteration };
    return o->n++;
}

/* Numbers of elements, for ever: [which order, which element]. */
static ls_status tag_next(void *state, ls_value **out)
{
    counter *c = state;
    if (c->order < 0)
        c->order = new_order(c->call->setting.learn, c->call->node->number, c->iteration);
    *out = ls_leaf(ls_from(LS_I64, LS_DIMS(2), (int64_t[]){ c->order, c->at++ }));
    return *out ? LS_OK : ls_error_pending();
}

static ls_value *note_tag(ls_value *element, void *user)
{
    const rd_call *call = user;
    int64_t tag[2];
    if (ls_copy_out(ls_item(element, 1), tag, sizeof tag))
        return NULL;
    rd_order *o = &call->setting.learn->order[tag[0]];
    o->at = realloc(o->at, (size_t)(o->n + 1) * sizeof *o->at);
    if (!o->at)
        abort();
    o->at[o->n++] = tag[1];
    return ls_child(element, 0);
}

static ls_dataset *shuffle(const rd_node *node, ls_dataset *d)
{
    return node->flag ? ls_shuffle_once(d, node->a, node->seed)
                      : ls_shuffle(d, node->a, node->seed);
}

static ls_dataset *tagged_shuffle(builder *b, const rd_node *node, ls_dataset *d)
{
    ls_dataset *tags =
        ls_generate(LS_GENERATOR(.user = call_of(b, node), .next = tag_next, .open = counter_open,
                                 .close = free, .spec = "i64[2]"));
    d = shuffle(node, ls_zip(2, (ls_dataset *[]){ d, tags }));
    return ls_map(d, LS_MAP(.fn = note_tag, .user = call_of(b, node), .spec = node->spec));
}

/* ---- building ------------------------------------------------------------------------------- */

static ls_dataset *build_source(builder *b, const rd_node *node)
{
    const char *patterns[RD_PATTERNS];
    rd_pool pool = { 0 };
    rd_element **rows;
    ls_dataset *d = NULL;
    uint64_t h;
    switch (node->code) {
    case RD_RANGE: /* the end is not reached: less than a step behind the last */
        return ls_range(node->a, (int64_t)((uint64_t)node->a + node->seed * (uint64_t)node->b),
                        (int64_t)node->seed);
    case RD_RANGE_OF:
        h = rd_hash(b->given);
        return ls_range((int64_t)(h % 100), (int64_t)(h % 100 + h / 100 % (uint64_t)node->a), 1);
    case RD_GIVEN:
        return ls_once(rd_value(b->given));
    case RD_GIVEN_ROWS:
        return ls_slices(rd_value(b->given));
    case RD_GENERATE:
        return ls_generate(LS_GENERATOR(.user = call_of(b, node), .next = content_next,
                                        .open = counter_open, .close = free, .save = counter_save,
                                        .load = counter_load, .spec = node->spec));
    case RD_FILES:
        for (int i = 0; i < node->n_patterns; i++)
            patterns[i] = node->pattern[i];
        return ls_files(node->n_patterns, patterns);
    case RD_ONCE:
        d = ls_once(rd_value(rd_content(&pool, node, 0)));
        break;
    default: /* RD_SLICES; of no rows: the first of one row */
        rows = rd_room(&pool, (size_t)(node->a + 1) * sizeof *rows);
        for (int64_t i = 0; i <= node->a; i++)
            rows[i] = rd_content(&pool, node, i);
        rd_element *all = rd_stacked(&pool, (int)node->a + 1, rows);
        for (int i = 0; i < all->n; i++) {
            rd_tensor *t = &all->leaf[i];
            t->count = t->count / t->dims[0] * node->a;
            t->dims[0] = node->a;
        }
        d = ls_slices(rd_value(all));
    }
    rd_pool_free(&pool);
    return d;
}

static ls_dataset *build_reader(const rd_node *node, ls_dataset *names)
{
    ls_compression how = rd_compression_of((rd_set)node->seed);
    if (node->code == RD_FIXED)
        return ls_fixed_records(names, LS_RECORDS(.record_bytes = node->a, .header_bytes = node->b,
                                                  .footer_bytes = 3 - node->b));
    const ls_records_options *options = LS_RECORDS(.compression = how, .skip_corrupt = node->flag);
    if (how == LS_PLAIN && !node->flag)
        options = NULL;
    return node->code == RD_TFRECORDS ? ls_tfrecords(names, options)
                                      : ls_text_lines(names, options);
}

static ls_dataset *build_spread(builder *b, const rd_node *node, ls_dataset *d)
{
    static const int others[] = { 2, 3, 0, 1 };
    int parallel[] = { 0, node->parallel, others[node->parallel] };
    if (node->code == RD_FLAT_MAP)
        return ls_flat_map(d, body_fn, call_of(b, node));
    return ls_interleave(
        d, LS_INTERLEAVE(.fn = body_fn, .user = call_of(b, node), .cycle = (int)node->a,
                         .block = node->b,
                         .parallel = b->setting.learn ? 0 : parallel[b->setting.threads]));
}

static ls_dataset *build_map(builder *b, const rd_node *node, ls_dataset *d)
{
    int parallel[] = { 0, node->parallel, node->parallel == 1 ? -1 : 4 - node->parallel };
    return ls_map(d, LS_MAP(.fn = map_fn, .user = call_of(b, node), .spec = node->spec,
                            .parallel = b->setting.learn ? 0 : parallel[b->setting.threads]));
}

static ls_dataset *build_stage(builder *b, const rd_node *node, ls_dataset **in)
{
    int64_t prefetch[] = { 1, node->a, 9 };
    char file[64];
    switch (node->code) {
    case RD_MAP:
        return build_map(b, node, in[0]);
    case RD_FILTER:
        return ls_filter(in[0], filter_fn, call_of(b, node));
    case RD_BATCH:
        return node->flag ? ls_batch_full(in[0], node->a) : ls_batch(in[0], node->a);
    case RD_PADDED:
        return ls_padded_batch(
            in[0], node->a,
            LS_PADDED(.full = node->flag, .shapes = node->spec, .value = (double)node->b));
    case RD_UNBATCH:
        return ls_unbatch(in[0]);
    case RD_SHUFFLE:
        return b->setting.learn ? tagged_shuffle(b, node, in[0]) : shuffle(node, in[0]);
    case RD_REPEAT:
        return ls_repeat(in[0], node->a);
    case RD_TAKE:
        return ls_take(in[0], node->a);
    case RD_SKIP:
        return ls_skip(in[0], node->a);
    case RD_SHARD:
        return ls_shard(in[0], node->a, node->b);
    case RD_CACHE:
        snprintf(file, sizeof file, "cache-%llu-%d", (unsigned long long)b->p->seed, node->number);
        return ls_cache(in[0], node->flag && !b->setting.learn ? file : NULL);
    case RD_PREFETCH:
        return b->setting.learn ? in[0] : ls_prefetch(in[0], prefetch[b->setting.threads]);
    case RD_ZIP:
        return ls_zip(node->n_in, in);
    case RD_CONCATENATE:
        return ls_concatenate(in[0], in[1]);
    case RD_ENUMERATE:
        return ls_enumerate(in[0], node->a);
    case RD_FLAT_MAP:
    case RD_INTERLEAVE:
        return build_spread(b, node, in[0]);
    default:
        return build_reader(node, in[0]);
    }
}

static ls_dataset *build(builder *b, const rd_node *node)
{
    if (b->made[node->number])
        return b->made[node->number];
    ls_dataset *in[RD_INPUTS], *d;
    for (int i = 0; i < node->n_in; i++)
        in[i] = build(b, node->in[i]);
    d = node->n_in ? build_stage(b, node, in) : build_source(b, node);
    b->made[node->number] = d;
    return d;
}

ls_dataset *rd_build(rd_program *p, rd_setting setting)
{
    builder *b = calloc(1, sizeof *b);
    if (!b)
        abort();
    b->p = p;
    b->setting = setting;
    for (int i = 0; setting.learn && i < RD_NODES; i++)
        p->calls[3][i].setting.learn = setting.learn;
    ls_dataset *d = build(b, p->root);
    free(b);
    return d;
}
