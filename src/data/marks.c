/*
 * Marks lie in an array, those let go in front of it; when half of it is free, they move up.
 */
#include "data/marks.h"

#include <stdlib.h>
#include <string.h>

static ls_status make_room(ls__marks *m)
{
    if (m->n < m->room)
        return LS_OK;
    if (m->first > m->room / 2) {
        m->n -= m->first;
        memmove(m->list, m->list + m->first, (size_t)m->n * sizeof *m->list);
        m->first = 0;
        return LS_OK;
    }
    int room = m->room ? 2 * m->room : 8;
    ls__mark *list = realloc(m->list, (size_t)room * sizeof *list);
    if (!list)
        return ls__fail_memory("a position", (size_t)room * sizeof *list);
    m->list = list;
    m->room = room;
    return LS_OK;
}

ls_status ls__marks_add(ls__marks *m, int64_t at, const void *data, size_t bytes)
{
    if (m->n > m->first && m->list[m->n - 1].at >= at)
        return LS_OK;
    ls_status st = make_room(m);
    unsigned char *copy = st ? NULL : malloc(bytes ? bytes : 1);
    if (!st && !copy)
        st = ls__fail_memory("a position", bytes);
    if (st)
        return st;
    if (bytes)
        memcpy(copy, data, bytes);
    m->list[m->n++] = (ls__mark){ at, bytes, copy };
    m->bytes += bytes;
    return LS_OK;
}

/* The place of the last one at `at` or before it; first - 1: none. */
static int place(const ls__marks *m, int64_t at)
{
    int low = m->first, high = m->n; /* what is sought is in [low - 1, high) */
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (m->list[middle].at <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

const ls__mark *ls__marks_find(const ls__marks *m, int64_t at)
{
    int i = place(m, at);
    return i < m->first ? NULL : &m->list[i];
}

void ls__marks_release(ls__marks *m, int64_t at)
{
    for (int keep = place(m, at); m->first < keep; m->first++) {
        m->bytes -= m->list[m->first].bytes;
        free(m->list[m->first].data);
    }
}

void ls__marks_clear(ls__marks *m)
{
    for (; m->first < m->n; m->first++)
        free(m->list[m->first].data);
    free(m->list);
    *m = (ls__marks){ 0 };
}
