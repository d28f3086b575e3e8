/*
 * Frames: a stack per thread. Invariant: a handle is in exactly one frame's list
 * (or in none when kept), and its frame's arena holds its memory. Closing marks
 * handles dead before their memory is used again, so that most uses of a tensor
 * after its frame are caught and named.
 */
#include "os/thread.h"
#include "tensor/tensor.h"

#include <stdlib.h>

typedef struct on_close {
    void (*fn)(void *);
    void *object;
    struct on_close *next;
} on_close;

struct ls__frame {
    ls__arena arena;
    ls_tensor *handles;
    on_close *hooks;
    ls__frame *outer;
    int depth;
};

static _Thread_local ls__frame *innermost;
/* Where new things go: the innermost frame, or one around it (ls__frame_aim). */
static _Thread_local ls__frame *target;
static _Thread_local ls__frame *spare; /* closed frames, to be used again */

static void thread_end(void);

static ls__frame *push(void)
{
    ls__frame *frame = spare;
    if (frame)
        spare = frame->outer;
    else
        frame = calloc(1, sizeof *frame);
    if (!frame) {
        ls__fail_memory("frame", sizeof *frame);
        return NULL;
    }
    frame->outer = innermost;
    frame->depth = innermost ? innermost->depth + 1 : 0;
    innermost = target = frame;
    return frame;
}

/* The root frame of a thread is made when first needed. */
static ls__frame *current(void)
{
    if (target)
        return target;
    ls__at_thread_end(thread_end);
    return push();
}

static void pop(void)
{
    ls__frame *frame = innermost;
    while (frame->hooks) {
        on_close *hook = frame->hooks;
        frame->hooks = hook->next;
        hook->fn(hook->object);
    }
    for (ls_tensor *t = frame->handles; t; t = t->next) {
        t->live = LS__DEAD;
        ls__storage_unref(t->storage);
    }
    frame->handles = NULL;
    ls__arena_clear(&frame->arena);
    innermost = target = frame->outer;
    frame->outer = spare;
    spare = frame;
}

static void thread_end(void)
{
    while (innermost)
        pop();
    while (spare) {
        ls__frame *next = spare->outer;
        free(spare);
        spare = next;
    }
    ls__arena_thread_end();
    ls__storage_thread_end();
}

int ls_frame_open(void)
{
    if (!current())
        return -1;
    ls__frame *frame = push();
    return frame ? frame->depth : -1;
}

ls_status ls_frame_close(int depth)
{
    int open = innermost ? innermost->depth : 0;
    if (depth < 1 || depth > open)
        return ls__hint(ls__fail(LS_STATE, "ls_frame_close: no open frame %d; %d are open", depth,
                                 open),
                        "close each frame once, with the number ls_frame_open gave");
    ls_status status = LS_OK;
    if (depth < open)
        status = ls__hint(
            ls__fail(LS_STATE, "ls_frame_close: frame %d closed while %d inside it was open",
                     depth, open),
            "close inner frames first; LS_FRAME does it for you");
    while (innermost->depth >= depth)
        pop();
    return status;
}

void *ls__frame_alloc(size_t bytes)
{
    ls__frame *frame = current();
    return frame ? ls__arena_alloc(&frame->arena, bytes) : NULL;
}

char *ls__frame_string(const char *text)
{
    ls__frame *frame = current();
    return frame ? ls__arena_string(&frame->arena, text) : NULL;
}

ls_status ls__frame_on_close(void (*fn)(void *), void *object)
{
    ls__frame *frame = current();
    on_close *hook = frame ? ls__arena_alloc(&frame->arena, sizeof *hook) : NULL;
    if (!hook)
        return LS_NO_MEMORY;
    *hook = (on_close){ fn, object, frame->hooks };
    frame->hooks = hook;
    return LS_OK;
}

ls__frame *ls__frame_aim(int up)
{
    ls__frame *before = current();
    for (ls__frame *frame = innermost; frame && up >= 0; up--, frame = frame->outer)
        target = frame;
    return before;
}

void ls__frame_aim_back(ls__frame *before)
{
    target = before;
}

ls_tensor *ls__handle(const ls__spec *spec, ls__storage *storage, uint64_t id, ls__device *device)
{
    ls__frame *frame = current();
    ls_tensor *t = frame ? ls__arena_alloc(&frame->arena, sizeof *t) : NULL;
    if (!t) {
        ls__storage_unref(storage);
        return NULL;
    }
    *t = (ls_tensor){ .live = LS__LIVE,
                      .spec = *spec,
                      .storage = storage,
                      .id = id,
                      .device = device,
                      .next = frame->handles };
    frame->handles = t;
    return t;
}

static ls_tensor *hand_up(const ls_tensor *t)
{
    ls__frame *before = ls__frame_aim(1);
    ls_tensor *up = ls__same_value(t);
    ls__frame_aim_back(before);
    return up;
}

ls_tensor *ls_hand_up(ls_tensor *t)
{
    return ls__check_tensor("ls_hand_up", "t", t) ? NULL : hand_up(t);
}

ls_tensor *ls_keep(ls_tensor *t)
{
    if (ls__check_tensor("ls_keep", "t", t))
        return NULL;
    ls_tensor *kept = malloc(sizeof *kept);
    if (!kept) {
        ls__fail_memory("ls_keep", sizeof *kept);
        return NULL;
    }
    *kept = *t;
    kept->kept = true;
    kept->next = NULL;
    kept->sparse_rows = t->sparse_rows ? ls_keep(t->sparse_rows) : NULL;
    if (t->sparse_rows && !kept->sparse_rows) {
        free(kept);
        return NULL;
    }
    ls__storage_ref(kept->storage);
    return kept;
}

void ls_drop(ls_tensor *kept)
{
    if (!kept)
        return;
    if (kept->live != LS__LIVE || !kept->kept) {
        ls__hint(ls__fail(LS_INVALID, "ls_drop: this tensor was not kept with ls_keep"),
                 "tensors of a frame go with it");
        return;
    }
    ls_drop(kept->sparse_rows);
    kept->live = LS__DEAD;
    ls__storage_unref(kept->storage);
    free(kept);
}
