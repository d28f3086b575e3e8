/* Arrays that grow: what is in them stays, and what cannot be is told. */
#include "base/grow.h"

#include <lockstep/status.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void grows(void **state)
{
    (void)state;
    int *at = NULL, room = 0;
    for (int n = 0; n < 1000; n++) {
        int before = room;
        int *more = ls__grow(at, n, &room, sizeof *more, "numbers");
        assert_non_null(more);
        assert_true(room > n && (room == before || room >= 2 * before));
        assert_true(room != before || more == at);
        at = more;
        at[n] = 7 * n;
    }
    for (int n = 0; n < 1000; n++)
        assert_int_equal(at[n], 7 * n);
    free(at);
}

static void expect_none(int count, size_t each)
{
    int room = count;
    assert_null(ls__grow(NULL, count, &room, each, "letters"));
    assert_int_equal(ls_error(), LS_NO_MEMORY);
    assert_int_equal(room, count);
}

static void more_than_can_be(void **state)
{
    (void)state;
    expect_none(INT32_MAX, 1);
    expect_none(100, SIZE_MAX / 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows),
        cmocka_unit_test(more_than_can_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
