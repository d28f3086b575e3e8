/*
 * The clocks of replicas. Sums are atomic only so that others may look at them while a step goes on:
 * a replica's are written by one thread at a time, as plain stores.
 */
#include "strategy/phases.h"

#include <stdlib.h>

#include "base/status.h"
#include "os/clock.h"
#include "os/event.h"
#include "strategy/strategy.h"

/* ---- making ------------------------------------------------------------------------------------ */

ls__phases *ls__phases_new(int replicas)
{
    const size_t bytes = sizeof(ls__phase_clock) * (size_t)replicas;
    ls__phases *p = calloc(1, sizeof *p);
    if (p)
        p->of = aligned_alloc(alignof(ls__phase_clock), bytes);
    if (!p || !p->of) {
        free(p);
        ls__fail_memory("a strategy", bytes);
        return NULL;
    }
    p->replicas = replicas;
    p->most = LS_PROFILE_MOST;
    atomic_flag_clear(&p->lock);
    for (int r = 0; r < replicas; r++)
        p->of[r] = (ls__phase_clock){ .phase = LS__NO_PHASE };
    return p;
}

void ls__phases_free(ls__phases *p)
{
    for (int r = 0; p && r < p->replicas; r++)
        ls__phase_log_close(&p->of[r].log);
    if (p) {
        ls__phase_log_close(&p->waits);
        free(p->of);
    }
    free(p);
}

/* ---- going ------------------------------------------------------------------------------------- */

static void add(_Atomic int64_t *sum, int64_t more)
{
    int64_t now = atomic_load_explicit(sum, memory_order_relaxed);
    atomic_store_explicit(sum, now + more, memory_order_relaxed);
}

static void change(ls__phase_clock *c, int phase, int64_t now)
{
    if (c->phase != LS__NO_PHASE) {
        add(&c->spent[c->phase], now - c->since);
        if (c->logged)
            ls__phase_log_add(&c->log, c->phase, c->step, c->since, now);
    }
    c->phase = phase;
    c->since = now;
}

void ls__phase_watch(void *clock, ls_phase phase)
{
    ls__phase_clock *c = clock;
    if (c->phase != (int)phase)
        change(c, phase, ls__now());
}

void ls__phases_enter(ls__phases *p, int first, int end, int phase)
{
    int64_t now = 0;
    for (int r = first; p && r < end; r++) {
        if (p->of[r].phase == phase)
            continue;
        if (!now)
            now = ls__now();
        change(&p->of[r], phase, now);
    }
}

void ls__phases_watch(void *phases, ls_phase phase)
{
    ls__phases *p = phases;
    ls__phases_enter(p, 0, p->replicas, phase);
}

int ls__phases_now(const ls__phases *p)
{
    return p ? p->of[0].phase : LS__NO_PHASE;
}

/* ---- runs, and waiting between them -------------------------------------------------------------- */

/* Phases of a run that neither meets nor replays. */
enum { A_FEW = 16 };

void ls__phases_room(ls__phases *p, int64_t more)
{
    for (int r = 0; p && p->recording && r < p->replicas; r++)
        ls__phase_log_room(&p->of[r].log, more);
}

/* Its address is another on every thread. */
static _Thread_local char me;

void ls__phases_begin(ls__phases *p, int64_t step)
{
    if (!p)
        return;
    atomic_store_explicit(&p->step, step, memory_order_relaxed);
    if (p->recording) {
        ls__phases_room(p, A_FEW);
        for (int r = 0; r < p->replicas; r++)
            p->of[r].step = step;
    }
    atomic_store_explicit(&p->runner, &me, memory_order_relaxed);
    ls__phases_enter(p, 0, p->replicas, LS_PHASE_OTHER);
}

void ls__phases_next(ls__phases *p, int64_t step)
{
    if (p)
        atomic_store_explicit(&p->step, step, memory_order_relaxed);
}

void ls__phases_end(ls__phases *p, int64_t next)
{
    if (!p)
        return;
    ls__phases_next(p, next);
    ls__phases_enter(p, 0, p->replicas, LS__NO_PHASE);
    atomic_store_explicit(&p->runner, NULL, memory_order_relaxed);
}

static const void *runner_of(const ls__phases *p)
{
    return atomic_load_explicit(&((ls__phases *)(uintptr_t)p)->runner, memory_order_relaxed);
}

/* Input that a thread gets while another runs a step keeps no replica waiting. */
ls__input_wait ls__input_wait_begin(ls__phases *p)
{
    const void *runner = p ? runner_of(p) : NULL;
    if (!p || (runner && runner != &me))
        return (ls__input_wait){ .kind = LS__WAIT_UNSEEN };
    if (!runner)
        return (ls__input_wait){ .kind = LS__WAIT_BETWEEN, .since = ls__now() };
    ls__input_wait wait = { .kind = LS__WAIT_INSIDE, .before = ls__phases_now(p) };
    ls__phases_enter(p, 0, p->replicas, LS_PHASE_INPUT);
    return wait;
}

void ls__phases_lock(ls__phases *p)
{
    for (int turn = 0; atomic_flag_test_and_set_explicit(&p->lock, memory_order_acquire); turn++)
        ls__back_off(turn);
}

void ls__phases_unlock(ls__phases *p)
{
    atomic_flag_clear_explicit(&p->lock, memory_order_release);
}

/* The step that waits for it is the next one. */
static void add_wait(ls__phases *p, int64_t since, int64_t now)
{
    atomic_fetch_add_explicit(&p->waited, now - since, memory_order_relaxed);
    ls__phases_lock(p);
    if (p->recording) {
        ls__phase_log_room(&p->waits, 1);
        ls__phase_log_add(&p->waits, LS_PHASE_INPUT,
                          atomic_load_explicit(&p->step, memory_order_relaxed), since, now);
    }
    ls__phases_unlock(p);
}

void ls__input_wait_end(ls__phases *p, ls__input_wait wait)
{
    if (wait.kind == LS__WAIT_INSIDE)
        ls__phases_enter(p, 0, p->replicas, wait.before);
    if (wait.kind == LS__WAIT_BETWEEN && !runner_of(p))
        add_wait(p, wait.since, ls__now());
}

/* ---- asking -------------------------------------------------------------------------------------- */

const char *ls_phase_name(ls_phase phase)
{
    switch (phase) {
#define NAME(name, value, text)                                                                    \
    case name:                                                                                     \
        return text;
        LS_PHASE_LIST(NAME)
#undef NAME
    }
    return "?";
}

ls_status ls_phase_seconds(const ls_strategy *s, int replica, double seconds[LS_PHASES])
{
    ls_status st = ls__check_strategy("ls_phase_seconds", s);
    if (!st && !seconds)
        st = ls__fail(LS_INVALID, "ls_phase_seconds: seconds is NULL");
    if (!st && (replica < 0 || replica >= s->replicas))
        st = ls__hint(
            ls__fail(LS_INVALID, "ls_phase_seconds: replica %d of %d", replica, s->replicas),
            "replicas are 0 to %d", s->replicas - 1);
    if (st)
        return st;
    for (int i = 0; i < LS_PHASES; i++) {
        int64_t spent =
            s->phases ? atomic_load_explicit(&s->phases->of[replica].spent[i], memory_order_relaxed)
                      : 0;
        if (s->phases && i == LS_PHASE_INPUT)
            spent += atomic_load_explicit(&s->phases->waited, memory_order_relaxed);
        seconds[i] = (double)spent / 1e9;
    }
    return LS_OK;
}
