/*
 * ls_fit: epochs of steps, and who is told when. An epoch is one iteration of the data; the
 * iterator lives through all of them (ls_rewind), so that each has its own order. Leaves where the
 * data stands to fit_input.c, what a step does to trainer_step.c and what a checkpoint holds to
 * trainer_save.c.
 */
#include <lockstep/input.h>
#include <lockstep/random.h>
#include <math.h>

#include "base/status.h"
#include "tensor/tensor.h"
#include "train/trainer.h"

void ls_fit_init(ls_fit_options *options)
{
    if (options)
        *options = (ls_fit_options){ .size = sizeof *options };
}

/* One call of ls_fit. */
typedef struct fit {
    ls_trainer *t;
    const ls_fit_options *options;
    ls__audience audience;
    int64_t epochs, steps; /* steps: 0: no limit */
    bool fixed;            /* every epoch has as many steps */
    ls_progress progress;
    ls__data_place place;
} fit;

static ls_status check_options(const ls_trainer *t, const ls_fit_options *o)
{
    ls_status st = ls__check_trainer("ls_fit", t);
    if (st)
        return st;
    if (!o || o->size != sizeof *o)
        return ls__hint(ls__fail(LS_INVALID, "ls_fit: options of %zu bytes, wants %zu",
                                 o ? o->size : 0, sizeof *o),
                        "make them with LS_FIT(...), or start from ls_fit_init");
    if (!o->data)
        return ls_error_pending() ? ls_error_pending()
                                  : ls__fail(LS_INVALID, "ls_fit: there is no .data");
    if (o->epochs < 0 || o->steps < 0)
        return ls__fail(LS_INVALID, "ls_fit: %lld epochs, %lld steps", (long long)o->epochs,
                        (long long)o->steps);
    if (t->fitting || t->aside)
        return ls__fail(LS_STATE, "ls_fit: it is being %s", t->fitting ? "fitted" : "asked");
    return ls__check_callbacks("ls_fit", o->n_callbacks, o->callbacks);
}

/* ---- where it stands ------------------------------------------------------------------------------ */

static int64_t last_step(const fit *f)
{
    const ls__at *at = &f->t->at;
    int64_t all = LS_UNKNOWN;
    if (at->epoch_steps >= 0 && __builtin_mul_overflow(f->epochs, at->epoch_steps, &all))
        all = LS_UNKNOWN;
    if (f->steps > 0 && (all < 0 || f->steps < all))
        all = f->steps;
    return all;
}

/* During an epoch it is number at.epoch + 1; the one that just ended is at.epoch. */
static void note_progress(fit *f, bool ended)
{
    const ls__at *at = &f->t->at;
    ls_progress *p = &f->progress;
    p->step = at->step;
    p->last_step = last_step(f);
    p->epoch = ended ? at->epoch : at->epoch + 1;
    p->epochs = f->epochs;
    p->epoch_step = ended ? at->epoch_steps : at->epoch_step;
    p->epoch_steps = at->epoch_steps;
    p->samples = at->samples;
    p->test_step = p->test_steps = 0;
}

/* An epoch whose steps are done, and whose test is not, is still to end. */
static bool is_over(const fit *f)
{
    const ls__at *at = &f->t->at;
    bool tests = at->epoch_step > 0 && at->epoch_step == at->epoch_steps;
    return at->epoch >= f->epochs || (f->steps > 0 && at->step >= f->steps && !tests);
}

/* ---- steps -------------------------------------------------------------------------------------------- */

/* Of the rows there were: a replica's loss was divided by what a full batch has, or by its own rows
 * times V. */
static double mean_loss(const ls_trainer *t, ls_value *losses, ls_value *batch, int64_t rows)
{
    if (rows == 0)
        return 0;
    if (t->global_batch > 0)
        return ls_to_double(ls_reduce(t->strategy, LS_SUM, losses, LS_NO_AXIS)) *
               (double)t->global_batch / (double)rows;
    double sum = 0;
    const int v = ls_num_replicas(t->strategy);
    for (int i = 0; i < v; i++)
        sum += ls_to_double(ls_leaf_tensor(ls_select(losses, i))) * v *
               (double)ls_dim(ls_item(ls_select(batch, i), 0), 0);
    return sum / (double)rows;
}

static ls_status run_step(fit *f, ls_value *batch)
{
    ls_trainer *t = f->t;
    int64_t rows = ls__batch_rows("ls_fit", t, batch);
    if (rows < 0)
        return ls_error_pending();
    if (t->strategy == ls_default_strategy())
        ls_random_step(t->at.step); /* others count their steps themselves */
    ls_value *losses = ls_run(t->strategy, t->train, batch);
    if (!losses)
        return ls_error_pending() == LS_NOT_FINITE
                   ? ls__explain_not_finite(t, batch, t->at.step + 1)
                   : ls_error_pending();
    f->place.since++;
    f->progress.loss = mean_loss(t, losses, batch, rows);
    f->progress.rows = rows;
    t->at.step++;
    t->at.epoch_step++;
    t->at.samples += rows;
    t->counting = true;
    return ls_error_pending();
}

/* LS_END: of the data. */
static ls_status next_step(fit *f)
{
    ls_value *batch = NULL;
    ls_status st = ls_next(f->t->input, &batch);
    bool given = st == LS_OK;
    if (given)
        st = run_step(f, batch);
    if (st == LS_NO_MEMORY || (st && given)) /* data that failed goes on behind it */
        ls__input_back(f->t, &f->place);
    return st;
}

/* Steps up to the end of the epoch (LS_OK) or of training (LS_END). */
static ls_status run_steps(fit *f)
{
    for (;;) {
        ls_status st = LS_OK;
        LS_FRAME
            st = next_step(f);
        if (st == LS_END)
            return LS_OK;
        if (st)
            return st;
        note_progress(f, false);
        st = ls__call_callbacks(&f->audience, LS__AT_STEP, &f->progress);
        if (st)
            return st;
        bool last = f->steps > 0 && f->t->at.step >= f->steps;
        if (last && !(f->fixed && f->t->at.epoch_step == f->t->at.epoch_steps))
            return LS_END;
    }
}

/* ---- epochs --------------------------------------------------------------------------------------------- */

/* The epoch's figures stay; metrics begin anew. What failed half way can be done again. */
static ls_status take_figures(ls_trainer *t)
{
    for (int i = 0; i < t->n_metrics && t->counting; i++)
        t->values[i] = ls_metric_result(t->metrics[i]);
    ls_status st = ls_error_pending();
    t->counting = t->counting && st;
    for (int i = 0; i < t->n_metrics && !st; i++)
        st = ls_metric_reset(t->metrics[i]);
    return st;
}

/* After its last step. Until the test is done the epoch is not: a run that is stopped within the test
 * resumes with the test. */
static ls_status end_epoch(fit *f)
{
    ls_trainer *t = f->t;
    if (t->at.epoch_step == 0)
        return ls__hint(ls__fail(LS_INVALID, "ls_fit: the data has no element"),
                        "ls_batch_full leaves out a batch with fewer rows");
    t->at.epoch_steps = t->at.epoch_step;
    note_progress(f, false);
    ls_status st = LS_OK;
    if (f->options->test)
        st = ls__test("ls_fit", t, f->options->test, &f->audience, &f->progress);
    if (!st)
        st = take_figures(t);
    if (st)
        return st;
    t->at.epoch++;
    t->at.epoch_step = 0;
    t->at.ended = true;
    note_progress(f, true);
    f->progress.loss = t->values[0];
    return ls__call_callbacks(&f->audience, LS__AT_EPOCH, &f->progress);
}

/* The next iteration begins when there is a step to take from it. */
static ls_status begin_epoch(fit *f)
{
    if (!f->t->at.ended)
        return LS_OK;
    ls_status st = ls_rewind(f->t->input);
    if (st)
        return st;
    f->t->at.ended = false;
    return ls__input_note(f->t, &f->place);
}

static ls_status run(fit *f)
{
    int64_t steps;
    ls_status st = ls__input_open(f->t, f->options->data, &steps);
    if (st)
        return st;
    f->fixed = steps >= 0;
    if (f->fixed)
        f->t->at.epoch_steps = steps;
    st = ls__input_note(f->t, &f->place);
    if (st)
        return st;
    note_progress(f, is_over(f)); /* the epoch that is to come, if one is */
    st = ls__call_callbacks(&f->audience, LS__AT_BEGIN, &f->progress);
    while (!st && !is_over(f)) {
        st = begin_epoch(f);
        if (!st)
            st = run_steps(f);
        if (!st)
            st = end_epoch(f);
    }
    ls__error_record failed;
    ls__error_take(&failed); /* callbacks begin clean */
    note_progress(f, f->t->at.ended);
    ls_status told = ls__call_callbacks(&f->audience, LS__AT_END, &f->progress);
    if (failed.status) {
        ls_error(); /* what came first is told */
        ls__error_put(&failed);
    }
    return st && st != LS_END ? st : told == LS_END ? LS_OK : told;
}

ls_status ls_fit(ls_trainer *t, const ls_fit_options *options)
{
    ls_status st = check_options(t, options);
    if (st)
        return st;
    fit f = { .t = t, .options = options, .epochs = options->epochs ? options->epochs : 1 };
    f.steps = options->steps;
    f.audience = (ls__audience){ options->n_callbacks, options->callbacks };
    f.progress = (ls_progress){
        .size = sizeof f.progress, .trainer = t, .loss = NAN, .tests = options->test != NULL
    };
    t->fitting = true;
    t->audience = &f.audience;
    st = LS_NO_MEMORY;
    LS_FRAME {
        st = run(&f);
        ls_status closed = ls__input_close(t);
        st = st ? st : closed;
    }
    ls__data_place_free(&f.place);
    t->fitting = false;
    t->audience = NULL;
    return st;
}
