/*
 * Completions for bash, zsh and fish from the tables: `lockstep --completions bash` prints the script.
 * Hidden: the build calls it for what it installs.
 *
 * All three work alike: the words after `lockstep` are followed down the tables as far as they name
 * commands; there, what stands before the cursor decides between the values of an option, the options
 * (after a dash) and the positional arguments. Invariant: no text of a table is taken for shell.
 */
#include <string.h>

#include "tables.h"

/* Within single quotes, where `quote` stands for one, and `escaped` get a backslash. */
static void put_quoted(const char *text, const char *quote, const char *escaped)
{
    for (; *text; text++)
        if (*text == '\'')
            fputs(quote, stdout);
        else
            printf("%s%c", strchr(escaped, *text) ? "\\" : "", *text);
}

/* "bench allreduce" of "lockstep bench allreduce". */
static const char *below_root(const char *path)
{
    const char *first = strchr(path, ' ');
    return first ? first + 1 : "";
}

static const cli_option *option_at(const command *its, int i)
{
    return i < its->n_options ? &its->options[i] : &cli_common[i - its->n_options];
}

/* Names a table's commands (or those that stand like options) and their texts. */
static void each_entry(const command_table *table, bool like_options,
                       void (*visit)(const char *name, const char *help, void *user), void *user)
{
    for (int i = 0; i < table->count; i++) {
        const command *c = table->commands[i];
        if (c->help && (c->name[0] == '-') == like_options)
            visit(c->name, c->help, user);
    }
    if (like_options)
        visit("--help", "show a summary", user);
}

/* ---- bash --------------------------------------------------------------------------------- */

static void bash_path(const char *path, const command *its, void *user)
{
    (void)its;
    bool *any = user;
    if (strchr(path, ' ')) {
        printf("%s'%s'", *any ? " | " : "        ", path);
        *any = true;
    }
}

/* How _lockstep_reply is called for values. */
static void bash_reply(const char *values)
{
    cli_values v = cli_values_of(values);
    printf("_lockstep_reply '%s'%s%s", v.words, v.files ? " -f" : "", v.directories ? " -d" : "");
}

static void bash_values(const char *path, const command *its, void *user)
{
    (void)user;
    for (int i = 0; !its->commands && i < its->n_options; i++) {
        const cli_option *o = &its->options[i];
        if (!o->argument)
            continue;
        printf("    '%s %s') ", path, o->name);
        bash_reply(o->values);
        puts("; return ;;");
    }
}

static void bash_word(const char *name, const char *help, void *user)
{
    (void)help, (void)user;
    printf(" %s", name);
}

static void bash_arguments(const char *path, const command *its, void *user)
{
    (void)user;
    printf("    '%s') options='", path);
    if (its->commands) {
        each_entry(its->commands, true, bash_word, NULL);
        fputs("'; arguments='", stdout);
        each_entry(its->commands, false, bash_word, NULL);
        puts("' ;;");
        return;
    }
    for (int i = 0; i < its->n_options + CLI_COMMON; i++)
        printf(" %s", option_at(its, i)->name);
    cli_values v = cli_values_of(its->values);
    printf("'; arguments='%s'; kind='%s%s' ;;\n", v.words, v.files ? "-f" : "",
           v.directories ? "-d" : "");
}

static void print_bash(void)
{
    puts("# Completions of lockstep for bash, made by `lockstep --completions bash`.\n"
         "\n"
         "# _lockstep_reply WORDS [-f | -d]: words, and names of files or directories\n"
         "_lockstep_reply()\n"
         "{\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\"\n"
         "        [ -z \"${2-}\" ] || compgen \"$2\" -- \"$cur\")\n"
         "    [ -z \"${2-}\" ] || compopt -o filenames 2>/dev/null\n"
         "    return 0\n"
         "}\n"
         "\n"
         "_lockstep()\n"
         "{\n"
         "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
         "    local at=lockstep i options= arguments= kind=\n"
         "    COMPREPLY=()\n"
         "    if [ \"$cur\" = = ]; then # --name=value comes as three words\n"
         "        cur=\n"
         "    elif [ \"$prev\" = = ]; then\n"
         "        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
         "    fi\n"
         "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "        case \"$at ${COMP_WORDS[i]}\" in");
    bool any = false;
    cli_each(bash_path, &any);
    puts(") at+=\" ${COMP_WORDS[i]}\" ;;\n"
         "        *) break ;;\n"
         "        esac\n"
         "    done\n"
         "    case \"$at $prev\" in");
    cli_each(bash_values, NULL);
    puts("    esac\n"
         "    case \"$at\" in");
    cli_each(bash_arguments, NULL);
    puts("    esac\n"
         "    if [[ $cur == -* || -z $arguments$kind ]]; then\n"
         "        _lockstep_reply \"$options\"\n"
         "    else\n"
         "        _lockstep_reply \"$arguments\" $kind\n"
         "    fi\n"
         "}\n"
         "complete -F _lockstep lockstep");
}

/* ---- zsh ---------------------------------------------------------------------------------- */

static void zsh_path(const char *path, const command *its, void *user)
{
    (void)its;
    bool *any = user;
    if (strchr(path, ' ')) {
        printf("%s'%s'", *any ? "|" : "        ", path);
        *any = true;
    }
}

static void zsh_entry(const char *name, const char *help, void *user)
{
    (void)user;
    printf("            '%s:", name);
    put_quoted(help, "'\\''", "\\:");
    puts("'");
}

/* ":MODEL: _lockstep_values 'cnn gpt' -f", within single quotes. */
static void zsh_action(const char *what, const char *values)
{
    cli_values v = cli_values_of(values);
    putchar(':');
    put_quoted(what, "'\\''", "\\:");
    if (v.words[0] || v.files || v.directories)
        printf(": _lockstep_values \"%s\"%s%s", v.words, v.files ? " -f" : "",
               v.directories ? " -d" : "");
    else
        fputs(": ", stdout);
}

static void zsh_arguments(const char *path, const command *its, void *user)
{
    (void)user;
    printf("    '%s')\n", path);
    if (its->commands) {
        puts("        entries=(");
        each_entry(its->commands, false, zsh_entry, NULL);
        each_entry(its->commands, true, zsh_entry, NULL);
        puts("        )\n"
             "        _describe -t commands command entries ;;");
        return;
    }
    fputs("        _arguments -s -S :", stdout);
    for (int i = 0; i < its->n_options + CLI_COMMON; i++) {
        const cli_option *o = option_at(its, i);
        printf(" \\\n            '%s%s[", o->name, o->argument ? "=" : "");
        put_quoted(o->help, "'\\''", "\\[]:");
        putchar(']');
        if (o->argument)
            zsh_action(o->argument, o->values);
        putchar('\'');
    }
    if (its->most != 0) {
        fputs(" \\\n            '*", stdout);
        zsh_action(its->arguments ? its->arguments : "argument", its->values);
        putchar('\'');
    }
    puts(" ;;");
}

static void print_zsh(void)
{
    puts("#compdef lockstep\n"
         "# Completions of lockstep for zsh, made by `lockstep --completions zsh`.\n"
         "\n"
         "# _lockstep_values ... WORDS [-f | -d]: words, and names of files or directories\n"
         "_lockstep_values() {\n"
         "    local kind=\n"
         "    if [[ ${@[-1]} == -[fd] ]]; then\n"
         "        kind=${@[-1]}\n"
         "        set -- \"${@[1,-2]}\"\n"
         "    fi\n"
         "    compadd -- ${=@[-1]}\n"
         "    case $kind in\n"
         "    -f) _files ;;\n"
         "    -d) _files -/ ;;\n"
         "    esac\n"
         "}\n"
         "\n"
         "_lockstep() {\n"
         "    local at=lockstep\n"
         "    local -a entries\n"
         "    while (( CURRENT > 2 )); do\n"
         "        case \"$at ${words[2]}\" in");
    bool any = false;
    cli_each(zsh_path, &any);
    puts(")\n"
         "            at+=\" ${words[2]}\"\n"
         "            shift words\n"
         "            (( CURRENT-- )) ;;\n"
         "        *) break ;;\n"
         "        esac\n"
         "    done\n"
         "    case $at in");
    cli_each(zsh_arguments, NULL);
    puts("    esac\n"
         "}\n"
         "\n"
         "if [[ $funcstack[1] == _lockstep ]]; then\n"
         "    _lockstep \"$@\"\n"
         "else\n"
         "    compdef _lockstep lockstep\n"
         "fi");
}

/* ---- fish --------------------------------------------------------------------------------- */

static void fish_entry(const char *name, const char *help, void *user)
{
    const char *path = user;
    printf("complete -c lockstep -n '__lockstep_is_at %s' -a '%s' -d '", below_root(path), name);
    put_quoted(help, "\\'", "\\");
    puts("'");
}

static void fish_values(const char *values)
{
    cli_values v = cli_values_of(values);
    fputs(v.files ? " -r -F" : " -x", stdout);
    if (v.words[0] || v.directories)
        printf(" -a '%s%s%s'", v.words, v.words[0] && v.directories ? " " : "",
               v.directories ? "(__fish_complete_directories)" : "");
}

static void fish_arguments(const char *path, const command *its, void *user)
{
    (void)user;
    if (its->commands) {
        each_entry(its->commands, false, fish_entry, (void *)path);
        each_entry(its->commands, true, fish_entry, (void *)path);
        return;
    }
    for (int i = 0; i < its->n_options + CLI_COMMON; i++) {
        const cli_option *o = option_at(its, i);
        printf("complete -c lockstep -n '__lockstep_is_below %s' -l %s", below_root(path),
               o->name + strspn(o->name, "-"));
        if (o->argument)
            fish_values(o->values);
        fputs(" -d '", stdout);
        put_quoted(o->help, "\\'", "\\");
        puts("'");
    }
    cli_values v = cli_values_of(its->values);
    if (v.words[0] || v.files || v.directories) {
        printf("complete -c lockstep -n '__lockstep_is_below %s'", below_root(path));
        fish_values(its->values);
        putchar('\n');
    }
}

static void print_fish(void)
{
    puts("# Completions of lockstep for fish, made by `lockstep --completions fish`.\n"
         "\n"
         "# Whether the words after lockstep begin with these.\n"
         "function __lockstep_is_below\n"
         "    set -l words (commandline -opc)\n"
         "    set -e words[1]\n"
         "    for name in $argv\n"
         "        test \"$words[1]\" = $name; or return 1\n"
         "        set -e words[1]\n"
         "    end\n"
         "end\n"
         "\n"
         "# Whether they are these.\n"
         "function __lockstep_is_at\n"
         "    test (count (commandline -opc)) -eq (math 1 + (count $argv))\n"
         "    and __lockstep_is_below $argv\n"
         "end\n"
         "\n"
         "complete -c lockstep -f");
    cli_each(fish_arguments, NULL);
}

/* ---- the command --------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*print)(void);
} shells[] = { { "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish } };

static int run(const cli *c, void *request, int n, char **positional)
{
    (void)request, (void)n;
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++)
        if (strcmp(positional[0], shells[i].name) == 0) {
            shells[i].print();
            return cli_done(c);
        }
    return cli_error(c, EXIT_USAGE, LS_INVALID, "there are bash, zsh and fish",
                     "no completions for '%s'", positional[0]);
}

const command cli_completions = {
    .name = "--completions",
    .arguments = "SHELL",
    .about = "Prints the completions for a shell: bash, zsh or fish.",
    .values = "bash zsh fish",
    .least = 1,
    .most = 1,
    .run = run,
};
