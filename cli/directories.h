/*
 * Whether what a command is to write can be written, found out before it works for hours. Each tells
 * what is wrong and gives an exit status, EXIT_DONE when nothing is; NULL as path is nothing to write.
 */
#ifndef LOCKSTEP_CLI_DIRECTORIES_H
#define LOCKSTEP_CLI_DIRECTORIES_H

#include "cli.h"

/* Makes the directory, with all above it. `option` names it to the user: "--log". */
int check_directory(const cli *c, const char *option, const char *path);

/* That a file of that path can be made. */
int check_file(const cli *c, const char *option, const char *path);

/* A new run begins in a directory: checkpoints, logs and plot of an earlier one there are moved to
 * DIRECTORY/earlier-N, and a line says so. Nothing is lost, who resumes later goes on with the new
 * run, and TensorBoard shows the earlier one as a run of its own. */
int set_earlier_aside(const cli *c, const char *directory);

#endif
