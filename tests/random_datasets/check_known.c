/*
 * What is known before the first element must be so: how many there are, and what each of them fits.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "random_datasets/check.h"

/* ---- text against an element ---------------------------------------------------------------- */

static const char *past(const char *s, char c)
{
    while (s && *s == ' ')
        s++;
    return s && *s == c ? s + 1 : NULL;
}

/* Each takes what stands for it off the text, and gives what follows; NULL: it does not fit. */
static const char *fits_leaf(const char *s, const rd_tensor *t)
{
    while (*s == ' ')
        s++;
    if (*s == '?')
        return s + 1;
    size_t n = strlen(ls_dtype_name(t->dtype));
    if (strncmp(s, ls_dtype_name(t->dtype), n) != 0)
        return NULL;
    s += n;
    if (*s != '[')
        return isalnum((unsigned char)*s) ? NULL : s; /* the shape is not known */
    s++;
    for (int i = 0; i < t->rank; i++) {
        char *end;
        if (i && *s++ != ',')
            return NULL;
        if (*s == '?') {
            s++;
            continue;
        }
        if (strtoll(s, &end, 10) != t->dims[i] || end == s)
            return NULL;
        s = end;
    }
    return past(s, ']');
}

static const char *fits(const char *s, const rd_nest *nest, const rd_element *e, int *leaf)
{
    if (nest->kind == LS_LEAF)
        return fits_leaf(s, &e->leaf[(*leaf)++]);
    bool dict = nest->kind == LS_DICT;
    s = past(s, dict ? '{' : '(');
    for (int i = 0; i < nest->count && s; i++) {
        if (i)
            s = past(s, ',');
        if (dict) {
            s = past(s, (char)('a' + i));
            s = past(s, ':');
        }
        s = s ? fits(s, nest->child[i], e, leaf) : NULL;
    }
    if (!dict && nest->count == 1 && past(s, ','))
        s = past(s, ',');
    return past(s, dict ? '}' : ')');
}

/* A list at the top has no parentheses, unless it has less than two entries. */
static const char *fits_bare(const char *s, const rd_element *e)
{
    int leaf = 0;
    for (int i = 0; i < e->nest->count && s; i++) {
        if (i)
            s = past(s, ',');
        s = s ? fits(s, e->nest->child[i], e, &leaf) : NULL;
    }
    return s;
}

static bool text_fits(const char *text, const rd_element *e)
{
    int leaf = 0;
    bool bare = e->nest->kind == LS_LIST && e->nest->count > 1;
    if (!strcmp(text, "?"))
        return true;
    const char *end = bare ? fits_bare(text, e) : fits(text, e->nest, e, &leaf);
    return end && !*end;
}

/* ---- checks --------------------------------------------------------------------------------- */

static const char *check_text(ls_dataset *d)
{
    const char *text = ls_dataset_text(d), *wrong = NULL;
    ls_iterator *it = ls_iterate(d);
    ls_status st = LS_OK;
    for (int i = 0; i < RD_LIMIT && st != LS_END && !wrong; i++)
        LS_FRAME {
            rd_pool pool = { 0 };
            ls_value *v = NULL;
            const char *why;
            st = ls_next(it, &v);
            if (st && st != LS_END)
                ls_error();
            rd_element *e = st ? NULL : rd_read(&pool, v, &why);
            if (e && !text_fits(text, e)) {
                rd_text is = { 0 };
                rd_print_element(&is, e);
                wrong = rd_wrong("the text is \"%s\", an element is %.900s", text, is.at);
                rd_text_free(&is);
            }
            rd_pool_free(&pool);
        }
    ls_iterator_free(it);
    return wrong;
}

static const char *check_count(const rd_case *c, const ls_dataset *d)
{
    int64_t n = ls_cardinality(d);
    const rd_lines *want = &c->want[0];
    bool ended = rd_lines_ended(want);
    if (n != LS_UNKNOWN && n != LS_INFINITE && n < 0)
        return rd_wrong("ls_cardinality is %lld", (long long)n);
    if (n == LS_UNKNOWN || c->p->root->fails)
        return n == LS_UNKNOWN && c->p->root->counted && !c->p->root->fails
                   ? "ls_cardinality does not know what it could"
                   : NULL;
    if (ended ? n != want->elements : n != LS_INFINITE && n < want->elements)
        return rd_wrong("ls_cardinality is %lld, there are %d%s", (long long)n, want->elements,
                        ended ? "" : " and more");
    return NULL;
}

const char *rd_check_known(rd_case *c)
{
    const char *wrong = NULL;
    LS_FRAME {
        ls_dataset *d = rd_build(c->p, (rd_setting){ 0 });
        if (!d)
            return rd_wrong("could not be built: %s", ls_error_report());
        wrong = check_count(c, d);
        if (!wrong)
            wrong = check_text(d);
    }
    return wrong;
}
