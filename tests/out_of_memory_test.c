/*
 * Memory runs out: the n-th allocation of a training step fails, for every n.
 * Each time the step says LS_NO_MEMORY, no variable and no counter has changed,
 * nothing leaks, and the next step works. Datasets and models are made under the same rule.
 */
#include <lockstep.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/failing_memory.h"
#include "tensor/journal.h"

enum { VARIABLES = 3 };

typedef struct model {
    ls_variable *v[VARIABLES];
    ls_optimizer *adam;
    ls_function *traced;   /* or NULL: eager */
    ls_strategy *strategy; /* whose replicas run it, or NULL */
} model;

/* Whether steps also accumulate and clip. */
static bool rich;

static model make(bool replicas)
{
    model m = { .adam = rich ? ls_adamw(LS_ADAM(.clip_global_norm = 1, .accumulates = true))
                             : ls_adam(NULL) };
    if (replicas) {
        m.strategy = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0,/cpu:1"));
        assert_int_equal(ls_scope_enter(m.strategy), LS_OK);
    }
    LS_FRAME {
        ls_random_seed(1);
        m.v[0] = ls_variable_new("w", ls_glorot_uniform(LS_F32, LS_DIMS(3, 2)), true);
        m.v[1] = ls_variable_new("b", ls_zeros(LS_F32, LS_DIMS(2)), true);
        m.v[2] = ls_variable_new("table", ls_ones(LS_F32, LS_DIMS(2, 2)), true);
    }
    if (replicas)
        assert_int_equal(ls_scope_leave(m.strategy), LS_OK);
    return m;
}

static void unmake(model *m)
{
    ls_function_free(m->traced);
    ls_optimizer_free(m->adam);
    for (int i = 0; i < VARIABLES; i++)
        ls_variable_free(m->v[i]);
    assert_int_equal(ls_strategy_free(m->strategy), LS_OK);
}

static ls_tensor *train(model *m, ls_tensor *x, ls_tensor *ids, ls_tensor **out)
{
    ls_tape *tape = ls_tape_open();
    ls_tensor *h = ls_tanh(ls_dense(x, ls_read(m->v[0]), ls_read(m->v[1])));
    h = ls_add(h, ls_embedding(ls_read(m->v[2]), ids));
    ls_tensor *loss = ls_mean(ls_sparse_softmax_xent(h, ids), LS_ALL_AXES, false);
    ls_value *kept =
        ls_value_keep(ls_dict(1, (const char *[]){ "pair" },
                              (ls_value *[]){ ls_tensors(2, (ls_tensor *[]){ loss, h }) }));
    ls_value_drop(kept);
    *out = h;
    ls_tensor *part = rich ? ls_sum(h, LS_AXES(0), false) : NULL; /* not a constant when traced */
    if (rich && ls_accumulate_gradients(m->adam, 1, &part, &m->v[1]))
        return NULL;
    return ls_minimize(m->adam, tape, kept ? loss : NULL, VARIABLES, m->v) ? NULL : loss;
}

/* The same as a function that is traced, with two results. */
static ls_value *traced_step(ls_value *batch, void *user)
{
    ls_tensor *h, *loss = train(user, ls_item(batch, 0), ls_item(batch, 1), &h);
    return loss ? ls_tensors(2, (ls_tensor *[]){ loss, h }) : NULL;
}

static ls_status step(model *m)
{
    ls_status st = LS_NO_MEMORY;
    LS_FRAME {
        ls_tensor *x = ls_full(LS_F32, LS_DIMS(4, 3), 0.5), *h;
        ls_tensor *ids = ls_from(LS_I32, LS_DIMS(4), (int32_t[]){ 0, 1, 1, 0 });
        ls_value *batch = ls_tensors(2, (ls_tensor *[]){ x, ids });
        bool done = m->strategy && m->traced ? ls_run(m->strategy, m->traced, batch) != NULL
                    : m->strategy ? ls_run_eager(m->strategy, traced_step, m, batch) != NULL
                    : m->traced   ? ls_function_call(m->traced, batch) != NULL
                                  : train(m, x, ids, &h) != NULL;
        st = done ? LS_OK : ls_error_pending();
    }
    return st;
}

typedef struct snapshot {
    float values[6 + 2 + 4];
    int64_t iterations, steps;
} snapshot;

static snapshot look(model *m)
{
    static const int sizes[VARIABLES] = { 6, 2, 4 };
    snapshot s;
    memset(&s, 0, sizeof s);
    float *at = s.values;
    for (int i = 0; i < VARIABLES; at += sizes[i++])
        LS_FRAME
            assert_int_equal(ls_copy_out(ls_read(m->v[i]), at, sizeof *at * (size_t)sizes[i]),
                             LS_OK);
    s.iterations = ls_iterations(m->adam);
    s.steps = ls_steps(m->strategy);
    return s;
}

/* Gives stocks back, so that the next step has to ask for everything again. */
static void empty_stocks(void)
{
    memory_keep_none();
}

static size_t memory(void)
{
    size_t now;
    ls_memory(&now, NULL);
    return now;
}

/* Who runs the step: the test alone, the test with what is written saved before (which
 * allocates, too), or two replicas. */
typedef enum runner { ALONE, JOURNALED, REPLICAS } runner;

/* Lets allocation `n` of a step fail; false when the step has no so many. With
 * `fresh`, the optimizer has yet to make its slots, and a traced step has yet to be
 * traced. */
static bool one_failure(long n, bool fresh, bool traced, runner by)
{
    size_t before = memory();
    model m = make(by == REPLICAS);
    if (traced)
        m.traced = ls_trace(traced_step, &m);
    if (!fresh)
        assert_int_equal(step(&m), LS_OK);
    snapshot then = look(&m);
    empty_stocks();
    ls__journal journal;
    ls__journal_open(&journal, NULL);
    ls__journal_use(by == JOURNALED ? &journal : NULL);
    memory_fails_after(n);
    ls_status st = step(&m);
    memory_is_back();
    ls__journal_use(NULL);
    ls__journal_commit(&journal);
    if (memory_failed) {
        if (st != LS_NO_MEMORY || ls_error() != LS_NO_MEMORY)
            fail_msg("allocation %ld: %s, '%s'", n, ls_status_name(st), ls_error_text());
        snapshot now = look(&m);
        if (memcmp(&then, &now, sizeof now) != 0)
            fail_msg("allocation %ld: a failed step has changed something", n);
        assert_int_equal(step(&m), LS_OK);
    } else {
        assert_int_equal(st, LS_OK);
    }
    unmake(&m);
    if (memory() != before)
        fail_msg("allocation %ld: %zu bytes before, %zu after", n, before, memory());
    return memory_failed;
}

static void fail_all(runner by, long least[2][2])
{
    for (int traced = 0; traced < 2; traced++)
        for (int fresh = 0; fresh < 2; fresh++) {
            long n = 0;
            while (one_failure(n, fresh, traced, by))
                n++;
            assert_true(n > least[traced][fresh]);
        }
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    fail_all(ALONE, (long[2][2]){ { 20, 20 }, { 2, 60 } }); /* [traced][fresh]: at work */
}

static void every_allocation_may_fail_in_a_journal(void **state)
{
    (void)state;
    fail_all(JOURNALED, (long[2][2]){ { 30, 30 }, { 12, 70 } });
}

static void every_allocation_of_replicas_may_fail(void **state)
{
    (void)state;
    fail_all(REPLICAS, (long[2][2]){ { 60, 60 }, { 2, 100 } });
}

static void every_allocation_of_richer_updates_may_fail(void **state)
{
    (void)state;
    rich = true;
    fail_all(ALONE, (long[2][2]){ { 20, 20 }, { 2, 60 } });
    fail_all(REPLICAS, (long[2][2]){ { 60, 60 }, { 2, 100 } });
    rich = false;
}

/* A rank without memory for the schedule does not come: the others are told, and do not wait. */
static void a_rank_without_memory_ends_the_call_for_all(void **state)
{
    (void)state;
    ls_comm *comm = ls_comm_local(LS_COMM(.ranks = 2, .timeout = 0.05));
    assert_non_null(comm);
    float data[2] = { 0 };
    for (int rank = 0; rank < 2; rank++) {
        memory_fails_after(rank ? -1 : 0);
        assert_int_equal(ls_comm_all_reduce(comm, rank, LS_SUM, LS_F32, &data[rank], 1),
                         LS_NO_MEMORY);
        assert_int_equal(ls_error(), LS_NO_MEMORY);
    }
    ls_comm_free(comm);
}

/* An example made, parsed in fixed and other shapes, and its bytes decoded. */
static ls_status parse_again(ls_value *dict)
{
    static const ls_feature features[] = { { .key = "image", .dtype = LS_BYTES },
                                           { .key = "label", .dtype = LS_I64 },
                                           { .key = "box", .dtype = LS_F32, .variable = true } };
    ls_status st = LS_OK;
    LS_FRAME {
        ls_value *v = ls_parse_examples(ls_make_example(dict), 3, features);
        ls_tensor *image = v ? ls_leaf_tensor(ls_get(v, "image")) : NULL;
        if (!image || !ls_decode_raw(image, LS_U8, LS_DIMS(-1)))
            st = ls_error_pending();
    }
    return st;
}

static void every_allocation_of_examples_may_fail(void **state)
{
    (void)state;
    LS_FRAME {
        const void *text = "pixels";
        ls_value *leaves[] = { ls_leaf(ls_from_strings(LS_SCALAR, &text, NULL)),
                               ls_leaf(ls_scalar(LS_I64, 3)),
                               ls_leaf(ls_ones(LS_F32, LS_DIMS(4))) };
        ls_value *dict = ls_dict(3, (const char *const[]){ "image", "label", "box" }, leaves);
        long n = 0;
        for (memory_failed = true; memory_failed; n++) {
            size_t before = memory();
            empty_stocks();
            memory_fails_after(n);
            ls_status st = parse_again(dict);
            memory_is_back();
            assert_int_equal(st, memory_failed ? LS_NO_MEMORY : LS_OK);
            assert_int_equal(ls_error(), st);
            assert_int_equal(memory(), before);
        }
        assert_true(n > 8);
    }
}

static ls_dataset *of_pipeline(const ls_input_context *c, void *user)
{
    (void)user;
    return ls_batch(ls_range(0, 3 + c->input_pipeline_id, 1), 2);
}

/* All steps of a distributed dataset, split or for each pipeline, and its position after the first. */
static ls_status distribute_again(ls_strategy *s, bool split)
{
    LS_FRAME {
        ls_status st = LS_OK;
        ls_dataset *d = ls_with_auto_shard(ls_batch(ls_range(0, 5, 1), 3), LS_AUTO_SHARD_OFF);
        d = split ? ls_distribute(s, d) : ls_distribute_from_function(s, of_pipeline, NULL);
        ls_iterator *it = ls_iterate(d);
        for (int i = 0; it && !st; i++)
            LS_FRAME {
                ls_value *step = NULL;
                st = ls_next(it, &step);
                if (!st && i == 0 && !ls_position(it))
                    st = ls_error_pending();
            }
        ls_iterator_free(it);
    }
    return ls_error_pending();
}

static void every_allocation_of_distributed_datasets_may_fail(void **state)
{
    (void)state;
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.replicas = 4, .input_pipelines = 2, .prefetch = -1));
    ls_log_set(NULL, NULL, LS_LOG_ERROR);
    for (int split = 0; split < 2; split++) {
        long n = 0;
        for (memory_failed = true; memory_failed; n++) {
            size_t before = memory();
            empty_stocks();
            memory_fails_after(n);
            ls_status st = distribute_again(s, split);
            memory_is_back();
            assert_int_equal(st, memory_failed ? LS_NO_MEMORY : LS_OK);
            assert_int_equal(ls_error(), st);
            assert_int_equal(memory(), before);
        }
        assert_true(n > 30);
    }
    assert_int_equal(ls_strategy_free(s), LS_OK);
}

static ls_tensor *forward(void *net, ls_tensor *x, bool training)
{
    return ls_forward(*(ls_layer **)net, x, training);
}

static void build(ls_model *m, void *net)
{
    *(ls_layer **)net = ls_dense_layer(m, LS_DENSE_LAYER(.name = "out", .units = 2));
    ls_model_variable(m, "more", ls_random_normal(LS_F32, LS_DIMS(3), 0, 1), true);
}

/* A model of Lockstep's own, one of a user's, and a metric. */
static ls_status make_models_again(ls_strategy *s)
{
    LS_FRAME {
        ls_model *m = ls_model_named("cnn2");
        ls_model *mine = ls_model_new(LS_MODEL(.input = "f32[2]", .net_bytes = sizeof(ls_layer *),
                                               .build = build, .forward = forward));
        ls_metric *metric = NULL;
        LS_SCOPE (s) {
            if (ls_model_build(m))
                assert_int_equal(ls_model_count(m), 0);
            if (ls_model_build(mine))
                assert_int_equal(ls_model_count(mine), 0);
            metric = ls_accuracy("hits");
        }
        assert_true(ls_error_pending() || (ls_model_count(m) == 8 && metric));
        ls_metric_free(metric);
        ls_model_free(m);
        ls_model_free(mine);
    }
    return ls_error_pending();
}

static void every_allocation_of_models_may_fail(void **state)
{
    (void)state;
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.replicas = 2));
    long n = 0;
    for (memory_failed = true; memory_failed; n++) {
        size_t before = memory();
        empty_stocks();
        memory_fails_after(n);
        ls_status st = make_models_again(s);
        memory_is_back();
        assert_int_equal(st, memory_failed ? LS_NO_MEMORY : LS_OK);
        assert_int_equal(ls_error(), st);
        assert_int_equal(memory(), before);
    }
    assert_true(n > 60);
    assert_int_equal(ls_strategy_free(s), LS_OK);
}

int main(void)
{
    LS_FRAME { /* the root frame, devices and kernels' caches are made once */
        model m = make(false);
        step(&m);
        m.traced = ls_trace(traced_step, &m);
        step(&m);
        unmake(&m);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(every_allocation_may_fail_in_a_journal),
        cmocka_unit_test(every_allocation_of_replicas_may_fail),
        cmocka_unit_test(every_allocation_of_richer_updates_may_fail),
        cmocka_unit_test(a_rank_without_memory_ends_the_call_for_all),
        cmocka_unit_test(every_allocation_of_examples_may_fail),
        cmocka_unit_test(every_allocation_of_distributed_datasets_may_fail),
        cmocka_unit_test(every_allocation_of_models_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
