/*
 * A step of many replicas, traced and compiled: V programs, and between their pieces the
 * meetings, each a program of its own that the runner replays while all replicas wait.
 *
 *      replica 0   |-- piece --|meet|-- piece --|          its graph: inputs are arguments, and
 *      replica 1   |-- piece --|meet|-- piece --|          what meetings gave it
 *      meeting 0               |merge|                     its graph: inputs are what replicas brought
 *
 * Nothing is copied between them: a meeting reads the replicas' memory where they left it,
 * and replicas read its results where it left them. Replicas that take turns on a device share its
 * arena; what is only added up at a meeting is folded as they finish (fold.h).
 */
#ifndef LS__STRATEGY_STEP_H
#define LS__STRATEGY_STEP_H

#include "strategy/early.h"
#include "strategy/piece.h"
#include "strategy/run_state.h"
#include "trace/function.h"

/* What the replicas of one device share. */
typedef struct ls__device_memory {
    ls__storage *arena;
    ls__fold_stack *folds; /* per meeting; none where nothing is folded */
} ls__device_memory;

typedef struct ls__traced_step {
    unsigned char *signature;
    size_t signature_size;
    int replicas;
    ls__piece *programs; /* V */
    ls__piece *meetings;
    int n_meetings;
    ls__early early; /* what of the last meeting need not wait for it */
    int devices;     /* that its memory is for; 0: there is none yet */
    ls__device_memory *memory;
    ls_value *results;            /* kept: how they are grouped, with symbols for tensors */
    bool draws;                   /* any of it draws */
    bool writes_late;             /* a program writes after its last meeting */
    bool late_can_fail;           /* a program may fail after its last meeting */
    bool timed;                   /* its operators are to be timed (operators.c) */
    struct ls__traced_step *next; /* used less recently */
} ls__traced_step;

/* Runs the function on all replicas: replays its step for these arguments, traced first if it
 * must. `outer`: the run around it, or NULL. */
ls_value *ls__step_run(ls_strategy *s, struct ls__run *outer, ls_function *f, ls_value *arguments);

/* Products that only the update of the last meeting wants are made there (products.c). */
ls_status ls__step_move_products(ls__traced_step *step);

/* Compiles what was recorded (step_compile.c). */
ls_status ls__step_compile(ls__traced_step *step, ls__pass_set off);
void ls__step_free(ls__traced_step *step);

/* Gives it memory for as many devices as the strategy has, if it has none for these
 * (step_memory.c). */
ls_status ls__step_place(ls__traced_step *step, const ls_strategy *s);
void ls__step_unplace(ls__traced_step *step);

/* Its instances count the time of their operators (operators.c). */
ls_status ls__step_time(ls__traced_step *step);

#endif
