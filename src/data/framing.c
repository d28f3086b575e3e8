/*
 * Damage in words.
 */
#include "data/framing.h"

#include <stdarg.h>
#include <stdio.h>

ls_status ls__damaged(ls__damage *damage, uint64_t offset, bool rest, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(damage->what, sizeof damage->what, format, args);
    va_end(args);
    damage->offset = offset;
    damage->rest = rest;
    damage->hint = NULL;
    return LS_CORRUPT;
}
