/*
 * Teams: work that is shared is done once for each rank, by threads or not, with the same bits;
 * little work wakes nobody; schedules of one rank are made once, whoever asks first.
 */
#include "collective/team.h"

#include <pthread.h>
#include <string.h>

#include "base/status.h"
#include "kernels/test_numbers.h"

enum { RANKS = 3, REPLICAS = 5, MOST = 4000 };

/* ---- a team of threads that are started for each piece of work ------------------------- */

typedef struct piece {
    ls__share_fn *fn;
    void *arg;
    int rank;
} piece;

static void *do_piece(void *user)
{
    piece *p = user;
    p->fn(p->arg, p->rank);
    return NULL;
}

static void share(ls__team *team, ls__share_fn *fn, void *arg)
{
    pthread_t threads[RANKS];
    piece pieces[RANKS];
    ++*(int *)team->owner;
    for (int r = 0; r < team->ranks; r++) {
        pieces[r] = (piece){ fn, arg, r };
        if (r)
            assert_int_equal(pthread_create(&threads[r], NULL, do_piece, &pieces[r]), 0);
    }
    do_piece(&pieces[0]);
    for (int r = 1; r < team->ranks; r++)
        pthread_join(threads[r], NULL);
}

static void count_rank(void *arg, int rank)
{
    ((int *)arg)[rank]++;
}

static void every_rank_once(void **state)
{
    (void)state;
    int shared = 0;
    ls__team team = { .ranks = RANKS, .replicas = RANKS, .share = share, .owner = &shared };
    for (int ranks = 0; ranks <= 8; ranks++)
        for (int alone = 0; alone < 2; alone++) {
            int done[9] = { 0 };
            ls__team_share(alone ? NULL : &team, ranks, count_rank, done);
            for (int r = 0; r < 9; r++)
                assert_int_equal(done[r], r < ranks);
        }
    assert_int_equal(shared, 7); /* from two on */
}

/* ---- reducing ---------------------------------------------------------------------------- */

static ls__local *compile(ls__algorithm algorithm)
{
    ls__schedule_spec spec = { .algorithm = algorithm, .ranks = RANKS, .replicas = REPLICAS };
    ls__schedule *s;
    ls__local *l;
    assert_int_equal(ls__schedule_make(&spec, &s), LS_OK);
    assert_int_equal(ls__local_compile(s, LS__LOCAL_ONCE, &l), LS_OK);
    ls__schedule_free(s);
    return l;
}

static void reduce(ls__team *team, const ls__local *l, float *const *x, int64_t count, float *out)
{
    void *results[] = { out };
    ls__array array = { count, (const void *const *)x, results };
    ls__local_job job = { .dtype = LS_F32, .divisor = REPLICAS, .n_arrays = 1, .arrays = &array };
    size_t scratch = ls__local_scratch(l, &job);
    job.scratch = scratch ? aligned_alloc(64, scratch) : NULL;
    ls__team_reduce(team, l, &job);
    free(job.scratch);
}

static void the_same_bits_by_threads_and_alone(void **state)
{
    (void)state;
    static const ls__algorithm algorithms[] = { LS__ALGORITHM_DIRECT, LS__ALGORITHM_HIERARCHICAL,
                                                LS__ALGORITHM_TO_ONE };
    int shared = 0;
    ls__team team = { .ranks = RANKS, .replicas = REPLICAS, .share = share, .owner = &shared };
    float *x[REPLICAS], want[MOST], got[MOST];
    for (int r = 0; r < REPLICAS; r++)
        x[r] = numbers(MOST);
    reduce(NULL, ls__local_alone(REPLICAS), x, MOST, want);
    for (int a = 0; a < 3; a++) {
        ls__local *l = compile(algorithms[a]);
        memset(got, 0, sizeof got);
        int before = shared;
        reduce(&team, l, x, MOST, got);
        assert_int_equal(shared, before + ls__local_rounds(l));
        assert_memory_equal(got, want, sizeof want);
        before = shared;
        memset(got, 0, sizeof got);
        reduce(&team, l, x, 100, got); /* little work: here */
        assert_int_equal(shared, before);
        assert_memory_equal(got, want, 100 * sizeof *want);
        ls__local_free(l);
    }
    int before = shared;
    reduce(&team, ls__local_alone(REPLICAS), x, MOST, got); /* of other ranks: here */
    assert_int_equal(shared, before);
    assert_memory_equal(got, want, sizeof want);
    for (int r = 0; r < REPLICAS; r++)
        free(x[r]);
}

/* ---- alone ---------------------------------------------------------------------------------- */

static void *ask(void *user)
{
    const ls__local **out = user;
    for (int v = 1; v <= 40; v++)
        out[v] = ls__local_alone(v);
    return NULL;
}

static void one_for_all_who_ask(void **state)
{
    (void)state;
    pthread_t threads[4];
    const ls__local *got[4][41];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask, got[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int v = 1; v <= 40; v++) {
        assert_non_null(got[0][v]);
        assert_int_equal(ls__local_ranks(got[0][v]), 1);
        assert_int_equal(ls__local_replicas(got[0][v]), v);
        assert_int_equal(ls__local_rounds(got[0][v]), 1);
        for (int i = 1; i < 4; i++)
            assert_ptr_equal(got[i][v], got[0][v]);
    }
    assert_non_null(ls__local_alone(LS__MOST_REPLICAS));
    assert_null(ls__local_alone(0));
    assert_int_equal(ls_error(), LS_INVALID);
    assert_null(ls__local_alone(LS__MOST_REPLICAS + 1));
    assert_int_equal(ls_error(), LS_INVALID);
}

static void teams_nest(void **state)
{
    (void)state;
    ls__team a = { .ranks = 1 }, b = { .ranks = 2 };
    assert_null(ls__team_get());
    assert_null(ls__team_use(&a));
    assert_ptr_equal(ls__team_use(&b), &a);
    assert_ptr_equal(ls__team_get(), &b);
    assert_ptr_equal(ls__team_use(NULL), &b);
    assert_null(ls__team_get());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rank_once),
        cmocka_unit_test(the_same_bits_by_threads_and_alone),
        cmocka_unit_test(one_for_all_who_ask),
        cmocka_unit_test(teams_nest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
