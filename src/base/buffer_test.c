/*
 * The growing buffer against an array.
 */
#include "base/buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"

static void grows(void **state)
{
    (void)state;
    ls__buffer b = { 0 };
    ls__buffer_insert(&b, 0, "", 0);
    ls__buffer_insert(&b, 0, "bd", 2);
    ls__buffer_insert(&b, 1, "c", 1);
    ls__buffer_add(&b, "e", 1);
    ls__buffer_insert(&b, 0, "a", 1);
    ls__buffer_insert(&b, b.used, "f", 1);
    ls__buffer_print(&b, " %d %s", 7, "x");
    size_t size;
    char *text = ls__buffer_end(&b, "a test", &size);
    assert_string_equal(text, "abcdef 7 x");
    assert_int_equal(size, 10);
    free(text);
    assert_true(!b.at && b.used == 0 && b.room == 0);
}

static void large(void **state)
{
    (void)state;
    ls__buffer b = { 0 };
    char piece[600];
    for (int i = 0; i < 100; i++) {
        memset(piece, 'a' + i % 26, sizeof piece);
        ls__buffer_insert(&b, 0, piece, sizeof piece);
    }
    assert_int_equal(b.used, 100 * sizeof piece);
    for (size_t i = 0; i < b.used; i++)
        assert_int_equal(b.at[i], 'a' + (99 - (int)(i / sizeof piece)) % 26);
    ls__buffer_free(&b);
    assert_null(b.at);
}

static void too_large(void **state)
{
    (void)state;
    ls__buffer b = { 0 };
    ls__buffer_add(&b, "abc", 3);
    ls__buffer_insert(&b, 1, NULL, SIZE_MAX - 100);
    ls__buffer_add(&b, "d", 1); /* nothing more */
    assert_true(b.failed);
    assert_int_equal(b.used, 3);
    assert_null(ls__buffer_end(&b, "a test", NULL));
    assert_int_equal(ls_error_pending(), LS_NO_MEMORY);
    assert_non_null(strstr(ls_error_text(), "a test"));
    ls_error();
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(grows), cmocka_unit_test(large),
                                        cmocka_unit_test(too_large) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
