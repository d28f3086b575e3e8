/* Every part is claimed once, by whomever; a rank alone does all; who is undisturbed has its own parts, in order. */
#include "collective/claims.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { PARTS = 20000, RANKS = 4 };

static void own_parts_first(void **state)
{
    (void)state;
    ls__claims c;
    int64_t part;
    ls__claims_deal(&c, 3, 10); /* 0 to 2, 3 to 5, 6 to 9 */
    for (int64_t want = 3; want < 6; want++) {
        assert_true(ls__claims_next(&c, 1, &part));
        assert_int_equal(part, want);
    }
    static const int64_t others[] = { 9, 2, 8, 1, 7, 0, 6 }; /* of who has most left, from behind */
    for (int i = 0; i < 7; i++) {
        assert_true(ls__claims_next(&c, 1, &part));
        assert_int_equal(part, others[i]);
    }
    for (int r = 0; r < 3; r++)
        assert_false(ls__claims_next(&c, r, &part));
}

static void fewer_parts_than_ranks(void **state)
{
    (void)state;
    ls__claims c;
    int64_t part;
    ls__claims_deal(&c, 5, 0);
    assert_false(ls__claims_next(&c, 0, &part));
    ls__claims_deal(&c, 5, 1);
    assert_true(ls__claims_next(&c, 2, &part));
    assert_int_equal(part, 0);
    assert_false(ls__claims_next(&c, 4, &part));
}

typedef struct crowd {
    ls__claims claims;
    atomic_int times[PARTS];
    atomic_int next_rank;
} crowd;

static void *claim(void *arg)
{
    crowd *all = arg;
    const int rank = atomic_fetch_add(&all->next_rank, 1);
    for (int64_t part; ls__claims_next(&all->claims, rank, &part);)
        atomic_fetch_add(&all->times[part], 1);
    return NULL;
}

static void each_part_once(void **state)
{
    (void)state;
    static crowd all;
    pthread_t threads[RANKS];
    ls__claims_deal(&all.claims, RANKS, PARTS);
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, claim, &all), 0);
    for (int i = 0; i < RANKS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < PARTS; i++)
        assert_int_equal(all.times[i], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_parts_first),
        cmocka_unit_test(fewer_parts_than_ranks),
        cmocka_unit_test(each_part_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
