/*
 * Tapes. A thread has one log of calls; a tape is a range of it, so nested tapes
 * cost nothing and one tape can see the backward pass of another (or its own).
 * A pause begins a log of its own, made when a tape is opened in it: tapes inside and
 * outside of the pause never see each other's notes.
 *
 * Invariant: notes are kept while any tape of the log exists; the log holds
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
    int pauses; /* around the code it notes */
    struct tape_log *outer;
} tape_log;

static _Thread_local tape_log root;       /* outside of all pauses */
static _Thread_local int pauses;          /* around the code that runs now */
static _Thread_local tape_log *innermost; /* logs of the pauses we are in; the root is not listed */

struct ls_tape {
    const tape_log *home; /* the root log of the thread it is of; NULL once closed */
    tape_log *log;
    size_t begin;
    size_t end; /* when stopped */
    bool stopped;
};

/* The log of the code that runs now; NULL when no tape was opened in this pause. */
static tape_log *current(void)
{
    if (pauses == 0)
        return &root;
    return innermost && innermost->pauses == pauses ? innermost : NULL;
}

bool ls__tape_noting(void)
{
    const tape_log *log = current();
    return log && log->noting > 0;
}

int ls__tape_pause(void)
{
    return pauses++;
}

void ls__tape_resume(int before)
{
    pauses = before;
    while (innermost && innermost->pauses > pauses) /* goes when its last tape closes */
        innermost = innermost->outer;
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
    if (log == &root) {
        root = (tape_log){ .notes = NULL };
        return;
    }
    for (tape_log **link = &innermost; *link; link = &(*link)->outer)
        if (*link == log) {
            *link = log->outer;
            break;
        }
    free(log);
}

static tape_log *current_or_new(void)
{
    tape_log *log = current();
    if (log)
        return log;
    log = calloc(1, sizeof *log);
    if (!log) {
        ls__fail_memory("tape", sizeof *log);
        return NULL;
    }
    log->pauses = pauses;
    log->outer = innermost;
    innermost = log;
    return log;
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

ls_status ls__tape_note(const ls_op *op, const void *attrs, int n_inputs, ls_tensor *const *inputs,
                        int n_outputs, ls_tensor *const *outputs)
{
    tape_log *log = current();
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
    if (!tape->home)
        return;
    tape_log *log = tape->log;
    if (!tape->stopped)
        log->noting--;
    tape->home = NULL;
    if (--log->tapes == 0)
        forget_all(log);
}

ls_tape *ls_tape_open(void)
{
    ls_tape *tape = ls__frame_alloc(sizeof *tape);
    if (!tape)
        return NULL;
    *tape = (ls_tape){ .home = NULL };
    if (ls__frame_on_close(close_tape, tape))
        return NULL;
    tape_log *log = current_or_new();
    if (!log)
        return NULL;
    *tape = (ls_tape){ .home = &root, .log = log, .begin = log->count };
    log->tapes++;
    log->noting++;
    return tape;
}

static ls_status usable(ls_tape *tape, const char *who)
{
    if (!tape && ls_error_pending())
        return ls_error_pending();
    if (!tape)
        return ls__fail(LS_INVALID, "%s: the tape is NULL", who);
    if (!tape->home)
        return ls__hint(ls__fail(LS_STATE, "%s: the tape is closed", who),
                        "ask for gradients before ls_tape_close, in the frame that opened it");
    if (tape->home != &root)
        return ls__fail(LS_STATE, "%s: the tape belongs to another thread", who);
    return LS_OK;
}

ls_status ls_tape_stop(ls_tape *tape)
{
    ls_status st = usable(tape, "ls_tape_stop");
    if (st || tape->stopped)
        return st;
    tape->stopped = true;
    tape->end = tape->log->count;
    tape->log->noting--;
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
    *end = tape->stopped ? tape->end : tape->log->count;
    return LS_OK;
}

ls__note ls__tape_get(const ls_tape *tape, size_t index)
{
    return tape->log->notes[index];
}
