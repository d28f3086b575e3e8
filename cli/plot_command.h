/* `lockstep plot`. */
#ifndef LOCKSTEP_CLI_PLOT_COMMAND_H
#define LOCKSTEP_CLI_PLOT_COMMAND_H

#include "cli.h"

extern const command cli_plot;

/* The plot of a run that just ended, from its log, which is closed (NULL: none): shown if stdout is a
 * terminal, and written to the directory, if there is one. Best effort: the run is done. */
void plot_at_end(const cli *c, const char *directory, FILE *log);

#endif
