/*
 * The inside of a trainer. Files, in the order of a run:
 *
 *     trainer.c         making one, asking it
 *     trainer_step.c    what replicas do in a step of training, testing, asking
 *     fit.c             epochs and steps, and when callbacks are called
 *     fit_input.c       where the data stands
 *     fit_callbacks.c   calling them
 *     evaluate.c        tests; predict.c: outputs
 *     trainer_save.c    checkpoints
 *     not_finite.c      where a NaN began
 *
 * Invariant: between steps everything that a later step depends on is in variables, the optimizer,
 * the strategy's step counter and `at`; so a checkpoint of those is a checkpoint of the run.
 */
#ifndef LS__TRAIN_TRAINER_H
#define LS__TRAIN_TRAINER_H

#include <lockstep/fit.h>
#include <lockstep/function.h>

/* Where a run stands. */
typedef struct ls__at {
    int64_t step;        /* steps done */
    int64_t epoch;       /* epochs done */
    int64_t epoch_step;  /* steps done in the one under way */
    int64_t epoch_steps; /* of an epoch, once one was gone through; LS_UNKNOWN */
    int64_t samples;     /* rows so far */
    bool ended;          /* the input stands at the end of an epoch, and no other was begun */
} ls__at;

struct ls_trainer {
    ls_strategy *strategy;
    ls_model *model;
    ls_optimizer *optimizer;
    ls_tensor *(*prepare)(ls_tensor *x, void *user); /* NULL: x is as it comes */
    void *prepare_user;
    int64_t global_batch;
    uint64_t seed;
    char *command, *data; /* NULL: none */
    int n_metrics;        /* the loss is the first */
    ls_metric **metrics;
    char **test_names; /* "test_loss", ... */
    double *values;    /* n_metrics of the last epoch, n_metrics of the last test */
    ls_function *train, *test, *ask;
    ls__at at;
    ls_iterator *input; /* while it is fitted */
    /* Where the input stood when the last fit, or checkpoint, ended: kept; NULL: nowhere. */
    ls_tensor *position;
    bool must_fit; /* the position comes from a checkpoint: data that does not know it is wrong */
    bool lost;     /* there was no memory for the position */
    /* While something runs beside training, what training is to find again: and ls_steps. */
    ls_value *aside;
    int64_t aside_steps;
    const struct ls__audience *audience; /* while it is fitted */
    bool fitting, counting; /* `counting`: an epoch is under way, so metrics have its figures */
};

ls_status ls__check_trainer(const char *who, const ls_trainer *t);

/* ---- trainer_step.c: steps for ls_run; `user` is the trainer ----- */

ls_value *ls__train_step(ls_value *batch, void *user); /* the step's loss, of each replica */
ls_value *ls__test_step(ls_value *batch, void *user);  /* nothing */
ls_value *ls__look_step(ls_value *batch, void *user);  /* train's way to the loss; always fails */
ls_value *ls__ask_step(ls_value *batch, void *user);   /* outputs */

/* Rows of a batch on all replicas; -1: it is no list of x and y (LS_INVALID). */
int64_t ls__batch_rows(const char *who, const ls_trainer *t, ls_value *batch);

/* ---- not_finite.c ----- */

/* After a step that failed because its loss is not finite: finds out where it began, and records
 * that as the error. `step` is the number of the step, from 1. */
ls_status ls__explain_not_finite(ls_trainer *t, ls_value *batch, int64_t step);

/* The name of the first variable with a number that is not finite; NULL: none has, or it cannot be
 * read (an error is pending). */
const char *ls__variable_not_finite(const ls_trainer *t);

/* ---- fit_input.c ----- */

/* Where a step that failed finds its batch again: a position, and how many steps ago that was. Zero
 * is none. */
typedef struct ls__data_place {
    ls_tensor *position; /* kept; NULL: the data cannot tell */
    int64_t since;
} ls__data_place;

/* At where the last fit, or the checkpoint, ended. `steps`: of an epoch; negative: nobody knows. */
ls_status ls__input_open(ls_trainer *t, ls_dataset *from, int64_t *steps);

/* Remembers for the next fit where it stood; LS_NO_MEMORY: it cannot. */
ls_status ls__input_close(ls_trainer *t);

/* Where it stands now: now and then, so that going back there costs less than an epoch. */
ls_status ls__input_note(const ls_trainer *t, ls__data_place *place);

/* After a step that failed, and so did not happen: its batch is still to come. */
void ls__input_back(const ls_trainer *t, const ls__data_place *place);

void ls__data_place_free(ls__data_place *place);

/* ---- fit_callbacks.c ----- */

typedef enum ls__moment {
    LS__AT_BEGIN,
    LS__AT_STEP,
    LS__AT_TEST_STEP,
    LS__AT_EPOCH,
    LS__AT_END
} ls__moment;

/* Who is called. */
typedef struct ls__audience {
    int count;
    ls_callback *const *callbacks;
} ls__audience;

ls_status ls__check_callbacks(const char *who, int count, ls_callback *const *callbacks);

/* Calls them in order, up to the first that fails, which is recorded; at LS__AT_END all of them, and
 * the first failure is given. LS_END: one of them said so. */
ls_status ls__call_callbacks(const ls__audience *who, ls__moment moment, const ls_progress *p);

/* ---- evaluate.c ----- */

/* Runs fn beside training: what it changes of metrics, of replicas' own variables and of the count of
 * steps is as before when it returns. */
ls_status ls__aside(ls_trainer *t, ls_status (*fn)(ls_trainer *t, void *user), void *user);

/* The other way around: while something runs beside training, runs fn with all as training has it. */
ls_status ls__as_trained(ls_trainer *t, ls_status (*fn)(ls_trainer *t, void *user), void *user);

/* A test with callbacks. The figures go to t->values; metrics are as before. */
ls_status ls__test(const char *who, ls_trainer *t, ls_dataset *data, const ls__audience *audience,
                   ls_progress *p);

/* ---- trainer_save.c ----- */

/* To the file `path`, or with `keep` >= 0 as a step of the directory `path` (0: all are kept). */
ls_status ls__trainer_save(ls_trainer *t, const char *path, int keep, const ls__audience *audience);

#endif
