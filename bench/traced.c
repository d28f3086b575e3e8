/*
 * What tracing gains: a training step of each model replayed beside the same step run
 * eagerly, on one thread; the cost of one instruction of a replay; the arena beside the
 * least possible; and that 1,000 replays leave memory as it was. Prints one JSON object
 * a line, as bench/eager.c does.
 *
 *     traced [-s SECONDS] [WHAT...]   WHAT: a model's name, adds, arena or memory; all
 *
 * Eager and traced are timed by turns (turns.h), in windows of SECONDS (0.4).
 */
#include <lockstep.h>
#include <lockstep/function.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/threads.h"
#include "train/models/samples.h"
#include "turns.h"

enum { ADDS = 1000 };

/* Ends the program when something is NULL that must not be. */
static void *must(void *made)
{
    if (!made) {
        fprintf(stderr, "traced: %s\n", ls_error_report());
        exit(1);
    }
    return made;
}

/* ---- models -------------------------------------------------------------------------- */

typedef struct training {
    ls_model *model;
    ls_optimizer *adam;
    ls_function *function;
    ls_tensor *x, *y; /* kept: the one batch */
} training;

static ls_value *step(ls_value *batch, void *user)
{
    training *t = user;
    ls_tape *tape = ls_tape_open();
    ls_tensor *loss = ls__mean_loss(t->model, batch, true);
    ls_minimize(t->adam, tape, loss, ls_model_count(t->model), ls_model_variables(t->model));
    return ls_leaf(loss);
}

static ls_value *batch_of(const training *t)
{
    return ls_tensors(2, (ls_tensor *[]){ ls_import(t->x), ls_import(t->y) });
}

static void run_eager(void *user)
{
    training *t = user;
    ls_to_float(ls_leaf_tensor(must(step(batch_of(t), t))));
}

static void run_traced(void *user)
{
    training *t = user;
    ls_to_float(ls_leaf_tensor(must(ls_function_call(t->function, batch_of(t)))));
}

/* A batch of the model's usual size, drawn. */
static void open_training(const char *name, training *t)
{
    ls_random_seed(1);
    *t = (training){ .model = must(ls__built(name)), .adam = must(ls_adam(NULL)) };
    t->function = must(ls_trace_with(LS_TRACE(.name = name), step, t));
    LS_FRAME {
        ls_value *batch = must(ls__draw_samples(t->model, ls_model_batch(t->model), 0, 10));
        t->x = must(ls_keep(ls_item(batch, 0)));
        t->y = must(ls_keep(ls_item(batch, 1)));
    }
}

static void close_training(training *t)
{
    ls_drop(t->x);
    ls_drop(t->y);
    ls_function_free(t->function);
    ls_optimizer_free(t->adam);
    ls_model_free(t->model);
}

static void training_step(const char *name)
{
    training t;
    open_training(name, &t);
    const int batch = ls_model_batch(t.model);
    job jobs[] = { { .call = run_eager, .user = &t }, { .call = run_traced, .user = &t } };
    time_by_turns(2, jobs);
    const char *what = t.model->input.rank == 3 ? "images" : "samples";
    printf("{\"system\":\"lockstep\",\"bench\":\"traced_step\",\"model\":\"%s\",\"batch\":%d,"
           "\"threads\":1,\"%s_per_second\":%.1f,\"eager_%s_per_second\":%.1f,"
           "\"ratio_to_eager\":%.3f}\n",
           name, batch, what, batch / jobs[1].took[0], what, batch / jobs[0].took[0],
           jobs[0].took[0] / jobs[1].took[0]);
    close_training(&t);
}

/* ---- one instruction ------------------------------------------------------------------- */

/* Each waits for the one before it. */
static ls_value *add_many(ls_value *pair, void *user)
{
    (void)user;
    ls_tensor *sum = ls_item(pair, 0);
    for (int i = 0; i < ADDS; i++)
        sum = ls_add(sum, ls_item(pair, 1));
    return ls_leaf(sum);
}

static void call_adds(void *user)
{
    ls_tensor *pair[] = { ls_scalar(LS_F32, 0), ls_scalar(LS_F32, 1) };
    ls_tensor *sum = ls_leaf_tensor(must(ls_function_call(user, ls_tensors(2, pair))));
    if (ls_to_float(sum) != ADDS) {
        fprintf(stderr, "traced: %d ones add up to %g\n", ADDS, ls_to_float(sum));
        exit(1);
    }
}

static void scalar_adds(void)
{
    ls_function *alone = must(ls_trace_with(LS_TRACE(.off = "fuse-chain"), add_many, NULL));
    ls_function *fused = must(ls_trace(add_many, NULL));
    job jobs[] = { { .call = call_adds, .user = alone }, { .call = call_adds, .user = fused } };
    time_by_turns(2, jobs);
    for (int i = 0; i < 2; i++) {
        ls_function_figures figures = { .size = sizeof figures };
        ls_function_look(i ? fused : alone, &figures);
        printf("{\"system\":\"lockstep\",\"bench\":\"scalar_adds\",\"adds\":%d,\"fusion\":%s,"
               "\"instructions\":%lld,\"us_each\":%.4f}\n",
               ADDS, i ? "true" : "false", (long long)figures.instructions,
               1e6 * jobs[i].took[0] / ADDS);
    }
    ls_function_free(alone);
    ls_function_free(fused);
}

/* ---- memory ------------------------------------------------------------------------------- */

static void arenas(void)
{
    const char *name;
    for (int i = 0; (name = ls_model_known(i, NULL)); i++) {
        training t;
        ls_function_figures figures = { .size = sizeof figures };
        open_training(name, &t);
        LS_FRAME
            run_traced(&t);
        ls_function_look(t.function, &figures);
        printf("{\"system\":\"lockstep\",\"bench\":\"arena\",\"model\":\"%s\",\"batch\":%d,"
               "\"operators\":%lld,\"instructions\":%lld,\"arena_bytes\":%zu,\"least_bytes\":%zu,"
               "\"ratio\":%.3f}\n",
               name, ls_model_batch(t.model), (long long)figures.operators,
               (long long)figures.instructions, figures.arena_bytes, figures.arena_least,
               (double)figures.arena_bytes / (double)figures.arena_least);
        close_training(&t);
    }
}

static void memory_over(int replays)
{
    training t;
    size_t first = 0, last = 0;
    long first_kib = 0;
    open_training(ls_model_known(0, NULL), &t);
    for (int i = 0; i < 300; i++)
        LS_FRAME
            ls_scalar(LS_F32, 0); /* frames keep their first MiB back (base/arena.c) */
    for (int i = 1; i <= replays; i++) {
        LS_FRAME
            run_traced(&t);
        ls_memory(&last, NULL);
        if (i == 100) {
            first = last;
            first_kib = resident_kib();
        }
    }
    printf("{\"system\":\"lockstep\",\"bench\":\"replay_memory\",\"model\":\"%s\",\"batch\":%d,"
           "\"replays\":%d,\"bytes_after_100\":%zu,\"bytes_at_end\":%zu,"
           "\"resident_kib_after_100\":%ld,\"resident_kib_at_end\":%ld}\n",
           ls_model_name(t.model), ls_model_batch(t.model), replays, first, last, first_kib,
           resident_kib());
    close_training(&t);
}

static void over_1000(void)
{
    memory_over(1000);
}

/* ---- the command line ------------------------------------------------------------------------ */

static const struct {
    const char *name;
    void (*run)(void);
} others[] = { { "adds", scalar_adds }, { "arena", arenas }, { "memory", over_1000 } };
enum { OTHERS = sizeof others / sizeof *others };

/* All there is for NULL; false when nothing has this name. */
static bool measure(const char *what)
{
    bool known = false;
    const char *name;
    for (int i = 0; (name = ls_model_known(i, NULL)); i++)
        if (!what || !strcmp(what, name)) {
            training_step(name);
            known = true;
        }
    for (int i = 0; i < OTHERS; i++)
        if (!what || !strcmp(what, others[i].name)) {
            others[i].run();
            known = true;
        }
    return known;
}

int main(int argc, char **argv)
{
    int option;
    while ((option = getopt(argc, argv, "s:")) != -1) {
        window = option == 's' ? atof(optarg) : 0;
        if (!(window > 0)) {
            fprintf(stderr, "usage: traced [-s SECONDS] [WHAT...]\n");
            return 2;
        }
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    ls__kernel_threads(1);
    if (optind == argc)
        measure(NULL);
    for (int i = optind; i < argc; i++)
        if (!measure(argv[i])) {
            fprintf(stderr, "traced: there is no '%s'\n", argv[i]);
            return 2;
        }
    if (ls_error_pending()) {
        fprintf(stderr, "traced: %s\n", ls_error_report());
        return 1;
    }
    return 0;
}
