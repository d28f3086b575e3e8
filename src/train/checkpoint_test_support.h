/*
 * A small run for tests of checkpoints, with one of everything that has to go on: a traced step with
 * dropout, weights, a count that every replica has of its own, Adam with a schedule, and a
 * shuffled dataset in the midst of an epoch.
 */
#ifndef LS__TRAIN_CHECKPOINT_TEST_SUPPORT_H
#define LS__TRAIN_CHECKPOINT_TEST_SUPPORT_H

#include <lockstep/checkpoint.h>
#include <lockstep/input.h>
#include <lockstep/loss.h>
#include <lockstep/ops.h>
#include <lockstep/random.h>
#include <lockstep/safetensors.h>

#include "os/file_test_support.h"

enum { V = 3, ROWS = 40, BATCH = 7, WEIGHTS = 3 };

typedef struct run {
    ls_strategy *s;
    ls_variable *v[WEIGHTS]; /* w, b, seen */
    ls_optimizer *o;
    ls_function *step;
    ls_iterator *input;
} run;

static inline void failed(ls_status want, const char *word)
{
    if (ls_error_pending() != want || !strstr(ls_error_text(), word))
        fail_msg("wanted %s with '%s', got %s", ls_status_name(want), word, ls_error_report());
    ls_error();
}

static inline void went_well(ls_status st)
{
    if (st || ls_error_pending())
        fail_msg("%s", ls_error_report());
}

static inline ls_value *train_step(ls_value *batch, void *user)
{
    run *r = user;
    ls_tensor *x = ls_item(batch, 0), *y = ls_item(batch, 1);
    ls_tape *tape = ls_tape_open();
    ls_tensor *guess = ls_dense(ls_dropout(x, 0.4), ls_read(r->v[0]), ls_read(r->v[1]));
    ls_tensor *loss = ls_compute_average_loss(ls_mse(guess, y), BATCH);
    ls_assign_add(r->v[2], ls_cast(ls_sum(y, LS_ALL_AXES, false), LS_F64));
    ls_minimize(r->o, tape, loss, 2, r->v);
    return ls_leaf(loss);
}

/* A part of a batch, for an optimizer that accumulates. */
static inline ls_value *part_step(ls_value *batch, void *user)
{
    run *r = user;
    ls_tensor *x = ls_item(batch, 0), *y = ls_item(batch, 1);
    ls_tape *tape = ls_tape_open();
    ls_tensor *guess = ls_dense(x, ls_read(r->v[0]), ls_read(r->v[1]));
    ls_accumulate(r->o, tape, ls_compute_average_loss(ls_mse(guess, y), BATCH), 2, r->v);
    return ls_leaf(ls_scalar(LS_F32, 0));
}

/* The same numbers every time. */
static inline ls_tensor *numbers(int rank, const int64_t *dims, uint64_t seed)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    float *data = malloc(sizeof *data * (size_t)(n + 1));
    assert_non_null(data);
    for (int64_t i = 0; i < n; i++)
        data[i] = (float)(int64_t)(random_number(&seed) >> 40) / (1 << 23) - 1;
    ls_tensor *t = ls_from(LS_F32, rank, dims, data);
    free(data);
    return t;
}

static inline ls_dataset *rows(void)
{
    ls_tensor *all[] = { numbers(LS_DIMS(ROWS, 4), 1), numbers(LS_DIMS(ROWS, 3), 2) };
    return ls_batch(ls_shuffle(ls_slices(ls_tensors(2, all)), 11, 5), BATCH);
}

static inline ls_optimizer *small_adam(bool accumulates)
{
    return ls_adam(LS_ADAM(.rate = 0.01, .clip_global_norm = 0.5, .accumulates = accumulates,
                           .schedule = LS_SCHEDULE(.kind = LS_SCHEDULE_COSINE, .steps = 20,
                                                   .warmup_steps = 4)));
}

static inline void begin_with(run *r, const char *devices, int replicas, ls_optimizer *o)
{
    ls_random_seed(7);
    *r = (run){ .s = ls_mirrored(LS_MIRRORED(.devices = devices, .replicas = replicas)), .o = o };
    assert_non_null(r->s);
    LS_FRAME {
        LS_SCOPE (r->s) {
            r->v[0] = ls_variable_new("w", numbers(LS_DIMS(4, 3), 3), true);
            r->v[1] = ls_variable_new("b", ls_zeros(LS_F32, LS_DIMS(3)), true);
            r->v[2] = ls_variable_with(
                LS_VARIABLE(.synchronization = LS_SYNC_ON_READ, .aggregation = LS_AGGREGATE_SUM),
                "seen", ls_scalar(LS_F64, 0));
        }
        r->input = ls_iterate(ls_distribute(r->s, rows()));
    }
    r->step = ls_trace(train_step, r);
    assert_non_null(r->o);
    assert_non_null(r->input);
    went_well(LS_OK);
}

static inline void begin(run *r, const char *devices)
{
    begin_with(r, devices, V, small_adam(false));
}

static inline void end(run *r)
{
    ls_function_free(r->step);
    ls_optimizer_free(r->o);
    ls_iterator_free(r->input);
    for (int i = 0; i < WEIGHTS; i++)
        ls_variable_free(r->v[i]);
    ls_strategy_free(r->s);
    went_well(LS_OK);
}

/* Epoch after epoch. */
static inline void train_by(run *r, ls_function *step, int steps)
{
    for (int i = 0; i < steps; i++)
        LS_FRAME {
            ls_value *batch = NULL;
            ls_status st = ls_next(r->input, &batch);
            if (st == LS_END) {
                went_well(ls_rewind(r->input));
                st = ls_next(r->input, &batch);
            }
            went_well(st);
            if (!ls_run(r->s, step, batch))
                fail_msg("step %d: %s", i, ls_error_report());
        }
}

static inline void train(run *r, int steps)
{
    train_by(r, r->step, steps);
}

static inline ls_checkpoint checkpoint_of(run *r)
{
    return (ls_checkpoint){ .size = sizeof(ls_checkpoint),
                            .strategy = r->s,
                            .n_variables = WEIGHTS,
                            .variables = r->v,
                            .n_optimizers = 1,
                            .optimizers = &r->o,
                            .input = r->input,
                            .model = "small",
                            .seed = 7,
                            .command = "lockstep train small" };
}

typedef struct digest {
    char text[LS_DIGEST_MAX];
} digest;

static inline digest state_of(run *r)
{
    digest d;
    ls_checkpoint c = checkpoint_of(r);
    went_well(ls_state_digest(&c, d.text));
    return d;
}

static inline int clean(void **state)
{
    (void)state;
    ls_error();
    empty_test_dir();
    return 0;
}

/* ---- what is said to the log ----------------------------------------------------------------------- */

static char said[4096];

static inline void listen(ls_log_level level, const char *message, void *user)
{
    (void)user;
    if (level <= LS_LOG_WARNING && strlen(said) + strlen(message) + 2 < sizeof said)
        strcat(strcat(said, message), "\n");
}

static inline int clean_and_listen(void **state)
{
    said[0] = '\0';
    ls_log_set(listen, NULL, LS_LOG_WARNING);
    return clean(state);
}

/* ---- files ----------------------------------------------------------------------------------------- */

static inline bytes file_bytes(const char *name)
{
    bytes b = { 0 };
    char part[4096];
    FILE *f = fopen(in_dir(name), "rb");
    assert_non_null(f);
    for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;)
        add_bytes(&b, part, n);
    fclose(f);
    return b;
}

static inline bool there(const char *name)
{
    return access(in_dir(name), F_OK) == 0;
}

static inline void damage(const char *name)
{
    bytes b = file_bytes(name);
    b.at[b.n - 1] ^= 1;
    put_file(name, b.at, b.n);
    free_bytes(&b);
}

#endif
