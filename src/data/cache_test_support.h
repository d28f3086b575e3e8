/*
 * What tests of caches share: sources that count how often they are read, one light and one not, and
 * going through datasets.
 */
#ifndef LS__DATA_CACHE_TEST_SUPPORT_H
#define LS__DATA_CACHE_TEST_SUPPORT_H

#include <lockstep.h>
#include <stdlib.h>

#include "data/iterator.h"
#include "tensor/test_support.h"

static inline void failed_with(ls_status want, const char *word)
{
    if (!want || ls_error_pending() != want || !strstr(ls_error_text(), word))
        fail_msg("wanted %s with '%s', got %s", ls_status_name(want), word, ls_error_report());
    ls_error();
}

/* What both sources do: i64[], the squares of 0 up to n; element fail_at (-1: none) fails. */
typedef struct recipe {
    int64_t n, fail_at;
    _Atomic int64_t opened, reads;
    bool seen_iteration_1;
} recipe;

/* ---- light ------------------------------------------------------------------------------------- */

typedef struct squares_state {
    int64_t at, number[64];
} squares_state;

static inline recipe *recipe_of(const ls__it *it)
{
    return *(recipe *const *)it->dataset->options;
}

static ls_status squares_open(ls__it *it)
{
    it->words = 2; /* one of them says nothing */
    it->light = true;
    recipe_of(it)->opened++;
    if (it->how.iteration)
        recipe_of(it)->seen_iteration_1 = true;
    return LS_OK;
}

static void squares_close(ls__it *it)
{
    (void)it;
}

static ls_status squares_pull(ls__it *it, int most, ls__chunk *out)
{
    squares_state *s = it->state;
    recipe *r = recipe_of(it);
    int n = most < 64 ? most : 64;
    if (s->at >= r->n)
        return LS_END;
    if (s->at == r->fail_at) {
        s->at++;
        return ls__fail(LS_CORRUPT, "squares: element %lld", (long long)s->at - 1);
    }
    ls_status st = ls__chunk_room(out, n, 1, 2);
    if (st)
        return st;
    out->structure = ls__type_structure(it->dataset->type);
    while (out->n < n && s->at < r->n && s->at != r->fail_at) {
        s->number[out->n] = s->at * s->at;
        *ls__chunk_datum(out, out->n, 0) = (ls__datum){ .spec = { .dtype = LS_I64 },
                                                        .data = &s->number[out->n],
                                                        .bytes = sizeof *s->number };
        ls__chunk_after(out, out->n)[0] = ++s->at;
        ls__chunk_after(out, out->n)[1] = -7;
        out->n++;
        r->reads++;
    }
    return LS_OK;
}

static void squares_words(ls__it *it, int64_t *words)
{
    words[0] = ((squares_state *)it->state)->at;
    words[1] = -7;
}

static ls_status squares_go(ls__it *it, const int64_t *words)
{
    assert_int_equal(words[1], -7);
    ((squares_state *)it->state)->at = words[0];
    return LS_OK;
}

static const ls__stage squares_stage = { .name = "squares",
                                         .state_bytes = sizeof(squares_state),
                                         .open = squares_open,
                                         .close = squares_close,
                                         .pull = squares_pull,
                                         .words_now = squares_words,
                                         .go = squares_go };

static inline ls_dataset *light_squares(recipe *r)
{
    ls__dataset_draft draft = { .stage = &squares_stage, .cardinality = LS_UNKNOWN };
    recipe **o = ls__dataset_options(&draft, sizeof *o, NULL);
    assert_non_null(o);
    *o = r;
    assert_int_equal(ls__type_parse("squares", "i64[]", &draft.type), LS_OK);
    return ls__dataset_new(&draft, "squares %lld", (long long)r->n);
}

/* ---- not light ----------------------------------------------------------------------------------- */

typedef struct made {
    recipe *recipe;
    int64_t at;
} made;

static void *made_open(void *user, int64_t iteration)
{
    made *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->recipe = user;
    m->recipe->opened++;
    if (iteration)
        m->recipe->seen_iteration_1 = true;
    return m;
}

static ls_status made_next(void *state, ls_value **out)
{
    made *m = state;
    if (m->at < 0 || m->at >= m->recipe->n) /* a damaged position may be any */
        return LS_END;
    int64_t number = m->at++;
    if (number == m->recipe->fail_at)
        return LS_CORRUPT;
    m->recipe->reads++;
    *out = ls_leaf(ls_scalar_int(LS_I64, number * number));
    return LS_OK;
}

static ls_tensor *made_save(void *state)
{
    return ls_from(LS_U8, LS_DIMS(8), &((made *)state)->at);
}

static ls_status made_load(void *state, const ls_tensor *saved)
{
    return ls_copy_out(saved, &((made *)state)->at, 8);
}

static inline ls_dataset *made_squares(recipe *r, bool can_save)
{
    return ls_generate(LS_GENERATOR(.user = r, .open = made_open, .close = free, .next = made_next,
                                    .save = can_save ? made_save : NULL,
                                    .load = can_save ? made_load : NULL));
}

/* ---- going through ---------------------------------------------------------------------------------- */

/* The next element; -1 at the end. */
static inline int64_t next_number(ls_iterator *it)
{
    ls_value *v = NULL;
    int64_t number = -1;
    LS_FRAME {
        ls_status st = ls_next(it, &v);
        if (st && st != LS_END)
            fail_msg("%s", ls_error_report());
        if (!st)
            number = ls_to_int(ls_leaf_tensor(v));
    }
    return number;
}

/* From element `at` to the end, and no further. */
static inline void check_rest(ls_iterator *it, int64_t at, int64_t n)
{
    for (; at < n; at++)
        assert_int_equal(next_number(it), at * at);
    assert_int_equal(next_number(it), -1);
    assert_int_equal(next_number(it), -1);
}

static inline void check_all(ls_dataset *d, int64_t n)
{
    ls_iterator *it = ls_iterate(d);
    if (!it)
        fail_msg("%s", ls_error_report());
    check_rest(it, 0, n);
    ls_iterator_free(it);
}

static inline bool same_bytes(const ls_tensor *a, const ls_tensor *b)
{
    return a && b && ls_count(a) == ls_count(b) &&
           !memcmp(ls_data(a), ls_data(b), (size_t)ls_count(a));
}

/* ---- elements of all kinds --------------------------------------------------------------------------- */

/* Four rows of all dtypes in a nest; strings of any bytes, and leaves with nothing in them. */
static inline ls_dataset *all_kinds(void)
{
    static const float f[12] = { 1, -2, 3.5f, 4, 5, 6, 7, 8, 9, 10, 11, -0.0f };
    static const double g[4] = { 1e300, 2, -3, 4 };
    static const int32_t i[8] = { 1, -2, 3, 4, 5, 6, 7, INT32_MIN };
    static const int64_t l[4] = { INT64_MIN, 2, 3, INT64_MAX };
    static const uint8_t u[20] = { 255, 1, 2, 3, 4, 5, 6, 7, 8, 9 };
    static const uint8_t b[4] = { 1, 0, 0, 1 };
    static const uint16_t h[4] = { 0x3f80, 0, 0x7fc0, 1 };
    const void *s[8] = { "a", "", "longer than that", "\0x", "b", "cc", "ddd", "\xff" };
    const size_t n[8] = { 1, 0, 16, 2, 1, 2, 3, 1 };
    ls_value *list = ls_list(4, (ls_value *[]){ ls_leaf(ls_from(LS_U8, LS_DIMS(4, 5), u)),
                                                ls_leaf(ls_from(LS_BOOL, LS_DIMS(4), b)),
                                                ls_leaf(ls_from(LS_BF16, LS_DIMS(4, 1), h)),
                                                ls_leaf(ls_from_strings(LS_DIMS(4), s, n)) });
    return ls_slices(ls_dict(
        6, (const char *[]){ "floats: {", "doubles", "", "longs", "empty", "a list" },
        (ls_value *[]){
            ls_leaf(ls_from(LS_F32, LS_DIMS(4, 3), f)), ls_leaf(ls_from(LS_F64, LS_DIMS(4), g)),
            ls_leaf(ls_from(LS_I32, LS_DIMS(4, 2), i)), ls_leaf(ls_from(LS_I64, LS_DIMS(4), l)),
            ls_leaf(ls_from(LS_F32, LS_DIMS(4, 2, 0), f)), list }));
}

/* Arrays of strings, also without any. */
static inline ls_dataset *string_arrays(void)
{
    const void *s[4] = { "a", "", "longer than that", "\0x" };
    const size_t n[4] = { 1, 0, 16, 2 };
    return ls_once(ls_tensors(2, (ls_tensor *[]){ ls_from_strings(LS_DIMS(2, 2), s, n),
                                                  ls_from_strings(LS_DIMS(0, 3), s, n) }));
}

static inline void same_tensor(const ls_tensor *a, const ls_tensor *b)
{
    assert_string_equal(ls_describe(a), ls_describe(b));
    if (ls_dtype_of(a) != LS_BYTES) {
        if (ls_count(a))
            assert_memory_equal(ls_data(a), ls_data(b), ls_size_in_bytes(a));
        return;
    }
    for (int64_t i = 0; i < ls_count(a); i++) {
        const void *x, *y;
        size_t n, m;
        assert_int_equal(ls_string_at(a, i, &x, &n), LS_OK);
        assert_int_equal(ls_string_at(b, i, &y, &m), LS_OK);
        assert_int_equal(n, m);
        assert_memory_equal(x, y, n);
    }
}

static inline void same_elements(ls_dataset *a, ls_dataset *b, int want)
{
    ls_iterator *x = ls_iterate(a), *y = ls_iterate(b);
    assert_non_null(x);
    assert_non_null(y);
    int n = 0;
    for (;; n++) {
        ls_value *v = NULL, *w = NULL;
        ls_tensor *p[16], *q[16];
        ls_status st = ls_next(x, &v);
        assert_int_equal(ls_next(y, &w), st);
        if (st == LS_END)
            break;
        assert_int_equal(st, LS_OK);
        assert_int_equal(ls_same_structure(v, w), LS_OK);
        assert_int_equal(ls_flatten(v, p), LS_OK);
        assert_int_equal(ls_flatten(w, q), LS_OK);
        for (int k = 0; k < ls_leaf_count(v); k++)
            same_tensor(p[k], q[k]);
    }
    assert_int_equal(n, want);
    ls_iterator_free(x);
    ls_iterator_free(y);
}

#endif
