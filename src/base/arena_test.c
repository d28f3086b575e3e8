/*
 * Arenas: aligned pieces that do not overlap, of any size, again and again.
 */
#include "base/arena.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"

/* Sanitizer builds return NULL too when memory is out. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static uint64_t seed = 20260101;

static size_t pick(size_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(seed >> 33) % below;
}

static void pieces_are_aligned_and_apart(void **state)
{
    (void)state;
    enum { N = 2000 };
    static unsigned char *piece[N];
    static size_t size[N];
    ls__arena arena = { .chunks = NULL };
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) {
            size[i] = pick(20) == 0 ? pick(200000) : pick(300);
            piece[i] = ls__arena_alloc(&arena, size[i]);
            assert_non_null(piece[i]);
            assert_int_equal((uintptr_t)piece[i] % 16, 0);
            memset(piece[i], i & 255, size[i]);
        }
        for (int i = 0; i < N; i++)
            for (size_t k = 0; k < size[i]; k++)
                if (piece[i][k] != (i & 255))
                    fail_msg("piece %d changed at byte %zu", i, k);
        ls__arena_clear(&arena);
    }
    ls__arena_clear(&arena); /* empty: nothing to do */
    assert_null(arena.chunks);
}

static void zero_bytes_are_fine(void **state)
{
    (void)state;
    ls__arena arena = { .chunks = NULL };
    assert_non_null(ls__arena_alloc(&arena, 0));
    char *p = ls__arena_alloc(&arena, 1);
    *p = 1;
    assert_non_null(ls__arena_alloc(&arena, 0));
    ls__arena_clear(&arena);
}

static void strings_are_copied(void **state)
{
    (void)state;
    ls__arena arena = { .chunks = NULL };
    char text[] = "a name";
    char *copy = ls__arena_string(&arena, text);
    char *empty = ls__arena_string(&arena, "");
    text[0] = 'X';
    assert_string_equal(copy, "a name");
    assert_string_equal(empty, "");
    static char big[100001];
    memset(big, 'z', sizeof big - 1);
    char *large = ls__arena_string(&arena, big);
    assert_int_equal(strlen(large), sizeof big - 1);
    assert_string_equal(copy, "a name");
    ls__arena_clear(&arena);
}

static void impossible_sizes_are_errors(void **state)
{
    (void)state;
    static const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 15, SIZE_MAX - 64, SIZE_MAX / 2 };
    ls__arena arena = { .chunks = NULL };
    char *before = ls__arena_string(&arena, "before");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_null(ls__arena_alloc(&arena, sizes[i]));
        assert_int_equal(ls_error(), LS_NO_MEMORY);
    }
    assert_non_null(ls__arena_alloc(&arena, 100)); /* still usable */
    assert_string_equal(before, "before");
    ls__arena_clear(&arena);
}

static void stock_can_be_given_back(void **state)
{
    (void)state;
    ls__arena arena = { .chunks = NULL };
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 1000; k++)
            memset(ls__arena_alloc(&arena, 1000), k, 1000);
        ls__arena_clear(&arena);
        ls__arena_thread_end();
        ls__arena_thread_end();
    }
}

/* Filled and cleared every step, an arena comes back to the same memory, but late,
 * and what was in it is rubbish meanwhile. */
static void a_step_reuses_the_memory(void **state)
{
    (void)state;
    enum { TURNS = 3000 };
    ls__arena arena = { .chunks = NULL };
    unsigned char *first = ls__arena_alloc(&arena, 100);
    memset(first, 1, 100);
    ls__arena_clear(&arena);
    int came_back = 0;
    for (int i = 1; i < TURNS; i++) {
        if (!came_back)
            assert_true(first[0] != 1 && first[99] != 1);
        unsigned char *p = ls__arena_alloc(&arena, 100);
        if (p == first && !came_back)
            came_back = i;
        memset(p, 2, 100);
        ls__arena_clear(&arena);
    }
    assert_in_range(came_back, 100, 1000);
    ls__arena_thread_end();
}

static void *fill_and_end(void *arg)
{
    ls__arena arena = { .chunks = NULL };
    for (int i = 0; i < 100; i++)
        if (!ls__arena_alloc(&arena, 5000))
            *(int *)arg = 1;
    ls__arena_clear(&arena);
    ls__arena_thread_end();
    return NULL;
}

static void threads_have_their_own(void **state)
{
    (void)state;
    pthread_t threads[4];
    int failed[4] = { 0 };
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, fill_and_end, &failed[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(failed[i], 0);
    }
}

static int end(void **state)
{
    (void)state;
    ls__arena_thread_end();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_and_apart),
        cmocka_unit_test(zero_bytes_are_fine),
        cmocka_unit_test(strings_are_copied),
        cmocka_unit_test(impossible_sizes_are_errors),
        cmocka_unit_test(stock_can_be_given_back),
        cmocka_unit_test(a_step_reuses_the_memory),
        cmocka_unit_test(threads_have_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, end);
}
