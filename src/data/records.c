/*
 * ls_tfrecords, ls_text_lines and ls_fixed_records: options are checked here, files are read elsewhere
 * (file_records.c).
 */
#include <lockstep/data.h>

#include "data/compression.h"
#include "data/file_records.h"

#define LONGEST_LINE ((uint64_t)1 << 30)
#define LONGEST_FIXED ((int64_t)1 << 40) /* a record, header or footer: sums of them stay numbers */

/* ---- options -------------------------------------------------------------------------------- */

void ls_records_init(ls_records_options *options)
{
    if (options)
        *options = (ls_records_options){ .size = sizeof *options };
}

ls_status ls__compression_of(const char *who, ls_compression compression, ls__compression *out)
{
    switch (compression) {
    case LS_PLAIN:
        *out = LS__PLAIN;
        return LS_OK;
    case LS_GZIP:
        *out = LS__GZIP;
        return ls__compression_check(who, LS__GZIP);
    case LS_ZLIB:
        *out = LS__ZLIB;
        return ls__compression_check(who, LS__ZLIB);
    }
    return ls__hint(ls__fail(LS_INVALID, "%s: no compression %d", who, (int)compression),
                    "there are LS_PLAIN, LS_GZIP and LS_ZLIB");
}

static ls_status take_options(const char *who, const ls_records_options *given,
                              ls_records_options *out)
{
    ls_records_init(out);
    if (given && given->size != sizeof *out)
        return ls__hint(ls__fail(LS_INVALID, "%s: options of size %zu, wants %zu", who, given->size,
                                 sizeof *out),
                        "make them with LS_RECORDS(...) or start from ls_records_init");
    if (given)
        *out = *given;
    return LS_OK;
}

static ls_status check_size(const char *who, const char *what, int64_t bytes, int64_t least)
{
    ls_status st = ls__check_number(who, what, bytes, least);
    if (!st && bytes > LONGEST_FIXED)
        st = ls__fail(LS_INVALID, "%s: %s is %lld, takes %lld at most", who, what, (long long)bytes,
                      (long long)LONGEST_FIXED);
    return st;
}

static ls_status check_sizes(const char *who, bool fixed, const ls_records_options *o)
{
    if (!fixed && (o->record_bytes || o->header_bytes || o->footer_bytes))
        return ls__hint(
            ls__fail(LS_INVALID, "%s: record_bytes, header_bytes or footer_bytes is given", who),
            "they are for ls_fixed_records");
    if (!fixed)
        return LS_OK;
    ls_status st = check_size(who, "record_bytes", o->record_bytes, 1);
    if (!st)
        st = check_size(who, "header_bytes", o->header_bytes, 0);
    return st ? st : check_size(who, "footer_bytes", o->footer_bytes, 0);
}

/* ---- making --------------------------------------------------------------------------------- */

/* The elements may be names, as far as is known. */
static ls_status check_names(const char *who, const ls_dataset *files)
{
    const ls__type *t = files->type;
    if (!ls__type_structure(t))
        return LS_OK;
    const ls__leaf_type *leaf = ls__type_leaves(t) == 1 ? ls__type_leaf(t, 0) : NULL;
    if (leaf && (!leaf->dtype || leaf->dtype == LS_BYTES) && leaf->rank <= 0)
        return LS_OK;
    return ls__hint(ls__fail(LS_SHAPE, "%s: elements are %s, and names of files are bytes[]", who,
                             ls__type_text(t)),
                    "ls_files gives names");
}

static ls_dataset *make(const char *who, const ls__stage *stage, const ls__framing *framing,
                        ls_dataset *files, const ls_records_options *options)
{
    ls_records_options o;
    ls__compression kind;
    if (ls__check_dataset(who, files) || take_options(who, options, &o) ||
        check_sizes(who, framing == &ls__fixed_framing, &o) ||
        ls__compression_of(who, o.compression, &kind) || check_names(who, files))
        return NULL;
    ls__dataset_draft draft = { .stage = stage,
                                .n_inputs = 1,
                                .inputs = &files,
                                .cardinality = files->cardinality ? LS_UNKNOWN : 0 };
    ls__file_records *r = ls__dataset_options(&draft, sizeof *r, NULL);
    if (!r)
        return NULL;
    *r = (ls__file_records){ .who = who,
                             .framing = framing,
                             .sizes = { .record = (uint64_t)o.record_bytes,
                                        .header = (uint64_t)o.header_bytes,
                                        .footer = (uint64_t)o.footer_bytes,
                                        .longest = LONGEST_LINE },
                             .compression = kind,
                             .skip_corrupt = o.skip_corrupt };
    if (ls__type_parse(who, "bytes[]", &draft.type))
        draft.type = NULL;
    static const char *const kinds[] = { "", " gzip", " zlib" };
    return ls__dataset_new(&draft, "%s %lld %lld %lld%s%s", stage->name, (long long)o.header_bytes,
                           (long long)o.record_bytes, (long long)o.footer_bytes,
                           kinds[o.compression], o.skip_corrupt ? " skip" : "");
}

ls_dataset *ls_tfrecords(ls_dataset *files, const ls_records_options *options)
{
    return make("ls_tfrecords", &ls__tfrecords_stage, &ls__tfrecord_framing, files, options);
}

ls_dataset *ls_text_lines(ls_dataset *files, const ls_records_options *options)
{
    return make("ls_text_lines", &ls__text_lines_stage, &ls__line_framing, files, options);
}

ls_dataset *ls_fixed_records(ls_dataset *files, const ls_records_options *options)
{
    return make("ls_fixed_records", &ls__fixed_records_stage, &ls__fixed_framing, files, options);
}
