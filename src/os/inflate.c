/* See inflate.h. */
#include "os/inflate.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static unsigned at_most(size_t bytes)
{
    const size_t most = (size_t)1 << 30;
    return (unsigned)(bytes < most ? bytes : most);
}

#if defined(LS_HAVE_ISAL)
#include <isa-l/igzip_lib.h>
#include <string.h>

/* How much of a damaged stream comes out before the damage is noticed depends on the room that isa-l is
 * given. So that it is always the same, it has a buffer of its own, and all of that. */
enum { ROOM = 256 << 10 };

typedef struct unpacked {
    struct inflate_state s;
    int code;         /* of the last call */
    bool finished;    /* the stream has ended */
    size_t at, count; /* of what is in `out`: given, there */
    unsigned char out[ROOM];
} unpacked;

static void begin(const ls__inflate *z)
{
    unpacked *u = z->state;
    memset(u, 0, offsetof(unpacked, out));
    isal_inflate_init(&u->s);
    u->s.crc_flag = z->gzip ? ISAL_GZIP : ISAL_ZLIB;
}

static void *new_state(const ls__inflate *z)
{
    (void)z;
    return malloc(sizeof(unpacked));
}

static void free_state(void *state)
{
    free(state);
}

static const char *text_of(int code)
{
    switch (code) {
    case ISAL_INVALID_BLOCK:
        return "invalid block type or code lengths";
    case ISAL_INVALID_SYMBOL:
        return "invalid code";
    case ISAL_INVALID_LOOKBACK:
        return "invalid distance too far back";
    case ISAL_INVALID_WRAPPER:
        return "incorrect header check";
    case ISAL_UNSUPPORTED_METHOD:
        return "unknown compression method";
    case ISAL_INCORRECT_CHECKSUM:
        return "incorrect data check";
    default:
        return "invalid data";
    }
}

static bool has_failed(const unpacked *u)
{
    return u->code < 0 || u->code == ISAL_NEED_DICT;
}

static void fill(unpacked *u, const unsigned char *in, unsigned *in_left)
{
    u->s.next_in = (uint8_t *)in;
    u->s.avail_in = *in_left;
    u->s.next_out = u->out;
    u->s.avail_out = ROOM;
    u->code = isal_inflate(&u->s);
    u->finished = u->s.block_state == ISAL_BLOCK_FINISH;
    *in_left = u->s.avail_in;
    u->at = 0;
    u->count = ROOM - u->s.avail_out;
}

static ls__inflate_result step(ls__inflate *z, unsigned *in_left, unsigned *out_left)
{
    unpacked *u = z->state;
    if (u->at == u->count && !u->finished && !has_failed(u))
        fill(u, z->in, in_left);
    const size_t there = u->count - u->at, n = there < *out_left ? there : *out_left;
    memcpy(z->out, u->out + u->at, n);
    u->at += n;
    *out_left -= (unsigned)n;
    if (u->at < u->count)
        return LS__INFLATE_MORE;
    if (has_failed(u)) {
        z->why = text_of(u->code);
        return LS__INFLATE_BAD;
    }
    return u->finished ? LS__INFLATE_END : LS__INFLATE_MORE;
}

#elif defined(LS_HAVE_ZLIB)
#include <zlib.h>

static void begin(const ls__inflate *z)
{
    inflateReset(z->state);
}

static void *new_state(const ls__inflate *z)
{
    z_stream *s = calloc(1, sizeof *s);
    if (s && inflateInit2(s, 15 + (z->gzip ? 16 : 0)) == Z_OK)
        return s;
    free(s);
    return NULL;
}

static void free_state(void *state)
{
    if (state)
        inflateEnd(state);
    free(state);
}

static ls__inflate_result step(ls__inflate *z, unsigned *in_left, unsigned *out_left)
{
    z_stream *s = z->state;
    s->next_in = (unsigned char *)z->in;
    s->avail_in = *in_left;
    s->next_out = z->out;
    s->avail_out = *out_left;
    const int code = inflate(s, Z_NO_FLUSH);
    *in_left = s->avail_in;
    *out_left = s->avail_out;
    if (code == Z_MEM_ERROR)
        return LS__INFLATE_NO_MEMORY;
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
        z->why = s->msg ? s->msg : zError(code);
        return LS__INFLATE_BAD;
    }
    return code == Z_STREAM_END ? LS__INFLATE_END : LS__INFLATE_MORE;
}

#else

static void begin(const ls__inflate *z)
{
    (void)z;
}

static void *new_state(const ls__inflate *z)
{
    (void)z;
    return NULL;
}

static void free_state(void *state)
{
    (void)state;
}

static ls__inflate_result step(ls__inflate *z, unsigned *in_left, unsigned *out_left)
{
    (void)in_left, (void)out_left;
    z->why = "this build cannot unpack";
    return LS__INFLATE_BAD;
}

#endif

bool ls__inflate_there(void)
{
#if defined(LS_HAVE_ISAL) || defined(LS_HAVE_ZLIB)
    return true;
#else
    return false;
#endif
}

ls__inflate *ls__inflate_new(bool gzip)
{
    ls__inflate *z = calloc(1, sizeof *z);
    if (!z)
        return NULL;
    z->gzip = gzip;
    z->state = new_state(z);
    if (!z->state) {
        free(z);
        return NULL;
    }
    begin(z);
    return z;
}

void ls__inflate_free(ls__inflate *z)
{
    if (z)
        free_state(z->state);
    free(z);
}

void ls__inflate_again(ls__inflate *z)
{
    begin(z);
}

ls__inflate_result ls__inflate_run(ls__inflate *z)
{
    const unsigned in = at_most(z->in_left), out = at_most(z->out_left);
    unsigned in_left = in, out_left = out;
    const ls__inflate_result result = step(z, &in_left, &out_left);
    z->in += in - in_left;
    z->in_left -= in - in_left;
    z->out += out - out_left;
    z->out_left -= out - out_left;
    const bool still = in == in_left && out == out_left;
    return result == LS__INFLATE_MORE && still && in == 0 && out > 0 ? LS__INFLATE_CUT : result;
}
