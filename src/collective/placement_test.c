/* Placements: every number of replicas on every number of devices. */
#include "collective/placement.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void eight_on_three(void **state)
{
    (void)state;
    static const int begins[] = { 0, 3, 6, 8 }, blocks[] = { 0, 0, 0, 1, 1, 1, 2, 2 };
    for (int d = 0; d <= 3; d++)
        assert_int_equal(ls__block_begin(8, 3, d), begins[d]);
    for (int r = 0; r < 8; r++)
        assert_int_equal(ls__block_of(8, 3, r), blocks[r]);
}

static void one_device_has_all_and_as_many_have_one_each(void **state)
{
    (void)state;
    for (int r = 0; r < 7; r++) {
        assert_int_equal(ls__block_of(7, 1, r), 0);
        assert_int_equal(ls__block_of(7, 7, r), r);
        assert_int_equal(ls__block_begin(7, 7, r), r);
    }
}

static void blocks_are_contiguous_and_balanced(void **state)
{
    (void)state;
    for (int v = 1; v <= 64; v++)
        for (int d = 1; d <= v; d++) {
            assert_int_equal(ls__block_begin(v, d, 0), 0);
            assert_int_equal(ls__block_begin(v, d, d), v);
            for (int block = 0; block < d; block++) {
                int begin = ls__block_begin(v, d, block), end = ls__block_begin(v, d, block + 1);
                assert_int_equal(end - begin, v / d + (block < v % d)); /* longer ones first */
                for (int r = begin; r < end; r++)
                    assert_int_equal(ls__block_of(v, d, r), block);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eight_on_three),
        cmocka_unit_test(one_device_has_all_and_as_many_have_one_each),
        cmocka_unit_test(blocks_are_contiguous_and_balanced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
