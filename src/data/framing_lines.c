/*
 * Lines of text: what is between \n, without a \r before it. The last may have no end; behind an end
 * there is no line.
 */
#include <string.h>

#include "data/framing.h"

static ls__record line(const unsigned char *at, size_t bytes, uint64_t after)
{
    return (ls__record){ at, bytes > 0 && at[bytes - 1] == '\r' ? bytes - 1 : bytes, after };
}

/* The end of the line at the position, which is not in the buffer yet; NULL: the file's end is its
 * end. */
static ls_status fetch(ls__stream *s, uint64_t longest, const unsigned char **end,
                       ls__damage *damage)
{
    ls_status st = LS_OK;
    *end = NULL;
    while (!*end && !st) {
        size_t looked_at = ls__stream_left(s); /* half of it twice, at worst */
        if (looked_at > longest)
            return ls__damaged(damage, ls__stream_offset(s), true, "a line of more than %llu bytes",
                               (unsigned long long)longest);
        st = ls__stream_fill(s, looked_at < LS__STREAM_BYTES ? looked_at + 1 : 2 * looked_at);
        *end = memchr(s->at + looked_at, '\n', ls__stream_left(s) - looked_at);
    }
    if (*end || (st == LS_END && ls__stream_left(s) > 0))
        return LS_OK;
    return st;
}

static ls_status next(ls__stream *s, const ls__frame_sizes *sizes, int most, ls__record *out,
                      int *count, ls__damage *damage)
{
    int n = 0;
    while (n < most) {
        size_t left = ls__stream_left(s);
        const unsigned char *end = left ? memchr(s->at, '\n', left) : NULL;
        if (!end && n > 0)
            break;
        ls_status st = end ? LS_OK : fetch(s, sizes->longest, &end, damage);
        if (st)
            return st;
        const unsigned char *at = s->at;
        s->at = end ? end + 1 : s->end;
        uint64_t after = ls__stream_offset(s);
        out[n++] = end ? line(at, (size_t)(end - at), after)
                       : (ls__record){ at, (size_t)(s->end - at), after };
    }
    *count = n;
    return LS_OK;
}

const ls__framing ls__line_framing = { .next = next };
