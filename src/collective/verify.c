/*
 * The proof of a schedule: its hops are followed, and every value on the way is kept as the
 * expression it is, so that what a rank ends with can be compared with what was promised. Knows
 * nothing of how schedules are made: the promise is computed here, by the plain loops.
 *
 * Chunks have nothing to do with one another but the folds, so each is followed on its own, round
 * by round: sends look at what was there before the round, receives find their send, adds follow in
 * order. What is known of a chunk is a table of facts (verify_facts.h): who has which node, as
 * which expression, and whether it was of any use; what was sent; which sums were made; and the
 * expressions themselves, so that equal ones have the same number: replica r is r, sums count on
 * from V.
 */
#include <stdlib.h>

#include "base/status.h"
#include "collective/placement.h"
#include "collective/schedule.h"
#include "collective/verify_facts.h"
#include "collective/verify_lists.h"

typedef struct proof {
    const ls__schedule *s;
    ls__lists lists;
    ls__facts facts; /* of one chunk at a time */
    int *order;      /* ring: the rank at each position of this chunk's ring */
    uint32_t n_expressions;
} proof;

/* Fails for what is not one hop's fault. */
static ls_status wrong_end(const ls__schedule *s, int rank, int chunk, const char *why)
{
    return ls__hint(
        ls__fail(LS_CORRUPT,
                 "schedule %s of %d ranks: rank %d, round %d, hop %d (the end), chunk %d: %s",
                 ls__algorithm_name(s->spec.algorithm), s->spec.ranks, rank, s->rounds,
                 s->n_hops[rank], chunk, why),
        "use it as ls__schedule_make made it");
}

/* ---- one chunk ------------------------------------------------------------------------ */

static uint32_t sum_of(proof *p, uint32_t left, uint32_t right)
{
    ls__fact *sum = ls__fact_new(&p->facts, LS__FACT_SUM, left, right, 0);
    if (!sum)
        return ls__fact_find(&p->facts, LS__FACT_SUM, left, right, 0)->expression;
    return sum->expression = p->n_expressions++;
}

/* A rank has a node from now on; NULL: it had. */
static ls__fact *gain(proof *p, ls__place at, uint32_t node, uint32_t expression, bool own)
{
    ls__fact *has = ls__fact_new(&p->facts, LS__FACT_HAS, (uint32_t)at.rank, node, 0);
    if (has) {
        has->expression = expression;
        has->own = own;
        has->rank = at.rank;
        has->hop = at.hop;
    }
    return has;
}

static const char *follow_send(proof *p, ls__place at, const ls__hop *h)
{
    ls__fact *has = ls__fact_find(&p->facts, LS__FACT_HAS, (uint32_t)at.rank, h->node, 0);
    if (!has)
        return "it does not have that when the round begins";
    ls__fact *sent = ls__fact_new(&p->facts, LS__FACT_SENT, (uint32_t)at.rank << 16 | h->peer,
                                  h->node, h->round);
    if (!sent)
        return "it sends that twice";
    sent->expression = has->expression;
    has->used = true;
    return NULL;
}

static const char *follow_receive(proof *p, ls__place at, const ls__hop *h)
{
    ls__fact *sent = ls__fact_find(&p->facts, LS__FACT_SENT,
                                   (uint32_t)h->peer << 16 | (uint32_t)at.rank, h->node, h->round);
    if (!sent)
        return "its peer does not send that in this round";
    if (!gain(p, at, h->node, sent->expression, false))
        return "it has that already";
    sent->used = true;
    return NULL;
}

static const char *follow_add(proof *p, ls__place at, const ls__hop *h)
{
    uint32_t left, right;
    if (!ls__node_parts(&p->s->spec, h->node, &left, &right))
        return "that is not a sum";
    ls__fact *l = ls__fact_find(&p->facts, LS__FACT_HAS, (uint32_t)at.rank, left, 0);
    ls__fact *r = ls__fact_find(&p->facts, LS__FACT_HAS, (uint32_t)at.rank, right, 0);
    if (!l || !r)
        return l ? "it does not have the right part" : "it does not have the left part";
    bool fold = ls__hop_is_fold(h);
    if (!fold && l->own && r->own)
        return "both parts are its own: that is a fold, of every chunk";
    if (!ls__fact_new(&p->facts, LS__FACT_MADE, h->node, 0, 0))
        return "that sum was made before";
    l->used = r->used = true;
    uint32_t expression = sum_of(p, l->expression, r->expression);
    return gain(p, at, h->node, expression, fold) ? NULL : "it has that already";
}

/* The hops from begin to end, all of one round. */
static ls_status follow_round(proof *p, size_t begin, size_t end)
{
    static const char *(*const follow[])(proof *, ls__place, const ls__hop *) = {
        [LS__ACT_SEND] = follow_send, [LS__ACT_RECEIVE] = follow_receive, [LS__ACT_ADD] = follow_add
    };
    for (int act = LS__ACT_SEND; act <= LS__ACT_ADD; act++)
        for (size_t i = begin; i < end; i++) {
            ls__place at = p->lists.places[i];
            const ls__hop *h = &p->s->hops[at.rank][at.hop];
            const char *why = h->act == act ? follow[act](p, at, h) : NULL;
            if (why)
                return ls__hop_wrong(p->s, at, why);
        }
    for (size_t i = begin; i < end; i++) {
        ls__place at = p->lists.places[i];
        const ls__hop *h = &p->s->hops[at.rank][at.hop];
        if (h->act == LS__ACT_SEND &&
            !ls__fact_find(&p->facts, LS__FACT_SENT, (uint32_t)at.rank << 16 | h->peer, h->node,
                           h->round)
                 ->used)
            return ls__hop_wrong(p->s, at, "its peer does not receive that in this round");
    }
    return LS_OK;
}

/* The rule of the rings, host by host: subdivision i starts stride * i further inside each host, and
 * goes through it backwards when i is odd. */
static void order_ring(proof *p, int chunk)
{
    const ls__schedule_spec *spec = &p->s->spec;
    int hosts = 0, n = 0, sub = chunk % spec->subdivisions;
    for (int first = 0; first < spec->ranks; first += spec->ranks_per_host)
        hosts++;
    int stride = spec->ranks / hosts / spec->subdivisions;
    int offset = (stride > 0 ? stride : 1) * sub;
    for (int first = 0; first < spec->ranks; first += spec->ranks_per_host) {
        int here = spec->ranks - first;
        if (here > spec->ranks_per_host)
            here = spec->ranks_per_host;
        for (int i = 0; i < here; i++) {
            int local = (i + offset) % here;
            p->order[n++] = first + (sub % 2 == 1 ? here - (local + 1) : local);
        }
    }
}

/* What ranks have before anything happens: their replicas, and what they fold. */
static ls_status start(proof *p)
{
    const ls__schedule *s = p->s;
    for (int v = 0; v < s->spec.replicas; v++)
        if (s->spec.algorithm == LS__ALGORITHM_RING)
            gain(p, (ls__place){ p->order[v], -1 }, ls__chain(v, 1), (uint32_t)p->order[v], true);
        else
            gain(p, (ls__place){ ls__block_of(s->spec.replicas, s->spec.ranks, v), -1 },
                 ls__tree_node_at(0, v), (uint32_t)v, true);
    for (int r = 0; r < s->spec.ranks; r++)
        for (int i = 0; i < p->lists.n_folds[r]; i++) {
            const char *why = follow_add(p, (ls__place){ r, i }, &s->hops[r][i]);
            if (why)
                return ls__hop_wrong(s, (ls__place){ r, i }, why);
        }
    return LS_OK;
}

/* What the ranks that should end with, as an expression; its node is how they call it. */
static uint32_t promise(proof *p, int chunk, uint32_t *node)
{
    const ls__schedule_spec *spec = &p->s->spec;
    if (spec->algorithm == LS__ALGORITHM_BROADCAST) {
        *node = ls__tree_node_at(0, spec->root);
        return (uint32_t)spec->root;
    }
    if (spec->algorithm == LS__ALGORITHM_RING) {
        int first = chunk / spec->subdivisions;
        uint32_t sum = (uint32_t)p->order[first];
        for (int i = 1; i < spec->ranks; i++) /* own + received */
            sum = sum_of(p, (uint32_t)p->order[(first + i) % spec->ranks], sum);
        *node = ls__chain(first, spec->ranks);
        return sum;
    }
    uint32_t v[LS__MOST_REPLICAS];
    for (int i = 0; i < spec->replicas; i++)
        v[i] = (uint32_t)i;
    for (int gap = 1; gap < spec->replicas; gap *= 2)
        for (int i = 0; i + gap < spec->replicas; i += 2 * gap)
            v[i] = sum_of(p, v[i], v[i + gap]);
    *node = ls__tree_root(spec->replicas);
    return v[0];
}

/* Everyone has what was promised, and nothing was got for nothing. */
static ls_status check_end(proof *p, int chunk)
{
    const ls__schedule *s = p->s;
    uint32_t node, promised = promise(p, chunk, &node);
    for (int r = 0; r < s->spec.ranks; r++) {
        if (s->spec.stop_at_root && r != s->spec.root)
            continue;
        ls__fact *has = ls__fact_find(&p->facts, LS__FACT_HAS, (uint32_t)r, node, 0);
        if (!has)
            return wrong_end(s, r, chunk, "it does not have the result");
        if (has->expression != promised)
            return wrong_end(s, r, chunk, "its result is not added up in the promised order");
        has->used = true;
    }
    for (size_t i = 0; i < p->facts.n; i++) {
        const ls__fact *f = &p->facts.slots[p->facts.order[i]];
        if (f->kind == LS__FACT_HAS && f->hop >= 0 && !f->used)
            return ls__hop_wrong(s, (ls__place){ f->rank, f->hop }, "nothing is done with that");
    }
    return LS_OK;
}

static uint32_t round_of(const proof *p, size_t i)
{
    ls__place at = p->lists.places[i];
    return p->s->hops[at.rank][at.hop].round;
}

static ls_status prove_chunk(proof *p, int chunk)
{
    const ls__schedule *s = p->s;
    ls__facts_forget(&p->facts);
    p->n_expressions = (uint32_t)s->spec.replicas;
    if (s->spec.algorithm == LS__ALGORITHM_RING)
        order_ring(p, chunk);
    ls_status st = start(p);
    size_t at = p->lists.begin[chunk], end = p->lists.begin[chunk + 1];
    while (at < end && !st) {
        size_t next = at;
        while (next < end && round_of(p, next) == round_of(p, at))
            next++;
        st = follow_round(p, at, next);
        at = next;
    }
    return st ? st : check_end(p, chunk);
}

/* ---- the whole ---------------------------------------------------------------------------- */

static ls_status prove(proof *p)
{
    const ls__schedule *s = p->s;
    size_t ranks = (size_t)s->spec.ranks, most = 0, folds = 0;
    ls_status st = ls__lists_open(&p->lists, s);
    if (st)
        return st;
    p->order = calloc(ranks, sizeof *p->order);
    if (!p->order)
        return ls__fail_memory("the proof of a schedule", ranks * sizeof *p->order);
    for (int r = 0; r < s->spec.ranks; r++)
        folds += (size_t)p->lists.n_folds[r];
    for (int c = 0; c < s->chunks; c++)
        if (p->lists.begin[c + 1] - p->lists.begin[c] > most)
            most = p->lists.begin[c + 1] - p->lists.begin[c];
    /* An add is three facts, a replica one at the start and one in the promise. */
    most = 3 * (most + folds) + 2 * (size_t)s->spec.replicas;
    if (!ls__facts_open(&p->facts, most))
        return ls__fail_memory("the proof of a schedule", most * 2 * sizeof(ls__fact));
    for (int c = 0; c < s->chunks && !st; c++)
        st = prove_chunk(p, c);
    return st;
}

ls_status ls__schedule_verify(const ls__schedule *s)
{
    proof p = { .s = s };
    ls_status st = prove(&p);
    free(p.order);
    ls__facts_close(&p.facts);
    ls__lists_close(&p.lists);
    return st;
}
