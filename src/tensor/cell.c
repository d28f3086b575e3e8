/*
 * Cells. Invariant: `view` is the storage that reads of the present version
 * share (NULL: not read since the last write). While it points into the cell,
 * the cell holds one of its references; more than one means live views.
 * What changes the contents saves them in the thread's journal first.
 */
#include "tensor/cell.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "tensor/journal.h"
#include "tensor/tensor.h"

struct ls__cell {
    _Atomic int refs;
    ls__spec spec;
    uint64_t serial;
    uint64_t version;
    uint64_t id; /* identity of the value the present version holds */
    ls__storage *memory;
    _Atomic(ls__storage *) view; /* threads may read at once; a write is alone */
    ls__device *device;
    ls__journal *saved_by; /* see ls__cell_saved_by; who writes the cell sets it */
    char name[];           /* for people */
};

ls_status ls__cell_new_hollow(const char *name, const ls__spec *spec, ls__cell **out)
{
    size_t length = name ? strlen(name) : 0;
    ls__cell *cell = calloc(1, sizeof *cell + length + 1);
    if (!cell)
        return ls__fail_memory("cell", sizeof *cell + length + 1);
    atomic_init(&cell->refs, 1);
    cell->spec = *spec;
    cell->serial = ls__new_id();
    cell->id = ls__new_id();
    cell->device = ls__device_current();
    if (name)
        memcpy(cell->name, name, length);
    *out = cell;
    return LS_OK;
}

ls_status ls__cell_new(const char *name, const ls__spec *spec, ls__cell **out)
{
    ls__cell *cell;
    ls_status st = ls__cell_new_hollow(name, spec, &cell);
    if (st)
        return st;
    cell->memory = ls__storage_new("variable", ls__spec_bytes(spec));
    if (!cell->memory) {
        ls__cell_unref(cell);
        return LS_NO_MEMORY;
    }
    memset(cell->memory->data, 0, ls__spec_bytes(spec));
    *out = cell;
    return LS_OK;
}

/* The view of the present version, if others look at it too. */
static ls__storage *live_view(const ls__cell *cell)
{
    ls__storage *view = atomic_load_explicit(&cell->view, memory_order_acquire);
    return view && atomic_load_explicit(&view->refs, memory_order_acquire) > 1 ? view : NULL;
}

static void let_go_of_view(ls__cell *cell)
{
    ls__storage *view = atomic_load_explicit(&cell->view, memory_order_acquire);
    atomic_store_explicit(&cell->view, NULL, memory_order_relaxed);
    ls__storage_unref(view);
}

/* Lets go of the view of the present version; if others still look at it, they
 * get the contents to themselves first. */
static ls_status copy_out(ls__cell *cell)
{
    ls__storage *view = live_view(cell);
    if (view) {
        size_t bytes = ls__spec_bytes(&cell->spec);
        ls__storage *copy = ls__storage_new("snapshot of a variable", bytes);
        if (!copy)
            return LS_NO_MEMORY;
        memcpy(copy->data, cell->memory->data, bytes);
        view->data = copy->data;
        view->backing = copy;
    }
    let_go_of_view(cell);
    return LS_OK;
}

ls_status ls__cell_unshare(ls__cell *cell)
{
    ls_status st = ls__journal_save(cell);
    return st ? st : copy_out(cell);
}

ls_status ls__cell_settle(ls__cell *cell)
{
    return copy_out(cell);
}

ls__cell *ls__cell_ref(ls__cell *cell)
{
    atomic_fetch_add_explicit(&cell->refs, 1, memory_order_relaxed);
    return cell;
}

void ls__cell_unref(ls__cell *cell)
{
    /* acq_rel: the last one out sees what the others did with the cell. */
    if (!cell || atomic_fetch_sub_explicit(&cell->refs, 1, memory_order_acq_rel) != 1)
        return;
    ls__storage *view = atomic_load_explicit(&cell->view, memory_order_acquire);
    if (view) { /* live views may outlast the cell: they take its memory over */
        view->backing = ls__storage_ref(cell->memory);
        ls__storage_unref(view);
    }
    ls__storage_unref(cell->memory);
    free(cell);
}

bool ls__cell_is_hollow(const ls__cell *cell)
{
    return !cell->memory;
}

const char *ls__cell_name(const ls__cell *cell)
{
    return cell->name;
}

ls__device *ls__cell_device(const ls__cell *cell)
{
    return cell->device;
}

const ls__spec *ls__cell_spec(const ls__cell *cell)
{
    return &cell->spec;
}

uint64_t ls__cell_version(const ls__cell *cell)
{
    return cell->version;
}

uint64_t ls__cell_serial(const ls__cell *cell)
{
    return cell->serial;
}

const void *ls__cell_data(const ls__cell *cell)
{
    return cell->memory->data;
}

/* The view of the present version; the first of several readers makes it. */
static ls__storage *shared_view(ls__cell *cell)
{
    ls__storage *view = atomic_load_explicit(&cell->view, memory_order_acquire);
    if (view)
        return view;
    ls__storage *mine = ls__storage_wrap("reading a variable", cell->memory->data, NULL, NULL);
    if (!mine)
        return NULL;
    mine->view = true;
    /* Release pairs with the acquire above: who finds it finds it filled in. */
    if (atomic_compare_exchange_strong_explicit(&cell->view, &view, mine, memory_order_acq_rel,
                                                memory_order_acquire))
        return mine;
    ls__storage_unref(mine);
    return view;
}

ls_tensor *ls__cell_read(ls__cell *cell)
{
    ls__storage *view = shared_view(cell);
    if (!view)
        return NULL;
    return ls__handle(&cell->spec, ls__storage_ref(view), cell->id, cell->device);
}

static void next_version(ls__cell *cell)
{
    cell->version++;
    cell->id = ls__new_id();
}

void *ls__cell_write(ls__cell *cell)
{
    if (ls__cell_unshare(cell))
        return NULL;
    next_version(cell);
    return cell->memory->data;
}

void ls__cell_restore(ls__cell *cell, const void *contents)
{
    if (copy_out(cell))
        return; /* nobody reads while a step is undone, so there is no view */
    next_version(cell);
    memcpy(cell->memory->data, contents, ls__spec_bytes(&cell->spec));
}

static void swap(char *a, char *b, size_t bytes)
{
    char held[1024];
    for (size_t at = 0; at < bytes; at += sizeof held) {
        size_t n = bytes - at < sizeof held ? bytes - at : sizeof held;
        memcpy(held, a + at, n);
        memcpy(a + at, b + at, n);
        memcpy(b + at, held, n);
    }
}

void ls__cell_swap_back(ls__cell *cell, ls__storage *block, void *contents)
{
    swap(cell->memory->data, contents, ls__spec_bytes(&cell->spec));
    ls__storage *view = live_view(cell);
    if (view) {
        view->data = contents;
        view->backing = ls__storage_ref(block);
    }
    let_go_of_view(cell);
    next_version(cell);
}

ls__journal *ls__cell_saved_by(const ls__cell *cell)
{
    return cell->saved_by;
}

void ls__cell_set_saved_by(ls__cell *cell, ls__journal *journal)
{
    cell->saved_by = journal;
}
