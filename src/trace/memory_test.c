/* The memory plan, without graphs: nothing that lives at once overlaps. */
#include "trace/memory.h"

#include <stdlib.h>

#include "tensor/test_support.h"

static bool at_once(const ls__block *a, const ls__block *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static void check(int n, const ls__block *blocks, size_t arena)
{
    for (int i = 0; i < n; i++) {
        assert_int_equal(blocks[i].offset % LS__ARENA_ALIGN, 0);
        assert_true(blocks[i].offset + blocks[i].bytes <= arena);
        for (int k = 0; k < i; k++)
            if (at_once(&blocks[i], &blocks[k]) && blocks[i].bytes && blocks[k].bytes)
                assert_true(blocks[i].offset + blocks[i].bytes <= blocks[k].offset ||
                            blocks[k].offset + blocks[k].bytes <= blocks[i].offset);
    }
}

static void nothing_takes_nothing(void **state)
{
    (void)state;
    size_t arena = 1, least = 1;
    assert_int_equal(ls__memory_plan(0, NULL, true, &arena), LS_OK);
    assert_int_equal(ls__memory_least(0, NULL, &least), LS_OK);
    assert_int_equal(arena, 0);
    assert_int_equal(least, 0);
}

static void a_place_is_used_again(void **state)
{
    (void)state;
    ls__block b[] = { { 1000, 0, 1, 0 }, { 1000, 1, 2, 0 }, { 1000, 2, 3, 0 } };
    size_t arena, least;
    assert_int_equal(ls__memory_plan(3, b, true, &arena), LS_OK);
    assert_int_equal(ls__memory_least(3, b, &least), LS_OK);
    check(3, b, arena);
    assert_int_equal(arena, 2 * ls__arena_round(1000));
    assert_int_equal(least, arena);
}

static void without_reuse_each_has_its_own(void **state)
{
    (void)state;
    ls__block b[] = { { 100, 0, 0, 0 }, { 200, 1, 1, 0 }, { 0, 2, 2, 0 } };
    size_t arena;
    assert_int_equal(ls__memory_plan(3, b, false, &arena), LS_OK);
    assert_int_equal(arena, ls__arena_round(100) + ls__arena_round(200));
    assert_int_not_equal(b[0].offset, b[1].offset);
}

static void random_lifetimes(void **state)
{
    (void)state;
    enum { MOST = 200 };
    static ls__block b[MOST];
    srand(1);
    for (int turn = 0; turn < 200; turn++) {
        int n = 1 + rand() % MOST;
        for (int i = 0; i < n; i++) {
            int first = rand() % 300;
            b[i] = (ls__block){ .bytes = (size_t)(rand() % 5 ? rand() % 5000 : 0),
                                .first = first,
                                .last = first + rand() % (rand() % 4 ? 10 : 200) };
        }
        size_t arena, least;
        assert_int_equal(ls__memory_plan(n, b, true, &arena), LS_OK);
        assert_int_equal(ls__memory_least(n, b, &least), LS_OK);
        check(n, b, arena);
        assert_true(least <= arena);
        assert_true(arena <= 2 * least); /* far from it on average */
    }
}

/* The bound, worked out by hand. */
static void least_is_the_worst_moment(void **state)
{
    (void)state;
    ls__block b[] = { { 64, 0, 5, 0 }, { 128, 1, 2, 0 }, { 256, 3, 4, 0 }, { 64, 4, 9, 0 } };
    size_t least;
    assert_int_equal(ls__memory_least(4, b, &least), LS_OK);
    assert_int_equal(least, 64 + 256 + 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_takes_nothing),          cmocka_unit_test(a_place_is_used_again),
        cmocka_unit_test(without_reuse_each_has_its_own), cmocka_unit_test(random_lifetimes),
        cmocka_unit_test(least_is_the_worst_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
