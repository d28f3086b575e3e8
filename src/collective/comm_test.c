/*
 * Communicators of threads: values of TensorFlow's tests (CASES T10, T11, T40), every algorithm,
 * many calls. What goes wrong is in comm_errors_test.c.
 */
#include "collective/test_party.h"

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

/* Sums one after another, of many sizes: nobody reads what another rank has written for a later
 * call. */
static ls_status do_sums(party *p, int rank)
{
    static const int64_t counts[] = { 1, 512, 7, 1500, 2048, 0, 2049, 3, 3, 30000, 64 };
    int *wrong = p->user;
    int64_t *x = malloc(30000 * sizeof *x);
    ls_status st = LS_OK;
    for (int call = 0; call < (SLOW ? 200 : 2000) && !st; call++) {
        int64_t count = counts[(call + call / 11) % 11], n = p->ranks;
        for (int64_t i = 0; i < count; i++)
            x[i] = i * (rank + 1) + call;
        st = ls_comm_all_reduce(p->comm, rank, LS_SUM, LS_I64, x, count);
        for (int64_t i = 0; i < count && !st; i++)
            wrong[rank] += x[i] != i * n * (n + 1) / 2 + call * n;
    }
    free(x);
    return st;
}

static void small_and_large_by_turns(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 4; ranks++) {
        int wrong[4] = { 0 };
        party p = { .ranks = ranks, .share = do_sums, .user = wrong };
        p.comm = ls_comm_local(LS_COMM(.ranks = ranks, .timeout = 60));
        hold(&p);
        all_well(&p);
        assert_int_equal(wrong[0] + wrong[1] + wrong[2] + wrong[3], 0);
        ls_comm_free(p.comm);
    }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_reduce_dense),
        cmocka_unit_test(rings_of_the_cases),
        cmocka_unit_test(every_rank_ends_with_an_injected_failure),
        cmocka_unit_test(algorithms_agree),
        cmocka_unit_test(two_ranks_many_times),
        cmocka_unit_test(small_and_large_by_turns),
        cmocka_unit_test(other_dtypes_and_no_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
