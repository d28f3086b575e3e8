/*
 * Man pages from the tables: `lockstep --man` prints lockstep(1) as roff, `lockstep --man bench
 * allreduce` that of a command, `lockstep --man --list` the names of all pages, `--man --options` every
 * option there is. Hidden: the build calls it for what it installs, and the tests.
 *
 * Written directly rather than through scdoc or help2man: there is nothing more to install, and a
 * page cannot differ from the table. Only macros that man(7) has everywhere are used. Invariant: no text of a table is taken for roff:
 * what could be a request, an escape or a typographic quote is escaped.
 */
#include <ctype.h>
#include <lockstep.h>
#include <string.h>

#include "tables.h"

static const struct {
    const char *name, *text;
} variables[] = {
    { "CC",
      "The compiler of models in FILE.c, with options if you like; else it is the first of cc, "
      "gcc and clang." },
    { "CLICOLOR_FORCE", "If it is set and not 0, colours are used where no terminal is, too." },
    { "LOCKSTEP_FASHION_MNIST", "The directory with the four files of Fashion-MNIST; else it is "
                                "where Debian's package dataset-fashion-mnist puts them." },
    { "LOCKSTEP_ISA",
      "One of base, avx2 and avx512: later instructions are not used. All give the same bits." },
    { "NO_COLOR", "If it is set and not empty, nothing is coloured." },
    { "TMPDIR", "Where temporary files are made; else it is /tmp." },
};

enum { VARIABLES = sizeof variables / sizeof variables[0] };

static const struct {
    int status;
    const char *text;
} states[] = {
    { EXIT_DONE, "Done." },
    { EXIT_FAILED, "The work failed." },
    { EXIT_USAGE, "The command line or a file was wrong; one line says what, and what to do." },
    { EXIT_CLUSTER, "A worker or the cluster failed." },
    { EXIT_INTERRUPTED, "Ended by Ctrl-C or SIGTERM, after saving what there was to save." },
};

/* ---- roff --------------------------------------------------------------------------------- */

static void put(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        switch (text[i]) {
        case '\\':
            fputs("\\e", stdout);
            break;
        case '-':
            fputs("\\-", stdout);
            break; /* can be copied as it is typed */
        case '\'':
            fputs("\\(aq", stdout);
            break;
        case '`':
            fputs("\\(ga", stdout);
            break;
        case '^':
            fputs("\\(ha", stdout);
            break;
        case '~':
            fputs("\\(ti", stdout);
            break;
        case '.':
            fputs(i == 0 ? "\\&." : ".", stdout); /* no request */
            break;
        default:
            putchar(text[i]);
        }
    }
}

static void put_all(const char *text)
{
    put(text, strlen(text));
}

/* "--data FILES": what is typed bold, what it stands for in italics. */
static void put_usage(const char *text)
{
    for (size_t length; *text; text += length) {
        length = strspn(text, "-ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
        if (length == 0) {
            put(text, length = 1);
            continue;
        }
        fputs(isupper((unsigned char)text[0]) ? "\\fI" : "\\fB", stdout);
        put(text, length);
        fputs("\\fR", stdout);
    }
}

/* A text of cli.h's kind: paragraphs are filled, lines that begin with a space are not. */
static void put_text(const char *text)
{
    typedef enum { NOTHING, FILLED, AS_IS } kind;
    kind in = NOTHING;
    bool any = false; /* a heading does as the first paragraph */
    while (*text) {
        size_t length = strcspn(text, "\n");
        kind now = length == 0 ? NOTHING : text[0] == ' ' ? AS_IS : FILLED;
        if (in == AS_IS && now != AS_IS)
            puts(".RE\n.fi");
        if (now != NOTHING && now != in && any)
            puts(".PP");
        if (now == AS_IS && in != AS_IS)
            puts(".nf\n.RS 4");
        any = true;
        size_t skip = now == AS_IS ? strspn(text, " ") : 0;
        skip = skip > 2 ? 2 : skip; /* .RS has indented it */
        if (length > 0) {
            put(text + skip, length - skip);
            putchar('\n');
        }
        in = now;
        text += length + (text[length] == '\n');
    }
    if (in == AS_IS)
        puts(".RE\n.fi");
}

static int as_it_is(int character)
{
    return character;
}

/* "lockstep bench" as the name of its page. */
static void put_page_name(const char *path, int (*letter)(int))
{
    for (; *path; path++) {
        char c = *path == ' ' ? '-' : (char)letter((unsigned char)*path);
        put(&c, 1);
    }
}

/* ---- sections ------------------------------------------------------------------------------- */

static void put_option(const char *name, const char *argument, const char *help,
                       const char *expected)
{
    puts(".TP");
    put_usage(name);
    if (argument) {
        putchar(' ');
        put_usage(argument);
    }
    putchar('\n');
    put_all(help);
    if (expected) {
        fputs("\n.br\nValue: ", stdout);
        put_all(expected);
    }
    putchar('\n');
}

static void put_commands(const command_table *table, bool like_options)
{
    for (int i = 0; i < table->count; i++) {
        const command *c = table->commands[i];
        if (c->help && (c->name[0] == '-') == like_options)
            put_option(c->name, c->arguments, c->help, NULL);
    }
}

static void put_options(const command *its)
{
    puts(".SH OPTIONS");
    if (its->commands) {
        put_commands(its->commands, true);
        put_option("--help", NULL, "show a summary; each command has one of its own", NULL);
        return;
    }
    if (its->n_options > 0)
        puts("Defaults stand in brackets.");
    bool grouped = false;
    for (int i = 0; i < its->n_options; i++) {
        const cli_option *o = &its->options[i];
        if (o->group) {
            fputs(".SS ", stdout);
            put_all(o->group);
            putchar('\n');
            grouped = true;
        }
        put_option(o->name, o->argument, o->help, o->expected);
    }
    if (grouped)
        puts(".SS Common options");
    for (int i = 0; i < CLI_COMMON; i++)
        put_option(cli_common[i].name, NULL, cli_common[i].help, NULL);
}

/* `user` counts those that are not in the list. */
static void put_variable(const char *name, void *user)
{
    ++*(int *)user;
    for (int i = 0; i < VARIABLES; i++)
        if (strcmp(variables[i].name, name) == 0) {
            --*(int *)user;
            fputs(".TP\n\\fB", stdout);
            put_all(name);
            fputs("\\fR\n", stdout);
            put_all(variables[i].text);
            putchar('\n');
        }
}

static void put_exit_states(void)
{
    puts(".SH EXIT STATUS");
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        printf(".TP\n\\fB%d\\fR\n", states[i].status);
        put_all(states[i].text);
        putchar('\n');
    }
}

typedef struct others {
    const char *than;
    bool any;
} others;

/* How much of a path is the command above. */
static size_t above(const char *path)
{
    const char *last = strrchr(path, ' ');
    return last ? (size_t)(last - path) : 0;
}

/* The root, the command above, those beside and those below. */
static void see_also(const char *path, const command *its, void *user)
{
    (void)its;
    others *o = user;
    size_t mine = strlen(o->than), shared = 0;
    while (path[shared] && path[shared] == o->than[shared])
        shared++;
    bool is_above = !path[shared] && (above(path) == 0 || strlen(path) == above(o->than));
    bool is_beside = above(path) == above(o->than) && shared >= above(path);
    bool is_below = above(path) == mine && shared == mine;
    if (strcmp(path, o->than) == 0 || !(is_above || is_beside || is_below))
        return;
    fputs(o->any ? ",\n\\fB" : "\\fB", stdout);
    put_page_name(path, as_it_is);
    fputs("\\fR(1)", stdout);
    o->any = true;
}

static void put_synopsis(const char *path, const command *its)
{
    fputs(".SH SYNOPSIS\n", stdout);
    fputs("\\fB", stdout);
    put_all(path);
    fputs("\\fR ", stdout);
    if (its->commands || its->arguments) {
        put_usage(its->commands ? "COMMAND" : its->arguments);
        putchar(' ');
    }
    puts("[\\fIOPTION\\fR]...");
}

/* False: the page lacks what the table promises. */
static bool put_page(const char *path, const command *its)
{
    int unknown = 0;
    fputs(".TH \"", stdout);
    put_page_name(path, toupper);
    printf("\" 1 \"\" \"Lockstep %s\" \"Lockstep Manual\"\n.nh\n.ad l\n.SH NAME\n", ls_version());
    put_page_name(path, as_it_is);
    fputs(" \\- ", stdout);
    put_all(its->help);
    putchar('\n');
    put_synopsis(path, its);
    puts(".SH DESCRIPTION");
    put_text(its->about ? its->about : its->commands ? its->commands->what : its->help);
    if (its->commands) {
        puts(".SH COMMANDS");
        put_commands(its->commands, false);
    }
    put_options(its);
    put_exit_states();
    if (its->files) {
        puts(".SH FILES");
        put_text(its->files);
    }
    if (its->environment) {
        puts(".SH ENVIRONMENT");
        cli_each_word(its->environment, put_variable, &unknown);
    }
    if (its->examples) {
        puts(".SH EXAMPLES");
        put_text(its->examples);
    }
    puts(".SH SEE ALSO");
    others o = { .than = path };
    cli_each(see_also, &o);
    putchar('\n');
    return unknown == 0;
}

/* ---- the command -------------------------------------------------------------------------- */

typedef struct request {
    bool list, options;
} request;

typedef struct wanted {
    char path[128];
    bool found, whole;
} wanted;

static void print_if_wanted(const char *path, const command *its, void *user)
{
    wanted *w = user;
    if (strcmp(path, w->path) != 0)
        return;
    w->whole = put_page(path, its);
    w->found = true;
}

static void print_name(const char *path, const command *its, void *user)
{
    (void)its, (void)user;
    for (; *path; path++)
        putchar(*path == ' ' ? '-' : *path);
    putchar('\n');
}

static void print_options(const char *path, const command *its, void *user)
{
    (void)user;
    for (int i = 0; !its->commands && i < its->n_options + CLI_COMMON; i++)
        printf("%s %s\n", path,
               i < its->n_options ? its->options[i].name : cli_common[i - its->n_options].name);
}

static int run(const cli *c, void *request_, int n, char **positional)
{
    const request *r = request_;
    if (r->list || r->options) {
        cli_each(r->list ? print_name : print_options, NULL);
        return cli_done(c);
    }
    wanted w = { .path = "lockstep" };
    size_t used = strlen(w.path);
    for (int i = 0; i < n && used < sizeof w.path; i++)
        used += (size_t)snprintf(w.path + used, sizeof w.path - used, " %s", positional[i]);
    cli_each(print_if_wanted, &w);
    if (!w.found)
        return cli_error(c, EXIT_USAGE, LS_INVALID, "'lockstep --man --list' lists the pages",
                         "there is no page of '%s'", w.path);
    if (!w.whole)
        return cli_error(c, EXIT_FAILED, LS_NOT_FOUND, "add it to the list in cli/man.c",
                         "a variable in the environment of '%s' is not described", w.path);
    return cli_done(c);
}

static const cli_option options[] = {
    { "--list", .help = "the names of all pages", .at = offsetof(request, list) },
    { "--options", .help = "all options of all commands", .at = offsetof(request, options) },
};

const command cli_man = {
    .name = "--man",
    .arguments = "[COMMAND]...",
    .about = "Prints the manual page of a command as roff.",
    .most = -1,
    CLI_OPTIONS(options),
    .request_bytes = sizeof(request),
    .run = run,
};
