/*
 * Random programs: training steps made of whatever operators do, from a seed.
 *
 * A program is data: a few properties and a list of choices, one for each operator or
 * small group of them. A choice is a number that is read against the tensors there
 * are so far, so any list is a program, also one from which choices were taken out: that
 * is how a failing program is made small.
 *
 *     rg_program p;
 *     rg_make(&p, seed);
 *     rg_world *w = rg_world_open(&p);              // its variables and optimizers
 *     results = rg_step(rg_arguments(w, 0, false), w);       // runs it, or is traced
 *     rg_world_close(w);
 */
#ifndef LS__TESTS_RANDOM_GRAPH_H
#define LS__TESTS_RANDOM_GRAPH_H

#include <lockstep.h>

enum { RG_ELEMENTS = 4096, RG_CHOICES = 64, RG_POOL = 192, RG_RESULTS = 48 };

/* The arguments of a step, in their order. */
enum {
    RG_X,       /* [batch, 6] */
    RG_IMAGE,   /* [2, 6, 6, 2] */
    RG_LABELS,  /* i32[batch], 0 to 2 */
    RG_IDS,     /* i64[batch, 2], 0 to 6 */
    RG_COLUMN,  /* [batch, 1] */
    RG_DEEP,    /* [2, 8, 8, 16] */
    RG_WIDE,    /* [4, 64] */
    RG_DIVISOR, /* i32[batch], not 0 */
    RG_SPARSE,  /* three rows of [7, 6], of the dtype of variables */
    RG_VIEW,    /* what was read of the variable `state` before the step */
    RG_ARGUMENTS
};

/* The variables of a program. Those from RG_FROZEN on are not trained. */
enum {
    RG_W65,
    RG_B5,
    RG_W53,
    RG_B3,
    RG_W36,
    RG_B6,
    RG_K24,
    RG_K44,
    RG_B4,
    RG_TABLE, /* [7, 6] */
    RG_SCALE, /* [6] */
    RG_OFFSET,
    RG_NUMBER, /* [] */
    RG_KDEEP,
    RG_BDEEP,
    RG_KGREY, /* [3, 3, 1, 8] */
    RG_BGREY,
    RG_FROZEN,
    RG_STATE = RG_FROZEN, /* [3, 1] */
    RG_WIDE_W,            /* [64, 64] */
    RG_EMPTY,             /* [0, 6] */
    RG_VARIABLES
};

/* What goes wrong in a step that is to fail. */
typedef enum rg_fault { RG_NO_FAULT, RG_BAD_LABEL, RG_BAD_ID, RG_BAD_ROW, RG_BAD_DIVISOR } rg_fault;

typedef struct rg_program {
    uint64_t seed;
    ls_dtype dtype; /* of most tensors; variables of a bf16 program are f32 */
    int64_t batch;
    bool jumps;  /* has operators that jump (round...): sums in another order may change all */
    bool odd;    /* arguments have NaN, infinities, -0 and denormals; it is one that jumps */
    bool writes; /* assigns to variables */
    bool trains; /* ends with an update, after which nothing reads the tape */
    bool adam;
    rg_fault fault;
    int fault_at; /* the choice that the fault is in */
    int count;
    uint64_t choices[RG_CHOICES];
} rg_program;

/* A step while it is written. */
typedef struct rg_world {
    const rg_program *p;
    ls_variable *variables[RG_VARIABLES];
    ls_optimizer *optimizer;
    ls_tensor *outside; /* kept: a constant of the program */

    ls_value *arguments;
    ls_tape *tape;
    ls_tensor *losses; /* a sum that the next loss takes as it is; NULL: nothing yet */
    uint64_t random;   /* what is left of the choice */
    int n_pool, n_results;
    ls_tensor *pool[RG_POOL], *results[RG_RESULTS];
} rg_world;

void rg_make(rg_program *p, uint64_t seed);
ls_dtype rg_variable_dtype(const rg_program *p);
rg_world *rg_world_open(const rg_program *p);
void rg_world_close(rg_world *w);

/* The arguments of step k; with what makes it fail, if asked. */
ls_value *rg_arguments(const rg_world *w, int k, bool bad);

/* An ls_step; `user` is a world. */
ls_value *rg_step(ls_value *arguments, void *user);

/* ---- for the kinds of choices ------------------------------------------------------- */

/* A number below n, of a state and of the choice. */
uint32_t rg_draw(uint64_t *state, uint32_t n);
uint32_t rg_number(rg_world *w, uint32_t n);

/* The pool: tensors of the program's dtype. What is too large is not taken. */
void rg_push(rg_world *w, ls_tensor *t);
ls_tensor *rg_pick(rg_world *w);
ls_tensor *rg_with_last(rg_world *w, int rank, int64_t size);
ls_tensor *rg_image(rg_world *w, int64_t channels, int argument);

ls_tensor *rg_as_program(const rg_world *w, ls_tensor *t);
ls_tensor *rg_variable(rg_world *w, int i);
ls_tensor *rg_mean(ls_tensor *t);

/* Does what a choice says (random_graph_ops.c). */
void rg_choose(rg_world *w, uint64_t choice);

/* Kinds with effects (random_graph_effects.c). */
void rg_random_numbers(rg_world *w);
void rg_read_variable(rg_world *w);
void rg_write_variable(rg_world *w);
void rg_update(rg_world *w);
void rg_minimize(rg_world *w);
void rg_choose_fault(rg_world *w);

#endif
