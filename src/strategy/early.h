/*
 * Updates that begin before all replicas have come to the last meeting. A variable that is updated
 * by products (products.c) needs of a replica what it brings, x and dy, and that it has read the
 * variable for the last time: both are there long before its program ends. So a device that has
 * done its replicas applies what it can, part by part, while another is still at its own; whoever
 * is slow for a moment finds less left to do.
 *
 *      replica 0   |-- forward --|-- backward ----|---- products ------|meet|
 *      replica 1   |---- forward -----|-- backward ------|- products --|meet|
 *                                        ^ from here on replica 1 keeps nobody from them
 *
 * The rows stand in a graph of their own, behind the numbers they want (the rate, the iteration).
 * Which rows can: early_take.c; from where on: early.c. Nothing of the step can fail once one of
 * them begins. Where only the way in which sums are made may fail, all of it is done after the
 * meeting.
 */
#ifndef LS__STRATEGY_EARLY_H
#define LS__STRATEGY_EARLY_H

#include "os/event.h"
#include "strategy/piece.h"

typedef struct ls__early_row {
    int instruction; /* of the piece's plan */
    int *ready;      /* per replica: where in its program it is done with what the row needs */
    ls__event came;  /* replicas that were there, in all steps */
    struct ls__products_work *work;
    int64_t *spent; /* per device, in this step: nanoseconds. NULL: nobody wants to know */
} ls__early_row;

typedef struct ls__early {
    ls__piece piece;
    ls__early_row *rows; /* in the order in which they are ready */
    int n_rows;          /* 0: there is nothing of all this */
    int *meets;          /* per replica: the instruction of its program at which it meets */
    bool late;           /* what rows need has no place of its own before the meeting */
    int devices;         /* of this step */
    uint32_t steps;      /* that began early, so far */
} ls__early;

struct ls__traced_step;

/* When the step is compiled: takes rows out of the last meeting, as it was recorded; and, once
 * programs have plans, finds out when they are ready. */
ls_status ls__early_take(struct ls__traced_step *step);
ls_status ls__early_compile(struct ls__traced_step *step, ls__pass_set off);
void ls__early_free(ls__early *early);

/*
 * In a step (early_run.c):
 *
 *     ls__early_begin(early);                  // before the last round: the numbers
 *     ls__early_open(early, step, devices);    // and addresses; if it is late, after the meeting
 *     ls__event_post(&row->came);              // each replica, when it is where the row is ready
 *     ls__early_join(early, row, device);      // each device, when all replicas are
 *     ls__early_end(early);
 */
ls_status ls__early_begin(ls__early *early);
void ls__early_open(ls__early *early, const struct ls__traced_step *step, int devices);
void ls__early_join(ls__early *early, int row, int device);
void ls__early_end(ls__early *early);

/* Its rows count their time (operators.c). */
ls_status ls__early_time(ls__early *early, int devices);

#endif
