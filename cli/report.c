/*
 * How a command ends when it cannot go on. Invariant: whatever was given, an error is one line on
 * stderr, and with --json one event on stdout.
 */
#include "cli.h"

#include <stdarg.h>
#include <string.h>

void cli_without_control(char *text)
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
    cli_without_control(line);
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

/* The length of "ls_name: " at the beginning of a text; 0: it begins with something else. */
static size_t function_length(const char *text)
{
    if (strncmp(text, "ls_", 3) != 0)
        return 0;
    size_t n = 3;
    while ((text[n] >= 'a' && text[n] <= 'z') || (text[n] >= '0' && text[n] <= '9') ||
           text[n] == '_')
        n++;
    return text[n] == ':' && text[n + 1] == ' ' ? n + 2 : 0;
}

const char *cli_error_text(void)
{
    static char text[1024];
    const char *from = ls_error_text();
    size_t n = 0;
    while (*from && n < sizeof text - 1) {
        size_t name = n == 0 || text[n - 1] == ' ' ? function_length(from) : 0;
        if (name)
            from += name;
        else
            text[n++] = *from++;
    }
    text[n] = '\0';
    return text;
}

/* Whether a part of a hint speaks of C: "ls_keep", " .replicas". */
static bool for_programs(const char *part, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        bool word = i == 0 || part[i - 1] == ' ' || part[i - 1] == '(';
        if (word && (strncmp(part + i, "ls_", 3) == 0 || strncmp(part + i, "LS_", 3) == 0 ||
                     (part[i] == '.' && part[i + 1] >= 'a' && part[i + 1] <= 'z')))
            return true;
    }
    return false;
}

const char *cli_error_hint(void)
{
    static char hint[512];
    hint[0] = '\0';
    for (const char *part = ls_error_hint(); *part;) {
        size_t length = strcspn(part, ";"), used = strlen(hint);
        if (!for_programs(part, length))
            snprintf(hint + used, sizeof hint - used, "%s%.*s", used ? "; " : "", (int)length,
                     part);
        part += length;
        part += strspn(part, "; ");
    }
    return hint;
}

int cli_failed(const cli *c)
{
    return cli_failed_with(c, EXIT_FAILED);
}

int cli_failed_with(const cli *c, int status)
{
    ls_status code = ls_error(); /* taken; text and hint stay readable */
    const char *hint = code == LS_NOT_FINITE && strstr(ls_error_hint(), "rate")
                           ? "a lower --lr, or --clip 1, often helps"
                           : cli_error_hint();
    return cli_error(c, status, code, hint, "%s", cli_error_text());
}

int cli_done(const cli *c)
{
    cli_flush(stdout);
    int why = cli_not_flushed();
    if (!why && !ferror(stdout))
        return EXIT_DONE;
    const cli plain = { .name = c->name }; /* there is no stdout to tell it on */
    return cli_error(&plain, EXIT_FAILED, LS_IO, "", "cannot write the results%s%s",
                     why ? ": " : "", why ? strerror(why) : "");
}
