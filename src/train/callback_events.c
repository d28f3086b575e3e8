/*
 * ls_event_log: a run as TensorBoard shows it. Figures of a step and of an epoch have the step as
 * their place on the axis, so that curves of training and test lie over each other.
 */
#include <lockstep/events.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "train/callback.h"

typedef struct event_log {
    ls_callback callback;
    char *directory;
    int64_t every;
    ls_events *events; /* while a fit is under way */
    bool drawn;        /* the graph */
} event_log;

static ls_status at_begin(const ls_progress *p, void *user)
{
    (void)p;
    event_log *e = user;
    ls_events_close(e->events);
    e->events = ls_events_open(e->directory);
    return e->events ? LS_OK : ls_error_pending();
}

static ls_status after_step(const ls_progress *p, void *user)
{
    event_log *e = user;
    ls_status st = LS_OK;
    if (!e->drawn) {
        e->drawn = true;
        st = ls_events_graph(e->events, ls_trainer_step(p->trainer));
    }
    if (st || (p->step % e->every && p->step != 1 && p->step != p->last_step))
        return st;
    st = ls_events_scalar(e->events, p->step, "step/loss", p->loss);
    if (!st)
        st = ls_events_scalar(e->events, p->step, "step/rate",
                              ls_rate(ls_trainer_optimizer(p->trainer)));
    return st;
}

/* "epoch/loss", "epoch/test_loss", ... */
static ls_status write_figures(event_log *e, const ls_progress *p)
{
    const char *name;
    ls_status st = LS_OK;
    for (int i = 0; (name = ls_trainer_names(p->trainer, i)) && !st; i++) {
        double value = ls_trainer_value(p->trainer, name);
        char *tag = ls__frame_alloc(strlen(name) + sizeof "epoch/");
        if (!tag)
            return ls_error_pending();
        if (!isnan(value))
            st = ls_events_scalar(e->events, p->step, strcat(strcpy(tag, "epoch/"), name), value);
    }
    return st;
}

static ls_status write_histograms(event_log *e, const ls_progress *p)
{
    const ls_model *m = ls_trainer_model(p->trainer);
    ls_status st = LS_OK;
    for (int i = 0; i < ls_model_count(m) && !st; i++)
        LS_FRAME {
            ls_variable *v = ls_model_variables(m)[i];
            const bool readable = ls_variable_synchronization(v) != LS_SYNC_ON_READ ||
                                  ls_variable_aggregation(v) != LS_AGGREGATE_NONE;
            if (readable) /* else each replica has its own, and there is none of all */
                st = ls_events_histogram(e->events, p->step, ls_variable_name(v), ls_read(v));
        }
    return st;
}

static ls_status after_epoch(const ls_progress *p, void *user)
{
    event_log *e = user;
    ls_status st = write_figures(e, p);
    if (!st)
        st = write_histograms(e, p);
    return st ? st : ls_events_flush(e->events);
}

static ls_status at_end(const ls_progress *p, void *user)
{
    (void)p;
    event_log *e = user;
    ls_status st = ls_events_close(e->events);
    e->events = NULL;
    return st;
}

static void free_event_log(void *user)
{
    event_log *e = user;
    ls_events_close(e->events);
    free(e->directory);
    free(e);
}

ls_callback *ls_event_log(const char *directory, int64_t every)
{
    if (!directory || !directory[0] || every < 0) {
        ls__fail(LS_INVALID, "ls_event_log: directory '%s', every %lld steps",
                 directory ? directory : "NULL", (long long)every);
        return NULL;
    }
    event_log *e = ls__callback_new("event log", sizeof *e);
    if (!e)
        return NULL;
    e->directory = strdup(directory);
    if (!e->directory) {
        ls__fail_memory("ls_event_log", strlen(directory));
        free(e);
        return NULL;
    }
    e->every = every ? every : 100;
    e->callback.begin = at_begin;
    e->callback.step = after_step;
    e->callback.epoch = after_epoch;
    e->callback.end = at_end;
    e->callback.free = free_event_log;
    return &e->callback;
}
