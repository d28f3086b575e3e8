/*
 * What is done when Ctrl-C or SIGTERM comes, the terminal is closed, or nobody reads any more. A command
 * that has nothing to save just ends, with 130. One that watches finds a note between its steps. A
 * Ctrl-C that finds a note does not wait for anything: the process ends. Files have their names only when
 * they are complete, so nothing is half-written. Only Ctrl-C does so: a terminal that closes sends
 * SIGHUP twice, timeout(1) SIGTERM, and neither is in a hurry.
 *
 * A signal that was ignored when the command began stays so: nohup means it.
 */
#include "interrupt.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bar.h"
#include "cli.h"

static volatile sig_atomic_t came;
static char last_words[160];

static void leave(int number)
{
    (void)number;
    bar_restore();
    ssize_t written = write(STDERR_FILENO, last_words, strlen(last_words));
    (void)written; /* nobody is left to tell */
    _exit(EXIT_INTERRUPTED);
}

/* Once: of SIGPIPE there is one for every line that is written. */
static void note(int number)
{
    if (!came)
        came = number;
}

static void note_or_leave(int number)
{
    if (came)
        leave(number);
    note(number);
}

static void handle(int number, void (*handler)(int))
{
    struct sigaction before, action = { .sa_handler = handler, .sa_flags = SA_RESTART };
    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

void interrupt_leaves(void)
{
    handle(SIGINT, leave);
    handle(SIGTERM, leave);
}

void interrupt_watch(const char *name)
{
    snprintf(last_words, sizeof last_words,
             "%s: ended at once by Ctrl-C; the last checkpoint that was written is whole\n", name);
    handle(SIGINT, note_or_leave);
    handle(SIGTERM, note);
    handle(SIGHUP, note);
    handle(SIGPIPE, note);
}

const char *interrupt_came(void)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {
        { SIGINT, "Ctrl-C" }, { SIGTERM, "SIGTERM" }, { SIGHUP, "SIGHUP" }, { SIGPIPE, "SIGPIPE" }
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (came == names[i].number)
            return names[i].name;
    return NULL;
}
