/*
 * Promises of data.h that random datasets do not reach: what is drawn at random in callbacks, what is
 * known before the first element, what is held and how long.
 */
#include "data/data_support.h"

#include <lockstep/image.h>
#include <stdio.h>

/* ---- random draws --------------------------------------------------------------------------- */

/* A picture of 9 rows, all alike but for their number, of which one is drawn: a number from 0 to 8. */
static ls_value *draw_one(ls_value *element, void *user)
{
    (void)user;
    float rows[9];
    for (int i = 0; i < 9; i++)
        rows[i] = (float)i;
    ls_tensor *t = ls_random_crop(ls_from(LS_F32, LS_DIMS(9, 1, 1), rows), 1, 1);
    return ls_list(2, (ls_value *[]){ element, ls_leaf(t) });
}

static ls_dataset *drawn(int parallel, bool prefetch)
{
    ls_dataset *d = ls_map(ls_range(0, 40, 1), LS_MAP(.fn = draw_one, .parallel = parallel));
    return prefetch ? ls_prefetch(d, 3) : d;
}

static void draws_are_others_in_every_epoch(void **state)
{
    (void)state;
    LS_FRAME {
        char epochs[2][3][2048] = { 0 };
        for (int run = 0; run < 2; run++) {
            ls_dataset *d = drawn(run, run);
            for (int epoch = 0; epoch < 3; epoch++) {
                LS_FOR_EACH (v, d)
                    strcat(epochs[run][epoch], written(v, 0));
                assert_string_equal(epochs[run][epoch], epochs[0][epoch]);
                if (epoch)
                    assert_string_not_equal(epochs[run][epoch], epochs[run][epoch - 1]);
            }
        }
    }
    assert_int_equal(ls_error(), LS_OK);
}

static void draws_depend_on_the_elements_number(void **state)
{
    (void)state;
    char want[40][64];
    int drawn_so_often[9] = { 0 }, n = 0;
    LS_FRAME {
        LS_FOR_EACH (v, drawn(0, false)) {
            snprintf(want[n++], sizeof *want, "%s", written(v, 0));
            drawn_so_often[(int)ls_to_float(ls_item(v, 1))]++;
        }
        assert_int_equal(n, 40);
        for (int i = 0; i < 9; i++) /* not always the same */
            assert_true(drawn_so_often[i] < 20);
        for (int parallel = 0; parallel <= 3; parallel++) {
            int i = 0;
            LS_FOR_EACH (v, drawn(parallel, parallel % 2)) {
                assert_string_equal(written(v, 0), want[i]);
                i++;
            }
            assert_int_equal(i, 40);
        }
        /* Restored, they are drawn again. */
        for (int at = 0; at <= 40; at += 5) {
            ls_iterator *it = ls_iterate(drawn(2, true)), *on = ls_iterate(drawn(3, true));
            ls_value *v;
            for (int i = 0; i < at; i++)
                assert_int_equal(ls_next(it, &v), LS_OK);
            assert_int_equal(ls_seek(on, ls_position(it)), LS_OK);
            for (int i = at; i < 40; i++) {
                assert_int_equal(ls_next(on, &v), LS_OK);
                assert_string_equal(written(v, 0), want[i]);
            }
            ls_iterator_free(it);
            ls_iterator_free(on);
        }
    }
    assert_int_equal(ls_error(), LS_OK);
}

/* ---- what is known before ------------------------------------------------------------------- */

#define KNOWN(d, text, count)                                                                      \
    do {                                                                                           \
        ls_dataset *known_ = d;                                                                    \
        assert_non_null(known_);                                                                   \
        assert_string_equal(ls_dataset_text(known_), text);                                        \
        assert_int_equal(ls_cardinality(known_), count);                                           \
    } while (0)

static ls_value *same(ls_value *element, void *user)
{
    (void)user;
    return element;
}

static bool keep(ls_value *element, void *user)
{
    (void)element, (void)user;
    return true;
}

static ls_dataset *two_more(ls_value *element, void *user)
{
    (void)element, (void)user;
    return ls_range(0, 2, 1);
}

static void what_is_known_before(void **state)
{
    (void)state;
    ls_dataset *d = ls_range(0, 10, 1);
    KNOWN(d, "i64[]", 10);
    KNOWN(ls_range(0, 10, 3), "i64[]", 4);
    KNOWN(ls_range(10, 0, -3), "i64[]", 4);
    KNOWN(ls_once(ls_leaf(ls_zeros(LS_F32, LS_DIMS(2, 3)))), "f32[2,3]", 1);
    ls_value *v = ls_dict(2, (const char *[]){ "label", "image" },
                          (ls_value *[]){ ls_leaf(ls_zeros(LS_I64, LS_DIMS(7))),
                                          ls_leaf(ls_zeros(LS_U8, LS_DIMS(7, 28, 28))) });
    ls_dataset *pictures = ls_slices(v);
    KNOWN(pictures, "{image: u8[28,28], label: i64[]}", 7);
    KNOWN(ls_batch(pictures, 2), "{image: u8[?,28,28], label: i64[?]}", 4);
    KNOWN(ls_batch_full(pictures, 2), "{image: u8[2,28,28], label: i64[2]}", 3);
    assert_string_equal(ls_dataset_text(ls_unbatch(ls_batch(pictures, 2))),
                        "{image: u8[28,28], label: i64[]}");
    KNOWN(ls_shuffle(d, 3, 1), "i64[]", 10);
    KNOWN(ls_repeat(d, 3), "i64[]", 30);
    KNOWN(ls_repeat(d, -1), "i64[]", LS_INFINITE);
    KNOWN(ls_take(ls_repeat(d, -1), 25), "i64[]", 25);
    KNOWN(ls_skip(ls_repeat(d, -1), 25), "i64[]", LS_INFINITE);
    KNOWN(ls_skip(d, 25), "i64[]", 0);
    KNOWN(ls_skip(d, -1), "i64[]", 0);
    KNOWN(ls_take(d, -1), "i64[]", 10);
    KNOWN(ls_shard(d, 3, 0), "i64[]", 4);
    KNOWN(ls_shard(d, 3, 1), "i64[]", 3);
    KNOWN(ls_cache(d, NULL), "i64[]", 10);
    KNOWN(ls_prefetch(d, 2), "i64[]", 10);
    KNOWN(ls_zip(2, (ls_dataset *[]){ d, pictures }), "i64[], {image: u8[28,28], label: i64[]}", 7);
    KNOWN(ls_zip(2, (ls_dataset *[]){ ls_repeat(d, -1), d }), "i64[], i64[]", 10);
    KNOWN(ls_concatenate(d, ls_take(d, 3)), "i64[]", 13);
    KNOWN(ls_concatenate(ls_batch_full(d, 2), ls_batch_full(d, 3)), "i64[?]", 8);
    KNOWN(ls_enumerate(d, 5), "i64[], i64[]", 10);
    KNOWN(ls_enumerate(pictures, 0), "i64[], {image: u8[28,28], label: i64[]}", 7);
    KNOWN(ls_map(d, LS_MAP(.fn = same)), "?", 10);
    KNOWN(ls_map(d, LS_MAP(.fn = same, .spec = "i64[]", .parallel = 2)), "i64[]", 10);
    KNOWN(ls_filter(d, keep, NULL), "i64[]", LS_UNKNOWN);
    KNOWN(ls_batch(ls_filter(d, keep, NULL), 2), "i64[?]", LS_UNKNOWN);
    KNOWN(ls_flat_map(d, two_more, NULL), "?", LS_UNKNOWN);
    KNOWN(ls_padded_batch(pictures, 2, NULL), "{image: u8[?,28,28], label: i64[?]}", 4);
    KNOWN(ls_repeat(ls_range(0, 0, 1), -1), "i64[]", 0);
    assert_int_equal(ls_error(), LS_OK);
}

/* ---- what is held --------------------------------------------------------------------------- */

/* "arrays in memory, which are not copied". */
static void slices_are_not_copied(void **state)
{
    (void)state;
    LS_FRAME {
        ls_value *v, *big = ls_leaf(ls_zeros(LS_F32, LS_DIMS(1024, 1024)));
        size_t before = memory();
        ls_iterator *it = ls_iterate(ls_prefetch(ls_shuffle(ls_slices(big), 100, 1), 2));
        for (int i = 0; i < 20; i++)
            LS_FRAME {
                assert_int_equal(ls_next(it, &v), LS_OK);
            }
        assert_in_range(memory() - before, 0, 1 << 20); /* of 4 MiB */
        ls_iterator_free(it);
    }
}

static void kept_datasets(void **state)
{
    (void)state;
    ls_dataset *kept = NULL;
    ls_iterator *it = NULL;
    ls_value *v = NULL;
    LS_FRAME {
        ls_value *rows = ls_leaf(ls_from(LS_I64, LS_DIMS(3), (int64_t[]){ 4, 5, 6 }));
        kept = ls_dataset_keep(ls_batch(ls_slices(rows), 2));
        it = ls_iterate(ls_prefetch(ls_slices(rows), 1));
    }
    /* An iterator holds what it needs. */
    LS_FRAME {
        GOES_ON(it, 0, "[4]", "[5]", "[6]");
        GIVES(kept, 0, "[4 5]", "[6]");
    }
    ls_iterator_free(it);
    it = ls_iterate(kept);
    ls_dataset_drop(kept);
    LS_FRAME {
        GOES_ON(it, 0, "[4 5]", "[6]");
    }
    ls_iterator_free(it);
    /* Elements outlive their iterator. */
    LS_FRAME {
        it = ls_iterate(ls_batch(ls_range(0, 4, 1), 2));
        assert_int_equal(ls_next(it, &v), LS_OK);
        ls_value *w;
        assert_int_equal(ls_next(it, &w), LS_OK);
        ls_iterator_free(it);
        assert_string_equal(written(v, 0), "[0 1]");
        assert_string_equal(written(w, 0), "[2 3]");
    }
    assert_int_equal(ls_error(), LS_OK);
}

/* Elements of every source stay what they are when the next ones come, and when the iterator goes. */
static void elements_stay(void **state)
{
    (void)state;
    write_records("stay", 100, 50);
    LS_FRAME {
        ls_value *arrays = ls_leaf(ls_from(LS_I64, LS_DIMS(4), (int64_t[]){ 100, 101, 102, 103 }));
        ls_dataset *sources[] = { ls_range(100, 150, 1), ls_slices(arrays),
                                  ls_tfrecords(LS_FILES(in_directory("stay")), NULL),
                                  ls_unbatch(ls_batch(ls_range(100, 150, 1), 7)),
                                  ls_prefetch(ls_shuffle(ls_range(100, 150, 1), 1, 1), 2) };
        for (size_t s = 0; s < sizeof sources / sizeof *sources; s++) {
            ls_value *kept[50];
            int n = 0;
            ls_iterator *it = ls_iterate(sources[s]);
            while (n < 50 && ls_next(it, &kept[n]) == LS_OK)
                n++;
            ls_iterator_free(it);
            assert_true(n >= 4);
            for (int i = 0; i < n; i++) {
                char want[16];
                snprintf(want, sizeof want, "[%d]", 100 + i);
                assert_string_equal(written(kept[i], 0), want);
            }
        }
    }
    assert_int_equal(ls_error(), LS_OK);
}

#define TEST(f) cmocka_unit_test_setup(f, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(draws_depend_on_the_elements_number),
        TEST(draws_are_others_in_every_epoch),
        TEST(what_is_known_before),
        TEST(slices_are_not_copied),
        TEST(kept_datasets),
        TEST(elements_stay),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
