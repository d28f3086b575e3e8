/*
 * What train, evaluate, predict, sample and bench train have in common: a strategy, a model in a
 * trainer, and data for it, from what a command line asked for.
 */
#ifndef LOCKSTEP_CLI_SESSION_H
#define LOCKSTEP_CLI_SESSION_H

#include <lockstep.h>

#include "cli.h"
#include "data.h"
#include "model_file.h"
#include "sample.h"

typedef enum session_optimizer {
    OPTIMIZER_OF_MODEL, /* adam; adamw of a language model */
    OPTIMIZER_SGD,
    OPTIMIZER_MOMENTUM,
    OPTIMIZER_ADAM,
    OPTIMIZER_ADAMW
} session_optimizer;

typedef enum session_schedule {
    SCHEDULE_DEFAULT, /* constant */
    SCHEDULE_CONSTANT,
    SCHEDULE_COSINE
} session_schedule;

/* Zero means default, NULL none. */
typedef struct session_request {
    const char *model;
    const char *data;
    int64_t replicas, threads, batch; /* batch: per replica... */
    int64_t test_batch;               /* ...and its default, but for text; 0: the model's own */
    const char *devices;
    ls_cross_device cross_device;
    session_optimizer optimizer;
    double rate;               /* 0.001 */
    double weight_decay;       /* NaN: the optimizer's own */
    double clip;               /* of the global norm; 0: none */
    session_schedule schedule; /* cosine: the rate falls to 0 in half a wave over all steps... */
    int64_t warmup;            /* ...after so many in which it climbs; 0: the model's own, -1: none */
    int64_t epochs, steps;     /* for that; 0: not known */
    uint64_t seed;
    const char *command;     /* for the record */
    bool no_data, test_only; /* test_only: nothing is trained */
} session_request;

typedef struct session {
    ls_strategy *strategy;
    ls_trainer *trainer; /* owns the model */
    model_file model;
    sample input; /* what the model takes */
    data_sets data;
    int64_t global_batch;
    int threads;
    const char *model_name;
    const char *command; /* the request's; NULL: none */
    bool text; /* a language model */
} session;

/* False: it ends here, with `*status`; there is nothing to close. */
bool session_open(const cli *c, const session_request *r, session *out, int *status);
void session_close(session *s);

/* After a checkpoint, with its rate, was restored: what the command line says of the rate, if it says
 * anything. */
ls_status session_reschedule(const session_request *r, session *s);

/* "/cpu:0" ... of the strategy, without repeats. */
int session_devices(const session *s, const char *const **names);

/* This process's command line, for the record of a checkpoint; in `out`. */
const char *session_command(char *out, size_t room);

/* bits a byte of a loss in nats, of a language model. */
double session_bits(double loss);

/* ---- readers of options (options.h) ----- */

/* The options that train, evaluate... share, as rows of a table whose request begins with (or has, at
 * `at`) a session_request. */
bool session_read_count(const char *text, void *to);    /* int64_t, from 1 */
bool session_read_replicas(const char *text, void *to); /* int64_t, 1 to 1024 */
bool session_read_threads(const char *text, void *to);  /* int64_t, 1 to 1024 */
bool session_read_optimizer(const char *text, void *to);
bool session_read_cross_device(const char *text, void *to);
bool session_read_warmup(const char *text, void *to);
bool session_read_rate(const char *text, void *to);  /* double, above 0 */
bool session_read_share(const char *text, void *to); /* double, 0 or more */
bool session_read_seed(const char *text, void *to);  /* uint64_t */

#endif
