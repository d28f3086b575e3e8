/*
 * Types read from text; the grammar is in type.h.
 */
#include <ctype.h>
#include <string.h>

#include "base/status.h"
#include "data/type.h"
#include "tensor/tensor.h"

enum { MOST_LEAVES = 256, MOST_ITEMS = 256, MOST_KEY = 128, MOST_DEPTH = 32 };

typedef struct parser {
    const char *who, *text, *at;
    int depth, count;
    ls__leaf_type leaves[MOST_LEAVES];
} parser;

static ls_value *wrong(const parser *p, const char *want)
{
    ls__hint(ls__fail(LS_INVALID, "%s: the spec \"%s\" is wrong at \"%.20s\": wants %s", p->who,
                      p->text, p->at, want),
             "as in \"u8[?,28,28], i64[?]\" or \"{image: u8[28,28], label: i64[]}\"");
    return NULL;
}

static bool skip(parser *p, char c)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
    if (*p->at != c)
        return false;
    p->at++;
    while (isspace((unsigned char)*p->at))
        p->at++;
    return true;
}

static bool read_size(parser *p, int64_t *out)
{
    if (skip(p, '?')) {
        *out = -1;
        return true;
    }
    int64_t n = 0;
    const char *first = p->at;
    for (; isdigit((unsigned char)*p->at); p->at++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *p->at - '0', &n))
            return false;
    *out = n;
    return p->at > first;
}

static bool read_dtype(parser *p, ls_dtype *out)
{
#define LS__DTYPE_TRY(name, value, text, bytes)                                                    \
    if (!strncmp(p->at, text, sizeof text - 1) &&                                                  \
        !isalnum((unsigned char)p->at[sizeof text - 1])) {                                         \
        p->at += sizeof text - 1;                                                                  \
        *out = name;                                                                               \
        return true;                                                                               \
    }
    LS_DTYPE_LIST(LS__DTYPE_TRY)
#undef LS__DTYPE_TRY
    return false;
}

static ls_value *read_leaf(parser *p)
{
    if (p->count == MOST_LEAVES)
        return wrong(p, "no more than 256 leaves");
    ls_value *number = ls_leaf(ls_scalar_int(LS_I64, p->count));
    ls__leaf_type *leaf = &p->leaves[p->count++];
    *leaf = (ls__leaf_type){ .rank = -1 };
    if (skip(p, '?'))
        return number;
    if (!read_dtype(p, &leaf->dtype))
        return wrong(p, "a dtype (f32, i64, u8, bytes...) or ?");
    if (!skip(p, '['))
        return number;
    leaf->rank = 0;
    while (!skip(p, ']')) {
        if (leaf->rank && !skip(p, ','))
            return wrong(p, ", or ]");
        if (leaf->rank == LS_MAX_RANK)
            return wrong(p, "no more than 8 sizes");
        if (!read_size(p, &leaf->dims[leaf->rank++]))
            return wrong(p, "a size or ?");
    }
    return number;
}

static ls_value *read_nest(parser *p);

/* Up to `end`, which is 0 at the end of the text; `dict`: with keys. */
static ls_value *read_items(parser *p, char end, bool dict)
{
    ls_value *items[MOST_ITEMS];
    const char *keys[MOST_ITEMS];
    int n = 0;
    while (end ? !skip(p, end) : !(skip(p, ' '), *p->at == 0)) {
        if (n == MOST_ITEMS)
            return wrong(p, "no more than 256 entries");
        char key[MOST_KEY];
        size_t length = 0;
        for (; dict && *p->at && !strchr(":,{}() ", *p->at) && length < MOST_KEY - 1; p->at++)
            key[length++] = *p->at;
        key[length] = 0;
        if (dict && (!length || !skip(p, ':')))
            return wrong(p, "a key and :");
        keys[n] = dict ? ls__frame_string(key) : NULL;
        items[n] = read_nest(p);
        if (!items[n++])
            return NULL;
        if (!skip(p, ',') && *p->at != end)
            return wrong(p, end ? "a comma or the closing bracket" : "a comma or the end");
    }
    if (dict)
        return ls_dict(n, keys, items);
    return n == 1 && !end ? items[0] : ls_list(n, items);
}

static ls_value *read_nest(parser *p)
{
    if (p->depth == MOST_DEPTH)
        return wrong(p, "no deeper nest");
    p->depth++;
    ls_value *v = skip(p, '(')   ? read_items(p, ')', false)
                  : skip(p, '{') ? read_items(p, '}', true)
                                 : read_leaf(p);
    p->depth--;
    return v;
}

/* A dict is in the order of its keys, leaves were read in the order of the text: each knows its
 * number. */
static ls__type *in_order(const parser *p, const ls_value *v)
{
    ls_tensor *numbers[MOST_LEAVES];
    ls__leaf_type leaves[MOST_LEAVES];
    if (ls_leaf_count(v) != p->count) { /* two entries of one key: ls_dict has refused it */
        wrong(p, "keys that differ");
        return NULL;
    }
    if (ls_flatten(v, numbers))
        return NULL;
    for (int i = 0; i < p->count; i++)
        leaves[i] = p->leaves[ls_to_int(numbers[i])];
    return ls__type_new(v, p->count, leaves);
}

ls_status ls__type_parse(const char *who, const char *text, ls__type **out)
{
    ls__type *made = NULL;
    LS_FRAME {
        parser *p = ls__frame_alloc(sizeof *p);
        if (p) {
            *p = (parser){ .who = who, .text = text, .at = text };
            ls_value *v = read_items(p, 0, false);
            made = v ? in_order(p, v) : NULL;
        }
    }
    *out = made;
    return made ? LS_OK : ls_error_pending();
}
