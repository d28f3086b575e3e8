/*
 * Does every operator have its cases? Walks the table and asks of each row: a
 * golden case, one for finite differences and one for second gradients (rows
 * with a gradient), one with no elements, one of bad input. What a row cannot
 * have is said, with the reason, in cases/exempt.txt:
 *
 *     random_normal golden "draws cannot equal TensorFlow's"
 *     relu_grad through relu
 *
 * `through` is for rows that only run inside another's gradient, whose cases
 * then reach them. A line that no longer applies fails this test too.
 */
#include <lockstep/operator.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/case.h"

typedef enum kind { GOLDEN, DIFFERENCES, SECOND, EMPTY, BAD, KINDS } kind;

static const char *const kind_names[KINDS] = { "golden", "fd", "second", "zero", "bad" };
static const char *const kind_texts[KINDS] = { "golden case", "finite-difference case",
                                               "second-gradient case", "0-row case",
                                               "bad-input case" };

enum { MOST_ROWS = 512, MOST_LINES = 256 };

typedef struct row {
    const ls_op *op;
    bool has[KINDS], exempt[KINDS];
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

static row *row_named(const char *name)
{
    for (int i = 0; i < n_rows; i++)
        if (!strcmp(rows[i].op->name, name))
            return &rows[i];
    return NULL;
}

static bool needs(const row *r, kind k)
{
    return (k != DIFFERENCES && k != SECOND) || r->op->gradient;
}

/* ---- what there is -------------------------------------------------------------- */

static void note_case(const test_case *c)
{
    row *r = row_named(c->op);
    if (!r)
        return; /* a public function made of rows */
    if (c->fail) {
        r->has[BAD] = true;
        return;
    }
    r->has[GOLDEN] = true;
    r->has[DIFFERENCES] = r->has[DIFFERENCES] || case_has_fd(c);
    r->has[SECOND] = r->has[SECOND] || case_has_second(c);
    r->has[EMPTY] = r->has[EMPTY] || case_is_empty(c);
}

static void note_file(const char *path)
{
    case_file file;
    if (!case_file_read(path, &file))
        fail_msg("%s", case_problem());
    for (int i = 0; i < file.count; i++)
        note_case(&file.cases[i]);
    case_file_free(&file);
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

static int load(void **state)
{
    (void)state;
    for (n_rows = 0; n_rows < MOST_ROWS && ls_op_at(n_rows); n_rows++)
        rows[n_rows] = (row){ .op = ls_op_at(n_rows) };
    char **paths;
    int count = case_list("golden", &paths);
    if (count < 0)
        fail_msg("%s", case_problem());
    for (int i = 0; i < count; i++)
        note_file(paths[i]);
    case_list_free(count, paths);
    char path[512];
    snprintf(path, sizeof path, "%s/cases/bad_input.txt", case_root());
    note_file(path);
    read_exemptions();
    return 0;
}

/* ---- exemptions: each must still apply --------------------------------------------- */

static const char *apply_through(row *r, const exemption *e)
{
    const row *other = row_named(e->other);
    if (!other)
        return "the other row does not exist";
    if (r->has[GOLDEN])
        return "the row has golden cases of its own";
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
        return "kinds are golden, fd, second, zero, bad, all";
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

static void test_every_row(void **state)
{
    (void)state;
    int bad = 0;
    for (int i = 0; i < n_rows; i++)
        for (kind k = 0; k < KINDS; k++)
            if (!covered(&rows[i], k)) {
                print_error("row %s has no %s\n", rows[i].op->name, kind_texts[k]);
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
    return cmocka_run_group_tests(tests, load, NULL);
}
