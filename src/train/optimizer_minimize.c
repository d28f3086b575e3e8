/*
 * Gradients of a loss for an optimizer: ls_minimize updates with them, ls_accumulate adds them
 * up. Both stop the tape, and take the trainable variables of a list.
 */
#include "base/status.h"
#include "dispatch/tape.h"
#include "strategy/context.h"
#include "strategy/strategy.h"
#include "strategy/variable.h"
#include "tensor/tensor.h"
#include "train/optimizer.h"

/* Of the loss with respect to those that are trained: *out of `trained`, `gradients`. */
static ls_status gradients_of(const char *who, ls_tape *tape, ls_tensor *loss, int count,
                              ls_variable *const *variables, int *out, ls_variable **trained,
                              ls_tensor **gradients)
{
    ls_tensor **values = ls__frame_alloc(sizeof *values * (size_t)(count + 1));
    if (!values)
        return LS_NO_MEMORY;
    int n = 0;
    for (int i = 0; i < count; i++) {
        ls_status st = ls__check_variable(who, variables[i]);
        if (st)
            return st;
        if (!ls_variable_trainable(variables[i]))
            continue;
        trained[n] = variables[i];
        values[n] = ls_read(variables[i]);
        if (!values[n++])
            return ls_error_pending();
    }
    int connected = 0;
    ls_status st = ls__check_tensor(who, "loss", loss);
    if (!st && n == 0)
        st = ls__hint(ls__fail(LS_INVALID, "%s: of %d variables none is trainable", who, count),
                      "give the variables to train; ls_variable_set_trainable thaws one");
    if (!st)
        st = ls__gradients(tape, 1, &loss, NULL, n, values, gradients, &connected);
    if (!st && connected == 0)
        st =
            ls__hint(ls__fail(LS_INVALID,
                              "%s: the loss depends on none of the %d trainable variables", who, n),
                     "compute it after ls_tape_open from ls_read of them, and write them only "
                     "after %s",
                     who);
    *out = n;
    return st;
}

static ls_status minimize(const char *who, bool update, ls_optimizer *o, ls_tape *tape,
                          ls_tensor *loss, int count, ls_variable *const *variables)
{
    ls_variable **trained = ls__frame_alloc(sizeof *trained * (size_t)(count + 1));
    ls_tensor **gradients = ls__frame_alloc(sizeof *gradients * (size_t)(count + 1));
    if (!trained || !gradients)
        return LS_NO_MEMORY;
    int n = 0;
    ls_status st = gradients_of(who, tape, loss, count, variables, &n, trained, gradients);
    if (update)
        return ls__apply_here(who, st, o, n, gradients, trained);
    return st ? st : ls__accumulate_here(who, o, n, gradients, trained);
}

static ls_status stop_and(const char *who, bool update, ls_optimizer *o, ls_tape *tape,
                          ls_tensor *loss, int count, ls_variable *const *variables)
{
    ls_status st = ls__check_lists(who, o, count, variables, variables);
    if (!st && !tape && !ls_error_pending())
        st = ls__fail(LS_INVALID, "%s: the tape is NULL", who);
    if (!st)
        st = ls_tape_stop(tape);
    if (!st) {
        LS_FRAME
            st = minimize(who, update, o, tape, loss, count, variables);
    }
    return st;
}

ls_status ls_minimize(ls_optimizer *o, ls_tape *tape, ls_tensor *loss, int count,
                      ls_variable *const *variables)
{
    return stop_and("ls_minimize", true, o, tape, loss, count, variables);
}

ls_status ls_accumulate(ls_optimizer *o, ls_tape *tape, ls_tensor *loss, int count,
                        ls_variable *const *variables)
{
    return stop_and("ls_accumulate", false, o, tape, loss, count, variables);
}
