/* See entries.h. Sorted before the dict is made, so that it is made in one go. */
#include "train/entries.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "tensor/tensor.h"

static ls_status make_room(ls__entries *e)
{
    if (e->count < e->room)
        return LS_OK;
    const int room = 2 * e->room + 64;
    ls__entry *more = ls__frame_alloc((size_t)room * sizeof *more);
    if (!more)
        return ls_error_pending();
    if (e->count > 0)
        memcpy(more, e->at, (size_t)e->count * sizeof *more);
    e->at = more;
    e->room = room;
    return LS_OK;
}

/* In memory of the innermost frame. */
static char *format_key(const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *key = length < 0 ? NULL : ls__frame_alloc((size_t)length + 1);
    if (key)
        vsnprintf(key, (size_t)length + 1, format, arguments);
    return key;
}

ls_status ls__entries_add(ls__entries *e, ls_value *item, const char *key, ...)
{
    va_list arguments;
    va_start(arguments, key);
    const char *formatted = item ? format_key(key, arguments) : NULL;
    va_end(arguments);
    if (!formatted)
        return ls_error_pending() ? ls_error_pending() : ls__fail_memory("a dict", sizeof *e->at);
    ls_status st = make_room(e);
    if (!st)
        e->at[e->count++] = (ls__entry){ formatted, item };
    return st;
}

ls_status ls__entries_add_all(ls__entries *e, const char *prefix, const ls_value *dict)
{
    ls_status st = dict ? LS_OK : ls_error_pending();
    for (int i = 0; !st && i < ls_length(dict); i++)
        st = ls__entries_add(e, ls_child(dict, i), "%s%s", prefix, ls_key(dict, i));
    return st;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const ls__entry *)a)->key, ((const ls__entry *)b)->key);
}

ls_value *ls__entries_dict(ls__entries *e)
{
    const char **keys = ls__frame_alloc(((size_t)e->count + 1) * sizeof *keys);
    ls_value **items = ls__frame_alloc(((size_t)e->count + 1) * sizeof *items);
    if (!keys || !items)
        return NULL;
    if (e->count > 0)
        qsort(e->at, (size_t)e->count, sizeof *e->at, by_key);
    for (int i = 0; i < e->count; i++) {
        keys[i] = e->at[i].key;
        items[i] = e->at[i].item;
    }
    return ls_dict(e->count, keys, items);
}
