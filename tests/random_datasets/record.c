/*
 * What came out of a dataset, line by line, and the orders of its shuffles.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random_datasets/program.h"

/* ---- lines ---------------------------------------------------------------------------------- */

bool rd_lines_full(const rd_lines *l)
{
    return l->elements == RD_LIMIT || l->n == 2 * RD_LIMIT;
}

bool rd_lines_ended(const rd_lines *l)
{
    return l->n > 0 && !strcmp(l->line[l->n - 1], "end");
}

static bool is_element(const char *line)
{
    return line[0] != '!' && strcmp(line, "end") != 0;
}

void rd_lines_add(rd_lines *l, const char *text)
{
    l->line[l->n] = strdup(text);
    if (!l->line[l->n])
        abort();
    l->elements += is_element(text);
    l->n++;
}

void rd_lines_free(rd_lines *l)
{
    for (int i = 0; i < l->n; i++)
        free(l->line[i]);
    *l = (rd_lines){ 0 };
}

const char *rd_lines_differ(const rd_lines *want, int i, const rd_lines *got)
{
    static char said[2048];
    for (int k = 0; k < got->n && i + k < want->n; k++)
        if (strcmp(want->line[i + k], got->line[k]) != 0) {
            snprintf(said, sizeof said, "line %d:\n  wanted: %.900s\n  got:    %.900s %s", i + k,
                     want->line[i + k], got->line[k], got->line[k][0] == '!' ? got->failure : "");
            return said;
        }
    if (i + got->n > want->n && rd_lines_ended(want)) {
        snprintf(said, sizeof said, "more than was wanted: %.900s", got->line[want->n - i]);
        return said;
    }
    return NULL;
}

int rd_lines_after(const rd_lines *l, int elements)
{
    int i = 0;
    for (; elements > 0; i++)
        elements -= is_element(l->line[i]);
    return i;
}

void rd_lines_read(rd_lines *l, ls_iterator *it, int most)
{
    ls_status st = LS_OK;
    for (int i = 0; i < most && st != LS_END && !rd_lines_full(l); i++)
        LS_FRAME {
            ls_value *v = NULL;
            rd_pool pool = { 0 };
            rd_text text = { 0 };
            const char *why;
            st = ls_next(it, &v);
            rd_element *e = st ? NULL : rd_read(&pool, v, &why);
            if (e)
                rd_print_element(&text, e);
            else if (!st)
                rd_print(&text, "an element with %s", why);
            else
                rd_print(&text, st == LS_END ? "end" : "! %s", ls_status_name(st));
            ls_status pending = ls_error();
            if (pending)
                snprintf(l->failure, sizeof l->failure, "%s", ls_error_text());
            if (pending != (st == LS_END ? LS_OK : st))
                rd_print(&text, ", and pending is %s: %s", ls_status_name(pending),
                         ls_error_text());
            rd_lines_add(l, text.at);
            rd_text_free(&text);
            rd_pool_free(&pool);
        }
}

/* ---- orders --------------------------------------------------------------------------------- */

rd_order *rd_order_of(rd_orders *o, int shuffle, int epoch, int opening)
{
    for (int i = 0; i < o->n; i++) {
        rd_order *order = &o->order[i];
        if (order->shuffle == shuffle && order->epoch == epoch && order->opening == opening)
            return order;
    }
    return NULL;
}

void rd_orders_free(rd_orders *o)
{
    for (int i = 0; i < o->n; i++)
        free(o->order[i].at);
    free(o->order);
    *o = (rd_orders){ 0 };
}

/* Each number once, and none before it can be in the buffer. */
static const char *one_wrong(const rd_order *o, int64_t buffer)
{
    for (int i = 0; i < o->n; i++) {
        if (o->at[i] < 0 || o->at[i] > i + buffer - 1)
            return "an element comes earlier than the buffer allows";
        for (int k = 0; k < i; k++)
            if (o->at[k] == o->at[i])
                return "an element comes twice";
    }
    return NULL;
}

/* How many draws are known to have been from a full buffer: later ones depend on how much there was. */
static int full_draws(const rd_order *o, int64_t buffer)
{
    int64_t last = -1;
    for (int i = 0; i < o->n; i++)
        last = o->at[i] > last ? o->at[i] : last;
    return last + 1 < buffer ? 0 : (int)(last + 2 - buffer);
}

/* A cache, and a body, may go through the same iteration again. */
static bool once_each(const rd_program *p, const rd_node *node)
{
    for (int i = 0; i < p->n_nodes; i++)
        if (p->nodes[i]->code == RD_CACHE)
            return false;
    return !node->flag && !node->inside;
}

static const char *two_wrong(const rd_program *p, const rd_node *node, const rd_order *a,
                             const rd_order *b)
{
    bool as_much = !node->inside && !node->in[0]->shuffled; /* in every iteration */
    int n = full_draws(a, node->a), m = full_draws(b, node->a);
    n = as_much ? (a->n < b->n ? a->n : b->n) : n < m ? n : m;
    bool same = !memcmp(a->at, b->at, (size_t)n * sizeof *a->at);
    if (node->flag && !same)
        return "ls_shuffle_once has another order in another iteration";
    if (a->iteration == b->iteration && !same)
        return "one iteration has two orders";
    if (a->iteration == b->iteration && once_each(p, node))
        return "two iterations have one number";
    if (!node->flag && a->iteration != b->iteration && n >= 12 && node->a >= 6 && same)
        return "two iterations have the same order";
    return NULL;
}

const char *rd_orders_wrong(const rd_program *p, const rd_orders *o)
{
    const char *wrong = NULL;
    for (int i = 0; i < o->n && !wrong; i++) {
        const rd_order *a = &o->order[i];
        const rd_node *node = p->nodes[a->shuffle];
        wrong = one_wrong(a, node->a);
        for (int k = 0; k < i && !wrong; k++)
            if (o->order[k].shuffle == a->shuffle)
                wrong = two_wrong(p, node, &o->order[k], a);
    }
    return wrong;
}
