/* Batches whose rows are where they were. Invariant: parts that are filled by themselves do not overlap. */
#include "data/gathered.h"

#include <string.h>

/* Behind the memory for the rows. */
typedef struct batch {
    ls__later later;
    ls__storage *source;
    size_t bytes; /* of a row */
    int64_t n;    /* of rows */
    const char *rows[];
} batch;

typedef struct window {
    ls__later later;
    ls__storage *batch;
    int64_t first, count;
} window;

/* Rows are all over the memory: while one is copied, the beginning of another is on its way; the rest of it follows by
 * itself. */
static void copy_rows(const batch *b, int64_t first, int64_t count, char *to)
{
    enum { SOON = 4, LINES = 8 };
    for (int64_t i = first; i < first + count; i++, to += b->bytes) {
        if (i + SOON < first + count)
            for (size_t k = 0; k < LINES * 64 && k < b->bytes; k += 64)
                __builtin_prefetch(b->rows[i + SOON] + k);
        memcpy(to, b->rows[i], b->bytes);
    }
}

static void fill_batch(const ls__later *later, void *data)
{
    const batch *b = (const batch *)later;
    copy_rows(b, 0, b->n, data);
}

static void fill_window(const ls__later *later, void *data)
{
    const window *w = (const window *)later;
    copy_rows(w->batch->user, w->first, w->count, data);
}

static void let_source_go(void *data, void *user)
{
    (void)data;
    ls__storage_unref(((batch *)user)->source);
}

static void let_batch_go(void *data, void *user)
{
    (void)data;
    ls__storage_unref(((window *)user)->batch);
}

static void let_go(void *data, void *user)
{
    (void)data;
    ls__storage_unref(user);
}

ls__storage *ls__gathered_new(int64_t rows, size_t bytes, ls__storage *source)
{
    size_t all, list;
    batch *b;
    if (__builtin_mul_overflow((size_t)rows, bytes, &all) ||
        __builtin_mul_overflow((size_t)rows, sizeof *b->rows, &list))
        all = list = SIZE_MAX / 2;
    ls__storage *s = ls__storage_later("a batch", NULL, all, sizeof *b + list, let_source_go);
    if (!s)
        return NULL;
    b = s->user;
    b->later.fill = fill_batch;
    b->source = ls__storage_ref(source);
    b->bytes = bytes;
    b->n = 0;
    return s;
}

void ls__gathered_put(ls__storage *s, int64_t row, const void *data)
{
    batch *b = s->user;
    b->rows[row] = data;
    b->n = row + 1;
}

bool ls__gathered_takes(const ls__storage *s, const ls__storage *source)
{
    return ls__storage_waits(s) &&
           ((const batch *)s->user)->source == source; /* nobody else has it yet */
}

static ls__storage *wrap_rows(ls__storage *s, const void *data, int64_t first, int64_t count)
{
    ls__storage *out = ls__storage_later("an element of a dataset", (void *)(uintptr_t)data, 0,
                                         sizeof(window), let_batch_go);
    if (out)
        *(window *)out->user =
            (window){ .later.fill = fill_window, .batch = s, .first = first, .count = count };
    return out;
}

static ls__storage *wrap(ls__storage *s, const void *data)
{
    ls__storage_look(s);
    return ls__storage_wrap("an element of a dataset", (void *)(uintptr_t)data, let_go, s);
}

ls__storage *ls__gathered_part(ls__storage *s, const void *data, size_t bytes)
{
    const batch *b = s->user;
    const size_t offset = (size_t)((const char *)data - (const char *)s->data);
    const bool is_batch = b->later.fill == fill_batch;
    if (offset == 0 && (!is_batch || bytes == (size_t)b->n * b->bytes))
        return s;
    /* Who reshaped the batch may want other rows. */
    const bool whole_rows = is_batch && offset % b->bytes == 0 && bytes % b->bytes == 0;
    ls__storage *out =
        whole_rows ? wrap_rows(s, data, (int64_t)(offset / b->bytes), (int64_t)(bytes / b->bytes))
                   : wrap(s, data);
    if (!out)
        ls__storage_unref(s);
    return out;
}
