/* The commands around a model: training it, and what is done with a trained one. */
#ifndef LOCKSTEP_CLI_TRAINING_H
#define LOCKSTEP_CLI_TRAINING_H

#include "cli.h"

extern const command cli_train;
extern const command cli_evaluate;
extern const command cli_predict;
extern const command cli_sample;

#endif
