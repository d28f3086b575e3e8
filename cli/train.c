/*
 * `lockstep train`: from a command line to a trained model. The order of things: what is wrong with
 * the command line or its files is found before anything is written; then the run goes on in ls_fit,
 * watched by train_watch.c; how it ended is told at the end, once.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interrupt.h"
#include "plot.h"
#include "train_watch.h"
#include "training.h"

typedef struct request {
    session_request session; /* the first, so that its options have the same offsets */
    const char *checkpoint, *init, *log, *profile;
    int64_t every, keep;
    bool resume;
    double minutes;
} request;

static void default_request(void *to)
{
    *(request *)to = (request){ .keep = 3 };
    ((request *)to)->session.seed = 1;
    ((request *)to)->session.epochs = 1;
    ((request *)to)->session.weight_decay = NAN;
}

/* A run under way. */
typedef struct run {
    const cli *cli;
    const request *request;
    session session;
    events events;
    train_watch watch;
    int n_callbacks;
    ls_callback *callbacks[3];
    char resumed[4096]; /* the checkpoint; "" */
    int64_t resumed_step;
} run;

/* ---- places to write to ------------------------------------------------------------------------------ */

/* With all above it. False: errno. */
static bool make_directory(const char *path)
{
    char part[4096];
    struct stat is;
    if (strlen(path) >= sizeof part) {
        errno = ENAMETOOLONG;
        return false;
    }
    for (const char *slash = path; (slash = strchr(slash + 1, '/'));) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        if (mkdir(part, 0777) && errno != EEXIST)
            return false;
    }
    if (mkdir(path, 0777) && errno != EEXIST)
        return false;
    if (stat(path, &is) || !S_ISDIR(is.st_mode)) {
        errno = ENOTDIR;
        return false;
    }
    return true;
}

/* Whether a file can be made there: permissions alone do not tell (root, read-only disks). */
static bool can_write_in(const char *directory)
{
    char path[4200];
    snprintf(path, sizeof path, "%.4096s/.lockstep-XXXXXX", directory);
    int file = mkstemp(path);
    if (file < 0)
        return false;
    close(file);
    return unlink(path) == 0;
}

static int check_directory(const cli *c, const char *option, const char *path)
{
    if (!path || (make_directory(path) && can_write_in(path)))
        return EXIT_DONE;
    return cli_error(c, EXIT_USAGE, LS_IO, "name a directory that can be made and written",
                     "%s '%s': %s", option, path, strerror(errno));
}

static int check_file(const cli *c, const char *option, const char *path)
{
    char directory[4096];
    if (!path)
        return EXIT_DONE;
    const char *slash = strrchr(path, '/');
    snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    if (can_write_in(directory[0] ? directory : "/"))
        return EXIT_DONE;
    return cli_error(c, EXIT_USAGE, LS_IO, "name a file in a directory that can be written",
                     "%s '%s': %s", option, path, strerror(errno));
}

static int check_request(const cli *c, const request *r)
{
    if (r->resume && !r->checkpoint)
        return cli_error(c, EXIT_USAGE, LS_INVALID, "add --checkpoint DIR",
                         "--resume has no checkpoints to go on from");
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
    fprintf(stderr, "%s: %s%s\n", t->cli->name, level == LS_LOG_WARNING ? "warning: " : "", message);
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
    const request *r = t->request;
    if (r->checkpoint &&
        !add_callback(t, ls_checkpoints(LS_CHECKPOINTS(.directory = r->checkpoint, .every = r->every,
                                                       .keep = (int)r->keep))))
        return false;
    if (r->log && !add_callback(t, ls_event_log(r->log, 0)))
        return false;
    return add_callback(t, &t->watch.callback); /* last: what ends a run is told to all before it */
}

/* The library's error, about a file of the user's. */
static int wrong_file(const cli *c)
{
    cli_failed(c);
    return EXIT_USAGE;
}

static int take_state(run *t)
{
    const request *r = t->request;
    if (r->resume) {
        ls_status st = ls_checkpoint_newest(r->checkpoint, t->resumed, sizeof t->resumed);
        if (st == LS_NOT_FOUND) {
            ls_error();
            t->resumed[0] = '\0';
            fprintf(stderr, "%s: '%s' has no checkpoint yet: beginning anew\n", t->cli->name,
                    r->checkpoint);
        } else if (st || ls_trainer_resume(t->session.trainer, t->resumed, t->n_callbacks,
                                           t->callbacks)) {
            return wrong_file(t->cli);
        }
        t->resumed_step = ls_iterations(ls_trainer_optimizer(t->session.trainer));
    }
    if (r->init && !t->resumed[0] && ls_trainer_take_weights(t->session.trainer, r->init))
        return wrong_file(t->cli);
    return EXIT_DONE;
}

/* What a person wants to know before the first step. */
static void print_head(const run *t)
{
    const session *s = &t->session;
    const char *const *devices;
    int n = session_devices(s, &devices);
    printf("%s: %lld parameters, %d replica%s on %d device%s, batch %lld, %s", s->model_name,
           (long long)ls_model_parameters(ls_trainer_model(s->trainer)), ls_num_replicas(s->strategy),
           ls_num_replicas(s->strategy) == 1 ? "" : "s", n, n == 1 ? "" : "s",
           (long long)s->global_batch, s->data.name);
    if (s->data.train_samples >= 0)
        printf(" (%lld samples)", (long long)s->data.train_samples);
    printf("\n");
    if (t->resumed[0])
        printf("going on after step %lld, from %s\n", (long long)t->resumed_step, t->resumed);
    fflush(stdout);
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
    printf("%lld steps in %.1f s, %.0f samples/s", (long long)end->steps, end->seconds,
           end->samples_per_second);
    double accuracy = ls_trainer_value(s->trainer, "test_accuracy");
    if (s->text)
        printf(", %.3f bits per byte of held-out text",
               session_bits(ls_trainer_value(s->trainer, "test_loss")));
    else if (!isnan(accuracy))
        printf(", test accuracy %.2f %%", 100 * accuracy);
    printf("\nweights %s\n", end->weights);
}

static int finish(run *t)
{
    events_end end = { 0 };
    if (!test_at_end(t) || !take_end(t, &end))
        return cli_failed(t->cli);
    events_done(&t->events, &t->session, &end);
    if (!t->cli->json)
        print_end(t, &end);
    return cli_done(t->cli);
}

/* Saved by the callback; says where, and how to go on. */
static int leave(run *t)
{
    const request *r = t->request;
    char path[4096] = "";
    if (r->checkpoint && ls_checkpoint_newest(r->checkpoint, path, sizeof path))
        ls_error();
    events_interrupted(&t->events, t->watch.step, t->watch.signal, path[0] ? path : NULL);
    if (path[0])
        fprintf(stderr, "%s: stopped by %s after step %lld; saved %s; --resume goes on from there\n",
                t->cli->name, t->watch.signal, (long long)t->watch.step, path);
    else
        fprintf(stderr,
                "%s: stopped by %s after step %lld; nothing was saved: there is no --checkpoint\n",
                t->cli->name, t->watch.signal, (long long)t->watch.step);
    return EXIT_INTERRUPTED;
}

static bool write_profile(const run *t)
{
    return !t->request->profile || !ls_profile_write(t->session.strategy, t->request->profile);
}

/* ---- the run --------------------------------------------------------------------------------------------- */

static int fit(run *t)
{
    const request *r = t->request;
    session *s = &t->session;
    if (r->profile && ls_profile_start(s->strategy))
        return cli_failed(t->cli);
    bar *shown = t->cli->json ? NULL : bar_open(stdout, NULL);
    t->watch.bar = shown;
    ls_log_set(print_log, t, LS_LOG_WARNING);
    ls_status st =
        ls_fit(s->trainer, LS_FIT(.data = s->data.train, .test = s->data.test,
                                  .epochs = r->session.epochs, .steps = r->session.steps,
                                  .n_callbacks = t->n_callbacks, .callbacks = t->callbacks));
    bar_close(shown);
    t->watch.bar = NULL;
    bool profiled = write_profile(t);
    ls_log_set(NULL, NULL, LS_LOG_WARNING);
    if (st || !profiled)
        return cli_failed(t->cli);
    return t->watch.signal ? leave(t) : finish(t);
}

static int train(run *t)
{
    const request *r = t->request;
    train_watch_open(&t->watch, &t->session, &t->events, 60 * r->minutes);
    if (!make_callbacks(t))
        return cli_failed(t->cli);
    int status = take_state(t);
    const char *directories[] = { r->log, r->checkpoint };
    if (status != EXIT_DONE ||
        !events_open(t->cli, 2, directories, t->resumed[0], &t->events, &status))
        return status;
    events_start(&t->events, &t->session, t->resumed_step);
    if (!t->cli->json)
        print_head(t);
    model_file_training(&t->session.model, r->checkpoint);
    status = fit(t);
    events_close(&t->events);
    if (status == EXIT_DONE && !t->cli->json)
        status = plot_run(t->cli, r->log ? r->log : r->checkpoint);
    return status;
}

static int run_train(const cli *c, void *request_, int n, char **positional)
{
    request *r = request_;
    char line[1024];
    interrupt_watch(c->name);
    r->session.model = n > 0 ? positional[0] : NULL;
    r->session.command = session_command(line, sizeof line);
    int status = check_request(c, r);
    run *t = status == EXIT_DONE ? calloc(1, sizeof *t) : NULL;
    if (!t)
        return status == EXIT_DONE ? cli_error(c, EXIT_FAILED, LS_NO_MEMORY, "", "no memory") : status;
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

/* ---- the table --------------------------------------------------------------------------------------------- */

#define COUNT "a whole number of 1 or more"
#define IN_SESSION(field) .at = offsetof(session_request, field)
#define IN_RUN(field) .at = offsetof(request, field)

static bool read_keep(const char *text, void *to)
{
    return cli_whole(text, 1, 1000000, to);
}

static bool read_schedule(const char *text, void *to)
{
    *(bool *)to = strcmp(text, "cosine") == 0;
    return *(bool *)to || strcmp(text, "constant") == 0;
}

static const cli_option options[] = {
    { "--data", "SPEC", "fashion-mnist, FILE.npz, TFRecord files, or a text for gpt (fashion-mnist)",
      "a name or a file", cli_text, IN_SESSION(data), .values = "FILE",
      .group = "What is trained, and how" },
    { "--batch", "N", "samples of each replica in a step (64; gpt: 8)", COUNT, session_read_count,
      IN_SESSION(batch) },
    { "--epochs", "N", "times through the data, in all (1)", COUNT, session_read_count,
      IN_SESSION(epochs) },
    { "--steps", "N", "end after so many steps, in all", COUNT, session_read_count,
      IN_SESSION(steps) },
    { "--minutes", "X", "end after so many minutes", "a number of minutes above 0",
      session_read_rate, IN_RUN(minutes) },
    { "--optimizer", "NAME", "sgd, momentum, adam or adamw (adam; gpt: adamw)",
      "one of sgd, momentum, adam, adamw", session_read_optimizer, IN_SESSION(optimizer),
      .values = "sgd momentum adam adamw" },
    { "--lr", "X", "learning rate (0.001)", "a number above 0", session_read_rate,
      IN_SESSION(rate) },
    { "--schedule", "NAME", "of the rate: constant, or cosine: down to 0 at the end (constant)",
      "constant or cosine", read_schedule, IN_SESSION(cosine), .values = "constant cosine" },
    { "--warmup", "N", "steps in which the rate climbs from 0 (none)", COUNT, session_read_count,
      IN_SESSION(warmup) },
    { "--weight-decay", "X", "decoupled from the gradient (0; adamw: 0.004)", "a number of 0 or more",
      session_read_share, IN_SESSION(weight_decay) },
    { "--clip", "X", "scale gradients down to this norm of all of them (none)",
      "a number of 0 or more", session_read_share, IN_SESSION(clip) },
    { "--seed", "N", "of initial values, order of data, random draws (1)",
      "a whole number of 0 or more", session_read_seed, IN_SESSION(seed) },
    { "--replicas", "V", "logical replicas: part of the result (as many as --devices; 2)",
      "a whole number from 1 to 1024", session_read_replicas, IN_SESSION(replicas),
      .group = "Where it runs" },
    { "--devices", "LIST", "/cpu:0,/cpu:1: no part of the result (what this host serves well)",
      "a list of devices", cli_text, IN_SESSION(devices) },
    { "--threads", "N", "threads of each replica: part of the result (1)",
      "a whole number from 1 to 1024", session_read_threads, IN_SESSION(threads) },
    { "--cross-device-ops", "NAME", "how replicas add up (auto)",
      "one of auto, direct, hierarchical-copy, reduction-to-one-device, nccl",
      session_read_cross_device, IN_SESSION(cross_device),
      .values = "auto direct hierarchical-copy reduction-to-one-device nccl" },
    { "--checkpoint", "DIR", "save there after every epoch, and at the end", "a directory", cli_text,
      IN_RUN(checkpoint), .values = "DIR", .group = "Saving and watching" },
    { "--checkpoint-every", "N", "save every N steps, too", COUNT, session_read_count,
      IN_RUN(every) },
    { "--keep", "N", "checkpoints that are kept (3)", COUNT, read_keep, IN_RUN(keep) },
    { "--resume", .help = "go on from the newest checkpoint, at the exact sample", IN_RUN(resume) },
    { "--init", "FILE", "begin with weights, by name, from a safetensors file", "a file", cli_text,
      IN_RUN(init), .values = "FILE" },
    { "--log", "DIR", "event files for TensorBoard", "a directory", cli_text, IN_RUN(log),
      .values = "DIR" },
    { "--profile", "FILE", "a trace of every replica, for Perfetto or chrome://tracing", "a file",
      cli_text, IN_RUN(profile), .values = "FILE" },
};

const command cli_train = {
    .name = "train",
    .arguments = "[MODEL]",
    .help = "train a model on several devices",
    .about =
        "Trains a model: cnn (the default), cnn2, mlp, resnet or gpt, or one of your own: FILE.c or "
        "FILE.so, which defines `ls_model *lockstep_model(void)` (see <lockstep/model.h>). A FILE.c "
        "is compiled with the system's compiler.\n\n"
        "The result belongs to the command line, not to the machine: the same options give the same "
        "bits on any number of devices. --devices and --log and their like change nothing of "
        "it; --replicas, --threads, --batch and --seed do.\n\n"
        "Ctrl-C and SIGTERM save (with --checkpoint) and leave with status 130; --resume goes on at "
        "the exact sample, as if the run had never stopped. A second Ctrl-C ends at once.",
    .values = "cnn cnn2 mlp resnet gpt FILE",
    .examples = "Train the default model for one epoch:\n\n"
                "  lockstep train\n\n"
                "Ten epochs, saved, with curves for TensorBoard:\n\n"
                "  lockstep train cnn --epochs 10 --checkpoint run --log run\n\n"
                "Go on after an interruption:\n\n"
                "  lockstep train cnn --epochs 10 --checkpoint run --log run --resume\n\n"
                "A model of your own:\n\n"
                "  lockstep train mine.c --data mine.npz",
    .files = "DIR/step-NNNNNNNNN.safetensors: checkpoints, which any reader of safetensors "
             "opens.\n\nDIR/run.jsonl: the events of the run, from which `lockstep plot DIR` draws.",
    CLI_OPTIONS(options),
    .most = 1,
    .request_bytes = sizeof(request),
    .defaults = default_request,
    .run = run_train,
};
