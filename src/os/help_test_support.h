/*
 * For tests of what is helped with (os/help.h): helpers that come for every part, whatever else the
 * machine is busy with. With `leaves` of its owner's member a job is not done without them, so a
 * test need not be lucky to see them at work.
 *
 *     crew c;
 *     crew_begin(&c, &help, 2);
 *     ...
 *     crew_end(&c);
 */
#ifndef LS__OS_HELP_TEST_SUPPORT_H
#define LS__OS_HELP_TEST_SUPPORT_H

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "os/help.h"

enum { MOST_CREW = 2 };

typedef struct crew {
    ls__help *help;
    ls__event pulse;
    _Atomic bool over;
    int count;
    pthread_t helpers[MOST_CREW], heart;
} crew;

/* Waits for pulse after pulse, until it is over. */
static void *crew_helps(void *arg)
{
    crew *c = arg;
    for (uint32_t n = 1; !c->over; n++)
        ls__help_wait(c->help, &c->pulse, n, LS__SPIN_SHORT);
    return NULL;
}

/* Who has fallen asleep looks again. */
static void *crew_beats(void *arg)
{
    crew *c = arg;
    while (!c->over) {
        ls__event_post(&c->pulse);
        nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
    }
    ls__event_post_many(&c->pulse, 1u << 30);
    return NULL;
}

static inline void crew_begin(crew *c, ls__help *help, int count)
{
    *c = (crew){ .help = help, .count = count };
    bool begun = !pthread_create(&c->heart, NULL, crew_beats, c);
    for (int i = 0; i < count; i++)
        begun = begun && !pthread_create(&c->helpers[i], NULL, crew_helps, c);
    if (!begun)
        abort();
}

static inline void crew_end(crew *c)
{
    c->over = true;
    for (int i = 0; i < c->count; i++)
        pthread_join(c->helpers[i], NULL);
    pthread_join(c->heart, NULL);
}

#endif
