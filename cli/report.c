/*
 * How a command ends when it cannot go on. Invariant: whatever was given, an error is one line on
 * stderr, and with --json one event on stdout.
 */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

/* So that one line stays one: what a user gave may hold anything. */
static void without_control(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

int cli_error(const cli *c, int status, ls_status code, const char *hint, const char *format, ...)
{
    char text[1024], line[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(line, sizeof line, "%s: %s%s%s", c->name, text, hint[0] ? "; " : "", hint);
    without_control(line);
    fprintf(stderr, "%s\n", line);
    if (c->json) {
        json j = json_open(stdout);
        json_text(&j, "event", "error");
        json_text(&j, "code", ls_status_name(code));
        json_text(&j, "text", text);
        json_text(&j, "hint", hint);
        json_close(&j);
    }
    return status;
}

int cli_failed(const cli *c)
{
    ls_status code = ls_error(); /* taken; text and hint stay readable */
    return cli_error(c, EXIT_FAILED, code, ls_error_hint(), "%s", ls_error_text());
}

int cli_done(const cli *c)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EXIT_DONE;
    int why = errno;
    const cli plain = { .name = c->name }; /* there is no stdout to tell it on */
    return cli_error(&plain, EXIT_FAILED, LS_IO, "", "cannot write the results: %s", strerror(why));
}
