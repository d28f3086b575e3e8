/*
 * A user's C file, compiled and opened.
 */
#ifndef LOCKSTEP_CLI_COMPILE_H
#define LOCKSTEP_CLI_COMPILE_H

#include "cli.h"

/* Compiles `source` with the system's compiler into a shared library, which is open as `*fd` and has no
 * name any more: nothing is left on the disk, whatever happens later. EXIT_DONE, or the exit status
 * of what was told. */
int compile(const cli *c, const char *source, int *fd);

#endif
