/*
 * input.h: datasets for strategies: every step, each replica gets its part.
 *
 * How to use it
 *
 * Give the batch that all replicas together see, and let the strategy split it:
 *
 *     ls_dataset *d = ls_batch(ls_shuffle(ls_fashion_mnist("train"), 60000, 1), 128);
 *     LS_FOR_EACH(batch, ls_distribute(s, d))        // of 4 replicas each gets 32 rows
 *         ls_run(s, step, batch);
 *
 * or make what each input pipeline reads yourself, in batches for one replica:
 *
 *     static ls_dataset *mine(const ls_input_context *c, void *user)
 *     {
 *         int64_t n = ls_per_replica_batch_size(c, 128);
 *         return ls_batch(ls_shard(rows(), c->num_input_pipelines, c->input_pipeline_id), n);
 *     }
 *     ls_dataset *d = ls_distribute_from_function(s, mine, NULL);
 *
 * A distributed dataset is a dataset whose elements are per-replica values; it is gone through, saved
 * and continued like any other (data.h). It takes no further stages: LS_INVALID. Who gets what
 * depends on the dataset, on V and on P alone. P, the number of input pipelines, is 1 unless the
 * strategy was made with .input_pipelines; pipeline p feeds replicas pV/P up to (p+1)V/P.
 *
 * The rule for a batch of B rows and N replicas: the first B mod N get ceil(B/N) rows, the others
 * floor(B/N), in replica order; an incomplete last batch fills them in that order (B = 8, N = 2, 6
 * rows: 4 and 2), so the last replicas may have none: tensors of 0 rows, which every operator takes.
 * B is known where the batch was made, and behind stages that give it on as it is; where it is not (a
 * map behind the batch may have changed it), every batch is a whole one.
 *
 * Several pipelines: with batches of their own (FILE, OFF, below) each uses one up in P steps, and
 * begins the N sizes with those of its own replicas, so that all together use B rows in every step
 * (of whole batches).
 * With the same batches (DATA) each batch is cut into N parts of ceil(rows/N), of which pipeline p has
 * p, p + P, ... for its replicas. When some run out first their replicas get 0 rows until the last has
 * ended (other sizes that are not known then are 0, too), unless the strategy was made with
 * .whole_steps: then all end where one would get none (and has some of a whole batch): also what is
 * repeated for ever, if its last batch is not whole and the repeat is behind it.
 */
#ifndef LOCKSTEP_INPUT_H
#define LOCKSTEP_INPUT_H

#include <lockstep/data.h>
#include <lockstep/strategy.h>

LS_BEGIN_DECLS

typedef ls_dataset ls_dist_dataset; /* of per-replica values */

/* ---- a dataset of global batches ---------------------------------------------------------------- */

/* LS_INVALID for a dataset whose elements have no rows to split (scalars: it is not batched),
 * LS_SHAPE when leaves differ in rows. All leaves are cut at the same rows: the values of a
 * .variable feature (records.h), which are no rows of the batch, are padded before, or parsed in
 * the step. What steps take is made ahead, on a thread: .prefetch of the strategy's options tells how many
 * steps. By default that is done where it takes long: 10 us, or 100 where replicas have all cores. With one replica elements are plain values. */
LS_API ls_dist_dataset *ls_distribute(ls_strategy *s, ls_dataset *d);

/* How several pipelines share the data. Set on the dataset, the last one counts; one line of the
 * log says what was chosen. With P = 1 there is nothing to share. FILE: LS_NOT_FOUND where no files
 * are read, LS_INVALID for fewer files than pipelines. AUTO does not share out files where a stage
 * counts elements (ls_take: the first 100 of all are not the first 100 of each) or pairs them
 * (ls_zip: files of both sides need not have as many). FILE and OFF open a dataset once for each
 * pipeline: a generator without .open, which has one state for all, is LS_INVALID with OFF, and its
 * names of files are not shared out. */
#define LS_AUTO_SHARD_LIST(X)                                                                      \
    X(LS_AUTO_SHARD_AUTO, 0, "AUTO") /* by files if it reads files, else by data */                \
    X(LS_AUTO_SHARD_FILE, 1, "FILE") /* whole files: pipeline p reads files p, p + P, ... */       \
    X(LS_AUTO_SHARD_DATA, 2, "DATA") /* everybody reads all and keeps his part of each batch */    \
    X(LS_AUTO_SHARD_OFF, 3, "OFF")   /* every pipeline sees everything */

typedef enum ls_auto_shard {
#define LS__AUTO_SHARD_ENUM(name, value, text) name = value,
    LS_AUTO_SHARD_LIST(LS__AUTO_SHARD_ENUM)
#undef LS__AUTO_SHARD_ENUM
} ls_auto_shard;
LS_API ls_dataset *ls_with_auto_shard(ls_dataset *d, ls_auto_shard policy);
LS_API const char *ls_auto_shard_name(ls_auto_shard policy); /* "FILE"; "?" */

/* ---- a dataset for each pipeline ---------------------------------------------------------------- */

typedef struct ls_input_context {
    int num_input_pipelines;  /* P */
    int input_pipeline_id;    /* 0 to P - 1 */
    int num_replicas_in_sync; /* V */
} ls_input_context;

/* global_batch / V; LS_INVALID and 0 when V does not divide it. */
LS_API int64_t ls_per_replica_batch_size(const ls_input_context *c, int64_t global_batch);

/* fn is called once for each pipeline. Every element of its dataset is what one replica gets in
 * one step, in replica order; nothing is split or shared out. All end together, as above; a step in
 * which a replica would have to have none of a scalar is LS_INVALID. */
typedef ls_dataset *(*ls_input_fn)(const ls_input_context *c, void *user);
LS_API ls_dist_dataset *ls_distribute_from_function(ls_strategy *s, ls_input_fn fn, void *user);

/* ---- the iterators of r2.0 ---------------------------------------------------------------------- */

/* ls_next is LS_STATE until ls_initialize, which also begins anew. */
LS_API ls_iterator *ls_make_dataset_iterator(ls_strategy *s, ls_dataset *d);
LS_API ls_status ls_initialize(ls_iterator *it);

typedef enum ls_input_replication { LS_INPUT_PER_WORKER = 0 } ls_input_replication;

/* What an input function gives: a dataset, or a function that is called once a replica and step. */
typedef struct ls_input_source {
    ls_dataset *dataset;
    ls_get_next next; /* with `state`, in replica order, never ahead; LS_END ends all. It cannot be
                       * saved, and ls_initialize goes on where it is */
    void *state;
} ls_input_source;
typedef ls_status (*ls_input_source_fn)(const ls_input_context *c, void *user,
                                        ls_input_source *out);
LS_API ls_iterator *ls_make_input_fn_iterator(ls_strategy *s, ls_input_source_fn fn, void *user,
                                              ls_input_replication mode);

/* The rows of arrays, kept once in this process; batch it and distribute it. */
LS_API ls_dataset *ls_make_numpy_dataset(ls_strategy *s, ls_value *arrays);

LS_END_DECLS

#endif
