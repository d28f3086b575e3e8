/*
 * Users' functions run in surroundings of their own, and leave none behind.
 */
#include "data/callback.h"
#include "data/stage_test.h"
#include "dispatch/tape.h"
#include "kernels/threads.h"

static ls__it *open_range(ls__going *going, uint64_t iteration)
{
    ls__it *it = NULL;
    ls_dataset *d = ls_range(0, 10, 1);
    assert_int_equal(ls__it_open(d, &(ls__opening){ .going = going, .iteration = iteration }, &it),
                     LS_OK);
    return it;
}

static double drawn(void)
{
    return ls_to_double(ls_random_uniform(LS_F64, LS_SCALAR, 0, 1));
}

static double drawn_for(const ls__it *it, int64_t number)
{
    ls__callback call;
    assert_int_equal(ls__callback_open(&call, it, number), LS_OK);
    double x = drawn();
    assert_int_equal(ls__callback_close(&call, LS_OK, "test", number), LS_OK);
    return x;
}

static void draws_are_the_elements(void **state)
{
    (void)state;
    LS_FRAME {
        ls__going going = { 0 };
        ls__it *a = open_range(&going, 0), *b = open_range(&going, 1);
        ls_random_seed(1);
        const double first = drawn(), x = drawn_for(a, 7);
        const double second = drawn(); /* ours go on as if nothing had been */
        ls_random_seed(1);
        assert_true(drawn() == first && drawn() == second);
        ls_random_seed(2);
        ls_random_step(100);
        assert_true(drawn_for(a, 7) == x);
        assert_true(drawn_for(a, 8) != x);
        assert_true(drawn_for(b, 7) != x); /* another iteration */
        ls__it *taken = NULL;
        ls_dataset *d = ls_take(ls_range(0, 10, 1), 9);
        assert_int_equal(ls__it_open(d, &(ls__opening){ .going = &going }, &taken), LS_OK);
        assert_true(drawn_for(taken, 7) != x); /* another stage */
        ls__it_close(a);
        ls__it_close(b);
        ls__it_close(taken);
    }
}

static void tapes_do_not_see_the_call(void **state)
{
    (void)state;
    LS_FRAME {
        ls__going going = { 0 };
        ls__it *it = open_range(&going, 0);
        ls__callback call;
        ls_tape_open();
        assert_true(ls__tape_noting());
        assert_int_equal(ls__callback_open(&call, it, 0), LS_OK);
        assert_false(ls__tape_noting());
        ls_tape_open();
        assert_true(ls__tape_noting());
        assert_int_equal(ls__callback_close(&call, LS_OK, "test", 0), LS_OK);
        assert_true(ls__tape_noting());
        ls__it_close(it);
    }
}

/* Every stage's functions, on the thread that pulls, which has all cores for its own kernels. */
static int calls, cores_seen;

static void look_at_cores(void)
{
    calls++;
    cores_seen += ls__kernel_threads_get();
    ls__kernel_threads(3); /* stays in here */
}

static bool keeps(ls_value *v, void *user)
{
    (void)user;
    look_at_cores();
    return v;
}

static ls_value *maps(ls_value *v, void *user)
{
    (void)user;
    look_at_cores();
    return v;
}

static ls_dataset *makes(ls_value *v, void *user)
{
    (void)user;
    look_at_cores();
    return ls_once(v);
}

static ls_status generates(void *generator, ls_value **out)
{
    (void)generator;
    look_at_cores();
    *out = ls_leaf(ls_scalar_int(LS_I64, calls));
    return ls_error_pending();
}

static void kernels_use_one_core(void **state)
{
    (void)state;
    const int before = ls__kernel_threads_get();
    ls__kernel_threads(5);
    LS_FRAME {
        ls_dataset *numbers = ls_range(0, 3, 1);
        ls_dataset *all[] = { ls_filter(numbers, keeps, NULL), ls_map(numbers, LS_MAP(.fn = maps)),
                              ls_flat_map(numbers, makes, NULL),
                              ls_take(ls_generate(LS_GENERATOR(.next = generates)), 3) };
        for (int i = 0; i < 4; i++) {
            int n = 0;
            calls = cores_seen = 0;
            LS_FOR_EACH (v, all[i]) {
                n += v != NULL;
                assert_int_equal(ls__kernel_threads_get(), 5);
            }
            assert_int_equal(n, 3);
            assert_true(calls >= 3);
            assert_int_equal(cores_seen, calls);
        }
    }
    assert_int_equal(ls_error(), LS_OK);
    assert_int_equal(ls__kernel_threads_get(), 5);
    ls__kernel_threads(before);
}

static void errors_say_which_element(void **state)
{
    (void)state;
    LS_FRAME {
        ls__going going = { 0 };
        ls__it *it = open_range(&going, 0);
        ls__callback call;
        assert_int_equal(ls__callback_open(&call, it, 3), LS_OK);
        ls__fail(LS_IO, "no luck");
        assert_int_equal(ls__callback_close(&call, LS_OK, "ls_test", 3), LS_IO);
        assert_string_equal(ls_error_text(), "ls_test: element 3: no luck");
        failed(LS_IO);

        assert_int_equal(ls__callback_open(&call, it, 4), LS_OK);
        ls_status st = ls__callback_failed();
        assert_int_equal(ls__callback_close(&call, st, "ls_test", 4), LS_INVALID);
        assert_string_equal(ls_error_text(),
                            "ls_test: element 4: the function gave NULL and no error");
        failed(LS_INVALID);

        /* an error from before is not the function's, and stays the first */
        ls__fail(LS_CORRUPT, "earlier");
        assert_int_equal(ls__callback_open(&call, it, 5), LS_OK);
        assert_int_equal(ls_error_pending(), LS_OK);
        assert_int_equal(ls__callback_close(&call, LS_OK, "ls_test", 5), LS_OK);
        assert_string_equal(ls_error_text(), "earlier");
        failed(LS_CORRUPT);
        ls__it_close(it);
    }
}

static void frames_left_open_are_an_error(void **state)
{
    (void)state;
    LS_FRAME {
        ls__going going = { 0 };
        ls__it *it = open_range(&going, 0);
        ls__callback call;
        ls_tensor *before = ls_scalar_int(LS_I64, 5);
        assert_int_equal(ls__callback_open(&call, it, 0), LS_OK);
        ls_frame_open();
        assert_int_equal(ls__callback_close(&call, LS_OK, "ls_test", 0), LS_STATE);
        failed(LS_STATE);
        assert_int_equal(ls_to_int(before), 5);
        assert_int_equal(ls_error(), LS_OK);
        ls__it_close(it);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(draws_are_the_elements, clean),
        cmocka_unit_test_setup(tapes_do_not_see_the_call, clean),
        cmocka_unit_test_setup(kernels_use_one_core, clean),
        cmocka_unit_test_setup(errors_say_which_element, clean),
        cmocka_unit_test_setup(frames_left_open_are_an_error, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
