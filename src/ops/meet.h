/*
 * The place in a replica's graph where all replicas meet; see meet.c.
 */
#ifndef LS__OPS_MEET_H
#define LS__OPS_MEET_H

#include <lockstep/operator.h>

/* Takes what the replica brings; its cells are the variables that the meeting writes. */
const ls_op *ls__meet_row(bool writes);

#endif
