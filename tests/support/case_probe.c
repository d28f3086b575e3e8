/*
 * Asks the library itself what cases it needs: which dtypes an operator takes, and
 * which rows its gradient runs. An error of a probe is an answer; none is left
 * pending.
 */
#include <lockstep/tape.h>
#include <stdio.h>
#include <string.h>

#include "dispatch/tape.h"
#include "support/case.h"

bool case_accepts(const test_case *c, int input, ls_dtype dtype)
{
    bool accepts = false;
    ls_dtype old = case_dtype(c, input);
    test_case other = *c;
    for (int i = 0; !c->n_in && i < other.n_attrs; i++)
        if (!strcmp(other.attrs[i].name, "dtype"))
            snprintf(other.attrs[i].text, sizeof other.attrs[i].text, "%s", ls_dtype_name(dtype));
    LS_FRAME {
        ls_tensor *inputs[CASE_MOST] = { NULL };
        for (int i = 0; i < c->n_in; i++) {
            const case_tensor *t = &c->in[i];
            inputs[i] = t->dtype == old ? ls_ones(dtype, t->rank, t->dims) : case_make(t);
        }
        accepts = case_call(&other, c->n_in, inputs) != NULL;
    }
    ls_error();
    return accepts;
}

/* ---- the gradient's rows --------------------------------------------------------- */

static bool noted(ls_tape *tape, size_t from, const ls_op *row)
{
    size_t begin, end;
    if (ls__tape_range(tape, "case_reaches", &begin, &end))
        return false;
    for (size_t i = from; i < end; i++)
        if (ls__tape_get(tape, i).op == row)
            return true;
    return false;
}

static bool reaches(const test_case *c, const ls_op *row)
{
    ls_tensor *inputs[CASE_MOST] = { NULL }, *ys[CASE_MOST], *xs[CASE_MOST], *seeds[CASE_MOST];
    ls_tape *tape = ls_tape_open();
    ls_value *outs = case_run(c, inputs);
    size_t begin, from;
    if (!outs || ls__tape_range(tape, "case_reaches", &begin, &from))
        return false;
    for (int i = 0; i < c->n_seed; i++) {
        ys[i] = ls_item(outs, c->seed[i].index);
        seeds[i] = case_make(&c->seed[i]);
    }
    for (int i = 0; i < c->n_grad; i++)
        xs[i] = inputs[c->grad[i].index];
    ls_value *first = ls_gradients_from(tape, ls_tensors(c->n_seed, ys),
                                        ls_tensors(c->n_seed, seeds), ls_tensors(c->n_grad, xs));
    if (!first || noted(tape, from, row))
        return first != NULL;
    /* The second order asks about the seeds too, as gradient_test does. */
    ls_tensor *both[2 * CASE_MOST];
    for (int i = 0; i < c->n_grad + c->n_seed; i++)
        both[i] = i < c->n_grad ? xs[i] : seeds[i - c->n_grad];
    return ls_gradients(tape, first, ls_tensors(c->n_grad + c->n_seed, both)) &&
           noted(tape, from, row);
}

bool case_reaches(const test_case *c, const ls_op *row)
{
    bool found = false;
    LS_FRAME {
        found = reaches(c, row);
    }
    ls_error();
    return found;
}
