/*
 * `lockstep doctor`: what this host offers and what is wrong with it, a line each: OK, WARN or FAIL, and
 * what to do. The checks are in doctor_*.c; this prints what they say. Invariant: a check never
 * ends the command: what cannot be looked at is said, too.
 */
#include "doctor.h"

#include <stdarg.h>

enum { WIDTH = 80, COLUMN = 24 };

static const char *const states[] = { "OK", "WARN", "FAIL" };
static const char *const colours[] = { "\033[32m", "\033[33m", "\033[1;31m" };

static const doctor_group *const groups[] = {
    &doctor_processor, &doctor_memory, &doctor_system, &doctor_software, &doctor_data,
};

enum { GROUPS = sizeof groups / sizeof groups[0] };

static void print_json(doctor *d, doctor_state state, const char *what, const char *text,
                       const char *to_do)
{
    json j = json_open(stdout);
    json_text(&j, "event", "check");
    json_text(&j, "group", d->group);
    json_text(&j, "check", what);
    json_text(&j, "state", states[state]);
    json_text(&j, "text", text);
    json_text(&j, "hint", to_do);
    json_close(&j);
}

void doctor_say(doctor *d, doctor_state state, const char *what, const char *to_do,
                const char *format, ...)
{
    char text[1024], hint[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(hint, sizeof hint, "%s", to_do);
    cli_without_control(text); /* from files and the environment */
    cli_without_control(hint);
    d->said[state]++;
    if (d->cli->json) {
        print_json(d, state, what, text, hint);
        return;
    }
    printf("  %s%-4s%s  %-14s  ", d->screen.colour ? colours[state] : "", states[state],
           d->screen.colour ? "\033[0m" : "", what);
    cli_fill(stdout, text, COLUMN, COLUMN, WIDTH);
    putchar('\n');
    if (hint[0]) {
        printf("%*s-> ", COLUMN, "");
        cli_fill(stdout, hint, COLUMN + 3, COLUMN + 3, WIDTH);
        putchar('\n');
    }
}

static void make_checks(doctor *d, const doctor_group *group, bool first)
{
    d->group = group->name;
    if (!d->cli->json)
        printf("%s%s%s%s\n", first ? "" : "\n", d->screen.colour ? "\033[1m" : "", group->name,
               d->screen.colour ? "\033[0m" : "");
    for (int i = 0; i < group->count; i++) {
        group->checks[i](d);
        fflush(stdout); /* one that hangs is seen */
    }
}

static void print_end(const doctor *d)
{
    if (d->cli->json) {
        json j = json_open(stdout);
        json_text(&j, "event", "end");
        json_whole(&j, "ok", d->said[DOCTOR_OK]);
        json_whole(&j, "warn", d->said[DOCTOR_WARN]);
        json_whole(&j, "fail", d->said[DOCTOR_FAIL]);
        json_close(&j);
        return;
    }
    printf("\n%d OK, %d WARN, %d FAIL\n", d->said[DOCTOR_OK], d->said[DOCTOR_WARN],
           d->said[DOCTOR_FAIL]);
}

static int run(const cli *c, void *request, int n, char **positional)
{
    (void)request, (void)n, (void)positional;
    doctor d = { .cli = c, .screen = terminal_look(stdout) };
    for (int i = 0; i < GROUPS; i++)
        make_checks(&d, groups[i], i == 0);
    print_end(&d);
    int fails = d.said[DOCTOR_FAIL];
    if (fails > 0)
        return cli_error(c, EXIT_FAILED, LS_UNSUPPORTED, "each line of them says what to do",
                         "%d check%s failed", fails, fails == 1 ? "" : "s");
    return cli_done(c);
}

const command cli_doctor = {
    .name = "doctor",
    .help = "what this host offers, and what is wrong with it",
    .about =
        "Looks at what this host offers and at what is wrong with it: cores and quotas, vector "
        "instructions, memory, limits, libraries of this build, GPUs, MPI, the data sets that "
        "train uses, a compiler for models of your own, the terminal. Each line is OK, WARN "
        "(it works, but less well, or not all of it) or FAIL (it does not work before "
        "something is done), and says what to do. Nothing is changed.\n"
        "\n"
        "The exit status is 1 if anything is FAIL. Paste the output when you ask for help.",
    .examples = "What should be done on this host:\n\n  lockstep doctor\n\n"
                "Whether anything is wrong, for a script:\n\n"
                "  lockstep doctor --json | jq -r 'select(.state == \"FAIL\").text'",
    .environment = "CC CLICOLOR_FORCE LOCKSTEP_FASHION_MNIST LOCKSTEP_ISA NO_COLOR TMPDIR",
    .run = run,
};
