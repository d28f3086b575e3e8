/*
 * Storage that is filled later: once, by whoever looks first, however many do; or never.
 */
#include "tensor/storage.h"

#include <pthread.h>

#include "tensor/test_support.h"

enum { THREADS = 4, NUMBERS = 1000 };

typedef struct counting {
    ls__later later;
    _Atomic int *fills, *releases;
} counting;

static void fill(const ls__later *later, void *data)
{
    atomic_fetch_add(((const counting *)later)->fills, 1);
    for (int i = 0; i < NUMBERS; i++)
        ((int *)data)[i] = i;
}

static void release(void *data, void *user)
{
    (void)data;
    atomic_fetch_add(((counting *)user)->releases, 1);
}

static ls__storage *numbers(int *data, _Atomic int *fills, _Atomic int *releases)
{
    ls__storage *s =
        ls__storage_later("test", data, NUMBERS * sizeof(int), sizeof(counting), release);
    assert_non_null(s);
    *(counting *)s->user = (counting){ { fill }, fills, releases };
    return s;
}

static void *look(void *storage)
{
    const int *x = ls__storage_look(storage);
    for (int i = 0; i < NUMBERS; i++)
        if (x[i] != i)
            return storage;
    return NULL;
}

static void filled_once_by_who_looks(void **state)
{
    (void)state;
    for (int turn = 0; turn < 200; turn++) {
        _Atomic int fills = 0, releases = 0;
        int outside[NUMBERS];
        ls__storage *s = numbers(turn % 2 ? outside : NULL, &fills, &releases);
        pthread_t threads[THREADS];
        assert_true(ls__storage_waits(s));
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, look, s), 0);
        for (int i = 0; i < THREADS; i++) {
            void *wrong;
            assert_int_equal(pthread_join(threads[i], &wrong), 0);
            assert_null(wrong);
        }
        assert_false(ls__storage_waits(s));
        assert_int_equal(fills, 1);
        assert_int_equal(releases, 0);
        ls__storage_unref(s);
        assert_int_equal(releases, 1);
    }
}

static void nobody_looks(void **state)
{
    (void)state;
    _Atomic int fills = 0, releases = 0;
    const size_t before = memory();
    ls__storage *s = numbers(NULL, &fills, &releases);
    assert_true((uintptr_t)s->data % 64 == 0);
    assert_true((char *)s->user >= (char *)s->data + NUMBERS * sizeof(int));
    ls__storage_unref(s);
    assert_int_equal(fills, 0);
    assert_int_equal(releases, 1);
    assert_int_equal(memory(), before);
}

static void sizes_that_no_memory_has(void **state)
{
    (void)state;
    assert_null(ls__storage_later("test", NULL, SIZE_MAX - 8, 64, NULL));
    failed(LS_NO_MEMORY);
    assert_null(ls__storage_later("test", NULL, 64, SIZE_MAX - 8, NULL));
    failed(LS_NO_MEMORY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(filled_once_by_who_looks, clean),
        cmocka_unit_test_setup(nobody_looks, clean),
        cmocka_unit_test_setup(sizes_that_no_memory_has, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
