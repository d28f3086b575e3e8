/* See bar_rate.h. Marks are a ring; the clock of training is the real one less `paused`. */
#include "bar_rate.h"

#define SPACING 0.25    /* seconds between marks: 128 of them see half a minute */
#define RATE_WINDOW 5.0 /* seconds that a rate is the mean of; the time left is of all marks */

void rate_init(rate *r)
{
    *r = (rate){ .test_began = -1, .in_epoch = -1 };
}

static void mark(rate *r)
{
    r->newest = (r->newest + 1) % RATE_MARKS;
    r->marks[r->newest] = r->last;
    r->n_marks += r->n_marks < RATE_MARKS;
}

/* The i-th mark back from the newest. */
static const rate_mark *mark_back(const rate *r, int i)
{
    return &r->marks[(r->newest - i + RATE_MARKS) % RATE_MARKS];
}

static void end_test(rate *r)
{
    if (r->test_began < 0)
        return;
    r->tests += r->test_seen - r->test_began;
    r->n_tests++;
    r->test_began = -1;
}

void rate_step(rate *r, const bar_facts *facts, double now)
{
    end_test(r);
    rate_mark before = r->last;
    r->last = (rate_mark){ now - r->paused, facts->run_step, facts->samples };
    if (facts->epoch != r->in_epoch) {
        r->in_epoch = facts->epoch;
        r->epoch = r->calls ? before : r->last;
        r->epoch_began = r->calls ? r->last_seen : now;
    }
    r->last_seen = now;
    if (r->calls == 0)
        r->first = r->last;
    if (r->calls == 1 && r->epoch.step == r->first.step)
        r->epoch = r->last;
    if (r->calls == 1)
        mark(r);
    r->calls += r->calls < 2;
    if (r->n_marks > 0 && r->last.time - mark_back(r, 0)->time >= SPACING)
        mark(r);
}

/* All time since what was seen last was none of training's. */
static void pause_until(rate *r, double now)
{
    r->paused += now - r->last_seen;
    r->last_seen = now;
}

void rate_test(rate *r, const bar_facts *facts, double now)
{
    if (r->test_began < 0) {
        /* Of a test alone, nobody saw when its first step began. */
        r->test_began = r->calls ? r->last_seen : now;
        r->test_from = r->calls ? 0 : facts->step;
    }
    r->test_seen = now;
    pause_until(r, now);
}

void rate_epoch(rate *r, double now)
{
    end_test(r);
    pause_until(r, now);
}

static double per_second(const rate_mark *from, const rate_mark *to, int64_t count)
{
    double seconds = to->time - from->time;
    return count > 0 && seconds > 0 ? (double)count / seconds : -1;
}

double rate_samples(const rate *r)
{
    if (r->n_marks == 0)
        return -1;
    /* The youngest mark that is old enough; of slow steps, the one before the last. */
    int i = 0;
    while (i + 1 < r->n_marks && (r->last.time - mark_back(r, i)->time < RATE_WINDOW ||
                                  mark_back(r, i)->step == r->last.step))
        i++;
    const rate_mark *from = mark_back(r, i);
    return per_second(from, &r->last, r->last.samples - from->samples);
}

double rate_epoch_samples(const rate *r)
{
    const rate_mark *from = r->epoch.step == r->last.step ? &r->first : &r->epoch;
    return per_second(from, &r->last, r->last.samples - from->samples);
}

double rate_epoch_seconds(const rate *r, double now)
{
    return r->calls ? now - r->epoch_began : -1;
}

static double steps_per_second(const rate *r)
{
    if (r->n_marks == 0)
        return -1;
    const rate_mark *from = mark_back(r, r->n_marks - 1);
    return per_second(from, &r->last, r->last.step - from->step);
}

static double left(double speed, int64_t done, int64_t all)
{
    return speed > 0 && all >= done ? (double)(all - done) / speed : -1;
}

double rate_epoch_left(const rate *r, const bar_facts *facts)
{
    return left(steps_per_second(r), facts->step, facts->steps);
}

/* One an epoch, and one at the end of a run that ends within an epoch. */
static int64_t tests_left(const bar_facts *facts)
{
    int64_t epochs = facts->epochs - facts->epoch + 1;
    if (facts->steps < 1)
        return epochs;
    int64_t steps = facts->step + facts->run_steps - facts->run_step; /* since this one began */
    int64_t begun = (steps + facts->steps - 1) / facts->steps;
    return begun < epochs ? begun : epochs;
}

double rate_run_left(const rate *r, const bar_facts *facts)
{
    double seconds = left(steps_per_second(r), facts->run_step, facts->run_steps);
    if (seconds >= 0 && r->n_tests > 0 && facts->epochs >= facts->epoch)
        seconds += (double)tests_left(facts) * r->tests / r->n_tests;
    return seconds;
}

double rate_test_left(const rate *r, const bar_facts *facts)
{
    if (r->test_began < 0 || facts->step <= r->test_from || r->test_seen <= r->test_began)
        return -1;
    double speed = (double)(facts->step - r->test_from) / (r->test_seen - r->test_began);
    return left(speed, facts->step, facts->steps);
}
