/*
 * `lockstep bench train MODEL`: samples a second of training as `lockstep train` does it: real data,
 * shuffled, batched and handed over inside the time that is measured. A window of steps to warm up, then
 * five; the median and the best count, and the loss is the mean of the last window, so that a fast step
 * that learns nothing is noticed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <lockstep/profile.h>

#include "bench.h"
#include "explain.h"
#include "session.h"

enum { WINDOWS = 5, MOST_EPOCHS = 1 << 20 };

typedef struct request {
    session_request session;
    int64_t steps; /* that are timed */
    bool explain;
} request;

typedef struct windows {
    int64_t steps; /* of a window */
    int64_t done;  /* in the one under way */
    int window;    /* 0: warm-up */
    double began, loss, samples;
    double rates[1 + WINDOWS];
    double seconds;       /* of all windows but the first */
    ls_function *explain; /* its operators are timed in these; NULL: not */
} windows;

static ls_status after_step(const ls_progress *p, void *user)
{
    windows *w = user;
    w->loss += p->loss;
    w->samples += (double)p->rows;
    if (++w->done < w->steps)
        return LS_OK;
    double now = bench_now();
    w->seconds += w->window > 0 ? now - w->began : 0;
    w->rates[w->window++] = w->samples / (now - w->began);
    if (w->window > WINDOWS)
        return LS_END;
    if (w->window == 1 && w->explain && ls_operators_start(w->explain))
        return ls_error_pending();
    w->began = bench_now();
    w->done = 0;
    w->loss = w->samples = 0;
    return LS_OK;
}

static ls_status at_begin(const ls_progress *p, void *user)
{
    (void)p;
    ((windows *)user)->began = bench_now();
    return LS_OK;
}

static void print_results(const cli *c, const session *s, windows *w)
{
    double *timed = w->rates + 1, median = bench_median(timed, WINDOWS), best = timed[WINDOWS - 1];
    double loss = w->loss / (double)w->steps;
    int replicas = ls_num_replicas(s->strategy);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double tokens =
        s->text ? atof(strchr(ls_model_input(ls_trainer_model(s->trainer)), '[') + 1) : 0;
    if (!c->json) {
        printf("%s, %d replicas of %lld: %.0f samples/s (best %.0f)", s->model_name, replicas,
               (long long)s->global_batch / replicas, median, best);
        if (s->text)
            printf(", %.0f tokens/s", median * tokens);
        printf(", loss %.4f, %.0f MiB\n", loss, (double)used.ru_maxrss / 1024);
        return;
    }
    json j = json_open(stdout);
    json_text(&j, "bench", "train");
    json_text(&j, "model", s->model_name);
    json_whole(&j, "replicas", replicas);
    json_whole(&j, "batch", s->global_batch / replicas);
    json_number(&j, "samples_per_second", median);
    json_number(&j, "best", best);
    if (s->text)
        json_number(&j, "tokens_per_second", median * tokens);
    json_number(&j, "loss", loss);
    json_whole(&j, "peak_rss_bytes", (int64_t)used.ru_maxrss * 1024);
    json_close(&j);
}

static int explain(const cli *c, const session *s, const windows *w)
{
    const char *const *names;
    int devices = session_devices(s, &names);
    explain_limits limits = explain_measure(s->strategy, devices);
    if (ls_error_pending() ||
        explain_print(c, w->explain, &limits, w->seconds * devices, w->steps * WINDOWS))
        return cli_failed(c);
    return cli_done(c);
}

static int measure(const cli *c, const request *r, session *s)
{
    windows w = { .steps = (r->steps + WINDOWS - 1) / WINDOWS,
                  .explain = r->explain ? ls_trainer_step(s->trainer) : NULL };
    ls_callback *timer =
        LS_CALLBACK(.user = &w, .name = "timer", .begin = at_begin, .step = after_step);
    ls_status st = ls_fit(s->trainer, LS_FIT(.data = s->data.train, .epochs = MOST_EPOCHS,
                                             .n_callbacks = 1, .callbacks = &timer));
    if (st)
        return cli_failed(c);
    print_results(c, s, &w);
    return r->explain ? explain(c, s, &w) : cli_done(c);
}

static int run(const cli *c, void *request_, int n, char **positional)
{
    request *r = request_;
    session s;
    int status;
    r->session.model = n > 0 ? positional[0] : NULL;
    if (!session_open(c, &r->session, &s, &status))
        return status;
    LS_FRAME
        status = measure(c, r, &s);
    session_close(&s);
    return status;
}

static void defaults(void *to)
{
    request *r = to;
    *r = (request){ .steps = 500 };
    r->session.seed = 1;
    r->session.weight_decay = NAN;
}

#define IN_SESSION(field) .at = offsetof(session_request, field)

static const cli_option options[] = {
    { "--replicas", "V", "logical replicas (as many as --devices; 2)",
      "a whole number from 1 to 1024", session_read_replicas, IN_SESSION(replicas) },
    { "--batch", "N", "samples of each replica in a step (64; gpt: 8)",
      "a whole number of 1 or more", session_read_count, IN_SESSION(batch) },
    { "--steps", "N", "steps that are timed, in 5 windows (500)", "a whole number of 1 or more",
      session_read_count, .at = offsetof(request, steps) },
    { "--lr", "X", "learning rate (0.001)", "a number above 0", session_read_rate,
      IN_SESSION(rate) },
    { "--optimizer", "NAME", "sgd, momentum, adam or adamw (adam; gpt: adamw)",
      "one of sgd, momentum, adam, adamw", session_read_optimizer, IN_SESSION(optimizer),
      .values = "sgd momentum adam adamw" },
    { "--threads", "N", "threads of each replica (1)", "a whole number from 1 to 1024",
      session_read_threads, IN_SESSION(threads) },
    { "--devices", "LIST", "/cpu:0,/cpu:1 (what this host serves well)", "a list of devices",
      cli_text, IN_SESSION(devices) },
    { "--data", "SPEC", "as of train (the model's default)", "a name or a file", cli_text,
      IN_SESSION(data), .values = "FILE" },
    { "--explain", .help = "time per operator, and its share of what this machine can do",
      .at = offsetof(request, explain) },
    { "--seed", "N", "as of train (1)", "a whole number of 0 or more", session_read_seed,
      IN_SESSION(seed) },
};

const command cli_bench_train = {
    .name = "train",
    .arguments = "[MODEL]",
    .help = "samples a second of training",
    .about =
        "Times training as `lockstep train` does it, input included: a window to warm up, then "
        "five, of which the median and the best are told.",
    .values = "cnn cnn2 mlp resnet gpt FILE",
    .examples = "  lockstep bench train cnn --replicas 2 --batch 64 --steps 1000 --json",
    .environment = "CC LOCKSTEP_FASHION_MNIST LOCKSTEP_ISA TMPDIR",
    CLI_OPTIONS(options),
    .most = 1,
    .request_bytes = sizeof(request),
    .defaults = defaults,
    .run = run,
};
