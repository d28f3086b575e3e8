/*
 * A replay asks for no memory and takes no lock. Each program is called a few times,
 * then 1,000 times while calls are counted (support/counted_calls.h): none of the
 * allocator, the system's memory or a lock may come from this library. What others
 * allocate is printed: oneDNN's few small ones per primitive; without it there are none.
 *
 * And memory stays flat: tensor bytes to the byte, resident pages but for a little.
 *
 * In sanitizer builds the allocator is theirs, so that others are not counted, and
 * tensor/storage.c keeps no stock on purpose: there a result's block comes from
 * the allocator, one per result, and just those are allowed.
 */
#include <lockstep.h>
#include <lockstep/function.h>

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "os/thread.h"
#include "support/counted_calls.h"
#include "tensor/test_support.h"
#include "train/models/samples.h"

/* Frames keep closed memory back for a while (base/arena.c); after so many the stock
 * gives. */
enum { FRAMES_UNTIL_STOCKED = 300, FEW = 5, MANY = 1000, EARLY = 100 };

/* The process may grow by this much while it replays: pages that oneDNN's allocations
 * or the C library touch for the first time. A leak of 300 bytes a replay is more. */
enum { GROWTH_BYTES = 256 << 10 };

static long resident_bytes(void)
{
    char text[128] = "";
    long size = 0, resident = 0;
    int fd = open("/proc/self/statm", O_RDONLY);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (n <= 0 || sscanf(text, "%ld %ld", &size, &resident) != 2)
        return 0;
    return resident * sysconf(_SC_PAGESIZE);
}

/* ---- that the counters count ---------------------------------------------------------- */

static ls_status nothing(void *unused)
{
    (void)unused;
    return LS_OK;
}

static void test_counting_works(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *t = ls_scalar(LS_F32, 1);
        start_counting();
        ls_tensor *kept = ls_keep(t);
        atomic_store(&counting, false);
        ls_drop(kept);
    }
    assert_int_equal(atomic_load(&ours), 1);
    assert_int_equal(atomic_load(&all), COUNTS_ALL);
    assert_int_equal(atomic_load(&locks), 0);
    ls__worker *worker; /* that begins takes a lock, whenever it gets to it */
    assert_int_equal(ls__worker_start("counted", -1, &worker), LS_OK);
    start_counting();
    ls__worker_run(worker, nothing, NULL);
    atomic_store(&counting, false);
    assert_true(atomic_load(&locks) >= 2);
    ls__worker_stop(worker);
}

/* ---- programs ------------------------------------------------------------------------------- */

/* A step with what it works on. */
typedef struct program {
    char name[32];
    ls_function *function;
    ls_tensor *x, *y; /* kept */
    int results;      /* that are memory of their own: no arguments, no constants; -1: who knows */
    ls_strategy *strategy; /* whose replicas run it; NULL: none */
} program;

static void replay(const program *p)
{
    LS_FRAME {
        ls_value *batch = ls_tensors(2, (ls_tensor *[]){ ls_import(p->x), ls_import(p->y) });
        if (!(p->strategy ? ls_run(p->strategy, p->function, batch)
                          : ls_function_call(p->function, batch))) {
            atomic_store(&counting, false);
            fail_msg("%s: %s", p->name, ls_error_report());
        }
    }
}

static void replay_often(const program *p, int times)
{
    for (int i = 0; i < times; i++)
        replay(p);
}

static void fill_stocks(void)
{
    for (int i = 0; i < FRAMES_UNTIL_STOCKED; i++)
        LS_FRAME
            ls_scalar(LS_F32, 1);
}

static void check_counts(const char *name, long replays, long results)
{
    atomic_store(&counting, false);
    const double each = (double)replays;
    if (COUNTS_ALL)
        print_message("%s: %ld allocations of ours in %ld replays; others made %.1f a replay\n",
                      name, atomic_load(&ours), replays,
                      (double)(atomic_load(&all) - atomic_load(&ours)) / each);
    else
        print_message("%s: %.1f allocations of ours a replay, others are not counted\n", name,
                      (double)atomic_load(&ours) / each);
    if (!SANITIZED || results >= 0)
        assert_int_equal(atomic_load(&ours), SANITIZED ? results : 0);
    assert_int_equal(atomic_load(&locks), 0);
#ifndef LS_HAVE_DNNL
    assert_true(atomic_load(&all) <= atomic_load(&ours)); /* there are no others */
#endif
}

/* Calls it `replays` times and looks at what that took. */
static void check(const program *p, int replays)
{
    fill_stocks();
    replay_often(p, FEW);
    assert_int_equal(ls_function_traces(p->function), 1);
    const int early = replays < 2 * EARLY ? replays / 2 : EARLY;
    start_counting();
    replay_often(p, early);
    size_t bytes_early = memory();
    long resident_early = resident_bytes();
    replay_often(p, replays - early);
    check_counts(p->name, replays, (long)replays * p->results);
    assert_int_equal(memory(), bytes_early);
    long grown = resident_bytes() - resident_early;
    if (!SANITIZED && grown > GROWTH_BYTES)
        fail_msg("%s: resident memory grew by %ld bytes", p->name, grown);
    assert_int_equal(ls_function_traces(p->function), 1);
}

static void close_program(program *p)
{
    ls_function_free(p->function);
    ls_drop(p->x);
    ls_drop(p->y);
}

/* ---- the five models ---------------------------------------------------------------------- */

typedef struct trainer {
    ls_model *model;
    ls_optimizer *adam;
} trainer;

static ls_value *train_step(ls_value *batch, void *user)
{
    trainer *t = user;
    ls_tape *tape = ls_tape_open();
    ls_tensor *loss = ls__mean_loss(t->model, batch, true);
    ls_minimize(t->adam, tape, loss, ls_model_count(t->model), ls_model_variables(t->model));
    return ls_leaf(loss);
}

static ls_value *evaluate(ls_value *batch, void *user)
{
    trainer *t = user;
    ls_tensor *logits = ls_model_forward(t->model, ls_item(batch, 0), false);
    ls_tensor *right = ls_equal(ls_cast(ls_argmax(logits, -1), LS_I32), ls_item(batch, 1));
    return ls_tensors(2, (ls_tensor *[]){ ls__mean_loss(t->model, batch, false),
                                          ls_sum(ls_cast(right, LS_I32), LS_ALL_AXES, false) });
}

static trainer open_trainer(const char *name)
{
    trainer t = { ls__built(name), ls_adam(NULL) };
    assert_non_null(t.model);
    return t;
}

static void close_trainer(trainer *t)
{
    ls_optimizer_free(t->adam);
    ls_model_free(t->model);
}

/* `samples` of whatever the model takes, short ones where it may, drawn. */
static void open_model_program(trainer *t, ls_step step, int64_t samples, program *out)
{
    const char *name = ls_model_name(t->model);
    *out = (program){ .function = ls_trace_with(LS_TRACE(.name = name), step, t),
                      .results = step == evaluate ? 2 : 1 };
    snprintf(out->name, sizeof out->name, "%s, %s", name,
             step == evaluate ? "evaluation" : "training");
    LS_FRAME {
        ls_value *batch = ls__draw_samples(t->model, samples, 16, 10);
        out->x = ls_keep(ls_item(batch, 0));
        out->y = ls_keep(ls_item(batch, 1));
    }
}

static void check_model(const char *name, int replays)
{
    trainer t = open_trainer(name);
    ls_step steps[] = { train_step, evaluate };
    for (int i = 0; i < 2; i++) {
        program p;
        open_model_program(&t, steps[i], 2, &p);
        check(&p, replays);
        close_program(&p);
    }
    close_trainer(&t);
}

/* ---- a step with what the models lack ------------------------------------------------------- */

typedef struct mixture {
    ls_variable *filter, *table, *dense;
    ls_optimizer *sgd;
} mixture;

/* A dropout, a convolution on gathered pictures, bf16, an embedding with its sparse gradient as
 * a result (whose rows are the argument again), another result that is an argument, and one that
 * is a constant. */
static ls_value *mixed_step(ls_value *batch, void *user)
{
    mixture *m = user;
    ls_tape *tape = ls_tape_open();
    ls_tensor *ids = ls_item(batch, 1), *table = ls_read(m->table);
    ls_tensor *h = ls_conv2d(ls_gather(ls_item(batch, 0), ids, 0), ls_read(m->filter), NULL);
    h = ls_mean(ls_dropout(ls_relu(h), 0.25), LS_AXES(1, 2), false);
    h = ls_cast(ls_matmul(ls_cast(h, LS_BF16), ls_cast(ls_read(m->dense), LS_BF16)), LS_F32);
    h = ls_add(h, ls_embedding(table, ids));
    ls_tensor *loss = ls_mean(ls_sparse_softmax_xent(h, ids), LS_ALL_AXES, false);
    ls_tensor *sparse = ls_gradient(tape, loss, table);
    ls_minimize(m->sgd, tape, loss, 3, (ls_variable *[]){ m->filter, m->table, m->dense });
    return ls_tensors(5, (ls_tensor *[]){ loss, sparse, ids, ls_scalar(LS_F32, 3), h });
}

/* Frees the optimizer. */
static void check_mixture(program p, ls_optimizer *optimizer)
{
    mixture m = { .sgd = optimizer };
    if (p.strategy)
        assert_int_equal(ls_scope_enter(p.strategy), LS_OK);
    LS_FRAME {
        m.filter = ls_variable_new("filter", ls_glorot_uniform(LS_F32, LS_DIMS(3, 3, 2, 16)), true);
        m.table = ls_variable_new("table", ls_ones(LS_F32, LS_DIMS(10, 8)), true);
        m.dense = ls_variable_new("dense", ls_glorot_uniform(LS_F32, LS_DIMS(16, 8)), true);
        p.x = ls_keep(ls_random_uniform(LS_F32, LS_DIMS(4, 6, 6, 2), 0, 1));
        p.y = ls_keep(ls_from(LS_I32, LS_DIMS(4), (int32_t[]){ 3, 1, 0, 1 }));
    }
    if (p.strategy)
        assert_int_equal(ls_scope_leave(p.strategy), LS_OK);
    p.function = ls_trace(mixed_step, &m);
    check(&p, MANY);
    close_program(&p);
    ls_optimizer_free(m.sgd);
    ls_variable_free(m.filter);
    ls_variable_free(m.table);
    ls_variable_free(m.dense);
}

static void test_mixture(void **state)
{
    (void)state;
    check_mixture((program){ .name = "mixture", .results = 3 }, ls_sgd(NULL));
    check_mixture((program){ .name = "mixture, norms", .results = 3 },
                  ls_sgd(LS_SGD(.momentum = 0.9, .clip_global_norm = 1, .weight_decay = 0.1)));
}

/* Replicas on threads of their own, a meeting that updates, a journal: all from recycled memory. */
static void test_replicas(void **state)
{
    (void)state;
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0,/cpu:1", .replicas = 4));
    assert_non_null(s);
    check_mixture((program){ .name = "replicas", .results = -1, .strategy = s }, ls_sgd(NULL));
    check_mixture((program){ .name = "replicas, norms", .results = -1, .strategy = s },
                  ls_adamw(LS_ADAM(.clip_norm = 1, .lazy = true,
                                   .schedule = LS_SCHEDULE(.kind = LS_SCHEDULE_COSINE, .steps = 100,
                                                           .warmup_steps = 5))));
    assert_int_equal(ls_strategy_free(s), LS_OK);
}

/* Nothing of oneDNN in it, and many results: nobody may allocate, not even inside the C library. */
static ls_value *own_step(ls_value *batch, void *user)
{
    (void)user;
    enum { RESULTS = 40 };
    ls_tensor *x = ls_item(batch, 0), *results[RESULTS];
    for (int i = 0; i < RESULTS; i++)
        results[i] = x = ls_softmax(ls_add(ls_sum(x, LS_AXES(0), true), ls_item(batch, 1)), -1);
    return ls_tensors(RESULTS, results);
}

static void test_own_kernels(void **state)
{
    (void)state;
    program p = { .name = "own kernels", .function = ls_trace(own_step, NULL), .results = 40 };
    LS_FRAME {
        p.x = ls_keep(ls_random_uniform(LS_F32, LS_DIMS(5, 7), 0, 1));
        p.y = ls_keep(ls_random_uniform(LS_F32, LS_DIMS(5, 1), 0, 1));
    }
    check(&p, MANY);
    assert_int_equal(atomic_load(&all), 0);
    close_program(&p);
}

/* ---- many programs --------------------------------------------------------------------------- */

#ifdef LS_HAVE_DNNL
/* Programs on one thread share its cache of oneDNN's plans. None loses one to the others
 * or to eager steps in between: it would be made anew in the middle of a replay. */
static void test_programs_keep_their_plans(void **state)
{
    (void)state;
    enum { MODELS = 5, BATCHES = 3, PROGRAMS = MODELS * BATCHES, ROUNDS = 3 };
    trainer trainers[MODELS];
    program programs[PROGRAMS];
    int n = 0;
    for (int i = 0; i < MODELS; i++) {
        trainers[i] = open_trainer(ls_model_known(i, NULL));
        for (int samples = 1; samples <= BATCHES; samples++)
            open_model_program(&trainers[i], train_step, samples, &programs[n++]);
    }
    fill_stocks();
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MODELS; i++)
            LS_FRAME {
                const program *p = &programs[i * BATCHES];
                train_step(ls_tensors(2, (ls_tensor *[]){ ls_import(p->x), ls_import(p->y) }),
                           &trainers[i]);
            }
        if (round == ROUNDS - 1)
            start_counting();
        for (int i = 0; i < PROGRAMS; i++)
            replay(&programs[i]);
    }
    check_counts("programs by turns", PROGRAMS, PROGRAMS);
    for (int i = 0; i < PROGRAMS; i++)
        close_program(&programs[i]);
    for (int i = 0; i < MODELS; i++)
        close_trainer(&trainers[i]);
}

#endif

#define MODEL_TEST(model, replays)                                                                 \
    static void test_##model(void **state)                                                         \
    {                                                                                              \
        (void)state;                                                                               \
        check_model(#model, replays);                                                              \
    }

/* Sanitizers and plain C make them slow; another compiler adds little. */
#if !defined(LS_HAVE_DNNL)
enum { REPLAYS = 8, FEWER = 5, LARGE = 2 };
#elif defined(__clang__)
enum { REPLAYS = SANITIZED ? 10 : 200, FEWER = 30, LARGE = 4 };
#else
enum { REPLAYS = SANITIZED ? 10 : MANY, FEWER = SANITIZED ? 10 : 200, LARGE = SANITIZED ? 4 : 50 };
#endif

MODEL_TEST(cnn, REPLAYS)
MODEL_TEST(cnn2, FEWER)
MODEL_TEST(mlp, FEWER)
MODEL_TEST(resnet, LARGE)
MODEL_TEST(gpt, LARGE)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_counting_works, clean),
        cmocka_unit_test_setup(test_own_kernels, clean),
        cmocka_unit_test_setup(test_mixture, clean),
        cmocka_unit_test_setup(test_replicas, clean),
        cmocka_unit_test_setup(test_cnn, clean),
        cmocka_unit_test_setup(test_cnn2, clean),
        cmocka_unit_test_setup(test_mlp, clean),
        cmocka_unit_test_setup(test_resnet, clean),
        cmocka_unit_test_setup(test_gpt, clean),
#ifdef LS_HAVE_DNNL
        cmocka_unit_test_setup(test_programs_keep_their_plans, clean),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
