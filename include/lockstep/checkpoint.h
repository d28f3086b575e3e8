/*
 * checkpoint.h: all that a run needs to go on elsewhere, in one file.
 *
 * How to use it
 *
 * 1. Say what makes up the run, and save it now and then (a trainer, fit.h, does both):
 *
 *        ls_checkpoint c = { .size = sizeof c, .strategy = s, .n_variables = n, .variables = v,
 *                            .n_optimizers = 1, .optimizers = &adam, .input = iterator,
 *                            .model = "mine", .seed = 1 };
 *        ls_checkpoint_save_step("run", &c, step, 3);          // run/step-000001000.safetensors
 *
 * 2. In another process make the same things, and restore them:
 *
 *        char path[4096];
 *        if (ls_checkpoint_newest("run", path, sizeof path) == LS_OK)
 *            ls_checkpoint_restore(path, &c);
 *
 * What follows has the bits of a run that was never stopped. The file is one of safetensors.h: variables
 * under their own names, so that other programs find the weights, and all else under names that
 * begin with "lockstep/". It is written under another name, brought to the disk, and renamed: what
 * has the name of a checkpoint is whole, whenever the power went.
 */
#ifndef LOCKSTEP_CHECKPOINT_H
#define LOCKSTEP_CHECKPOINT_H

#include <lockstep/data.h>
#include <lockstep/optimizer.h>
#include <lockstep/strategy.h>
#include <lockstep/variable.h>

LS_BEGIN_DECLS

/* Zero means none. */
typedef struct ls_checkpoint {
    size_t size;
    ls_strategy *strategy; /* its V, P and ls_steps; NULL: the default strategy */
    int n_variables;
    ls_variable *const *variables; /* those every replica has of its own with all copies. Restoring:
                                    * more may have been saved */
    int n_optimizers;
    ls_optimizer *const *optimizers; /* slots, sums of parts, iterations, rate and schedule.
                                      * Restoring: as many as were saved, in their order, or none */
    ls_iterator *input;    /* saving: its position is taken. Restoring: it is sent there; make it of
                            * a dataset made anew, which counts no epochs that come later */
    ls_value *extra;       /* saving: a dict of tensors of yours. Restoring: set to the saved one, in
                            * the innermost frame; NULL when there was none */
    ls_status (*accept)(ls_value *extra, void *user); /* restoring: called when all else was checked
                            * and nothing has changed yet, with the saved `extra` (NULL: none); if it
                            * does not return LS_OK, nothing changes */
    void *user;
    const char *model;     /* restoring: must be the saved one (NULL: any) */
    uint64_t seed;         /* for the record */
    const char *command;   /* the same */
    const char *data;      /* the same: what the run was trained with */
} ls_checkpoint;

/* To the file `path`; or to DIRECTORY/step-NNNNNNNNN.safetensors, of which the last `keep` up to this
 * step stay (0: all); older ones are removed when the new one is on the disk. Makes the directory.
 * LS_IO: the system's reason, and all files are as before. Between steps, in cross-replica context
 * or outside. A variable's name does not begin with "lockstep/". */
LS_API ls_status ls_checkpoint_save(const char *path, const ls_checkpoint *c);
LS_API ls_status ls_checkpoint_save_step(const char *directory, const ls_checkpoint *c, int64_t step,
                                         int keep);

/* The file itself, or the newest good one of a directory; each damaged one is a warning that names
 * it (status.h: logs). LS_NOT_FOUND when there is none, LS_CORRUPT when all are damaged. */
LS_API ls_status ls_checkpoint_newest(const char *path, char *out, size_t room);

/* All is read and checked before anything changes. LS_INVALID for another model, V or P, which it
 * names; LS_NOT_FOUND and LS_SHAPE for variables that do not fit; LS_CORRUPT for damage. Another
 * math profile or version is a warning: what follows may have other bits. */
LS_API ls_status ls_checkpoint_restore(const char *path, ls_checkpoint *c);

/* What a checkpoint says of itself. Texts belong to the innermost frame. Set .size before. */
typedef struct ls_checkpoint_record {
    size_t size;
    const char *version; /* of Lockstep */
    const char *profile; /* ls_math_profile */
    const char *model, *command, *data; /* NULL: none; '?' for what was no UTF-8 */
    int replicas, pipelines; /* V and P */
    uint64_t seed;
    int64_t steps; /* ls_steps */
    bool same_bits;
} ls_checkpoint_record;
LS_API ls_status ls_checkpoint_look(const char *path, ls_checkpoint_record *out);

/* What may touch the bits of a result on this machine: "lockstep 0.1.0, oneDNN 2.6.3, avx512_core,
 * MODEL OF THE CPU (FAMILY-MODEL-STEPPING)", "no oneDNN" without it (docs/determinism.md). Lives as
 * long as the process. */
LS_API const char *ls_math_profile(void);

/* ---- digests ------------------------------------------------------------------------------------ */

#define LS_DIGEST_MAX 65

/* SHA-256 as 64 hexadecimal digits. Of the trainable variables, in order, little-endian (of one that
 * every replica has of its own all copies); of all that a checkpoint of this would hold, the record
 * aside but for ls_steps. */
LS_API ls_status ls_weights_digest(int count, ls_variable *const *variables,
                                   char out[LS_DIGEST_MAX]);
LS_API ls_status ls_state_digest(const ls_checkpoint *c, char out[LS_DIGEST_MAX]);

LS_END_DECLS

#endif
