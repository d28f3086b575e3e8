/*
 * CRC-32C: known sums, and every way against sums made bit by bit, for all lengths around the blocks
 * they work in.
 */
#include "data/crc32c.h"

#include "os/file_test_support.h"

static uint32_t slow(const void *data, size_t n)
{
    return slow_crc(0x82F63B78u, data, n);
}

static void known_sums(void **state)
{
    (void)state;
    unsigned char zeros[32] = { 0 }, ones[32], up[32], down[32];
    for (int i = 0; i < 32; i++) {
        ones[i] = 0xFF;
        up[i] = (unsigned char)i;
        down[i] = (unsigned char)(31 - i);
    }
    assert_int_equal(ls__crc32c(0, "", 0), 0);
    assert_int_equal(ls__crc32c(0, "123456789", 9), 0xE3069283u);
    assert_int_equal(ls__crc32c(0, zeros, 32), 0x8A9136AAu); /* RFC 3720, B.4 */
    assert_int_equal(ls__crc32c(0, ones, 32), 0x62A8AB43u);
    assert_int_equal(ls__crc32c(0, up, 32), 0x46DD794Eu);
    assert_int_equal(ls__crc32c(0, down, 32), 0x113FDB5Cu);
    assert_int_equal(ls__crc32c_masked(0), 0xA282EAD8u);
}

static void all_ways_agree(void **state)
{
    (void)state;
    enum { ROOM = 20000 };
    static unsigned char data[ROOM];
    uint64_t random = 1;
    for (int i = 0; i < ROOM; i++)
        data[i] = (unsigned char)random_number(&random);
    for (size_t n = 0; n < ROOM - 8; n += n < 1100 ? 1 : 997) {
        const unsigned char *at = data + n % 8;
        uint32_t want = slow(at, n), half = ls__crc32c(0, at, n / 3);
        assert_int_equal(ls__crc32c(0, at, n), want);
        assert_int_equal(ls__crc32c(half, at + n / 3, n - n / 3), want);
        assert_int_equal(ls__crc32c_by_table(0, at, n), want);
        if (!ls__crc32c_has_instruction())
            continue;
        assert_int_equal(ls__crc32c_by_instruction(0, at, n), want);
        assert_int_equal(ls__crc32c_by_instruction(half, at + n / 3, n - n / 3), want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_sums),
        cmocka_unit_test(all_ways_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
