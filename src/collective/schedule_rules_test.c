/*
 * What is said of schedules beside that they are right: which specs are refused, the ring's rules,
 * halving's rounds and shares, the broadcast's tree, the halves of hierarchical copy, and that the
 * pictures above the algorithms are what ls__schedule_text draws.
 */
#include "collective/schedule.h"

#include <stdio.h>
#include <stdlib.h>

#include "collective/test_support.h"

static ls__schedule *make(ls__schedule_spec spec)
{
    ls__schedule *s = NULL;
    if (ls__schedule_make(&spec, &s))
        fail_msg("%s", ls_error_report());
    return s;
}

/* ---- specs ---------------------------------------------------------------------------- */

static void refused(ls__schedule_spec spec, ls_status want, const char *text)
{
    ls__schedule *s = (ls__schedule *)&spec; /* not written on failure */
    assert_int_equal(ls__schedule_make(&spec, &s), want);
    assert_ptr_equal(s, &spec);
    assert_int_equal(ls_error_pending(), want);
    if (!strstr(ls_error_text(), text))
        fail_msg("no '%s' in: %s", text, ls_error_text());
    assert_true(strlen(ls_error_hint()) > 0);
    ls_error();
}

static void silly_specs_are_refused(void **state)
{
    (void)state;
    const ls__algorithm ring = LS__ALGORITHM_RING, one = LS__ALGORITHM_TO_ONE;
    refused((ls__schedule_spec){ .algorithm = LS__ALGORITHMS, .ranks = 2 }, LS_INVALID,
            "algorithm");
    refused((ls__schedule_spec){ .algorithm = -1, .ranks = 2 }, LS_INVALID, "algorithm is -1");
    refused((ls__schedule_spec){ 0 }, LS_INVALID, "ranks is 0");
    refused((ls__schedule_spec){ .ranks = -3 }, LS_INVALID, "ranks is -3");
    refused((ls__schedule_spec){ .ranks = 1025 }, LS_INVALID, "ranks is 1025");
    refused((ls__schedule_spec){ .ranks = 4, .replicas = 3 }, LS_INVALID, "replicas is 3");
    refused((ls__schedule_spec){ .ranks = 4, .replicas = -1 }, LS_INVALID, "replicas is -1");
    refused((ls__schedule_spec){ .ranks = 4, .replicas = 1025 }, LS_INVALID, "replicas is 1025");
    refused((ls__schedule_spec){ .algorithm = one, .ranks = 4, .root = 4 }, LS_INVALID,
            "root is 4");
    refused((ls__schedule_spec){ .algorithm = one, .ranks = 4, .root = -1 }, LS_INVALID, "root");
    refused((ls__schedule_spec){ .algorithm = ring, .ranks = 4, .subdivisions = -1 }, LS_INVALID,
            "subdivisions is -1");
    refused((ls__schedule_spec){ .algorithm = ring, .ranks = 4, .subdivisions = 2049 }, LS_INVALID,
            "subdivisions is 2049");
    refused((ls__schedule_spec){ .algorithm = ring, .ranks = 4, .ranks_per_host = 5 }, LS_INVALID,
            "ranks per host is 5");
    const ls__algorithm equal[] = { ring, LS__ALGORITHM_HALVING, LS__ALGORITHM_BROADCAST };
    for (int i = 0; i < 3; i++)
        refused((ls__schedule_spec){ .algorithm = equal[i], .ranks = 4, .replicas = 5 },
                LS_UNSUPPORTED, "5 replicas on 4 ranks");
}

static void defaults_are_filled_in(void **state)
{
    (void)state;
    ls__schedule *s = make((ls__schedule_spec){ .algorithm = LS__ALGORITHM_RING, .ranks = 4 });
    assert_int_equal(s->spec.replicas, 4);
    assert_int_equal(s->spec.subdivisions, 1);
    assert_int_equal(s->spec.ranks_per_host, 4);
    ls__schedule_free(s);
    ls__schedule_free(NULL);
    s = make((ls__schedule_spec){ .ranks = 1 }); /* direct: nothing to do */
    assert_int_equal(s->rounds, 0);
    assert_int_equal(s->n_hops[0], 0);
    ls__schedule_free(s);
}

static void names_and_bits(void **state)
{
    (void)state;
    assert_string_equal(ls__algorithm_name(LS__ALGORITHM_DIRECT), "direct");
    assert_string_equal(ls__algorithm_name(LS__ALGORITHM_TO_ONE), "to-one");
    assert_string_equal(ls__algorithm_name(LS__ALGORITHMS), "unknown");
    for (int a = 0; a < LS__ALGORITHMS; a++) {
        assert_true(ls__algorithm_same_bits((ls__algorithm)a, 2));
        assert_int_equal(ls__algorithm_same_bits((ls__algorithm)a, 3), a != LS__ALGORITHM_RING);
    }
}

/* ---- the ring --------------------------------------------------------------------------- */

static void subdivisions_of_the_ring(void **state)
{
    (void)state;
    const int64_t mib = 1 << 20;
    assert_int_equal(ls__ring_subdivisions(0, 8, 8), 1);
    assert_int_equal(ls__ring_subdivisions(32 * mib, 8, 8), 1); /* chunks of 4 MiB */
    assert_int_equal(ls__ring_subdivisions(32 * mib + 8, 8, 8), 2);
    assert_int_equal(ls__ring_subdivisions(64 * mib, 8, 8), 2);
    assert_int_equal(ls__ring_subdivisions(65 * mib, 8, 8), 3);
    assert_int_equal(ls__ring_subdivisions(INT64_MAX, 8, 8), 16); /* two for each */
    assert_int_equal(ls__ring_subdivisions(INT64_MAX, 8, 0), 16);
    assert_int_equal(ls__ring_subdivisions(INT64_MAX, 8, 4), 8);
    assert_int_equal(ls__ring_subdivisions(INT64_MAX, 8, 1), 2);
    assert_int_equal(ls__ring_subdivisions(INT64_MAX, 1, 1), 2);
    assert_int_equal(ls__ring_subdivisions(INT64_MAX, 1024, 0), LS__MOST_SUBDIVISIONS);
}

static void check_order(ls__schedule_spec spec, uint32_t chunk, const int *want)
{
    for (int p = 0; p < spec.ranks; p++)
        assert_int_equal(ls__ring_rank(&spec, chunk, p), want[p]);
}

static void order_of_the_rings(void **state)
{
    (void)state;
    ls__schedule_spec spec = { .algorithm = LS__ALGORITHM_RING,
                               .ranks = 16,
                               .replicas = 16,
                               .subdivisions = 3,
                               .ranks_per_host = 8 };
    /* Offsets 0, -2 and 4: from there on inside each host, backwards when negative. */
    const int zero[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    const int one[] = { 5, 4, 3, 2, 1, 0, 7, 6, 13, 12, 11, 10, 9, 8, 15, 14 };
    const int two[] = { 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11 };
    check_order(spec, 0, zero);
    check_order(spec, 1, one);
    check_order(spec, 2, two);
    check_order(spec, 3, zero);
    check_order(spec, 47, two);
    /* A last host with fewer; more subdivisions than ranks of a host: a stride of 1. */
    spec = (ls__schedule_spec){ .ranks = 5, .subdivisions = 4, .ranks_per_host = 3 };
    const int uneven[] = { 2, 1, 0, 3, 4 };
    check_order(spec, 3, uneven);
}

/* A chain is read along its ring: rank 1 receives rank 2's, not rank 0's, in a reversed one. */
static void a_chain_names_positions(void **state)
{
    (void)state;
    ls__schedule_spec spec = { .algorithm = LS__ALGORITHM_RING,
                               .ranks = 3,
                               .replicas = 3,
                               .subdivisions = 2,
                               .ranks_per_host = 3 };
    uint32_t left, right;
    assert_true(ls__node_parts(&spec, ls__chain(2, 2), &left, &right)); /* own + received */
    assert_int_equal(left, ls__chain(0, 1));
    assert_int_equal(right, ls__chain(2, 1));
    assert_int_equal(ls__node_replica(&spec, 0, left), 0);
    assert_int_equal(ls__node_replica(&spec, 0, right), 2);
    assert_int_equal(ls__node_replica(&spec, 1, left), 1); /* its ring is 1 0 2 */
    assert_int_equal(ls__node_replica(&spec, 1, right), 2);
    assert_int_equal(ls__node_replica(&spec, 1, ls__chain(2, 2)), -1);
    assert_false(ls__node_parts(&spec, left, &left, &right));
}

/* ---- the others -------------------------------------------------------------------------- */

/* Chunks that a rank sends or receives in a round. */
static int count(const ls__schedule *s, int rank, int round, ls__act act)
{
    int n = 0;
    for (int i = 0; i < s->n_hops[rank]; i++)
        n += s->hops[rank][i].act == act && (int)s->hops[rank][i].round == round;
    return n;
}

static void halving_of_a_power_of_two_is_the_classic_one(void **state)
{
    (void)state;
    for (int log = 1; log <= 6; log++) {
        int n = 1 << log;
        ls__schedule *s =
            make((ls__schedule_spec){ .algorithm = LS__ALGORITHM_HALVING, .ranks = n });
        assert_int_equal(s->rounds, 2 * log);
        assert_int_equal(s->chunks, n);
        for (int r = 0; r < n; r++) {
            for (int t = 0; t < log; t++) { /* half of what it has left, then the way back */
                int share = n >> (t + 1), back = 2 * log - 1 - t;
                assert_int_equal(count(s, r, t, LS__ACT_SEND), share);
                assert_int_equal(count(s, r, t, LS__ACT_RECEIVE), share);
                assert_int_equal(count(s, r, t, LS__ACT_ADD), share);
                assert_int_equal(count(s, r, back, LS__ACT_SEND), share);
                assert_int_equal(count(s, r, back, LS__ACT_RECEIVE), share);
            }
            for (int i = 0; i < s->n_hops[r]; i++) {
                const ls__hop *h = &s->hops[r][i];
                int t = (int)h->round < log ? (int)h->round : 2 * log - 1 - (int)h->round;
                if (h->act != LS__ACT_ADD)
                    assert_int_equal(h->peer, r ^ 1 << t); /* distance 1 first */
                if (i > 0 && h->act == LS__ACT_SEND && h[-1].act == LS__ACT_SEND &&
                    h[-1].round == h->round)
                    assert_int_equal(h->chunk, h[-1].chunk + 1); /* one piece of memory */
            }
        }
        ls__schedule_free(s);
    }
}

static void broadcast_goes_down_a_binary_tree(void **state)
{
    (void)state;
    ls__schedule *s =
        make((ls__schedule_spec){ .algorithm = LS__ALGORITHM_BROADCAST, .ranks = 8, .root = 3 });
    const int row[] = { 3, 0, 1, 2, 4, 5, 6, 7 };
    assert_int_equal(s->rounds, 3);
    for (int i = 1; i < 8; i++) {
        const ls__hop *h = &s->hops[row[i]][0];
        assert_int_equal(h->act, LS__ACT_RECEIVE);
        assert_int_equal(h->peer, row[(i - 1) / 2]);
        assert_int_equal(h->round, i < 3 ? 0 : i < 7 ? 1 : 2);
    }
    ls__schedule_free(s);
}

/* TensorFlow's mains: c mod n adds last, c + n/2 sends it the other half; right for odd n. */
static void hierarchical_has_two_mains(void **state)
{
    (void)state;
    for (int n = 2; n <= 9; n++) {
        ls__schedule *s =
            make((ls__schedule_spec){ .algorithm = LS__ALGORITHM_HIERARCHICAL, .ranks = n });
        for (int r = 0; r < n; r++)
            for (int i = 0; i < s->n_hops[r]; i++) {
                const ls__hop *h = &s->hops[r][i];
                int c = (int)h->chunk, main1 = (c + n / 2) % n;
                if (n % 2 && c == n / 2)
                    main1 = 0; /* c + n/2 is in the same half */
                if (h->round == 1)
                    assert_int_equal(r, h->act == LS__ACT_SEND ? main1 : c);
                if (h->act == LS__ACT_SEND && h->round == 2)
                    assert_true(r == c && h->peer == main1);
                if (h->act == LS__ACT_SEND && h->round == 3)
                    assert_true((r == c || r == main1) && (r < n / 2) == (h->peer < n / 2));
            }
        ls__schedule_free(s);
    }
}

/* ---- pictures ------------------------------------------------------------------------ */

static char *read_source(const char *name)
{
    const char *dir = getenv("LOCKSTEP_TEST_DIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/../src/collective/%s", dir ? dir : "tests", name);
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    char *text = calloc(1, 1 << 16);
    assert_true(fread(text, 1, (1 << 16) - 1, f) > 0);
    fclose(f);
    return text;
}

/* As it stands in a comment. */
static void expect_picture(const char *source, const char *file, ls__schedule_spec spec)
{
    ls__schedule *s = make(spec);
    char *text = ls__schedule_text(s), drawn[1 << 13] = "";
    size_t used = 0;
    assert_non_null(text);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        used += (size_t)snprintf(drawn + used, sizeof drawn - used, " *     %s\n", line);
    assert_true(used < sizeof drawn);
    if (!strstr(source, drawn))
        fail_msg("the comment of %s should have this picture:\n%s", file, drawn);
    free(text);
    ls__schedule_free(s);
}

static void pictures_are_true(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        ls__schedule_spec spec;
    } pictures[] = {
        { "direct.c", { .algorithm = LS__ALGORITHM_DIRECT, .ranks = 3, .replicas = 8 } },
        { "ring.c", { .algorithm = LS__ALGORITHM_RING, .ranks = 3 } },
        { "ring.c", { .algorithm = LS__ALGORITHM_RING, .ranks = 3, .subdivisions = 2 } },
        { "halving.c", { .algorithm = LS__ALGORITHM_HALVING, .ranks = 4 } },
        { "halving.c", { .algorithm = LS__ALGORITHM_HALVING, .ranks = 3 } },
        { "hierarchical.c", { .algorithm = LS__ALGORITHM_HIERARCHICAL, .ranks = 5 } },
        { "to_one.c", { .algorithm = LS__ALGORITHM_TO_ONE, .ranks = 3, .replicas = 8, .root = 1 } },
        { "broadcast.c", { .algorithm = LS__ALGORITHM_BROADCAST, .ranks = 7, .root = 2 } },
    };
    for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++) {
        char *source = read_source(pictures[i].file);
        if (!source)
            skip(); /* no source here */
        expect_picture(source, pictures[i].file, pictures[i].spec);
        free(source);
    }
}

static void text_above_ten_replicas(void **state)
{
    (void)state;
    ls__schedule *s = make((ls__schedule_spec){ .algorithm = LS__ALGORITHM_TO_ONE,
                                                .ranks = 3,
                                                .replicas = 12,
                                                .root = 2,
                                                .stop_at_root = true });
    char *text = ls__schedule_text(s);
    assert_string_equal(text, "to-one, 3 ranks, 12 replicas, root 2, stops there\n"
                              "         rank 0          rank 1          rank 2\n"
                              "start    {0}{1}{2}{3}    {4}{5}{6}{7}    {8}{9}{10}{11}\n"
                              "folds    {0-3}           {4-7}           {8-11}\n"
                              "round 0  {0-3}           {4-7}           {0-11}\n");
    free(text);
    ls__schedule_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silly_specs_are_refused),
        cmocka_unit_test(defaults_are_filled_in),
        cmocka_unit_test(names_and_bits),
        cmocka_unit_test(subdivisions_of_the_ring),
        cmocka_unit_test(order_of_the_rings),
        cmocka_unit_test(a_chain_names_positions),
        cmocka_unit_test(halving_of_a_power_of_two_is_the_classic_one),
        cmocka_unit_test(broadcast_goes_down_a_binary_tree),
        cmocka_unit_test(hierarchical_has_two_mains),
        cmocka_unit_test(pictures_are_true),
        cmocka_unit_test(text_above_ten_replicas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
