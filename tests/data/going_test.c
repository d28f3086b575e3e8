/*
 * Going through datasets when something goes wrong on the way: callbacks that fail or give what they
 * should not. The text names what went wrong, the elements behind it are all there, and nothing
 * crashes.
 */
#include "data/data_support.h"

static ls_dataset *numbers(void)
{
    return ls_range(0, 6, 1);
}

static int64_t number_of(ls_value *element)
{
    return ls_to_int(ls_leaf_tensor(element));
}

/* ---- maps that fail ------------------------------------------------------------------------- */

static ls_value *fail_at_odd(ls_value *element, void *user)
{
    (void)user;
    if (number_of(element) % 2 == 0)
        return element;
    return ls_get(ls_dict(0, NULL, NULL), "odd");
}

/* Even numbers come, and the others are errors, whatever is done with the elements after. */
#define ALL_EVEN(d) bad += !all_even(#d, d)
static bool all_even(const char *what, ls_dataset *d)
{
    char seen[64] = "";
    int failures = 0;
    ls_iterator *it = ls_iterate(d);
    ls_value *v = NULL;
    for (ls_status st; (st = ls_next(it, &v)) != LS_END && failures < 9;) {
        if (st)
            REFUSED(LS_NOT_FOUND, "odd");
        else
            strcat(seen, written(v, 0));
        failures += st != LS_OK;
    }
    ls_iterator_free(it);
    if (strcmp(seen, "[0][2][4]") == 0 && failures == 3)
        return true;
    print_error("%s: gives %s and fails %d times\n", what, seen, failures);
    return false;
}

static bool keep(ls_value *element, void *user)
{
    (void)element, (void)user;
    return true;
}

static ls_dataset *alone(ls_value *element, void *user)
{
    (void)user;
    return ls_once(element);
}

static void failures_lose_nothing_else(void **state)
{
    (void)state;
    int bad = 0;
    for (int parallel = 0; parallel <= 3; parallel++)
        LS_FRAME {
            ls_dataset *d = ls_map(numbers(), LS_MAP(.fn = fail_at_odd, .parallel = parallel));
            ALL_EVEN(d);
            ALL_EVEN(ls_prefetch(d, 2));
            ALL_EVEN(ls_filter(d, keep, NULL));
            ALL_EVEN(ls_batch(d, 1));
            ALL_EVEN(ls_padded_batch(d, 1, NULL));
            ALL_EVEN(ls_unbatch(ls_batch(d, 1)));
            ALL_EVEN(ls_shuffle(d, 1, 1));
            ALL_EVEN(ls_take(d, -1));
            ALL_EVEN(ls_skip(d, 0));
            ALL_EVEN(ls_shard(d, 1, 0));
            ALL_EVEN(ls_flat_map(d, alone, NULL));
            ALL_EVEN(
                ls_interleave(d, LS_INTERLEAVE(.fn = alone, .cycle = 2, .parallel = parallel)));
            ALL_EVEN(ls_concatenate(d, ls_take(d, 0)));
            ALL_EVEN(ls_repeat(d, 1));
            ALL_EVEN(ls_cache(d, NULL));
            ALL_EVEN(ls_zip(1, &d));
        }
    assert_int_equal(bad, 0);
}

/* An error that a callback read is none, and none of a callback is left on the thread. */
static ls_value *fail_and_go_on(ls_value *element, void *user)
{
    (void)user;
    ls_get(ls_dict(0, NULL, NULL), "nothing");
    ls_error();
    return element;
}

static void errors_that_were_read(void **state)
{
    (void)state;
    for (int parallel = 0; parallel <= 2; parallel++)
        LS_FRAME {
            GIVES(ls_take(ls_map(numbers(), LS_MAP(.fn = fail_and_go_on, .parallel = parallel)), 2),
                  0, "[0]", "[1]");
            assert_int_equal(ls_error_pending(), LS_OK);
        }
}

/* ---- what callbacks give -------------------------------------------------------------------- */

static ls_value *one_a_replica(ls_value *element, void *user)
{
    if (number_of(element) != 3)
        return element;
    return ls_per_replica(user, (ls_value *[]){ element, element });
}

static ls_dataset *spread_out(ls_value *element, void *user)
{
    (void)element;
    return ls_distribute(user, ls_batch(ls_range(0, 4, 1), 2));
}

/* Elements are plain, and so are datasets of elements. */
static void what_is_spread_is_no_element(void **state)
{
    (void)state;
    ls_strategy *two = ls_mirrored(LS_MIRRORED(.replicas = 2));
    for (int parallel = 0; parallel <= 3; parallel++)
        LS_FRAME {
            ls_iterator *it = ls_iterate(
                ls_map(numbers(), LS_MAP(.fn = one_a_replica, .user = two, .parallel = parallel)));
            ls_value *v;
            for (int i = 0; i < 6; i++) {
                ls_status st = ls_next(it, &v);
                assert_int_equal(st, i == 3 ? LS_SHAPE : LS_OK);
                if (st)
                    REFUSED(LS_SHAPE, "ls_map", "element 3");
                else
                    assert_int_equal(number_of(v), i);
            }
            assert_int_equal(ls_next(it, &v), LS_END);
            ls_iterator_free(it);
        }
    LS_FRAME {
        ls_iterator *it = ls_iterate(ls_flat_map(numbers(), spread_out, two));
        ls_value *v;
        assert_int_equal(ls_next(it, &v), LS_INVALID);
        REFUSED(LS_INVALID, "ls_flat_map");
        ls_iterator_free(it);
    }
    ls_strategy_free(two);
}

#define TEST(f) cmocka_unit_test_setup(f, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(failures_lose_nothing_else),
        TEST(errors_that_were_read),
        TEST(what_is_spread_is_no_element),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
