/*
 * Records of a fixed length between a header and a footer. Where the footer begins is known at the
 * file's end only (a packed file does not tell its length), so a record is given when the footer's
 * bytes are there behind it.
 */
#include "data/framing.h"

static ls_status begin(ls__stream *s, const ls__frame_sizes *sizes, ls__damage *damage)
{
    uint64_t left = sizes->header;
    while (left > 0) {
        ls_status st = ls__stream_fill(s, 1);
        if (st == LS_END)
            return ls__damaged(damage, ls__stream_offset(s), true,
                               "the file ends within its header of %llu bytes",
                               (unsigned long long)sizes->header);
        if (st)
            return st;
        size_t run = ls__stream_left(s);
        run = left < run ? (size_t)left : run;
        s->at += run;
        left -= run;
    }
    return LS_OK;
}

/* No record and footer are in the buffer. LS_OK: they are now. */
static ls_status fetch(ls__stream *s, const ls__frame_sizes *sizes, ls__damage *damage)
{
    const uint64_t footer = sizes->footer, want = sizes->record + footer;
    ls_status st = ls__stream_fill(s, (size_t)(ls__stream_can_have(s, want) ? want : footer + 1));
    const size_t left = ls__stream_left(s);
    if (st == LS_END && left == footer)
        return LS_END;
    if (st && st != LS_END)
        return st;
    if (left >= want)
        return LS_OK;
    return ls__damaged(damage, ls__stream_offset(s), true,
                       "what is left is no record of %llu bytes with a footer of %llu behind it",
                       (unsigned long long)sizes->record, (unsigned long long)footer);
}

static ls_status next(ls__stream *s, const ls__frame_sizes *sizes, int most, ls__record *out,
                      int *count, ls__damage *damage)
{
    const uint64_t want = sizes->record + sizes->footer;
    ls_status st = ls__stream_left(s) < want ? fetch(s, sizes, damage) : LS_OK;
    if (st)
        return st;
    uint64_t offset = ls__stream_offset(s);
    int n = 0;
    for (; n < most && ls__stream_left(s) >= want; n++) {
        offset += sizes->record;
        out[n] = (ls__record){ s->at, (size_t)sizes->record, offset };
        s->at += sizes->record;
    }
    *count = n;
    return LS_OK;
}

const ls__framing ls__fixed_framing = { .begin = begin, .next = next };
