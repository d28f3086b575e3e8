/*
 * Where the data of a fit stands: after the last fit or checkpoint, before a step that failed, and
 * for the next fit.
 */
#include <lockstep/input.h>

#include "base/status.h"
#include "tensor/tensor.h"
#include "train/trainer.h"

/* Sends the iterator to where the last fit, or the checkpoint, ended. Data of another fit begins at its
 * beginning. */
static ls_status go_to_position(ls_trainer *t)
{
    if (t->lost)
        return ls__hint(ls__fail(LS_STATE, "ls_fit: there was no memory to note where the last fit "
                                           "stood in its data"),
                        "resume a checkpoint");
    if (!t->position)
        return LS_OK;
    ls_status st = ls_seek(t->input, t->position);
    if (st == LS_INVALID && !t->must_fit && t->at.epoch_step == 0) {
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

/* Where it stands, kept; NULL: the data cannot tell, or there is no memory (that is pending). */
static ls_tensor *position_now(const ls_trainer *t)
{
    ls_tensor *kept = NULL;
    LS_FRAME {
        ls_tensor *position = ls_position(t->input);
        kept = position ? ls_keep(position) : NULL;
    }
    if (ls_error_pending() != LS_NO_MEMORY)
        ls_error();
    return kept;
}

ls_status ls__input_note(const ls_trainer *t, ls__data_place *place)
{
    ls__data_place_free(place);
    place->position = position_now(t);
    return ls_error_pending();
}

void ls__data_place_free(ls__data_place *place)
{
    if (place->position)
        ls_drop(place->position);
    *place = (ls__data_place){ 0 };
}

void ls__input_back(const ls_trainer *t, const ls__data_place *place)
{
    ls__error_record failed;
    ls__error_take(&failed);
    ls_status st = place->position ? ls_seek(t->input, place->position) : LS_OK;
    for (int64_t i = 0; place->position && i < place->since && !st; i++)
        LS_FRAME {
            ls_value *passed;
            st = ls_next(t->input, &passed);
        }
    ls_error();
    ls__error_put(&failed);
}

ls_status ls__input_open(ls_trainer *t, ls_dataset *from, int64_t *steps)
{
    ls_dist_dataset *data = ls_distribute(t->strategy, from);
    *steps = ls_cardinality(data);
    t->input = ls_iterate(data);
    return t->input ? go_to_position(t) : ls_error_pending();
}

/* Data that cannot tell where it stands is read from its beginning by the next fit. */
ls_status ls__input_close(ls_trainer *t)
{
    ls__error_record failed;
    ls__error_take(&failed);
    if (t->input && !t->position && !t->lost) { /* else it never got there */
        t->position = position_now(t);
        t->lost = ls_error_pending() != LS_OK;
    }
    if (failed.status) {
        ls_error(); /* what came first is told */
        ls__error_put(&failed);
    }
    ls_iterator_free(t->input);
    t->input = NULL;
    return ls_error_pending();
}
