/* Options and positional arguments of one command. */
#ifndef LOCKSTEP_CLI_OPTIONS_H
#define LOCKSTEP_CLI_OPTIONS_H

#include "cli.h"

/* Reads what follows argv[0], the command's name, and runs it. argv ends with NULL, as main's. */
int cli_read_and_run(const cli *c, const command *its, int argc, char **argv);

#endif
