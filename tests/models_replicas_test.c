/*
 * Lockstep's own models, as large as they are, on two replicas and two devices: what is updated by
 * products, early or not, has the bits of gradients that are made and added up by themselves; and
 * every variable that can be trained is. (Small models have neither: their products are others'
 * work.)
 */
#include <lockstep.h>
#include <lockstep/function.h>

#include <string.h>

#include "tensor/test_support.h"
#include "train/models/samples.h"

enum { REPLICAS = 2, STEPS = 2, MOST_VARIABLES = 128 };

#if defined(LS_HAVE_DNNL) && !defined(__SANITIZE_ADDRESS__)
#define FAST true
#else
#define FAST false /* the others take their time */
#endif

typedef struct trainer {
    ls_model *model;
    ls_optimizer *adam;
    int64_t rows;
} trainer;

/* What a run leaves: copies of all variables. */
typedef struct outcome {
    int count;
    ls_tensor *values[MOST_VARIABLES];
} outcome;

static ls_value *train(ls_value *batch, void *user)
{
    const trainer *t = user;
    ls_tape *tape = ls_tape_open();
    ls_tensor *loss = ls_scale(ls__mean_loss(t->model, batch, true), 1.0 / REPLICAS);
    ls_minimize(t->adam, tape, loss, ls_model_count(t->model), ls_model_variables(t->model));
    return ls_leaf(loss);
}

static ls_value *samples(int replica, int replicas, void *user)
{
    (void)replicas;
    const trainer *t = user;
    ls_random_step(replica);
    return ls__draw_samples(t->model, t->rows, 32, 10);
}

static void note(const ls_model *m, outcome *out)
{
    out->count = ls_model_count(m);
    assert_true(out->count <= MOST_VARIABLES);
    for (int i = 0; i < out->count; i++)
        LS_FRAME
            out->values[i] = ls_keep(ls_read(ls_model_variables(m)[i]));
}

static void drop(outcome *o)
{
    for (int i = 0; i < o->count; i++)
        ls_drop(o->values[i]);
}

static bool same(ls_tensor *a, ls_tensor *b)
{
    bool equal = false;
    LS_FRAME {
        const size_t bytes = ls_size_in_bytes(a);
        const void *x = ls_data(ls_import(a)), *y = ls_data(ls_import(b));
        equal = x && y && ls_size_in_bytes(b) == bytes && memcmp(x, y, bytes) == 0;
    }
    return equal;
}

static void run(const char *name, int64_t rows, const char *off, outcome *before, outcome *after)
{
    ls_random_seed(1);
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0,/cpu:1", .replicas = REPLICAS));
    trainer t = { .rows = rows };
    LS_SCOPE (s) {
        t.model = ls__built(name);
        t.adam = ls_adam(NULL);
    }
    assert_non_null(t.model);
    note(t.model, before);
    ls_function *step = ls_trace_with(LS_TRACE(.off = off), train, &t);
    for (int i = 0; i < STEPS; i++)
        LS_FRAME
            if (!ls_run(s, step, ls_distribute_values(s, samples, &t)))
                fail_msg("%s: %s", name, ls_error_report());
    note(t.model, after);
    ls_function_free(step);
    ls_optimizer_free(t.adam);
    ls_model_free(t.model);
    assert_int_equal(ls_strategy_free(s), LS_OK);
}

static void check(const char *name, int64_t rows)
{
    static const char *const off[] = { "products", "early", NULL };
    outcome before, want, got;
    run(name, rows, off[0], &before, &want);
    for (int i = 0; i < want.count; i++)
        if (same(before.values[i], want.values[i]))
            fail_msg("%s: variable %d was not trained", name, i);
    drop(&before);
    for (int k = 1; k < 3; k++) {
        run(name, rows, off[k], &before, &got);
        for (int i = 0; i < want.count; i++)
            if (!same(want.values[i], got.values[i]))
                fail_msg("%s: variable %d has other bits without '%s'", name, i,
                         off[k] ? off[k] : "");
        drop(&before);
        drop(&got);
    }
    drop(&want);
}

static void pictures(void **state)
{
    (void)state;
    check("cnn", 32);
    if (FAST) {
        check("mlp", 32);
        check("cnn2", 16);
    }
}

static void others(void **state)
{
    (void)state;
    if (!FAST)
        skip();
    check("resnet", 4);
    check("gpt", 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(pictures), cmocka_unit_test(others) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
