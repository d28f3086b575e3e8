/*
 * Nests: built, taken apart, compared and kept, with the texts that say where
 * two of them part.
 */
#include <lockstep/value.h>

#include <pthread.h>
#include <stdio.h>

#include "tensor/test_support.h"

static ls_tensor *num(int i)
{
    return ls_scalar_int(LS_I32, i);
}

static ls_value *leaf(int i)
{
    return ls_leaf(num(i));
}

/* { "b": [1, { }, 2], "a": 3, "c": [] } */
static ls_value *sample(void)
{
    ls_value *list = ls_list(3, (ls_value *[]){ leaf(1), ls_dict(0, NULL, NULL), leaf(2) });
    return ls_dict(3, (const char *[]){ "b", "a", "c" },
                   (ls_value *[]){ list, leaf(3), ls_list(0, NULL) });
}

static void leaves_and_lists(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *t = num(5);
        ls_value *v = ls_leaf(t);
        assert_int_equal(ls_kind_of(v), LS_LEAF);
        assert_int_equal(ls_length(v), 1);
        assert_int_equal(ls_to_int(ls_leaf_tensor(v)), 5);
        assert_int_equal(ls_leaf_count(v), 1);

        ls_value *two = ls_tensors(2, (ls_tensor *[]){ num(1), num(2) });
        assert_int_equal(ls_kind_of(two), LS_LIST);
        assert_int_equal(ls_length(two), 2);
        assert_int_equal(ls_to_int(ls_item(two, 1)), 2);
        assert_int_equal(ls_to_int(ls_leaf_tensor(ls_child(two, 0))), 1);

        assert_null(ls_item(two, 2));
        failed(LS_INVALID);
        assert_null(ls_child(two, -1));
        failed(LS_INVALID);
        assert_null(ls_leaf_tensor(two));
        failed(LS_INVALID);
        assert_null(ls_key(two, 0));
        failed(LS_INVALID);
        assert_null(ls_get(two, "x"));
        failed(LS_INVALID);
        ls_value *nested = ls_list(1, &two);
        assert_null(ls_item(nested, 0)); /* entry 0 is no leaf */
        failed(LS_INVALID);
        assert_null(ls_child(v, 0)); /* a leaf has no entries */
        failed(LS_INVALID);
    }
}

static void arrays_are_copied(void **state)
{
    (void)state;
    LS_FRAME {
        ls_value *items[2] = { leaf(1), leaf(2) };
        char key[] = "zebra";
        const char *keys[2] = { key, "ant" };
        ls_value *list = ls_list(2, items), *dict = ls_dict(2, keys, items);
        items[0] = NULL, items[1] = NULL, keys[1] = NULL;
        key[0] = 'b';
        assert_int_equal(ls_to_int(ls_item(list, 0)), 1);
        assert_string_equal(ls_key(dict, 1), "zebra");
        assert_int_equal(ls_to_int(ls_leaf_tensor(ls_get(dict, "zebra"))), 1);
    }
}

static void dicts_are_sorted(void **state)
{
    (void)state;
    LS_FRAME {
        static const char *keys[] = { "m", "z", "B", "a", "ab", "", "aa" };
        static const char *sorted[] = { "", "B", "a", "aa", "ab", "m", "z" };
        enum { N = 7 };
        ls_value *items[N];
        for (int i = 0; i < N; i++)
            items[i] = leaf(i);
        ls_value *d = ls_dict(N, keys, items);
        assert_non_null(d);
        assert_int_equal(ls_kind_of(d), LS_DICT);
        assert_int_equal(ls_length(d), N);
        for (int i = 0; i < N; i++) {
            assert_string_equal(ls_key(d, i), sorted[i]);
            assert_int_equal(ls_to_int(ls_leaf_tensor(ls_get(d, keys[i]))), i);
        }
        assert_int_equal(ls_to_int(ls_item(d, 2)), 3); /* "a" */
        assert_null(ls_key(d, N));
        failed(LS_INVALID);

        assert_null(ls_get(d, "nothing"));
        assert_int_equal(ls_error_pending(), LS_NOT_FOUND);
        char report[1024];
        snprintf(report, sizeof report, "%s", ls_error_report());
        assert_non_null(strstr(report, "nothing"));
        assert_non_null(strstr(report, "ab")); /* names the keys there are */
        assert_non_null(strstr(report, "m"));
        assert_null(ls_get(d, NULL));
        failed(LS_INVALID);
    }
}

static void bad_arguments(void **state)
{
    (void)state;
    LS_FRAME {
        ls_value *v = leaf(1);
        assert_null(ls_dict(2, (const char *[]){ "same", "same" }, (ls_value *[]){ v, v }));
        assert_non_null(strstr(ls_error_text(), "same"));
        failed(LS_INVALID);
        assert_null(ls_dict(1, (const char *[]){ NULL }, &v));
        failed(LS_INVALID);
        assert_null(ls_dict(1, NULL, &v));
        failed(LS_INVALID);
        assert_null(ls_list(-1, &v));
        failed(LS_INVALID);
        assert_null(ls_list(1, NULL));
        failed(LS_INVALID);
        assert_null(ls_list(2, (ls_value *[]){ v, NULL }));
        failed(LS_INVALID);
        assert_null(ls_tensors(1, (ls_tensor *[]){ NULL }));
        failed(LS_INVALID);
        assert_null(ls_tensors(1, NULL));
        failed(LS_INVALID);
        assert_null(ls_leaf(NULL));
        failed(LS_INVALID);
        assert_null(ls_child(NULL, 0));
        failed(LS_INVALID);
        assert_null(ls_item(NULL, 0));
        failed(LS_INVALID);
        assert_null(ls_leaf_tensor(NULL));
        failed(LS_INVALID);
        assert_null(ls_get(NULL, "x"));
        failed(LS_INVALID);
        ls_tensor *out[4];
        assert_int_equal(ls_flatten(NULL, out), LS_INVALID);
        failed(LS_INVALID);
        assert_int_equal(ls_same_structure(NULL, v), LS_INVALID);
        failed(LS_INVALID);
        assert_null(ls_pack(NULL, 0, NULL));
        failed(LS_INVALID);

        /* A failed tensor inside passes its error on. */
        ls_tensor *bad = ls_scalar((ls_dtype)0, 1);
        char first[512];
        snprintf(first, sizeof first, "%s", ls_error_text());
        assert_null(ls_list(2, (ls_value *[]){ leaf(1), ls_leaf(bad) }));
        assert_string_equal(ls_error_text(), first);
        failed(LS_INVALID);
    }
}

static void flatten_and_pack(void **state)
{
    (void)state;
    LS_FRAME {
        ls_value *v = sample();
        assert_int_equal(ls_leaf_count(v), 3);
        ls_tensor *flat[3];
        assert_int_equal(ls_flatten(v, flat), LS_OK);
        /* Depth first, dicts by key: a = 3, b = [1, {}, 2], c = []. */
        static const int want[3] = { 3, 1, 2 };
        for (int i = 0; i < 3; i++)
            assert_int_equal(ls_to_int(flat[i]), want[i]);

        ls_value *packed = ls_pack(v, 3, (ls_tensor *[]){ num(30), num(10), num(20) });
        assert_non_null(packed);
        assert_int_equal(ls_same_structure(v, packed), LS_OK);
        assert_int_equal(ls_to_int(ls_item(ls_get(packed, "b"), 2)), 20);
        assert_int_equal(ls_to_int(ls_leaf_tensor(ls_get(packed, "a"))), 30);
        assert_int_equal(ls_length(ls_get(packed, "c")), 0);
        assert_int_equal(ls_kind_of(ls_child(ls_get(packed, "b"), 1)), LS_DICT);
        ls_tensor *again[3];
        assert_int_equal(ls_flatten(packed, again), LS_OK);
        for (int i = 0; i < 3; i++)
            assert_int_equal(ls_to_int(again[i]), 10 * want[i]);

        assert_null(ls_pack(v, 2, flat));
        failed(LS_INVALID);
        assert_null(ls_pack(v, 4, (ls_tensor *[]){ flat[0], flat[1], flat[2], flat[0] }));
        failed(LS_INVALID);
        assert_null(ls_pack(v, 3, (ls_tensor *[]){ flat[0], NULL, flat[2] }));
        failed(LS_INVALID);
    }
}

static void empty_nests(void **state)
{
    (void)state;
    LS_FRAME {
        ls_value *list = ls_list(0, NULL), *dict = ls_dict(0, NULL, NULL);
        assert_non_null(list);
        assert_non_null(dict);
        assert_int_equal(ls_kind_of(list), LS_LIST);
        assert_int_equal(ls_kind_of(dict), LS_DICT);
        assert_int_equal(ls_length(list) + ls_length(dict), 0);
        assert_int_equal(ls_leaf_count(list) + ls_leaf_count(dict), 0);
        ls_tensor *none[1] = { NULL };
        assert_int_equal(ls_flatten(list, none), LS_OK);
        assert_non_null(ls_pack(list, 0, NULL));
        assert_non_null(ls_pack(dict, 0, none));
        assert_int_equal(ls_same_structure(list, list), LS_OK);
        assert_int_equal(ls_same_structure(list, dict), LS_INVALID);
        failed(LS_INVALID);
        assert_non_null(ls_tensors(0, NULL));
        assert_null(ls_get(dict, "x"));
        failed(LS_NOT_FOUND);
        ls_value *kept = ls_value_keep(dict);
        assert_int_equal(ls_length(kept), 0);
        ls_value_drop(kept);
    }
}

/* The text of a difference holds the words that lead to the place. */
static void differs(ls_value *a, ls_value *b, const char *word, const char *other)
{
    assert_int_equal(ls_same_structure(a, b), LS_INVALID);
    if (!strstr(ls_error_text(), word) || !strstr(ls_error_text(), other))
        fail_msg("'%s' lacks '%s' or '%s'", ls_error_text(), word, other);
    failed(LS_INVALID);
    assert_int_equal(ls_same_structure(b, a), LS_INVALID);
    failed(LS_INVALID);
}

static void structures(void **state)
{
    (void)state;
    LS_FRAME {
        assert_int_equal(ls_same_structure(sample(), sample()), LS_OK);
        /* Tensors may differ in every way. */
        assert_int_equal(ls_same_structure(leaf(1), ls_leaf(ls_zeros(LS_F32, LS_DIMS(4)))), LS_OK);
        differs(leaf(1), ls_list(1, (ls_value *[]){ leaf(1) }), "leaf", "list");
        differs(ls_list(2, (ls_value *[]){ leaf(1), leaf(2) }),
                ls_list(1, (ls_value *[]){ leaf(1) }), "2", "1");
        differs(ls_dict(1, (const char *[]){ "left" }, (ls_value *[]){ leaf(1) }),
                ls_dict(1, (const char *[]){ "right" }, (ls_value *[]){ leaf(1) }), "left",
                "right");
        /* Deep inside: the text says where. */
        ls_value *deep_a =
            ls_dict(2, (const char *[]){ "x", "y" },
                    (ls_value *[]){ leaf(1), ls_list(2, (ls_value *[]){ leaf(1), leaf(2) }) });
        ls_value *deep_b = ls_dict(
            2, (const char *[]){ "x", "y" },
            (ls_value *[]){ leaf(1), ls_list(2, (ls_value *[]){ leaf(1), ls_list(0, NULL) }) });
        differs(deep_a, deep_b, "y", "1");
    }
}

static void keep_and_hand_up(void **state)
{
    (void)state;
    size_t before = memory();
    ls_value *kept = NULL;
    LS_FRAME {
        ls_value *up = NULL;
        LS_FRAME {
            ls_value *v = sample();
            up = ls_value_hand_up(v);
            kept = ls_value_keep(v);
        }
        assert_int_equal(ls_same_structure(up, kept), LS_OK);
        assert_int_equal(ls_to_int(ls_item(ls_get(up, "b"), 2)), 2);
        assert_string_equal(ls_key(up, 2), "c");
    }
    assert_true(memory() > before);
    LS_FRAME {
        assert_int_equal(ls_to_int(ls_item(ls_get(kept, "b"), 0)), 1);
        assert_string_equal(ls_key(kept, 0), "a");
        ls_tensor *flat[3];
        assert_int_equal(ls_flatten(kept, flat), LS_OK);
        assert_int_equal(ls_to_int(flat[0]), 3);
    }
    ls_value_drop(kept);
    ls_value_drop(NULL);
    assert_int_equal(memory(), before);
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void deep_nests(void **state)
{
    (void)state;
    size_t before = memory();
    LS_FRAME {
        ls_value *v = leaf(7), *w = leaf(8);
        for (int i = 0; i < 200; i++) {
            v = i % 2 ? ls_list(1, &v) : ls_dict(1, (const char *[]){ "k" }, &v);
            w = i % 2 ? ls_list(1, &w) : ls_dict(1, (const char *[]){ "k" }, &w);
        }
        assert_int_equal(ls_leaf_count(v), 1);
        assert_int_equal(ls_same_structure(v, w), LS_OK);
        ls_tensor *t = NULL;
        assert_int_equal(ls_flatten(v, &t), LS_OK);
        assert_int_equal(ls_to_int(t), 7);
        ls_value *kept = ls_value_keep(v);
        assert_int_equal(ls_same_structure(kept, w), LS_OK);
        ls_value_drop(kept);
    }
    assert_int_equal(memory(), before);
}

static void flat_over_many_frames(void **state)
{
    (void)state;
    size_t before = memory();
    LS_FRAME {
        for (int i = 0; i < 2000; i++)
            LS_FRAME {
                ls_value *kept = ls_value_keep(sample());
                if (i % 100 == 0)
                    ls_value_hand_up(kept);
                ls_value_drop(kept);
            }
    }
    assert_int_equal(memory(), before);
}

/* A value never changes: it holds its tensors, whatever becomes of the handles it
 * was made from. */
static void holds_its_tensors(void **state)
{
    (void)state;
    size_t before = memory();
    LS_FRAME {
        ls_tensor *kept[2] = { ls_keep(num(5)), ls_keep(num(6)) };
        ls_value *v = ls_leaf(kept[0]), *both = ls_tensors(2, kept);
        ls_value *packed = ls_pack(both, 2, kept);
        ls_drop(kept[0]);
        ls_drop(kept[1]);
        ls_value *inner = ls_value_keep(ls_leaf(num(7)));
        ls_value *list = ls_list(1, &inner);
        ls_value *dict = ls_dict(1, (const char *[]){ "k" }, &inner);
        ls_value_drop(inner);
        for (int i = 0; i < 10; i++)
            ls_drop(ls_keep(num(i))); /* uses the memory again, if it was let go */
        assert_int_equal(ls_to_int(ls_leaf_tensor(v)), 5);
        assert_int_equal(ls_to_int(ls_item(both, 1)), 6);
        assert_int_equal(ls_to_int(ls_item(packed, 0)), 5);
        assert_int_equal(ls_to_int(ls_item(list, 0)), 7);
        assert_int_equal(ls_to_int(ls_item(dict, 0)), 7);
        assert_int_equal(ls_error_pending(), LS_OK);
    }
    assert_int_equal(memory(), before);
}

/* Only NULL passes an error on; what is fine works with one pending. */
static void a_pending_error_stops_nothing_that_is_fine(void **state)
{
    (void)state;
    LS_FRAME {
        assert_null(ls_scalar((ls_dtype)0, 1));
        ls_value *v = sample();
        assert_non_null(v);
        assert_int_equal(ls_leaf_count(v), 3);
        ls_tensor *flat[3];
        assert_int_equal(ls_flatten(v, flat), LS_OK);
        assert_non_null(ls_pack(v, 3, flat));
        assert_non_null(ls_tensors(3, flat));
        assert_int_equal(ls_same_structure(v, v), LS_OK);
        failed(LS_INVALID);
    }
}

static void a_nest_has_a_bottom(void **state)
{
    (void)state;
    for (int dicts = 0; dicts < 2; dicts++)
        LS_FRAME {
            const char *key = "k";
            ls_value *v = leaf(7);
            for (int i = 0; i < 1000; i++) {
                v = dicts ? ls_dict(1, &key, &v) : ls_list(1, &v);
                assert_non_null(v);
            }
            assert_int_equal(ls_leaf_count(v), 1);
            ls_value *two[] = { leaf(1), v };
            assert_null(dicts ? ls_dict(1, &key, &v) : ls_list(1, &v));
            assert_non_null(strstr(ls_error_text(), "1000"));
            failed(LS_INVALID);
            assert_null(ls_list(2, two)); /* the deepest entry counts */
            failed(LS_INVALID);
            ls_value *kept = ls_value_keep(v); /* as deep when kept */
            assert_null(ls_list(1, &kept));
            failed(LS_INVALID);
            ls_value_drop(kept);
        }
}

/* Whether the last call refused a value for its frame; takes the error. */
static bool refused(bool made, const char *who)
{
    bool right = !made && ls_error_pending() == LS_INVALID && strstr(ls_error_text(), who) &&
                 strstr(ls_error_text(), "frame") && strstr(ls_error_hint(), "ls_value_keep");
    ls_error();
    return right;
}

/* In the next frame, after it has made things of its own. Returns what was taken. */
static void *use_the_last_turn(void *unused)
{
    (void)unused;
    ls_value *prev = NULL;
    for (int turn = 0; turn < 5; turn++)
        LS_FRAME {
            ls_value *v = NULL;
            for (int i = 0; i <= turn; i++) {
                v = sample();
                if (prev && !refused(ls_get(prev, "a"), "ls_get"))
                    return "ls_get";
            }
            if (prev && !refused(ls_list(2, (ls_value *[]){ v, prev }), "ls_list"))
                return "ls_list";
            if (prev && !refused(!ls_same_structure(v, prev), "ls_same_structure"))
                return "ls_same_structure";
            if (prev && !refused(ls_value_keep(prev), "ls_value_keep"))
                return "ls_value_keep";
            prev = v;
        }
    return prev ? NULL : "no value";
}

/* On a thread of its own, so that no stock of older memory comes first. */
static void a_value_of_the_last_turn(void **state)
{
    (void)state;
    pthread_t thread;
    void *taken = "nothing ran";
    assert_int_equal(pthread_create(&thread, NULL, use_the_last_turn, NULL), 0);
    pthread_join(thread, &taken);
    if (taken)
        fail_msg("taken by %s", (const char *)taken);
    assert_null(use_the_last_turn(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(leaves_and_lists, clean),
        cmocka_unit_test_setup(arrays_are_copied, clean),
        cmocka_unit_test_setup(dicts_are_sorted, clean),
        cmocka_unit_test_setup(bad_arguments, clean),
        cmocka_unit_test_setup(flatten_and_pack, clean),
        cmocka_unit_test_setup(empty_nests, clean),
        cmocka_unit_test_setup(structures, clean),
        cmocka_unit_test_setup(keep_and_hand_up, clean),
        cmocka_unit_test_setup(deep_nests, clean),
        cmocka_unit_test_setup(flat_over_many_frames, clean),
        cmocka_unit_test_setup(holds_its_tensors, clean),
        cmocka_unit_test_setup(a_pending_error_stops_nothing_that_is_fine, clean),
        cmocka_unit_test_setup(a_nest_has_a_bottom, clean),
        cmocka_unit_test_setup(a_value_of_the_last_turn, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
