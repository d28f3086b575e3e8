/*
 * A program: a step traced for one signature, compiled and ready to be replayed.
 */
#ifndef LS__TRACE_PROGRAM_H
#define LS__TRACE_PROGRAM_H

#include <lockstep/function.h>

#include "trace/execute.h"

typedef struct ls__program {
    unsigned char *signature;
    size_t signature_size;
    ls__graph *recorded;
    ls__plan *plan;
    ls__instance *instance;
    ls_value *results;        /* kept: their structure and specs, with symbols for tensors */
    struct ls__program *next; /* used less recently */
} ls__program;

/* Runs `step` on symbols like the arguments, and compiles what it wrote. NULL: the
 * error says where in the step. */
ls__program *ls__program_trace(const char *name, ls_step step, void *user,
                               const ls_value *arguments, ls__pass_set off);
void ls__program_free(ls__program *p);

/* Replays it: results in the innermost frame. */
ls_value *ls__program_replay(ls__program *p, const ls_value *arguments);

#endif
