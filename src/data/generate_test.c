/*
 * Generators: what programs make, what they may do wrong, and going on elsewhere.
 */
#include <lockstep.h>
#include <lockstep/random.h>
#include <stdlib.h>

#include "data/iterator.h"
#include "tensor/test_support.h"

static void failed_with(ls_status want, const char *word)
{
    if (!want || ls_error_pending() != want || !strstr(ls_error_text(), word))
        fail_msg("wanted %s with '%s', got %s", ls_status_name(want), word, ls_error_report());
    ls_error();
}

/* ---- a generator that counts --------------------------------------------------------------------- */

enum { GOOD, SAYS_WHY, SAYS_NOTHING, LEAVES_ERROR, NO_VALUE, LEAVES_FRAME, WRONG_LEAF, WRONG_NEST };

typedef struct recipe {
    int64_t n;
    int64_t bad_at; /* the call of next that goes wrong */
    int how;
    bool bad_save;
    int opened, closed, nexts, saves;
    int64_t iteration; /* of the last open */
} recipe;

typedef struct counter {
    recipe *recipe;
    int64_t at;
} counter;

static void *begin(void *user, int64_t iteration)
{
    recipe *r = user;
    if (r->n < 0) {
        ls_from(LS_F32, LS_DIMS(-1), NULL); /* fails */
        return NULL;
    }
    counter *c = calloc(1, sizeof *c);
    assert_non_null(c);
    c->recipe = r;
    r->opened++;
    r->iteration = iteration;
    return c;
}

static void end(void *state)
{
    ((counter *)state)->recipe->closed++;
    free(state);
}

static ls_status go_wrong(int how, ls_value **out)
{
    switch (how) {
    case SAYS_WHY:
        ls_to_int(NULL);
        return LS_CORRUPT;
    case SAYS_NOTHING:
        return LS_IO;
    case LEAVES_ERROR:
        *out = ls_leaf(ls_scalar_int(LS_I64, 7));
        ls_to_int(NULL);
        return LS_OK;
    case LEAVES_FRAME:
        *out = ls_leaf(ls_scalar_int(LS_I64, 7));
        ls_frame_open();
        return LS_OK;
    case WRONG_LEAF:
        *out = ls_leaf(ls_scalar(LS_F32, 1));
        return LS_OK;
    case WRONG_NEST:
        *out = ls_tensors(1, (ls_tensor *[]){ ls_scalar_int(LS_I64, 7) });
        return LS_OK;
    default:
        return LS_OK; /* no value */
    }
}

static ls_status count(void *state, ls_value **out)
{
    counter *c = state;
    c->recipe->nexts++;
    if (c->at == c->recipe->n)
        return LS_END;
    int64_t number = c->at++;
    if (c->recipe->how != GOOD && number == c->recipe->bad_at)
        return go_wrong(c->recipe->how, out);
    *out = ls_leaf(ls_scalar_int(LS_I64, number));
    return LS_OK;
}

static ls_tensor *tell(void *state)
{
    const counter *c = state;
    c->recipe->saves++;
    if (c->recipe->bad_save && c->at == 3)
        return ls_scalar(LS_F32, 1);
    return ls_from(LS_U8, LS_DIMS(sizeof c->at), &c->at);
}

static ls_status resume(void *state, const ls_tensor *saved)
{
    counter *c = state;
    return ls_copy_out(saved, &c->at, sizeof c->at);
}

static ls_dataset *counting(recipe *r, const char *spec)
{
    return ls_generate(LS_GENERATOR(.user = r, .open = begin, .close = end, .next = count,
                                    .save = tell, .load = resume, .spec = spec));
}

static int64_t number_of(const ls_value *v)
{
    return ls_to_int(ls_leaf_tensor(v));
}

/* The next element's number; -1 at the end. */
static int64_t next_number(ls_iterator *it)
{
    ls_value *v = NULL;
    ls_status st = ls_next(it, &v);
    if (st == LS_END)
        return -1;
    if (st)
        fail_msg("%s", ls_error_report());
    return number_of(v);
}

/* ---- going through ---------------------------------------------------------------------------- */

static void gives_what_next_gives(void **state)
{
    (void)state;
    recipe r = { .n = 5 };
    LS_FRAME {
        ls_dataset *d = counting(&r, NULL);
        assert_string_equal(ls_dataset_text(d), "?");
        assert_int_equal(ls_cardinality(d), LS_UNKNOWN);
        for (int turn = 0; turn < 3; turn++) {
            ls_iterator *it = ls_iterate(d);
            assert_int_equal(r.iteration, turn);
            for (int64_t i = 0; i < 5; i++)
                assert_int_equal(next_number(it), i);
            r.nexts = 0;
            for (int i = 0; i < 3; i++)
                assert_int_equal(next_number(it), -1);
            assert_int_equal(r.nexts, 1); /* at its end it is left alone */
            assert_int_equal(r.closed, turn);
            ls_iterator_free(it);
            assert_int_equal(r.closed, turn + 1);
        }
        d = ls_batch(counting(&r, "i64[]"), 2);
        assert_string_equal(ls_dataset_text(d), "i64[?]");
        int64_t sum = 0, batches = 0;
        LS_FOR_EACH (b, d) {
            sum += ls_to_int(ls_sum(ls_leaf_tensor(b), LS_ALL_AXES, false));
            batches++;
        }
        assert_int_equal(sum, 10);
        assert_int_equal(batches, 3);
    }
    assert_int_equal(r.opened, r.closed);
    assert_int_equal(ls_error_pending(), LS_OK);
}

static ls_status from_user(void *state, ls_value **out)
{
    int *left = state;
    if (*left == 0)
        return LS_END;
    const char *text = "abc";
    *out =
        ls_dict(2, (const char *[]){ "text", "number" },
                (ls_value *[]){ ls_leaf(ls_from_strings(LS_SCALAR, (const void *[]){ text }, NULL)),
                                ls_leaf(ls_scalar_int(LS_I32, (*left)--)) });
    return LS_OK;
}

static int ends;

static void count_end(void *state)
{
    (void)state;
    ends++;
}

static void without_open(void **state)
{
    (void)state;
    int left = 2;
    LS_FRAME {
        ls_dataset *d =
            ls_generate(LS_GENERATOR(.user = &left, .next = from_user, .close = count_end,
                                     .spec = "{number: i32[], text: bytes[]}"));
        ls_iterator *it = ls_iterate(d);
        ls_value *v = NULL;
        for (int i = 2; i > 0; i--) {
            const void *text;
            size_t n;
            assert_int_equal(ls_next(it, &v), LS_OK);
            assert_int_equal(number_of(ls_get(v, "number")), i);
            assert_int_equal(ls_string_at(ls_leaf_tensor(ls_get(v, "text")), 0, &text, &n), LS_OK);
            assert_int_equal(n, 3);
            assert_memory_equal(text, "abc", 3);
        }
        assert_int_equal(ls_next(it, &v), LS_END);
        ls_iterator_free(it);
        assert_int_equal(ends, 1);
    }
    assert_int_equal(ls_error_pending(), LS_OK);
}

/* ---- what can go wrong ---------------------------------------------------------------------------- */

static void goes_on_behind_a_failure(void **state)
{
    (void)state;
    static const struct {
        int how;
        ls_status st;
        const char *word;
    } cases[] = {
        { SAYS_WHY, LS_INVALID, "ls_generate: element 2: ls_to_int" },
        { SAYS_NOTHING, LS_IO, "ls_generate: element 2: the system refused" },
        { LEAVES_ERROR, LS_INVALID, "ls_generate: element 2: ls_to_int" },
        { NO_VALUE, LS_INVALID, "ls_generate: element 2: next gave LS_OK and no value" },
        { LEAVES_FRAME, LS_STATE, "ls_generate: element 2" },
        { WRONG_LEAF, LS_SHAPE, "leaf 0 of an element is f32[], of i64[]" },
        { WRONG_NEST, LS_INVALID, "ls_generate: element 2" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int known = 0; known < 2; known++) {
            recipe r = { .n = 5, .bad_at = 2, .how = cases[i].how };
            if (cases[i].how == WRONG_LEAF && !known)
                continue; /* then nobody can know */
            LS_FRAME {
                ls_iterator *it = ls_iterate(counting(&r, known ? "i64[]" : NULL));
                ls_value *v = NULL;
                assert_int_equal(next_number(it), 0);
                assert_int_equal(next_number(it), 1);
                assert_int_equal(ls_next(it, &v), cases[i].st);
                failed_with(cases[i].st, cases[i].word);
                assert_int_equal(next_number(it), 3);
                assert_int_equal(next_number(it), 4);
                assert_int_equal(next_number(it), -1);
                ls_iterator_free(it);
            }
            assert_int_equal(r.opened, r.closed);
        }
}

/* An element is given when it is there, whatever was asked for: nobody knows when the next one is. */
static void a_pull_gives_one(void **state)
{
    (void)state;
    recipe r = { .n = 6, .bad_at = 3, .how = SAYS_NOTHING };
    LS_FRAME {
        ls__going going = { 0 };
        ls__it *it;
        ls__chunk c = { 0 };
        assert_int_equal(ls__it_open(counting(&r, NULL), &(ls__opening){ .going = &going }, &it), LS_OK);
        for (int64_t i = 0; i < 6; i++) {
            assert_int_equal(ls__it_pull(it, 100, &c), i == 3 ? LS_IO : LS_OK);
            assert_int_equal(c.n, i != 3);
            if (i == 3) {
                failed_with(LS_IO, "element 3");
                continue;
            }
            assert_int_equal(*ls__chunk_after(&c, 0), i + 1); /* failures count, too */
            assert_int_equal(*(const int64_t *)ls__chunk_datum(&c, 0, 0)->data, i);
            assert_int_equal(ls_error_pending(), LS_OK);
            ls__chunk_clear(&c);
        }
        assert_int_equal(ls__it_pull(it, 100, &c), LS_END);
        assert_int_equal(ls__it_pull(it, 100, &c), LS_END);
        ls__chunk_free(&c);
        ls__it_close(it);
        assert_int_equal(going.bytes, 0);
    }
}

static void an_older_error_is_not_its_own(void **state)
{
    (void)state;
    recipe r = { .n = 3 };
    LS_FRAME {
        ls_iterator *it = ls_iterate(counting(&r, NULL));
        ls_to_int(NULL);
        for (int i = 0; i < 3; i++)
            assert_int_equal(next_number(it), i);
        assert_int_equal(next_number(it), -1);
        ls_iterator_free(it);
        failed_with(LS_INVALID, "ls_to_int");
    }
}

static void open_may_fail(void **state)
{
    (void)state;
    recipe r = { .n = -1 };
    LS_FRAME {
        assert_null(ls_iterate(counting(&r, NULL)));
        failed_with(LS_INVALID, "ls_generate, open");
        assert_int_equal(r.closed, 0);
    }
}

static void wrong_options(void **state)
{
    (void)state;
    LS_FRAME {
        ls_generator g;
        ls_generator_init(&g);
        assert_int_equal(g.size, sizeof g);
        assert_null(ls_generate(&g));
        failed_with(LS_INVALID, "next is NULL");
        g.next = count;
        g.save = tell;
        assert_null(ls_generate(&g));
        failed_with(LS_INVALID, "save without load");
        g.save = NULL;
        g.load = resume;
        assert_null(ls_generate(&g));
        failed_with(LS_INVALID, "load without save");
        g.load = NULL;
        g.spec = "i64[";
        assert_null(ls_generate(&g));
        failed_with(LS_INVALID, "ls_generate: the spec");
        g.spec = NULL;
        g.size = 8;
        assert_null(ls_generate(&g));
        failed_with(LS_INVALID, "options of 8 bytes");
        assert_null(ls_generate(NULL));
        failed_with(LS_INVALID, "NULL");
        ls_generator_init(NULL);
    }
}

/* ---- positions --------------------------------------------------------------------------------------- */

static bool same_bytes(const ls_tensor *a, const ls_tensor *b)
{
    return ls_count(a) == ls_count(b) && !memcmp(ls_data(a), ls_data(b), (size_t)ls_count(a));
}

static void goes_on_elsewhere(void **state)
{
    (void)state;
    recipe r = { .n = 10 };
    for (int at = 0; at <= 10; at++)
        LS_FRAME {
            ls_iterator *it = ls_iterate(counting(&r, NULL));
            ls_iterator *other = ls_iterate(counting(&r, NULL)); /* as another process makes it */
            for (int i = 0; i < at; i++)
                assert_int_equal(next_number(it), i);
            r.nexts = 0;
            assert_int_equal(ls_seek(other, ls_position(it)), LS_OK);
            assert_true(same_bytes(ls_position(it), ls_position(other)));
            assert_int_equal(r.nexts, 0);
            assert_int_equal(r.iteration, 0);
            for (int i = at; i < 10; i++) {
                assert_int_equal(next_number(other), i);
                assert_int_equal(next_number(it), i);
                assert_true(same_bytes(ls_position(it), ls_position(other)));
            }
            assert_int_equal(next_number(other), -1);
            ls_iterator_free(it);
            ls_iterator_free(other);
        }
    assert_int_equal(r.opened, r.closed);
    assert_int_equal(ls_error_pending(), LS_OK);
}

/* Elements that are still on their way can be saved, and those that are not are forgotten. */
static void remembers_until_released(void **state)
{
    (void)state;
    recipe r = { .n = 40 };
    LS_FRAME {
        ls_dataset *d = counting(&r, NULL);
        ls__going going = { 0 };
        ls__it *it, *other;
        ls__chunk c = { 0 };
        assert_int_equal(ls__it_open(d, &(ls__opening){ .going = &going }, &it), LS_OK);
        int64_t after[40];
        for (int i = 0; i < 40; i++) {
            assert_int_equal(ls__it_pull(it, 40, &c), LS_OK);
            after[i] = *ls__chunk_after(&c, 0);
            ls__chunk_clear(&c);
        }
        assert_int_equal(going.bytes, 40 * sizeof(int64_t));
        for (int i = 0; i < 40; i++) {
            ls__bytes_out bytes = { 0 };
            assert_int_equal(ls__it_save(it, &after[i], &bytes), LS_OK);
            assert_int_equal(ls__it_open(d, &(ls__opening){ .going = &going }, &other), LS_OK);
            ls__bytes_in from = { bytes.at, bytes.at + bytes.used };
            assert_int_equal(ls__it_load(other, &from), LS_OK);
            assert_true(from.at == from.end);
            ls__bytes_out_free(&bytes);
            ls__chunk one = { 0 };
            assert_int_equal(ls__it_pull(other, 1, &one), i < 39 ? LS_OK : LS_END);
            if (i < 39)
                assert_int_equal(*(const int64_t *)ls__chunk_datum(&one, 0, 0)->data, i + 1);
            ls__chunk_free(&one);
            ls__it_close(other);
            ls__it_release(it, &after[i]);
            assert_int_equal(going.bytes, (int64_t)((size_t)(40 - i) * sizeof(int64_t)));
        }
        ls__chunk_free(&c);
        ls__it_close(it);
        assert_int_equal(going.bytes, 0);
    }
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void what_cannot_be_saved(void **state)
{
    (void)state;
    int left = 3;
    LS_FRAME {
        ls_dataset *d = ls_generate(LS_GENERATOR(.user = &left, .next = from_user));
        ls_iterator *it = ls_iterate(d);
        ls_value *v = NULL;
        assert_null(ls_position(it));
        failed_with(LS_UNSUPPORTED, "without save and load");
        assert_int_equal(ls_next(it, &v), LS_OK);
        assert_null(ls_position(it));
        failed_with(LS_UNSUPPORTED, "without save and load");
        ls_iterator_free(it);

        recipe r = { .n = 10, .bad_save = true }; /* after the third element */
        it = ls_iterate(counting(&r, NULL));
        for (int i = 0; i < 3; i++)
            assert_int_equal(next_number(it), i);
        assert_int_equal(ls_error_pending(), LS_OK);
        assert_null(ls_position(it));
        failed_with(LS_SHAPE, "save gave f32[]");
        assert_int_equal(next_number(it), 3);
        ls_tensor *position = ls_position(it);
        assert_non_null(position);
        ls_iterator *other = ls_iterate(
            ls_generate(LS_GENERATOR(.user = &r, .open = begin, .close = end, .next = count)));
        assert_int_equal(ls_seek(other, position), LS_UNSUPPORTED);
        failed_with(LS_UNSUPPORTED, "without load");
        ls_iterator_free(other);
        ls_iterator_free(it);
    }
}

static ls_status fails_to_load(void *state, const ls_tensor *saved)
{
    (void)state;
    (void)saved;
    return LS_NOT_FOUND;
}

static void load_may_fail(void **state)
{
    (void)state;
    recipe r = { .n = 10 };
    LS_FRAME {
        ls_iterator *it = ls_iterate(counting(&r, NULL));
        assert_int_equal(next_number(it), 0);
        ls_iterator *other = ls_iterate(
            ls_generate(LS_GENERATOR(.user = &r, .open = begin, .close = end, .next = count,
                                     .save = tell, .load = fails_to_load)));
        assert_int_equal(ls_seek(other, ls_position(it)), LS_NOT_FOUND);
        failed_with(LS_NOT_FOUND, "ls_generate, load");
        ls_iterator_free(other);
        ls_iterator_free(it);
    }
    assert_int_equal(r.opened, r.closed);
}

/* ---- draws -------------------------------------------------------------------------------------------- */

static ls_status draw(void *state, ls_value **out)
{
    counter *c = state;
    c->at++;
    *out = ls_leaf(ls_random_uniform(LS_F32, LS_SCALAR, 0, 1));
    return LS_OK;
}

static void draws_depend_on_the_number(void **state)
{
    (void)state;
    recipe r = { .n = 10 };
    LS_FRAME {
        ls_generator g = { .size = sizeof g,
                           .user = &r,
                           .open = begin,
                           .close = end,
                           .next = draw,
                           .save = tell,
                           .load = resume };
        ls_iterator *it = ls_iterate(ls_generate(&g)), *other = ls_iterate(ls_generate(&g));
        float first[6];
        ls_value *v = NULL;
        ls_random_seed(1);
        for (int i = 0; i < 6; i++) {
            assert_int_equal(ls_next(it, &v), LS_OK);
            first[i] = ls_to_float(ls_leaf_tensor(v));
            for (int k = 0; k < i; k++)
                assert_true(first[i] != first[k]);
            if (i == 2)
                assert_int_equal(ls_seek(other, ls_position(it)), LS_OK);
        }
        ls_random_seed(2);
        float before = ls_to_float(ls_random_uniform(LS_F32, LS_SCALAR, 0, 1));
        ls_random_seed(2);
        for (int i = 3; i < 6; i++) {
            assert_int_equal(ls_next(other, &v), LS_OK);
            assert_true(ls_to_float(ls_leaf_tensor(v)) == first[i]);
        }
        assert_true(ls_to_float(ls_random_uniform(LS_F32, LS_SCALAR, 0, 1)) == before);
        ls_iterator_free(it);
        ls_iterator_free(other);
    }
    assert_int_equal(ls_error_pending(), LS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(gives_what_next_gives, clean),
        cmocka_unit_test_setup(without_open, clean),
        cmocka_unit_test_setup(goes_on_behind_a_failure, clean),
        cmocka_unit_test_setup(a_pull_gives_one, clean),
        cmocka_unit_test_setup(an_older_error_is_not_its_own, clean),
        cmocka_unit_test_setup(open_may_fail, clean),
        cmocka_unit_test_setup(wrong_options, clean),
        cmocka_unit_test_setup(goes_on_elsewhere, clean),
        cmocka_unit_test_setup(remembers_until_released, clean),
        cmocka_unit_test_setup(what_cannot_be_saved, clean),
        cmocka_unit_test_setup(load_may_fail, clean),
        cmocka_unit_test_setup(draws_depend_on_the_number, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
