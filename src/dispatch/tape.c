/*
 * Tapes. A thread has one log of calls; a tape is a range of it, so nested tapes
 * cost nothing and one tape can see the backward pass of another (or its own).
 *
 * Invariant: notes are kept while any tape of the thread exists; the log holds
 * handles of its own, so what it refers to outlives the frames the user closes.
 */
#include "dispatch/tape.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/status.h"
#include "tensor/tensor.h"

typedef struct tape_log {
    ls__arena arena;
    ls__note *notes;
    size_t count;
    size_t room;
    int tapes;  /* that exist */
    int noting; /* of those, how many still note */
} tape_log;

static _Thread_local tape_log the_log;

struct ls_tape {
    const tape_log *owner; /* NULL once closed */
    size_t begin;
    size_t end; /* when stopped */
    bool stopped;
};

bool ls__tape_noting(void)
{
    return the_log.noting > 0;
}

static void forget_all(tape_log *log)
{
    for (size_t i = 0; i < log->count; i++) {
        ls__note *note = &log->notes[i];
        for (int k = 0; k < note->n_inputs; k++)
            ls__storage_unref(note->inputs[k]->storage);
        for (int k = 0; k < note->n_outputs; k++)
            ls__storage_unref(note->outputs[k]->storage);
    }
    ls__arena_clear(&log->arena);
    free(log->notes);
    *log = (tape_log){ .notes = NULL };
}

static ls_tensor *own_handle(tape_log *log, const ls_tensor *t)
{
    ls_tensor *own = ls__arena_alloc(&log->arena, sizeof *own);
    if (!own)
        return NULL;
    *own = *t;
    own->kept = false;
    own->next = NULL;
    ls__storage_ref(own->storage);
    return own;
}

/* Copies handles; on failure lets go of those already made. */
static ls_tensor **own_handles(tape_log *log, int n, ls_tensor *const *from)
{
    ls_tensor **own = ls__arena_alloc(&log->arena, sizeof *own * (size_t)(n ? n : 1));
    for (int i = 0; own && i < n; i++) {
        own[i] = own_handle(log, from[i]);
        if (!own[i]) {
            while (i-- > 0)
                ls__storage_unref(own[i]->storage);
            return NULL;
        }
    }
    return own;
}

static ls_status make_room(tape_log *log)
{
    if (log->count < log->room)
        return LS_OK;
    size_t room = log->room ? 2 * log->room : 64;
    ls__note *notes = realloc(log->notes, room * sizeof *notes);
    if (!notes)
        return ls__fail_memory("tape", room * sizeof *notes);
    log->notes = notes;
    log->room = room;
    return LS_OK;
}

ls_status ls__tape_note(const ls_op *op, const void *attrs, int n_inputs,
                        ls_tensor *const *inputs, int n_outputs, ls_tensor *const *outputs)
{
    tape_log *log = &the_log;
    ls_status st = make_room(log);
    if (st)
        return st;
    void *own_attrs = NULL;
    if (op->attr_size > 0) {
        own_attrs = ls__arena_alloc(&log->arena, op->attr_size);
        if (!own_attrs)
            return LS_NO_MEMORY;
        memcpy(own_attrs, attrs, op->attr_size);
    }
    ls_tensor **in = own_handles(log, n_inputs, inputs);
    if (!in)
        return LS_NO_MEMORY;
    ls_tensor **out = own_handles(log, n_outputs, outputs);
    if (!out) {
        for (int i = 0; i < n_inputs; i++)
            ls__storage_unref(in[i]->storage);
        return LS_NO_MEMORY;
    }
    log->notes[log->count++] = (ls__note){ op, own_attrs, n_inputs, n_outputs, in, out };
    return LS_OK;
}

static void close_tape(void *object)
{
    ls_tape *tape = object;
    if (!tape->owner)
        return;
    tape_log *log = &the_log;
    if (!tape->stopped)
        log->noting--;
    tape->owner = NULL;
    if (--log->tapes == 0)
        forget_all(log);
}

ls_tape *ls_tape_open(void)
{
    ls_tape *tape = ls__frame_alloc(sizeof *tape);
    if (!tape || ls__frame_on_close(close_tape, tape))
        return NULL;
    *tape = (ls_tape){ .owner = &the_log, .begin = the_log.count };
    the_log.tapes++;
    the_log.noting++;
    return tape;
}

static ls_status usable(ls_tape *tape, const char *who)
{
    if (!tape && ls_error_pending())
        return ls_error_pending();
    if (!tape)
        return ls__fail(LS_INVALID, "%s: the tape is NULL", who);
    if (!tape->owner)
        return ls__hint(ls__fail(LS_STATE, "%s: the tape is closed", who),
                        "ask for gradients before ls_tape_close, in the frame that opened it");
    if (tape->owner != &the_log)
        return ls__fail(LS_STATE, "%s: the tape belongs to another thread", who);
    return LS_OK;
}

ls_status ls_tape_stop(ls_tape *tape)
{
    ls_status st = usable(tape, "ls_tape_stop");
    if (st || tape->stopped)
        return st;
    tape->stopped = true;
    tape->end = the_log.count;
    the_log.noting--;
    return LS_OK;
}

ls_status ls_tape_close(ls_tape *tape)
{
    ls_status st = usable(tape, "ls_tape_close");
    if (!st)
        close_tape(tape);
    return st;
}

ls_status ls__tape_range(ls_tape *tape, const char *who, size_t *begin, size_t *end)
{
    ls_status st = usable(tape, who);
    if (st)
        return st;
    *begin = tape->begin;
    *end = tape->stopped ? tape->end : the_log.count;
    return LS_OK;
}

ls__note ls__tape_get(size_t index)
{
    return the_log.notes[index];
}
