/*
 * Leaves with a tensor per replica and leaves that are objects: asked, selected, copied
 * and zipped, and refused where a plain tensor is wanted.
 */
#include "tensor/value.h"

#include <pthread.h>

#include "tensor/tensor.h"
#include "tensor/test_support.h"

enum { V = 3 };

static ls_tensor *num(int i)
{
    return ls_scalar_int(LS_I32, i);
}

static ls_value *leaf(int i)
{
    return ls_leaf(num(i));
}

/* Components base, base + 1, ... */
static ls_value *per_replica(int count, int base)
{
    ls_tensor *t[16];
    for (int i = 0; i < count; i++)
        t[i] = num(base + i);
    return ls__leaf_spread(LS_SPREAD_PER_REPLICA, count, t);
}

static ls_value *mirrored(int count, int number)
{
    ls_tensor *one = num(number), *t[16];
    for (int i = 0; i < count; i++)
        t[i] = one;
    return ls__leaf_spread(LS_SPREAD_MIRRORED, count, t);
}

static int thing; /* stands for a variable */

/* { "m": mirrored 7, "o": object, "p": [per-replica 10.., plain 1] } */
static ls_value *sample(void)
{
    return ls_dict(3, (const char *[]){ "p", "o", "m" },
                   (ls_value *[]){ ls_list(2, (ls_value *[]){ per_replica(V, 10), leaf(1) }),
                                   ls__object_leaf(&thing, "variable", 1), mirrored(V, 7) });
}

/* The last call failed with these words in its text and its hint. */
static void said(ls_status want, const char *text, const char *hint)
{
    if (!strstr(ls_error_text(), text) || !strstr(ls_error_hint(), hint))
        fail_msg("'%s' / '%s' lacks '%s' / '%s'", ls_error_text(), ls_error_hint(), text, hint);
    failed(want);
}

static int as_seen(const ls_value *v, int component)
{
    return (int)ls_to_int(ls__leaf_component(v, component));
}

static void check_sample(const ls_value *v)
{
    const ls_value *m = ls_get(v, "m"), *p = ls_get(v, "p"), *o = ls_get(v, "o");
    assert_int_equal(ls_spread_of(m), LS_SPREAD_MIRRORED);
    assert_int_equal(ls_spread_of(ls_child(p, 0)), LS_SPREAD_PER_REPLICA);
    assert_int_equal(ls_spread_of(o), LS_SPREAD_PLAIN);
    assert_ptr_equal(ls__leaf_object(o), &thing);
    for (int i = 0; i < V; i++) {
        assert_int_equal(as_seen(m, i), 7);
        assert_int_equal(as_seen(ls_child(p, 0), i), 10 + i);
    }
    assert_int_equal(as_seen(ls_child(p, 1), 0), 1);
}

static void what_a_value_is_to_replicas(void **state)
{
    (void)state;
    LS_FRAME {
        assert_int_equal(ls_spread_of(leaf(1)), LS_SPREAD_PLAIN);
        assert_int_equal(ls_spread_of(per_replica(V, 1)), LS_SPREAD_PER_REPLICA);
        assert_int_equal(ls_spread_of(mirrored(V, 1)), LS_SPREAD_MIRRORED);
        assert_int_equal(ls_spread_of(ls_list(0, NULL)), LS_SPREAD_PLAIN);
        ls_value *empty = ls_list(0, NULL);
        assert_int_equal(ls_spread_of(ls_list(3, (ls_value *[]){ empty, mirrored(V, 1), empty })),
                         LS_SPREAD_MIRRORED);
        assert_int_equal(
            ls_spread_of(ls_list(2, (ls_value *[]){ mirrored(V, 1), per_replica(V, 1) })),
            LS_SPREAD_MIXED);
        assert_int_equal(ls_spread_of(ls_list(2, (ls_value *[]){ leaf(1), mirrored(V, 1) })),
                         LS_SPREAD_MIXED);
        assert_int_equal(ls_spread_of(sample()), LS_SPREAD_MIXED);
        assert_int_equal(ls_spread_of(NULL), 0);

        assert_int_equal(ls_components(leaf(1)), 1);
        assert_int_equal(ls_components(empty), 1);
        assert_int_equal(ls_components(sample()), V);
        assert_int_equal(ls_components(ls__object_leaf(&thing, "variable", 1)), 1);
        assert_int_equal(
            ls_components(ls_list(3, (ls_value *[]){ mirrored(2, 1), mirrored(5, 1), leaf(1) })),
            5);
        assert_int_equal(ls_components(per_replica(1, 4)), 1);
        assert_int_equal(ls_spread_of(per_replica(1, 4)), LS_SPREAD_PER_REPLICA);
    }
}

static void a_distributed_leaf_is_one_leaf(void **state)
{
    (void)state;
    LS_FRAME {
        ls_value *p = per_replica(V, 10);
        assert_int_equal(ls_kind_of(p), LS_LEAF);
        assert_int_equal(ls_length(p), 1);
        assert_int_equal(ls_leaf_count(p), 1);
        assert_int_equal(ls_leaf_count(sample()), 4);
        assert_int_equal(as_seen(p, 2), 12);
        assert_null(ls__leaf_component(p, V));
        assert_null(ls__leaf_component(p, -1));
        assert_int_equal(as_seen(leaf(5), 99), 5); /* a plain one is the same to all */
        assert_null(ls__leaf_component(ls__object_leaf(&thing, "variable", 1), 0));
        assert_null(ls__leaf_object(leaf(5)));

        const ls_value *all[4];
        ls_value *v = sample();
        ls__leaves(v, all);
        assert_ptr_equal(all[0], ls_get(v, "m"));
        assert_ptr_equal(all[1], ls_get(v, "o"));
        assert_ptr_equal(all[3], ls_child(ls_get(v, "p"), 1));
    }
}

static void leaves_of_any_kind_have_one_structure(void **state)
{
    (void)state;
    LS_FRAME {
        ls_value *kinds[] = { leaf(1), per_replica(V, 1), mirrored(2, 1),
                              ls__object_leaf(&thing, "variable", 1) };
        for (int i = 0; i < 4; i++)
            for (int k = 0; k < 4; k++)
                assert_int_equal(ls_same_structure(kinds[i], kinds[k]), LS_OK);
        assert_int_equal(ls_same_structure(kinds[1], ls_list(1, kinds)), LS_INVALID);
        said(LS_INVALID, "a leaf and a list", "");
    }
}

static void no_tensor_of_its_own(void **state)
{
    (void)state;
    static const char way_out[] = "ls_select gives one replica's, ls_reduce combines them, ls_run "
                                  "runs a function on them (strategy.h)";
    LS_FRAME {
        ls_value *p = per_replica(V, 10), *m = mirrored(2, 7);
        ls_value *o = ls__object_leaf(&thing, "variable", 1);
        assert_null(ls_leaf_tensor(p));
        said(LS_INVALID, "ls_leaf_tensor: the value is per-replica, with 3 components", way_out);
        assert_null(ls_leaf_tensor(m));
        said(LS_INVALID, "ls_leaf_tensor: the value is mirrored, with 2 components", way_out);
        assert_null(ls_leaf_tensor(o));
        said(LS_INVALID, "ls_leaf_tensor: the value is a variable, not a tensor",
             "ls_leaf_variable");

        ls_value *list = ls_list(4, (ls_value *[]){ leaf(1), p, o, ls_list(0, NULL) });
        assert_int_equal(ls_to_int(ls_item(list, 0)), 1);
        assert_null(ls_item(list, 1));
        said(LS_INVALID, "ls_item: entry 1 is per-replica, with 3 components", way_out);
        assert_null(ls_item(list, 2));
        said(LS_INVALID, "ls_item: entry 2 is a variable", "ls_leaf_variable");
        assert_null(ls_item(list, 3));
        said(LS_INVALID, "ls_item: entry 3 is a list of 0", "");

        ls_tensor *out[3] = { NULL, NULL, NULL };
        assert_int_equal(ls_flatten(list, out), LS_INVALID);
        said(LS_INVALID, "ls_flatten: leaf 1 is per-replica, with 3 components", way_out);
        assert_null(out[0]); /* nothing was written */
        assert_int_equal(ls_flatten(ls_list(2, (ls_value *[]){ leaf(1), o }), out), LS_INVALID);
        said(LS_INVALID, "ls_flatten: leaf 1 is a variable", "ls_leaf_variable");
        assert_null(out[0]);

        ls_tensor *three[3] = { num(1), num(2), num(3) };
        assert_null(ls_pack(list, 3, three));
        said(LS_INVALID, "ls_pack: leaf 1 is per-replica, with 3 components", way_out);
        assert_null(ls_pack(o, 1, three));
        said(LS_INVALID, "ls_pack: leaf 0 is a variable", "ls_leaf_variable");
    }
}

static void selecting_is_plain_throughout(void **state)
{
    (void)state;
    LS_FRAME {
        ls_value *v = sample();
        for (int i = 0; i < V; i++) {
            ls_value *s = ls_select(v, i);
            assert_non_null(s);
            assert_int_equal(ls_spread_of(s), LS_SPREAD_PLAIN);
            assert_int_equal(ls_same_structure(s, v), LS_OK);
            assert_int_equal(ls_to_int(ls_item(ls_get(s, "p"), 0)), 10 + i);
            assert_int_equal(ls_to_int(ls_item(ls_get(s, "p"), 1)), 1);
            assert_int_equal(ls_to_int(ls_leaf_tensor(ls_get(s, "m"))), 7);
            assert_ptr_equal(ls__leaf_object(ls_get(s, "o")), &thing);
        }
        assert_int_equal(ls_to_int(ls_leaf_tensor(ls_select(leaf(4), 9))), 4);
        assert_null(ls_select(v, V));
        said(LS_INVALID, "component 3 of a leaf with 3", "0 to 2");
        assert_null(ls_select(v, -1));
        said(LS_INVALID, "component -1 of a leaf with 3", "0 to 2");
        assert_null(ls_select(NULL, 0));
        said(LS_INVALID, "ls_select: the value is NULL", "");
    }
}

static uint64_t id_selected(const ls_value *v, int i)
{
    return ls_leaf_tensor(ls_select(v, i))->id;
}

static void selected_identities(void **state)
{
    (void)state;
    LS_FRAME {
        ls_value *m = mirrored(V, 7), *p = per_replica(V, 10), *plain = leaf(3);
        uint64_t whole = ls__leaf_component(m, 0)->id;
        for (int i = 0; i < V; i++) {
            assert_true(id_selected(m, i) == id_selected(m, i)); /* always the same one */
            assert_true(id_selected(m, i) != whole);
            for (int k = 0; k < i; k++)
                assert_true(id_selected(m, i) != id_selected(m, k));
            assert_true(id_selected(p, i) == ls__leaf_component(p, i)->id);
            assert_true(id_selected(plain, i) == ls_leaf_tensor(plain)->id);
        }
        assert_true(ls__leaf_component(m, 0)->id == whole);
        /* A replica's view mirrored again: still one identity for each replica. */
        ls_tensor *seen = ls_leaf_tensor(ls_select(m, 0));
        ls_value *again =
            ls__leaf_spread(LS_SPREAD_MIRRORED, V, (ls_tensor *[]){ seen, seen, seen });
        for (int i = 0; i < V; i++)
            for (int k = 0; k < i; k++)
                assert_true(id_selected(again, i) != id_selected(again, k));
    }
}

static void copies_carry_all_components(void **state)
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
            check_sample(ls__value_import(v));
        }
        check_sample(up);
    }
    LS_FRAME {
        check_sample(kept);
        ls_value *inside = ls_list(1, &kept);
        ls_value *twice = ls_value_keep(inside);
        ls_value *selected = ls_select(kept, 1);
        ls_value_drop(kept);
        check_sample(ls_child(inside, 0));
        check_sample(ls_child(twice, 0));
        assert_int_equal(ls_to_int(ls_item(ls_get(selected, "p"), 0)), 11);
        assert_int_equal(ls_to_int(ls_item(ls_get(selected, "p"), 1)), 1);
        assert_ptr_equal(ls__leaf_object(ls_get(selected, "o")), &thing);
        ls_value_drop(twice);
        ls_tensor *component = ls_keep(num(9));
        ls_value *holds_it = ls__leaf_spread(LS_SPREAD_PER_REPLICA, 1, &component);
        ls_drop(component);
        for (int i = 0; i < 10; i++)
            ls_drop(ls_keep(num(i))); /* uses the memory again, if it was let go */
        assert_int_equal(as_seen(holds_it, 0), 9);
    }
    assert_int_equal(memory(), before);
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void a_component_that_failed(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *t[2] = { num(1), NULL };
        assert_null(ls__leaf_spread(LS_SPREAD_PER_REPLICA, 2, t));
        said(LS_INVALID, "a component is NULL", "");
        t[1] = ls_scalar((ls_dtype)0, 1);
        assert_null(ls__leaf_spread(LS_SPREAD_PER_REPLICA, 2, t));
        said(LS_INVALID, "dtype", ""); /* the first error stays */
    }
}

/* ---- many nests at once -------------------------------------------------------------- */

static ls_value *sum_leaves(int count, const ls_value *const *leaves, void *user)
{
    int *calls = user;
    ++*calls;
    int sum = 0;
    for (int i = 0; i < count; i++)
        sum += as_seen(leaves[i], i);
    return leaf(sum);
}

static ls_value *two_level(int base)
{
    ls_value *list = ls_list(2, (ls_value *[]){ leaf(base), leaf(base + 1) });
    return ls_dict(2, (const char *[]){ "b", "a" }, (ls_value *[]){ leaf(base + 2), list });
}

static void nests_are_zipped(void **state)
{
    (void)state;
    LS_FRAME {
        ls_value *v[3] = { two_level(0), two_level(10), two_level(100) };
        int calls = 0;
        ls_value *sum = ls__values_zip(3, v, "the results", sum_leaves, &calls);
        assert_int_equal(calls, 3);
        assert_int_equal(ls_same_structure(sum, v[0]), LS_OK);
        assert_int_equal(ls_to_int(ls_item(ls_get(sum, "a"), 1)), 113);
        assert_int_equal(ls_to_int(ls_leaf_tensor(ls_get(sum, "b"))), 116);
    }
}

static void the_first_replica_that_differs_is_named(void **state)
{
    (void)state;
    LS_FRAME {
        ls_value *good = two_level(0);
        ls_value *list = ls_list(2, (ls_value *[]){ leaf(1), ls_list(0, NULL) });
        ls_value *bad = ls_dict(2, (const char *[]){ "a", "b" }, (ls_value *[]){ list, leaf(1) });
        int calls = 0;
        ls_value *v[4] = { good, good, bad, leaf(1) };
        assert_null(ls__values_zip(4, v, "the results", sum_leaves, &calls));
        assert_string_equal(ls_error_text(),
                            "the results: replica 2 differs from replica 0: structures differ at "
                            "'value.a[1]': a leaf and a list");
        failed(LS_INVALID);
        v[1] = NULL;
        assert_null(ls__values_zip(4, v, "the results", sum_leaves, &calls));
        said(LS_INVALID, "the results: the value is NULL", "");
        assert_int_equal(calls, 0);
    }
}

static ls_value *refuses_seven(const ls_value *leaf_in, void *user)
{
    (void)user;
    if (as_seen(leaf_in, 0) != 7)
        return (ls_value *)leaf_in;
    ls__fail(LS_SHAPE, "a seven");
    return NULL;
}

static ls_value *kept_leaf(const ls_value *leaf_in, void *user)
{
    (void)leaf_in;
    return user;
}

static void nests_are_mapped(void **state)
{
    (void)state;
    size_t before = memory();
    LS_FRAME {
        ls_value *v = two_level(3);
        assert_int_equal(ls_to_int(ls_item(ls_get(ls__value_map(v, refuses_seven, NULL), "a"), 1)),
                         4);
        assert_null(ls__value_map(two_level(5), refuses_seven, NULL));
        said(LS_SHAPE, "a seven", "");
        ls_value *kept = ls_value_keep(leaf(8));
        ls_value *mapped = ls__value_map(v, kept_leaf, kept), *one = NULL;
        one = ls__value_map(leaf(1), kept_leaf, kept);
        ls_value_drop(kept);
        assert_int_equal(ls_to_int(ls_item(ls_get(mapped, "a"), 0)), 8);
        assert_int_equal(ls_to_int(ls_leaf_tensor(one)), 8);
        assert_int_equal(ls_kind_of(ls__value_map(ls_list(0, NULL), kept_leaf, NULL)), LS_LIST);
    }
    assert_int_equal(memory(), before);
}

/* ---- other threads' values ----------------------------------------------------------- */

static void *import_there(void *user)
{
    void *wrong = NULL;
    LS_FRAME {
        ls_value *mine = ls__value_import(user);
        if (!mine || as_seen(ls_child(ls_get(mine, "p"), 0), 2) != 12)
            wrong = "not what was given";
    }
    return wrong;
}

static void a_value_of_another_thread(void **state)
{
    (void)state;
    size_t before = memory();
    LS_FRAME {
        ls_value *v = sample();
        pthread_t thread;
        void *wrong = "nothing ran";
        assert_int_equal(pthread_create(&thread, NULL, import_there, v), 0);
        pthread_join(thread, &wrong);
        assert_null(wrong);
        check_sample(v);
        assert_null(ls__value_import(NULL));
        failed(LS_INVALID);
    }
    assert_int_equal(memory(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_a_value_is_to_replicas, clean),
        cmocka_unit_test_setup(a_distributed_leaf_is_one_leaf, clean),
        cmocka_unit_test_setup(leaves_of_any_kind_have_one_structure, clean),
        cmocka_unit_test_setup(no_tensor_of_its_own, clean),
        cmocka_unit_test_setup(selecting_is_plain_throughout, clean),
        cmocka_unit_test_setup(selected_identities, clean),
        cmocka_unit_test_setup(copies_carry_all_components, clean),
        cmocka_unit_test_setup(a_component_that_failed, clean),
        cmocka_unit_test_setup(nests_are_zipped, clean),
        cmocka_unit_test_setup(the_first_replica_that_differs_is_named, clean),
        cmocka_unit_test_setup(nests_are_mapped, clean),
        cmocka_unit_test_setup(a_value_of_another_thread, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
