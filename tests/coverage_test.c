/*
 * Does every operator have its cases? Walks the table, and then the public
 * functions that are made of rows, and asks of each:
 *
 *     golden     two golden cases with elements, of different shapes
 *     dtypes     golden cases of every dtype that it takes, and gradients in f32
 *                and f64; what it takes is found out by calling it
 *     fd, second one for finite differences, and for those of the gradient
 *     zero       one with no elements
 *     bad        one of bad input (rows)
 *     function   the functions of ops.h: to be in support/case_functions.c, through
 *                which golden_test calls them
 *
 * What an operator cannot have is said, with the reason, in cases/exempt.txt:
 *
 *     categorical dtypes "why not"
 *     relu_grad through relu
 *
 * `through` is for rows that only run inside another's gradient, whose cases
 * then reach them; that they do is looked up on a tape. A line that no longer
 * applies fails this test too.
 */
#include <lockstep/operator.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dispatch/call.h"
#include "support/case.h"

typedef enum kind { GOLDEN, DTYPES, DIFFERENCES, SECOND, EMPTY, BAD, FUNCTION, KINDS } kind;

static const char *const kind_names[KINDS] = { "golden", "dtypes", "fd",      "second",
                                               "zero",   "bad",    "function" };
static const char *const kind_texts[KINDS] = { "two golden cases of different shapes",
                                               "golden cases of all its dtypes",
                                               "finite-difference case",
                                               "second-gradient case",
                                               "0-row case",
                                               "bad-input case",
                                               "entry in case_functions.c" };

static const ls_dtype dtypes[] = { LS_F32, LS_F64, LS_BF16, LS_I32, LS_I64, LS_U8, LS_BOOL };

enum { MOST_ROWS = 512, MOST_LINES = 256, N_DTYPES = sizeof dtypes / sizeof dtypes[0] };

/* An operator: a row, or (op NULL) a public function made of rows. */
typedef struct row {
    const char *name;
    const ls_op *op;
    bool has[KINDS], exempt[KINDS];
    bool in_header;          /* ops.h */
    const test_case *sample; /* its first golden case with elements */
    int input;               /* whose dtype counts: the first that can be float */
    bool takes[N_DTYPES], golden[N_DTYPES], gradient[N_DTYPES];
    const char *through; /* another row's name */
} row;

typedef struct exemption {
    int line;
    char row[48], kind[48], other[48];
} exemption;

static row rows[MOST_ROWS];
static int n_rows;
static exemption exemptions[MOST_LINES];
static int n_exemptions;
static case_file *files; /* the golden ones, then that of bad input */
static int n_files;
static char header[1 << 16]; /* ops.h, which the names of public functions stay in */

static row *row_named(const char *name)
{
    for (int i = 0; i < n_rows; i++)
        if (!strcmp(rows[i].name, name))
            return &rows[i];
    return NULL;
}

static bool needs(const row *r, kind k)
{
    switch (k) {
    case DIFFERENCES:
    case SECOND:
        return !r->op || r->op->gradient;
    case BAD:
        return r->op;
    case FUNCTION:
        return r->in_header;
    default:
        return true;
    }
}

/* ---- what there is -------------------------------------------------------------- */

static void note_dtypes(row *r, const test_case *c)
{
    for (int d = 0; d < N_DTYPES; d++) {
        r->golden[d] = r->golden[d] || case_dtype(c, r->input) == dtypes[d];
        for (int i = 0; i < c->n_grad; i++)
            r->gradient[d] = r->gradient[d] || c->grad[i].dtype == dtypes[d];
        r->takes[d] = r->takes[d] || r->golden[d] || case_accepts(c, r->input, dtypes[d]);
    }
}

static void note_input(const test_case *c)
{
    row *r = row_named(c->op);
    if (r && !c->fail && case_float_input(c) >= 0)
        r->input = case_float_input(c);
}

static void note_case(const test_case *c)
{
    row *r = row_named(c->op);
    if (!r)
        return; /* test_every_case tells */
    if (c->fail) {
        r->has[BAD] = true;
        return;
    }
    r->has[DIFFERENCES] = r->has[DIFFERENCES] || case_has_fd(c);
    r->has[SECOND] = r->has[SECOND] || case_has_second(c);
    r->has[EMPTY] = r->has[EMPTY] || case_is_empty(c);
    if (case_is_empty(c))
        return;
    if (!r->sample)
        r->sample = c;
    r->has[GOLDEN] = r->has[GOLDEN] || !case_same_shapes(c, r->sample);
    note_dtypes(r, c);
}

/* A dtype that `r` lacks a golden case or gradient of, or -1. */
static int missing_dtype(const row *r)
{
    for (int d = 0; d < N_DTYPES; d++) {
        bool differentiated = needs(r, DIFFERENCES) && (dtypes[d] == LS_F32 || dtypes[d] == LS_F64);
        if (r->takes[d] && (!r->golden[d] || (differentiated && !r->gradient[d])))
            return d;
    }
    return -1;
}

static void read_cases(void)
{
    char **paths, bad_input[512];
    int count = case_list("golden", &paths);
    if (count < 0)
        fail_msg("%s", case_problem());
    files = calloc(count < 0 ? 0 : (size_t)count + 1, sizeof *files);
    assert_non_null(files);
    snprintf(bad_input, sizeof bad_input, "%s/cases/bad_input.txt", case_root());
    for (n_files = 0; n_files <= count; n_files++)
        if (!case_file_read(n_files < count ? paths[n_files] : bad_input, &files[n_files]))
            fail_msg("%s", case_problem());
    case_list_free(count, paths);
    for (int i = 0; i < n_files; i++)
        for (int k = 0; k < files[i].count; k++)
            note_input(&files[i].cases[k]);
    for (int i = 0; i < n_files; i++)
        for (int k = 0; k < files[i].count; k++)
            note_case(&files[i].cases[k]);
    for (int i = 0; i < n_rows; i++)
        rows[i].has[DTYPES] = rows[i].sample && missing_dtype(&rows[i]) < 0;
}

static void read_exemptions(void)
{
    char path[512], line[512];
    snprintf(path, sizeof path, "%s/cases/exempt.txt", case_root());
    FILE *in = fopen(path, "r");
    if (!in)
        fail_msg("cannot open %s", path);
    n_exemptions = 0;
    for (int number = 1; fgets(line, sizeof line, in); number++) {
        if (line[0] == '#' || line[0] == '\n')
            continue;
        exemption *e = &exemptions[n_exemptions];
        char reason[4];
        *e = (exemption){ .line = number };
        bool through = sscanf(line, "%47s through %47s", e->row, e->other) == 2;
        bool reasoned = !through && sscanf(line, "%47s %47s \"%3c", e->row, e->kind, reason) == 3;
        if ((!through && !reasoned) || n_exemptions == MOST_LINES) {
            fclose(in);
            fail_msg("%s:%d: want 'ROW KIND \"reason\"' or 'ROW through ROW'", path, number);
        }
        n_exemptions++;
    }
    fclose(in);
}

static row *add_row(const char *name)
{
    row *r = row_named(name);
    if (r)
        return r;
    assert_true(n_rows < MOST_ROWS);
    rows[n_rows] = (row){ .name = name, .op = ls_op_find(name) };
    rows[n_rows].has[FUNCTION] = case_has_function(name);
    return &rows[n_rows++];
}

/* The functions of ops.h that give tensors: `LS_API ls_tensor *ls_NAME(`. */
static void read_header(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/../include/lockstep/ops.h", case_root());
    FILE *in = fopen(path, "r");
    size_t length = in ? fread(header, 1, sizeof header - 1, in) : 0;
    if (in)
        fclose(in);
    if (length == 0 || length == sizeof header - 1)
        fail_msg("cannot read %s, or it is too long", path);
    char *lines = NULL;
    for (char *line = strtok_r(header, "\n", &lines); line; line = strtok_r(NULL, "\n", &lines)) {
        char *name = strstr(line, " *ls_");
        if (!name || (strncmp(line, "LS_API ls_tensor *ls_", 21) != 0 &&
                      strncmp(line, "LS_API ls_value *ls_", 20) != 0))
            continue;
        name += 5;
        name[strcspn(name, "(")] = '\0';
        add_row(name)->in_header = true;
    }
}

static int load(void **state)
{
    (void)state;
    for (int i = 0; ls_op_at(i); i++)
        if (!(ls_op_at(i)->flags & LS__OP_FUSED)) /* traced tests hold those to what they replace */
            add_row(ls_op_at(i)->name);
    read_header();
    for (int i = 0; case_function_at(i); i++)
        add_row(case_function_at(i));
    read_cases();
    read_exemptions();
    return 0;
}

static int unload(void **state)
{
    (void)state;
    for (int i = 0; i < n_files; i++)
        case_file_free(&files[i]);
    free(files);
    return 0;
}

/* ---- exemptions: each must still apply --------------------------------------------- */

/* In this dtype, f64 being that of finite differences. */
static bool is_reached(const row *r, const row *from, ls_dtype dtype)
{
    for (int i = 0; i < n_files; i++)
        for (int k = 0; k < files[i].count; k++) {
            const test_case *c = &files[i].cases[k];
            if (!strcmp(c->op, from->name) && c->n_grad && case_dtype(c, from->input) == dtype &&
                !case_is_empty(c) && (dtype != LS_F64 || case_has_second(c)) &&
                case_reaches(c, r->op))
                return true;
        }
    return false;
}

static const char *apply_through(row *r, const exemption *e)
{
    const row *other = row_named(e->other);
    if (!other)
        return "the other row does not exist";
    if (r->sample)
        return "the row has golden cases of its own";
    if (!r->op || !r->op->gradient)
        return "only a row with a gradient is noted on a tape";
    if (!is_reached(r, other, LS_F32))
        return "no f32 gradient of the other row runs it";
    if (!is_reached(r, other, LS_F64))
        return "no f64 gradient of the other row runs it";
    r->through = e->other;
    return NULL;
}

static const char *apply_kind(row *r, const exemption *e)
{
    bool known = false, useful = false;
    for (kind k = 0; k < KINDS; k++) {
        if (strcmp(e->kind, kind_names[k]) && strcmp(e->kind, "all"))
            continue;
        known = true;
        useful = useful || (needs(r, k) && !r->has[k]);
        if (r->has[k])
            return "the row has the case after all";
        r->exempt[k] = true;
    }
    if (!known)
        return "kinds are golden, dtypes, fd, second, zero, bad, function, all";
    return useful ? NULL : "the row does not need the case";
}

static void test_exemptions(void **state)
{
    (void)state;
    int bad = 0;
    for (int i = 0; i < n_exemptions; i++) {
        const exemption *e = &exemptions[i];
        row *r = row_named(e->row);
        const char *stale = !r            ? "the row does not exist"
                            : e->other[0] ? apply_through(r, e)
                                          : apply_kind(r, e);
        if (stale)
            print_error("exempt.txt:%d: %s: %s\n", e->line, e->row, stale);
        bad += stale != NULL;
    }
    assert_int_equal(bad, 0);
}

/* ---- the walk ------------------------------------------------------------------------ */

static bool covered(const row *r, kind k)
{
    if (!needs(r, k) || r->has[k] || r->exempt[k])
        return true;
    if (!r->through || k == BAD)
        return r->through != NULL; /* NULL inputs of every row: bad_input_test */
    const row *other = row_named(r->through);
    return other && (other->has[k] || other->exempt[k]);
}

static void tell(const row *r, kind k)
{
    int d = k == DTYPES && r->sample ? missing_dtype(r) : -1;
    if (d < 0)
        print_error("operator %s has no %s\n", r->name, kind_texts[k]);
    else
        print_error("operator %s takes %s but has no golden %s of it\n", r->name,
                    ls_dtype_name(dtypes[d]), r->golden[d] ? "gradient" : "case");
}

static void test_every_row(void **state)
{
    (void)state;
    int bad = 0;
    for (int i = 0; i < n_rows; i++)
        for (kind k = 0; k < KINDS; k++)
            if (!covered(&rows[i], k)) {
                tell(&rows[i], k);
                bad++;
            }
    assert_true(n_rows > 0);
    assert_int_equal(bad, 0);
}

/* A case of an operator that does not exist tests nothing. */
static void test_every_case(void **state)
{
    (void)state;
    char **paths;
    int count = case_list("golden", &paths), bad = 0;
    for (int i = 0; i < count; i++) {
        char name[64];
        const char *base = strrchr(paths[i], '/') + 1;
        snprintf(name, sizeof name, "%.*s", (int)(strlen(base) - 4), base);
        if (!case_known(name)) {
            print_error("%s: there is no operator %s\n", paths[i], name);
            bad++;
        }
    }
    case_list_free(count, paths);
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exemptions), /* first: it applies them */
        cmocka_unit_test(test_every_row),
        cmocka_unit_test(test_every_case),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
