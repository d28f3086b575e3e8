/*
 * What is done when Ctrl-C or SIGTERM comes, the terminal is closed, or nobody reads any more. The first only leaves a note, which the command looks at
 * between steps. The second does not wait for anything: the process ends with 130. Files have their
 * names only when they are complete, so nothing is half-written.
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

static void note(int number)
{
    if (!came) {
        came = number;
        return;
    }
    bar_restore();
    ssize_t written = write(STDERR_FILENO, last_words, strlen(last_words));
    (void)written; /* nobody is left to tell */
    _exit(EXIT_INTERRUPTED);
}

static void note_once(int number)
{
    if (!came)
        came = number;
}

void interrupt_watch(const char *name)
{
    snprintf(
        last_words, sizeof last_words,
        "%s: ended at once by a second signal; the last checkpoint that was written is whole\n",
        name);
    struct sigaction action = { .sa_handler = note, .sa_flags = SA_RESTART };
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    action.sa_handler = note_once; /* every line that is written would be one */
    sigaction(SIGPIPE, &action, NULL);
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
