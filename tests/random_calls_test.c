/*
 * Every row called at random: small tensors of any dtype and shape, attributes
 * of any kind; and the golden cases with one thing changed, which go deeper. A
 * call gives a result or refuses with an error that names the row; it never
 * crashes, hangs or leaves the thread in a bad way. What succeeds is
 * differentiated too. Worth most under the sanitizers. The numbers are fixed: a
 * row's calls depend on its name alone.
 */
#include <lockstep/operator.h>
#include <lockstep/tape.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dispatch/call.h"
#include "support/case.h"

enum { CALLS = 200, CHANGES = 6, MOST_INPUTS = 8, MOST_RANK = 4, MOST_ATTRS = 2048 };

/* ---- choices ------------------------------------------------------------------- */

static uint64_t stream;

static uint32_t draw(uint32_t below)
{
    stream ^= stream << 13;
    stream ^= stream >> 7;
    stream ^= stream << 17;
    return (uint32_t)(stream >> 33) % below;
}

static void restart(const char *name)
{
    stream = 88172645463325252u;
    for (; *name; name++)
        stream = stream * 31 + (unsigned char)*name;
    draw(2);
}

typedef struct spec {
    ls_dtype dtype;
    int rank;
    int64_t dims[MOST_RANK];
} spec;

static const ls_dtype dtypes[] = {
    LS_F32, LS_F64, LS_F32, LS_I32, LS_I64, LS_U8, LS_BOOL, LS_BF16
};

static spec any_spec(void)
{
    spec s = { .dtype = dtypes[draw(8)], .rank = (int)draw(MOST_RANK + 1) };
    for (int i = 0; i < s.rank; i++)
        s.dims[i] = draw(12) ? 1 + draw(3) : 0;
    return s;
}

/* Mostly like the first input, or like its last axes: calls then go deeper. */
static spec like_spec(const spec *base)
{
    uint32_t how = draw(8);
    if (how == 0)
        return any_spec();
    spec s = *base;
    if (how <= 3) {
        int drop = s.rank ? (int)draw((uint32_t)s.rank + 1) : 0;
        memmove(s.dims, s.dims + drop, sizeof *s.dims * (size_t)(s.rank - drop));
        s.rank -= drop;
    }
    if (draw(4) == 0)
        s.dtype = draw(2) ? LS_I64 : LS_BOOL;
    return s;
}

static ls_tensor *tensor_of(const spec *s)
{
    static const double values[] = { 0, 1, -1, 0.5, 2, -3, NAN, INFINITY, 1e30 };
    uint64_t data[256] = { 0 };
    int64_t count = 1;
    for (int i = 0; i < s->rank; i++)
        count *= s->dims[i];
    for (int64_t i = 0; i < count; i++) {
        double v = values[draw(draw(4) ? 4 : 9)];
        int64_t n = (int64_t)draw(6) - (draw(8) == 0);
        uint32_t bits;
        float f = (float)v;
        memcpy(&bits, &f, sizeof bits);
        switch (s->dtype) {
        case LS_F32:
            ((float *)data)[i] = f;
            break;
        case LS_F64:
            ((double *)data)[i] = v;
            break;
        case LS_I32:
            ((int32_t *)data)[i] = (int32_t)n;
            break;
        case LS_I64:
            ((int64_t *)data)[i] = n;
            break;
        case LS_U8:
            ((uint8_t *)data)[i] = (uint8_t)n;
            break;
        case LS_BOOL:
            ((uint8_t *)data)[i] = n & 1;
            break;
        default:
            ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
        }
    }
    return ls_from(s->dtype, s->rank, s->dims, data);
}

static void fill_attrs(const ls_op *op, void *to)
{
    static const double floats[] = { 0, 0.5, 1, -1, 2, 1e-3, NAN, INFINITY };
    memset(to, 0, op->attr_size);
    for (const ls_attr *a = op->attrs; a && a->kind != LS_ATTR_KIND_END; a++) {
        char *at = (char *)to + a->offset;
        if (a->kind == LS_ATTR_KIND_INT) {
            *(int64_t *)at = draw(20) ? (int64_t)draw(9) - 2 : INT64_MAX - draw(2);
        } else if (a->kind == LS_ATTR_KIND_FLOAT) {
            *(double *)at = floats[draw(8)];
        } else {
            ls_ints *list = (ls_ints *)at;
            list->count = draw(20) ? (int64_t)draw(MOST_RANK + 2) - 1 : (int64_t)draw(12) - 2;
            for (int i = 0; i < LS_MAX_RANK; i++)
                list->at[i] = draw(30) ? (int64_t)draw(5) - 1 : INT64_MAX;
        }
    }
}

/* ---- one call --------------------------------------------------------------------- */

typedef struct tally {
    int done, refused, differentiated, bad;
} tally;

static bool differentiate(ls_tape *tape, ls_value *outs, int n, ls_tensor **inputs)
{
    ls_tensor *ys[64], *xs[MOST_INPUTS];
    int n_ys = 0, n_xs = 0;
    for (int i = 0; i < ls_length(outs) && n_ys < 64; i++)
        if (ls_dtype_is_float(ls_dtype_of(ls_item(outs, i))))
            ys[n_ys++] = ls_item(outs, i);
    for (int i = 0; i < n; i++)
        if (ls_dtype_is_float(ls_dtype_of(inputs[i])))
            xs[n_xs++] = inputs[i];
    if (!n_ys || !n_xs)
        return false;
    return ls_gradients(tape, ls_tensors(n_ys, ys), ls_tensors(n_xs, xs)) != NULL;
}

/* Takes the pending error, if any. */
static void judge(const char *name, const char *given, const ls_value *outs, tally *t)
{
    bool pending = ls_error_pending();
    ls_status status = ls_error();
    t->done += outs != NULL;
    t->refused += status != LS_OK;
    bool fine = pending ? !outs && strstr(ls_error_text(), name) != NULL : outs != NULL;
    if (fine)
        return;
    print_error("row %s, given%s: %s, %s '%s'\n", name, given, outs ? "a result" : "no result",
                ls_status_name(status), pending ? ls_error_text() : "");
    t->bad++;
}

static void call_once(const ls_op *op, tally *t)
{
    union {
        char bytes[MOST_ATTRS];
        double align;
    } attrs;
    spec base = any_spec();
    ls_tensor *inputs[MOST_INPUTS];
    char given[512] = "";
    int n = op->inputs >= 0 ? op->inputs : 1 + (int)draw(3);
    for (int i = 0, at = 0; i < n; i++) {
        spec s = i ? like_spec(&base) : base;
        inputs[i] = tensor_of(&s);
        at += snprintf(given + at, sizeof given - (size_t)at, " %s", ls_describe(inputs[i]));
    }
    fill_attrs(op, attrs.bytes);
    ls_tape *tape = ls_tape_open();
    ls_value *outs = ls_apply_all(op, n, inputs, op->attr_size ? attrs.bytes : NULL);
    if (outs && op->gradient)
        t->differentiated += differentiate(tape, outs, n, inputs);
    /* A fused row speaks in the name of what it stands for. */
    judge(op->flags & LS__OP_FUSED ? "" : op->name, given, outs, t);
}

static void test_row(void **state)
{
    const ls_op *op = *state;
    tally t = { 0 };
    if (op->attr_size > MOST_ATTRS || op->inputs > MOST_INPUTS)
        skip();
    restart(op->name);
    for (int i = 0; i < CALLS; i++)
        LS_FRAME {
            call_once(op, &t);
        }
    if (getenv("LOCKSTEP_TEST_VERBOSE"))
        print_message("%s: %d done, %d refused, %d differentiated\n", op->name, t.done, t.refused,
                      t.differentiated);
    assert_int_equal(t.bad, 0);
}

/* ---- golden cases, changed ------------------------------------------------------------ */

static void change_tensor(case_tensor *t)
{
    uint32_t how = draw(4);
    if (how == 0 || t->rank == 0) {
        t->dtype = dtypes[draw(8)];
    } else if (how == 1) {
        t->rank--;
    } else if (how == 2 && t->rank < LS_MAX_RANK) {
        t->dims[t->rank++] = 1;
    } else {
        t->dims[draw((uint32_t)t->rank)] = draw(5);
    }
    t->data = NULL; /* zeros: still the golden case's to free */
}

static void change_attr(case_attr *a)
{
    static const char *const texts[] = { "-1", "0",   "1",   "2",    "7",   "-9",
                                         "-",  "all", "0,0", "1,-1", "nan", "0,1,2,3,4,5,6,7",
                                         "9223372036854775807" };
    snprintf(a->text, sizeof a->text, "%s", texts[draw(sizeof texts / sizeof texts[0])]);
}

static void call_changed(const test_case *golden, tally *t)
{
    test_case c = *golden;
    ls_tensor *inputs[CASE_MOST] = { NULL };
    char given[512] = "";
    int things = c.n_in + c.n_attrs;
    if (things == 0)
        return;
    int which = (int)draw((uint32_t)things);
    if (which < c.n_in)
        change_tensor(&c.in[which]);
    else
        change_attr(&c.attrs[which - c.n_in]);
    int at = snprintf(given, sizeof given, " (%s)", c.name);
    for (int i = 0; i < c.n_in; i++) {
        inputs[i] = case_make(&c.in[i]);
        at += snprintf(given + at, sizeof given - (size_t)at, " %s", ls_describe(inputs[i]));
    }
    for (int i = 0; i < c.n_attrs; i++)
        at += snprintf(given + at, sizeof given - (size_t)at, " %s=%s", c.attrs[i].name,
                       c.attrs[i].text);
    ls_tape *tape = ls_tape_open();
    ls_value *outs = case_call(&c, c.n_in, inputs);
    const ls_op *op = case_row(&c);
    if (outs && op && op->gradient)
        t->differentiated += differentiate(tape, outs, c.n_in, inputs);
    judge(op ? c.op : "", given, outs, t); /* a function may leave the naming to its rows */
}

static void test_changed(void **state)
{
    case_file file;
    tally t = { 0 };
    if (!case_file_read(*state, &file))
        fail_msg("%s", case_problem());
    restart(file.count ? file.cases[0].op : "");
    for (int i = 0; i < file.count * CHANGES; i++)
        LS_FRAME {
            call_changed(&file.cases[i / CHANGES], &t);
        }
    case_file_free(&file);
    assert_int_equal(t.bad, 0);
}

/* random_calls_test [NAME]: only this operator. */
int main(int argc, char **argv)
{
    struct CMUnitTest tests[1024];
    char **paths;
    int n = 0, count = case_list("golden", &paths);
    if (count < 0) {
        fprintf(stderr, "no golden files: %s\n", case_problem());
        return 1;
    }
    for (int i = 0; ls_op_at(i) && n < 512; i++)
        if (argc < 2 || !strcmp(argv[1], ls_op_at(i)->name))
            tests[n++] = (struct CMUnitTest){ .name = ls_op_at(i)->name,
                                              .test_func = test_row,
                                              .initial_state = (void *)(uintptr_t)ls_op_at(i) };
    for (int i = 0; i < count && n < 1024; i++)
        if (argc < 2 || case_file_of(paths[i], argc - 1, argv + 1))
            tests[n++] = (struct CMUnitTest){ .name = strrchr(paths[i], '/') + 1,
                                              .test_func = test_changed,
                                              .initial_state = paths[i] };
    int failed = _cmocka_run_group_tests("random calls", tests, (size_t)n, NULL, NULL);
    case_list_free(count, paths);
    return failed;
}
