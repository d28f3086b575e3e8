/*
 * Pictures: what golden cases cannot show. The random ones draw as random.h says, the same in
 * a traced step and on any thread, reach every place, and have gradients; what is no picture is
 * refused by name.
 */
#include <lockstep.h>

#include <pthread.h>

#include "tensor/test_support.h"

enum { H = 4, W = 5, C = 3, STEPS = 200 };

static int fresh(void **state)
{
    ls_random_seed(11);
    ls_random_step(0);
    return clean(state);
}

/* [H, W, C]; every element another number. */
static ls_tensor *picture(ls_dtype dtype)
{
    float x[H * W * C];
    for (int i = 0; i < H * W * C; i++)
        x[i] = (float)i;
    return ls_cast(ls_from(LS_F32, LS_DIMS(H, W, C), x), dtype);
}

static bool same(ls_tensor *a, ls_tensor *b)
{
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(ls_dtype_of(a), ls_dtype_of(b));
    assert_string_equal(ls_describe(a), ls_describe(b));
    return ls_size_in_bytes(a) == 0 || !memcmp(ls_data(a), ls_data(b), ls_size_in_bytes(a));
}

/* ---- crops ----------------------------------------------------------------------------- */

/* A crop is the box at the place that was drawn, top first. */
static void crops_are_boxes(void **state)
{
    (void)state;
    enum { h = 2, w = 3 };
    int seen[H - h + 1][W - w + 1] = { 0 };
    for (int step = 0; step < STEPS; step++)
        LS_FRAME {
            ls_dtype dtype = step % 2 ? LS_U8 : LS_F32;
            ls_random_step(step);
            int64_t top = ls_to_int(ls_random_uniform(LS_I64, LS_SCALAR, 0, H - h + 1));
            int64_t left = ls_to_int(ls_random_uniform(LS_I64, LS_SCALAR, 0, W - w + 1));
            ls_random_step(step);
            ls_tensor *y = ls_random_crop(picture(dtype), h, w);
            assert_true(same(y, ls_crop(picture(dtype), top, left, h, w)));
            seen[top][left]++;
        }
    for (int i = 0; i <= H - h; i++)
        for (int k = 0; k <= W - w; k++)
            assert_true(seen[i][k] > 0);
}

static float next_draw(void)
{
    return ls_to_float(ls_random_uniform(LS_F32, LS_SCALAR, 0, 1));
}

/* What is drawn afterwards does not depend on the sizes. */
static void crops_draw_twice(void **state)
{
    (void)state;
    for (int h = 1; h <= H; h++)
        LS_FRAME {
            ls_random_step(3);
            next_draw();
            next_draw();
            float third = next_draw();
            ls_random_step(3);
            ls_random_crop(picture(LS_U8), h, W);
            assert_true(next_draw() == third);
        }
    LS_FRAME
        assert_true(same(ls_random_crop(picture(LS_BF16), H, W), picture(LS_BF16)));
}

/* ---- flips -------------------------------------------------------------------------------- */

static void flips_turn_half_of_them(void **state)
{
    (void)state;
    int turned = 0;
    for (int step = 0; step < STEPS; step++)
        LS_FRAME {
            ls_random_step(step);
            bool turn = ls_to_int(ls_random_uniform(LS_I64, LS_SCALAR, 0, 2)) == 1;
            ls_random_step(step);
            ls_tensor *x = picture(LS_F32), *y = ls_random_flip_left_right(x);
            assert_true(same(y, turn ? ls_flip_left_right(x) : x));
            turned += turn;
        }
    assert_in_range(turned, STEPS * 2 / 5, STEPS * 3 / 5);
}

static void empty_pictures_flip(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = ls_zeros(LS_U8, LS_DIMS(0, 0, 3));
        assert_true(same(ls_flip_left_right(x), x));
        assert_true(same(ls_flip_up_down(x), x));
        assert_true(same(ls_random_flip_left_right(x), x));
    }
}

/* ---- traced, on another thread, with gradients ------------------------------------------------ */

static ls_tensor *augment(ls_tensor *x)
{
    x = ls_random_flip_left_right(ls_random_crop(x, 3, 3));
    return ls_resize_bilinear(x, 5, 4);
}

/* The picture, and the gradient of the sum of its squares. */
static ls_value *augment_step(ls_value *arguments, void *user)
{
    (void)user;
    ls_tensor *x = ls_item(arguments, 0);
    ls_tape *tape = ls_tape_open();
    ls_tensor *y = augment(x);
    ls_tensor *dx = ls_gradient(tape, ls_sum(ls_mul(y, y), LS_ALL_AXES, false), x);
    ls_tape_close(tape); /* or else a call that follows would not replay */
    return ls_tensors(2, (ls_tensor *[]){ y, dx });
}

static void traced_steps_draw_anew(void **state)
{
    (void)state;
    int changes = 0;
    ls_function *f = ls_trace(augment_step, NULL);
    for (int step = 0; step < 20; step++)
        LS_FRAME {
            ls_tensor *x = picture(LS_F32);
            ls_value *arguments = ls_tensors(1, &x);
            ls_random_step(step);
            ls_value *eager = augment_step(arguments, NULL);
            ls_random_step(step);
            ls_value *replayed = ls_function_call(f, arguments);
            for (int i = 0; i < 2; i++)
                assert_true(same(ls_item(eager, i), ls_item(replayed, i)));
            ls_random_step(step + 1);
            changes += !same(ls_item(eager, 0), augment(x));
        }
    assert_int_equal(ls_function_traces(f), 1);
    assert_true(changes > 10);
    ls_function_free(f);
}

/* Ones where the crop was, zeros elsewhere. */
static void gradients_go_where_the_crop_was(void **state)
{
    (void)state;
    for (int step = 0; step < 10; step++)
        LS_FRAME {
            ls_random_step(step);
            ls_tensor *x = picture(LS_F32);
            ls_tape *tape = ls_tape_open();
            ls_tensor *y = ls_random_crop(x, 2, 2);
            ls_tensor *dx = ls_gradient(tape, ls_sum(y, LS_ALL_AXES, false), x);
            const float *in = ls_data(y), *out = ls_data(dx);
            int first = (int)in[0]; /* each element is its own index */
            for (int i = 0; i < H * W * C; i++) {
                int row = (i - first) / (W * C), place = (i - first) % (W * C);
                bool inside = i >= first && row < 2 && place < 2 * C;
                assert_true(out[i] == (inside ? 1 : 0));
            }
        }
}

typedef struct errand {
    float out[5 * 4 * C];
    ls_status status;
} errand;

static void *elsewhere(void *arg)
{
    errand *e = arg;
    LS_FRAME {
        ls_random_seed(11);
        ls_random_step(9);
        e->status = ls_copy_out(augment(picture(LS_F32)), e->out, sizeof e->out);
    }
    return NULL;
}

static void threads_draw_the_same(void **state)
{
    (void)state;
    errand here = { .status = LS_INVALID }, there = { .status = LS_INVALID };
    pthread_t thread;
    elsewhere(&here);
    assert_int_equal(pthread_create(&thread, NULL, elsewhere, &there), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(here.status, LS_OK);
    assert_int_equal(there.status, LS_OK);
    assert_memory_equal(here.out, there.out, sizeof here.out);
}

/* ---- errors ------------------------------------------------------------------------------------ */

static void says(ls_tensor *y, ls_status want, const char *what)
{
    assert_null(y);
    if (!strstr(ls_error_text(), what) && !strstr(ls_error_hint(), what))
        fail_msg("'%s' is not in: %s", what, ls_error_report());
    failed(want);
}

static void errors_name_the_function(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = picture(LS_F32), *batch = ls_expand_dims(x, 0);
        ls_tensor *text = ls_from_strings(LS_DIMS(1, 1, 1), (const void *[]){ "a" }, NULL);
        says(ls_random_crop(batch, 1, 1), LS_SHAPE, "random_crop: given f32[1,4,5,3]");
        says(ls_random_flip_left_right(batch), LS_SHAPE, "before they are batched");
        says(ls_random_crop(x, H + 1, 1), LS_INVALID, "random_crop: height 5 and width 1");
        says(ls_random_crop(x, 1, 0), LS_INVALID, "width 0");
        says(ls_flip_up_down(text), LS_SHAPE, "flip_up_down: given bytes[1,1,1]");
        says(ls_resize_nearest(text, 1, 1), LS_SHAPE, "resize_nearest");
        says(ls_resize_bilinear(text, 1, 1), LS_SHAPE, "resize_bilinear");
        says(ls_crop(text, 0, 0, 1, 1), LS_SHAPE, "crop");
        says(ls_random_crop(text, 1, 1), LS_SHAPE, "random_crop");
        says(ls_crop(NULL, 0, 0, 1, 1), LS_INVALID, "crop: x is NULL");
        says(ls_center_crop(NULL, 1, 1), LS_INVALID, "center_crop: x is NULL");
        says(ls_flip_left_right(NULL), LS_INVALID, "flip_left_right: x is NULL");
        says(ls_resize_nearest(NULL, 1, 1), LS_INVALID, "resize_nearest: x is NULL");
        says(ls_random_crop(NULL, 1, 1), LS_INVALID, "random_crop: x is NULL");
        says(ls_random_flip_left_right(NULL), LS_INVALID, "random_flip_left_right: x is NULL");
        /* The first error stays the one. */
        says(ls_flip_up_down(ls_center_crop(ls_crop(x, 9, 9, 1, 1), 1, 1)), LS_INVALID,
             "crop: 1 x 1");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(crops_are_boxes, fresh),
        cmocka_unit_test_setup(crops_draw_twice, fresh),
        cmocka_unit_test_setup(flips_turn_half_of_them, fresh),
        cmocka_unit_test_setup(empty_pictures_flip, fresh),
        cmocka_unit_test_setup(traced_steps_draw_anew, fresh),
        cmocka_unit_test_setup(gradients_go_where_the_crop_was, fresh),
        cmocka_unit_test_setup(threads_draw_the_same, fresh),
        cmocka_unit_test_setup(errors_name_the_function, fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
