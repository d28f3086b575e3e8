/*
 * Text that grows; UTF-8 and the columns it takes; numbers in few columns. Needs no locale: the
 * program never calls setlocale, so that numbers have a dot everywhere, and what is UTF-8 is
 * decided here.
 */
#include "text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- growing -------------------------------------------------------------------------- */

static bool make_room(textbuf *t, size_t more)
{
    if (t->failed || more >= SIZE_MAX / 4 - t->length)
        t->failed = true;
    else if (t->length + more >= t->room) {
        size_t room = 2 * (t->length + more) + 64;
        char *bytes = realloc(t->bytes, room);
        if (bytes)
            t->bytes = bytes, t->room = room;
        t->failed = !bytes;
    }
    return !t->failed;
}

static void add_bytes(textbuf *t, const char *bytes, size_t length)
{
    if (!make_room(t, length))
        return;
    memcpy(t->bytes + t->length, bytes, length);
    t->length += length;
    t->bytes[t->length] = 0;
}

void text_add(textbuf *t, const char *bytes)
{
    add_bytes(t, bytes, strlen(bytes));
}

void text_format(textbuf *t, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    if (length >= 0 && make_room(t, (size_t)length)) {
        vsnprintf(t->bytes + t->length, (size_t)length + 1, format, again);
        t->length += (size_t)length;
    }
    va_end(again);
    va_end(arguments);
}

void text_repeat(textbuf *t, const char *bytes, int times)
{
    for (int i = 0; i < times; i++)
        text_add(t, bytes);
}

void text_shorten(textbuf *t, size_t length)
{
    if (length >= t->length)
        return;
    t->length = length;
    t->bytes[length] = 0;
}

const char *text_read(const textbuf *t)
{
    return t->bytes ? t->bytes : "";
}

void text_free(textbuf *t)
{
    free(t->bytes);
    *t = (textbuf){ 0 };
}

/* ---- columns -------------------------------------------------------------------------- */

int32_t text_next(const char **at)
{
    static const struct {
        unsigned char mask, lead;
        int32_t least;
    } forms[] = {
        { 0x80, 0x00, 0 }, { 0xe0, 0xc0, 0x80 }, { 0xf0, 0xe0, 0x800 }, { 0xf8, 0xf0, 0x10000 }
    };
    const unsigned char *s = (const unsigned char *)(*at)++;
    for (int more = 0; more < 4; more++) {
        if ((s[0] & forms[more].mask) != forms[more].lead)
            continue;
        int32_t code = s[0] & (unsigned char)~forms[more].mask;
        for (int i = 1; i <= more; i++) {
            if ((s[i] & 0xc0) != 0x80) /* the end of the text stops here, too */
                return -1;
            code = code << 6 | (s[i] & 0x3f);
        }
        if (code < forms[more].least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
            return -1;
        *at += more;
        return code;
    }
    return -1;
}

/* Characters that take none or two columns; those of scripts that people name things in. */
static int columns_of(int32_t code)
{
    static const struct {
        int32_t first, last;
        int columns;
    } ranges[] = {
        { 0x0300, 0x036f, 0 },   { 0x1100, 0x115f, 2 },   { 0x200b, 0x200f, 0 },
        { 0x20d0, 0x20ff, 0 },   { 0x2e80, 0x303e, 2 },   { 0x3041, 0xa4cf, 2 },
        { 0xac00, 0xd7a3, 2 },   { 0xf900, 0xfaff, 2 },   { 0xfe00, 0xfe0f, 0 },
        { 0xfe20, 0xfe2f, 0 },   { 0xfe30, 0xfe6f, 2 },   { 0xff00, 0xff60, 2 },
        { 0xffe0, 0xffe6, 2 },   { 0x1f300, 0x1f64f, 2 }, { 0x1f680, 0x1f6ff, 2 },
        { 0x1f900, 0x1f9ff, 2 }, { 0x20000, 0x3fffd, 2 },
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return ranges[i].columns;
    return 1;
}

int text_columns(const char *bytes)
{
    int columns = 0;
    while (*bytes) {
        if (bytes[0] == '\033' && bytes[1] == '[') {
            bytes += 2;
            bytes += strcspn(bytes, "ABCDEFGHJKhlm");
            bytes += *bytes != 0;
            continue;
        }
        columns += columns_of(text_next(&bytes));
    }
    return columns;
}

void text_name(textbuf *t, const char *name, bool utf8, int columns)
{
    while (*name) {
        const char *begin = name;
        int32_t code = text_next(&name);
        bool fine = code >= 0x20 && (code < 0x7f || (utf8 && code >= 0xa0));
        columns -= fine ? columns_of(code) : 1;
        if (columns < 0)
            return;
        if (fine)
            add_bytes(t, begin, (size_t)(name - begin));
        else
            text_add(t, "?");
    }
}

/* ---- numbers -------------------------------------------------------------------------- */

const char *text_value(text_number out, double value)
{
    double size = fabs(value);
    const char *format = "%.4f";
    if (isnan(value))
        format = "nan";
    else if (isinf(value))
        format = value > 0 ? "inf" : "-inf";
    else if (size >= 99999.5 || (size < 0.0005 && size > 0))
        format = "%.2e";
    else if (size >= 999.995)
        format = "%.1f";
    else if (size >= 99.9995)
        format = "%.2f";
    else if (size >= 9.99995)
        format = "%.3f";
    snprintf(out, sizeof(text_number), format, value);
    return out;
}

const char *text_rate(text_number out, double value)
{
    static const char *const units[] = { "", "k", "M", "G", "T" };
    int unit = 0;
    while (value >= 999.5 && unit < 4)
        value /= 1000, unit++;
    int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    snprintf(out, sizeof(text_number), "%.*f%s", decimals, value, units[unit]);
    return out;
}

const char *text_duration(text_number out, double seconds)
{
    if (!(seconds >= 0 && seconds < 1e9)) { /* 30 years */
        snprintf(out, sizeof(text_number), "?");
        return out;
    }
    long s = lround(seconds);
    if (s < 3600)
        snprintf(out, sizeof(text_number), "%ld:%02ld", s / 60, s % 60);
    else if (s < 86400)
        snprintf(out, sizeof(text_number), "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, sizeof(text_number), "%ldd %02ldh", s / 86400, s / 3600 % 24);
    return out;
}

const char *text_elapsed(text_number out, double seconds)
{
    if (!(seconds < 59.5))
        return text_duration(out, seconds);
    snprintf(out, sizeof(text_number), "%.*fs", seconds < 9.95, fmax(seconds, 0));
    return out;
}
