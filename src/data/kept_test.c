/*
 * Kept elements have the data they were made of, whatever became of where those lay; their blocks are used
 * again when what was given need not last any more, and not before.
 */
#include "data/kept.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/sanitized.h"
#include "base/status.h"

enum { MOST = 8 };

static ls__datum bytes_datum(const void *data, size_t bytes)
{
    return (ls__datum){ .spec = { .dtype = LS_BYTES }, .data = data, .bytes = bytes };
}

static ls__datum numbers_datum(const float *data, int64_t n)
{
    return (ls__datum){ .spec = { .dtype = LS_F32, .rank = 1, .dims = { n } },
                        .data = data,
                        .bytes = (size_t)n * sizeof *data };
}

static ls__chunk chunk_of(int leaves, const ls__datum *data)
{
    ls__chunk c = { 0 };
    assert_int_equal(ls__chunk_room(&c, MOST, leaves, 1), LS_OK);
    memcpy(c.data, data, (size_t)leaves * sizeof *data);
    c.n = 1;
    return c;
}

static void borrowed_data_are_copied(void **state)
{
    (void)state;
    char text[] = "a record";
    float numbers[5000] = { 1, 2, 3 };
    /* small, empty, and too large for a block: that one is owned apart */
    const ls__datum data[] = { bytes_datum(text, strlen(text)), bytes_datum(NULL, 0),
                               numbers_datum(numbers, 3), numbers_datum(numbers, 5000) };
    ls__chunk in = chunk_of(4, data), out = { 0 };
    ls__store store = { .words = 2, .leaves = 4 };
    ls__kept *e = ls__store_keep(&store, &in, 0);
    assert_non_null(e);
    ls__kept_words(e)[0] = 17;
    ls__kept_words(e)[1] = -1;
    memset(text, 'x', sizeof text);
    numbers[0] = numbers[2] = 0;
    assert_true(store.bytes >= 5000 * 4);

    assert_int_equal(ls__chunk_room(&out, 1, 4, 1), LS_OK);
    ls__store_begin(&store);
    ls__store_give(&store, e, &out);
    out.n = 1;
    assert_int_equal(ls__kept_words(e)[0], 17);
    assert_int_equal(ls__kept_words(e)[1], -1);
    assert_int_equal(out.data[0].bytes, 8);
    assert_memory_equal(out.data[0].data, "a record", 8);
    assert_int_equal(out.data[0].hold, LS__BORROWED);
    assert_int_equal(out.data[1].bytes, 0);
    assert_memory_equal(out.data[2].data, ((float[]){ 1, 2, 3 }), 3 * sizeof(float));
    assert_int_equal(out.data[3].hold, LS__OWNED);
    assert_memory_equal(out.data[3].data, ((float[]){ 1, 2, 3 }), 3 * sizeof(float));
    assert_true(store.bytes < 5000 * 4);
    ls__chunk_free(&out);
    ls__chunk_free(&in);
    ls__store_free(&store);
}

/* What owns its memory, or lasts, is taken over as it is. */
static void other_data_stay_where_they_are(void **state)
{
    (void)state;
    static const float lasting[4] = { 4, 5, 6, 7 };
    ls__storage *storage = ls__storage_new("test", 64);
    ls__datum data[] = { numbers_datum(lasting, 4), numbers_datum(storage->data, 2) };
    data[0].hold = LS__LASTING;
    data[1].hold = LS__OWNED;
    data[1].owner = storage;
    ls__chunk in = chunk_of(2, data);
    ls__store store = { .leaves = 2 };
    ls__kept *e = ls__store_keep(&store, &in, 0);
    assert_non_null(e);
    assert_int_equal(in.data[1].hold, LS__BORROWED); /* the chunk has it no more */
    assert_ptr_equal(ls__kept_data(&store, e)[0].data, lasting);
    assert_ptr_equal(ls__kept_data(&store, e)[1].owner, storage);
    ls__store_drop(&store, e);
    ls__store_drop(&store, NULL);
    ls__chunk_free(&in);
    ls__store_free(&store);
}

/* Several at a time, of one size and of several: all their blocks are free again, and only then. */
static void many_are_given_at_once(void **state)
{
    (void)state;
    enum { AT_ONCE = 5 };
    char text[AT_ONCE][300];
    ls__store store = { .words = 1, .leaves = 1 };
    ls__chunk out = { 0 };
    int64_t bytes = 0;
    for (int turn = 0; turn < 40; turn++) {
        ls__kept *kept[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++) {
            const size_t length = turn % 2 ? 200 : 100 + (size_t)i % 3 * 90;
            memset(text[i], turn + i, length);
            const ls__datum data = bytes_datum(text[i], length);
            ls__chunk in = chunk_of(1, &data);
            kept[i] = ls__store_keep(&store, &in, 0);
            ls__chunk_free(&in);
            for (int k = 0; k < i; k++)
                assert_ptr_not_equal(kept[i], kept[k]);
        }
        assert_int_equal(ls__chunk_room(&out, AT_ONCE, 1, 1), LS_OK);
        for (int i = 0; i < AT_ONCE; i++) {
            ls__store_give(&store, kept[i], &out);
            out.n++;
        }
        for (int i = 0; i < AT_ONCE; i++)
            assert_int_equal(*(const char *)out.data[i].data, (char)(turn + i));
        ls__store_begin(&store);
        bytes = turn == 1 ? store.bytes : bytes;
    }
    if (!LS__SANITIZED)
        assert_int_equal(store.bytes, bytes);
    ls__chunk_free(&out);
    ls__store_free(&store);
    assert_int_equal(store.bytes, 0);
}

/* As many blocks as are kept at once, however many go through; given ones only behind the next begin. */
static void blocks_are_used_again(void **state)
{
    (void)state;
    char text[300] = { 0 };
    ls__store store = { .words = 1, .leaves = 1 };
    ls__kept *kept[MOST] = { 0 };
    ls__chunk out = { 0 };
    int64_t bytes = 0;
    assert_int_equal(ls__chunk_room(&out, 1, 1, 1), LS_OK);
    for (int i = 0; i < 1000; i++) {
        const size_t length = 100 + (size_t)i % 3 * 90;
        memset(text, i, length);
        const ls__datum data = bytes_datum(text, length);
        ls__chunk in = chunk_of(1, &data);
        ls__store_begin(&store);
        if (kept[i % MOST]) {
            ls__store_give(&store, kept[i % MOST], &out);
            ls__kept *other = ls__store_keep(&store, &in, 0);
            assert_ptr_not_equal(other, kept[i % MOST]);
            assert_int_equal(*(const char *)out.data[0].data, (char)(i - MOST));
            kept[i % MOST] = other;
        } else {
            kept[i] = ls__store_keep(&store, &in, 0);
        }
        ls__chunk_free(&in);
        bytes = i == 100 ? store.bytes : bytes;
    }
    if (!LS__SANITIZED) /* which give blocks back */
        assert_int_equal(store.bytes, bytes);
    assert_true(store.bytes < 16 * 1024);
    for (int i = 0; i < MOST; i++)
        ls__store_drop(&store, kept[i]);
    ls__chunk_free(&out);
    ls__store_free(&store);
    assert_int_equal(store.bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(borrowed_data_are_copied),
                                        cmocka_unit_test(other_data_stay_where_they_are),
                                        cmocka_unit_test(blocks_are_used_again),
                                        cmocka_unit_test(many_are_given_at_once) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
