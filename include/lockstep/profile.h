/*
 * profile.h: where the time of replicas goes.
 *
 * How to use it
 *
 *     double t[LS_PHASES];
 *     ls_phase_seconds(s, 0, t);
 *     printf("replica 0 waited %.1f s for input\n", t[LS_PHASE_INPUT]);
 *
 *     ls_profile_start(s);                       // record every phase of every step
 *     ...steps...
 *     ls_profile_write(s, "trace.json");         // for chrome://tracing and ui.perfetto.dev
 *
 *     ls_operators_start(step);                  // time every operator of a traced step
 *     ...steps...
 *     ls_operators_read(step, print_row, NULL);
 *
 * Phases are told apart in traced steps (ls_run); in eager ones meetings are `reduce`, the rest is
 * `other`. Phases of a replica never overlap, and those of a run add up to its time. Replicas that
 * take turns on a device have times of their own: another one's turn is `other`. Seconds are
 * counted at all times: a few looks at the clock a step.
 */
#ifndef LOCKSTEP_PROFILE_H
#define LOCKSTEP_PROFILE_H

#include <lockstep/function.h>
#include <lockstep/strategy.h>

LS_BEGIN_DECLS

/* X(name, value, text). */
#define LS_PHASE_LIST(X)                                                                           \
    X(LS_PHASE_INPUT, 0, "input")       /* waiting for a distributed dataset's next element */     \
    X(LS_PHASE_FORWARD, 1, "forward")   /* computing, up to the gradients */                       \
    X(LS_PHASE_BACKWARD, 2, "backward") /* computing gradients */                                  \
    X(LS_PHASE_REDUCE, 3, "reduce")     /* waiting for others, helping, adding up with them */     \
    X(LS_PHASE_APPLY, 4, "apply")       /* updating, also where reducing is part of that pass */   \
    X(LS_PHASE_OTHER, 5, "other")       /* the rest of a run */
#define LS_PHASES 6

typedef enum ls_phase {
#define LS__PHASE_ENUM(name, value, text) name = value,
    LS_PHASE_LIST(LS__PHASE_ENUM)
#undef LS__PHASE_ENUM
} ls_phase;
LS_API const char *ls_phase_name(ls_phase phase); /* "?" for none of them */

/* Seconds that the replica has spent in each phase since the strategy was made: exact between
 * runs; during one, the phases that have ended. The default strategy, which is any thread's,
 * counts nothing: zeros. */
LS_API ls_status ls_phase_seconds(const ls_strategy *s, int replica, double seconds[LS_PHASES]);

/* Records phases from now on, until written; what was recorded before is dropped. At most
 * LS_PROFILE_MOST phases are kept of each replica, the first ones, of 24 bytes each; how many were
 * left out is in the file. LS_STATE during a step, LS_INVALID for the default strategy. */
#define LS_PROFILE_MOST 1000000
LS_API ls_status ls_profile_start(ls_strategy *s);

/* Writes the record as JSON in Chrome's trace format, one row a replica, with the number of the step
 * (ls_steps when it began) in each phase; ends recording. The file is there as a whole or not at
 * all, and when it cannot be written recording goes on. LS_STATE when it was not started, and
 * during a step. */
LS_API ls_status ls_profile_write(ls_strategy *s, const char *path);

/* ---- operators ----------------------------------------------------------------------------------- */

/* One instruction of a compiled step, and where its time went: of all replicas, in seconds of a
 * device. What devices do together (a reduction) counts for each of them. */
typedef struct ls_operator_time {
    size_t size;
    const char *name;   /* "matmul_bias_act" */
    const char *shapes; /* "f32[64,784] f32[784,2048] f32[2048] -> f32[64,2048]" */
    ls_phase phase;
    int64_t calls;
    double seconds;
    double flops; /* of one call: additions and multiplications of products; 0 where it has none */
    double bytes; /* of one call: what it has to read and to write, if nothing is in a cache */
} ls_operator_time;

/* Times every operator of the function's replays on strategies (ls_run) from now on, which costs two
 * looks at the clock for each; what was counted before is dropped. LS_STATE while it runs. */
LS_API ls_status ls_operators_start(ls_function *f);

/* The instructions of the step that ran most often since (arguments of other shapes have a step of
 * their own), in their order. Ends with the first status that is
 * not LS_OK and returns it. Texts last for the call. LS_STATE when it never ran, or was not timed. */
typedef ls_status (*ls_operator_seen)(const ls_operator_time *o, void *user);
LS_API ls_status ls_operators_read(ls_function *f, ls_operator_seen fn, void *user);

LS_END_DECLS

#endif
