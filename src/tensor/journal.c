/*
 * Journals. Invariant: a cell has at most one entry in a journal, with what it held when the
 * journal's first write to it came. The marks of a cell's entries form a chain: the cell names
 * the innermost journal that saved it, that journal's entry names the next one around it.
 *
 * An entry lies at the front of the block of storage that holds what it saved, so a loop that
 * saves the same cells every step asks the system for nothing.
 */
#include "tensor/journal.h"

#include <string.h>

#include "base/status.h"
#include "tensor/tensor.h"

struct ls__journal_entry {
    ls__journal_entry *next;
    ls__cell *cell;      /* one reference */
    ls__journal *before; /* the journal that had saved the cell before, NULL: none */
    ls__storage *block;  /* the one this lies in */
};

enum { FRONT = 64 }; /* the contents begin on a cache line */
_Static_assert(sizeof(ls__journal_entry) <= FRONT, "an entry must fit before its contents");

static _Thread_local ls__journal *used;

void ls__journal_open(ls__journal *j, ls__journal *outer)
{
    atomic_init(&j->entries, NULL);
    j->outer = outer;
}

ls__journal *ls__journal_use(ls__journal *j)
{
    ls__journal *before = used;
    used = j;
    return before;
}

ls__journal *ls__journal_used(void)
{
    return used;
}

/* Release pairs with the acquire in take_all: who takes the list sees the entries filled in.
 * Entries are only pushed until then, so a head that comes back is no danger. */
static void push(ls__journal *j, ls__journal_entry *entry)
{
    entry->next = atomic_load_explicit(&j->entries, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&j->entries, &entry->next, entry,
                                                  memory_order_release, memory_order_relaxed))
        ;
}

static ls__journal_entry *take_all(ls__journal *j)
{
    return atomic_exchange_explicit(&j->entries, NULL, memory_order_acquire);
}

ls_status ls__journal_save(ls__cell *cell)
{
    if (!used || ls__cell_saved_by(cell) == used || ls__cell_is_hollow(cell))
        return LS_OK;
    size_t bytes = ls__spec_bytes(ls__cell_spec(cell));
    ls__storage *block = ls__storage_new("saving a variable before it is written", FRONT + bytes);
    if (!block)
        return LS_NO_MEMORY;
    memcpy((char *)block->data + FRONT, ls__cell_data(cell), bytes);
    ls__journal_entry *entry = block->data;
    *entry = (ls__journal_entry){ .cell = ls__cell_ref(cell),
                                  .before = ls__cell_saved_by(cell),
                                  .block = block };
    ls__cell_set_saved_by(cell, used);
    push(used, entry);
    return LS_OK;
}

/* The entry lies in the block that goes. */
static void drop(ls__journal_entry *entry)
{
    ls__cell_unref(entry->cell);
    ls__storage_unref(entry->block);
}

void ls__journal_commit(ls__journal *j)
{
    ls__journal_entry *next;
    for (ls__journal_entry *entry = take_all(j); entry; entry = next) {
        next = entry->next;
        bool goes_out = j->outer && entry->before != j->outer; /* else that has older contents */
        ls__cell_set_saved_by(entry->cell, goes_out ? j->outer : entry->before);
        if (goes_out)
            push(j->outer, entry);
        else
            drop(entry);
    }
}

void ls__journal_undo(ls__journal *j)
{
    ls__journal_entry *next;
    for (ls__journal_entry *entry = take_all(j); entry; entry = next) {
        next = entry->next;
        ls__cell_swap_back(entry->cell, entry->block, (char *)entry + FRONT);
        ls__cell_set_saved_by(entry->cell, entry->before);
        drop(entry);
    }
}
