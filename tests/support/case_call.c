/*
 * Runs a case: makes its tensors, fills in the attribute struct by the row's own
 * list of attributes, and calls the row. Public functions that are made of rows
 * have no row of their own; the table here calls them, so that they are held
 * against TensorFlow too.
 */
#include "support/case.h"

#include <lockstep/ops.h>
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

static const char *attr_text(const test_case *c, const char *name)
{
    for (int i = 0; i < c->n_attrs; i++)
        if (!strcmp(c->attrs[i].name, name))
            return c->attrs[i].text;
    return NULL;
}

static int64_t to_int(const char *text)
{
#define MATCH(dtype, value, name, bytes)                                                         \
    if (!strcmp(text, name))                                                                     \
        return dtype;
    LS_DTYPE_LIST(MATCH)
#undef MATCH
    return strtoll(text, NULL, 10);
}

static void to_ints(const char *text, ls_ints *out)
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
            *(int64_t *)at = to_int(text);
        else if (a->kind == LS_ATTR_KIND_FLOAT)
            *(double *)at = strtod(text, NULL);
        else
            to_ints(text, (ls_ints *)at);
    }
    return true;
}

/* ---- public functions without a row -------------------------------------------- */

typedef struct function {
    const char *name;
    int inputs;
    ls_value *(*call)(const test_case *c, ls_tensor *const *x);
} function;

static double number(const test_case *c, const char *name)
{
    const char *text = attr_text(c, name);
    return text ? strtod(text, NULL) : 0;
}

static ls_ints list(const test_case *c, const char *name)
{
    ls_ints out;
    to_ints(attr_text(c, name) ? attr_text(c, name) : "-", &out);
    return out;
}

/* NULL passes through: ls_leaf would call it an error of its own. */
static ls_value *one(ls_tensor *t)
{
    return t ? ls_tensors(1, &t) : NULL;
}

static ls_value *dense(const test_case *c, ls_tensor *const *x)
{
    (void)c;
    return one(ls_dense(x[0], x[1], x[2]));
}

static ls_value *global_avg(const test_case *c, ls_tensor *const *x)
{
    (void)c;
    return one(ls_global_avg_pool2d(x[0]));
}

static ls_value *global_max(const test_case *c, ls_tensor *const *x)
{
    (void)c;
    return one(ls_global_max_pool2d(x[0]));
}

static ls_value *scale(const test_case *c, ls_tensor *const *x)
{
    return one(ls_scale(x[0], number(c, "factor")));
}

static ls_value *shift(const test_case *c, ls_tensor *const *x)
{
    return one(ls_shift(x[0], number(c, "offset")));
}

static ls_value *flatten_rows(const test_case *c, ls_tensor *const *x)
{
    (void)c;
    return one(ls_flatten_rows(x[0]));
}

static ls_value *expand_dims(const test_case *c, ls_tensor *const *x)
{
    return one(ls_expand_dims(x[0], (int)number(c, "axis")));
}

static ls_value *squeeze(const test_case *c, ls_tensor *const *x)
{
    ls_ints axes = list(c, "axes");
    return one(ls_squeeze(x[0], (int)axes.count, axes.at));
}

static ls_value *split_sizes(const test_case *c, ls_tensor *const *x)
{
    ls_ints sizes = list(c, "sizes");
    return ls_split_sizes(x[0], (int)sizes.count, sizes.at, (int)number(c, "axis"));
}

static const function functions[] = {
    { "dense", 3, dense },
    { "global_avg_pool2d", 1, global_avg },
    { "global_max_pool2d", 1, global_max },
    { "scale", 1, scale },
    { "shift", 1, shift },
    { "flatten_rows", 1, flatten_rows },
    { "expand_dims", 1, expand_dims },
    { "squeeze", 1, squeeze },
    { "split_sizes", 1, split_sizes },
};

static const function *function_named(const char *name)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (!strcmp(functions[i].name, name))
            return &functions[i];
    return NULL;
}

/* ---- calling ----------------------------------------------------------------------- */

const ls_op *case_row(const test_case *c)
{
    return ls_op_find(c->op);
}

bool case_known(const char *op)
{
    return function_named(op) || ls_op_find(op);
}

ls_value *case_call(const test_case *c, int count, ls_tensor *const *inputs)
{
    union {
        char bytes[1024];
        double align;
    } attrs;
    case_fail("%s", "");
    const ls_op *op = case_row(c);
    const function *f = op ? NULL : function_named(c->op);
    if (f) {
        if (count != f->inputs)
            case_fail("%s takes %d inputs", c->op, f->inputs);
        return count == f->inputs ? f->call(c, inputs) : NULL;
    }
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
