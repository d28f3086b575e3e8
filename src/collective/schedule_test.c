/*
 * Every algorithm, 1 to 64 ranks, several numbers of replicas, roots and subdivisions: verified,
 * and followed by a small simulator that passes messages of plain floats, whose bits must be those
 * of the promised loop. `schedule_test RANKS [STEP]` goes on to RANKS, every STEP-th number and the
 * powers of two and their neighbours (`make verify-schedules`).
 */
#include "collective/schedule.h"

#include <stdlib.h>

#include "collective/placement.h"
#include "collective/test_support.h"

enum { ALL_UP_TO = SANITIZED ? 17 : 64 };

static int most_ranks = ALL_UP_TO, step = 61;

/* ---- a simulator ---------------------------------------------------------------------- */

typedef struct value {
    uint32_t node;
    float x;
} value;

typedef struct cell {
    value *values;
    int n;
} cell;

typedef struct message {
    uint32_t chunk;
    value v;
} message;

typedef struct world {
    const ls__schedule *s;
    cell *cells;    /* rank after rank */
    message **mail; /* per pair: from * ranks + to, of this round */
    int *n_mail, *n_read, *at;
} world;

/* Replica v's value in a chunk: sums of such values depend on the order of addition. */
static float given(int v, int chunk)
{
    uint32_t x = ((uint32_t)v * 2654435761u) ^ ((uint32_t)chunk * 40503u + 977u);
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    return (float)(x % 2000003) / 7.0f - 140000.0f;
}

static cell *cell_of(const world *w, int rank, uint32_t chunk)
{
    return &w->cells[(size_t)rank * (size_t)w->s->chunks + chunk];
}

static void keep(cell *c, uint32_t node, float x)
{
    if ((c->n & (c->n - 1)) == 0)
        c->values = realloc(c->values, (c->n ? 2 * (size_t)c->n : 1) * sizeof *c->values);
    c->values[c->n++] = (value){ node, x };
}

static float look(const cell *c, uint32_t node)
{
    for (int i = c->n - 1; i >= 0; i--)
        if (c->values[i].node == node)
            return c->values[i].x;
    fail_msg("a rank uses a node 0x%x that it does not have", node);
    return 0;
}

static void add(const world *w, int rank, uint32_t chunk, uint32_t node)
{
    uint32_t left, right;
    assert_true(ls__node_parts(&w->s->spec, node, &left, &right));
    cell *c = cell_of(w, rank, chunk);
    float l = look(c, left), r = look(c, right);
    keep(c, node, l + r);
}

static void post(world *w, int rank, const ls__hop *h)
{
    size_t pair = (size_t)rank * (size_t)w->s->spec.ranks + h->peer;
    message m = { h->chunk, { h->node, look(cell_of(w, rank, h->chunk), h->node) } };
    int n = w->n_mail[pair];
    if ((n & (n - 1)) == 0)
        w->mail[pair] = realloc(w->mail[pair], (n ? 2 * (size_t)n : 1) * sizeof m);
    w->mail[pair][w->n_mail[pair]++] = m;
}

static void take(world *w, int rank, const ls__hop *h)
{
    size_t pair = (size_t)h->peer * (size_t)w->s->spec.ranks + (size_t)rank;
    assert_true(w->n_read[pair] < w->n_mail[pair]); /* in the order in which it was sent */
    message m = w->mail[pair][w->n_read[pair]++];
    assert_int_equal(m.chunk, h->chunk);
    assert_int_equal(m.v.node, h->node);
    keep(cell_of(w, rank, h->chunk), h->node, m.v.x);
    if (w->n_read[pair] == w->n_mail[pair])
        w->n_read[pair] = w->n_mail[pair] = 0;
}

static void run_round(world *w, uint32_t round)
{
    const ls__schedule *s = w->s;
    for (int r = 0; r < s->spec.ranks; r++)
        for (int i = w->at[r]; i < s->n_hops[r] && s->hops[r][i].round == round; i++) {
            const ls__hop *h = &s->hops[r][i];
            if (h->act == LS__ACT_SEND)
                post(w, r, h);
            for (int c = 0; h->chunk == LS__EVERY_CHUNK && c < s->chunks; c++)
                add(w, r, (uint32_t)c, h->node);
        }
    for (int r = 0; r < s->spec.ranks; r++)
        for (; w->at[r] < s->n_hops[r] && s->hops[r][w->at[r]].round == round; w->at[r]++) {
            const ls__hop *h = &s->hops[r][w->at[r]];
            if (h->act == LS__ACT_RECEIVE)
                take(w, r, h);
            else if (h->act == LS__ACT_ADD && h->chunk != LS__EVERY_CHUNK)
                add(w, r, h->chunk, h->node);
        }
}

/* The order of subdivision `sub`'s ring as a list, host by host. */
static void ring_order(const ls__schedule_spec *spec, int sub, int *order)
{
    int per = spec->ranks_per_host, hosts = (spec->ranks + per - 1) / per;
    int stride = spec->ranks / hosts / spec->subdivisions;
    int offset = sub * (stride ? stride : 1);
    for (int first = 0; first < spec->ranks; first += per) {
        int n = spec->ranks - first < per ? spec->ranks - first : per;
        for (int i = 0; i < n; i++) {
            int at = (offset + i) % n;
            order[first + i] = first + (sub & 1 ? n - 1 - at : at);
        }
    }
}

/* What a chunk must end as, by the loops that are promised; and under which name. */
static float expected(const ls__schedule_spec *spec, int chunk, uint32_t *node)
{
    float v[LS__MOST_REPLICAS];
    for (int r = 0; r < spec->replicas; r++)
        v[r] = given(r, chunk);
    if (spec->algorithm == LS__ALGORITHM_BROADCAST) {
        *node = ls__tree_node_at(0, spec->root);
        return v[spec->root];
    }
    if (spec->algorithm == LS__ALGORITHM_RING) {
        int order[LS__MOST_RANKS] = { 0 }, first = chunk / spec->subdivisions;
        ring_order(spec, chunk % spec->subdivisions, order);
        float sum = v[order[first]];
        for (int i = 1; i < spec->ranks; i++)
            sum = v[order[(first + i) % spec->ranks]] + sum;
        *node = ls__chain(first, spec->ranks);
        return sum;
    }
    for (int gap = 1; gap < spec->replicas; gap *= 2)
        for (int r = 0; r + gap < spec->replicas; r += 2 * gap)
            v[r] += v[r + gap];
    *node = ls__tree_root(spec->replicas);
    return v[0];
}

static void check_ends(const world *w)
{
    const ls__schedule_spec *spec = &w->s->spec;
    for (int c = 0; c < w->s->chunks; c++) {
        uint32_t node;
        float want = expected(spec, c, &node);
        for (int r = 0; r < spec->ranks; r++) {
            if (spec->stop_at_root && r != spec->root)
                continue;
            float got = look(cell_of(w, r, (uint32_t)c), node);
            assert_memory_equal(&got, &want, sizeof want);
        }
    }
}

static void simulate(const ls__schedule *s)
{
    size_t ranks = (size_t)s->spec.ranks, cells = ranks * (size_t)s->chunks;
    world w = { .s = s,
                .cells = calloc(cells, sizeof *w.cells),
                .mail = calloc(ranks * ranks, sizeof *w.mail),
                .n_mail = calloc(ranks * ranks, sizeof *w.n_mail),
                .n_read = calloc(ranks * ranks, sizeof *w.n_read),
                .at = calloc(ranks, sizeof *w.at) };
    for (int c = 0; c < s->chunks; c++)
        for (int v = 0; v < s->spec.replicas; v++) {
            int rank = ls__block_of(s->spec.replicas, s->spec.ranks, v);
            uint32_t node = ls__tree_node_at(0, v);
            if (s->spec.algorithm == LS__ALGORITHM_RING) {
                rank = ls__ring_rank(&s->spec, (uint32_t)c, v);
                node = ls__chain(v, 1);
            }
            assert_int_equal(ls__block_of(s->spec.replicas, s->spec.ranks,
                                          ls__node_replica(&s->spec, (uint32_t)c, node)),
                             rank);
            keep(cell_of(&w, rank, (uint32_t)c), node,
                 given(ls__node_replica(&s->spec, (uint32_t)c, node), c));
        }
    for (int t = 0; t < s->rounds; t++)
        run_round(&w, (uint32_t)t);
    for (size_t i = 0; i < ranks * ranks; i++) {
        assert_int_equal(w.n_mail[i], 0); /* all was received */
        free(w.mail[i]);
    }
    check_ends(&w);
    for (size_t i = 0; i < cells; i++)
        free(w.cells[i].values);
    free(w.cells);
    free(w.mail);
    free(w.n_mail);
    free(w.n_read);
    free(w.at);
}

/* ---- every schedule -------------------------------------------------------------------- */

static ls__schedule *make(ls__schedule_spec spec)
{
    ls__schedule *s = NULL;
    if (ls__schedule_make(&spec, &s))
        fail_msg("%s", ls_error_report());
    return s;
}

static void check(ls__schedule_spec spec)
{
    ls__schedule *s = make(spec);
    if (ls__schedule_verify(s))
        fail_msg("%s", ls_error_report());
    if (spec.ranks <= 128)
        simulate(s);
    ls__schedule_free(s);
}

/* The numbers of ranks to try. */
static int next_ranks(int ranks)
{
    for (int n = ranks + 1; n <= most_ranks; n++) {
        int low = n & (n - 1), up = (n + 1) & n, down = (n - 1) & (n - 2);
        if (n <= 64 || n % step == 0 || n == most_ranks || !low || !up || !down)
            return n;
    }
    return most_ranks + 1;
}

/* Replicas on as many ranks or fewer. */
static void check_blocks(ls__schedule_spec spec)
{
    const int n = spec.ranks;
    const int replicas[] = { n, n + 1, 2 * n, 3 * n - 1, 5, 6, 8, 12 };
    for (size_t i = 0; i < sizeof replicas / sizeof *replicas; i++) {
        spec.replicas = replicas[i];
        if (replicas[i] >= n && replicas[i] <= LS__MOST_REPLICAS && (n < 65 || i < 3))
            check(spec);
    }
}

static void direct(void **state)
{
    (void)state;
    for (int n = 1; n <= most_ranks; n = next_ranks(n))
        check_blocks((ls__schedule_spec){ .algorithm = LS__ALGORITHM_DIRECT, .ranks = n });
}

static void hierarchical(void **state)
{
    (void)state;
    for (int n = 1; n <= most_ranks; n = next_ranks(n))
        check_blocks((ls__schedule_spec){ .algorithm = LS__ALGORITHM_HIERARCHICAL, .ranks = n });
}

static void to_one(void **state)
{
    (void)state;
    for (int n = 1; n <= most_ranks; n = next_ranks(n))
        for (int root = 0; root < n; root += n < 8 ? 1 : n / 3)
            for (int stop = 0; stop < 2; stop++)
                check_blocks((ls__schedule_spec){ .algorithm = LS__ALGORITHM_TO_ONE,
                                                  .ranks = n,
                                                  .root = root,
                                                  .stop_at_root = stop });
}

static void halving(void **state)
{
    (void)state;
    for (int n = 1; n <= most_ranks; n = next_ranks(n))
        check((ls__schedule_spec){ .algorithm = LS__ALGORITHM_HALVING, .ranks = n });
}

static void broadcast(void **state)
{
    (void)state;
    for (int n = 1; n <= most_ranks; n = next_ranks(n))
        for (int root = 0; root < n; root++)
            check((ls__schedule_spec){
                .algorithm = LS__ALGORITHM_BROADCAST, .ranks = n, .root = root });
}

static void ring(void **state)
{
    (void)state;
    for (int n = 1; n <= most_ranks; n = next_ranks(n))
        for (int subs = 1; subs <= 4; subs++) {
            if (n > 64 && subs > 2)
                continue;
            int per_host[] = { n, (n + 1) / 2, n < 3 ? n : 3 };
            check((ls__schedule_spec){ .algorithm = LS__ALGORITHM_RING,
                                       .ranks = n,
                                       .subdivisions = subs,
                                       .ranks_per_host = per_host[(n + subs) % 3] });
        }
}

/* (W, D, subdivisions) of the cases: W hosts with D ranks each. */
static void ring_cases(void **state)
{
    (void)state;
    static const int cases[][3] = {
        { 1, 2, 1 }, { 2, 4, 1 }, { 2, 8, 1 }, { 2, 8, 3 }, { 4, 4, 4 }
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check((ls__schedule_spec){ .algorithm = LS__ALGORITHM_RING,
                                   .ranks = cases[i][0] * cases[i][1],
                                   .subdivisions = cases[i][2],
                                   .ranks_per_host = cases[i][1] });
}

int main(int argc, char **argv)
{
    if (argc > 1)
        most_ranks = atoi(argv[1]);
    if (argc > 2)
        step = atoi(argv[2]);
    if (most_ranks < 1 || most_ranks > LS__MOST_RANKS || step < 1) {
        print_error("usage: %s [RANKS, 1 to %d [STEP]]\n", argv[0], LS__MOST_RANKS);
        return 2;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(direct),     cmocka_unit_test(hierarchical), cmocka_unit_test(to_one),
        cmocka_unit_test(halving),    cmocka_unit_test(broadcast),    cmocka_unit_test(ring),
        cmocka_unit_test(ring_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
