/*
 * What the tests of optimizers with replicas share: every kind of optimizer, and a model of two
 * variables whose gradients show the order in which they are summed.
 */
#ifndef LS__TRAIN_OPTIMIZER_TEST_SUPPORT_H
#define LS__TRAIN_OPTIMIZER_TEST_SUPPORT_H

#include <lockstep.h>
#include <math.h>

#include "strategy/variable_test_support.h"

enum { W_COUNT = 37, B_COUNT = 5, FLAT = W_COUNT + B_COUNT };

/* Every optimizer, and every option. */
enum { OPTIMIZERS = 8 };
static inline ls_optimizer *optimizer_number(int i)
{
    static const int64_t boundaries[] = { 1, 2 };
    static const double values[] = { 0.1, 0.05, 0.01 };
    const char *bias = "bias";
    ls_optimizer *o;
    switch (i) {
    case 0:
        return ls_sgd(LS_SGD(.rate = 0.1));
    case 1:
        return ls_sgd(LS_SGD(.rate = 0.1, .momentum = 0.9));
    case 2:
        return ls_sgd(LS_SGD(.rate = 0.1, .momentum = 0.9, .nesterov = true, .clip_value = 0.5));
    case 3:
        return ls_sgd(LS_SGD(.rate = 0.1, .weight_decay = 0.1, .clip_norm = 2));
    case 4:
        return ls_adam(NULL);
    case 5:
        return ls_adam(LS_ADAM(.clip_global_norm = 1.5, .lazy = true));
    case 6:
        o = ls_adamw(LS_ADAM(.schedule = LS_SCHEDULE(.kind = LS_SCHEDULE_COSINE, .steps = 3,
                                                     .alpha = 0.1, .warmup_steps = 1)));
        assert_int_equal(ls_exclude_from_weight_decay(o, 0, NULL, 1, &bias), LS_OK);
        return o;
    case 7:
        return ls_adamw(
            LS_ADAM(.schedule = LS_SCHEDULE(.kind = LS_SCHEDULE_STEP, .count = 2,
                                            .boundaries = boundaries, .values = values)));
    default:
        return NULL;
    }
}

/* A gradient with which the order of a sum shows: element i of replica `replica` in part
 * `part`. */
static inline float slope(int replica, int part, int i)
{
    return sinf(0.7f * (float)replica + 1.9f * (float)part + (float)i) *
           powf(10, (float)((i + replica) % 5 - 2));
}

typedef struct pair {
    ls_optimizer *o;
    ls_variable *v[2]; /* "w", "bias" */
    int part;          /* of the gradients to come */
    int bad;           /* the replica that fails; -1: none */
} pair;

/* NULL strategy: outside of any. */
static inline pair make_pair(ls_strategy *s, ls_optimizer *o)
{
    pair p = { .o = o, .bad = -1 };
    assert_non_null(o);
    float w[W_COUNT], b[B_COUNT];
    for (int i = 0; i < W_COUNT; i++)
        w[i] = cosf((float)i);
    for (int i = 0; i < B_COUNT; i++)
        b[i] = 0.5f - (float)i;
    LS_FRAME
        LS_SCOPE (s ? s : ls_default_strategy()) {
            p.v[0] = ls_variable_new("w", ls_from(LS_F32, LS_DIMS(W_COUNT), w), true);
            p.v[1] = ls_variable_new("bias", ls_from(LS_F32, LS_DIMS(B_COUNT), b), true);
        }
    assert_true(p.v[0] && p.v[1]);
    return p;
}

static inline void free_pair(pair *p)
{
    ls_variable_free(p->v[0]);
    ls_variable_free(p->v[1]);
    ls_optimizer_free(p->o);
}

static inline void slopes(int replica, int part, ls_tensor **out)
{
    float g[FLAT];
    for (int i = 0; i < FLAT; i++)
        g[i] = slope(replica, part, i);
    out[0] = ls_from(LS_F32, LS_DIMS(W_COUNT), g);
    out[1] = ls_from(LS_F32, LS_DIMS(B_COUNT), g + W_COUNT);
}

/* Weights, then every slot. */
enum { MOST_STATE = 3 * FLAT };
static inline int state_of(pair *p, float *out)
{
    int n = 0;
    LS_FRAME
        for (int i = 0; i < 2; i++)
            for (int slot = -1; slot < ls_slot_count(p->o); slot++) {
                ls_tensor *t = slot < 0 ? ls_read(p->v[i]) : ls_slot_read(p->o, p->v[i], slot);
                size_t bytes = (size_t)ls_count(t) * sizeof *out;
                assert_int_equal(ls_copy_out(t, out + n, bytes), LS_OK);
                n += (int)ls_count(t);
            }
    return n;
}

static inline void same_state(const float *got, const float *want, int n)
{
    for (int i = 0; i < n; i++)
        if (memcmp(&got[i], &want[i], sizeof(float)) != 0)
            fail_msg("number %d is %a, not %a", i, (double)got[i], (double)want[i]);
}

#endif
