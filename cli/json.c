/*
 * JSON lines, and writing to stdout. Invariant: what is printed is valid JSON whatever is given: quotes, backslashes and
 * control characters are escaped, numbers that are not finite are null. Bytes beyond ASCII pass as they
 * are, if they are UTF-8; others become '?'.
 */
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- stdout ------------------------------------------------------------------------------------- */

static int why_not_flushed;

void cli_flush(FILE *to)
{
    if (fflush(to) && to == stdout && !why_not_flushed)
        why_not_flushed = errno;
}

int cli_not_flushed(void)
{
    return why_not_flushed;
}

/* ---- texts -------------------------------------------------------------------------------------- */

/* How many bytes the UTF-8 character at `s`, where there are `room`, has; 0: it is none. Overlong forms
 * and surrogates are none. */
static int utf8_length(const unsigned char *s, size_t room)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } forms[] = {
        { 0x80, 0x00, 0 }, { 0xe0, 0xc0, 0x80 }, { 0xf0, 0xe0, 0x800 }, { 0xf8, 0xf0, 0x10000 }
    };
    for (int more = 0; more < 4; more++) {
        if ((s[0] & forms[more].mask) != forms[more].lead)
            continue;
        if ((size_t)more >= room)
            return 0;
        uint32_t code = s[0] & (unsigned char)~forms[more].mask;
        for (int i = 1; i <= more; i++) {
            if ((s[i] & 0xc0) != 0x80)
                return 0;
            code = code << 6 | (s[i] & 0x3f);
        }
        bool valid =
            code >= forms[more].least && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
        return valid ? more + 1 : 0;
    }
    return 0;
}

static void put_string(FILE *to, const char *text, size_t bytes)
{
    putc('"', to);
    const unsigned char *s = (const unsigned char *)text, *end = s + bytes;
    while (s < end) {
        int length = utf8_length(s, (size_t)(end - s));
        if (length == 0)
            putc('?', to), s++;
        else if (*s < 0x20)
            fprintf(to, "\\u%04x", *s++);
        else if (*s == '"' || *s == '\\')
            putc('\\', to), putc(*s++, to);
        else
            fwrite(s, 1, (size_t)length, to), s += length;
    }
    putc('"', to);
}

/* In a list there are no keys: NULL. */
static void put_key(json *j, const char *key)
{
    if (j->any)
        putc(',', j->to);
    j->any = true;
    if (!key)
        return;
    put_string(j->to, key, strlen(key));
    putc(':', j->to);
}

static void go_in(json *j, const char *key, char open, char close)
{
    put_key(j, key);
    putc(open, j->to);
    j->close[j->depth++] = close;
    j->any = false;
}

void json_begin_list(json *j, const char *key)
{
    go_in(j, key, '[', ']');
}

void json_begin(json *j, const char *key)
{
    go_in(j, key, '{', '}');
}

void json_end(json *j)
{
    putc(j->close[--j->depth], j->to);
    j->any = true;
}

void json_bool(json *j, const char *key, bool value)
{
    put_key(j, key);
    fputs(value ? "true" : "false", j->to);
}

json json_open(FILE *to)
{
    putc('{', to);
    return (json){ .to = to };
}

void json_text(json *j, const char *key, const char *value)
{
    json_bytes(j, key, value, strlen(value));
}

void json_bytes(json *j, const char *key, const char *value, size_t bytes)
{
    put_key(j, key);
    put_string(j->to, value, bytes);
}

void json_whole(json *j, const char *key, int64_t value)
{
    put_key(j, key);
    fprintf(j->to, "%" PRId64, value);
}

void json_number(json *j, const char *key, double value)
{
    put_key(j, key);
    if (isfinite(value))
        fprintf(j->to, "%.7g", value);
    else
        fputs("null", j->to);
}

void json_close(json *j)
{
    fputs("}\n", j->to);
    cli_flush(j->to); /* a reader in a pipe sees a result when there is one */
}
