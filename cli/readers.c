/*
 * What options read: numbers and words. Invariant: a text is all of what is expected or it is
 * refused; nothing is cut off, rounded or wrapped, and nothing is written when it is refused.
 */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool cli_whole(const char *text, int64_t least, int64_t most, int64_t *out)
{
    const char *digits = text[0] == '-' ? text + 1 : text;
    if (digits[0] < '0' || digits[0] > '9')
        return false;
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || *end || value < least || value > most)
        return false;
    *out = value;
    return true;
}

bool cli_number(const char *text, double least, double most, double *out)
{
    const char *digits = text[0] == '-' ? text + 1 : text;
    if ((digits[0] < '0' || digits[0] > '9') && digits[0] != '.') /* no space, inf or nan */
        return false;
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || value < least || value > most)
        return false;
    *out = value;
    return true;
}

bool cli_seconds(const char *text, void *to)
{
    double value;
    if (!cli_number(text, 0, 86400, &value) || value <= 0)
        return false;
    *(double *)to = value;
    return true;
}

bool cli_text(const char *text, void *to)
{
    if (!text[0])
        return false;
    *(const char **)to = text;
    return true;
}

bool cli_ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}
