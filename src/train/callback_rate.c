/* ls_epoch_rate: the rate of each epoch, set before its first step. */
#include "base/status.h"
#include "train/callback.h"

typedef struct epoch_rate {
    ls_callback callback;
    ls_epoch_rate_fn fn;
    void *user;
} epoch_rate;

static ls_status set_rate(const epoch_rate *r, const ls_progress *p, int64_t epoch)
{
    return ls_set_rate(ls_trainer_optimizer(p->trainer), r->fn(epoch, r->user));
}

/* A run that is resumed within an epoch has its rate from the checkpoint, which is the same. */
static ls_status at_begin(const ls_progress *p, void *user)
{
    return set_rate(user, p, p->epoch);
}

static ls_status after_epoch(const ls_progress *p, void *user)
{
    return p->epoch < p->epochs ? set_rate(user, p, p->epoch + 1) : LS_OK;
}

ls_callback *ls_epoch_rate(ls_epoch_rate_fn fn, void *user)
{
    if (!fn) {
        ls__fail(LS_INVALID, "ls_epoch_rate: the function is NULL");
        return NULL;
    }
    epoch_rate *r = ls__callback_new("epoch rate", sizeof *r);
    if (!r)
        return NULL;
    r->fn = fn;
    r->user = user;
    r->callback.begin = at_begin;
    r->callback.epoch = after_epoch;
    return &r->callback;
}
