/*
 * CRC-32C (Castagnoli), of TFRecord files and positions.
 */
#ifndef LS__DATA_CRC32C_H
#define LS__DATA_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of bytes that follow those whose sum is `before` (0: the first). */
uint32_t ls__crc32c(uint32_t before, const void *data, size_t bytes);

/* As TFRecord files have it: turned and moved, so that sums of data with sums in it are good, too. */
static inline uint32_t ls__crc32c_masked(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* The ways it is made where isa-l is not there, for tests; the instruction's only where there
 * is one. */
uint32_t ls__crc32c_by_table(uint32_t before, const void *data, size_t bytes);
uint32_t ls__crc32c_by_instruction(uint32_t before, const void *data, size_t bytes);
bool ls__crc32c_has_instruction(void);

#endif
