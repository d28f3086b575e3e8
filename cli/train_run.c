/*
 * `lockstep train`, from a command line to a trained model. The order of things: what is wrong with
 * the command line or its files is found before anything is trained; then the run goes on in ls_fit,
 * watched by train_watch.c; how it ended is told at the end, once.
 */
#include "train_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "crash_guard.h"
#include "directories.h"
#include "interrupt.h"
#include "plot_command.h"
#include "train_watch.h"

/* A run under way. */
typedef struct run {
    const cli *cli;
    const train_request *request;
    session session;
    events events;
    train_watch watch;
    int n_callbacks;
    ls_callback *callbacks[3];
    char resumed[4096]; /* the checkpoint; "" */
    int64_t resumed_step;
} run;

static int check_request(const cli *c, const train_request *r)
{
    if (r->resume && !r->checkpoint)
        return cli_error(c, EXIT_USAGE, LS_INVALID, "add --checkpoint DIR",
                         "--resume has no checkpoints to go on from");
    if (!r->checkpoint && (r->every || r->keep))
        return cli_error(c, EXIT_USAGE, LS_INVALID, "add --checkpoint DIR",
                         "%s has no directory to save in",
                         r->every ? "--checkpoint-every" : "--keep");
    return EXIT_DONE;
}

/* When all that is read was found to be good, so that a mistyped name leaves nothing behind. */
static int check_places(const cli *c, const train_request *r)
{
    int status = check_directory(c, "--checkpoint", r->checkpoint);
    if (status == EXIT_DONE)
        status = check_directory(c, "--log", r->log);
    if (status == EXIT_DONE)
        status = check_file(c, "--profile", r->profile);
    return status;
}

/* ---- beginning ---------------------------------------------------------------------------------------- */

/* Warnings of the library go around the bar. */
static void print_log(ls_log_level level, const char *message, void *user)
{
    run *t = user;
    bar_clear(t->watch.bar);
    fprintf(stderr, "%s: %s%s\n", t->cli->name, level == LS_LOG_WARNING ? "warning: " : "",
            message);
    bar_redraw(t->watch.bar);
}

static bool add_callback(run *t, ls_callback *callback)
{
    if (callback)
        t->callbacks[t->n_callbacks++] = callback;
    return callback;
}

static bool make_callbacks(run *t)
{
    const train_request *r = t->request;
    if (r->checkpoint &&
        !add_callback(t, ls_checkpoints(LS_CHECKPOINTS(.directory = r->checkpoint,
                                                       .every = r->every, .keep = (int)r->keep))))
        return false;
    if (r->log && !add_callback(t, ls_event_log(r->log, 0)))
        return false;
    /* Checkpoints are saved when all others have been called, wherever they stand. */
    return add_callback(t, &t->watch.callback);
}

/* From the newest good checkpoint; if there is none, the run begins. */
static int resume(run *t)
{
    const char *directory = t->request->checkpoint;
    ls_status st = ls_checkpoint_newest(directory, t->resumed, sizeof t->resumed);
    if (st == LS_NOT_FOUND) {
        ls_error();
        t->resumed[0] = '\0';
        fprintf(stderr, "%s: '%s' has no checkpoint yet: beginning anew\n", t->cli->name,
                directory);
        return EXIT_DONE;
    }
    if (st || ls_trainer_resume(t->session.trainer, t->resumed, t->n_callbacks, t->callbacks))
        return cli_failed_with(t->cli, EXIT_USAGE); /* about a file of the user's */
    if (session_reschedule(&t->request->session, &t->session))
        return cli_failed(t->cli);
    t->resumed_step = ls_iterations(ls_trainer_optimizer(t->session.trainer));
    return EXIT_DONE;
}

static int take_state(run *t)
{
    const train_request *r = t->request;
    int status = EXIT_DONE;
    if (r->resume)
        status = resume(t);
    if (status == EXIT_DONE && !t->resumed[0] && r->init &&
        ls_trainer_take_weights(t->session.trainer, r->init))
        status = cli_failed_with(t->cli, EXIT_USAGE); /* about a file of the user's, too */
    /* Of two names of one directory the second finds nothing. */
    if (status == EXIT_DONE && !t->resumed[0])
        status = set_earlier_aside(t->cli, r->checkpoint);
    if (status == EXIT_DONE && !t->resumed[0])
        status = set_earlier_aside(t->cli, r->log);
    return status;
}

/* What a person wants to know before the first step. */
static void print_head(const run *t)
{
    const session *s = &t->session;
    const char *const *devices;
    int n = session_devices(s, &devices);
    printf("%s: %lld parameters, %d replica%s on %d device%s, batch %lld, %s", s->model_name,
           (long long)ls_model_parameters(ls_trainer_model(s->trainer)),
           ls_num_replicas(s->strategy), ls_num_replicas(s->strategy) == 1 ? "" : "s", n,
           n == 1 ? "" : "s", (long long)s->global_batch, s->data.name);
    if (s->data.train_samples >= 0)
        printf(" (%lld samples)", (long long)s->data.train_samples);
    printf("\n");
    if (t->resumed[0])
        printf("going on after step %lld, from %s\n", (long long)t->resumed_step, t->resumed);
    cli_flush(stdout);
}

/* ---- ending --------------------------------------------------------------------------------------------- */

/* The figures of a test are those of the weights there are: of a run that ended within an epoch they are
 * taken now. */
static bool test_at_end(const run *t)
{
    const session *s = &t->session;
    if (!s->data.test || t->watch.tested == t->watch.step)
        return true;
    return ls_evaluate(s->trainer, s->data.test) == LS_OK;
}

static bool take_end(const run *t, events_end *end)
{
    const ls_model *m = ls_trainer_model(t->session.trainer);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    end->steps = t->watch.step;
    end->samples_per_second = throughput_median(&t->watch.speed);
    end->seconds = t->watch.seconds;
    end->peak_rss_bytes = (int64_t)used.ru_maxrss * 1024;
    return !ls_weights_digest(ls_model_count(m), ls_model_variables(m), end->weights) &&
           !ls_trainer_digest(t->session.trainer, t->n_callbacks, t->callbacks, end->state);
}

static void print_end(const run *t, const events_end *end)
{
    const session *s = &t->session;
    printf("%lld steps in %.1f s", (long long)end->steps, end->seconds);
    if (!isnan(end->samples_per_second))
        printf(", %.0f samples/s", end->samples_per_second);
    double accuracy = ls_trainer_value(s->trainer, "test_accuracy");
    if (s->text)
        printf(", %.3f bits per byte of held-out text",
               session_bits(ls_trainer_value(s->trainer, "test_loss")));
    else if (!isnan(accuracy))
        printf(", test accuracy %.2f %%", 100 * accuracy);
    printf("\nweights %s\n", end->weights);
}

/* Saved by the callback; says where, and how to go on. */
static int leave(run *t, const char *signal)
{
    const train_request *r = t->request;
    char path[4096] = "";
    if (r->checkpoint && ls_checkpoint_newest(r->checkpoint, path, sizeof path))
        ls_error();
    events_interrupted(&t->events, t->watch.step, signal, path[0] ? path : NULL);
    const char *what = path[0]         ? "saved "
                       : r->checkpoint ? "there was nothing to save in "
                                       : "nothing was saved: there is no --checkpoint";
    const char *where = path[0] ? path : r->checkpoint ? r->checkpoint : "";
    fprintf(stderr, "%s: stopped by %s after step %lld; %s%s%s\n", t->cli->name, signal,
            (long long)t->watch.step, what, where, path[0] ? "; --resume goes on from there" : "");
    return EXIT_INTERRUPTED;
}

static int finish(run *t)
{
    events_end end = { 0 };
    if (!test_at_end(t))
        return cli_failed(t->cli);
    if (interrupt_came())
        return leave(t, interrupt_came());
    if (!take_end(t, &end))
        return cli_failed(t->cli);
    events_done(&t->events, &t->session, &end);
    plot_at_end(t->cli, t->events.where, events_read(&t->events));
    if (!t->cli->json)
        print_end(t, &end);
    return cli_done(t->cli);
}

static bool write_profile(const run *t)
{
    return !t->request->profile || !ls_profile_write(t->session.strategy, t->request->profile);
}

/* ---- the run --------------------------------------------------------------------------------------------- */

/* The position in the checkpoint is none of this data. */
static int other_data(const run *t)
{
    ls_checkpoint_record record = { .size = sizeof record };
    const char *given = t->session.data.name;
    ls_error();
    bool known = ls_checkpoint_look(t->resumed, &record) == LS_OK;
    ls_error();
    if (known && record.data && record.data[0] && strcmp(record.data, given) != 0)
        return cli_error(t->cli, EXIT_USAGE, LS_INVALID, "go on with that --data",
                         "'%s' was trained with the data '%s', which '%s' is not", t->resumed,
                         record.data, given);
    return cli_error(t->cli, EXIT_USAGE, LS_INVALID, "go on with the data that the run began with",
                     "'%s' was trained with other data than '%s' has now", t->resumed, given);
}

static ls_status run_fit(run *t)
{
    const session_request *r = &t->request->session;
    session *s = &t->session;
    bar *shown = t->cli->json ? NULL : bar_open(stdout, NULL);
    t->watch.bar = shown;
    ls_log_set(print_log, t, LS_LOG_WARNING);
    ls_status st =
        ls_fit(s->trainer,
               LS_FIT(.data = s->data.train, .test = s->data.test, .epochs = r->epochs,
                      .steps = r->steps, .n_callbacks = t->n_callbacks, .callbacks = t->callbacks));
    bar_close(shown);
    t->watch.bar = NULL;
    ls_log_set(NULL, NULL, LS_LOG_WARNING);
    return st;
}

static int fit(run *t)
{
    if (t->request->profile && ls_profile_start(t->session.strategy))
        return cli_failed(t->cli);
    ls_status st = run_fit(t);
    bool profiled = write_profile(t);
    if (t->resumed[0] && st == LS_INVALID && t->watch.began == 0)
        return other_data(t);
    if (st)
        return cli_failed(t->cli);
    ls_error(); /* of the profile, which is no reason to throw a trained model away */
    int status;
    if (t->watch.signal)
        status = leave(t, t->watch.signal);
    else if (ferror(stdout))
        status = cli_done(t->cli);
    else
        status = finish(t);
    if (profiled || write_profile(t)) /* perhaps there is room now */
        return status;
    int failed = cli_failed(t->cli);
    return status == EXIT_DONE ? failed : status;
}

static int train(run *t)
{
    const train_request *r = t->request;
    train_watch_open(&t->watch, &t->session, &t->events, 60 * r->minutes, r->checkpoint);
    if (!make_callbacks(t))
        return cli_failed(t->cli);
    int status = check_places(t->cli, r);
    if (status == EXIT_DONE)
        status = take_state(t);
    const char *directories[] = { r->log, r->checkpoint };
    if (status != EXIT_DONE ||
        !events_open(t->cli, 2, directories, t->resumed[0], &t->events, &status))
        return status;
    events_start(&t->events, &t->session, t->resumed_step);
    if (!t->cli->json)
        print_head(t);
    status = fit(t);
    events_close(&t->events);
    return status;
}

int train_run(const cli *c, train_request *r)
{
    char line[1024];
    interrupt_watch(c->name);
    r->session.command = session_command(line, sizeof line);
    int status = check_request(c, r);
    run *t = status == EXIT_DONE ? calloc(1, sizeof *t) : NULL;
    if (!t)
        return status == EXIT_DONE ? cli_error(c, EXIT_FAILED, LS_NO_MEMORY, "", "no memory")
                                   : status;
    t->cli = c;
    t->request = r;
    if (session_open(c, &r->session, &t->session, &status)) {
        status = train(t);
        for (int i = 0; i < t->n_callbacks - 1; i++)
            ls_callback_free(t->callbacks[i]);
        session_close(&t->session);
    }
    free(t);
    return status;
}
