/* A run of `lockstep train`, from what its command line asked for. */
#ifndef LOCKSTEP_CLI_TRAIN_RUN_H
#define LOCKSTEP_CLI_TRAIN_RUN_H

#include "session.h"

typedef struct train_request {
    session_request session; /* the first, so that its options have the same offsets */
    const char *checkpoint, *init, *log, *profile;
    int64_t every, keep; /* 0: not given */
    bool resume;
    double minutes;
} train_request;

/* An exit status. */
int train_run(const cli *c, train_request *r);

#endif
