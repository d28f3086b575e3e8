/* `lockstep plot`. */
#ifndef LOCKSTEP_CLI_PLOT_COMMAND_H
#define LOCKSTEP_CLI_PLOT_COMMAND_H

#include "cli.h"

extern const command cli_plot;

#endif
