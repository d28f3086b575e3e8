/*
 * UTF-8. Reads no byte behind the NUL: it is no byte of a longer character.
 */
#include "base/utf8.h"

size_t ls__utf8_next(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    if (at[0] == 0)
        return 0;
    if (at[0] < 0x80)
        return 1;
    /* What the second byte may be is all that differs among characters of a length. */
    unsigned char least = 0x80, most = 0xbf;
    size_t length = at[0] >= 0xc2 && at[0] <= 0xdf   ? 2
                    : at[0] >= 0xe0 && at[0] <= 0xef ? 3
                    : at[0] >= 0xf0 && at[0] <= 0xf4 ? 4
                                                     : 0;
    if (at[0] == 0xe0)
        least = 0xa0; /* shorter ones say the same */
    else if (at[0] == 0xed)
        most = 0x9f; /* surrogates */
    else if (at[0] == 0xf0)
        least = 0x90;
    else if (at[0] == 0xf4)
        most = 0x8f; /* above 10ffff */
    if (length == 0 || at[1] < least || at[1] > most)
        return 0;
    for (size_t i = 2; i < length; i++)
        if (at[i] < 0x80 || at[i] > 0xbf)
            return 0;
    return length;
}

size_t ls__utf8_good(const char *text)
{
    size_t good = 0, next;
    while ((next = ls__utf8_next(text + good)) > 0)
        good += next;
    return good;
}
