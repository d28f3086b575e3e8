/*
 * Runs a case: makes its tensors, fills in the attribute struct by the row's own
 * list of attributes, and calls the row; or, where there is no row of that name,
 * the public function (case_functions.c).
 */
#include "support/case.h"

#include <stdlib.h>
#include <string.h>

ls_tensor *case_make(const case_tensor *t)
{
    if (t->dtype == LS_BYTES) {
        const void *strings[64] = { NULL };
        for (int i = 0; i < 64; i++)
            strings[i] = "";
        return t->count <= 64 ? ls_from_strings(t->rank, t->dims, strings, NULL) : NULL;
    }
    if (!t->data)
        return ls_zeros(t->dtype, t->rank, t->dims);
    return ls_from(t->dtype, t->rank, t->dims, t->data);
}

/* ---- attributes -------------------------------------------------------------- */

int64_t case_to_int(const char *text)
{
#define MATCH(dtype, value, name, bytes)                                                           \
    if (!strcmp(text, name))                                                                       \
        return dtype;
    LS_DTYPE_LIST(MATCH)
#undef MATCH
    return strtoll(text, NULL, 10);
}

void case_to_ints(const char *text, ls_ints *out)
{
    memset(out, 0, sizeof *out);
    if (!strcmp(text, "all"))
        out->count = -1;
    else if (strcmp(text, "-"))
        for (char *end; out->count < LS_MAX_RANK; text = end + 1) {
            out->at[out->count++] = strtoll(text, &end, 10);
            if (*end != ',')
                break;
        }
}

static bool fill(const test_case *c, const ls_op *op, void *to)
{
    memset(to, 0, op->attr_size);
    for (int i = 0; i < c->n_attrs; i++) {
        const ls_attr *a = op->attrs;
        while (a && a->kind != LS_ATTR_KIND_END && strcmp(a->name, c->attrs[i].name))
            a++;
        if (!a || a->kind == LS_ATTR_KIND_END)
            return case_fail("row %s has no attribute %s", op->name, c->attrs[i].name);
        char *at = (char *)to + a->offset;
        const char *text = c->attrs[i].text;
        if (a->kind == LS_ATTR_KIND_INT)
            *(int64_t *)at = case_to_int(text);
        else if (a->kind == LS_ATTR_KIND_FLOAT)
            *(double *)at = strtod(text, NULL);
        else
            case_to_ints(text, (ls_ints *)at);
    }
    return true;
}

/* ---- calling ----------------------------------------------------------------------- */

const ls_op *case_row(const test_case *c)
{
    return ls_op_find(c->op);
}

bool case_known(const char *op)
{
    return case_has_function(op) || ls_op_find(op);
}

ls_value *case_call(const test_case *c, int count, ls_tensor *const *inputs)
{
    union {
        char bytes[1024];
        double align;
    } attrs;
    case_fail("%s", "");
    const ls_op *op = case_row(c);
    if (!op && case_has_function(c->op))
        return case_call_function(c, count, inputs);
    if (!op || op->attr_size > sizeof attrs)
        case_fail("there is no operator %s", c->op);
    else if (fill(c, op, attrs.bytes))
        return ls_apply_all(op, count, inputs, op->attr_size ? attrs.bytes : NULL);
    return NULL;
}

ls_value *case_run(const test_case *c, ls_tensor **inputs)
{
    for (int i = 0; i < c->n_in; i++)
        if (!(inputs[i] = case_make(&c->in[i])))
            return NULL;
    return case_call(c, c->n_in, inputs);
}
