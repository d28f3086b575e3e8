/*
 * Random programs for strategies: what replicas can do together, from a seed.
 *
 * A program is data: variables, a few functions, and a list of runs of them. A function is
 * a list of operations on registers that every replica goes through; some of them are
 * meetings (an all-reduce, a merge call, a write). A merge call leads to a list of operations
 * in cross-replica context, which may run a function again, and so on three levels down.
 *
 *     rs_program *p = rs_make(seed);
 *     rs_predict(p, &want);                      // oracle.c: plain C, knows the rules
 *     rs_execute(p, (rs_setting){ .devices = 2 }, &got); // execute.c: Lockstep
 *     rs_agrees(&want, &got);
 *     rs_free(p);
 *
 * Numbers are small integers, so that sums are exact; registers marked `rough` hold what is
 * not, and only go through operations whose rounding and order are fixed by the rules.
 */
#ifndef LS__TESTS_RANDOM_STRATEGIES_PROGRAM_H
#define LS__TESTS_RANDOM_STRATEGIES_PROGRAM_H

#include <lockstep.h>
#include <lockstep/extended.h>

enum {
    RS_REPLICAS = 8,
    RS_VARIABLES = 6,
    RS_REGISTERS = 64,
    RS_OPS = 24,
    RS_CHILDREN = 4,
    RS_FUNCTIONS = 3,
    RS_RUNS = 7,
    RS_ROOM = 64, /* elements of a tensor, at most */
    RS_FUSES = 3, /* elements of register 0: see RS_FUSE */
    RS_DEPTH = 3  /* merge functions inside of one another */
};

typedef struct rs_type {
    ls_dtype dtype;
    int rank; /* at most 2 */
    int64_t dims[2];
} rs_type;

/* A nest of registers. Entries of a dict have the keys rs_keys, in that order. */
typedef struct rs_nest {
    ls_value_kind kind;
    int reg; /* of a leaf; -1 - v: the variable v itself */
    int count;
    struct rs_nest *child[RS_CHILDREN];
} rs_nest;
extern const char *const rs_keys[RS_CHILDREN]; /* not sorted */

typedef enum rs_code {
    /* Everywhere, on plain tensors. */
    RS_ARITH, /* dst = a which b */
    RS_UNARY,
    RS_CAST,
    RS_CONST, /* all elements k, plus b times the replica */
    RS_SUM_ALL,
    RS_DRAW,
    RS_READ,  /* which: 1 is ls_read_var (cross-replica) */
    RS_WRITE, /* which: assign, add, sub */
    RS_BAD,   /* fails, as `fault` says, on the replicas it names; else gives zeros */
    /* In a replica. */
    RS_ALL_REDUCE, /* out = which of in */
    RS_GRADIENT,   /* dst = d (all_reduce(which, a) * k (replica + 1)) / da */
    RS_LOSS,       /* dst = 2 d (loss of a * all_reduce(b)) / d logits; which: see below */
    RS_MERGE,      /* out = body(in) */
    RS_FUSE,       /* fails where element `which` of register 0 is 0; else dst = a */
    /* In cross-replica context, where registers may be per-replica or mirrored. */
    RS_WHO,       /* which replica's `user` arrived */
    RS_TAG,       /* the spread of a, as a number */
    RS_REDUCE,    /* dst = which of a, over axis b (LS_NO_AXIS: none) */
    RS_REDUCE_TO, /* dst = which of a, at destination to (of b or variable) */
    RS_BATCH,     /* out = which of both leaves of in, at destination to */
    RS_MIRROR,
    RS_GATHER, /* along axis b */
    RS_SELECT, /* component b */
    RS_LOCAL,  /* entry b of ls_local_results */
    RS_WRITE_VALUE,
    RS_UPDATE, /* which: assign, add, sub of a; b: grouped (-1), or which entry */
    RS_RUN     /* out = body(in) on every replica; handled: a failure is read, out is zeros */
} rs_code;

enum { RS_ADD, RS_SUB, RS_MUL, RS_MAX, RS_MIN, RS_ARITHS };
enum { RS_NEG, RS_ABS, RS_CLIP, RS_SCALE, RS_SHIFT, RS_UNARIES };
enum { RS_ASSIGN, RS_ASSIGN_ADD, RS_ASSIGN_SUB, RS_WRITES };
enum { RS_LOSS_BESIDE, RS_LOSS_THROUGH, RS_LOSSES }; /* or all_reduce(loss of a) * b */
enum { RS_TO_VARIABLE, RS_TO_VALUE, RS_TO_DEVICE, RS_TOS };

/* What some replicas (a set of bits) do wrong. */
typedef enum rs_wrong {
    RS_RIGHT,
    RS_FAILS,           /* RS_BAD: a shape error, its result is used */
    RS_UNREAD,          /* RS_BAD: a shape error that nobody reads */
    RS_HANDLED,         /* RS_BAD: a shape error that is read: no failure at all */
    RS_NULL_ARGUMENT,   /* a meeting */
    RS_SKIPS,           /* a meeting */
    RS_OTHER_MERGE,     /* a merge call */
    RS_OTHER_SHAPE,     /* an all-reduce */
    RS_OTHER_REDUCE,    /* an all-reduce: SUM for MEAN */
    RS_OTHER_STRUCTURE, /* a meeting, a return */
    RS_NULL_RESULT,     /* a return */
    RS_WRONGS
} rs_wrong;

typedef struct rs_fault {
    rs_wrong wrong;
    unsigned who;
} rs_fault;

typedef struct rs_op {
    rs_code code;
    int dst, a, b, variable, which, to;
    double k;
    rs_type type; /* of dst, where it has to be said */
    rs_nest *in, *out;
    struct rs_body *body;
    bool handled;
    rs_fault fault;
} rs_op;

/* What is known of a register before anything runs. */
typedef struct rs_register {
    rs_type type;
    bool rough;
    double most;      /* no element is larger */
    ls_spread spread; /* in a replica, LS_SPREAD_PLAIN: the same tensor on all */
} rs_register;

/* A step of replicas, or (`cross`) a function of ls_merge_call. Register 0 is the fuses. */
typedef struct rs_body {
    int number; /* no other body of the program has it */
    bool cross;
    int depth;
    bool stubborn;      /* a replica reads the error of a failed meeting and goes on */
    rs_nest *arguments; /* which registers they go to */
    int n_ops;
    rs_op ops[RS_OPS];
    rs_nest *results;
    rs_fault at_return;
    int n_registers;
    rs_register registers[RS_REGISTERS];
} rs_body;

typedef struct rs_variable {
    char name[16];
    rs_type type;
    ls_synchronization synchronization;
    ls_aggregation aggregation;
    bool local_writes;
    bool rough;
} rs_variable;

typedef struct rs_run {
    int function;
    int fuse;       /* which element of register 0 is 0... */
    unsigned blown; /* ...on these replicas (none: the run goes well) */
    bool between;   /* the cross-replica list `between` goes first */
} rs_run;

typedef struct rs_program {
    uint64_t seed;
    int replicas;
    int n_variables; /* the last one belongs to RS_FUSE */
    rs_variable variables[RS_VARIABLES];
    int n_bodies;
    int n_functions;
    rs_body *functions[RS_FUNCTIONS];
    rs_body *between;
    int n_runs;
    rs_run runs[RS_RUNS];
    bool traceable; /* no failure is handled that a trace cannot see; no draws in nested runs of several */
    bool fails_nested; /* a replay may fail in a nested run */
    void *memory;   /* all of the above (program.c) */
} rs_program;

rs_program *rs_make(uint64_t seed);
void rs_free(rs_program *p);

/* Made by generate.c and generate_cross.c: `body` has arguments, and gets the rest. */
typedef struct rs_maker {
    rs_program *p;
    uint64_t state;
    /* Of the function that is made: */
    bool faulty;            /* it has its mistake */
    int fuses;              /* it has these RS_FUSE */
    int handled;            /* it is inside a run whose failure is handled */
    unsigned handled_fuses; /* those are */
    unsigned nested_fuses;  /* those are inside any run */
} rs_maker;
uint64_t rs_draw(rs_maker *m, uint64_t below);
void *rs_room(rs_program *p, size_t bytes); /* zeroed, until rs_free */
rs_body *rs_body_new(rs_maker *m, bool cross, int depth);
void rs_fill_replica(rs_maker *m, rs_body *body);
void rs_fill_cross(rs_maker *m, rs_body *body);

/* What both kinds of body share. */
rs_nest *rs_call_with(rs_maker *m, rs_body *body, rs_body *callee, int count, const int *regs);
rs_nest *rs_return_to(rs_maker *m, rs_body *body, const rs_body *callee);
void rs_place_bad(rs_maker *m, rs_body *body);
void rs_choose_results(rs_maker *m, rs_body *body);
bool rs_full(const rs_body *body);
rs_type rs_some_type(rs_maker *m);
void rs_make_variables(rs_maker *m);

/* Registers and nests, while a body is made (program.c). */
int rs_register_new(rs_body *body, rs_type type, bool rough, double most, ls_spread spread);
rs_op *rs_op_new(rs_body *body, rs_code code);
rs_op *rs_op_to(rs_body *body, rs_code code, rs_type type, bool rough, double most,
                ls_spread spread);
int rs_bounded(rs_body *body, int reg, double most); /* clipped if it may be larger */
int rs_cast(rs_body *body, int reg, ls_dtype dtype);
int rs_constant(rs_maker *m, rs_body *body, rs_type type, double k, int by_replica);
rs_type rs_mean_type(rs_type type);
bool rs_same_type(const rs_type *a, const rs_type *b);
int64_t rs_count(const rs_type *type);
rs_nest *rs_leaf(rs_maker *m, int reg);
rs_nest *rs_nest_of(rs_maker *m, int count, const int *regs); /* of a random structure */
rs_nest *rs_with_fuses(rs_maker *m, rs_nest *nest);           /* [register 0, nest] */
int rs_leaves(const rs_nest *nest, int *regs); /* as flattened, all of them; returns how many */
rs_nest *rs_renumbered(rs_maker *m, const rs_nest *nest, const int *regs);

/* Element `i` of an argument; of a variable's initial value. */
double rs_argument(const rs_program *p, int run, int reg, int replica, int i);
double rs_initial(const rs_program *p, int variable, int i);

/* ---- what happened ------------------------------------------------------------------- */

/* Text in lines; tokens are separated by spaces. */
typedef struct rs_log {
    char *text;
    size_t length, room;
} rs_log;
void rs_print(rs_log *log, const char *format, ...) LS_PRINTF(2, 3);
void rs_log_free(rs_log *log);

/* One tensor as a token: "f32[2]{1,2}". */
void rs_print_tensor(rs_log *log, const rs_type *type, const double *elements);

void rs_dump(const rs_program *p, rs_log *log);

/* NULL when they are the same, else what differs. RS_LOOSELY: a token "?" of `want` stands for
 * any, lines of texts and hints are left out, and -0 is 0. */
typedef enum rs_how { RS_EXACTLY, RS_LOOSELY } rs_how;
const char *rs_differ(const rs_log *want, const rs_log *got, rs_how how);

/* ---- who runs it ----------------------------------------------------------------------- */

typedef struct rs_setting {
    int devices;
    bool sequential, traced;
} rs_setting;
void rs_execute(const rs_program *p, rs_setting setting, rs_log *log);

/* Inside it: what steps, merge functions and updates get as `user`. */
typedef struct rs_world {
    const rs_program *p;
    ls_strategy *strategy;
    ls_variable *variables[RS_VARIABLES];
    struct rs_task *tasks; /* RS_REPLICAS for each body */
} rs_world;
typedef struct rs_task {
    const rs_world *world;
    const rs_body *body;
    int who;
} rs_task;
rs_task *rs_task_of(const rs_world *w, const rs_body *body, int who);
ls_value *rs_step(ls_value *arguments, void *task);                       /* execute_replica.c */
ls_value *rs_merge(ls_strategy *s, ls_value *arguments, void *task);      /* execute_cross.c */
ls_value *rs_merge_else(ls_strategy *s, ls_value *arguments, void *task); /* another function */

/* Parts of both: operations on plain tensors, NULL when `op` is none; nests. */
ls_tensor *rs_plain_op(const rs_world *w, const rs_op *op, ls_value *const *regs, int replica);
bool rs_is_plain_op(rs_code code);
ls_value *rs_pack(const rs_world *w, const rs_nest *nest, ls_value *const *regs);
void rs_unpack(const rs_nest *nest, ls_value *value, ls_value **regs);
ls_value *rs_bad(const rs_op *op, rs_wrong wrong);
ls_status rs_write(int which, ls_variable *v, ls_tensor *value);
ls_tensor *rs_tensor(const rs_type *type, const double *elements);
ls_tensor *rs_zeros(const rs_type *type);

/* ---- what it should do -------------------------------------------------------------------- */

void rs_predict(const rs_program *p, rs_log *log);

#endif
