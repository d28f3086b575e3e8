/*
 * Batches whose rows are copied by who looks at them first: of a step's batch each replica copies its own rows, on
 * its core, where they are wanted next. Rows are where they came from until then: in memory that one storage has.
 *
 *     ls__storage *s = ls__gathered_new(128, 784, source);
 *     ls__gathered_put(s, row, data);                          // for all of them
 *     ls__gathered_part(s, s->data + 64 * 784, 64 * 784);    // what one replica gets
 *
 * Only stages that look at elements as tensors, or not at all, get such batches: see LS__STAGE_HANDS_ON.
 */
#ifndef LS__DATA_GATHERED_H
#define LS__DATA_GATHERED_H

#include "tensor/storage.h"

/* Up to `rows` rows of `bytes` each, that are in `source`, which is counted. NULL: out of memory. */
ls__storage *ls__gathered_new(int64_t rows, size_t bytes, ls__storage *source);

/* Row `row`; those before it are there. */
void ls__gathered_put(ls__storage *s, int64_t row, const void *data);

/* Whether the batch's next row can be left where it is, in `source`. */
bool ls__gathered_takes(const ls__storage *s, const ls__storage *source);

/* What is `bytes` bytes from `data` on of a storage that waits to be filled, with the caller's reference on it (also
 * when that fails): the storage itself, or a part of it. Whole rows of a batch wait to be looked at by themselves;
 * nobody looks at the batch then. NULL: out of memory. */
ls__storage *ls__gathered_part(ls__storage *s, const void *data, size_t bytes);

#endif
