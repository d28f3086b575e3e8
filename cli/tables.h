/*
 * All commands at once, for those who print them: man pages and completions.
 */
#ifndef LOCKSTEP_CLI_TABLES_H
#define LOCKSTEP_CLI_TABLES_H

#include "cli.h"

extern const command cli_root; /* `lockstep` itself */

/* For main.c's table; both are hidden, and for whoever installs. */
extern const command cli_man;
extern const command cli_completions;

/* Calls visit for the root and all commands below it, each before its own: path is "lockstep bench
 * allreduce". Those that are hidden or stand like options are left out. */
typedef void cli_visit(const char *path, const command *its, void *user);
void cli_each(cli_visit *visit, void *user);

/* Calls visit for each word of a list with spaces. */
typedef void cli_word(const char *word, void *user);
void cli_each_word(const char *words, cli_word *visit, void *user);

/* What completes a value, from `values` of a table: words, and whether names of files or of
 * directories do, too. */
typedef struct cli_values {
    char words[512];
    bool files, directories;
} cli_values;
cli_values cli_values_of(const char *values); /* may be NULL */

#endif
