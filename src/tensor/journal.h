/*
 * A journal makes writes to cells undoable: while a thread uses one, the first write to a
 * cell saves what the cell held. So a step that fails leaves every variable as it was.
 *
 *     ls__journal j;
 *     ls__journal_open(&j, outer);            // outer: the journal of the step around, or NULL
 *     before = ls__journal_use(&j);           // this thread's writes are noted...
 *     ...                                     // ...and those of other threads that use it
 *     ls__journal_use(before);
 *     ok ? ls__journal_commit(&j) : ls__journal_undo(&j);   // nobody writes meanwhile
 *
 * A committed journal's savings go to the one around it, which may still be undone. Neither
 * commit nor undo can fail. Undone cells have a new version: what was read meanwhile stays as
 * it was read.
 */
#ifndef LS__TENSOR_JOURNAL_H
#define LS__TENSOR_JOURNAL_H

#include <stdatomic.h>

#include "tensor/cell.h"

typedef struct ls__journal_entry ls__journal_entry;

typedef struct ls__journal {
    _Atomic(ls__journal_entry *) entries; /* latest first; several threads may add */
    struct ls__journal *outer;
} ls__journal;

void ls__journal_open(ls__journal *j, ls__journal *outer);

/* The calling thread's; NULL: writes are final. Returns the one before. */
ls__journal *ls__journal_use(ls__journal *j);
ls__journal *ls__journal_used(void);

void ls__journal_commit(ls__journal *j);
void ls__journal_undo(ls__journal *j);

/* For who is about to write a cell: saves it if this thread's journal has not yet. A cell has
 * one writer at a time, and nobody writes it through an outer journal while an inner one that
 * saved it is open. LS_NO_MEMORY: the cell must not be written. */
ls_status ls__journal_save(ls__cell *cell);

#endif
