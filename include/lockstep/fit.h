/*
 * fit.h: training, testing and asking a model, with callbacks.
 *
 * How to use it
 *
 * 1. A trainer is a strategy, a model and an optimizer. It builds the model in the strategy's scope.
 *
 *        ls_trainer *t = ls_trainer_new(LS_TRAINER(.strategy = s, .model = m, .optimizer = adam));
 *
 * 2. Fit it: `data` is a dataset of lists of x and y, batched for all replicas together.
 *
 *        ls_callback *early = ls_early_stop(LS_EARLY_STOP(.patience = 3));
 *        ls_callback *saved = ls_checkpoints(LS_CHECKPOINTS(.directory = "run", .every = 1000));
 *        ls_fit(t, LS_FIT(.data = train, .test = test, .epochs = 20,
 *                         .n_callbacks = 2, .callbacks = (ls_callback *[]){ early, saved }));
 *
 * 3. Go on where a run stopped, in another process: the same bits as if it had never stopped.
 *
 *        ls_trainer_resume(t, "run", 2, (ls_callback *[]){ early, saved });
 *        ls_fit(t, ...);                              // .epochs is the total
 *
 * The loss of a step is the sum of its rows' losses divided by the global batch, so a short last
 * batch weighs less; losses and metrics that are shown are means over the rows there were. A step
 * whose loss is not finite does not happen: ls_fit fails with LS_NOT_FINITE, which says at which
 * step and in which operator it began, and the trainer is as before that step.
 */
#ifndef LOCKSTEP_FIT_H
#define LOCKSTEP_FIT_H

#include <lockstep/checkpoint.h>
#include <lockstep/data.h>
#include <lockstep/metric.h>
#include <lockstep/model.h>
#include <lockstep/optimizer.h>
#include <lockstep/strategy.h>

LS_BEGIN_DECLS

typedef struct ls_trainer ls_trainer;

/* ---- trainers ------------------------------------------------------------------------------- */

/* Zero means default. */
typedef struct ls_trainer_options {
    size_t size;
    ls_strategy *strategy;   /* the default strategy; outlives the trainer */
    ls_model *model;         /* must be given; the trainer's from now on */
    ls_optimizer *optimizer; /* ls_adam(NULL); the trainer's from now on */
    int64_t global_batch;    /* rows that a loss is divided by; 0: a replica's own times V */
    int n_metrics;           /* beside the loss... */
    ls_metric *const *metrics; /* ...made in the strategy's scope; the trainer's from now on. NULL:
                                * accuracy, of a model with classes (ls_sparse_softmax_xent) */
    uint64_t seed;           /* for the record that checkpoints carry, and to be compared on
                              * resuming; what is drawn follows from ls_random_seed */
    const char *command;     /* for the record: how the run was started */
    const char *data;        /* for the record: what it is trained with */
    /* What a replica makes of its rows of x before the model takes them, bytes of a picture numbers say:
     * traced with the step, so it runs on the replica's device, beside the others, and data travels as it
     * is in files. In ls_map, on the thread that reads ahead, it would be in the replicas' way. NULL:
     * nothing. */
    ls_tensor *(*prepare)(ls_tensor *x, void *user);
    void *prepare_user;
} ls_trainer_options;
LS_API void ls_trainer_init(ls_trainer_options *options);
#ifndef __cplusplus
#define LS_TRAINER(...) (&(ls_trainer_options){ .size = sizeof(ls_trainer_options), __VA_ARGS__ })
#endif

/* Yours until ls_trainer_free, which takes NULL and frees model, optimizer and metrics; on failure
 * they stay yours. */
LS_API ls_trainer *ls_trainer_new(const ls_trainer_options *options);
LS_API void ls_trainer_free(ls_trainer *t);

LS_API ls_strategy *ls_trainer_strategy(const ls_trainer *t);
LS_API ls_model *ls_trainer_model(const ls_trainer *t);
LS_API ls_optimizer *ls_trainer_optimizer(const ls_trainer *t);

/* The step that is run, for looking inside (function.h): traced when first run. */
LS_API ls_function *ls_trainer_step(const ls_trainer *t);

/* A figure by its name: "loss", "accuracy" and so on of the epoch so far, or of the last one
 * between epochs (while a test is under way: of that test so far); "test_loss", "test_accuracy" of the last test. NaN when there is none. */
LS_API double ls_trainer_value(const ls_trainer *t, const char *name);

/* The names there are, in order; NULL after the last. Those of tests begin with "test_". */
LS_API const char *ls_trainer_names(const ls_trainer *t, int i);

/* ---- callbacks -------------------------------------------------------------------------------- */

/* Where training stands. */
typedef struct ls_progress {
    size_t size;
    ls_trainer *trainer;
    int64_t step;        /* steps done since the beginning, resumed ones included */
    int64_t last_step;   /* after which it ends; LS_UNKNOWN (data.h) when that is not known */
    int64_t epoch;       /* the one it is in, or that just ended: 1, 2, ... */
    int64_t epochs;
    int64_t epoch_step;  /* steps done in it */
    int64_t epoch_steps; /* of an epoch; LS_UNKNOWN in the first one of some datasets */
    int64_t test_step, test_steps; /* of the test under way, else 0; LS_UNKNOWN */
    double loss;         /* of the rows of the step just done; at an epoch's end of those of the epoch */
    int64_t rows;        /* of the step just done */
    int64_t samples;     /* rows so far, resumed ones included */
    bool tests;          /* there is data to test with */
} ls_progress;

/* What is called when; any may be NULL. LS_END from any but `end` stops training there, cleanly;
 * other codes fail it (record why with an error of yours, or none). Callbacks are called in order, all of
 * them even when one says LS_END, on the thread that called ls_fit and outside of replicas. What `save` gives (a dict of tensors, or
 * NULL for none) is in every checkpoint, and `load` gets it on resuming. */
typedef struct ls_callback {
    size_t size;
    void *user;
    const char *name; /* must be given with save, and differ from those of others with save */
    bool last;        /* called after all others, so that what it saves is what they know; of
                       * several, those with `save` first */
    ls_status (*begin)(const ls_progress *p, void *user);
    ls_status (*step)(const ls_progress *p, void *user);
    ls_status (*test_step)(const ls_progress *p, void *user);
    ls_status (*epoch)(const ls_progress *p, void *user); /* its test is done */
    ls_status (*end)(const ls_progress *p, void *user);   /* however it ended, if it began */
    ls_value *(*save)(void *user);
    ls_status (*load)(ls_value *saved, void *user);
    void (*free)(void *user); /* by ls_callback_free */
} ls_callback;
LS_API void ls_callback_init(ls_callback *callback);

/* Of the callbacks below; takes NULL. One of yours may live wherever you like. */
LS_API void ls_callback_free(ls_callback *callback);

/* Stops when the figure got no better (lower; of accuracies, higher) by `least` for `patience` epochs;
 * with `best` the model then gets the weights of its best epoch. A run that it stopped stays stopped,
 * resumed or fitted again. */
typedef struct ls_early_stop_options {
    size_t size;
    const char *watch; /* "test_loss"; "loss" without a test */
    int patience;      /* 1 */
    double least;
    bool best;
} ls_early_stop_options;
LS_API void ls_early_stop_init(ls_early_stop_options *options);
LS_API ls_callback *ls_early_stop(const ls_early_stop_options *options);

/* Saves every `every` steps, at the end of each epoch, and at the end. Names of files: checkpoint.h. */
typedef struct ls_checkpoints_options {
    size_t size;
    const char *directory; /* must be given; made if it is not there */
    int64_t every;         /* 0: only at the ends of epochs */
    int keep;              /* the last so many (3); -1: all */
} ls_checkpoints_options;
LS_API void ls_checkpoints_init(ls_checkpoints_options *options);
LS_API ls_callback *ls_checkpoints(const ls_checkpoints_options *options);

/* Writes `file`, a checkpoint, after every epoch in which the figure was better than ever. */
LS_API ls_callback *ls_best_checkpoint(const char *file, const char *watch);

/* The rate of each epoch (1, 2, ...): ls_set_rate before its first step. Schedules that follow steps
 * are the optimizer's (optimizer.h). */
typedef double (*ls_epoch_rate_fn)(int64_t epoch, void *user);
LS_API ls_callback *ls_epoch_rate(ls_epoch_rate_fn fn, void *user);

/* Event files for TensorBoard (events.h): loss of every `every`-th step (100), the figures of
 * every epoch, the rate; histograms of the variables after every epoch, and the graph of the step. */
LS_API ls_callback *ls_event_log(const char *directory, int64_t every);

#ifndef __cplusplus
#define LS_CALLBACK(...) (&(ls_callback){ .size = sizeof(ls_callback), __VA_ARGS__ })
#define LS_EARLY_STOP(...)                                                                         \
    (&(ls_early_stop_options){ .size = sizeof(ls_early_stop_options), __VA_ARGS__ })
#define LS_CHECKPOINTS(...)                                                                        \
    (&(ls_checkpoints_options){ .size = sizeof(ls_checkpoints_options), __VA_ARGS__ })
#endif

/* ---- fitting ------------------------------------------------------------------------------------ */

/* Zero means default. */
typedef struct ls_fit_options {
    size_t size;
    ls_dataset *data; /* must be given; an epoch is one iteration of it */
    ls_dataset *test; /* after every epoch (none) */
    int64_t epochs;   /* in all (1) */
    int64_t steps;    /* in all; training ends there, if not before; 0: no limit */
    int n_callbacks;
    ls_callback *const *callbacks;
} ls_fit_options;
LS_API void ls_fit_init(ls_fit_options *options);
#ifndef __cplusplus
#define LS_FIT(...) (&(ls_fit_options){ .size = sizeof(ls_fit_options), __VA_ARGS__ })
#endif

/* LS_OK when it is done, also if a callback ended it. A trainer may be fitted again: it goes on,
 * and `epochs` and `steps` count from its beginning. A fit that failed for lack of memory can be
 * repeated: it goes on with the same bits, or says LS_STATE if its place in the data was lost. */
LS_API ls_status ls_fit(ls_trainer *t, const ls_fit_options *options);

/* Loss and metrics over all of `data`, a dataset as above: "test_loss" and so on of the trainer. */
LS_API ls_status ls_evaluate(ls_trainer *t, ls_dataset *data);

/* What the model makes of every element of `data`: x alone, or a list that begins with it. fn gets
 * the outputs of one batch, in order, its rows those of the batch; LS_END from it ends it there. */
typedef ls_status (*ls_predicted)(ls_tensor *outputs, ls_value *batch, void *user);
LS_API ls_status ls_predict(ls_trainer *t, ls_dataset *data, ls_predicted fn, void *user);

/* ---- saving ------------------------------------------------------------------------------------- */

/* A checkpoint of all that training needs to go on, to the file `path`. Between steps: from a
 * callback, or outside. What callbacks save goes with it. LS_UNSUPPORTED if the data cannot tell
 * where it stands. */
LS_API ls_status ls_trainer_save(ls_trainer *t, const char *path, int n_callbacks,
                                 ls_callback *const *callbacks);

/* SHA-256 of all that such a checkpoint holds (checkpoint.h: digests). */
LS_API ls_status ls_trainer_digest(ls_trainer *t, int n_callbacks, ls_callback *const *callbacks,
                                   char out[LS_DIGEST_MAX]);

/* From a file, or the newest good one of a directory (a damaged one is a warning). Of another model,
 * number of replicas, global batch, seed or optimizer: LS_INVALID that names both; with other
 * kernel threads (ls_device_threads), a warning that bits may differ. The next ls_fit continues with the exact
 * next sample. Nothing has changed when it fails. */
LS_API ls_status ls_trainer_resume(ls_trainer *t, const char *path, int n_callbacks,
                                   ls_callback *const *callbacks);

/* Weights by name from a safetensors file (which may hold more); LS_NOT_FOUND and LS_SHAPE name what
 * does not fit. */
LS_API ls_status ls_trainer_take_weights(ls_trainer *t, const char *path);

LS_END_DECLS

#endif
