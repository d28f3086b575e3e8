/*
 * Random datasets: sources and stages, from a seed.
 *
 * A program is data: a tree of nodes, each a source or a stage with its numbers. What is known
 * of its elements before there is one (dtypes, ranks, sizes) is known while it is made, so that every
 * program is a right one.
 *
 *     rd_program *p = rd_make(seed);
 *     rd_predict(p, memory, orders, epoch, &want, &why); // oracle.c: plain loops
 *     ls_dataset *d = rd_build(p, setting);              // build.c: Lockstep
 *     rd_free(p);
 *
 * Shuffles. Their order is Lockstep's to choose, so it is learnt from a run of the same program in
 * which every element carries its number into the shuffle and shows it behind (`twin`): the orders
 * are checked by themselves, and the oracle follows them in every other run.
 *
 * Failures. Some callbacks fail and some files are damaged. What stages that count or hold elements
 * make of a failure is not said in the header, so only stages that hand elements on come after one.
 */
#ifndef LS__TESTS_RANDOM_DATASETS_PROGRAM_H
#define LS__TESTS_RANDOM_DATASETS_PROGRAM_H

#include <lockstep/data.h>

#include "random_datasets/files.h"
#include "random_datasets/model.h"

enum {
    RD_LIMIT = 36, /* elements looked at in an epoch */
    RD_EPOCHS = 2,
    RD_NODES = 96,
    RD_INPUTS = 3,
    RD_PATTERNS = 3,
    RD_CELLS = 192 /* of a leaf, at most */
};

typedef struct rd_leaf {
    ls_dtype dtype;
    int rank;
    int64_t dims[RD_RANK]; /* -1: elements differ */
    int64_t most;          /* cells */
} rd_leaf;

typedef struct rd_type {
    const rd_nest *nest;
    int n;
    rd_leaf leaf[RD_LEAVES];
    bool rows; /* all leaves of an element have the same size in front */
    int set;   /* elements are names of these files; -1: no names */
} rd_type;

typedef enum rd_code {
    RD_ONCE,
    RD_SLICES,
    RD_RANGE,
    RD_RANGE_OF, /* in a body: the element's hash h: h % 100 and the (h / 100) % a numbers behind */
    RD_GIVEN,    /* in a body: the element once... */
    RD_GIVEN_ROWS, /* ...or its rows */
    RD_GENERATE,
    RD_FILES,
    RD_TFRECORDS,
    RD_TEXT_LINES,
    RD_FIXED,
    RD_MAP,
    RD_FILTER, /* those whose hash % a is not b */
    RD_BATCH,  /* flag: full */
    RD_PADDED,
    RD_UNBATCH,
    RD_SHUFFLE, /* flag: once */
    RD_REPEAT,
    RD_TAKE,
    RD_SKIP,
    RD_SHARD,
    RD_CACHE, /* flag: in a file */
    RD_PREFETCH,
    RD_ZIP,
    RD_CONCATENATE,
    RD_ENUMERATE,
    RD_FLAT_MAP,
    RD_INTERLEAVE, /* cycle a, block b */
    RD_CODES
} rd_code;

/* What a map does. */
typedef enum rd_fn {
    RD_ADD,     /* k to numbers, a letter to strings */
    RD_DICT,    /* { a: the element, b: i64[] of its hash } */
    RD_REVERSE, /* a list backwards; else a list of the element alone */
    RD_FIRST,   /* entry 0 of a list or dict; else as RD_ADD */
    RD_RAGGED,  /* a list: i64[] of the hash, f32[hash % 4] */
    RD_LENGTHS, /* of strings, i64; numbers as f32 */
    RD_FAILS,   /* where hash % 4 is k; else the element */
    RD_FNS
} rd_fn;

typedef struct rd_node {
    rd_code code;
    int number;
    rd_type type;
    int n_in;
    struct rd_node *in[RD_INPUTS];
    struct rd_node *body; /* what a flat_map or interleave makes of each element */
    int64_t a, b;
    uint64_t seed;
    bool flag;
    rd_fn fn;
    int parallel;     /* 0 to 3 */
    const char *spec; /* of elements, or NULL; of RD_PADDED: of the shapes */
    int64_t *pad;     /* RD_LEAVES x RD_RANK; NULL: none */
    int n_patterns;
    char pattern[RD_PATTERNS][16];
    /* Facts. */
    bool shuffled; /* another iteration may have another order */
    bool fails;
    bool endless;
    bool inside;  /* of a body */
    bool counted; /* ls_cardinality must know: nothing below it hides how many there are */
} rd_node;

/* How it is built. */
typedef struct rd_setting {
    int threads;             /* 0: as few as can be; 1: as the program says; 2: in another way */
    struct rd_orders *learn; /* a twin, which notes orders here */
} rd_setting;

/* What callbacks get as `user`. */
typedef struct rd_call {
    const struct rd_program *p;
    const rd_node *node;
    rd_setting setting;
} rd_call;

typedef struct rd_program {
    uint64_t seed;
    rd_node *root;
    int n_nodes, n_shuffles;
    rd_node *nodes[RD_NODES];
    rd_call calls[4][RD_NODES]; /* of each setting; the last are the twin's */
    bool compressed;            /* wants a library that may not be there */
    bool whole; /* a cache remembers a shuffled order: only what was gone through is known later */
    rd_pool pool;
} rd_program;

rd_program *rd_make(uint64_t seed);
void rd_free(rd_program *p);
void rd_dump(const rd_program *p, rd_text *to);
void rd_dump_type(const rd_type *t, rd_text *to); /* as ls_dataset_text has it */

/* ---- making (generate.c, generate_stages.c) ------------------------------------------------- */

typedef struct rd_maker {
    rd_program *p;
    uint64_t state;
    const rd_type *given; /* in a body: what is made of */
} rd_maker;
uint64_t rd_draw(rd_maker *m, uint64_t below);
rd_node *rd_node_new(rd_maker *m, rd_code code, int n_in, rd_node *const *in);
const char *rd_spec_of(rd_maker *m, const rd_type *type);
rd_node *rd_make_chain(rd_maker *m, int depth);
rd_node *rd_make_source(rd_maker *m, int depth);
rd_node *rd_make_source_of(rd_maker *m, const rd_type *type); /* elements of this type */
rd_node *rd_make_names_shorter(rd_maker *m, rd_node *d);      /* a stage that names bear, or d */
rd_node *rd_make_stage(rd_maker *m, rd_node *d, int depth);   /* NULL: not on this one */

/* ---- what callbacks and sources do (functions.c) -------------------------------------------- */

bool rd_fn_type(rd_pool *pool, rd_fn fn, const rd_type *in, rd_type *out); /* false: not on these */
rd_element *rd_fn_apply(rd_pool *pool, const rd_node *map, const rd_element *e); /* NULL: fails */
bool rd_filter_keeps(const rd_node *filter, const rd_element *e);

/* Element i of a source that has elements of its own. */
rd_element *rd_content(rd_pool *pool, const rd_node *source, int64_t i);

/* ---- what was learnt of shuffles ------------------------------------------------------------ */

/* The order of one iteration of one shuffle: numbers of elements, as they came out. */
typedef struct rd_order {
    int shuffle;        /* node number */
    int epoch, opening; /* of the program; of the shuffle in this epoch */
    int64_t iteration;  /* which the library says it is */
    int n;
    int64_t *at;
} rd_order;

typedef struct rd_orders {
    int n, room;
    rd_order *order;
    int epoch;
    int openings[RD_NODES];
} rd_orders;
rd_order *rd_order_of(rd_orders *o, int shuffle, int epoch, int opening); /* NULL: none */
void rd_orders_free(rd_orders *o);

/* NULL, or in what way they are none that the header promises. */
const char *rd_orders_wrong(const rd_program *p, const rd_orders *o);

/* ---- what came out -------------------------------------------------------------------------- */

/* A line an element; "! LS_CORRUPT" a failure; "end", unless there were more than RD_LIMIT. */
typedef struct rd_lines {
    int n, elements;
    char *line[2 * RD_LIMIT + 1];
    const rd_element *element[2 * RD_LIMIT + 1]; /* of rd_predict, as long as its memory */
    char failure[160];                           /* what the last one said */
} rd_lines;
bool rd_lines_full(const rd_lines *l);
bool rd_lines_ended(const rd_lines *l);
void rd_lines_add(rd_lines *l, const char *text);
void rd_lines_free(rd_lines *l);

/* Whether `got` is what `want` has from line i on, as far as both go; NULL, or what is not. */
const char *rd_lines_differ(const rd_lines *want, int i, const rd_lines *got);

/* The line behind the element of this number; 0: the first. */
int rd_lines_after(const rd_lines *l, int elements);

/* Adds what an iterator gives: until it ends or the lines are full, or so many lines. */
void rd_lines_read(rd_lines *l, ls_iterator *it, int most);

/* ---- who runs it ---------------------------------------------------------------------------- */

/* What an epoch should give. `orders` NULL: as if shuffles did nothing. False: too much work, or the
 * orders do not say enough; why is in *why. */
struct rd_memory; /* what caches have: goes from epoch to epoch */
struct rd_memory *rd_memory_new(void);
void rd_memory_free(struct rd_memory *memory); /* takes NULL */
bool rd_predict(const rd_program *p, struct rd_memory *memory, rd_orders *orders, int epoch,
                rd_lines *out, const char **why);
extern const char rd_few_elements[]; /* why: a shard has fewer than there are shards, and fails */
extern const char rd_too_much_work[];

ls_dataset *rd_build(rd_program *p, rd_setting setting); /* one at a time */

#endif
