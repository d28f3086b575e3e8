/*
 * Pauses: what runs in one is on no tape from outside, and tapes opened in it see their own
 * notes and no others.
 */
#include <lockstep/ops.h>
#include <lockstep/tape.h>

#include <pthread.h>

#include "dispatch/tape.h"
#include "tensor/test_support.h"

static ls_tensor *number(double x)
{
    return ls_scalar(LS_F64, x);
}

static void gives(ls_tape *tape, ls_tensor *y, ls_tensor *x, double want)
{
    double got = ls_to_double(ls_gradient(tape, y, x));
    if (ls_error_pending() || got != want)
        fail_msg("%g, not %g (%s)", got, want, ls_error_report());
}

static void nothing_is_noted_in_a_pause(void **state)
{
    (void)state;
    size_t start = memory();
    LS_FRAME {
        ls_tensor *x = number(3);
        ls_tape *tape = ls_tape_open();
        ls_tensor *before = ls_mul(x, x);
        size_t noted = memory();
        int token = ls__tape_pause();
        assert_false(ls__tape_noting());
        ls_tensor *inside = NULL;
        LS_FRAME
            inside = ls_hand_up(ls_mul(before, x));
        assert_int_equal(memory(), noted + 64); /* `inside`, and nobody holds the rest */
        gives(tape, before, x, 6);              /* can be asked meanwhile */
        ls__tape_resume(token);
        assert_true(ls__tape_noting());
        gives(tape, before, x, 6);
        gives(tape, inside, x, 0); /* made out of sight */
        ls_tensor *after = ls_mul(inside, before);
        gives(tape, after, x, 27 * 6);
        gives(tape, after, inside, 9);
    }
    assert_int_equal(memory(), start);
    assert_false(ls__tape_noting());
}

static void tapes_inside_see_only_their_own(void **state)
{
    (void)state;
    size_t start = memory();
    LS_FRAME {
        ls_tensor *x = number(3);
        ls_tape *outer = ls_tape_open();
        ls_tensor *y = ls_mul(x, x);
        int token = ls__tape_pause();
        LS_FRAME {
            ls_tape *inner = ls_tape_open();
            assert_true(ls__tape_noting());
            ls_tensor *z = ls_mul(y, y);
            gives(inner, z, y, 18);
            gives(inner, z, x, 0); /* y came from outside */
            gives(outer, z, x, 0);
            gives(outer, z, y, 0);
            gives(outer, y, x, 6);
            ls_tape *second = ls_tape_open(); /* shares the log of the pause */
            gives(second, ls_mul(z, z), z, 2 * 81);
            gives(inner, ls_gradient(inner, z, y), y, 2); /* the tape still runs */
            assert_int_equal(ls_tape_close(inner), LS_OK);
            assert_true(ls__tape_noting());
        }
        assert_false(ls__tape_noting()); /* its tapes went with their frame */
        ls__tape_resume(token);
        assert_true(ls__tape_noting());
        ls_tensor *w = ls_mul(y, y);
        gives(outer, w, x, 4 * 27);
        gives(outer, ls_gradient(outer, w, x), x, 12 * 9);
    }
    assert_int_equal(memory(), start);
}

static void a_tape_that_outlasts_its_pause_has_stopped(void **state)
{
    (void)state;
    size_t start = memory();
    LS_FRAME {
        ls_tensor *x = number(3);
        int token = ls__tape_pause();
        ls_tape *tape = ls_tape_open();
        ls_tensor *y = ls_mul(x, x);
        ls__tape_resume(token);
        assert_false(ls__tape_noting());
        ls_tensor *z = ls_mul(y, y);
        gives(tape, y, x, 6);
        gives(tape, z, x, 0);
        assert_int_equal(ls__tape_pause(), token); /* another pause is not that one */
        assert_false(ls__tape_noting());
        z = ls_mul(y, y);
        ls_tape *other = ls_tape_open();
        ls_tensor *w = ls_mul(y, y);
        gives(tape, z, x, 0);
        gives(tape, w, x, 0);
        gives(other, w, y, 18);
        gives(other, w, x, 0);
        assert_int_equal(ls_tape_stop(tape), LS_OK);
        assert_true(ls__tape_noting());
        ls__tape_resume(token);
        assert_int_equal(ls_tape_close(tape), LS_OK);
        gives(other, w, y, 18);
    }
    assert_int_equal(memory(), start);
    assert_false(ls__tape_noting());
}

static void outer_tapes_end_in_a_pause(void **state)
{
    (void)state;
    size_t start = memory();
    for (int closed = 0; closed < 2; closed++)
        LS_FRAME {
            ls_tensor *x = number(3);
            ls_tape *outer = ls_tape_open();
            ls_tensor *y = ls_mul(x, x);
            int token = ls__tape_pause();
            ls_tape *inner = ls_tape_open();
            ls_tensor *z = ls_mul(y, y);
            assert_int_equal(closed ? ls_tape_close(outer) : ls_tape_stop(outer), LS_OK);
            assert_true(ls__tape_noting()); /* the inner one goes on */
            gives(inner, ls_mul(z, z), z, 2 * 81);
            ls__tape_resume(token);
            assert_false(ls__tape_noting());
            if (closed) {
                assert_null(ls_gradient(outer, y, x));
                assert_non_null(strstr(ls_error_text(), "closed"));
                failed(LS_STATE);
            } else {
                gives(outer, y, x, 6);
            }
        }
    assert_int_equal(memory(), start);
}

/* Each level opens a tape or not, as the bits of `opens` say. */
static void descend(int level, int opens, ls_tensor *x)
{
    enum { DEEP = 4 };
    if (level == DEEP)
        return;
    LS_FRAME {
        ls_tape *tape = opens >> level & 1 ? ls_tape_open() : NULL;
        assert_int_equal(ls__tape_noting(), tape != NULL);
        ls_tensor *y = ls_mul(x, x);
        int token = ls__tape_pause();
        assert_false(ls__tape_noting());
        descend(level + 1, opens, y);
        assert_false(ls__tape_noting());
        ls__tape_resume(token);
        assert_int_equal(ls__tape_noting(), tape != NULL);
        ls_tensor *z = ls_mul(y, x);
        if (tape)
            gives(tape, z, x, 3 * ls_to_double(y));
    }
}

static void pauses_nest(void **state)
{
    (void)state;
    size_t start = memory();
    LS_FRAME
        for (int opens = 0; opens < 16; opens++)
            descend(0, opens, number(1));
    assert_int_equal(memory(), start);
}

static void *notes_there(void *unused)
{
    (void)unused;
    void *wrong = NULL;
    LS_FRAME {
        ls_tensor *x = number(3);
        ls_tape *tape = ls_tape_open();
        if (ls_to_double(ls_gradient(tape, ls_mul(x, x), x)) != 6)
            wrong = "a pause of another thread is felt here";
    }
    return wrong;
}

static void a_pause_is_the_threads(void **state)
{
    (void)state;
    int token = ls__tape_pause();
    pthread_t thread;
    void *wrong = "nothing ran";
    assert_int_equal(pthread_create(&thread, NULL, notes_there, NULL), 0);
    pthread_join(thread, &wrong);
    ls__tape_resume(token);
    assert_null(wrong);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nothing_is_noted_in_a_pause, clean),
        cmocka_unit_test_setup(tapes_inside_see_only_their_own, clean),
        cmocka_unit_test_setup(a_tape_that_outlasts_its_pause_has_stopped, clean),
        cmocka_unit_test_setup(outer_tapes_end_in_a_pause, clean),
        cmocka_unit_test_setup(pauses_nest, clean),
        cmocka_unit_test_setup(a_pause_is_the_threads, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
