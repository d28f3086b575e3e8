/*
 * The plan: a compiled graph as a list of instructions over places in memory. It
 * holds offsets, never addresses, so any number of instances (execute.h) run from
 * one plan: one per replica.
 */
#ifndef LS__TRACE_PLAN_H
#define LS__TRACE_PLAN_H

#include "trace/graph.h"
#include "trace/pass.h"

typedef enum ls__base {
    LS__AT_ARENA,    /* computed by this replay */
    LS__AT_INPUT,    /* an argument's own memory */
    LS__AT_CONSTANT, /* a constant's own memory */
    LS__AT_CELL,     /* a variable's own memory */
    LS__AT_KEPT,     /* stays from replay to replay: packed weights */
    LS__AT_OWN,      /* computed by this replay, and needed while others take their turns */
    LS__AT_LENT      /* memory that whoever runs the plan lends for a piece: gradients */
} ls__base;

typedef struct ls__place {
    ls__base base;
    int index; /* of the input, constant or cell; of lent memory: the meeting it goes to */
    size_t offset;
} ls__place;

enum { LS__PACKS_NOTHING = -1, LS__PACKS_CONSTANT = -2 /* once is enough */ };

typedef struct ls__instruction {
    const ls__node *node;
    size_t scratch_at; /* in the arena */
    size_t scratch_bytes;
    int packs; /* the cell whose packed copy it makes: run when the version changed; or below */
} ls__instruction;

/* What a failed replay puts back: the cell, and where its old contents are once the
 * instruction that saves them has run. */
typedef struct ls__undo {
    int cell;
    int instruction;
    ls__place saved;
} ls__undo;

/* Gradients that lie side by side, in the order in which the step finishes them: what
 * a strategy reduces in one go. */
typedef struct ls__bucket {
    int begin, count; /* in plan->bucket_wires */
    size_t bytes;
    ls__place place;
} ls__bucket;

/* What a replica brings to a meeting as input `input`, wanted at `offset` of the memory lent for
 * that meeting. It lies there when it can (`placed`): when it is made in the piece before the
 * meeting and nobody needs it after; else whoever lends copies it. */
typedef struct ls__lent {
    int meeting, input;
    size_t offset;
    bool placed;
} ls__lent;

/* Instructions from `begin` on, up to the next stretch, are part of one phase. */
typedef struct ls__stretch {
    int begin;
    ls_phase phase;
} ls__stretch;

typedef struct ls__plan {
    ls__graph *graph; /* compiled; the plan owns it */
    ls__instruction *instructions;
    int n_instructions;
    ls__stretch *stretches; /* neighbours differ in phase; one more says where the last ends */
    int n_stretches;
    int tail;          /* the first instruction from which on none can fail */
    ls__place *places; /* of each wire */
    ls__undo *undo;
    int n_undo;
    ls__bucket *buckets;
    int n_buckets;
    int *bucket_wires;
    ls__lent *lent;
    int n_lent;
    size_t arena_bytes, own_bytes, arena_least, kept_bytes, constant_bytes;
} ls__plan;

enum ls__plan_flags {
    LS__PLAN_CHECKED = 1, /* ls_check_numerics: operators stay as they were written, any may fail */
    LS__PLAN_NO_UNDO = 2, /* whoever runs it undoes writes by himself (journal.h) */
    LS__PLAN_TURNS = 4 /* others use the arena between two pieces: what must stay is LS__AT_OWN */
};

/* Runs the passes and plans; takes the graph over, also when it fails (NULL). */
ls__plan *ls__plan_make(ls__graph *g, ls__pass_set off, unsigned flags);
ls__plan *ls__plan_make_lent(ls__graph *g, ls__pass_set off, unsigned flags, int n_lent,
                             const ls__lent *lent);
void ls__plan_free(ls__plan *plan);

/* ---- parts of it, each a file ----------------------------------------------------- */

/* Makes explicit what an executor would else have to know: bf16 rows become f32 rows
 * between casts (lower_widen.c); a value read from a cell that is written before its
 * last use is copied, and cells are saved where a later node can fail (lower_cells.c). */
ls_status ls__lower_widen(ls__graph *g);
ls_status ls__lower_snapshots(ls__graph *g);
ls_status ls__lower_undo(ls__graph *g, bool checked);
bool ls__can_fail(const ls__node *node, bool checked);

/* Where each wire lies: fills places, buckets and the sizes of `plan` (places.c). */
typedef struct ls__place_options {
    bool reuse;    /* memory is used again after its last use */
    bool in_place; /* element-wise results may lie over an operand */
    bool buckets;
    bool turns; /* LS__PLAN_TURNS */
} ls__place_options;
ls_status ls__plan_places(ls__plan *plan, ls__place_options options);

/* Which instructions are part of what: fills stretches (phases.c). */
ls_status ls__plan_phases(ls__plan *plan);

/* Pure: groups consecutive sizes into buckets of at most `cap` bytes (a larger one is
 * alone); writes the count of each to `counts` and returns how many there are. */
int ls__bucket_counts(int n, const size_t *bytes, size_t cap, int *counts);

#endif
