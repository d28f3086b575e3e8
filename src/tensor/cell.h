/*
 * A cell is the mutable memory behind a variable (DESIGN rule D): dtype, shape
 * and a version that each write advances.
 *
 * A read is a snapshot although it is a view: the tensor it gives points into
 * the cell. A write to a cell with live views first copies the old contents
 * out for them, so a snapshot never changes and an unread cell costs no copy.
 * The cell's own memory never moves.
 */
#ifndef LS__TENSOR_CELL_H
#define LS__TENSOR_CELL_H

#include "tensor/spec.h"
#include "tensor/storage.h"

typedef struct ls__cell ls__cell;
struct ls__journal;

/* A cell with its own zeroed memory, and one reference; `name` (for people; copied) may
 * be NULL. A hollow one has no memory: it stands for a cell of another process in a
 * program that cannot run yet. */
ls_status ls__cell_new(const char *name, const ls__spec *spec, ls__cell **out);
ls_status ls__cell_new_hollow(const char *name, const ls__spec *spec, ls__cell **out);
ls__cell *ls__cell_ref(ls__cell *cell);
void ls__cell_unref(ls__cell *cell); /* the last one frees it; takes NULL */
bool ls__cell_is_hollow(const ls__cell *cell);
const char *ls__cell_name(const ls__cell *cell); /* "" without one */

const ls__spec *ls__cell_spec(const ls__cell *cell);
uint64_t ls__cell_version(const ls__cell *cell);

/* A number that no other cell of this process has or had. */
uint64_t ls__cell_serial(const ls__cell *cell);

/* A tensor of the innermost frame with what the cell holds now. All reads of
 * one version are the same value (tensor id), whichever handle holds it. */
ls_tensor *ls__cell_read(ls__cell *cell);

/* Copies live views out and saves the cell in the thread's journal (journal.h), if it has
 * one, now, so that the next ls__cell_write cannot fail. */
ls_status ls__cell_unshare(ls__cell *cell);

/* The same without a write to come: what was read of it is from now on memory of its own, so
 * that one thread may write the cell while others look at that. Nobody uses either meanwhile. */
ls_status ls__cell_settle(ls__cell *cell);

/* Starts a write: as ls__cell_unshare; advances the version and returns the
 * memory, which still holds the old contents; NULL when out of memory. The
 * caller is the only one that reads or writes the cell meanwhile. */
void *ls__cell_write(ls__cell *cell);

/* The contents, for a kernel that only reads; and for who undoes a write: the version
 * advances, since what was read meanwhile is no longer there. */
const void *ls__cell_data(const ls__cell *cell);
void ls__cell_restore(ls__cell *cell, const void *contents);

/* For the journal. As ls__cell_restore, with contents that lie in `block`; it cannot fail: what
 * the cell held lies there afterwards, and live views look at it there. */
void ls__cell_swap_back(ls__cell *cell, ls__storage *block, void *contents);

/* The innermost journal that has saved the cell, NULL: none. */
struct ls__journal *ls__cell_saved_by(const ls__cell *cell);
void ls__cell_set_saved_by(ls__cell *cell, struct ls__journal *journal);

/* The device it was made on. */
struct ls__device *ls__cell_device(const ls__cell *cell);

#endif
