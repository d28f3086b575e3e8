/*
 * The header of a .npy array: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } with its keys
 * in any order. Invariant: the parser never looks behind the last byte of the text, and takes no
 * more of Python than this: three keys, each once.
 */
#include <lockstep/tensor.h>
#include <string.h>

#include "data/npy.h"

enum { DESCR = 1, ORDER = 2, SHAPE = 4, ALL = 7, MOST_WORD = 32 };

typedef struct parser {
    const char *name, *text, *at, *end;
    unsigned seen;
    char descr[MOST_WORD];
    bool fortran;
    int rank;
    int64_t dims[LS_MAX_RANK];
} parser;

/* ---- words ----------------------------------------------------------------------------------- */

static ls_status wrong(const parser *p, const char *want)
{
    return ls__fail(LS_CORRUPT, "%s: its header is wrong at letter %lld: wants %s", p->name,
                    (long long)(p->at - p->text), want);
}

static void skip_space(parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' || *p->at == '\t' || *p->at == '\r'))
        p->at++;
}

static bool take(parser *p, char c)
{
    skip_space(p);
    if (p->at == p->end || *p->at != c)
        return false;
    p->at++;
    return true;
}

static bool sees(parser *p, char c)
{
    skip_space(p);
    return p->at < p->end && *p->at == c;
}

static bool take_word(parser *p, const char *word)
{
    size_t n = strlen(word);
    skip_space(p);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, word, n) != 0)
        return false;
    p->at += n;
    return true;
}

/* A string in either quotes, of letters that print, none of them escaped. */
static ls_status take_string(parser *p, char out[MOST_WORD])
{
    size_t n = 0;
    skip_space(p);
    if (p->at == p->end || (*p->at != '\'' && *p->at != '"'))
        return wrong(p, "a string");
    const char quote = *p->at++;
    for (; p->at < p->end && *p->at != quote; p->at++) {
        if (*p->at < ' ' || *p->at > '~' || *p->at == '\\')
            return wrong(p, "letters that print");
        if (n == MOST_WORD - 1)
            return wrong(p, "a shorter string");
        out[n++] = *p->at;
    }
    if (p->at == p->end)
        return wrong(p, "the end of a string");
    p->at++;
    out[n] = '\0';
    return LS_OK;
}

/* Python 2 wrote long ones with an L behind. */
static ls_status take_size(parser *p, int64_t *out)
{
    int64_t n = 0;
    skip_space(p);
    const char *first = p->at;
    for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *p->at - '0', &n))
            return wrong(p, "a size that fits 63 bits");
    if (p->at == first)
        return wrong(p, "a size");
    if (p->at < p->end && *p->at == 'L')
        p->at++;
    *out = n;
    return LS_OK;
}

/* ---- the dict -------------------------------------------------------------------------------- */

static ls_status take_descr(parser *p)
{
    if (sees(p, '[') || sees(p, '('))
        return ls__hint(ls__fail(LS_UNSUPPORTED, "%s: its elements have fields", p->name),
                        "save each field as an array of its own");
    return take_string(p, p->descr);
}

static ls_status take_shape(parser *p)
{
    if (!take(p, '('))
        return wrong(p, "a tuple of sizes");
    bool comma = true;
    while (!take(p, ')')) {
        int64_t size = 0;
        if (!comma)
            return wrong(p, ", or )");
        ls_status st = take_size(p, &size);
        if (st)
            return st;
        if (p->rank == LS_MAX_RANK)
            return ls__fail(LS_UNSUPPORTED, "%s: more than %d axes", p->name, LS_MAX_RANK);
        p->dims[p->rank++] = size;
        comma = take(p, ',');
    }
    return p->rank == 1 && !comma ? wrong(p, "a comma behind a single size") : LS_OK;
}

static ls_status take_entry(parser *p)
{
    char key[MOST_WORD];
    ls_status st = take_string(p, key);
    if (st)
        return st;
    unsigned which = !strcmp(key, "descr")           ? DESCR
                     : !strcmp(key, "fortran_order") ? ORDER
                     : !strcmp(key, "shape")         ? SHAPE
                                                     : 0;
    if (!which || (p->seen & which))
        return wrong(p, "descr, fortran_order and shape, each once");
    p->seen |= which;
    if (!take(p, ':'))
        return wrong(p, ":");
    if (which == DESCR)
        return take_descr(p);
    if (which == SHAPE)
        return take_shape(p);
    p->fortran = take_word(p, "True");
    return p->fortran || take_word(p, "False") ? LS_OK : wrong(p, "True or False");
}

static ls_status take_dict(parser *p)
{
    if (!take(p, '{'))
        return wrong(p, "{");
    bool comma = true;
    while (!take(p, '}')) {
        ls_status st = comma ? take_entry(p) : wrong(p, ", or }");
        if (st)
            return st;
        comma = take(p, ',');
    }
    if (p->seen != ALL)
        return wrong(p, "descr, fortran_order and shape, each once");
    skip_space(p);
    return p->at == p->end ? LS_OK : wrong(p, "nothing behind the dict");
}

/* ---- what it means ------------------------------------------------------------------------------ */

static const ls__npy_type types[] = { { 'b', 1, LS_BOOL }, { 'i', 1, LS_I32 }, { 'u', 1, LS_U8 },
                                      { 'i', 2, LS_I32 },  { 'u', 2, LS_I32 }, { 'f', 2, LS_F32 },
                                      { 'i', 4, LS_I32 },  { 'u', 4, LS_I64 }, { 'f', 4, LS_F32 },
                                      { 'i', 8, LS_I64 },  { 'u', 8, LS_I64 }, { 'f', 8, LS_F64 } };

static const char own_order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<' : '>';

/* "<f4": the byte order, the kind, the bytes. */
static ls_status find_type(const parser *p, ls__npy_header *out)
{
    const char *d = p->descr;
    for (size_t i = 0; strlen(d) == 3 && strchr("<>|=", d[0]) && i < sizeof types / sizeof *types;
         i++) {
        if (types[i].kind != d[1] || types[i].bytes != d[2] - '0')
            continue;
        out->type = types[i];
        out->swapped = types[i].bytes > 1 && (d[0] == '<' || d[0] == '>') && d[0] != own_order;
        return LS_OK;
    }
    return ls__hint(ls__fail(LS_UNSUPPORTED, "%s: its elements are '%s'", p->name, d),
                    "read are bools, integers of 1 to 8 bytes and floats of 2, 4 and 8: use "
                    "astype() before saving");
}

/* Sizes of 0 count as 1, as for all tensors: so nothing overflows later. */
static ls_status measure(const parser *p, ls__npy_header *out)
{
    int64_t bytes = 8; /* the widest */
    bool empty = false;
    for (int i = 0; i < p->rank; i++) {
        empty |= p->dims[i] == 0;
        if (p->dims[i] > 0 && __builtin_mul_overflow(bytes, p->dims[i], &bytes))
            return ls__fail(LS_CORRUPT, "%s: its header says sizes that no array can have",
                            p->name);
    }
    out->fortran = p->fortran;
    out->bytes = empty ? 0 : (uint64_t)bytes / 8 * out->type.bytes;
    return ls__spec_make(&out->spec, p->name, out->type.dtype, p->rank, p->dims);
}

ls_status ls__npy_parse(const char *name, const char *text, size_t length, ls__npy_header *out)
{
    parser p = { .name = name, .text = text, .at = text, .end = text + length };
    ls_status st = take_dict(&p);
    if (!st)
        st = find_type(&p, out);
    return st ? st : measure(&p, out);
}
