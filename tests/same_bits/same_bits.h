/*
 * The proof of the promise: one training, done in many settings, gives the same bits.
 *
 * How to use it
 *
 * 1. A setting says which training (recipe, V, seed, steps, eager or traced) and how it is done
 *    (devices, cross-device operation, packs, moves, failures in between):
 *
 *        sb_setting s = sb_reference(0, 5, 200);
 *        s.devices = 3;
 *
 * 2. sb_train does it and writes down all that it leaves: losses of all steps, variables, copies of
 *    replicas, slots, sums that wait, counters.
 *
 * 3. sb_same compares two records, and names the first number that differs.
 *
 * Settings are written and read as arguments of a command (sb_text, sb_parse), so that what
 * was found can be done again.
 */
#ifndef LS__TESTS_SAME_BITS_H
#define LS__TESTS_SAME_BITS_H

#include <lockstep.h>

enum { SB_TEXT = 400 };

typedef enum sb_kind {
    SB_TRACED, /* as users do */
    SB_EXACT,  /* traced without the passes that may change bits: those of the eager step */
    SB_EAGER
} sb_kind;

typedef enum sb_failure {
    SB_NO_FAILURE,
    SB_EARLY, /* now and then a step fails in one replica, after a meeting, before the update */
    SB_LATE   /* ... after the update */
} sb_failure;

/* Everything but what comes after `kind` is part of the program. All are ints, so that one table
 * (setting.c) reads and writes them. */
typedef struct sb_setting {
    int recipe; /* number of an optimizer in recipe.c */
    int replicas, steps, seed;
    int kind;    /* sb_kind */
    int devices; /* from here on nothing may matter */
    int cross;   /* ls_cross_device */
    int packs, pack_bytes, small_bytes, small_group;
    int sequential;
    int move;    /* so many devices in the second third of the steps; 0: no move */
    int failure; /* sb_failure */
} sb_setting;

/* ---- settings (setting.c) ------------------------------------------------------------------ */

/* One device, direct, traced, seed 1. */
sb_setting sb_reference(int recipe, int replicas, int steps);

/* The same program where nothing that should not matter is set. */
sb_setting sb_reference_of(const sb_setting *s);

/* "recipe=adam replicas=5 devices=3": what is not as in a reference. Returns `out`. */
const char *sb_text(const sb_setting *s, char out[SB_TEXT]);

/* Back from arguments; says what is wrong with one. */
bool sb_parse(int count, char *const *arguments, sb_setting *out, char problem[SB_TEXT]);

/* The sizes of packs that are tried: sets them to choice `i`, taken modulo SB_PACKINGS. */
enum { SB_PACKINGS = 10 };
void sb_set_packing(sb_setting *s, int i);

/* ---- recipes (recipe.c) ---------------------------------------------------------------------- */

/* Every built-in optimizer, and each with every option. The names end with NULL. */
enum { SB_OPTIMIZERS = 5, SB_RECIPES = 20 };
extern const char *const sb_recipe_names[SB_RECIPES + 1];
ls_optimizer *sb_recipe(int recipe, int steps);

/* Whether two steps of three only add up gradients. */
bool sb_accumulates(int recipe);

/* ---- records (record.c) ------------------------------------------------------------------------ */

typedef struct sb_entry {
    char name[48];
    ls_dtype dtype;
    size_t at, bytes;
} sb_entry;

typedef struct sb_record {
    unsigned char *bytes;
    sb_entry *entries;
    size_t n_bytes, room_bytes;
    int n_entries, room_entries;
    bool failed; /* for lack of memory, or something could not be read */
} sb_record;

void sb_add(sb_record *r, const char *name, ls_dtype dtype, const void *data, size_t bytes);
void sb_add_tensor(sb_record *r, const char *name, ls_tensor *t);
void sb_add_int(sb_record *r, const char *name, int64_t value);
void sb_record_free(sb_record *r);

/* FNV-1a of all names and bytes. */
uint64_t sb_digest(const sb_record *r);

/* Both are the same, bit by bit; else `difference` names the first number that is not. */
bool sb_same(const sb_record *want, const sb_record *got, char difference[SB_TEXT]);

/* No number is NaN or infinite: such a training would hide differences. */
bool sb_finite(const sb_record *r, char which[SB_TEXT]);

/* ---- the training (model.c, batch.c, train.c) -------------------------------------------------- */

typedef enum sb_name {
    SB_TABLE, /* embedding; its gradients are sparse */
    SB_GAIN,  /* three numbers, f64 */
    SB_W1,
    SB_B1,
    SB_SCALE, /* of batch norm */
    SB_OFFSET,
    SB_W2, /* more than five blocks of 4096 */
    SB_W3,
    SB_TIED, /* looked up, and the last layer */
    SB_SYNC_SCALE,
    SB_SYNC_OFFSET,
    SB_TRAINED,
    SB_PROBE = SB_TRAINED, /* trained by the second optimizer, in a way that is known exactly */
    SB_MEAN,               /* each replica's own: what its batch norm has seen */
    SB_VARIANCE,
    SB_SEEN,      /* each replica's own: rows, i64 */
    SB_SYNC_MEAN, /* one for all, written by a meeting */
    SB_VARIABLES
} sb_name;

enum { SB_WORDS = 37, SB_ITEMS = 3, SB_CLASSES = 11, SB_PROBES = 3 };

typedef struct sb_model {
    const sb_setting *setting;
    ls_variable *v[SB_VARIABLES];
    ls_optimizer *first, *second;
} sb_model;

bool sb_model_make(sb_model *m, ls_strategy *s);
void sb_model_free(sb_model *m);

/* Steps: an update; gradients that are only added up; an update, and then a lookup that can
 * fail. Each gives its loss, and the sum and mean over replicas. */
ls_value *sb_update_step(ls_value *batch, void *model);
ls_value *sb_part_step(ls_value *batch, void *model);
ls_value *sb_late_step(ls_value *batch, void *model);

/* All that the training leaves behind. */
void sb_model_record(const sb_model *m, ls_strategy *s, sb_record *out);

/* What replica `replica` gets at a step: ids, labels, slopes of the probe, a place in SB_GAIN. Drawn from
 * (seed, step, replica). Replicas differ in rows, and at some steps one has none. */
typedef struct sb_batch_of {
    const sb_setting *setting;
    int step;
    int failure; /* what is wrong with the batch of replica `bad` */
    int bad;
} sb_batch_of;
ls_value *sb_batch(int replica, int replicas, void *batch_of);
int sb_rows(int step, int replica, int replicas);
void sb_slopes(int seed, int step, int replica, float out[SB_PROBES]);

/* The sum in the order of the tree, which is the contract. Changes `x`. */
float sb_tree(float *x, int n);

/* Trains. False when that failed, or something was not as the contract says; `problem` says what. */
bool sb_train(const sb_setting *s, sb_record *out, char problem[SB_TEXT]);

/* Trains in this setting and compares with `want`. */
bool sb_check(const sb_setting *s, const sb_record *want, char problem[SB_TEXT]);

/* ---- the soak (soak.c) ------------------------------------------------------------------------- */

/* `one SETTING`, and `soak [RUNS [STEPS]]`; the exit status of the program. */
int sb_one(int count, char *const *arguments);
int sb_soak(int runs, int steps);

#endif
