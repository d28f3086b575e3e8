/*
 * Rows of a meeting. They compute nothing: the executor stops at them (LS__OP_SYNC), and
 * whoever drives the replicas runs the meeting's own plan on what all of them bring. What
 * a replica gets back are further inputs of its graph. The second row tells passes which
 * variables change meanwhile, so that values read before are copied if they are used after.
 */
#include "ops/meet.h"

#include "dispatch/call.h"

static ls_status shape(ls_call *c)
{
    (void)c;
    return LS_OK;
}

static ls_status kernel(ls_call *c)
{
    (void)c;
    return LS_OK;
}

static const ls_op meet_row = { .size = sizeof(ls_op),
                                .name = "meet",
                                .inputs = LS_ANY_NUMBER,
                                .flags = LS__OP_FUSED | LS__OP_SYNC,
                                .shape = shape,
                                .kernel = kernel };

static const ls_op meet_writes_row = { .size = sizeof(ls_op),
                                       .name = "meet_writes",
                                       .inputs = LS_ANY_NUMBER,
                                       .flags = LS__OP_FUSED | LS__OP_SYNC | LS_OP_WRITES,
                                       .shape = shape,
                                       .kernel = kernel };

const ls_op *ls__meet_row(bool writes)
{
    return writes ? &meet_writes_row : &meet_row;
}

const ls_op *const ls__rows_meet[] = { &meet_row, &meet_writes_row, NULL };
