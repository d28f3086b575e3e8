/*
 * A session: what a command line asked for, made in the order in which bits depend on it: the seed,
 * the strategy, the model's variables in its scope, the optimizer, the data.
 */
#include "session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "crash_guard.h"

/* ---- the strategy --------------------------------------------------------------------------------- */

/* So many CPU devices as this host serves well: no more than there are cores for. */
static const char *default_devices(int64_t replicas, int64_t threads, char *out, size_t room)
{
    int64_t count = ls_cpu_cores() / threads;
    count = count < 1 ? 1 : count < replicas ? count : replicas;
    size_t used = 0;
    out[0] = '\0';
    for (int64_t i = 0; i < count && used < room - 16; i++)
        used +=
            (size_t)snprintf(out + used, room - used, "%s/cpu:%lld", i ? "," : "", (long long)i);
    return out;
}

static int64_t named_devices(const char *list)
{
    int64_t n = 1;
    for (; *list; list++)
        n += *list == ',';
    return n;
}

static bool open_strategy(const session_request *r, session *s)
{
    char devices[16384];
    int64_t replicas = r->replicas ? r->replicas : r->devices ? named_devices(r->devices) : 2;
    if (ls_device_threads(s->threads))
        return false;
    s->strategy =
        ls_mirrored(LS_MIRRORED(.devices = r->devices ? r->devices
                                                      : default_devices(replicas, s->threads,
                                                                        devices, sizeof devices),
                                .replicas = (int)replicas, .cross_device = r->cross_device));
    return s->strategy;
}

int session_devices(const session *s, const char *const **names)
{
    int count = 0;
    *names = ls_parameter_devices(s->strategy, &count);
    return count;
}

/* ---- the optimizer ------------------------------------------------------------------------------------ */

/* Of data that cannot tell how many batches it has, how many samples there are may be known. */
static int64_t epoch_steps(const session *s)
{
    int64_t steps = s->data.train ? ls_cardinality(s->data.train) : LS_UNKNOWN;
    if (steps < 0 && s->data.train_samples > 0)
        steps = (s->data.train_samples - 1) / s->global_batch + 1;
    return steps;
}

/* Steps of the whole run, for a rate that falls to its end; 0: not known. */
static int64_t all_steps(const session_request *r, const session *s)
{
    int64_t epoch = epoch_steps(s), all;
    if (epoch < 1 || r->epochs < 1 || __builtin_mul_overflow(epoch, r->epochs, &all))
        all = 0;
    return r->steps > 0 && (all == 0 || r->steps < all) ? r->steps : all;
}

/* Language models begin slowly: with the full rate from the first step, some seeds know for hundreds of
 * steps nothing but how frequent each byte is. The warm-up is the same for any number of steps, for a run
 * that is resumed with more; but a cosine is that of its steps anyway, and needs some to fall in. */
static int64_t warmup_of(const session_request *r, const session *s)
{
    enum { OF_TEXT = 100 };
    if (r->warmup != 0)
        return r->warmup > 0 ? r->warmup : 0;
    if (!s->text)
        return 0;
    const int64_t half = all_steps(r, s) / 2;
    return r->schedule == SCHEDULE_COSINE && half < OF_TEXT ? half : OF_TEXT;
}

/* A cosine has an end to fall to, or it is no cosine. */
static int check_schedule(const cli *c, const session_request *r, const session *s)
{
    const int64_t steps = all_steps(r, s), warmup = warmup_of(r, s);
    if (r->schedule != SCHEDULE_COSINE || steps > warmup)
        return EXIT_DONE;
    if (steps == 0)
        return cli_error(c, EXIT_USAGE, LS_INVALID, "say how many with --steps",
                         "--schedule cosine falls to the last step, and how many steps --epochs "
                         "%lld takes is not known",
                         (long long)r->epochs);
    return cli_error(c, EXIT_USAGE, LS_INVALID,
                     "give a smaller --warmup, or more --steps or --epochs",
                     "--schedule cosine falls after the warm-up, and --warmup %lld leaves none of "
                     "%lld steps",
                     (long long)warmup, (long long)steps);
}

static double rate_of(const session_request *r)
{
    return r->rate > 0 ? r->rate : 0.001;
}

static ls_schedule schedule_of(const session_request *r, const session *s)
{
    const bool falls = r->schedule == SCHEDULE_COSINE;
    const int64_t warmup = warmup_of(r, s);
    return *LS_SCHEDULE(.kind = falls ? LS_SCHEDULE_COSINE : LS_SCHEDULE_CONSTANT,
                        .rate = rate_of(r), .steps = falls ? all_steps(r, s) - warmup : 0,
                        .warmup_steps = warmup);
}

static ls_optimizer *make_optimizer(const session_request *r, const session *s)
{
    session_optimizer kind = r->optimizer;
    if (kind == OPTIMIZER_OF_MODEL)
        kind = s->text ? OPTIMIZER_ADAMW : OPTIMIZER_ADAM;
    const ls_schedule schedule = schedule_of(r, s);
    /* Of options 0 stands for the default, and -1 for 0. */
    double decay = isnan(r->weight_decay) ? 0 : r->weight_decay > 0 ? r->weight_decay : -1;
    if (kind == OPTIMIZER_SGD || kind == OPTIMIZER_MOMENTUM)
        return ls_sgd(LS_SGD(.rate = rate_of(r), .schedule = &schedule, .weight_decay = decay,
                             .clip_global_norm = r->clip,
                             .momentum = kind == OPTIMIZER_MOMENTUM ? 0.9 : 0));
    const ls_adam_options *options = LS_ADAM(.rate = rate_of(r), .schedule = &schedule,
                                             .weight_decay = decay, .clip_global_norm = r->clip);
    return kind == OPTIMIZER_ADAM ? ls_adam(options) : ls_adamw(options);
}

ls_status session_reschedule(const session_request *r, session *s)
{
    const ls_schedule schedule = schedule_of(r, s);
    if (r->rate == 0 && r->schedule == SCHEDULE_DEFAULT && r->warmup == 0)
        return LS_OK;
    return ls_set_schedule(ls_trainer_optimizer(s->trainer), &schedule);
}

/* ---- the trainer --------------------------------------------------------------------------------------- */

/* Data may come as it is in files: pixels are made numbers of by the replicas, each its own. */
static ls_tensor *as_the_model_takes_it(ls_tensor *x, void *user)
{
    return sample_numbers(user, x, true);
}

static bool open_trainer(const session_request *r, session *s, ls_model *m)
{
    ls_optimizer *optimizer = make_optimizer(r, s);
    s->trainer =
        optimizer ? ls_trainer_new(
                        LS_TRAINER(.strategy = s->strategy, .model = m, .optimizer = optimizer,
                                   .prepare = as_the_model_takes_it, .prepare_user = &s->input,
                                   .global_batch = s->global_batch, .seed = r->seed,
                                   .command = r->command, .data = r->data ? r->data : s->data.name))
                  : NULL;
    if (s->trainer)
        return true;
    ls_optimizer_free(optimizer);
    ls_model_free(m);
    return false;
}

static bool open_data(const cli *c, const session_request *r, const ls_model *m, session *s,
                      int *status)
{
    const data_request wanted = { .spec = r->data,
                                  .input = ls_model_input(m),
                                  .label = ls_model_label(m),
                                  .text = s->text,
                                  .global_batch = s->global_batch,
                                  .seed = r->seed,
                                  .test_only = r->test_only };
    return r->no_data || data_open(c, &wanted, &s->data, status);
}

/* A user's code may crash: then that is said, not only "Segmentation fault". */
static void guard(const cli *c, const char *which)
{
    static char what[MODEL_NAME_ROOM + 16];
    if (!model_is_file(which))
        return;
    snprintf(what, sizeof what, "the model %s", model_base_name(which));
    crash_guard_install(c, what);
}

/* Tests of many rows at once are faster; but a text's rows are long. */
static int64_t batch_of(const session_request *r, const session *s)
{
    int64_t own = r->test_batch && !s->text ? r->test_batch : ls_model_batch(s->model.model);
    return r->batch ? r->batch : own;
}

static bool open_model(const cli *c, const session_request *r, session *s, int *status)
{
    const char *which = r->model ? r->model : "cnn";
    bool opened = false;
    guard(c, which);
    ls_random_seed(r->seed);
    LS_SCOPE (s->strategy)
        opened = model_file_open(c, which, &s->model, status);
    if (!opened)
        return false;
    ls_model *m = s->model.model;
    s->model_name = s->model.name;
    sample_read(ls_model_input(m), &s->input);
    s->text = data_is_text(ls_model_input(m), ls_model_label(m));
    s->global_batch = batch_of(r, s) * ls_num_replicas(s->strategy);
    bool ready = open_data(c, r, m, s, status);
    if (ready)
        *status = check_schedule(c, r, s);
    if (!ready || *status != EXIT_DONE) {
        ls_model_free(m);
        return false;
    }
    if (open_trainer(r, s, m))
        return true;
    *status = cli_failed(c);
    return false;
}

bool session_open(const cli *c, const session_request *r, session *out, int *status)
{
    *out = (session){ .threads = r->threads ? (int)r->threads : 1, .command = r->command };
    bool opened = open_strategy(r, out);
    if (!opened) { /* a wrong list of devices, most often */
        *status = cli_failed_with(c, EXIT_USAGE);
    } else {
        opened = open_model(c, r, out, status);
    }
    if (!opened)
        session_close(out);
    return opened;
}

void session_close(session *s)
{
    ls_trainer_free(s->trainer);
    data_close(&s->data);
    ls_strategy_free(s->strategy);
    *s = (session){ 0 };
}

const char *session_command(char *out, size_t room)
{
    FILE *from = fopen("/proc/self/cmdline", "rb");
    size_t n = from ? fread(out, 1, room - 1, from) : 0;
    if (from)
        fclose(from);
    while (n > 0 && out[n - 1] == '\0')
        n--;
    for (size_t i = 0; i < n; i++)
        if (out[i] == '\0')
            out[i] = ' ';
    out[n] = '\0';
    return out;
}

double session_bits(double loss)
{
    return loss / log(2);
}

/* ---- readers -------------------------------------------------------------------------------------------- */

bool session_read_count(const char *text, void *to)
{
    return cli_whole(text, 1, INT64_MAX / 4096, to);
}

bool session_read_replicas(const char *text, void *to)
{
    return cli_whole(text, 1, 1024, to);
}

bool session_read_threads(const char *text, void *to)
{
    return cli_whole(text, 1, 1024, to);
}

bool session_read_optimizer(const char *text, void *to)
{
    static const char *const names[] = { [OPTIMIZER_SGD] = "sgd",
                                         [OPTIMIZER_MOMENTUM] = "momentum",
                                         [OPTIMIZER_ADAM] = "adam",
                                         [OPTIMIZER_ADAMW] = "adamw" };
    for (int i = OPTIMIZER_SGD; i <= OPTIMIZER_ADAMW; i++)
        if (strcmp(text, names[i]) == 0) {
            *(session_optimizer *)to = (session_optimizer)i;
            return true;
        }
    return false;
}

bool session_read_cross_device(const char *text, void *to)
{
    if (ls_cross_device_named(text, to) == LS_OK)
        return true;
    ls_error(); /* the table says what is expected */
    return false;
}

bool session_read_warmup(const char *text, void *to)
{
    int64_t *steps = to;
    if (!cli_whole(text, 0, INT64_MAX / 4096, steps))
        return false;
    if (*steps == 0)
        *steps = -1;
    return true;
}

bool session_read_rate(const char *text, void *to)
{
    return cli_number(text, 0, 1e30, to) && *(double *)to > 0;
}

bool session_read_share(const char *text, void *to)
{
    return cli_number(text, 0, 1e30, to);
}

bool session_read_seed(const char *text, void *to)
{
    return cli_whole(text, 0, INT64_MAX, to);
}
