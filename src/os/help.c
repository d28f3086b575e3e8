/*
 * See help.h. Invariant: nobody is at a part of a job when its owner returns: he waits for those
 * that others took. So a helper that has taken a part sees the job it belongs to, even if he looked
 * at an earlier one before.
 */
#include "os/help.h"

#include <stdlib.h>
#include <string.h>

#include "base/fpu.h"

static _Thread_local ls__help_member *own;

bool ls__help_open(ls__help *help, int members)
{
    const size_t bytes = (size_t)members * sizeof *help->members;
    help->members = aligned_alloc(_Alignof(ls__help_member), bytes);
    if (!help->members)
        return false;
    memset(help->members, 0, bytes);
    help->count = members;
    return true;
}

void ls__help_close(ls__help *help)
{
    free(help->members);
    *help = (ls__help){ .count = 0 };
}

ls__help_member *ls__help_join(ls__help *help, int member)
{
    ls__help_member *before = own;
    own = help->count > 0 ? &help->members[member] : NULL;
    return before;
}

void ls__help_leave(ls__help_member *before)
{
    own = before;
}

void ls__help_run(int64_t parts, ls__help_fn *fn, void *arg)
{
    ls__help_member *m = own;
    if (!m || parts < 2) {
        for (int64_t part = 0; part < parts; part++)
            fn(arg, part, 0);
        return;
    }
    int64_t mine = 0;
    m->fn = fn;
    m->arg = arg;
    ls__range_set(&m->parts, 0, parts);
    for (int64_t part; mine < parts - m->leaves && ls__range_take(&m->parts, false, &part); mine++)
        fn(arg, part, 0);
    m->given += (uint32_t)(parts - mine);
    if (mine < parts)
        ls__event_wait(&m->done, m->given, LS__SPIN_LONG);
}

/* The last part of a member's, if there is one and nobody else helps him. */
static bool help_member(ls__help_member *m)
{
    int64_t part;
    if (ls__range_left(&m->parts) < 1 || atomic_load_explicit(&m->helped, memory_order_relaxed) ||
        atomic_exchange_explicit(&m->helped, true, memory_order_acquire))
        return false;
    const bool took = ls__range_take(&m->parts, true, &part);
    if (took) {
        const uint64_t fpu = ls__fpu_enter();
        m->fn(m->arg, part, 1);
        ls__fpu_leave(fpu);
    }
    /* Before the post: after it the job may be over, and with it all but the event. */
    atomic_store_explicit(&m->helped, false, memory_order_release);
    if (took)
        ls__event_post(&m->done);
    return took;
}

static bool help_anybody(void *arg)
{
    const ls__help *help = arg;
    for (int i = 0; i < help->count; i++)
        if (help_member(&help->members[i]))
            return true;
    return false;
}

void ls__help_wait(ls__help *help, ls__event *e, uint32_t count, int spin)
{
    ls__event_wait_busy(e, count, spin, help_anybody, help);
}
