/*
 * Watching a fit. Step events: the first, every 100th, the last, of which some are known to be the last
 * only when the epoch, or the fit, has ended. Invariant: nothing here changes what is trained.
 */
#include "train_watch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "crash_guard.h"
#include "interrupt.h"

/* The log has more, for curves. */
enum { EVENT_EVERY = 100, LOG_EVERY = 10 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- shares of time ------------------------------------------------------------------------------------- */

/* Seconds of all replicas together. */
static void sum_phases(const ls_strategy *s, double *out)
{
    memset(out, 0, LS_PHASES * sizeof *out);
    for (int r = 0; r < ls_num_replicas(s); r++) {
        double seconds[LS_PHASES];
        if (ls_phase_seconds(s, r, seconds))
            return;
        for (int p = 0; p < LS_PHASES; p++)
            out[p] += seconds[p];
    }
}

static void note_shares(const train_watch *w, bar_facts *f)
{
    double sums[LS_PHASES], all = 0;
    sum_phases(w->session->strategy, sums);
    for (int p = 0; p < LS_PHASES; p++)
        all += sums[p] -= w->before[p];
    f->input = all > 0 ? sums[LS_PHASE_INPUT] / all : -1;
    f->reduce = all > 0 ? sums[LS_PHASE_REDUCE] / all : -1;
}

/* ---- the bar ---------------------------------------------------------------------------------------------- */

/* Figures of training, or of the test under way; of a finished epoch both. */
static int note_figures(const train_watch *w, bool tests, bar_figure *out)
{
    const char *name;
    int n = 0;
    for (int i = 0; n < BAR_FIGURES - 1 && (name = ls_trainer_names(w->session->trainer, i)); i++) {
        bool of_test = strncmp(name, "test_", 5) == 0;
        double value = ls_trainer_value(w->session->trainer, name);
        if (strcmp(name, "loss") == 0 || (of_test && (!tests || isnan(value))))
            continue;
        out[n++] = (bar_figure){ name, value };
    }
    double loss = ls_trainer_value(w->session->trainer, "test_loss");
    if (tests && w->session->text && !isnan(loss))
        out[n++] = (bar_figure){ "bits_per_byte", session_bits(loss) };
    return n;
}

static bar_facts where(const ls_progress *p, bool testing)
{
    return (bar_facts){ .epoch = p->epoch,
                        .epochs = p->epochs,
                        .step = testing ? p->test_step : p->epoch_step,
                        .steps = testing ? p->test_steps : p->epoch_steps,
                        .run_step = p->step,
                        .run_steps = p->last_step,
                        .samples = p->samples };
}

/* Not for every step: reading metrics makes the replicas wait. */
static void show(train_watch *w, const ls_progress *p, void (*how)(bar *, const bar_facts *),
                 bool testing, bool tests)
{
    if (!w->bar)
        return;
    bar_figure figures[BAR_FIGURES];
    bar_facts f = where(p, testing);
    f.loss = p->step ? ls_trainer_value(p->trainer, "loss") : NAN;
    f.figures = figures;
    f.n_figures = p->step ? note_figures(w, tests, figures) : 0; /* before that all are NaN */
    note_shares(w, &f);
    how(w->bar, &f);
}

static void show_step(train_watch *w, const ls_progress *p, bool last)
{
    bar_facts f = where(p, false);
    if (last || bar_due(w->bar))
        show(w, p, bar_show, false, false);
    else
        bar_pass(w->bar, &f);
}

/* ---- what a crash would leave ----------------------------------------------------------------- */

/* If the step was saved, the file is there: of the step before, since the callback that saves comes
 * after this one. */
static void note_checkpoint(const train_watch *w, int64_t step)
{
    char path[4096];
    if (!w->checkpoints || !crash_guard_is_on())
        return;
    snprintf(path, sizeof path, "%s/step-%09lld.safetensors", w->checkpoints, (long long)step);
    if (access(path, F_OK) == 0)
        crash_guard_saved(path);
}

/* ---- the callback ------------------------------------------------------------------------------------------ */

static ls_status at_begin(const ls_progress *p, void *user)
{
    train_watch *w = user;
    w->began = w->step_began = now();
    w->step = p->step;
    crash_guard_step(p->step + 1);
    note_checkpoint(w, p->step);
    sum_phases(w->session->strategy, w->before);
    throughput_start(&w->speed);
    show(w, p, bar_show, false, false);
    return LS_OK;
}

static void tell_step(train_watch *w, bool log_only)
{
    double rate = w->step_seconds > 0 ? (double)w->step_samples / w->step_seconds : NAN;
    events_step(w->events, w->step, w->loss, rate, log_only);
    if (log_only)
        return;
    w->step_samples = 0;
    w->step_seconds = 0;
}

/* The last step, if it has no event yet. */
static void tell_last(train_watch *w)
{
    if (w->step_samples > 0)
        tell_step(w, false);
}

/* LS_END: somebody wants it to stop, or nobody can read what it prints. */
static ls_status look_for_end(train_watch *w)
{
    bool late = w->deadline > 0 && now() - w->began > w->deadline;
    w->signal = interrupt_came();
    return w->signal || late || ferror(stdout) ? LS_END : LS_OK;
}

/* What is between steps is none of their time. */
static void pause_clocks(train_watch *w)
{
    throughput_pause(&w->speed);
    w->step_began = now();
}

static ls_status after_step(const ls_progress *p, void *user)
{
    train_watch *w = user;
    double time = now();
    w->step = p->step;
    crash_guard_step(p->step + 1);
    note_checkpoint(w, p->step - 1);
    w->loss = p->loss;
    w->step_samples += p->rows;
    w->step_seconds += time - w->step_began;
    w->step_began = time;
    throughput_step(&w->speed, time, p->rows);
    if (p->step == 1 || p->step % EVENT_EVERY == 0 || p->step == p->last_step)
        tell_step(w, false);
    else if (p->step % LOG_EVERY == 0)
        tell_step(w, true);
    ls_status end = look_for_end(w);
    show_step(w, p, end || p->step == p->last_step);
    return end;
}

static ls_status after_test_step(const ls_progress *p, void *user)
{
    train_watch *w = user;
    pause_clocks(w);
    ls_status end = look_for_end(w);
    if (end || p->test_step == p->test_steps || bar_due(w->bar))
        show(w, p, bar_test, true, false); /* figures of a test under way are the metrics' own */
    return end;
}

static ls_status after_epoch(const ls_progress *p, void *user)
{
    train_watch *w = user;
    pause_clocks(w);
    if (p->step == p->last_step) /* of data of unknown length that is known only now */
        tell_last(w);
    if (!isnan(ls_trainer_value(p->trainer, "test_loss")))
        w->tested = p->step;
    events_epoch(w->events, w->session, p->epoch, p->step);
    show(w, p, bar_epoch, false, true);
    return look_for_end(w);
}

static ls_status at_end(const ls_progress *p, void *user)
{
    train_watch *w = user;
    (void)p;
    w->seconds = now() - w->began;
    tell_last(w);
    return LS_OK;
}

void train_watch_open(train_watch *w, const session *s, events *e, double deadline,
                      const char *checkpoints)
{
    *w =
        (train_watch){ .session = s, .events = e, .deadline = deadline, .loss = NAN, .tested = -1 };
    w->checkpoints = checkpoints;
    w->callback = (ls_callback){ .size = sizeof w->callback,
                                 .user = w,
                                 .name = "watch",
                                 .begin = at_begin,
                                 .step = after_step,
                                 .test_step = after_test_step,
                                 .epoch = after_epoch,
                                 .end = at_end };
}
