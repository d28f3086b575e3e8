/*
 * Logs: what a program did, as text, and how two of them are compared.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random_strategies/program.h"

void rs_print(rs_log *log, const char *format, ...)
{
    for (;;) {
        va_list list;
        va_start(list, format);
        size_t left = log->room - log->length;
        int n = vsnprintf(log->text ? log->text + log->length : NULL, left, format, list);
        va_end(list);
        if ((size_t)n < left) {
            log->length += (size_t)n;
            return;
        }
        log->room = 2 * log->room + (size_t)n + 4096;
        log->text = realloc(log->text, log->room);
        if (!log->text)
            abort();
    }
}

void rs_log_free(rs_log *log)
{
    free(log->text);
    *log = (rs_log){ 0 };
}

void rs_print_tensor(rs_log *log, const rs_type *type, const double *elements)
{
    rs_print(log, "%s[", ls_dtype_name(type->dtype));
    for (int i = 0; i < type->rank; i++)
        rs_print(log, "%s%lld", i ? "," : "", (long long)type->dims[i]);
    rs_print(log, "]{");
    for (int64_t i = 0; i < rs_count(type); i++)
        rs_print(log, type->dtype == LS_F32 ? "%s%.9g" : "%s%.17g", i ? "," : "", elements[i]);
    rs_print(log, "}");
}

/* ---- comparing ---------------------------------------------------------------------------- */

static size_t token(const char *s)
{
    return strcspn(s, " \n");
}

static bool same_number(const char *a, size_t n, const char *b, size_t m)
{
    while (n && m) {
        if (a[0] == '-' && a[1] == '0' && (n < 3 || a[2] == ',' || a[2] == '}'))
            a++, n--;
        if (b[0] == '-' && b[1] == '0' && (m < 3 || b[2] == ',' || b[2] == '}'))
            b++, m--;
        if (*a != *b)
            return false;
        a++, b++, n--, m--;
    }
    return n == m;
}

static bool same_token(const char *a, size_t n, const char *b, size_t m, rs_how how)
{
    if (n == m && !memcmp(a, b, n))
        return true;
    return how && ((n == 1 && *a == '?') || same_number(a, n, b, m));
}

static const char *next_line(const char *s)
{
    s += strcspn(s, "\n");
    return *s ? s + 1 : s;
}

/* Past lines that only Lockstep can write. */
static const char *skip_texts(const char *s)
{
    while (!strncmp(s, "text: ", 6) || !strncmp(s, "hint: ", 6))
        s = next_line(s);
    return s;
}

static const char *report(const char *before, const char *want, const char *got)
{
    static char said[4096];
    snprintf(said, sizeof said, "in this part:\n%.*s\n  wanted: %.*s\n  got:    %.*s\n",
             (int)strcspn(before, "\n"), before, (int)strcspn(want, "\n"), want,
             (int)strcspn(got, "\n"), got);
    return said;
}

const char *rs_differ(const rs_log *want, const rs_log *got, rs_how how)
{
    const char *a = want->text, *b = got->text, *part = a;
    for (;;) {
        if (how)
            a = skip_texts(a), b = skip_texts(b);
        if (!*a && !*b)
            return NULL;
        if (!strncmp(a, "run", 3))
            part = a;
        const char *line_a = a, *line_b = b;
        for (;;) {
            size_t n = token(a), m = token(b);
            if (!same_token(a, n, b, m, how))
                return report(part, line_a, line_b);
            a += n, b += m;
            if (*a != *b)
                return report(part, line_a, line_b);
            if (*a != ' ')
                break;
            a++, b++;
        }
        a = next_line(a), b = next_line(b);
    }
}
