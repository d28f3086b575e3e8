/*
 * Frames own tensors: they close on every way out of a block, in order; what is
 * handed up or kept survives; threads give everything back; memory stays flat.
 */
#include <lockstep/ops.h>
#include <lockstep/tensor.h>

#include <pthread.h>

#include "tensor/test_support.h"

#include "tensor/tensor.h"

/* The depth a frame opened now would have: tells whether others were closed. */
static int depth_now(void)
{
    int depth = ls_frame_open();
    assert_int_equal(ls_frame_close(depth), LS_OK);
    return depth;
}

static void leave_by_return(void)
{
    LS_FRAME {
        ls_zeros(LS_F32, LS_DIMS(1000));
        LS_FRAME {
            ls_zeros(LS_F32, LS_DIMS(1000));
            return;
        }
    }
}

static void closes_on_every_way_out(void **state)
{
    (void)state;
    size_t before = memory();
    int depth = depth_now(), turns = 0;

    LS_FRAME {
        ls_zeros(LS_F32, LS_DIMS(1000));
        assert_true(memory() > before);
        turns++;
    }
    assert_int_equal(turns, 1); /* a block, not a loop */
    assert_int_equal(memory(), before);

    LS_FRAME {
        ls_zeros(LS_F32, LS_DIMS(1000));
        if (turns)
            break;
        turns = 100;
    }
    assert_int_equal(turns, 1);
    assert_int_equal(memory(), before);
    assert_int_equal(depth_now(), depth);

    LS_FRAME {
        ls_zeros(LS_F32, LS_DIMS(1000));
        if (turns)
            continue;
        turns = 100;
    }
    assert_int_equal(turns, 1);
    assert_int_equal(memory(), before);

    leave_by_return();
    assert_int_equal(memory(), before);
    assert_int_equal(depth_now(), depth);

    LS_FRAME {
        ls_zeros(LS_F32, LS_DIMS(1000));
        LS_FRAME {
            ls_zeros(LS_F32, LS_DIMS(1000));
            goto out;
        }
    }
out:
    assert_int_equal(memory(), before);
    assert_int_equal(depth_now(), depth);

    for (int i = 0; i < 3; i++) /* a frame per turn, break leaves the frame only */
        LS_FRAME {
            ls_zeros(LS_F32, LS_DIMS(1000));
            turns++;
            break;
        }
    assert_int_equal(turns, 4);
    assert_int_equal(memory(), before);
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void depths_nest(void **state)
{
    (void)state;
    int one = ls_frame_open(), two = ls_frame_open(), three = ls_frame_open();
    assert_int_equal(two, one + 1);
    assert_int_equal(three, one + 2);
    assert_int_equal(ls_frame_close(three), LS_OK);
    assert_int_equal(ls_frame_close(two), LS_OK);
    assert_int_equal(ls_frame_close(one), LS_OK);
    assert_int_equal(depth_now(), one);
}

static void wrong_order_is_named(void **state)
{
    (void)state;
    size_t before = memory();
    int one = ls_frame_open();
    ls_tensor *outer = ls_ones(LS_F32, LS_DIMS(3));
    int two = ls_frame_open();
    ls_zeros(LS_F32, LS_DIMS(1000));

    /* A frame that is not open. */
    assert_int_equal(ls_frame_close(two + 1), LS_STATE);
    assert_int_equal(ls_error(), LS_STATE);
    assert_true(strlen(ls_error_text()) > 0);
    assert_int_equal(ls_frame_close(-1), LS_STATE);
    assert_int_equal(ls_error(), LS_STATE);
    assert_int_equal(ls_frame_close(INT32_MAX), LS_STATE);
    assert_int_equal(ls_error(), LS_STATE);
    assert_int_equal(ls_count(outer), 3); /* nothing has closed */

    /* The outer one while the inner is open: the forgotten close is noticed. */
    assert_int_equal(ls_frame_close(one), LS_STATE);
    assert_int_equal(ls_error(), LS_STATE);
    assert_true(strlen(ls_error_text()) > 0);

    /* Whatever was closed then, all of it can be. */
    ls_frame_close(two);
    ls_frame_close(one);
    ls_error();
    assert_int_equal(depth_now(), one);
    assert_int_equal(memory(), before);
    assert_int_equal(ls_frame_close(one), LS_STATE); /* closed twice */
    assert_int_equal(ls_error(), LS_STATE);
}

static void dead(const ls_tensor *t)
{
    float out[3];
    assert_int_equal(ls_copy_out(t, out, sizeof out), LS_INVALID);
    assert_non_null(strstr(ls_error_text(), "frame"));
    assert_int_equal(ls_error(), LS_INVALID);
}

static void an_outer_close_closes_all_inside(void **state)
{
    (void)state;
    size_t before = memory();
    int one = ls_frame_open();
    ls_tensor *t[4];
    for (int i = 0; i < 4; i++) {
        if (i > 0)
            ls_frame_open();
        t[i] = ls_ones(LS_F32, LS_DIMS(3));
    }
    assert_int_equal(ls_frame_close(one + 1), LS_STATE); /* with two inside it */
    assert_int_equal(ls_error(), LS_STATE);
    for (int i = 1; i < 4; i++)
        dead(t[i]);
    float out[3];
    assert_int_equal(ls_copy_out(t[0], out, sizeof out), LS_OK); /* the one around is open */
    assert_int_equal(depth_now(), one + 1);
    assert_int_equal(ls_frame_close(one), LS_OK);
    dead(t[0]);
    assert_int_equal(depth_now(), one);
    assert_int_equal(memory(), before);
}

static void hand_up_survives_one_frame(void **state)
{
    (void)state;
    size_t before = memory();
    LS_FRAME {
        ls_tensor *up = NULL, *up_twice = NULL;
        LS_FRAME {
            ls_tensor *t = ls_full(LS_F32, LS_DIMS(500), 3);
            up = ls_hand_up(t);
            assert_non_null(up);
            assert_ptr_not_equal(up, t);
            LS_FRAME {
                up_twice = ls_hand_up(ls_full(LS_F32, LS_SCALAR, 4));
                up_twice = ls_hand_up(up_twice);
            }
            assert_true(ls_to_float(up_twice) == 4);
        }
        const float *data = ls_data(up);
        assert_true(data[0] == 3 && data[499] == 3);
        assert_string_equal(ls_describe(up), "f32[500]");
    }
    assert_int_equal(memory(), before);
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void keep_until_drop(void **state)
{
    (void)state;
    size_t before = memory();
    ls_tensor *kept = NULL, *again = NULL;
    LS_FRAME {
        ls_tensor *t = ls_full(LS_I32, LS_DIMS(100), 7);
        kept = ls_keep(t);
        assert_non_null(kept);
        again = ls_keep(kept);
    }
    assert_true(memory() > before);
    assert_int_equal(((const int32_t *)ls_data(kept))[99], 7);
    ls_drop(kept);
    assert_int_equal(((const int32_t *)ls_data(again))[0], 7); /* its own count */
    ls_drop(again);
    ls_drop(NULL);
    assert_int_equal(memory(), before);
    assert_int_equal(ls_error_pending(), LS_OK);

    LS_FRAME { /* strings too */
        kept = ls_keep(ls_from_strings(LS_DIMS(1), (const void *[]){ "text" }, NULL));
    }
    const void *data;
    size_t length;
    assert_int_equal(ls_string_at(kept, 0, &data, &length), LS_OK);
    assert_string_equal(data, "text");
    ls_drop(kept);
    assert_int_equal(memory(), before);
}

/* Dropping what a frame owns is a mistake that must not free it twice. */
static void drop_of_a_frames_tensor(void **state)
{
    (void)state;
    size_t before = memory();
    LS_FRAME {
        ls_tensor *t = ls_ones(LS_F32, LS_DIMS(10));
        ls_drop(t);
        assert_int_not_equal(ls_error(), LS_OK);
        assert_true(((const float *)ls_data(t))[9] == 1);
    }
    assert_int_equal(memory(), before);
}

static void dead_handle_is_named(void **state)
{
    (void)state;
    ls_tensor *dead = NULL;
    LS_FRAME {
        dead = ls_ones(LS_F32, LS_DIMS(1));
    }
    float out[1];
    assert_int_equal(ls_copy_out(dead, out, sizeof out), LS_INVALID);
    assert_int_equal(ls_error(), LS_INVALID);
    assert_non_null(strstr(ls_error_text(), "frame"));
    assert_true(strlen(ls_error_hint()) > 0);
    assert_null(ls_keep(dead));
    assert_int_equal(ls_error(), LS_INVALID);
    assert_null(ls_hand_up(dead));
    assert_int_equal(ls_error(), LS_INVALID);
}

/* Whether the last call refused a tensor for its frame; takes the error. */
static bool refused(const ls_tensor *result, const char *text)
{
    bool right = !result && ls_error_pending() == LS_INVALID && strstr(ls_error_text(), text) &&
                 strstr(ls_error_text(), "frame") && strstr(ls_error_hint(), "ls_keep");
    ls_error();
    return right;
}

/* What a newcomer writes: the last turn's result used in this one. Refused, though
 * the new frame has made things since. Returns what was taken. */
static void *use_the_last_turn(void *unused)
{
    (void)unused;
    ls_tensor *prev = NULL;
    for (int turn = 0; turn < 5; turn++)
        LS_FRAME {
            ls_tensor *x = NULL;
            for (int i = 0; i <= turn; i++) {
                x = ls_full(LS_F32, LS_DIMS(3), i);
                if (prev && !refused(ls_relu(prev), "relu: input 0"))
                    return "relu";
            }
            if (prev && !refused(ls_add(x, prev), "add: input 1"))
                return "add";
            if (prev && !refused(ls_keep(prev), "ls_keep"))
                return "ls_keep";
            prev = ls_add(x, x);
        }
    return prev ? NULL : "no result";
}

/* On a thread of its own, so that no stock of older memory comes first. */
static void a_result_of_the_last_turn(void **state)
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

static void flat_over_many_frames(void **state)
{
    (void)state;
    ls_tensor *kept = ls_keep(ls_ones(LS_F32, LS_DIMS(16)));
    size_t before = memory();
    for (int i = 0; i < 10000; i++) {
        LS_FRAME {
            ls_tensor *t = ls_full(LS_F32, LS_DIMS(i % 1000, 3), 1);
            LS_FRAME {
                ls_hand_up(ls_import(kept));
                ls_scalar(LS_F64, i);
                if (i % 3 == 0)
                    break;
            }
            if (i % 7 == 0) {
                ls_tensor *k = ls_keep(t);
                ls_drop(k);
            }
        }
    }
    assert_int_equal(memory(), before);
    assert_int_equal(ls_error_pending(), LS_OK);
    ls_drop(kept);
}

static void many_in_one_frame(void **state)
{
    (void)state;
    size_t before = memory();
    LS_FRAME {
        enum { N = 20000 };
        static ls_tensor *t[N];
        for (int i = 0; i < N; i++)
            t[i] = ls_scalar_int(LS_I64, i);
        for (int i = 0; i < N; i++)
            assert_int_equal(ls_to_int(t[i]), i);
    }
    assert_int_equal(memory(), before);
}

static int releases;

static void count_release(void *data, void *user)
{
    (void)data;
    (void)user;
    releases++;
}

static float wrapped[4];

static void *leave_things_behind(void *arg)
{
    /* Outside any frame, inside one that is never closed, and an error. */
    ls_zeros(LS_F32, LS_DIMS(5000));
    ls_wrap(LS_F32, LS_DIMS(4), wrapped, count_release, NULL);
    ls_frame_open();
    ls_zeros(LS_F32, LS_DIMS(5000));
    ls_wrap(LS_F32, LS_DIMS(4), wrapped, count_release, NULL);
    ls_zeros((ls_dtype)0, LS_SCALAR);
    return arg;
}

static void thread_end_frees_all(void **state)
{
    (void)state;
    size_t before = memory();
    releases = 0;
    for (int i = 0; i < 10; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, leave_things_behind, NULL), 0);
        pthread_join(thread, NULL);
    }
    assert_int_equal(memory(), before);
    assert_int_equal(releases, 20);
    assert_int_equal(ls_error_pending(), LS_OK); /* errors belong to their threads */
}

static void *make_and_keep(void *arg)
{
    LS_FRAME {
        *(ls_tensor **)arg = ls_keep(ls_full(LS_F64, LS_DIMS(64), 2.5));
    }
    return NULL;
}

static void *read_import(void *arg)
{
    double sum = 0;
    LS_FRAME {
        ls_tensor *mine = ls_import(arg);
        const double *data = ls_data(mine);
        for (int i = 0; data && i < 64; i++)
            sum += data[i];
    }
    return sum == 160 ? arg : NULL;
}

static void import_from_another_thread(void **state)
{
    (void)state;
    size_t before = memory();
    ls_tensor *kept = NULL;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, make_and_keep, &kept), 0);
    pthread_join(thread, NULL); /* its thread is gone, the tensor is not */
    LS_FRAME {
        ls_tensor *mine = ls_import(kept);
        assert_non_null(mine);
        void *result = NULL;
        assert_int_equal(pthread_create(&thread, NULL, read_import, kept), 0);
        pthread_join(thread, &result);
        assert_ptr_equal(result, kept);
        ls_drop(kept);
        assert_true(((const double *)ls_data(mine))[63] == 2.5); /* a handle of its own */
    }
    assert_int_equal(memory(), before);
}

static void *many_frames(void *arg)
{
    for (int i = 0; i < 500; i++) {
        LS_FRAME {
            ls_tensor *t = ls_import(arg);
            ls_tensor *own = ls_full(LS_F64, LS_DIMS(50), i);
            if (!t || !own || ((const double *)ls_data(own))[49] != i ||
                ((const double *)ls_data(t))[0] != 1)
                return arg;
        }
    }
    return NULL;
}

static void threads_do_not_disturb_each_other(void **state)
{
    (void)state;
    size_t before = memory();
    ls_tensor *kept = ls_keep(ls_ones(LS_F64, LS_DIMS(8)));
    size_t with_kept = memory();
    /* Importing takes a reference; each thread has a kept handle of its own. */
    pthread_t threads[4];
    ls_tensor *theirs[4];
    for (int i = 0; i < 4; i++)
        theirs[i] = ls_keep(kept);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, many_frames, theirs[i]), 0);
    for (int i = 0; i < 4; i++) {
        void *failed = kept;
        pthread_join(threads[i], &failed);
        assert_null(failed);
        ls_drop(theirs[i]);
    }
    assert_int_equal(memory(), with_kept);
    ls_drop(kept);
    (void)before;
}

/* ---- the inside ------------------------------------------------------------ */

typedef struct witness {
    ls_tensor *tensor;
    int calls;
    double seen;
} witness;

static void on_close(void *object)
{
    witness *w = object;
    w->calls++;
    w->seen = ls_to_double(w->tensor);
}

static void closing_calls_while_tensors_live(void **state)
{
    (void)state;
    witness w = { 0 };
    LS_FRAME {
        w.tensor = ls_scalar(LS_F64, 12);
        assert_int_equal(ls__frame_on_close(on_close, &w), LS_OK);
        LS_FRAME {
        }
        assert_int_equal(w.calls, 0);
    }
    assert_int_equal(w.calls, 1);
    assert_true(w.seen == 12);
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void frame_memory(void **state)
{
    (void)state;
    LS_FRAME {
        char text[] = "a name";
        char *copy = ls__frame_string(text);
        memset(text, 'X', 6);
        int64_t *numbers = ls__frame_alloc(1000 * sizeof *numbers);
        for (int i = 0; i < 1000; i++)
            numbers[i] = i;
        LS_FRAME {
            memset(ls__frame_alloc(5000), 1, 5000);
        }
        assert_string_equal(copy, "a name");
        assert_int_equal(numbers[999], 999);
    }
}

static void aim_makes_things_further_out(void **state)
{
    (void)state;
    size_t before = memory();
    LS_FRAME {
        ls_tensor *far = NULL, *near = NULL;
        LS_FRAME {
            LS_FRAME {
                ls__frame *was = ls__frame_aim(2);
                far = ls_scalar(LS_F32, 5);
                ls__frame_aim_back(was);
                near = ls_scalar(LS_F32, 6);
            }
            assert_true(ls_to_float(far) == 5);
            float out;
            assert_int_equal(ls_copy_out(near, &out, sizeof out), LS_INVALID);
            ls_error();
        }
        assert_true(ls_to_float(far) == 5);
    }
    assert_int_equal(memory(), before);
}

static void handles_of_one_value_share_its_id(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *a = ls_scalar(LS_F32, 1), *b = ls_scalar(LS_F32, 1);
        assert_true(a->id != b->id);
        assert_true(ls_import(a)->id == a->id);
        ls_tensor *kept = ls_keep(a);
        assert_true(kept->id == a->id);
        ls_drop(kept);
        LS_FRAME {
            assert_true(ls_hand_up(ls_import(a))->id == a->id);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(closes_on_every_way_out, clean),
        cmocka_unit_test_setup(depths_nest, clean),
        cmocka_unit_test_setup(wrong_order_is_named, clean),
        cmocka_unit_test_setup(an_outer_close_closes_all_inside, clean),
        cmocka_unit_test_setup(hand_up_survives_one_frame, clean),
        cmocka_unit_test_setup(keep_until_drop, clean),
        cmocka_unit_test_setup(drop_of_a_frames_tensor, clean),
        cmocka_unit_test_setup(dead_handle_is_named, clean),
        cmocka_unit_test_setup(a_result_of_the_last_turn, clean),
        cmocka_unit_test_setup(flat_over_many_frames, clean),
        cmocka_unit_test_setup(many_in_one_frame, clean),
        cmocka_unit_test_setup(thread_end_frees_all, clean),
        cmocka_unit_test_setup(import_from_another_thread, clean),
        cmocka_unit_test_setup(threads_do_not_disturb_each_other, clean),
        cmocka_unit_test_setup(closing_calls_while_tensors_live, clean),
        cmocka_unit_test_setup(frame_memory, clean),
        cmocka_unit_test_setup(aim_makes_things_further_out, clean),
        cmocka_unit_test_setup(handles_of_one_value_share_its_id, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
