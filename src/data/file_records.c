/*
 * Records of files. Records are not copied: they are given where they lie in the stream's
 * buffer, as many as are there together. Words: [offset in the file][those of the input that stand
 * before its name]; offset 0 with no file open is where the next one begins.
 *
 * A file that cannot be read, or of which the rest cannot, fails once, and the next pull goes on with
 * the next file.
 */
#include "data/file_records.h"

#include <stdlib.h>
#include <string.h>

#include "data/counted.h"

enum { MOST_AT_ONCE = 256 }; /* records: what a pull costs is shared by many */

typedef struct records_state {
    ls__it *input;
    ls__chunk name;
    int64_t *before; /* the input's words before the name of the file that is open... */
    int64_t *behind; /* ...and behind it */
    bool open;
    bool begins; /* it is at its beginning, and not at its first record yet */
    ls__stream stream;
    size_t counted; /* bytes of the stream's buffer that ls__it_holds knows of */
    ls__record records[MOST_AT_ONCE];
} records_state;

/* ---- files --------------------------------------------------------------------------------- */

static void count_buffer(ls__it *it, size_t bytes)
{
    records_state *s = it->state;
    if (bytes != s->counted)
        ls__it_holds(it, (int64_t)bytes - (int64_t)s->counted);
    s->counted = bytes;
}

static void close_file(records_state *s)
{
    ls__stream_close(&s->stream);
    s->open = false;
}

static ls_status check_name(const char *who, const ls__chunk *c)
{
    const ls__datum *d = ls__chunk_datum(c, 0, 0);
    if (c->leaves != 1 || d->spec.dtype != LS_BYTES || d->spec.rank != 0)
        return ls__hint(ls__fail(LS_SHAPE, "%s: a file's name is bytes[], not %s%s", who,
                                 c->leaves ? ls__spec_text(&d->spec) : "()",
                                 c->leaves > 1 ? ", ..." : ""),
                        "ls_files gives names");
    if (d->bytes && memchr(d->data, '\0', d->bytes))
        return ls__fail(LS_INVALID, "%s: a file's name of %zu bytes has a zero byte in it", who,
                        d->bytes);
    return LS_OK;
}

/* The next file of the input, at its beginning. LS_END: there is none. */
static ls_status open_next(ls__it *it)
{
    records_state *s = it->state;
    const ls__file_records *o = it->dataset->options;
    const size_t words = (size_t)s->input->words * sizeof *s->before;
    ls__chunk_clear(&s->name);
    ls_status st = ls__it_pull(s->input, 1, &s->name);
    if (st) {
        ls__it_words(s->input, s->behind); /* a name that failed is not before the next one */
        return st;
    }
    memcpy(s->before, s->behind, words);
    memcpy(s->behind, ls__chunk_after(&s->name, 0), words);
    st = check_name(o->who, &s->name);
    if (st)
        return st;
    const ls__datum *d = ls__chunk_datum(&s->name, 0, 0);
    char *path = strndup(d->bytes ? d->data : "", d->bytes);
    if (!path)
        return ls__fail_memory(o->who, d->bytes);
    st = ls__stream_open(&s->stream, path, o->compression);
    free(path);
    s->open = s->begins = !st;
    return st;
}

/* ---- records -------------------------------------------------------------------------------- */

/* Records what is wrong, or counts it as left out: LS_OK then. */
static ls_status say_damage(ls__it *it, ls_status st, const ls__damage *damage)
{
    records_state *s = it->state;
    const ls__file_records *o = it->dataset->options;
    if (st == LS_CORRUPT && o->skip_corrupt) {
        atomic_fetch_add_explicit(&it->how.going->skipped, 1, memory_order_relaxed);
        st = ls__it_stopped(it) ? ls__stopped() : LS_OK; /* they may be all that there is */
    } else if (!damage->what[0]) {
        st = ls__stream_failure(&s->stream);
    } else {
        ls__fail(LS_CORRUPT, "%s: '%s', byte %llu: %s", o->who, s->stream.file.path,
                 (unsigned long long)damage->offset, damage->what);
        if (damage->hint)
            ls__hint(LS_CORRUPT, "%s", damage->hint);
    }
    if (!damage->what[0] || damage->rest)
        close_file(s);
    return st;
}

static void give(ls__it *it, int n, ls__chunk *out)
{
    records_state *s = it->state;
    for (int i = 0; i < n; i++) {
        const ls__record *r = &s->records[i];
        int64_t *after = ls__chunk_after(out, i);
        *ls__chunk_datum(out, i, 0) =
            (ls__datum){ .spec = { .dtype = LS_BYTES }, .data = r->data, .bytes = r->bytes };
        after[0] = (int64_t)r->after;
        for (int k = 1; k < it->words; k++)
            after[k] = s->before[k - 1];
    }
    out->n = n;
    out->structure = ls__type_structure(it->dataset->type);
}

static ls_status read_some(ls__it *it, int most, int *n, ls__damage *damage)
{
    records_state *s = it->state;
    const ls__file_records *o = it->dataset->options;
    ls_status st = LS_OK;
    if (s->begins && o->framing->begin)
        st = o->framing->begin(&s->stream, &o->sizes, damage);
    s->begins = false;
    if (!st)
        st = o->framing->next(&s->stream, &o->sizes, most, s->records, n, damage);
    count_buffer(it, s->stream.room);
    return st;
}

static ls_status pull(ls__it *it, int most, ls__chunk *out)
{
    records_state *s = it->state;
    most = most < MOST_AT_ONCE ? most : MOST_AT_ONCE;
    ls_status st = ls__chunk_room(out, most, 1, it->words);
    while (!st) {
        ls__damage damage;
        int n = 0;
        damage.what[0] = '\0';
        if (!s->open)
            st = open_next(it);
        if (st)
            break;
        st = read_some(it, most, &n, &damage);
        if (!st) {
            give(it, n, out);
            break;
        }
        if (st == LS_END) {
            close_file(s);
            st = LS_OK;
        } else {
            st = say_damage(it, st, &damage);
        }
    }
    return st;
}

/* ---- positions ------------------------------------------------------------------------------ */

static void words_now(ls__it *it, int64_t *words)
{
    records_state *s = it->state;
    const size_t n = (size_t)s->input->words * sizeof *words;
    words[0] = s->open ? (int64_t)ls__stream_offset(&s->stream) : 0;
    memcpy(words + 1, s->open ? s->before : s->behind, n);
}

/* To a byte of the file that is open, which is not its first. */
static ls_status seek(records_state *s, int64_t offset)
{
    ls_status st = ls__stream_seek(&s->stream, (uint64_t)offset);
    s->begins = false;
    if (st) {
        ls__hint(st, "the file is not what it was when the position was taken");
        close_file(s);
    }
    return st;
}

/* The input stands before the name of a file: go to this byte of it. */
static ls_status go_into(ls__it *it, int64_t offset)
{
    records_state *s = it->state;
    close_file(s);
    ls__it_words(s->input, s->behind);
    if (offset == 0)
        return LS_OK;
    ls_status st = open_next(it);
    if (st == LS_END)
        return ls__position_corrupt();
    if (st)
        return st;
    st = seek(s, offset);
    count_buffer(it, s->stream.room);
    return st;
}

static ls_status go(ls__it *it, const int64_t *words)
{
    records_state *s = it->state;
    const size_t n = (size_t)s->input->words * sizeof *words;
    if (words[0] < 0)
        return ls__position_corrupt();
    /* Mostly it is the file that is open, and often bytes that are in the buffer. */
    if (s->open && words[0] > 0 && memcmp(words + 1, s->before, n) == 0)
        return seek(s, words[0]);
    ls_status st = ls__it_go(s->input, words + 1);
    return st ? st : go_into(it, words[0]);
}

static ls_status load(ls__it *it, ls__bytes_in *from)
{
    int64_t offset;
    ls_status st = ls__get_int(from, 0, INT64_MAX, &offset);
    if (!st)
        st = ls__it_load(((records_state *)it->state)->input, from);
    return st ? st : go_into(it, offset);
}

/* ---- the stage ------------------------------------------------------------------------------ */

static ls_status open(ls__it *it)
{
    records_state *s = it->state;
    ls_status st = ls__it_open_input(it, 1, &s->input);
    if (st)
        return st;
    s->before = calloc((size_t)it->words, sizeof *s->before);
    s->behind = calloc((size_t)it->words, sizeof *s->behind);
    if (!s->before || !s->behind)
        return ls__fail_memory("an iterator", (size_t)it->words * sizeof *s->before);
    ls__it_words(s->input, s->behind);
    return LS_OK;
}

static void close(ls__it *it)
{
    records_state *s = it->state;
    ls__stream_free(&s->stream);
    count_buffer(it, 0);
    ls__chunk_free(&s->name);
    free(s->before);
    free(s->behind);
    ls__it_close(s->input);
}

#define READS_FILES(text)                                                                          \
    {                                                                                              \
        .name = text, .state_bytes = sizeof(records_state), .open = open, .close = close,          \
        .pull = pull, .words_now = words_now, .go = go, .save = ls__counted_save, .load = load,    \
        .release = ls__counted_release, .flags = LS__STAGE_READS_FILES                             \
    }

const ls__stage ls__tfrecords_stage = READS_FILES("tfrecords");
const ls__stage ls__text_lines_stage = READS_FILES("text_lines");
const ls__stage ls__fixed_records_stage = READS_FILES("fixed_records");
