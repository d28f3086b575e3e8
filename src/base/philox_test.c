/*
 * Philox against the known answers of Random123, and the conversions to unit
 * floats at their ends.
 */
#include "base/philox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void known_answers(void **state)
{
    (void)state;
    /* kat_vectors of Random123: philox4x32 10. */
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } cases[] = {
        { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
          { 0xffffffff, 0xffffffff },
          { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
          { 0xa4093822, 0x299f31d0 },
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t out[4];
        ls__philox4x32_10(cases[i].counter, cases[i].key, out);
        assert_memory_equal(out, cases[i].out, sizeof out);
    }
}

static void block_is_counter_and_key(void **state)
{
    (void)state;
    const ls__draw draw = { .key = 0x299f31d0a4093822u, .ordinal = 0x0370734413198a2eu };
    uint32_t out[4];
    ls__philox_block(&draw, 0x85a308d3243f6a88u, out);
    assert_int_equal(out[0], 0xd16cfe09);
    assert_int_equal(out[1], 0x94fdcceb);
    assert_int_equal(out[2], 0x5001e420);
    assert_int_equal(out[3], 0x24126ea1);
}

static void keys_differ_in_every_part(void **state)
{
    (void)state;
    const uint64_t key = ls__draw_key(1, LS__DRAW_OPERATOR, 0, 0);
    assert_true(key == ls__draw_key(1, LS__DRAW_OPERATOR, 0, 0));
    assert_true(key != ls__draw_key(2, LS__DRAW_OPERATOR, 0, 0));
    assert_true(key != ls__draw_key(1, LS__DRAW_INITIALISER, 0, 0));
    assert_true(key != ls__draw_key(1, LS__DRAW_OPERATOR, 1, 0));
    assert_true(key != ls__draw_key(1, LS__DRAW_OPERATOR, 0, 1));
    /* A replica of one step is not a step of another replica. */
    assert_true(ls__draw_key(1, LS__DRAW_OPERATOR, 1, 0) !=
                ls__draw_key(1, LS__DRAW_OPERATOR, 0, 1));
}

static void units_stay_below_one(void **state)
{
    (void)state;
    assert_true(ls__unit_f32(0) == 0.0f);
    assert_true(ls__unit_f32(0xffffffff) < 1.0f);
    assert_true(ls__unit_f32(0x80000000) == 0.5f);
    assert_true(ls__unit_f64(0, 0) == 0.0);
    assert_true(ls__unit_f64(0xffffffff, 0xffffffff) < 1.0);
    assert_true(ls__unit_f64(0, 0x80000000) == 0.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(block_is_counter_and_key),
        cmocka_unit_test(keys_differ_in_every_part),
        cmocka_unit_test(units_stay_below_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
