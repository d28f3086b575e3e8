/*
 * Small things to fit: points in four classes, a model of two layers, and a strategy.
 */
#ifndef LS__TRAIN_FIT_TEST_SUPPORT_H
#define LS__TRAIN_FIT_TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <lockstep.h>

enum { POINTS = 50, BATCH = 12 }; /* 4 batches of 12, and one of 2 */

/* Classes that a line cannot part, but two layers can. */
static inline ls_dataset *points(int n)
{
    static float x[2 * 1000];
    static int32_t y[1000];
    for (int i = 0; i < n; i++) {
        float a = (float)((i * 37) % 101) / 50 - 1, b = (float)((i * 53) % 97) / 48 - 1;
        x[2 * i] = a;
        x[2 * i + 1] = b;
        y[i] = (a > 0) + 2 * (a * b > 0);
    }
    return ls_slices(ls_tensors(2, (ls_tensor *[]){ ls_from(LS_F32, LS_DIMS(n, 2), x),
                                                    ls_from(LS_I32, LS_DIMS(n), y) }));
}

static inline ls_dataset *batches(void)
{
    return ls_batch(ls_shuffle(points(POINTS), POINTS, 7), BATCH);
}

static inline ls_dataset *test_batches(void)
{
    return ls_batch(points(30), 8);
}

/* Dropout makes steps depend on draws, too. */
static inline ls_model *small_model(double dropout)
{
    ls_model *m = ls_model_new(LS_MODEL(.name = "small", .input = "f32[2]"));
    ls_dense_layer(m, LS_DENSE_LAYER(.units = 16, .activation = ls_relu));
    if (dropout > 0)
        ls_dropout_layer(m, dropout);
    ls_dense_layer(m, LS_DENSE_LAYER(.units = 4));
    return m;
}

static inline ls_strategy *replicas(int v, int devices)
{
    static const char *const lists[] = { "/cpu:0", "/cpu:0,/cpu:1", "/cpu:0,/cpu:1,/cpu:2" };
    return ls_mirrored(LS_MIRRORED(.devices = lists[devices - 1], .replicas = v));
}

static inline ls_trainer *small_trainer(ls_strategy *s, double dropout)
{
    ls_random_seed(3);
    return ls_trainer_new(LS_TRAINER(.strategy = s, .model = small_model(dropout),
                                     .optimizer = ls_adam(LS_ADAM(.rate = 0.01)),
                                     .global_batch = BATCH));
}

/* Nothing is pending. */
static inline void assert_clean(void)
{
    if (ls_error_pending())
        fail_msg("%s", ls_error_report());
}

/* The error there is, taken, and its text. */
#define assert_error(code, part)                                                                   \
    do {                                                                                           \
        assert_int_equal(ls_error(), code);                                                        \
        if (!strstr(ls_error_text(), part) && !strstr(ls_error_hint(), part))                      \
            fail_msg("'%s' is not in: %s (%s)", part, ls_error_text(), ls_error_hint());           \
    } while (0)

#endif
