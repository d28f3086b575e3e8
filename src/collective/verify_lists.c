/*
 * Lists of hops, checked for what can be said of each hop and its neighbours: act, peer, chunk,
 * node and round exist; rounds are in order and adds last in theirs; folds come first, as replicas
 * finish. What follows (verify.c) can then look anything up without asking whether it is there, and
 * works in proportion to the number of hops, whatever counts the schedule claims.
 */
#include "collective/verify_lists.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"

static bool is_node(const ls__schedule_spec *spec, uint32_t node)
{
    if (spec->algorithm == LS__ALGORITHM_RING)
        return node & LS__CHAIN && ls__chain_first(node) < spec->ranks &&
               ls__chain_count(node) >= 1 && ls__chain_count(node) <= spec->ranks;
    int k = ls__tree_level(node), m = ls__tree_index(node);
    return !(node & LS__CHAIN) && k <= LS__TREE_LEVELS && m < spec->replicas &&
           m << k < spec->replicas && ls__tree_name(k, m, spec->replicas) == node;
}

ls_status ls__hop_wrong(const ls__schedule *s, ls__place at, const char *why)
{
    static const char *const acts[] = { "send", "receive", "add" };
    const ls__hop *h = &s->hops[at.rank][at.hop];
    char node[64], chunk[24] = "every chunk", peer[24] = "";
    if (is_node(&s->spec, h->node))
        ls__node_text(&s->spec, h->chunk, h->node, node, sizeof node);
    else
        snprintf(node, sizeof node, "node 0x%x", h->node);
    if (h->chunk != LS__EVERY_CHUNK)
        snprintf(chunk, sizeof chunk, "chunk %u", h->chunk);
    if (h->act != LS__ACT_ADD)
        snprintf(peer, sizeof peer, ", peer %u", h->peer);
    return ls__hint(
        ls__fail(LS_CORRUPT,
                 "schedule %s of %d ranks: rank %d, round %u, hop %d (%s %s of %s%s): %s",
                 ls__algorithm_name(s->spec.algorithm), s->spec.ranks, at.rank, h->round, at.hop,
                 h->act <= LS__ACT_ADD ? acts[h->act] : "no act", node, chunk, peer, why),
        "use it as ls__schedule_make made it");
}

/* ---- each list for itself ------------------------------------------------------------- */

bool ls__hop_is_fold(const ls__hop *h)
{
    return h->act == LS__ACT_ADD && h->chunk == LS__EVERY_CHUNK;
}

static const char *fault(const ls__schedule *s, int rank, const ls__hop *h)
{
    if (h->act > LS__ACT_ADD)
        return "there is no such act";
    if ((int64_t)h->round >= s->rounds)
        return "there is no such round";
    if (!is_node(&s->spec, h->node))
        return "there is no such node, or it has a lower name";
    if (ls__hop_is_fold(h))
        return h->round || h->peer ? "a fold is of round 0 and has no peer" : NULL;
    if ((int64_t)h->chunk >= s->chunks)
        return "there is no such chunk";
    if (h->act == LS__ACT_ADD)
        return h->peer ? "an add has no peer" : NULL;
    return h->peer >= s->spec.ranks || h->peer == rank ? "there is no such peer" : NULL;
}

/* Rounds in order, adds last in theirs; folds first of all, in the order replicas finish. */
static const char *disorder(const ls__schedule *s, const ls__hop *before, const ls__hop *h)
{
    if (h->round < before->round)
        return "its round is over";
    if (ls__hop_is_fold(h) && !ls__hop_is_fold(before))
        return "folds come first";
    if (ls__hop_is_fold(h) &&
        ls__tree_end(h->node, s->spec.replicas) < ls__tree_end(before->node, s->spec.replicas))
        return "folds are in the order in which replicas finish";
    if (h->round == before->round && h->act != LS__ACT_ADD && before->act == LS__ACT_ADD &&
        !ls__hop_is_fold(before))
        return "in a round adds come last";
    return NULL;
}

static ls_status check_list(ls__lists *l, const ls__schedule *s, int rank, int *rounds)
{
    for (int i = 0; i < s->n_hops[rank]; i++) {
        const ls__hop *h = &s->hops[rank][i];
        const char *why = fault(s, rank, h);
        if (!why && i > 0)
            why = disorder(s, h - 1, h);
        if (why)
            return ls__hop_wrong(s, (ls__place){ rank, i }, why);
        l->n_folds[rank] += ls__hop_is_fold(h);
        if ((int)h->round >= *rounds)
            *rounds = (int)h->round + 1;
    }
    return LS_OK;
}

/* ---- all hops in the order in which they are followed -------------------------------- */

static size_t key_of(const ls__schedule *s, ls__place at, bool by_chunk)
{
    const ls__hop *h = &s->hops[at.rank][at.hop];
    return by_chunk ? h->chunk : h->round;
}

/* Stable; begin[key] becomes where a key begins, for n_keys and one more. */
static void sort(const ls__schedule *s, bool by_chunk, const ls__place *in, ls__place *out,
                 size_t n, size_t *begin, size_t n_keys)
{
    for (size_t k = 0; k <= n_keys; k++)
        begin[k] = 0;
    for (size_t i = 0; i < n; i++)
        begin[key_of(s, in[i], by_chunk) + 1]++;
    for (size_t k = 0; k < n_keys; k++)
        begin[k + 1] += begin[k];
    for (size_t i = 0; i < n; i++)
        out[begin[key_of(s, in[i], by_chunk)]++] = in[i];
    for (size_t k = n_keys; k > 0; k--)
        begin[k] = begin[k - 1];
    begin[0] = 0;
}

/* Fills places and begin, of n hops. */
static ls_status arrange(ls__lists *l, const ls__schedule *s, size_t n)
{
    size_t chunks = (size_t)s->chunks, rounds = (size_t)s->rounds;
    size_t keys = (chunks > rounds ? chunks : rounds) + 1;
    l->places = malloc((n + 1) * sizeof *l->places);
    l->begin = malloc(keys * sizeof *l->begin);
    ls__place *by_round = malloc((n + 1) * sizeof *by_round);
    if (!l->places || !l->begin || !by_round) {
        free(by_round);
        return ls__fail_memory("the proof of a schedule", n * 2 * sizeof *by_round);
    }
    size_t at = 0;
    for (int r = 0; r < s->spec.ranks; r++)
        for (int i = l->n_folds[r]; i < s->n_hops[r]; i++)
            l->places[at++] = (ls__place){ r, i };
    sort(s, false, l->places, by_round, n, l->begin, rounds);
    sort(s, true, by_round, l->places, n, l->begin, chunks);
    free(by_round);
    return LS_OK;
}

/* Counts are what the lists need, so that what follows is in proportion to them. */
static ls_status check_lists(ls__lists *l, const ls__schedule *s, size_t *hops)
{
    int rounds = 0;
    ls_status st = LS_OK;
    for (int r = 0; r < s->spec.ranks && !st; r++) {
        st = check_list(l, s, r, &rounds);
        *hops += (size_t)(s->n_hops[r] - l->n_folds[r]);
    }
    bool fixed = s->spec.algorithm == LS__ALGORITHM_RING || s->spec.ranks == 1;
    int chunks = fixed ? s->spec.ranks * s->spec.subdivisions : s->chunks;
    if (!st && (rounds != s->rounds || chunks != s->chunks || chunks < 1 ||
                (s->spec.ranks > 1 && ((size_t)rounds > *hops || (size_t)chunks > *hops))))
        st = ls__hint(
            ls__fail(LS_CORRUPT, "schedule %s of %d ranks: %d rounds and %d chunks",
                     ls__algorithm_name(s->spec.algorithm), s->spec.ranks, s->rounds, s->chunks),
            "its %zu hops have %d rounds; every round and chunk must have one", *hops, rounds);
    return st;
}

ls_status ls__lists_open(ls__lists *l, const ls__schedule *s)
{
    size_t ranks = (size_t)s->spec.ranks, hops = 0;
    *l = (ls__lists){ .n_folds = calloc(ranks, sizeof *l->n_folds) };
    if (!l->n_folds)
        return ls__fail_memory("the proof of a schedule", ranks * sizeof *l->n_folds);
    ls_status st = check_lists(l, s, &hops);
    return st ? st : arrange(l, s, hops);
}

void ls__lists_close(ls__lists *l)
{
    free(l->n_folds);
    free(l->places);
    free(l->begin);
}
