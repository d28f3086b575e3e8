/*
 * The verifier finds every fault: each hop of a set of schedules is altered in every way (act,
 * peer, chunk, node, round; dropped, repeated at every place, swapped with every other of its
 * list), and each altered schedule must be refused.
 *
 * Two swaps are no fault, since a round is no sequence: of two moves of one round, and of two adds
 * of one round when each sum still comes behind the sums it is made of. Those must pass.
 */
#include "collective/schedule.h"

#include <stdlib.h>

#include "collective/test_support.h"

enum { MOST_RANKS = SANITIZED ? 4 : 16 };

static const ls__schedule_spec specs[] = {
    { .algorithm = LS__ALGORITHM_DIRECT, .ranks = 1, .replicas = 6 },
    { .algorithm = LS__ALGORITHM_DIRECT, .ranks = 2 },
    { .algorithm = LS__ALGORITHM_DIRECT, .ranks = 2, .replicas = 5 },
    { .algorithm = LS__ALGORITHM_DIRECT, .ranks = 3, .replicas = 8 },
    { .algorithm = LS__ALGORITHM_DIRECT, .ranks = 4 },
    { .algorithm = LS__ALGORITHM_DIRECT, .ranks = 5 },
    { .algorithm = LS__ALGORITHM_RING, .ranks = 2 },
    { .algorithm = LS__ALGORITHM_RING, .ranks = 3 },
    { .algorithm = LS__ALGORITHM_RING, .ranks = 4, .subdivisions = 2, .ranks_per_host = 2 },
    { .algorithm = LS__ALGORITHM_RING, .ranks = 5 },
    { .algorithm = LS__ALGORITHM_HALVING, .ranks = 2 },
    { .algorithm = LS__ALGORITHM_HALVING, .ranks = 3 },
    { .algorithm = LS__ALGORITHM_HALVING, .ranks = 4 },
    { .algorithm = LS__ALGORITHM_HALVING, .ranks = 7 },
    { .algorithm = LS__ALGORITHM_HIERARCHICAL, .ranks = 2, .replicas = 5 },
    { .algorithm = LS__ALGORITHM_HIERARCHICAL, .ranks = 3 },
    { .algorithm = LS__ALGORITHM_HIERARCHICAL, .ranks = 4, .replicas = 6 },
    { .algorithm = LS__ALGORITHM_HIERARCHICAL, .ranks = 5 },
    { .algorithm = LS__ALGORITHM_TO_ONE, .ranks = 1, .replicas = 5 },
    { .algorithm = LS__ALGORITHM_TO_ONE, .ranks = 3, .root = 1 },
    { .algorithm = LS__ALGORITHM_TO_ONE,
      .ranks = 3,
      .replicas = 12,
      .root = 2,
      .stop_at_root = true },
    { .algorithm = LS__ALGORITHM_TO_ONE, .ranks = 6, .replicas = 8, .root = 5 },
    { .algorithm = LS__ALGORITHM_BROADCAST, .ranks = 2, .root = 1 },
    { .algorithm = LS__ALGORITHM_BROADCAST, .ranks = 7, .root = 3 },
};

typedef struct lab {
    ls__schedule *s;
    int rank, hop;  /* the one that is altered */
    ls__hop *list;  /* room for that rank's list and one more */
    ls__hop *first; /* as it was made */
    int n;
    int refused, equal;
} lab;

/* ---- one altered schedule ------------------------------------------------------------ */

static void restore(lab *l)
{
    memcpy(l->list, l->first, (size_t)l->n * sizeof *l->list);
    l->s->n_hops[l->rank] = l->n;
}

static void expect_refusal(lab *l, const char *what)
{
    ls_status st = ls__schedule_verify(l->s);
    if (st != LS_CORRUPT)
        fail_msg("%s of %d ranks, rank %d, hop %d: not refused though altered: %s",
                 ls__algorithm_name(l->s->spec.algorithm), l->s->spec.ranks, l->rank, l->hop, what);
    assert_int_equal(ls_error_pending(), LS_CORRUPT);
    /* Where it went wrong; but when counts are wrong it is nobody's fault. */
    const char *text = ls_error_text();
    assert_true(strstr(text, " chunks") ||
                (strstr(text, ": rank ") && strstr(text, ", round ") && strstr(text, ", hop ")));
    ls_error();
    l->refused++;
    restore(l);
}

/* Field by field; what is no change is none. */
static void alter(lab *l, ls__hop altered, const char *what)
{
    const ls__hop *h = &l->first[l->hop];
    if (altered.act == h->act && altered.peer == h->peer && altered.chunk == h->chunk &&
        altered.node == h->node && altered.round == h->round)
        return;
    l->list[l->hop] = altered;
    expect_refusal(l, what);
}

static void alter_fields(lab *l)
{
    const ls__schedule *s = l->s;
    ls__hop h;
    for (int act = 0; act <= LS__ACT_ADD + 1; act++) {
        h = l->first[l->hop];
        h.act = (uint8_t)act;
        alter(l, h, "act");
    }
    for (int peer = 0; peer <= s->spec.ranks; peer++) {
        h = l->first[l->hop];
        h.peer = (uint16_t)peer;
        alter(l, h, "peer");
    }
    for (int chunk = -1; chunk <= s->chunks; chunk++) { /* -1: every chunk */
        h = l->first[l->hop];
        h.chunk = (uint32_t)chunk;
        alter(l, h, "chunk");
    }
    for (int round = -1; round <= s->rounds; round++) {
        h = l->first[l->hop];
        h.round = (uint32_t)round;
        alter(l, h, "round");
    }
}

static void alter_node(lab *l)
{
    const ls__schedule_spec *spec = &l->s->spec;
    ls__hop h = l->first[l->hop];
    for (int k = 0; k <= LS__TREE_LEVELS + 1; k++)
        for (int m = 0; m <= spec->replicas; m++) {
            h.node = ls__tree_node_at(k, m);
            alter(l, h, "node");
        }
    for (int first = 0; first <= spec->ranks; first++)
        for (int count = 0; count <= spec->ranks + 1; count++) {
            h.node = ls__chain(first, count);
            alter(l, h, "chain");
        }
    h.node = UINT32_MAX;
    alter(l, h, "node that is none");
    h.node = LS__CHAIN - 1;
    alter(l, h, "node that is none");
}

static void drop_and_repeat(lab *l)
{
    memmove(l->list + l->hop, l->list + l->hop + 1, (size_t)(l->n - l->hop - 1) * sizeof *l->list);
    l->s->n_hops[l->rank] = l->n - 1;
    expect_refusal(l, "dropped");
    for (int at = 0; at <= l->n; at++) {
        memcpy(l->list + at + 1, l->first + at, (size_t)(l->n - at) * sizeof *l->list);
        l->list[at] = l->first[l->hop];
        l->s->n_hops[l->rank] = l->n + 1;
        expect_refusal(l, "repeated");
    }
}

/* Whether in the list every sum comes behind those of the same round that it is made of. */
static bool sums_in_order(const lab *l)
{
    for (int i = 0; i < l->n; i++)
        for (int j = i + 1; j < l->n; j++) {
            const ls__hop *sum = &l->list[i], *part = &l->list[j];
            uint32_t left, right;
            if (sum->act == LS__ACT_ADD && part->act == LS__ACT_ADD && sum->round == part->round &&
                sum->chunk == part->chunk &&
                ls__node_parts(&l->s->spec, sum->node, &left, &right) &&
                (part->node == left || part->node == right))
                return false;
        }
    return true;
}

static void swap_with(lab *l, int other)
{
    const ls__hop *a = &l->first[l->hop], *b = &l->first[other];
    l->list[l->hop] = *b;
    l->list[other] = *a;
    bool folds = a->chunk == LS__EVERY_CHUNK || b->chunk == LS__EVERY_CHUNK;
    bool adds = a->act == LS__ACT_ADD && b->act == LS__ACT_ADD;
    bool moves = a->act != LS__ACT_ADD && b->act != LS__ACT_ADD;
    if (a->round == b->round && !folds && (moves || (adds && sums_in_order(l)))) {
        assert_int_equal(ls__schedule_verify(l->s), LS_OK);
        l->equal++;
        restore(l);
    } else {
        expect_refusal(l, "swapped");
    }
}

/* ---- all of them ------------------------------------------------------------------------- */

static void alter_list(lab *l)
{
    ls__schedule *s = l->s;
    l->n = s->n_hops[l->rank];
    l->first = s->hops[l->rank];
    l->list = malloc(((size_t)l->n + 1) * sizeof *l->list);
    assert_non_null(l->list);
    s->hops[l->rank] = l->list;
    restore(l);
    for (l->hop = 0; l->hop < l->n; l->hop++) {
        alter_fields(l);
        alter_node(l);
        drop_and_repeat(l);
        for (int other = l->hop + 1; other < l->n; other++)
            swap_with(l, other);
    }
    s->hops[l->rank] = l->first;
    free(l->list);
}

static void every_altered_hop_is_refused(void **state)
{
    (void)state;
    int refused = 0, equal = 0;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        if (specs[i].ranks > MOST_RANKS)
            continue;
        lab l = { 0 };
        assert_int_equal(ls__schedule_make(&specs[i], &l.s), LS_OK);
        assert_int_equal(ls__schedule_verify(l.s), LS_OK);
        for (l.rank = 0; l.rank < l.s->spec.ranks; l.rank++)
            alter_list(&l);
        assert_int_equal(ls__schedule_verify(l.s), LS_OK);
        ls__schedule_free(l.s);
        refused += l.refused;
        equal += l.equal;
    }
    print_message("%d altered schedules refused, %d equal ones passed\n", refused, equal);
    assert_true(refused > 10000);
}

static void counts_are_checked(void **state)
{
    (void)state;
    ls__schedule *s;
    ls__schedule_spec spec = { .algorithm = LS__ALGORITHM_DIRECT, .ranks = 3 };
    assert_int_equal(ls__schedule_make(&spec, &s), LS_OK);
    const int wrong[] = { -1, 0, 1, 2, 4, 1 << 30 };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        s->chunks = wrong[i];
        assert_int_equal(ls__schedule_verify(s), LS_CORRUPT);
        ls_error();
    }
    s->chunks = 3;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        s->rounds = wrong[i];
        assert_int_equal(ls__schedule_verify(s), wrong[i] == 2 ? LS_OK : LS_CORRUPT);
        ls_error();
    }
    s->rounds = 2;
    ls__schedule_free(s);
}

static void an_error_says_where(void **state)
{
    (void)state;
    ls__schedule *s;
    ls__schedule_spec spec = { .algorithm = LS__ALGORITHM_DIRECT, .ranks = 3, .replicas = 8 };
    assert_int_equal(ls__schedule_make(&spec, &s), LS_OK);
    s->hops[1][2].peer = 2; /* was 0 */
    assert_int_equal(ls__schedule_verify(s), LS_CORRUPT);
    assert_string_equal(
        ls_error_text(),
        "schedule direct of 3 ranks: rank 0, round 0, hop 2 (receive {45} of chunk 0, "
        "peer 1): its peer does not send that in this round");
    ls_error();
    ls__schedule_free(s);
}

static void expect_text(ls__schedule *s, const char *text)
{
    assert_int_equal(ls__schedule_verify(s), LS_CORRUPT);
    if (!strstr(ls_error_text(), text))
        fail_msg("no '%s' in: %s", text, ls_error_text());
    ls_error();
    ls__schedule_free(s);
}

static ls__schedule *four_to_one(void)
{
    ls__schedule *s;
    ls__schedule_spec spec = { .algorithm = LS__ALGORITHM_TO_ONE,
                               .ranks = 4,
                               .stop_at_root = true };
    assert_int_equal(ls__schedule_make(&spec, &s), LS_OK);
    return s;
}

/* What one altered hop does not bring about: more hops than needed, names that mean nothing. */
static void what_is_of_no_use_is_refused(void **state)
{
    (void)state;
    ls__schedule *s = four_to_one();
    assert_int_equal(ls__hop_move(s, 0, 1, 2, 0, ls__tree_node_at(0, 1)), LS_OK);
    expect_text(s, "nothing is done with that");

    s = four_to_one(); /* sent on, and of no use there */
    assert_int_equal(ls__hop_move(s, 0, 1, 2, 0, ls__tree_node_at(0, 1)), LS_OK);
    assert_int_equal(ls__hop_move(s, 1, 2, 3, 0, ls__tree_node_at(0, 1)), LS_OK);
    expect_text(s, "rank 3, round 1, hop 1");

    s = four_to_one();
    ls__hop send = { .act = LS__ACT_SEND, .peer = 2, .node = ls__tree_node_at(0, 1) };
    assert_int_equal(ls__hop_add(s, 1, send), LS_OK);
    expect_text(s, "its peer does not receive that");

    s = four_to_one();
    s->hops[1][0].peer = 1;
    expect_text(s, "rank 1, round 0, hop 0 (send {1} of chunk 0, peer 1): there is no such peer");

    ls__schedule_spec five = { .algorithm = LS__ALGORITHM_DIRECT, .ranks = 5 };
    assert_int_equal(ls__schedule_make(&five, &s), LS_OK);
    assert_int_equal(s->hops[4][0].node, ls__tree_node_at(0, 4));
    s->hops[4][0].node = ls__tree_node_at(2, 1); /* its name when nothing is on the right */
    expect_text(s, "lower name");
}

/* Each sum is made once: two ranks that both make it do work twice, though the result is right. */
static void nothing_is_done_twice(void **state)
{
    (void)state;
    ls__schedule *s;
    ls__schedule_spec spec = { .algorithm = LS__ALGORITHM_TO_ONE, .ranks = 2 };
    assert_int_equal(ls__schedule_make(&spec, &s), LS_OK);
    for (int r = 0; r < 2; r++)
        s->n_hops[r] = 0;
    uint32_t both = ls__tree_root(2);
    for (int r = 0; r < 2; r++)
        assert_int_equal(ls__hop_move(s, 0, r, 1 - r, 0, ls__tree_node_at(0, r)), LS_OK);
    for (int r = 0; r < 2; r++)
        assert_int_equal(ls__hop_add(s, r, (ls__hop){ .act = LS__ACT_ADD, .node = both }), LS_OK);
    s->rounds = 1;
    assert_int_equal(ls__schedule_verify(s), LS_CORRUPT);
    assert_non_null(strstr(ls_error_text(), "was made before"));
    ls_error();
    ls__schedule_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_altered_hop_is_refused),
        cmocka_unit_test(counts_are_checked),
        cmocka_unit_test(an_error_says_where),
        cmocka_unit_test(what_is_of_no_use_is_refused),
        cmocka_unit_test(nothing_is_done_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
