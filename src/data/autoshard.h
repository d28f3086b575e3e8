/*
 * How several pipelines share a dataset, as a rewriting of its tree: nothing is read, but for names of
 * files that must be counted.
 */
#ifndef LS__DATA_AUTOSHARD_H
#define LS__DATA_AUTOSHARD_H

#include <lockstep/input.h>

#include "data/dataset.h"

/* What ls_with_auto_shard set, the last time; AUTO. */
ls_auto_shard ls__auto_shard_policy(const ls_dataset *d);

/* FILE, DATA or OFF: what the policy comes to. AUTO is FILE where all data come out of files that can be
 * shared out, else DATA; one line of the log says which. LS_NOT_FOUND: FILE was asked for, and there
 * are none. LS_INVALID: OFF, of a source with one state for all its iterators. */
ls_status ls__auto_shard_choose(const char *who, const ls_dataset *d, int pipelines,
                                ls_auto_shard *out);

/* FILE: the dataset as pipeline p of P has it: of the names that a reader gets, p, p + P... A shuffle of
 * the names comes behind that, so that files are shared out in the order they were given in.
 * LS_INVALID: p is none of P; or there are fewer names than pipelines, and this one would have
 * some. (One that would have none is empty, as are all when there are no names.) */
ls_dataset *ls__shard_files(const char *who, ls_dataset *d, int pipelines, int pipeline);

#endif
