/*
 * For tests of who helps whom in a strategy: work of which helpers must do all parts but the
 * first, so it ends only if a thread that waits lends a hand; and a place for the others, where
 * they stay until there is such work. They look for it at least once before they sleep, so that a
 * test of it is not a matter of luck. Where nobody helps (a single core) the owner does it all.
 */
#ifndef LS__STRATEGY_HELPED_TEST_SUPPORT_H
#define LS__STRATEGY_HELPED_TEST_SUPPORT_H

#include <time.h>

#include "strategy/strategy.h"

enum { HELPED_PARTS = 5 };

static _Atomic bool helped_begun;
static int helped_parts[2]; /* that workers did: the owner, the helper */

static inline bool helped_can_be(const ls_strategy *s)
{
    return s->spin > 0 && s->n_devices > 1;
}

/* Before the step. */
static inline void helped_reset(void)
{
    helped_begun = false;
    helped_parts[0] = helped_parts[1] = 0;
}

static void helped_part(void *arg, int64_t part, int worker)
{
    (void)arg;
    (void)part;
    helped_begun = true;
    helped_parts[worker]++;
}

/* In a kernel of the late replica. */
static inline void helped_work(const ls_strategy *s)
{
    ls__help none = { .count = 0 };
    ls__help_member *own = ls__help_join(&none, 0);
    ls__help_leave(own);
    if (own && helped_can_be(s))
        own->leaves = HELPED_PARTS - 1;
    ls__help_run(HELPED_PARTS, helped_part, NULL);
    if (own)
        own->leaves = 0;
}

/* In a kernel of another device's replica. */
static inline void helped_wait_for_work(void)
{
    while (!helped_begun)
        nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}

static inline void helped_was_done(const ls_strategy *s)
{
    assert_int_equal(helped_parts[0], helped_can_be(s) ? 1 : HELPED_PARTS);
    assert_int_equal(helped_parts[1], helped_can_be(s) ? HELPED_PARTS - 1 : 0);
}

#endif
