/*
 * Running a plan. An instance is one replica's memory for it: the arena, packed
 * weights, and every instruction's call with its addresses filled in. Replaying is a
 * loop over kernels; nothing is allocated and nothing locked.
 *
 *     ls__instance_open(plan, cells, &instance);        // cells NULL: those it was traced with
 *     st = ls__instance_unshare(instance);              // then take the inputs' addresses
 *     ls__instance_begin(instance, inputs, &draw);
 *     while ((st = ls__instance_run(instance, &at)) == LS_OK && at >= 0)
 *         ... all replicas meet at instruction `at`: whoever drives them does what it
 *             says, on ls__instance_call(instance, at), for all of them ...
 *     st = ls__instance_end(instance, st);              // commits, or undoes every write
 *     data = ls__instance_output(instance, 0);
 *
 * The instructions between two meetings are a piece; V replicas are V instances driven
 * piece by piece. Replicas that take turns on one thread share their arenas
 * (ls__instance_open_with), if their plans are made for that (LS__PLAN_TURNS); what one brings to
 * a meeting may lie in memory that whoever drives them lends for the piece before it.
 */
#ifndef LS__TRACE_EXECUTE_H
#define LS__TRACE_EXECUTE_H

#include "trace/plan.h"

typedef struct ls__instance ls__instance;

/* The plan must outlive it. LS_STATE for a plan with hollow cells and none given. */
ls_status ls__instance_open(const ls__plan *plan, ls__cell *const *cells, ls__instance **out);

/* The same, with a given arena of at least plan->arena_bytes (NULL: its own), and with the packed
 * weights of `twin` (NULL: its own), when that is of the same plan and the same weights. The twin
 * must outlive it; they never run at once. */
ls_status ls__instance_open_with(const ls__plan *plan, ls__cell *const *cells, ls__storage *arena,
                                 ls__instance *twin, ls__instance **out);
void ls__instance_close(ls__instance *i);

/* Where what is brought to meeting `meeting` lies from now on: before the piece that ends there. */
void ls__instance_lend(ls__instance *i, int meeting, void *memory);

/* Snapshots that the program outside still holds of cells the step writes are copied out,
 * so that writes cannot fail. Before the addresses of inputs are taken: one may be such a
 * snapshot, and its memory moves. */
ls_status ls__instance_unshare(ls__instance *i);

/* `inputs`: the memory of each input of the graph, which stays as it is until end. `draw`: the
 * first of its draws. */
void ls__instance_begin(ls__instance *i, const void *const *inputs, const ls__draw *draw);

/* The inputs lie elsewhere from now on, in the middle of a replay. */
void ls__instance_inputs(ls__instance *i, const void *const *inputs);

/* Runs to the next meeting (its index in *meeting) or to the end (-1). An error says
 * which operator of the step failed. Any thread may run a piece, one at a time. */
ls_status ls__instance_run(ls__instance *i, int *meeting);

/* The same, but not further than instruction `stop` (then *meeting is -1, too). */
ls_status ls__instance_run_to(ls__instance *i, int stop, int *meeting);

/* Who is told when a replay comes into another phase, and when a piece begins in one: on the thread
 * that runs it. */
typedef struct ls__watch {
    void (*enter)(void *who, ls_phase phase); /* NULL: nobody */
    void *who;
} ls__watch;
void ls__instance_watch(ls__instance *i, ls__watch watch);

/* Counts, from now on, how often each instruction ran and how long, for ls__instance_time_of. */
ls_status ls__instance_time(ls__instance *i);

typedef struct ls__time {
    int64_t calls, ns;
} ls__time;
/* Zeros: it does not count. */
ls__time ls__instance_time_of(const ls__instance *i, int instruction);
void ls__instance_time_anew(ls__instance *i);

/* One more call of an instruction, which somebody else ran. */
void ls__instance_time_add(ls__instance *i, int instruction, int64_t ns);

/* Whether the next piece has any instruction: replicas may come to a meeting with nothing done. */
bool ls__instance_has_work(const ls__instance *i);

/* For who runs a meeting: puts the operator's place in front of its error. */
ls_status ls__instance_failed(const ls__instance *i, int instruction, ls_status st);

/* Ends the replay with its status: a failure of this step puts back what it has
 * written. Writes after the last operator that can fail are not saved, so replicas
 * that may cancel each other meet once more before those. */
ls_status ls__instance_end(ls__instance *i, ls_status st);

/* The call of an instruction, as its row sees it. */
ls_call *ls__instance_call(ls__instance *i, int instruction);

/* Where output k of the graph lies, after end. */
const void *ls__instance_output(const ls__instance *i, int k);

#endif
