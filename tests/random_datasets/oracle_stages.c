/*
 * What a program should give: stages of one input.
 */
#include "random_datasets/oracle.h"

static ls_status next_of_map(rd_it *it, rd_element **out)
{
    rd_element *e;
    ls_status st = rd_it_next(it->in[0], &e);
    if (st)
        return st;
    *out = rd_fn_apply(it->o->pool, it->node, e);
    return *out ? LS_OK : LS_NOT_FOUND;
}

static ls_status next_of_filter(rd_it *it, rd_element **out)
{
    ls_status st;
    do
        st = rd_it_next(it->in[0], out);
    while (!st && !rd_filter_keeps(it->node, *out));
    return st;
}

static ls_status next_of_batch(rd_it *it, rd_element **out)
{
    const rd_node *node = it->node;
    rd_element *rows[16];
    int n = 0;
    while (n < node->a && !it->ended) {
        ls_status st = rd_it_next(it->in[0], &rows[n]);
        if (st == LS_END)
            it->ended = true;
        else
            n++;
    }
    if (n == 0 || (n < node->a && node->flag))
        return LS_END;
    *out = rd_padded(it->o->pool, n, rows, node->code == RD_PADDED ? node->pad : NULL, node->b);
    return LS_OK;
}

static ls_status next_of_unbatch(rd_it *it, rd_element **out)
{
    while (!it->element || it->at == it->element->leaf[0].dims[0]) {
        rd_element *e;
        ls_status st = rd_it_next(it->in[0], &e);
        if (st)
            return st;
        it->element = e;
        it->at = 0;
    }
    *out = rd_row(it->o->pool, it->element, it->at++);
    return LS_OK;
}

static bool read_up_to(rd_it *it, int64_t wanted)
{
    while (it->list.n <= wanted && !it->ended) {
        rd_element *e;
        if (rd_it_next(it->in[0], &e) == LS_END)
            it->ended = true;
        else
            rd_list_add(it->o, &it->list, e);
    }
    return wanted < it->list.n;
}

static bool is_in(const rd_order *o, int64_t number)
{
    for (int i = 0; o && i < o->n; i++)
        if (o->at[i] == number)
            return true;
    return false;
}

/* Follows the order that was learnt. Elements that the twin did not come to are given as they come: it
 * needed none of them, so nobody will see them, unless the shuffle loses some. */
static ls_status next_of_shuffle(rd_it *it, rd_element **out)
{
    if (!it->o->orders)
        return rd_it_next(it->in[0], out);
    if (!it->begun && read_up_to(it, 0)) { /* of nothing there is no order */
        int n = it->node->number;
        it->order = rd_order_of(it->o->orders, n, it->o->epoch, it->o->openings[n]++);
    }
    it->begun = true;
    read_up_to(it, it->given++ + it->node->a - 1); /* the buffer is kept full */
    int64_t wanted = it->order && it->at < it->order->n ? it->order->at[it->at++] : -1;
    if (wanted < 0) {
        while (is_in(it->order, it->turn))
            it->turn++;
        wanted = it->turn++;
        if (!read_up_to(it, wanted))
            return LS_END;
    }
    if (!read_up_to(it, wanted)) {
        if (!it->o->why)
            it->o->why = "a shuffle gives an element that its input has not";
        return LS_END;
    }
    *out = it->list.at[wanted];
    return LS_OK;
}

static ls_status next_of_repeat(rd_it *it, rd_element **out)
{
    const rd_node *node = it->node;
    while (node->a < 0 || it->turn < node->a) {
        ls_status st = rd_it_next(it->in[0], out);
        it->some |= st == LS_OK;
        if (st != LS_END)
            return st;
        if (node->a < 0 && !it->some)
            return LS_END; /* nothing, for ever */
        it->some = false;
        it->turn++;
        it->in[0] = rd_it_open(it->o, node->in[0], it->scope);
    }
    return LS_END;
}

static ls_status next_of_take(rd_it *it, rd_element **out)
{
    if (it->node->a >= 0 && it->at >= it->node->a)
        return LS_END;
    it->at++;
    return rd_it_next(it->in[0], out);
}

static ls_status next_of_skip(rd_it *it, rd_element **out)
{
    if (it->node->a < 0)
        return LS_END;
    for (; it->at < it->node->a; it->at++) {
        ls_status st = rd_it_next(it->in[0], out);
        if (st)
            return st;
    }
    return rd_it_next(it->in[0], out);
}

const char rd_few_elements[] = "fewer elements than shards";

static ls_status next_of_shard(rd_it *it, rd_element **out)
{
    for (;;) {
        ls_status st = rd_it_next(it->in[0], out);
        if (st == LS_END && it->at > it->node->b && it->at < it->node->a)
            it->o->why = rd_few_elements; /* it fails: what becomes of that is for other tests */
        if (st || it->at++ % it->node->a == it->node->b)
            return st;
    }
}

static ls_status next_of_cache(rd_it *it, rd_element **out)
{
    rd_list *kept = &it->scope->cache[it->node->number];
    if (!it->begun)
        it->begun = true, it->some = kept->whole; /* reads what is kept */
    if (it->some) {
        if (it->at == kept->n)
            return LS_END;
        *out = kept->at[it->at++];
        return LS_OK;
    }
    ls_status st = rd_it_next(it->in[0], out);
    if (!st)
        rd_list_add(it->o, &it->list, *out);
    else if (st == LS_END && !kept->whole) {
        *kept = it->list;
        kept->whole = true;
    }
    return st;
}

static ls_status next_of_enumeration(rd_it *it, rd_element **out)
{
    rd_element *parts[2];
    ls_status st = rd_it_next(it->in[0], &parts[1]);
    if (st)
        return st;
    parts[0] = rd_number(it->o->pool, it->node->a + it->at++);
    *out = rd_listed(it->o->pool, 2, parts);
    return LS_OK;
}

bool rd_it_next_stage(rd_it *it, rd_element **out, ls_status *st)
{
    static ls_status (*const stages[RD_CODES])(rd_it *, rd_element **) = {
        [RD_MAP] = next_of_map,         [RD_FILTER] = next_of_filter,
        [RD_BATCH] = next_of_batch,     [RD_PADDED] = next_of_batch,
        [RD_UNBATCH] = next_of_unbatch, [RD_SHUFFLE] = next_of_shuffle,
        [RD_REPEAT] = next_of_repeat,   [RD_TAKE] = next_of_take,
        [RD_SKIP] = next_of_skip,       [RD_SHARD] = next_of_shard,
        [RD_CACHE] = next_of_cache,     [RD_ENUMERATE] = next_of_enumeration
    };
    if (it->node->code == RD_PREFETCH)
        *st = rd_it_next(it->in[0], out);
    else if (stages[it->node->code])
        *st = stages[it->node->code](it, out);
    else
        return false;
    return true;
}
