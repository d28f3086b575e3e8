/*
 * All variables of an optimizer in one call: adam_updates (rate, iteration,
 * gradients), sgd_updates (rate, gradients). Their cells are those of the single
 * rows, one variable after another. Put into graphs by trace/pass_fuse_update.c.
 * Invariant: the bits of the single rows, and all that can fail is done before the
 * first variable changes.
 */
#include "dispatch/call.h"
#include "ops/update.h"

/* Cells of a variable, and the inputs before the gradients. */
enum { SGD_CELLS = 1, SGD_NUMBERS = 1, ADAM_CELLS = 3, ADAM_NUMBERS = 2 };
enum { RATE, ITERATION };

static ls_status check(const ls_call *c, int cells, int numbers)
{
    int variables = c->n_inputs - numbers;
    if (variables < 1)
        return ls_call_fail(c, LS_INVALID, "there is no gradient");
    ls_status st = ls__update_check_count(c, cells * variables);
    if (!st)
        st = ls__update_check_rate(c, RATE);
    for (int i = 0; i < variables && !st; i++)
        st = ls__update_check(c, c->in[numbers + i], cells, c->cells + cells * i);
    return st;
}

/* Copies live views out, so that no write fails after another has happened. */
static ls_status unshare(const ls_call *c)
{
    ls_status st = LS_OK;
    for (int i = 0; i < c->n_cells && !st; i++)
        st = ls__cell_unshare(c->cells[i]);
    return st;
}

/* ---- sgd_updates ------------------------------------------------------------------ */

static ls_status sgd_shape(ls_call *c)
{
    return check(c, SGD_CELLS, SGD_NUMBERS);
}

static ls_status sgd_kernel(ls_call *c)
{
    double rate = *(const double *)c->in_data[RATE];
    ls_status st = unshare(c);
    for (int i = SGD_NUMBERS; i < c->n_inputs && !st; i++)
        st = ls__sgd_run(c->cells + SGD_CELLS * (i - SGD_NUMBERS), c->in[i], c->in_data[i], rate);
    return st;
}

static const ls_op sgd_updates = { .size = sizeof(ls_op),
                                   .name = "sgd_updates",
                                   .inputs = LS_ANY_NUMBER,
                                   .flags = LS_OP_WRITES | LS__OP_FUSED | LS_OP_TOTAL,
                                   .shape = sgd_shape,
                                   .kernel = sgd_kernel };

/* ---- adam_updates ----------------------------------------------------------------- */

static ls_status adam_shape(ls_call *c)
{
    ls_status st = check(c, ADAM_CELLS, ADAM_NUMBERS);
    return st ? st : ls__update_check_iteration(c, ITERATION);
}

static ls_status adam_kernel(ls_call *c)
{
    ls__adam step = ls__adam_step(c->attrs, *(const double *)c->in_data[RATE],
                                  *(const int64_t *)c->in_data[ITERATION]);
    ls_status st = unshare(c);
    for (int i = ADAM_NUMBERS; i < c->n_inputs && !st; i++)
        st = ls__adam_run(c->cells + ADAM_CELLS * (i - ADAM_NUMBERS), c->in[i], c->in_data[i],
                          &step);
    return st;
}

static const ls_op adam_updates = { .size = sizeof(ls_op),
                                    .name = "adam_updates",
                                    .inputs = LS_ANY_NUMBER,
                                    .flags = LS_OP_WRITES | LS__OP_FUSED | LS_OP_TOTAL,
                                    .attr_size = sizeof(ls__adam_attrs),
                                    .attrs = ls__adam_attr_list,
                                    .shape = adam_shape,
                                    .kernel = adam_kernel };

const ls_op *const ls__rows_fused_update[] = { &sgd_updates, &adam_updates, NULL };
