/*
 * TFRecord files: records one behind the other, each
 *
 *     u64  length of the data, little-endian
 *     u32  masked CRC-32C of those eight bytes
 *          data
 *     u32  masked CRC-32C of the data
 *
 * Both sums are always checked. A length is believed when its sum is right and the file can be that
 * long: memory is asked for as bytes come.
 */
#include "data/crc32c.h"
#include "data/framing.h"

enum { HEAD = LS__TFRECORD_HEAD, TAIL = LS__TFRECORD_TAIL };

static uint32_t u32_at(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t u64_at(const unsigned char *at)
{
    return u32_at(at) | (uint64_t)u32_at(at + 4) << 32;
}

static void put_number(unsigned char *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> (8 * i));
}

void ls__tfrecord_frame(const void *data, size_t bytes, unsigned char *head, unsigned char *tail)
{
    put_number(head, bytes, 8);
    put_number(head + 8, ls__crc32c_masked(ls__crc32c(0, head, 8)), 4);
    put_number(tail, ls__crc32c_masked(ls__crc32c(0, data, bytes)), 4);
}

static bool sum_is_right(const unsigned char *data, size_t bytes, const unsigned char *sum)
{
    return ls__crc32c_masked(ls__crc32c(0, data, bytes)) == u32_at(sum);
}

static ls_status bad_length(const ls__stream *s, uint64_t at, ls__damage *damage)
{
    ls_status st = ls__damaged(damage, at, true, "the checksum of a record's length is wrong");
    if (at == 0 && s->at[0] == 0x1f && s->at[1] == 0x8b)
        damage->hint = "the file is gzip: give .compression = LS_GZIP";
    else if (at == 0)
        damage->hint = "is it a TFRecord file, of this .compression?";
    return st;
}

static ls_status cut_short(const ls__stream *s, uint64_t at, uint64_t want, ls__damage *damage)
{
    return ls__damaged(damage, at, true,
                       "a record of %llu bytes begins here, and the file ends after %llu",
                       (unsigned long long)want, (unsigned long long)ls__stream_left(s));
}

/* The whole record at the position, which is not in the buffer yet. LS_OK: it is there now. */
static ls_status fetch(ls__stream *s, uint64_t at, ls__damage *damage)
{
    ls_status st = ls__stream_fill(s, HEAD);
    if (st == LS_END && ls__stream_left(s) > 0)
        return ls__damaged(damage, at, true, "the file ends within the head of a record");
    if (st)
        return st;
    uint64_t length = u64_at(s->at);
    if (!sum_is_right(s->at, 8, s->at + 8))
        return bad_length(s, at, damage);
    if (length > SIZE_MAX / 2 || !ls__stream_can_have(s, length + HEAD + TAIL))
        return ls__damaged(damage, at, true,
                           "a record of %llu bytes begins here, and the file ends before",
                           (unsigned long long)length);
    st = ls__stream_fill(s, (size_t)length + HEAD + TAIL);
    return st == LS_END ? cut_short(s, at, length + HEAD + TAIL, damage) : st;
}

static ls_status next(ls__stream *s, const ls__frame_sizes *sizes, int most, ls__record *out,
                      int *count, ls__damage *damage)
{
    int n = 0;
    uint64_t offset = ls__stream_offset(s);
    (void)sizes;
    while (n < most) {
        size_t left = ls__stream_left(s);
        uint64_t length = left >= HEAD ? u64_at(s->at) : 0;
        if (left < HEAD + TAIL || length > left - HEAD - TAIL ||
            !sum_is_right(s->at, 8, s->at + 8)) {
            if (n > 0)
                break;
            ls_status st = fetch(s, offset, damage);
            if (st)
                return st;
            length = u64_at(s->at);
        }
        const unsigned char *data = s->at + HEAD;
        const bool right = sum_is_right(data, (size_t)length, data + length);
        if (!right && n > 0)
            break;
        offset += HEAD + length + TAIL;
        s->at = data + length + TAIL;
        if (!right)
            return ls__damaged(damage, offset - HEAD - length - TAIL, false,
                               "the checksum of a record of %llu bytes is wrong",
                               (unsigned long long)length);
        out[n++] = (ls__record){ data, (size_t)length, offset };
    }
    *count = n;
    return LS_OK;
}

const ls__framing ls__tfrecord_framing = { .next = next };
