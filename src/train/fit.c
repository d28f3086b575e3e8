/*
 * ls_fit: epochs of steps, and who is told when. An epoch is one iteration of the data; the
 * iterator lives through all of them (ls_rewind), so that each has its own order. Leaves what a step
 * does to trainer_step.c and what a checkpoint holds to trainer_save.c.
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
    /* Where a step that failed finds its batch again: a position, and how many steps ago that was. */
    ls_tensor *place; /* kept; NULL: the data cannot tell */
    int64_t since;
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
    if (t->fitting)
        return ls__fail(LS_STATE, "ls_fit: it is being fitted");
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

/* ---- input ------------------------------------------------------------------------------------------ */

/* Sends the iterator to where the last fit, or the checkpoint, ended. Data of another fit begins at its
 * beginning. */
static ls_status go_to_position(ls_trainer *t)
{
    if (!t->position)
        return LS_OK;
    ls_status st = ls_seek(t->input, t->position);
    if (st && !t->must_fit && t->at.epoch_step == 0) {
        ls_error();
        t->at.ended = false;
        st = LS_OK;
    }
    if (st) /* it is still where this run goes on */
        return st;
    ls_drop(t->position);
    t->position = NULL;
    t->must_fit = false;
    return LS_OK;
}

/* Now and then, so that going back there costs less than an epoch. */
static void note_place(fit *f)
{
    LS_FRAME {
        ls_tensor *position = ls_position(f->t->input);
        ls_error(); /* data that cannot tell has no place */
        if (f->place)
            ls_drop(f->place);
        f->place = position ? ls_keep(position) : NULL;
        f->since = 0;
    }
}

/* After a step that failed, and so did not happen: its batch is still to come. */
static void give_batch_back(fit *f)
{
    ls__error_record failed;
    ls__error_take(&failed);
    ls_status st = f->place ? ls_seek(f->t->input, f->place) : LS_OK;
    for (int64_t i = 0; f->place && i < f->since && !st; i++)
        LS_FRAME {
            ls_value *passed;
            st = ls_next(f->t->input, &passed);
        }
    ls_error();
    ls__error_put(&failed);
}

static ls_status open_input(fit *f)
{
    ls_trainer *t = f->t;
    ls_dist_dataset *data = ls_distribute(t->strategy, f->options->data);
    int64_t steps = ls_cardinality(data);
    t->input = ls_iterate(data);
    ls_status st = t->input ? go_to_position(t) : ls_error_pending();
    if (st)
        return st;
    f->fixed = steps >= 0;
    if (f->fixed)
        t->at.epoch_steps = steps;
    note_place(f);
    return LS_OK;
}

/* Where the next fit goes on. Data that cannot tell is read from its beginning then. */
static void keep_position(ls_trainer *t)
{
    LS_FRAME {
        ls__error_record failed;
        ls__error_take(&failed);
        ls_tensor *position = t->input ? ls_position(t->input) : NULL;
        ls_error();
        t->position = position ? ls_keep(position) : NULL;
        ls__error_put(&failed);
    }
}

static void close_input(ls_trainer *t)
{
    if (!t->position) /* else it never got there */
        keep_position(t);
    ls_iterator_free(t->input);
    t->input = NULL;
}

/* ---- steps -------------------------------------------------------------------------------------------- */

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
    f->since++;
    double loss = ls_to_double(ls_reduce(t->strategy, LS_SUM, losses, LS_NO_AXIS));
    bool divided = t->global_batch > 0 && rows > 0; /* by what a full batch has: show the mean */
    f->progress.loss = divided ? loss * (double)t->global_batch / (double)rows : loss;
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
    if (st)
        return st;
    st = run_step(f, batch);
    if (st)
        give_batch_back(f);
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

/* The epoch's figures stay; metrics begin anew. */
static ls_status take_figures(ls_trainer *t)
{
    for (int i = 0; i < t->n_metrics; i++) {
        t->values[i] = ls_metric_result(t->metrics[i]);
        if (ls_metric_reset(t->metrics[i]))
            return ls_error_pending();
    }
    t->counting = false;
    return ls_error_pending();
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
    note_place(f);
    return LS_OK;
}

static ls_status run(fit *f)
{
    ls_status st = open_input(f);
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
        close_input(t);
    }
    if (f.place)
        ls_drop(f.place);
    t->fitting = false;
    t->audience = NULL;
    return st;
}
