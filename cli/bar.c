/*
 * The progress bar: when to draw, and how to write over a line so that it is always whole.
 *
 * Invariant: while a line is on the screen, the cursor is in its first column. Then a window that
 * gets narrower may wrap it: the cursor stays at its beginning, and clearing from there clears all of
 * it. Each update is one write; the terminal is told not to wrap in it, for the window may have
 * got narrower since it was measured. Lines that stay may wrap: then nothing of them is lost.
 *
 * All is under a lock that bar_clear keeps until bar_redraw, since anybody may log on any thread.
 */
#include "bar.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bar_line.h"
#include "bar_rate.h"
#include "cli.h"

#define DRAW_EVERY 0.1          /* seconds */
#define LINE_EVERY 10.0         /* seconds between plain lines... */
#define LINE_EVERY_AT_MOST 60.0 /* ...of long epochs */

#define HOME "\r"
#define CLEAR_LINE "\033[K"
#define CLEAR_BELOW "\0337\033[B\033[J\0338" /* the lines below, and back */
#define WRAP_OFF "\033[?7l"
#define WRAP_ON "\033[?7h"

enum { NAME_BYTES = 64 };

struct bar {
    FILE *to;
    terminal screen;
    bar_options options;
    pthread_mutex_t lock;
    rate rate;
    bar_kind kind;
    bar_facts facts; /* the newest, with figures of its own */
    bar_figure figures[BAR_FIGURES];
    char names[BAR_FIGURES][NAME_BYTES];
    bool unsettled;           /* newer ones than the last line that stays */
    bool drawn;               /* a line is on the screen */
    double kept, drew, lined; /* when: the facts, a line over the old one, a line that stays */
    int drawn_columns;        /* the window's, when it was drawn */
    int pulse;
    textbuf out;
};

/* For bar_restore. */
static volatile sig_atomic_t restored_file = -1, restored_drawn;

static double monotonic(void *user)
{
    (void)user;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bar *bar_open(FILE *to, const bar_options *options)
{
    bar *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&b->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    b->to = to;
    b->options = options ? *options : (bar_options){ 0 };
    b->screen = b->options.screen ? *b->options.screen : terminal_look(to);
    if (!b->options.now)
        b->options.now = monotonic;
    rate_init(&b->rate);
    restored_drawn = 0;
    restored_file = b->screen.file;
    return b;
}

static void lock(bar *b)
{
    pthread_mutex_lock(&b->lock);
}

static void unlock(bar *b)
{
    pthread_mutex_unlock(&b->lock);
}

/* ---- writing ------------------------------------------------------------------------------ */

static void write_out(bar *b)
{
    fwrite(text_read(&b->out), 1, b->out.length, b->to);
    cli_flush(b->to);
    text_shorten(&b->out, 0);
}

static void set_drawn(bar *b, bool drawn)
{
    b->drawn = drawn;
    restored_drawn = drawn;
}

static void measure(bar *b)
{
    if (b->options.columns)
        b->screen.columns = b->options.columns(b->options.user);
    else
        terminal_measure(&b->screen);
}

/* The line of what is known now; a live one leaves the window's last column alone. */
static void add_line(bar *b, bar_kind kind, double now)
{
    bool live = b->screen.live;
    bar_view v = {
        .kind = kind,
        .facts = &b->facts,
        .plain = !live,
        .colour = live && b->screen.colour,
        .utf8 = live && b->screen.utf8,
        .columns = live ? b->screen.columns - (kind != BAR_ENDED) : 100000,
        .pulse = b->pulse,
        .seconds = rate_epoch_seconds(&b->rate, now),
        .samples_per_second =
            kind == BAR_ENDED ? rate_epoch_samples(&b->rate) : rate_samples(&b->rate),
        .left = kind == BAR_TESTS ? rate_test_left(&b->rate, &b->facts)
                                  : rate_epoch_left(&b->rate, &b->facts),
        .run_left = rate_run_left(&b->rate, &b->facts),
    };
    bar_line(&b->out, &v);
}

/* Clears what is drawn, also where a window that got narrower has wrapped it. Not as a whole, since
 * some terminals keep in their history what was on a screen that is cleared from its first line on. */
static void add_clear(bar *b)
{
    if (b->drawn)
        text_add(&b->out, HOME CLEAR_LINE CLEAR_BELOW);
}

static void draw(bar *b, double now)
{
    measure(b);
    if (b->screen.columns != b->drawn_columns)
        add_clear(b);
    text_add(&b->out, HOME WRAP_OFF);
    add_line(b, b->kind, now);
    text_add(&b->out, WRAP_ON CLEAR_LINE HOME);
    b->drawn_columns = b->screen.columns;
    b->drew = now;
    b->pulse++;
    set_drawn(b, true);
    write_out(b);
}

/* A line that stays. */
static void settle(bar *b, bar_kind kind, double now)
{
    if (b->screen.live) {
        measure(b);
        add_clear(b);
    }
    add_line(b, kind, now);
    text_add(&b->out, "\n");
    set_drawn(b, false);
    b->unsettled = false;
    b->lined = now;
    write_out(b);
}

/* ---- showing ------------------------------------------------------------------------------ */

static void keep(bar *b, bar_kind kind, const bar_facts *facts, double now)
{
    b->kind = kind;
    b->kept = now;
    b->facts = *facts;
    b->facts.figures = b->figures;
    b->facts.n_figures = facts->n_figures < BAR_FIGURES ? facts->n_figures : BAR_FIGURES;
    for (int i = 0; i < b->facts.n_figures; i++) {
        b->figures[i] = (bar_figure){ b->names[i], facts->figures[i].value };
        snprintf(b->names[i], NAME_BYTES, "%s", facts->figures[i].name);
    }
    b->unsettled = true;
}

static double line_every(const bar *b, double now)
{
    double epoch = rate_epoch_seconds(&b->rate, now) + rate_epoch_left(&b->rate, &b->facts);
    return fmin(fmax(LINE_EVERY, 0.1 * epoch), LINE_EVERY_AT_MOST);
}

static bool draw_is_due(const bar *b, double now)
{
    return !b->drawn || now - b->drew >= DRAW_EVERY;
}

bool bar_due(bar *b)
{
    if (!b)
        return false;
    lock(b);
    double now = b->options.now(b->options.user);
    bool may_line = now - b->lined >= LINE_EVERY && now - b->kept >= DRAW_EVERY;
    bool due = b->rate.calls < 2 || (b->screen.live ? draw_is_due(b, now) : may_line);
    unlock(b);
    return due;
}

void bar_show(bar *b, const bar_facts *facts)
{
    if (!b)
        return;
    lock(b);
    double now = b->options.now(b->options.user);
    bool begins = b->rate.calls == 0, first_step = b->rate.calls == 1;
    rate_step(&b->rate, facts, now);
    keep(b, BAR_TRAINS, facts, now);
    if (b->screen.live) {
        if (draw_is_due(b, now))
            draw(b, now);
    } else if (begins) {
        b->lined = now;
        b->unsettled = false;
    } else if (first_step || now - b->lined >= line_every(b, now))
        settle(b, BAR_TRAINS, now);
    unlock(b);
}

void bar_pass(bar *b, const bar_facts *facts)
{
    if (!b)
        return;
    lock(b);
    rate_step(&b->rate, facts, b->options.now(b->options.user));
    unlock(b);
}

void bar_test(bar *b, const bar_facts *facts)
{
    if (!b)
        return;
    lock(b);
    double now = b->options.now(b->options.user);
    rate_test(&b->rate, facts, now);
    keep(b, BAR_TESTS, facts, now);
    if (b->screen.live) {
        if (draw_is_due(b, now))
            draw(b, now);
    } else if (facts->step == facts->steps || now - b->lined >= LINE_EVERY)
        settle(b, BAR_TESTS, now);
    unlock(b);
}

void bar_epoch(bar *b, const bar_facts *facts)
{
    if (!b)
        return;
    lock(b);
    double now = b->options.now(b->options.user);
    keep(b, BAR_TRAINS, facts, now);
    settle(b, BAR_ENDED, now);
    rate_epoch(&b->rate, now);
    unlock(b);
}

void bar_clear(bar *b)
{
    if (!b)
        return;
    lock(b);
    if (!b->drawn)
        return;
    add_clear(b);
    set_drawn(b, false);
    write_out(b);
}

void bar_redraw(bar *b)
{
    if (!b)
        return;
    if (b->screen.live && b->unsettled)
        draw(b, b->options.now(b->options.user));
    unlock(b);
}

void bar_close(bar *b)
{
    if (!b)
        return;
    lock(b);
    if (b->unsettled)
        settle(b, b->kind, b->options.now(b->options.user));
    restored_file = -1;
    unlock(b);
    pthread_mutex_destroy(&b->lock);
    text_free(&b->out);
    free(b);
}

void bar_restore(void)
{
    if (restored_file < 0 || !restored_drawn)
        return;
    restored_drawn = 0;
    ssize_t ignored = write(restored_file, "\r\n", 2);
    (void)ignored;
}
