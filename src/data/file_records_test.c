/*
 * Positions in files of records: after every element, of light inputs and others, in files that have
 * changed since.
 */
#include "data/record_test_support.h"

#include "data/iterator.h"

static bytes small_file(int first, int records)
{
    bytes b = { 0 };
    for (int i = first; i < first + records; i++)
        add_sample_record(&b, i, (size_t)(i * 37 % 101));
    return b;
}

static ls_dataset *all_of(const char *pattern, ls_compression kind)
{
    return ls_tfrecords(LS_FILES(in_dir(pattern)), LS_RECORDS(.compression = kind));
}

/* From a position taken after every element, another iterator gives what is left; and says it
 * stands where it was put. */
static void check_positions(ls_dataset *d, const bytes *want)
{
    ls_iterator *it = ls_iterate(d), *other = ls_iterate(d);
    size_t at = 0;
    for (bool more = true; more;) {
        LS_FRAME {
            const void *data;
            size_t n;
            int errors;
            ls_tensor *position = ls_position(it);
            assert_non_null(position);
            assert_int_equal(ls_seek(other, position), LS_OK);
            ls_tensor *again = ls_position(other);
            assert_int_equal(ls_dim(again, 0), ls_dim(position, 0));
            assert_memory_equal(ls_data(again), ls_data(position), (size_t)ls_dim(position, 0));
            bytes rest = take_all(other, &errors);
            assert_int_equal(errors, 0);
            assert_int_equal(rest.n, want->n - at);
            if (rest.n)
                assert_memory_equal(rest.at, want->at + at, rest.n);
            free_bytes(&rest);
            more = next_string(it, &data, &n) == LS_OK;
            at += more ? n + 16 : 0;
        }
    }
    assert_int_equal(at, want->n);
    ls_iterator_free(it);
    ls_iterator_free(other);
}

static void positions_everywhere(void **state)
{
    (void)state;
    for (ls_compression kind = LS_PLAIN; kind <= last_kind; kind++) {
        bytes a = small_file(0, 9), none = { 0 }, b = small_file(9, 8), all = { 0 };
        put_packed("1", kind, &a);
        put_packed("2", kind, &none);
        put_packed("3", kind, &b);
        add_bytes(&all, a.at, a.n);
        add_bytes(&all, b.at, b.n);
        LS_FRAME
            check_positions(all_of("?", kind), &all);
        free_bytes(&a);
        free_bytes(&b);
        free_bytes(&all);
    }
}

/* Going to single elements, forth and back, as a shuffle does that is restored. */
static void going_to_elements(void **state)
{
    (void)state;
    enum { N = 400 };
    bytes a = small_file(0, N / 2), b = small_file(N / 2, N / 2);
    put_file("1", a.at, a.n);
    put_file("2", b.at, b.n);
    add_bytes(&a, b.at, b.n);
    LS_FRAME {
        ls__going going = { 0 };
        ls__opening how = { .going = &going };
        ls__it *it = NULL;
        ls__chunk c = { 0 };
        static int64_t words[N + 1][2];
        static size_t starts[N + 1];
        assert_int_equal(ls__it_open(all_of("?", LS_PLAIN), &how, &it), LS_OK);
        assert_int_equal(it->words, 2);
        assert_true(it->light);
        ls__it_words(it, words[0]);
        int n = 0;
        while (ls__it_pull(it, 64, &c) == LS_OK)
            for (int i = 0; i < c.n; i++, n++) {
                memcpy(words[n + 1], ls__chunk_after(&c, i), sizeof words[0]);
                starts[n + 1] = starts[n] + ls__chunk_datum(&c, i, 0)->bytes + 16;
            }
        assert_int_equal(n, N);
        uint64_t random = 3;
        for (int turn = 0; turn < 2000; turn++) {
            int k = (int)(random_number(&random) % N);
            int64_t now[2];
            assert_int_equal(ls__it_go(it, words[k]), LS_OK);
            ls__it_words(it, now);
            assert_memory_equal(now, words[k], sizeof now);
            assert_int_equal(ls__it_pull(it, 1, &c), LS_OK);
            assert_int_equal(c.n, 1);
            const ls__datum *d = ls__chunk_datum(&c, 0, 0);
            assert_memory_equal(d->data, a.at + starts[k] + 12, d->bytes);
            assert_memory_equal(ls__chunk_after(&c, 0), words[k + 1], sizeof now);
        }
        assert_int_equal(ls__it_go(it, (int64_t[]){ -1, 0 }), LS_CORRUPT);
        failed_with(LS_CORRUPT, "position");
        assert_int_equal(ls__it_go(it, (int64_t[]){ 5, 2 }), LS_CORRUPT); /* in a third file */
        failed_with(LS_CORRUPT, "position");
        assert_int_equal(ls__it_go(it, (int64_t[]){ (int64_t)1 << 40, 0 }), LS_CORRUPT);
        failed_with(LS_CORRUPT, in_dir("1"));
        ls__chunk_free(&c);
        ls__it_close(it);
        assert_int_equal(going.bytes, 0);
    }
    free_bytes(&a);
    free_bytes(&b);
}

/* Names from a stage that is not light: positions are those of the input, saved. */
typedef struct counting_state {
    ls__it *input;
    int64_t at, released;
} counting_state;

static ls_status counting_open(ls__it *it)
{
    counting_state *s = it->state;
    ls_status st = ls__it_open_input(it, 0, &s->input);
    it->words = 1;
    it->light = false;
    return st;
}

static void counting_close(ls__it *it)
{
    ls__it_close(((counting_state *)it->state)->input);
}

static ls_status counting_pull(ls__it *it, int most, ls__chunk *out)
{
    counting_state *s = it->state;
    ls_status st = ls__it_pull(s->input, most, out);
    if (!st && s->at == 1 && strcmp(it->dataset->text, "fails") == 0) {
        s->at++;
        ls__chunk_clear(out);
        return ls__fail(LS_INVALID, "a name that failed");
    }
    for (int i = 0; i < out->n && !st; i++)
        ls__chunk_after(out, i)[0] = ++s->at;
    return st;
}

static void counting_words(ls__it *it, int64_t *words)
{
    words[0] = ((counting_state *)it->state)->at;
}

static ls_status counting_save(ls__it *it, const int64_t *words, ls__bytes_out *to)
{
    assert_true(words[0] >= ((counting_state *)it->state)->released);
    ls__put_int(to, words[0]);
    return LS_OK;
}

static ls_status counting_load(ls__it *it, ls__bytes_in *from)
{
    counting_state *s = it->state;
    ls_status st = ls__get_int(from, 0, 100, &s->at);
    return st ? st : ls__it_go(s->input, &s->at);
}

static void counting_release(ls__it *it, const int64_t *words)
{
    ((counting_state *)it->state)->released = words[0];
}

static const ls__stage counting_stage = { .name = "counting",
                                          .state_bytes = sizeof(counting_state),
                                          .open = counting_open,
                                          .close = counting_close,
                                          .pull = counting_pull,
                                          .words_now = counting_words,
                                          .save = counting_save,
                                          .load = counting_load,
                                          .release = counting_release };

static ls_dataset *counting(const char *how)
{
    ls_dataset *names = LS_FILES(in_dir("?"));
    ls__dataset_draft draft = {
        .stage = &counting_stage, .n_inputs = 1, .inputs = &names, .type = ls__type_ref(names->type)
    };
    return ls__dataset_new(&draft, "%s", how);
}

static void positions_of_heavy_inputs(void **state)
{
    (void)state;
    bytes a = small_file(0, 9), b = small_file(9, 8), all = { 0 };
    put_file("1", a.at, a.n);
    put_file("2", b.at, b.n);
    put_file("3", "", 0);
    add_bytes(&all, a.at, a.n);
    add_bytes(&all, b.at, b.n);
    LS_FRAME
        check_positions(ls_tfrecords(counting("works"), NULL), &all);
    free_bytes(&a);
    free_bytes(&b);
    free_bytes(&all);
}

/* A name that cannot be had is told once, and no position behind it leads to it again. */
static void names_that_fail(void **state)
{
    (void)state;
    bytes b = small_file(0, 3);
    put_file("1", b.at, b.n);
    put_file("2", b.at, b.n);
    put_file("3", b.at, b.n);
    LS_FRAME {
        ls_dataset *d = ls_tfrecords(counting("fails"), NULL);
        ls_iterator *it = ls_iterate(d), *other = ls_iterate(d);
        ls_value *v;
        for (int i = 0; i < 3; i++)
            assert_int_equal(ls_next(it, &v), LS_OK);
        assert_int_equal(ls_next(it, &v), LS_INVALID);
        failed_with(LS_INVALID, "a name that failed");
        for (int left = 3; left > 0; left--) {
            int errors;
            assert_int_equal(ls_next(it, &v), LS_OK);
            assert_int_equal(ls_seek(other, ls_position(it)), LS_OK);
            bytes rest = take_all(other, &errors);
            assert_int_equal(errors, 0);
            assert_memory_equal(rest.at ? rest.at : b.at, b.at + b.n - rest.n, rest.n);
            assert_int_equal(rest.n == 0, left == 1);
            free_bytes(&rest);
        }
        assert_int_equal(ls_next(it, &v), LS_END);
        ls_iterator_free(it);
        ls_iterator_free(other);
    }
    free_bytes(&b);
}

static void files_that_changed(void **state)
{
    (void)state;
    bytes b = small_file(0, 9);
    put_file("x", b.at, b.n);
    LS_FRAME {
        ls_iterator *it = ls_iterate(all_of("x", LS_PLAIN));
        ls_value *v;
        for (int i = 0; i < 8; i++)
            assert_int_equal(ls_next(it, &v), LS_OK);
        ls_tensor *position = ls_position(it);
        put_file("x", b.at, 40);
        ls_iterator *other = ls_iterate(all_of("x", LS_PLAIN));
        assert_int_equal(ls_seek(other, position), LS_CORRUPT);
        assert_non_null(strstr(ls_error_hint(), "not what it was"));
        failed_with(LS_CORRUPT, in_dir("x"));
        unlink(in_dir("x"));
        assert_int_equal(ls_seek(other, position), LS_NOT_FOUND);
        failed_with(LS_NOT_FOUND, in_dir("x"));
        put_file("x", b.at, b.n);
        assert_int_equal(ls_seek(other, position), LS_OK);
        assert_int_equal(ls_next(other, &v), LS_OK);
        assert_int_equal(ls_next(other, &v), LS_END);
        put_file("y", b.at, b.n); /* another list is another dataset */
        ls_iterator *more = ls_iterate(all_of("?", LS_PLAIN));
        assert_int_equal(ls_seek(more, position), LS_INVALID);
        failed_with(LS_INVALID, "another dataset");
        ls_iterator_free(more);
        ls_iterator_free(other);
        ls_iterator_free(it);
    }
    free_bytes(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(positions_everywhere, clean_dir),
        cmocka_unit_test_setup(going_to_elements, clean_dir),
        cmocka_unit_test_setup(positions_of_heavy_inputs, clean_dir),
        cmocka_unit_test_setup(names_that_fail, clean_dir),
        cmocka_unit_test_setup(files_that_changed, clean_dir),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
