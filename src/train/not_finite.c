/*
 * Where a NaN began. The step that noticed it did not happen, so all is as before it, and the same
 * batch gives the same numbers: its way to the loss is gone again with every operator watched, and the
 * first that makes a number that is not finite from numbers that are is the answer. If a variable holds one
 * already, it came in with the update of the step before, whose loss was still finite.
 */
#include <lockstep/ops.h>
#include <lockstep/tape.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "train/trainer.h"

#define ADVICE "a lower rate, or .clip_global_norm, often helps"

const char *ls__variable_not_finite(const ls_trainer *t)
{
    const char *name = NULL;
    for (int i = 0; i < ls_model_count(t->model) && !name; i++)
        LS_FRAME {
            ls_variable *v = ls_model_variables(t->model)[i];
            ls_tensor *value = ls_read(ls_variable_component(v, 0));
            if (value && ls_dtype_is_float(ls_dtype_of(value)) &&
                ls_to_int(ls_all(ls_isfinite(value), LS_ALL_AXES, false)) == 0)
                name = ls_variable_name(v);
        }
    return name;
}

/* Whether all numbers that the model is given are finite. */
static bool batch_is_finite(const ls_trainer *t, ls_value *batch)
{
    bool finite = true;
    for (int i = 0; i < ls_num_replicas(t->strategy) && finite; i++)
        LS_FRAME {
            ls_tensor *x = ls_item(ls_select(batch, i), 0);
            if (x && ls_dtype_is_float(ls_dtype_of(x)))
                finite = ls_to_int(ls_all(ls_isfinite(x), LS_ALL_AXES, false)) != 0;
        }
    return finite;
}

ls_status ls__explain_not_finite(ls_trainer *t, ls_value *batch, int64_t step)
{
    ls_error(); /* that it is so is known; now why */
    if (!batch_is_finite(t, batch))
        return ls__hint(ls__fail(LS_NOT_FINITE,
                                 "step %lld: the loss is not finite, since the data is not: its x "
                                 "has a NaN or an infinity",
                                 (long long)step),
                        "look at the samples of this batch");
    const char *name = ls__variable_not_finite(t);
    if (ls_error())
        name = NULL;
    if (name)
        return ls__hint(
            ls__fail(LS_NOT_FINITE,
                     "step %lld: the loss is not finite: variable '%s' is not since the "
                     "update of step %lld",
                     (long long)step, name, (long long)step - 1),
            ADVICE);
    ls_numerics before = ls_check_numerics(LS_NUMERICS_NAN_AND_INF);
    ls_function *watched = ls_trace_with(LS_TRACE(.name = "train", .off = "all"), ls__look_step, t);
    LS_FRAME
        ls_run(t->strategy, watched, batch);
    ls_function_free(watched);
    ls_check_numerics(before);
    char why[400];
    const bool found = ls_error() && !strstr(ls_error_text(), "require_finite");
    snprintf(why, sizeof why, "%s", found ? ls_error_text() : "no operator by itself");
    return ls__hint(ls__fail(LS_NOT_FINITE, "step %lld: the loss is not finite; it began here: %s",
                             (long long)step, why),
                    ADVICE);
}
