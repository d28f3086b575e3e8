/*
 * ls_files: names of files, looked up when the dataset is made. Words: [how many were given].
 */
#include <string.h>

#include "data/indexed.h"
#include "os/glob.h"

typedef struct files_options {
    ls__names names;
} files_options;

static void close(ls__it *it)
{
    (void)it;
}

static ls_status pull(ls__it *it, int most, ls__chunk *out)
{
    ls__indexed *s = it->state;
    const files_options *o = it->dataset->options;
    const int n = ls__indexed_left(it, most);
    if (n == 0)
        return LS_END;
    ls_status st = ls__chunk_room(out, n, 1, 1);
    if (st)
        return st;
    out->structure = ls__type_structure(it->dataset->type);
    for (out->n = 0; out->n < n; out->n++) {
        const char *name = o->names.at[s->at];
        *ls__chunk_datum(out, out->n, 0) = (ls__datum){
            .spec = { .dtype = LS_BYTES }, .data = name, .bytes = strlen(name), .hold = LS__LASTING
        };
        *ls__chunk_after(out, out->n) = ++s->at;
    }
    return LS_OK;
}

static const ls__stage files_stage = {
    .name = "files", .state_bytes = sizeof(ls__indexed), .close = close, .pull = pull, LS__HAS_INDEX
};

/* ---- making --------------------------------------------------------------------------------- */

static void release(void *options)
{
    ls__names_free(&((files_options *)options)->names);
}

static ls_status look_up(const char *who, ls__names *names, int count, const char *const *patterns)
{
    ls_status st = ls__check_number(who, "count", count, 1);
    if (!st && !patterns)
        st = ls__fail(LS_INVALID, "%s: the patterns are NULL", who);
    for (int i = 0; i < count && !st; i++)
        st = patterns[i] ? ls__names_add(names, who, patterns[i])
                         : ls__fail(LS_INVALID, "%s: pattern %d is NULL", who, i);
    return st;
}

/* Of all names: a position in other files is another dataset's. */
static uint64_t hash_names(const ls__names *names)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < names->count; i++) {
        const char *name = names->at[i];
        for (size_t k = 0, n = strlen(name) + 1; k < n; k++)
            h = (h ^ (unsigned char)name[k]) * 0x100000001b3u;
    }
    return h;
}

ls_dataset *ls_files(int count, const char *const *patterns)
{
    const char *who = "ls_files";
    ls__dataset_draft draft = { .stage = &files_stage };
    files_options *o = ls__dataset_options(&draft, sizeof *o, release);
    if (!o)
        return NULL;
    if (look_up(who, &o->names, count, patterns) || ls__type_parse(who, "bytes[]", &draft.type))
        draft.type = NULL; /* which fails below, and lets go of the names */
    draft.cardinality = (int64_t)o->names.count;
    return ls__dataset_new(&draft, "files %zu %016llx", o->names.count,
                           (unsigned long long)hash_names(&o->names));
}
