/*
 * Fuzz target: bytes that say they are a PNG (image_fuzz.h). They are tried as they are, and with the
 * checksums of their chunks put right, or else no change would get past them.
 */
#include "image_fuzz.h"

static uint32_t get_32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint32_t checksum(const uint8_t *p, size_t size)
{
    uint32_t crc = 0xFFFFFFFFu;
    for (size_t i = 0; i < size; i++) {
        crc ^= p[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}

static void sign(uint8_t *bytes, size_t size)
{
    size_t at = 8;
    while (size >= 12 && at <= size - 12) {
        size_t length = get_32(bytes + at);
        if (length > size - at - 12)
            return;
        uint32_t crc = checksum(bytes + at + 4, length + 4);
        for (int i = 0; i < 4; i++)
            bytes[at + 8 + length + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
        at += 12 + length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = copy_of(data, size);
    if (bytes) {
        try_channels(ls__decode_png, bytes, size, 0);
        sign(bytes, size);
        try_channels(ls__decode_png, bytes, size, 4);
    }
    free(bytes);
    return 0;
}
