/*
 * Examples against TensorFlow: golden_examples.txt (made by tools/golden_examples.py, which says
 * what its lines are) has serialised examples and what tf.io.parse_example gives for them, examples
 * that it refuses, and dicts with the bytes that protobuf makes of them.
 */
#include <lockstep.h>

#include <stdio.h>
#include <stdlib.h>

#include "data/example_test_support.h"

enum { MOST_WORDS = 400, MOST_FEATURES = 32, MOST_EXAMPLES = 32 };

typedef struct line {
    char text[40000];
    char *words[MOST_WORDS];
    int n;
} line;

typedef struct answer {
    line counts, values; /* as they are in the file; n 0 when there are none */
} answer;

typedef struct golden {
    char name[64];
    bytes examples[MOST_EXAMPLES];
    int n_examples;
    ls_feature features[MOST_FEATURES];
    char keys[MOST_FEATURES][32];
    answer *answers[MOST_FEATURES];
    int n_features;
    bool refused;
    ls_value *leaves[MOST_FEATURES]; /* of a dict to be made */
    int n_leaves;
    bytes made;
    bool has_made;
} golden;

/* ---- reading the file ---------------------------------------------------------------------------- */

static bool read_line(FILE *f, line *l)
{
    l->n = 0;
    if (!fgets(l->text, sizeof l->text, f))
        return false;
    char *save = NULL;
    for (char *word = strtok_r(l->text, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
        assert_true(l->n < MOST_WORDS);
        l->words[l->n++] = word;
    }
    return l->n > 0;
}

static void from_hex(const char *word, bytes *out)
{
    out->n = 0;
    for (; word[0] && word[0] != '-'; word += 2) {
        unsigned byte;
        assert_int_equal(sscanf(word, "%2x", &byte), 1);
        put(out, &(uint8_t){ (uint8_t)byte }, 1);
    }
}

static ls_dtype dtype_of(const char *name)
{
    for (int d = LS_F32; d <= LS_BYTES; d++)
        if (strcmp(ls_dtype_name((ls_dtype)d), name) == 0)
            return (ls_dtype)d;
    fail_msg("no dtype %s", name);
    return LS_F32;
}

static const char *key_of(golden *g, int i, const char *word)
{
    snprintf(g->keys[i], sizeof g->keys[i], "%s", strcmp(word, "..") ? word : "");
    return g->keys[i];
}

static void add_feature(golden *g, const line *l)
{
    assert_true(g->n_features < MOST_FEATURES && l->n >= 4);
    int k = g->n_features++, at = 4;
    ls_feature *f = &g->features[k];
    *f = (ls_feature){ .key = key_of(g, k, l->words[1]), .dtype = dtype_of(l->words[2]) };
    f->variable = strcmp(l->words[3], "variable") == 0;
    f->has_missing = strcmp(l->words[3], "missing") == 0;
    if (f->has_missing)
        f->missing = strtod(l->words[at++], NULL);
    if (!f->variable)
        f->rank = atoi(l->words[at++]);
    for (int i = 0; i < f->rank; i++)
        f->dims[i] = atoll(l->words[at++]);
    assert_int_equal(at, l->n);
    g->answers[k] = calloc(1, sizeof *g->answers[k]);
    assert_non_null(g->answers[k]);
}

static void add_leaf(golden *g, const line *l)
{
    int k = g->n_leaves++, rank = atoi(l->words[3]), at = 4;
    ls_dtype dtype = dtype_of(l->words[2]);
    int64_t dims[LS_MAX_RANK], count = 1;
    key_of(g, k, l->words[1]);
    for (int i = 0; i < rank; i++)
        count *= dims[i] = atoll(l->words[at++]);
    static bytes parts[8];
    const void *strings[8];
    size_t lengths[8];
    for (int i = 0; at + i < l->n; i++) {
        from_hex(l->words[at + i], &parts[i]);
        strings[i] = parts[i].at;
        lengths[i] = parts[i].n;
    }
    assert_true(dtype != LS_BYTES || at + count == l->n);
    g->leaves[k] = ls_leaf(dtype == LS_BYTES ? ls_from_strings(rank, dims, strings, lengths)
                                             : ls_from(dtype, rank, dims, parts[0].at));
    assert_non_null(g->leaves[k]);
}

/* A line keeps its words when it moves. */
static void move_line(line *to, const line *from)
{
    *to = *from;
    for (int i = 0; i < from->n; i++)
        to->words[i] = to->text + (from->words[i] - from->text);
}

static void add_line(golden *g, const line *l)
{
    const char *what = l->words[0];
    answer *a = g->n_features ? g->answers[g->n_features - 1] : NULL;
    if (strcmp(what, "example") == 0)
        from_hex(l->words[1], &g->examples[g->n_examples++]);
    else if (strcmp(what, "feature") == 0)
        add_feature(g, l);
    else if (strcmp(what, "counts") == 0 && a)
        move_line(&a->counts, l);
    else if (strcmp(what, "values") == 0 && a)
        move_line(&a->values, l);
    else if (strcmp(what, "refused") == 0)
        g->refused = true;
    else if (strcmp(what, "leaf") == 0)
        add_leaf(g, l);
    else if (strcmp(what, "made") == 0)
        from_hex(l->words[1], &g->made), g->has_made = true;
    else
        fail_msg("%s: what is '%s'?", g->name, what);
    assert_true(g->n_examples < MOST_EXAMPLES && g->n_leaves < MOST_FEATURES);
}

/* ---- comparing -------------------------------------------------------------------------------------- */

static bool same_value(const ls_tensor *t, int i, const char *want)
{
    const void *data;
    size_t length;
    static bytes b;
    if (ls_dtype_of(t) == LS_I64)
        return ((const int64_t *)ls_data(t))[i] == strtoll(want, NULL, 10);
    if (ls_dtype_of(t) == LS_F32)
        return ((const uint32_t *)ls_data(t))[i] == strtoul(want, NULL, 16);
    from_hex(want, &b);
    return !ls_string_at(t, i, &data, &length) && length == b.n && memcmp(data, b.at, length) == 0;
}

static void same_values(const golden *g, int k, const ls_tensor *t, const line *want)
{
    if (ls_count(t) != want->n - 1)
        fail_msg("%s: %s gives %s, wanted %d", g->name, g->keys[k], ls_describe(t), want->n - 1);
    for (int i = 0; i < want->n - 1; i++)
        if (!same_value(t, i, want->words[i + 1]))
            fail_msg("%s: value %d of %s is not %s", g->name, i, g->keys[k], want->words[i + 1]);
}

static void check_parsed(const golden *g)
{
    const uint8_t *data[MOST_EXAMPLES];
    size_t lengths[MOST_EXAMPLES];
    for (int i = 0; i < g->n_examples; i++) {
        data[i] = g->examples[i].at;
        lengths[i] = g->examples[i].n;
    }
    ls_value *v =
        ls_parse_examples(exact_strings(g->n_examples, data, lengths), g->n_features, g->features);
    if (g->refused) {
        ls_status st = ls_error();
        if (v || (st != LS_CORRUPT && st != LS_SHAPE && st != LS_NOT_FOUND))
            fail_msg("%s: TensorFlow refuses it; %s", g->name, v ? "we do not" : ls_error_report());
        return;
    }
    if (!v)
        fail_msg("%s: %s", g->name, ls_error_report());
    for (int k = 0; k < g->n_features; k++) {
        const ls_value *got = ls_get(v, g->keys[k]);
        const ls_feature *f = &g->features[k];
        const answer *want = g->answers[k];
        if (f->variable) {
            same_values(g, k, ls_leaf_tensor(ls_get(got, "counts")), &want->counts);
            got = ls_get(got, "values");
        } else {
            assert_int_equal(ls_rank(ls_leaf_tensor(got)), f->rank + 1);
        }
        same_values(g, k, ls_leaf_tensor(got), &want->values);
    }
}

static void check_made(const golden *g)
{
    const char *keys[MOST_FEATURES];
    const void *data;
    size_t length;
    for (int i = 0; i < g->n_leaves; i++)
        keys[i] = g->keys[i];
    ls_tensor *t = ls_make_example(ls_dict(g->n_leaves, keys, g->leaves));
    if (ls_string_at(t, 0, &data, &length))
        fail_msg("%s: %s", g->name, ls_error_report());
    if (length != g->made.n || memcmp(data, g->made.at, length) != 0)
        fail_msg("%s: %zu bytes, and not the %zu of protobuf", g->name, length, g->made.n);
}

/* ---- all cases ---------------------------------------------------------------------------------------- */

static int parsed_cases, refused_cases, made_cases;

static void check(golden *g)
{
    if (g->has_made)
        check_made(g);
    else
        check_parsed(g);
    *(g->has_made ? &made_cases : g->refused ? &refused_cases : &parsed_cases) += 1;
    for (int k = 0; k < g->n_features; k++)
        free(g->answers[k]);
}

static void as_tensorflow(void **state)
{
    (void)state;
    char path[4096];
    const char *folder = getenv("LOCKSTEP_TEST_DIR");
    snprintf(path, sizeof path, "%s/golden_examples.txt", folder ? folder : "tests");
    FILE *f = fopen(path, "r");
    if (!f)
        fail_msg("cannot open %s", path);
    static golden g;
    static line l;
    bool more = read_line(f, &l);
    while (more) {
        assert_string_equal(l.words[0], "case");
        LS_FRAME {
            memset(&g, 0, sizeof g);
            snprintf(g.name, sizeof g.name, "%s", l.words[1]);
            while ((more = read_line(f, &l)) && strcmp(l.words[0], "case") != 0)
                add_line(&g, &l);
            check(&g);
        }
    }
    assert_true(feof(f));
    fclose(f);
    assert_true(parsed_cases >= 20 && refused_cases >= 30 && made_cases >= 5);
    assert_int_equal(ls_error_pending(), LS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test_setup(as_tensorflow, clean) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
