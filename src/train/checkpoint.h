/*
 * The inside of checkpoints. A checkpoint is a safetensors file:
 *
 *     NAME                              a variable; of one that every replica has of its own, all of
 *                                       them combined, if it has an aggregation
 *     lockstep/copies/NAME/replica_i    replica i's of such a one
 *     lockstep/optimizers/i/...         what ls_optimizer_save gives
 *     lockstep/input                    what ls_position gives
 *     lockstep/extra/...                the program's own
 *
 * and in its notes the record, "lockstep.version" and so on. checkpoint_state.c has the tensors,
 * checkpoint_record.c the notes, checkpoint_files.c names and the search for the newest.
 */
#ifndef LS__TRAIN_CHECKPOINT_H
#define LS__TRAIN_CHECKPOINT_H

#include <lockstep/checkpoint.h>

#include "train/safetensors.h"

#define LS__CHECKPOINT_OWN "lockstep/"
#define LS__CHECKPOINT_COPIES "lockstep/copies/"
#define LS__CHECKPOINT_OPTIMIZERS "lockstep/optimizers/"
#define LS__CHECKPOINT_INPUT "lockstep/input"
#define LS__CHECKPOINT_EXTRA "lockstep/extra/"

/* LS_INVALID: what cannot be a checkpoint's. */
ls_status ls__checkpoint_check(const char *who, const ls_checkpoint *c);

/* The strategy: never NULL. */
ls_strategy *ls__checkpoint_strategy(const ls_checkpoint *c);

/* ---- checkpoint_state.c ----- */

/* All tensors of it: a dict of the innermost frame. */
ls_value *ls__checkpoint_state(const char *who, const ls_checkpoint *c);

/* The entries of such a dict whose names begin with `prefix`, without it. */
ls_value *ls__checkpoint_part(const ls_value *state, const char *prefix);

/* Variables as ls_variables_restore wants them. */
ls_value *ls__checkpoint_variables(const ls_value *state);

/* ---- checkpoint_record.c ----- */

enum { LS__CHECKPOINT_NOTES = 11 };

/* The notes of what is saved now, in memory of the innermost frame; how many. 0: an error. */
int ls__checkpoint_notes(const ls_checkpoint *c, ls_note notes[LS__CHECKPOINT_NOTES]);

/* Opens a checkpoint, whose header is whole then, and reads its notes. Close the file, also when it
 * failed. LS_CORRUPT: it is none, or damaged. LS_UNSUPPORTED: of a later Lockstep. */
ls_status ls__checkpoint_open(const char *who, const char *path, ls__safetensors *file,
                              ls_checkpoint_record *record);

/* The text with '?' for what is no UTF-8, in memory of the innermost frame. */
char *ls__as_utf8(const char *text);

/* ---- checkpoint_files.c ----- */

/* The path of a step's checkpoint, in memory of the innermost frame. */
char *ls__checkpoint_path(const char *directory, int64_t step);

/* Removes what writers left who died at it; and all but the last `keep` checkpoints up to `step`. What
 * cannot be removed is a warning. */
void ls__checkpoint_clean(const char *directory);
void ls__checkpoint_prune(const char *directory, int64_t step, int keep);

#endif
