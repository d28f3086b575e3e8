/*
 * Looks at a terminal and at the environment that describes it. The locale is read from its
 * variables, never set: numbers keep their dot.
 */
#include "terminal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* What an environment variable says; "" when it is not there. */
static const char *said(const char *variable)
{
    const char *value = getenv(variable);
    return value ? value : "";
}

/* The first of these that says something decides, as in setlocale(3). */
static bool speaks_utf8(void)
{
    static const char *const variables[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *value = said(variables[i]);
        if (value[0])
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

static bool shows_colour(bool live)
{
    const char *force = said("CLICOLOR_FORCE");
    if (said("NO_COLOR")[0])
        return false;
    return live || (force[0] && strcmp(force, "0") != 0);
}

/* What is no size of a window gives `otherwise`. */
static int size_said(const char *variable, int otherwise)
{
    char *end;
    long value = strtol(said(variable), &end, 10);
    return *end || value < 1 || value > 10000 ? otherwise : (int)value;
}

void terminal_measure(terminal *t)
{
    struct winsize size = { 0 };
    if (t->file < 0)
        return;
    if (ioctl(t->file, TIOCGWINSZ, &size) != 0)
        size = (struct winsize){ 0 };
    t->columns = size.ws_col ? size.ws_col : size_said("COLUMNS", 80);
    t->rows = size.ws_row ? size.ws_row : size_said("LINES", 24);
}

terminal terminal_look(FILE *to)
{
    terminal t = { .file = fileno(to), .utf8 = speaks_utf8(), .columns = 80, .rows = 24 };
    const char *kind = said("TERM");
    t.live = t.file >= 0 && isatty(t.file) && kind[0] && strcmp(kind, "dumb") != 0;
    t.colour = shows_colour(t.live);
    terminal_measure(&t);
    return t;
}
