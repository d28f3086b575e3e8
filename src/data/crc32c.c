/*
 * CRC-32C: by isa-l where it is there and there is enough to do, else by the processor's own
 * instruction, else by tables of eight bytes at a time. All of them give the same.
 *
 * The instruction takes three cycles, and a new one can begin in each: so three thirds of a block are
 * summed side by side, and then joined. Joining rests on sums being linear: the sum of A and then B is
 * that of A followed by as many zeros as B has bytes, xor that of B begun at 0.
 */
#include "data/crc32c.h"

#include <stdbool.h>
#include <string.h>

#include "os/thread.h"

#ifdef LS_HAVE_ISAL
#include <isa-l/crc.h>
#endif

/* ---- tables -------------------------------------------------------------------------------- */

enum { THIRD = 256, LARGE_THIRD = 2048 }; /* of blocks */

static uint32_t table[8][256];
static uint32_t behind_third[4][256], behind_large_third[4][256]; /* so many zeros, a byte each */

static void fill_zeros(uint32_t zeros[4][256], int bytes)
{
    for (int bit = 0; bit < 32; bit++) {
        uint32_t crc = (uint32_t)1 << bit;
        for (int i = 0; i < bytes; i++)
            crc = crc >> 8 ^ table[0][crc & 255];
        zeros[bit / 8][1 << bit % 8] = crc;
    }
    for (int k = 0; k < 4; k++)
        for (int i = 1; i < 256; i++)
            zeros[k][i] = zeros[k][i & (i - 1)] ^ zeros[k][i & -i];
}

static void fill_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
        table[0][i] = crc;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int k = 1; k < 8; k++)
            table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 255];
    fill_zeros(behind_third, THIRD);
    fill_zeros(behind_large_third, LARGE_THIRD);
}

static void need_tables(void)
{
    static ls__once filled;
    ls__call_once(&filled, fill_tables);
}

uint32_t ls__crc32c_by_table(uint32_t before, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    uint32_t crc = ~before;
    need_tables();
    for (; bytes >= 8; at += 8, bytes -= 8) {
        uint32_t low =
            (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        low ^= crc;
        crc = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^
              table[4][low >> 24] ^ table[3][at[4]] ^ table[2][at[5]] ^ table[1][at[6]] ^
              table[0][at[7]];
    }
    for (; bytes > 0; bytes--)
        crc = crc >> 8 ^ table[0][(crc ^ *at++) & 255];
    return ~crc;
}

/* ---- the instruction ----------------------------------------------------------------------- */

#if defined(__x86_64__)

#define WITH_INSTRUCTION __attribute__((target("sse4.2")))

static uint32_t followed_by_zeros(uint32_t zeros[4][256], uint32_t crc)
{
    return zeros[0][crc & 255] ^ zeros[1][crc >> 8 & 255] ^ zeros[2][crc >> 16 & 255] ^
           zeros[3][crc >> 24];
}

WITH_INSTRUCTION static inline uint64_t add_word(uint64_t crc, const unsigned char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return __builtin_ia32_crc32di(crc, word);
}

WITH_INSTRUCTION static inline uint32_t add_block(uint32_t crc, const unsigned char *at,
                                                  size_t third, uint32_t zeros[4][256])
{
    uint64_t a = crc, b = 0, c = 0;
    for (size_t i = 0; i < third; i += 8) {
        a = add_word(a, at + i);
        b = add_word(b, at + third + i);
        c = add_word(c, at + 2 * third + i);
    }
    uint32_t ab = followed_by_zeros(zeros, (uint32_t)a) ^ (uint32_t)b;
    return followed_by_zeros(zeros, ab) ^ (uint32_t)c;
}

WITH_INSTRUCTION uint32_t ls__crc32c_by_instruction(uint32_t before, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    uint32_t crc = ~before;
    if (bytes >= 3 * THIRD)
        need_tables();
    for (; bytes >= 3 * LARGE_THIRD; at += 3 * LARGE_THIRD, bytes -= 3 * LARGE_THIRD)
        crc = add_block(crc, at, LARGE_THIRD, behind_large_third);
    for (; bytes >= 3 * THIRD; at += 3 * THIRD, bytes -= 3 * THIRD)
        crc = add_block(crc, at, THIRD, behind_third);
    uint64_t wide = crc;
    for (; bytes >= 8; at += 8, bytes -= 8)
        wide = add_word(wide, at);
    crc = (uint32_t)wide;
    for (; bytes > 0; bytes--)
        crc = __builtin_ia32_crc32qi(crc, *at++);
    return ~crc;
}

bool ls__crc32c_has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2") != 0;
}

#else

uint32_t ls__crc32c_by_instruction(uint32_t before, const void *data, size_t bytes)
{
    return ls__crc32c_by_table(before, data, bytes);
}

bool ls__crc32c_has_instruction(void)
{
    return false;
}

#endif

/* ---- isa-l --------------------------------------------------------------------------------- */

#ifdef LS_HAVE_ISAL

enum { ENOUGH_FOR_ISAL = 256 }; /* less is done by the instruction before isa-l has begun */

static uint32_t by_isal(uint32_t before, const void *data, size_t bytes)
{
    unsigned char *at = (unsigned char *)(uintptr_t)data; /* which it does not write */
    uint32_t crc = ~before;
    while (bytes > 0) { /* it counts in ints */
        size_t n = bytes < (1 << 30) ? bytes : 1 << 30;
        crc = crc32_iscsi(at, (int)n, crc);
        at += n;
        bytes -= n;
    }
    return ~crc;
}

#endif

uint32_t ls__crc32c(uint32_t before, const void *data, size_t bytes)
{
#ifdef LS_HAVE_ISAL
    if (bytes >= ENOUGH_FOR_ISAL)
        return by_isal(before, data, bytes);
#endif
    return ls__crc32c_has_instruction() ? ls__crc32c_by_instruction(before, data, bytes)
                                        : ls__crc32c_by_table(before, data, bytes);
}
