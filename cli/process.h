/*
 * Reading whole files, and what other programs print.
 */
#ifndef LOCKSTEP_CLI_PROCESS_H
#define LOCKSTEP_CLI_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

/* What was read: free(at). A NUL that is not counted stands behind it. */
typedef struct cli_bytes {
    char *at;
    size_t count;
} cli_bytes;

/* 0, or an errno, and nothing is read then. */
int cli_read_file(const char *path, cli_bytes *out);

/* Runs a program, which PATH finds, without input, and waits for its end. What it prints is read: what
 * goes to stdout, or with `all` also what goes to stderr, which else is not shown. 0 and how it ended, as
 * waitpid says; or an errno, ENOENT when there is no such program. `environment` NULL: this process's.
 * Signals that are blocked here are not in the program. */
int cli_run_program(char *const *argv, char *const *environment, bool all, cli_bytes *out,
                    int *ended);

#endif
