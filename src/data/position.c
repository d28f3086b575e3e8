/*
 * Numbers as bytes: seven bits a byte, the lowest first, signs folded into the lowest bit, so that a
 * small number of either sign is one byte.
 */
#include "data/position.h"

#include <stdlib.h>
#include <string.h>

/* ---- writing ------------------------------------------------------------------------------ */

static unsigned char *more(ls__bytes_out *to, size_t bytes)
{
    if (to->failed)
        return NULL;
    if (to->room - to->used < bytes) {
        size_t room = 2 * to->room + bytes + 64;
        unsigned char *at = realloc(to->at, room);
        if (!at) {
            to->failed = true;
            return NULL;
        }
        to->at = at;
        to->room = room;
    }
    return to->at + to->used;
}

void ls__put_int(ls__bytes_out *to, int64_t value)
{
    uint64_t rest = (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
    unsigned char *at = more(to, 10);
    for (; at; rest >>= 7) {
        to->at[to->used++] = (unsigned char)((rest & 127) | (rest > 127 ? 128 : 0));
        if (rest <= 127)
            return;
    }
}

void ls__put_ints(ls__bytes_out *to, int n, const int64_t *values)
{
    for (int i = 0; i < n; i++)
        ls__put_int(to, values[i]);
}

void ls__put_bytes(ls__bytes_out *to, const void *data, size_t bytes)
{
    ls__put_int(to, (int64_t)bytes);
    unsigned char *at = more(to, bytes);
    if (at && bytes) {
        memcpy(at, data, bytes);
        to->used += bytes;
    }
}

void ls__bytes_out_free(ls__bytes_out *to)
{
    free(to->at);
    *to = (ls__bytes_out){ 0 };
}

/* ---- reading ------------------------------------------------------------------------------- */

ls_status ls__position_corrupt(void)
{
    return ls__hint(ls__fail(LS_CORRUPT, "ls_seek: the position is damaged"),
                    "give the bytes that ls_position gave");
}

static ls_status get(ls__bytes_in *from, int64_t *out)
{
    uint64_t folded = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (from->at == from->end)
            break;
        uint64_t byte = *from->at++;
        folded |= shift < 64 ? (byte & 127) << shift : 0;
        if (byte < 128) {
            *out = (int64_t)(folded >> 1 ^ (folded & 1 ? UINT64_MAX : 0));
            return LS_OK;
        }
    }
    return ls__position_corrupt();
}

ls_status ls__get_int(ls__bytes_in *from, int64_t least, int64_t most, int64_t *out)
{
    int64_t value;
    ls_status st = get(from, &value);
    if (!st && (value < least || value > most))
        st = ls__position_corrupt();
    if (!st)
        *out = value;
    return st;
}

ls_status ls__get_ints(ls__bytes_in *from, int n, int64_t *out)
{
    ls_status st = LS_OK;
    for (int i = 0; i < n && !st; i++)
        st = get(from, &out[i]);
    return st;
}

ls_status ls__get_bytes(ls__bytes_in *from, const void **data, size_t *bytes)
{
    int64_t n;
    ls_status st = ls__get_int(from, 0, INT64_MAX, &n);
    if (!st && n > from->end - from->at)
        st = ls__position_corrupt();
    if (st)
        return st;
    *data = from->at;
    *bytes = (size_t)n;
    from->at += n;
    return LS_OK;
}
