/*
 * The executor in shared memory against sums written out element by element, bit for bit: every
 * algorithm, every way to end, ranks in any order within a round; and schedules with an altered hop,
 * none of which may compile.
 */
#include "collective/local.h"

#include <stdio.h>
#include <string.h>

#include "collective/placement.h"
#include "collective/team.h"
#include "kernels/test_numbers.h"

enum { MOST_ARRAYS = 4, MOST = 64 };

static const ls_dtype dtypes[] = { LS_F32, LS_F64, LS_I32, LS_I64, LS_U8 };

/* ---- numbers of any dtype ------------------------------------------------------------- */

typedef union element {
    float f32;
    double f64;
    uint32_t i32;
    uint64_t i64;
    uint8_t u8;
} element;

static element get(ls_dtype dtype, const void *x, int64_t i)
{
    element e = { 0 };
    size_t width = ls_dtype_size(dtype);
    memcpy(&e, (const char *)x + (size_t)i * width, width);
    return e;
}

static element plus(ls_dtype dtype, element a, element b)
{
    element sum = { 0 };
    if (dtype == LS_F32)
        sum.f32 = a.f32 + b.f32;
    else if (dtype == LS_F64)
        sum.f64 = a.f64 + b.f64;
    else if (dtype == LS_I32)
        sum.i32 = a.i32 + b.i32;
    else if (dtype == LS_I64)
        sum.i64 = a.i64 + b.i64;
    else
        sum.u8 = (uint8_t)(a.u8 + b.u8);
    return sum;
}

static element over(ls_dtype dtype, element a, int divisor)
{
    if (dtype == LS_F32)
        a.f32 /= (float)divisor;
    else if (dtype == LS_F64)
        a.f64 /= divisor;
    else if (dtype == LS_I32)
        a.i32 = (uint32_t)((int32_t)a.i32 / divisor);
    else if (dtype == LS_I64)
        a.i64 = (uint64_t)((int64_t)a.i64 / divisor);
    else
        a.u8 = (uint8_t)(a.u8 / divisor);
    return a;
}

/* Of many sizes, so that the order of a sum of floats shows; integers of all bits. */
static void fill(ls_dtype dtype, void *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits = (uint64_t)below(INT64_C(1) << 31) << 33 ^ (uint64_t)below(INT64_C(1) << 31);
        if (dtype == LS_F32)
            ((float *)x)[i] = ldexpf(number(), (int)below(30));
        else if (dtype == LS_F64)
            ((double *)x)[i] = ldexp((double)number() / 3, (int)below(60));
        else
            memcpy((char *)x + (size_t)i * ls_dtype_size(dtype), &bits, ls_dtype_size(dtype));
    }
}

/* ---- a case ------------------------------------------------------------------------------ */

typedef struct trial {
    ls__schedule_spec spec;
    ls__local_ends ends;
    ls_dtype dtype;
    int divisor;
    int arrays;
    int64_t counts[MOST_ARRAYS];
    bool consume, result; /* of ONCE and FOLDED */
} trial;

typedef struct data {
    const trial *t;
    ls__schedule *s;
    char *given[MOST_ARRAYS][MOST];  /* as it was */
    char *values[MOST_ARRAYS][MOST]; /* what the executor sees */
    char *result[MOST_ARRAYS], *consumed[MOST_ARRAYS];
    unsigned char *visits[MOST_ARRAYS];
} data;

/* Node (k, m) of the tree, as rule B defines it. */
static element tree(const data *d, int a, int k, int m, int64_t i)
{
    if (k == 0)
        return get(d->t->dtype, d->given[a][m], i);
    element left = tree(d, a, k - 1, 2 * m, i);
    if ((2 * m + 1) << (k - 1) >= d->s->spec.replicas)
        return left;
    return plus(d->t->dtype, left, tree(d, a, k - 1, 2 * m + 1, i));
}

/* The chunk in which element i of array a is: equal parts of all 64-byte units, the first longer. */
static int chunk_of(const data *d, int a, int64_t i)
{
    int64_t width = (int64_t)ls_dtype_size(d->t->dtype), all = 0, before = 0;
    for (int b = 0; b < d->t->arrays; b++) {
        int64_t units = (d->t->counts[b] * width + 63) / 64;
        all += units;
        before += b < a ? units : 0;
    }
    int64_t unit = before + i * width / 64, c = 0, n = d->s->chunks;
    for (int64_t end = 0;; c++) {
        end += all / n + (c < all % n);
        if (unit < end)
            return (int)c;
    }
}

static element chain(const data *d, int a, int64_t i)
{
    const ls__schedule_spec *spec = &d->s->spec;
    uint32_t c = (uint32_t)chunk_of(d, a, i);
    int first = (int)c / spec->subdivisions;
    element sum = { 0 };
    for (int n = 0; n < spec->ranks; n++) {
        int rank = ls__ring_rank(spec, c, (first + n) % spec->ranks);
        element own = get(d->t->dtype, d->given[a][rank], i);
        sum = n ? plus(d->t->dtype, own, sum) : own;
    }
    return sum;
}

static element want(const data *d, int a, int64_t i)
{
    if (d->s->spec.algorithm == LS__ALGORITHM_BROADCAST)
        return get(d->t->dtype, d->given[a][d->s->spec.root], i);
    element sum = d->s->spec.algorithm == LS__ALGORITHM_RING ? chain(d, a, i)
                                                             : tree(d, a, LS__TREE_LEVELS, 0, i);
    return d->t->divisor ? over(d->t->dtype, sum, d->t->divisor) : sum;
}

static void check_array(const data *d, int a, const void *got)
{
    size_t width = ls_dtype_size(d->t->dtype);
    for (int64_t i = 0; i < d->t->counts[a]; i++) {
        element e = want(d, a, i);
        if (memcmp((const char *)got + (size_t)i * width, &e, width) != 0)
            fail_msg("%s, %d ranks, %d replicas, ends %d, %s: array %d, element %ld is wrong",
                     ls__algorithm_name(d->s->spec.algorithm), d->s->spec.ranks,
                     d->s->spec.replicas, d->t->ends, ls_dtype_name(d->t->dtype), a, (long)i);
    }
}

static void take(void *user, int array, int64_t begin, int64_t count, const void *sum)
{
    data *d = user;
    int64_t width = (int64_t)ls_dtype_size(d->t->dtype);
    assert_int_equal(begin * width % 64, 0);
    assert_true(count > 0 && count * width <= 16384);
    assert_true((begin + count) * width % 64 == 0 || begin + count == d->t->counts[array]);
    memcpy(d->consumed[array] + begin * width, sum, (size_t)(count * width));
    for (int64_t i = begin; i < begin + count; i++)
        d->visits[array][i]++;
}

/* ---- running it --------------------------------------------------------------------------- */

static void *block(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 127) / 64 * 64);
    assert_non_null(p);
    return p;
}

static void make_data(data *d, const trial *t)
{
    *d = (data){ .t = t };
    assert_int_equal(ls__schedule_make(&t->spec, &d->s), LS_OK);
    for (int a = 0; a < t->arrays; a++) {
        size_t bytes = (size_t)t->counts[a] * ls_dtype_size(t->dtype);
        for (int r = 0; r < d->s->spec.replicas; r++) {
            d->given[a][r] = block(bytes);
            d->values[a][r] = block(bytes);
            fill(t->dtype, d->given[a][r], t->counts[a]);
            memcpy(d->values[a][r], d->given[a][r], bytes);
        }
        d->result[a] = block(bytes);
        d->consumed[a] = block(bytes);
        d->visits[a] = calloc((size_t)t->counts[a] + 1, 1);
    }
}

static void free_data(data *d)
{
    for (int a = 0; a < d->t->arrays; a++) {
        for (int r = 0; r < d->s->spec.replicas; r++) {
            free(d->given[a][r]);
            free(d->values[a][r]);
        }
        free(d->result[a]);
        free(d->consumed[a]);
        free(d->visits[a]);
    }
    ls__schedule_free(d->s);
}

/* As whoever drives replicas does: a node lies where its first replica's value lay. */
static void do_folds(data *d, const ls__local *l)
{
    for (int rank = 0; rank < d->s->spec.ranks; rank++) {
        const ls__fold *folds;
        int n = ls__local_folds(l, rank, &folds);
        for (int f = 0; f < n; f++)
            for (int a = 0; a < d->t->arrays; a++) {
                char *left = d->values[a][ls__tree_first(folds[f].left)];
                char *right = d->values[a][ls__tree_first(folds[f].right)];
                size_t width = ls_dtype_size(d->t->dtype);
                assert_int_equal(ls__tree_first(folds[f].sum), ls__tree_first(folds[f].left));
                for (int64_t i = 0; i < d->t->counts[a]; i++) {
                    element e =
                        plus(d->t->dtype, get(d->t->dtype, left, i), get(d->t->dtype, right, i));
                    memcpy(left + (size_t)i * width, &e, width);
                }
            }
    }
}

/* Rounds in order, ranks of a round in any. */
static void run(const ls__local *l, const ls__local_job *job)
{
    int order[LS__MOST_RANKS], ranks = ls__local_ranks(l);
    for (int round = 0; round < ls__local_rounds(l); round++) {
        for (int i = 0; i < ranks; i++) {
            int j = (int)below(i + 1);
            order[i] = order[j];
            order[j] = i;
        }
        for (int i = 0; i < ranks; i++)
            ls__local_run(l, round, order[i], job);
    }
}

static void check_ends(const data *d)
{
    const trial *t = d->t;
    for (int a = 0; a < t->arrays; a++) {
        size_t bytes = (size_t)t->counts[a] * ls_dtype_size(t->dtype);
        for (int r = 0; t->ends == LS__LOCAL_OWN && r < d->s->spec.ranks; r++)
            if (!d->s->spec.stop_at_root || r == d->s->spec.root)
                check_array(d, a, d->values[a][r]);
        for (int r = 0; t->ends == LS__LOCAL_ONCE && r < d->s->spec.replicas; r++)
            assert_memory_equal(d->values[a][r], d->given[a][r], bytes);
        if (t->ends != LS__LOCAL_OWN && t->result)
            check_array(d, a, d->result[a]);
        if (t->ends != LS__LOCAL_OWN && t->consume) {
            check_array(d, a, d->consumed[a]);
            for (int64_t i = 0; i < t->counts[a]; i++)
                assert_int_equal(d->visits[a][i], 1);
        }
    }
}

static void try(trial t)
{
    data d;
    make_data(&d, &t);
    ls__local *l;
    assert_int_equal(ls__local_compile(d.s, t.ends, &l), LS_OK);
    if (t.ends == LS__LOCAL_FOLDED)
        do_folds(&d, l);
    const ls__tree_node *nodes;
    int n = ls__local_operands(l, &nodes);
    ls__array arrays[MOST_ARRAYS];
    const void *operands[MOST_ARRAYS][MOST];
    void *results[MOST_ARRAYS];
    for (int a = 0; a < t.arrays; a++) {
        for (int i = 0; i < n; i++)
            operands[a][i] = d.values[a][ls__tree_first(nodes[i])];
        results[a] = d.result[a];
        arrays[a] = (ls__array){ t.counts[a], operands[a], t.result ? &results[a] : NULL };
    }
    ls__local_job job = { .dtype = t.dtype,
                          .divisor = t.divisor,
                          .n_arrays = t.arrays,
                          .arrays = arrays,
                          .consume = t.consume ? take : NULL,
                          .user = &d };
    size_t scratch = ls__local_scratch(l, &job);
    job.scratch = scratch ? aligned_alloc(64, scratch) : NULL;
    run(l, &job);
    check_ends(&d);
    free(job.scratch);
    ls__local_free(l);
    free_data(&d);
}

/* ---- what is tried --------------------------------------------------------------------------- */

static const int64_t sizes[] = { 0, 1, 15, 16, 17, 31, 64, 100, 333, 1001 };

static trial random_trial(ls__algorithm algorithm, int ranks, ls__local_ends ends)
{
    trial t = { .spec = { .algorithm = algorithm, .ranks = ranks },
                .ends = ends,
                .dtype = dtypes[below(5)],
                .arrays = (int)pick(0, MOST_ARRAYS),
                .consume = below(2),
                .result = true };
    for (int a = 0; a < t.arrays; a++)
        t.counts[a] = sizes[below(ranks > 16 ? 8 : 10)];
    bool rooted = algorithm == LS__ALGORITHM_TO_ONE || algorithm == LS__ALGORITHM_BROADCAST;
    t.spec.root = rooted ? (int)below(ranks) : 0;
    t.spec.stop_at_root = algorithm == LS__ALGORITHM_TO_ONE && below(2);
    t.spec.subdivisions = algorithm == LS__ALGORITHM_RING ? (int)pick(1, 3) : 0;
    t.spec.ranks_per_host = algorithm == LS__ALGORITHM_RING ? (int)pick(1, ranks) : 0;
    t.result = !t.consume || below(2);
    bool blocks = algorithm == LS__ALGORITHM_DIRECT || algorithm == LS__ALGORITHM_HIERARCHICAL ||
                  algorithm == LS__ALGORITHM_TO_ONE;
    if (ends != LS__LOCAL_OWN && blocks)
        t.spec.replicas = (int)pick(ranks, ranks + 8 < MOST ? ranks + 8 : MOST);
    int n = t.spec.replicas ? t.spec.replicas : ranks;
    t.divisor = algorithm != LS__ALGORITHM_BROADCAST && below(2) ? n : 0;
    return t;
}

static void try_all(ls__local_ends ends)
{
    static const int more[] = { 16, 33, 64 };
    for (int algorithm = 0; algorithm < LS__ALGORITHMS; algorithm++) {
        for (int ranks = 1; ranks <= 12; ranks++)
            for (int i = 0; i < 4; i++)
                try(random_trial((ls__algorithm)algorithm, ranks, ends));
        for (int i = 0; i < 3; i++)
            try(random_trial((ls__algorithm)algorithm, more[i], ends));
    }
}

static void every_rank_ends_with_its_own(void **state)
{
    (void)state;
    try_all(LS__LOCAL_OWN);
}

static void the_sum_exists_once(void **state)
{
    (void)state;
    try_all(LS__LOCAL_ONCE);
}

static void what_was_folded_before(void **state)
{
    (void)state;
    try_all(LS__LOCAL_FOLDED);
}

/* Blocks and their tails, of every dtype; all placements of a few replicas. */
static void long_arrays(void **state)
{
    (void)state;
    for (int d = 0; d < 5; d++)
        for (int ends = LS__LOCAL_OWN; ends <= LS__LOCAL_FOLDED; ends++)
            for (int ranks = 2; ranks <= 3; ranks++)
                try((trial){ .spec = { .ranks = ranks, .replicas = ends == LS__LOCAL_OWN ? 0 : 5 },
                             .ends = (ls__local_ends)ends,
                             .dtype = dtypes[d],
                             .divisor = ends == LS__LOCAL_OWN ? ranks : 0,
                             .arrays = 2,
                             .counts = { 5000, 4111 },
                             .consume = true,
                             .result = d % 2 });
}

static void every_placement(void **state)
{
    (void)state;
    for (int v = 1; v <= 13; v++)
        for (int ranks = 1; ranks <= v; ranks++)
            for (int ends = LS__LOCAL_ONCE; ends <= LS__LOCAL_FOLDED; ends++)
                try((trial){ .spec = { .algorithm = ranks % 2 ? LS__ALGORITHM_DIRECT
                                                              : LS__ALGORITHM_HIERARCHICAL,
                                       .ranks = ranks,
                                       .replicas = v },
                             .ends = (ls__local_ends)ends,
                             .dtype = LS_F32,
                             .arrays = 1,
                             .counts = { 37 },
                             .consume = true });
}

/* ---- what it costs ------------------------------------------------------------------------------ */

static ls__local *compile(ls__schedule_spec spec, ls__local_ends ends)
{
    ls__schedule *s;
    ls__local *l;
    assert_int_equal(ls__schedule_make(&spec, &s), LS_OK);
    assert_int_equal(ls__local_compile(s, ends, &l), LS_OK);
    ls__schedule_free(s);
    return l;
}

/* Direct is one round without scratch, however it ends; what is known of the others. */
static void rounds_and_scratch(void **state)
{
    (void)state;
    ls__array array = { .count = 1000 };
    ls__local_job job = { .dtype = LS_F32, .n_arrays = 1, .arrays = &array };
    for (int ranks = 2; ranks <= 64; ranks = 2 * ranks - 1)
        for (int ends = LS__LOCAL_OWN; ends <= LS__LOCAL_FOLDED; ends++) {
            ls__local *l = compile((ls__schedule_spec){ .ranks = ranks }, (ls__local_ends)ends);
            assert_int_equal(ls__local_rounds(l), 1);
            assert_int_equal(ls__local_scratch(l, &job), 0);
            ls__local_free(l);
            l = compile((ls__schedule_spec){ .algorithm = LS__ALGORITHM_TO_ONE, .ranks = ranks },
                        (ls__local_ends)ends);
            assert_int_equal(ls__local_rounds(l), 1);
            assert_int_equal(ls__local_scratch(l, &job), 0);
            ls__local_free(l);
            l = compile((ls__schedule_spec){ .algorithm = LS__ALGORITHM_RING, .ranks = ranks },
                        (ls__local_ends)ends);
            assert_int_equal(ls__local_rounds(l), ranks - 1);
            if (ends == LS__LOCAL_OWN)
                assert_int_equal(ls__local_scratch(l, &job), 0);
            ls__local_free(l);
        }
    ls__local *l = compile((ls__schedule_spec){ .algorithm = LS__ALGORITHM_BROADCAST, .ranks = 9 },
                           LS__LOCAL_OWN);
    assert_int_equal(ls__local_rounds(l), 1);
    ls__local_free(l);
    l = compile((ls__schedule_spec){ .ranks = 1 }, LS__LOCAL_OWN);
    assert_int_equal(ls__local_rounds(l), 0);
    ls__local_free(l);
}

/* ---- altered hops -------------------------------------------------------------------------------- */

/* One field of one hop is another: it does not compile. */
static void alter(ls__schedule *s, int rank, int hop, ls__local_ends ends, const char *what,
                  ls__hop changed)
{
    ls__hop saved = s->hops[rank][hop];
    s->hops[rank][hop] = changed;
    ls__local *l = NULL;
    ls_status st = ls__local_compile(s, ends, &l);
    if (st != LS_CORRUPT)
        fail_msg("%s, %d ranks: %s of hop %d of rank %d altered: %s",
                 ls__algorithm_name(s->spec.algorithm), s->spec.ranks, what, hop, rank,
                 ls_status_name(st));
    assert_null(l);
    assert_int_equal(ls_error(), LS_CORRUPT);
    s->hops[rank][hop] = saved;
}

static void alter_all(ls__schedule *s, int rank, int hop, ls__local_ends ends)
{
    const ls__hop h = s->hops[rank][hop];
    for (int act = 0; act < 4; act++) {
        ls__hop c = h;
        c.act = (uint8_t)act;
        if (c.act != h.act)
            alter(s, rank, hop, ends, "act", c);
    }
    for (int peer = 0; peer <= s->spec.ranks && h.act != LS__ACT_ADD; peer++) {
        ls__hop c = h;
        c.peer = (uint16_t)peer;
        if (c.peer != h.peer)
            alter(s, rank, hop, ends, "peer", c);
    }
    for (uint32_t chunk = 0; chunk <= (uint32_t)s->chunks; chunk++) {
        ls__hop c = h;
        c.chunk = chunk == (uint32_t)s->chunks ? LS__EVERY_CHUNK : chunk;
        /* A fold in one chunk less is one where there is no other, and it is not folded before. */
        if (c.chunk != h.chunk && !(h.chunk == LS__EVERY_CHUNK && s->chunks == 1))
            alter(s, rank, hop, ends, "chunk", c);
    }
    for (int i = 0; i < 8; i++) {
        ls__hop c = h;
        c.node ^= 1u << (i < 4 ? i : i < 7 ? 22 + i : 31);
        alter(s, rank, hop, ends, "node", c);
    }
    ls__hop c = h;
    c.round = h.round + 1;
    if (h.act != LS__ACT_ADD) /* a sum that is needed later may be added later */
        alter(s, rank, hop, ends, "round", c);
    c.round = (uint32_t)s->rounds;
    alter(s, rank, hop, ends, "round", c);
}

static void altered_hops_do_not_compile(void **state)
{
    (void)state;
    for (int algorithm = 0; algorithm < LS__ALGORITHMS; algorithm++)
        for (int ranks = 2; ranks <= 5; ranks += ranks - 1) /* 2, 3, 5 */
            for (int ends = LS__LOCAL_OWN; ends <= LS__LOCAL_FOLDED; ends++) {
                ls__schedule_spec spec = { .algorithm = (ls__algorithm)algorithm, .ranks = ranks };
                if (ends != LS__LOCAL_OWN && algorithm == LS__ALGORITHM_DIRECT)
                    spec.replicas = ranks + 3;
                ls__schedule *s;
                assert_int_equal(ls__schedule_make(&spec, &s), LS_OK);
                for (int rank = 0; rank < ranks; rank++)
                    for (int hop = 0; hop < s->n_hops[rank]; hop++)
                        alter_all(s, rank, hop, (ls__local_ends)ends);
                ls__schedule_free(s);
            }
}

/* A hop that is missing, and one that is there twice. */
static void missing_and_doubled_hops_do_not_compile(void **state)
{
    (void)state;
    for (int algorithm = 0; algorithm < LS__ALGORITHMS; algorithm++) {
        ls__schedule_spec spec = { .algorithm = (ls__algorithm)algorithm, .ranks = 5 };
        ls__schedule *s;
        ls__local *l = NULL;
        assert_int_equal(ls__schedule_make(&spec, &s), LS_OK);
        for (int rank = 0; rank < 5; rank++)
            for (int hop = 0; hop < s->n_hops[rank]; hop++) {
                ls__hop *all = s->hops[rank], *fewer = malloc(sizeof *all * 1000);
                int n = s->n_hops[rank];
                assert_true(n < 999);
                s->hops[rank] = fewer;
                memcpy(fewer, all, (size_t)hop * sizeof *all);
                memcpy(fewer + hop, all + hop + 1, (size_t)(n - hop - 1) * sizeof *all);
                s->n_hops[rank] = n - 1;
                assert_int_equal(ls__local_compile(s, LS__LOCAL_ONCE, &l), LS_CORRUPT);
                assert_int_equal(ls_error(), LS_CORRUPT);
                memcpy(fewer + hop, all + hop, (size_t)(n - hop) * sizeof *all);
                memmove(fewer + hop + 1, fewer + hop, (size_t)(n - hop) * sizeof *all);
                s->n_hops[rank] = n + 1;
                assert_int_equal(ls__local_compile(s, LS__LOCAL_OWN, &l), LS_CORRUPT);
                assert_int_equal(ls_error(), LS_CORRUPT);
                s->hops[rank] = all;
                s->n_hops[rank] = n;
                free(fewer);
            }
        ls__schedule_free(s);
    }
}

/* One that nobody receives. */
static void a_send_too_much_does_not_compile(void **state)
{
    (void)state;
    ls__schedule *s;
    ls__local *l = NULL;
    assert_int_equal(ls__schedule_make(&(ls__schedule_spec){ .ranks = 3 }, &s), LS_OK);
    ls__hop send = s->hops[1][s->n_hops[1] - 1];
    send = (ls__hop){
        .act = LS__ACT_SEND, .peer = 0, .round = send.round, .node = ls__tree_node_at(0, 1)
    };
    assert_int_equal(ls__hop_add(s, 1, send), LS_OK);
    assert_int_equal(ls__local_compile(s, LS__LOCAL_OWN, &l), LS_CORRUPT);
    assert_non_null(strstr(ls_error_text(), "who does not receive it"));
    assert_int_equal(ls_error(), LS_CORRUPT);
    ls__schedule_free(s);
}

/* Both exchange all they have and add: what one writes the other reads in the same round. */
static void both_add_the_same(void **state)
{
    (void)state;
    ls__hop hops[2][3] = { { { LS__ACT_SEND, 1, 0, 0, 0 },
                             { LS__ACT_RECEIVE, 1, 0, 0, 1 },
                             { LS__ACT_ADD, 0, 0, 0, ls__tree_root(2) } },
                           { { LS__ACT_SEND, 0, 0, 0, 1 },
                             { LS__ACT_RECEIVE, 0, 0, 0, 0 },
                             { LS__ACT_ADD, 0, 0, 0, ls__tree_root(2) } } };
    ls__schedule s = { .spec = { .ranks = 2, .replicas = 2 },
                       .chunks = 1,
                       .rounds = 1,
                       .hops = (ls__hop *[]){ hops[0], hops[1] },
                       .n_hops = (int[]){ 3, 3 } };
    ls__local *l;
    assert_int_equal(ls__local_compile(&s, LS__LOCAL_OWN, &l), LS_OK);
    assert_int_equal(ls__local_rounds(l), 2); /* into scratch, and from there */
    for (int first = 0; first < 2; first++) {
        _Alignas(64) float x[2][2] = { { 1, 2 }, { 3, 5 } };
        ls__array array = { .count = 2, .operands = (const void *[]){ x[0], x[1] } };
        ls__local_job job = { .dtype = LS_F32, .n_arrays = 1, .arrays = &array };
        _Alignas(64) char scratch[1024];
        assert_true(ls__local_scratch(l, &job) <= sizeof scratch);
        job.scratch = scratch;
        for (int round = 0; round < 2; round++) {
            ls__local_run(l, round, first, &job);
            ls__local_run(l, round, !first, &job);
        }
        assert_true(x[0][0] == 4 && x[0][1] == 7 && x[1][0] == 4 && x[1][1] == 7);
    }
    ls__local_free(l);
}

static void own_copies_want_a_rank_each(void **state)
{
    (void)state;
    ls__schedule *s;
    ls__local *l = NULL;
    assert_int_equal(ls__schedule_make(&(ls__schedule_spec){ .ranks = 2, .replicas = 3 }, &s), 0);
    assert_int_equal(ls__local_compile(s, LS__LOCAL_OWN, &l), LS_INVALID);
    assert_int_equal(ls_error(), LS_INVALID);
    ls__schedule_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rank_ends_with_its_own),
        cmocka_unit_test(the_sum_exists_once),
        cmocka_unit_test(what_was_folded_before),
        cmocka_unit_test(long_arrays),
        cmocka_unit_test(every_placement),
        cmocka_unit_test(rounds_and_scratch),
        cmocka_unit_test(altered_hops_do_not_compile),
        cmocka_unit_test(missing_and_doubled_hops_do_not_compile),
        cmocka_unit_test(a_send_too_much_does_not_compile),
        cmocka_unit_test(both_add_the_same),
        cmocka_unit_test(own_copies_want_a_rank_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
