/*
 * Threads that work together: rank r runs on the thread of device /cpu:r, pinned as a strategy's
 * devices are, and they meet where all wait for all.
 */
#ifndef LOCKSTEP_CLI_RANKS_H
#define LOCKSTEP_CLI_RANKS_H

#include <lockstep/status.h>
#include <stdbool.h>

typedef struct cli_ranks cli_ranks;

/* What one rank does; not LS_OK: an error is pending on its thread, or somebody else has failed. */
typedef ls_status cli_rank_fn(cli_ranks *ranks, int rank, void *user);

typedef struct cli_failure {
    ls_status code;
    char text[512], hint[256];
} cli_failure;

/* Calls fn for ranks 0 to n - 1 at once and waits. False: `*why` is the error of the lowest rank
 * that failed by itself. */
bool cli_ranks_run(int n, cli_rank_fn *fn, void *user, cli_failure *why);

/* Waits until all ranks have come here. False, and at once: a rank has failed and will not
 * come. What was written before is seen by all after. */
bool cli_ranks_meet(cli_ranks *ranks);

#endif
