/*
 * Communicators of threads: values of TensorFlow's tests (CASES T10, T11, T40), every algorithm, ranks
 * that do not come, that ask for something else, that are ended from outside; and that nobody is left
 * waiting or reads memory that its owner has back.
 */
#include <lockstep/collective.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "collective/comm.h"
#include "kernels/test_numbers.h"

enum { MOST = 32 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SLOW = true };
#else
enum { SLOW = false };
#endif

/* ---- ranks as threads ------------------------------------------------------------------ */

typedef struct party party;

/* Each rank's share of a test; its status and the text of its error are kept. */
typedef ls_status (*share)(party *p, int rank);

struct party {
    ls_comm *comm;
    int ranks;
    share share;
    void *user;
    ls_status status[MOST];
    char text[MOST][600];
};

typedef struct seat {
    party *p;
    int rank;
} seat;

static void *be_rank(void *user)
{
    seat *s = user;
    party *p = s->p;
    p->status[s->rank] = p->share(p, s->rank);
    snprintf(p->text[s->rank], sizeof p->text[0], "%s", ls_error_report());
    return NULL;
}

static void hold(party *p)
{
    pthread_t threads[MOST];
    seat seats[MOST];
    for (int r = 0; r < p->ranks; r++) {
        seats[r] = (seat){ p, r };
        assert_int_equal(pthread_create(&threads[r], NULL, be_rank, &seats[r]), 0);
    }
    for (int r = 0; r < p->ranks; r++)
        pthread_join(threads[r], NULL);
}

static void all_well(const party *p)
{
    for (int r = 0; r < p->ranks; r++)
        if (p->status[r])
            fail_msg("rank %d of %d: %s", r, p->ranks, p->text[r]);
}

static void all_failed(const party *p, ls_status status, const char *text)
{
    for (int r = 0; r < p->ranks; r++)
        if (p->status[r] != status || !strstr(p->text[r], text))
            fail_msg("rank %d of %d: %s, \"%s\"; want %s, \"%s\"", r, p->ranks,
                     ls_status_name(p->status[r]), p->text[r], ls_status_name(status), text);
}

/* ---- T10, T11 ---------------------------------------------------------------------------- */

typedef struct dense {
    ls_reduce_op op;
    float x[4][2];
} dense;

static ls_status reduce_dense(party *p, int rank)
{
    dense *d = p->user;
    return ls_comm_all_reduce(p->comm, rank, d->op, LS_F32, d->x[rank], 2);
}

static void values_of_reduce_dense(void **state)
{
    (void)state;
    static const struct {
        int ranks;
        ls_reduce_op op;
        float first, second; /* of 1 2, 3 4, 5 6, 7 8 */
    } cases[] = { { 1, LS_SUM, 1, 2 },  { 1, LS_MEAN, 1, 2 },  { 2, LS_SUM, 4, 6 },
                  { 2, LS_MEAN, 2, 3 }, { 4, LS_SUM, 16, 20 }, { 4, LS_MEAN, 4, 5 } };
    for (int a = LS_ALGORITHM_AUTO; a <= LS_ALGORITHM_TO_ONE; a++)
        for (int i = 0; i < 6; i++) {
            dense d = { .op = cases[i].op, .x = { { 1, 2 }, { 3, 4 }, { 5, 6 }, { 7, 8 } } };
            party p = { .ranks = cases[i].ranks, .share = reduce_dense, .user = &d };
            p.comm = ls_comm_local(LS_COMM(.ranks = p.ranks, .algorithm = (ls_algorithm)a));
            assert_non_null(p.comm);
            hold(&p);
            all_well(&p);
            for (int r = 0; r < p.ranks; r++)
                assert_true(d.x[r][0] == cases[i].first && d.x[r][1] == cases[i].second);
            ls_comm_free(p.comm);
        }
}

/* ---- T40 --------------------------------------------------------------------------------- */

typedef struct ring {
    ls_dtype dtype;
    int64_t count;
    int calls, fail_after; /* 0: never */
    int wrong[MOST];
} ring;

static void put(ls_dtype dtype, void *x, int64_t i, double real, int64_t whole)
{
    if (dtype == LS_F32)
        ((float *)x)[i] = (float)real;
    else if (dtype == LS_F64)
        ((double *)x)[i] = real;
    else if (dtype == LS_I32)
        ((int32_t *)x)[i] = (int32_t)whole;
    else
        ((int64_t *)x)[i] = whole;
}

/* 10^d i in floats; in integers 10 d + i. */
static void fill(ls_dtype dtype, void *x, int64_t count, int d)
{
    double power = pow(10, d);
    for (int64_t i = 0; i < count; i++)
        put(dtype, x, i, power * (double)i, 10 * d + i);
}

static int count_wrong(ls_dtype dtype, const void *x, int64_t count, int ranks)
{
    double ones = 0;
    int wrong = 0;
    for (int d = 0; d < ranks; d++)
        ones += pow(10, d);
    for (int64_t i = 0; i < count; i++) {
        double real = ones * (double)i / ranks;
        int64_t whole = i + 10 * (int64_t)(ranks - 1) / 2;
        if (dtype == LS_F32)
            wrong += !(fabs(((const float *)x)[i] - real) <= 1e-6 * real);
        else if (dtype == LS_F64)
            wrong += !(fabs(((const double *)x)[i] - real) <= 1e-15 * real);
        else
            wrong += (dtype == LS_I32 ? ((const int32_t *)x)[i] : ((const int64_t *)x)[i]) != whole;
    }
    return wrong;
}

static ls_status ring_mean(party *p, int rank)
{
    ring *t = p->user;
    void *x = malloc((size_t)t->count * 8 + 8);
    ls_status st = LS_OK;
    for (int call = 0; call < t->calls && !st; call++) {
        fill(t->dtype, x, t->count, rank);
        if (t->fail_after && call == t->fail_after && rank == p->ranks / 2)
            ls_comm_abort(p->comm, LS_PEER, "injected failure");
        st = ls_comm_all_reduce(p->comm, rank, LS_MEAN, t->dtype, x, t->count);
        t->wrong[rank] = st ? 0 : count_wrong(t->dtype, x, t->count, p->ranks);
    }
    free(x);
    return st;
}

static void try_ring(int workers, int devices, int subdivisions, int64_t count, ls_dtype dtype,
                     int fail_after)
{
    ring t = { .dtype = dtype, .count = count, .fail_after = fail_after };
    t.calls = fail_after ? fail_after + 5 : 1;
    party p = { .ranks = workers * devices, .share = ring_mean, .user = &t };
    p.comm = ls_comm_local(LS_COMM(.ranks = p.ranks, .algorithm = LS_ALGORITHM_RING,
                                   .subdivisions = subdivisions, .ranks_per_host = devices));
    assert_non_null(p.comm);
    hold(&p);
    if (fail_after)
        all_failed(&p, LS_PEER, "injected failure");
    else
        all_well(&p);
    for (int r = 0; r < p.ranks; r++)
        assert_int_equal(t.wrong[r], 0);
    ls_comm_free(p.comm);
}

static const ls_dtype numbers_of_ring[] = { LS_F32, LS_F64, LS_I32, LS_I64 };

static const struct {
    int workers, devices, subdivisions;
    int64_t count;
} rings[] = { { 1, 2, 1, 1 },    { 1, 2, 1, 2 },    { 1, 2, 1, 8 },       { 1, 2, 1, 16 },
              { 1, 2, 1, 1001 }, { 2, 4, 1, 128 },  { 2, 8, 1, 1001 },    { 2, 8, 1, 4096 },
              { 2, 8, 1, 9408 }, { 2, 8, 3, 4095 }, { 2, 8, 3, 1045991 }, { 4, 4, 4, 1045991 } };

static void rings_of_the_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rings / sizeof *rings; i++)
        for (int d = 0; d < 4; d++) {
            int64_t count = rings[i].count;
            if (count > 100000 && SLOW)
                count = 10459;
            try_ring(rings[i].workers, rings[i].devices, rings[i].subdivisions, count,
                     numbers_of_ring[d], 0);
        }
}

static void every_rank_ends_with_an_injected_failure(void **state)
{
    (void)state;
    static const int after[] = { 1, 7, 11 };
    for (int d = 0; d < 4; d++)
        for (int i = 0; i < 3; i++) {
            try_ring(1, 2, 1, 1001, numbers_of_ring[d], after[i]);
            try_ring(2, 4, 1, 128, numbers_of_ring[d], after[i]);
            try_ring(2, 8, 3, 4095, numbers_of_ring[d], after[i]);
        }
}

/* ---- every algorithm, many calls --------------------------------------------------------------- */

typedef struct series {
    int calls;
    int64_t count;
    float *last[MOST]; /* of the last all-reduce; to be freed */
    int wrong[MOST];
} series;

/* All-reduce, reduce and broadcast in turn, to different roots, of memory that is freed at once. */
static ls_status do_series(party *p, int rank)
{
    series *s = p->user;
    ls_status st = LS_OK;
    for (int call = 0; call < s->calls && !st; call++) {
        int root = call % p->ranks;
        float *x = malloc((size_t)s->count * sizeof *x);
        int64_t *y = malloc((size_t)s->count * sizeof *y);
        for (int64_t i = 0; i < s->count; i++) {
            x[i] = ldexpf((float)((i * 7 + rank * 13 + call) % 101) / 7, rank % 9);
            y[i] = i * (rank + 1);
        }
        st = ls_comm_all_reduce(p->comm, rank, LS_SUM, LS_F32, x, s->count);
        if (!st)
            st = ls_comm_reduce(p->comm, rank, root, LS_SUM, LS_I64, y, s->count);
        for (int64_t i = 0; i < s->count && !st && rank == root; i++)
            s->wrong[rank] += y[i] != i * p->ranks * (p->ranks + 1) / 2;
        if (!st && rank != root)
            memset(y, 0, (size_t)s->count * sizeof *y);
        if (!st)
            st = ls_comm_broadcast(p->comm, rank, root, LS_I64, y, s->count);
        for (int64_t i = 0; i < s->count && !st; i++)
            s->wrong[rank] += y[i] != i * p->ranks * (p->ranks + 1) / 2;
        free(y);
        free(s->last[rank]);
        s->last[rank] = x;
    }
    return st;
}

/* The bits of all algorithms but the ring's are one another's; ranks always agree. */
static void algorithms_agree(void **state)
{
    (void)state;
    static const int ranks[] = { 1, 2, 3, 4, 5, 8, 11 };
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        series first = { .calls = 0 };
        for (int a = LS_ALGORITHM_DIRECT; a <= LS_ALGORITHM_TO_ONE; a++) {
            series s = { .calls = SLOW ? 10 : 30, .count = 333 };
            party p = { .ranks = ranks[i], .share = do_series, .user = &s };
            p.comm = ls_comm_local(LS_COMM(.ranks = p.ranks, .algorithm = (ls_algorithm)a));
            assert_int_equal(ls_comm_algorithm(p.comm, 1000), a);
            hold(&p);
            all_well(&p);
            const float *want = first.calls && a != LS_ALGORITHM_RING ? first.last[0] : s.last[0];
            for (int r = 0; r < p.ranks; r++) {
                assert_int_equal(s.wrong[r], 0);
                assert_memory_equal(s.last[r], want, 333 * sizeof *want);
            }
            ls_comm_free(p.comm);
            if (!first.calls) {
                first = s;
                continue;
            }
            for (int r = 0; r < p.ranks; r++)
                free(s.last[r]);
        }
        for (int r = 0; r < ranks[i]; r++)
            free(first.last[r]);
    }
}

static void two_ranks_many_times(void **state)
{
    (void)state;
    series s = { .calls = SLOW ? 300 : 3000, .count = 100 };
    party p = { .ranks = 2, .share = do_series, .user = &s };
    p.comm = ls_comm_local(LS_COMM(.ranks = 2, .timeout = 60));
    hold(&p);
    all_well(&p);
    assert_int_equal(s.wrong[0] + s.wrong[1], 0);
    free(s.last[0]);
    free(s.last[1]);
    ls_comm_free(p.comm);
}

/* ---- other dtypes, no elements, means of integers ------------------------------------------------ */

static ls_status small_things(party *p, int rank)
{
    bool flags[3] = { rank == 2, rank != 2, rank == 2 };
    uint16_t halves[3] = { (uint16_t)(100 + rank), 7, (uint16_t)rank };
    ls_status st = ls_comm_broadcast(p->comm, rank, 2, LS_BOOL, flags, 3);
    if (!st)
        st = ls_comm_broadcast(p->comm, rank, 1, LS_BF16, halves, 3);
    int32_t whole[2] = { rank == 0 ? -8 : 0, INT32_MAX };
    if (!st)
        st = ls_comm_all_reduce(p->comm, rank, LS_MEAN, LS_I32, whole, 2);
    uint8_t bytes[1] = { (uint8_t)(250 + rank) };
    if (!st)
        st = ls_comm_all_reduce(p->comm, rank, LS_SUM, LS_U8, bytes, 1);
    if (!st)
        st = ls_comm_all_reduce(p->comm, rank, LS_SUM, LS_F64, NULL, 0);
    if (!st)
        st = ls_comm_broadcast(p->comm, rank, 0, LS_U8, NULL, 0);
    int *wrong = p->user;
    wrong[rank] = !flags[0] || flags[1] || halves[0] != 101 || halves[2] != 1 || whole[0] != -2 ||
                  whole[1] != 715827881 /* of 2^31 - 3 */ || bytes[0] != (uint8_t)(250 + 251 + 252);
    return st;
}

static void other_dtypes_and_no_elements(void **state)
{
    (void)state;
    int wrong[3] = { 0 };
    party p = { .ranks = 3, .share = small_things, .user = wrong };
    p.comm = ls_comm_local(LS_COMM(.ranks = 3));
    hold(&p);
    all_well(&p);
    for (int r = 0; r < 3; r++)
        assert_int_equal(wrong[r], 0);
    ls_comm_free(p.comm);
}

/* ---- different calls ------------------------------------------------------------------------------- */

static ls_status differ(party *p, int rank)
{
    double x[8] = { 0 };
    switch (*(int *)p->user) {
    case 0:
        if (rank == 0)
            return ls_comm_broadcast(p->comm, rank, 2, LS_F32, x, 8);
        return ls_comm_all_reduce(p->comm, rank, LS_SUM, LS_F32, x, 4);
    case 1:
        return ls_comm_all_reduce(p->comm, rank, LS_SUM, LS_F32, x, rank == 3 ? 5 : 4);
    case 2:
        return ls_comm_all_reduce(p->comm, rank, LS_SUM, rank ? LS_F64 : LS_I64, x, 4);
    case 3:
        return ls_comm_reduce(p->comm, rank, rank / 2, LS_MEAN, LS_F64, x, 1);
    default:
        return ls_comm_all_reduce(p->comm, rank, rank < 2 ? LS_SUM : LS_MEAN, LS_F64, x, 4);
    }
}

static void different_calls(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "rank 0 asked for broadcast of 8 f32 from rank 2, "
        "ranks 1 to 3 for all-reduce SUM of 4 f32",
        "ranks 0 to 2 asked for all-reduce SUM of 4 f32, rank 3 for all-reduce SUM of 5 f32",
        "rank 0 asked for all-reduce SUM of 4 i64, ranks 1 to 3 for all-reduce SUM of 4 f64",
        "ranks 0 and 1 asked for reduce MEAN of 1 f64 to rank 0, "
        "ranks 2 and 3 for reduce MEAN of 1 f64 to rank 1",
        "ranks 0 and 1 asked for all-reduce SUM of 4 f64, ranks 2 and 3 for all-reduce MEAN of 4 "
        "f64",
    };
    for (int i = 0; i < 5; i++) {
        party p = { .ranks = 4, .share = differ, .user = &i };
        p.comm = ls_comm_local(LS_COMM(.ranks = 4));
        hold(&p);
        all_failed(&p, LS_DESYNC, texts[i]);
        hold(&p); /* for ever */
        all_failed(&p, LS_DESYNC, texts[i]);
        ls_comm_free(p.comm);
    }
}

/* The longest text there is still ends. */
static ls_status all_differ(party *p, int rank)
{
    float x[MOST + 1];
    return ls_comm_all_reduce(p->comm, rank, LS_SUM, LS_F32, x, rank + 1);
}

static void many_different_calls(void **state)
{
    (void)state;
    party p = { .ranks = MOST, .share = all_differ };
    p.comm = ls_comm_local(LS_COMM(.ranks = MOST));
    hold(&p);
    all_failed(&p, LS_DESYNC, "rank 0 asked for all-reduce SUM of 1 f32, rank 1 for ");
    assert_non_null(strstr(p.text[0], "..."));
    ls_comm_free(p.comm);
}

/* ---- ranks that do not come --------------------------------------------------------------------------- */

/* Ranks 1, 3 and 4 stay away. */
static ls_status stay_away(party *p, int rank)
{
    float x[4] = { 0 };
    if (rank == 1 || rank == 3 || rank == 4)
        return LS_TIMEOUT;
    return ls_comm_all_reduce(p->comm, rank, LS_SUM, LS_F32, x, 4);
}

static void ranks_that_do_not_come(void **state)
{
    (void)state;
    party p = { .ranks = 6, .share = stay_away };
    p.comm = ls_comm_local(LS_COMM(.ranks = 6, .timeout = 0.02));
    hold(&p);
    for (int r = 0; r < 6; r++) {
        assert_int_equal(p.status[r], LS_TIMEOUT);
        if (r == 1 || r == 3 || r == 4)
            continue;
        assert_non_null(strstr(p.text[r], "rank 1, ranks 3 and 4"));
        assert_non_null(strstr(p.text[r], "all-reduce SUM of 4 f32"));
    }
    float x[4];
    assert_int_equal(ls_comm_all_reduce(p.comm, 1, LS_SUM, LS_F32, x, 4), LS_TIMEOUT);
    ls_error();
    ls_comm_free(p.comm);
}

/* ---- ended from outside --------------------------------------------------------------------------------- */

static ls_status all_but_one(party *p, int rank)
{
    float x[4] = { 0 };
    if (rank == p->ranks - 1) {
        usleep(3000);
        ls_comm_abort(p->comm, LS_IO, "the disk is full");
        ls_comm_abort(p->comm, LS_PEER, "not the first");
    }
    return ls_comm_all_reduce(p->comm, rank, LS_SUM, LS_F32, x, 4);
}

static void ended_while_others_wait(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 5; ranks += 2) {
        party p = { .ranks = ranks, .share = all_but_one };
        p.comm = ls_comm_local(LS_COMM(.ranks = ranks));
        hold(&p);
        all_failed(&p, LS_IO, "the disk is full");
        hold(&p);
        all_failed(&p, LS_IO, "the disk is full");
        ls_comm_free(p.comm);
    }
}

static void *end_it(void *user)
{
    party *p = user;
    usleep((useconds_t)below(600));
    ls_comm_abort(p->comm, LS_PEER, "ended at some moment");
    return NULL;
}

/* At any moment: every rank comes back, and its memory is its own again (the address sanitizer
 * looks on). */
static void ended_at_any_moment(void **state)
{
    (void)state;
    for (int i = 0; i < (SLOW ? 60 : 200); i++) {
        series s = { .calls = 100000, .count = pick(1, 3000) };
        party p = { .ranks = (int)pick(2, 4), .share = do_series, .user = &s };
        p.comm = ls_comm_local(
            LS_COMM(.ranks = p.ranks, .algorithm = (ls_algorithm)pick(1, LS_ALGORITHM_TO_ONE)));
        pthread_t ender;
        assert_int_equal(pthread_create(&ender, NULL, end_it, &p), 0);
        hold(&p);
        pthread_join(ender, NULL);
        all_failed(&p, LS_PEER, "ended at some moment");
        for (int r = 0; r < p.ranks; r++) {
            assert_int_equal(s.wrong[r], 0);
            free(s.last[r]);
        }
        ls_comm_free(p.comm);
    }
}

/* ---- bad arguments ----------------------------------------------------------------------------------------- */

static void refused(ls_status st, const char *text)
{
    assert_int_equal(st, LS_INVALID);
    if (!strstr(ls_error_text(), text))
        fail_msg("\"%s\", want \"%s\"", ls_error_text(), text);
    assert_int_equal(ls_error(), LS_INVALID);
}

static void *be_rank_1(void *user)
{
    float x = 1;
    assert_int_equal(ls_comm_all_reduce(user, 1, LS_SUM, LS_F32, &x, 1), LS_OK);
    return NULL;
}

static void two_threads_as_one_rank(void **state)
{
    (void)state;
    ls_comm *c = ls_comm_local(LS_COMM(.ranks = 2));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, be_rank_1, c), 0);
    for (int turn = 0; !atomic_load(&c->seats[1].busy); turn++)
        ls__back_off(turn);
    float x = 2;
    assert_int_equal(ls_comm_all_reduce(c, 1, LS_SUM, LS_F32, &x, 1), LS_STATE);
    assert_non_null(strstr(ls_error_text(), "as rank 1"));
    assert_int_equal(ls_error(), LS_STATE);
    assert_int_equal(ls_comm_all_reduce(c, 0, LS_SUM, LS_F32, &x, 1), LS_OK);
    assert_true(x == 3);
    pthread_join(thread, NULL);
    ls_comm_free(c);
}

static void bad_calls(void **state)
{
    (void)state;
    ls_comm *c = ls_comm_local(LS_COMM(.ranks = 2));
    double x[4] = { 0 };
    refused(ls_comm_all_reduce(NULL, 0, LS_SUM, LS_F32, x, 4), "NULL");
    refused(ls_comm_all_reduce(c, -1, LS_SUM, LS_F32, x, 4), "rank is -1");
    refused(ls_comm_all_reduce(c, 2, LS_SUM, LS_F32, x, 4), "rank is 2");
    refused(ls_comm_all_reduce(c, 0, LS_SUM, LS_F32, NULL, 4), "data is NULL");
    refused(ls_comm_all_reduce(c, 0, LS_SUM, LS_F32, x, -1), "count is -1");
    refused(ls_comm_all_reduce(c, 0, LS_SUM, LS_F64, x, INT64_MAX / 8), "count is");
    refused(ls_comm_all_reduce(c, 0, LS_SUM, LS_BYTES, x, 1), "dtype is bytes");
    refused(ls_comm_all_reduce(c, 0, LS_SUM, (ls_dtype)99, x, 1), "dtype is ? (99)");
    refused(ls_comm_all_reduce(c, 0, LS_SUM, LS_BF16, x, 1), "dtype is bf16");
    refused(ls_comm_all_reduce(c, 0, LS_SUM, LS_BOOL, x, 1), "dtype is bool");
    refused(ls_comm_all_reduce(c, 0, LS_ONLY_FIRST, LS_F32, x, 1), "op is ONLY_FIRST");
    refused(ls_comm_all_reduce(c, 0, (ls_reduce_op)0, LS_F32, x, 1), "op is ?");
    refused(ls_comm_all_reduce(c, 0, LS_SUM, LS_F32, (char *)x + 1, 1), "border of 4 bytes");
    refused(ls_comm_reduce(c, 0, 2, LS_SUM, LS_F32, x, 4), "root is 2");
    refused(ls_comm_reduce(c, 5, 0, LS_SUM, LS_F32, x, 4), "rank is 5");
    refused(ls_comm_reduce(c, 0, 0, LS_SUM, LS_BOOL, x, 4), "dtype is bool");
    refused(ls_comm_broadcast(c, 0, -1, LS_F32, x, 4), "root is -1");
    refused(ls_comm_broadcast(c, 0, 0, LS_BYTES, x, 4), "dtype is bytes");
    refused(ls_comm_broadcast(c, 0, 0, LS_F32, NULL, 4), "data is NULL");
    assert_int_equal(ls_comm_ranks(c), 2);
    assert_int_equal(ls_comm_ranks(NULL), 0);
    ls_comm_abort(NULL, LS_IO, "nothing");
    ls_comm_abort(c, LS_OK, NULL);
    assert_int_equal(ls_comm_all_reduce(c, 0, LS_SUM, LS_F32, x, 4), LS_CANCELLED);
    assert_int_equal(ls_error(), LS_CANCELLED);
    ls_comm_free(c);
    ls_comm_free(NULL);
}

static void not_made(const ls_comm_options *options, const char *text)
{
    assert_null(ls_comm_local(options));
    refused(LS_INVALID, text);
}

static void bad_options(void **state)
{
    (void)state;
    not_made(NULL, "NULL");
    not_made(&(ls_comm_options){ .ranks = 2 }, "options of 0 bytes");
    not_made(LS_COMM(.ranks = 0), "0 ranks");
    not_made(LS_COMM(.ranks = -1), "-1 ranks");
    not_made(LS_COMM(.ranks = 1025), "1025 ranks");
    not_made(LS_COMM(.ranks = 2, .algorithm = (ls_algorithm)6), "algorithm 6");
    not_made(LS_COMM(.ranks = 2, .algorithm = (ls_algorithm)-1), "algorithm -1");
    not_made(LS_COMM(.ranks = 2, .subdivisions = -1), "-1 subdivisions");
    not_made(LS_COMM(.ranks = 2, .subdivisions = 100000), "100000 subdivisions");
    not_made(LS_COMM(.ranks = 2, .ranks_per_host = 3), "3 ranks per host");
    not_made(LS_COMM(.ranks = 2, .timeout = -1), "timeout of -1");
    not_made(LS_COMM(.ranks = 2, .timeout = NAN), "timeout of");
    ls_comm_options o;
    ls_comm_init(&o);
    ls_comm_init(NULL);
    o.ranks = 1024;
    o.timeout = INFINITY;
    ls_comm *c = ls_comm_local(&o);
    assert_non_null(c);
    assert_int_equal(ls_comm_algorithm(c, 0), LS_ALGORITHM_DIRECT);
    ls_comm_free(c);
    assert_string_equal(ls_algorithm_name(LS_ALGORITHM_HALVING), "halving-doubling");
    assert_string_equal(ls_algorithm_name((ls_algorithm)77), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_reduce_dense),
        cmocka_unit_test(rings_of_the_cases),
        cmocka_unit_test(every_rank_ends_with_an_injected_failure),
        cmocka_unit_test(algorithms_agree),
        cmocka_unit_test(two_ranks_many_times),
        cmocka_unit_test(other_dtypes_and_no_elements),
        cmocka_unit_test(different_calls),
        cmocka_unit_test(many_different_calls),
        cmocka_unit_test(ranks_that_do_not_come),
        cmocka_unit_test(ended_while_others_wait),
        cmocka_unit_test(ended_at_any_moment),
        cmocka_unit_test(two_threads_as_one_rank),
        cmocka_unit_test(bad_calls),
        cmocka_unit_test(bad_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
