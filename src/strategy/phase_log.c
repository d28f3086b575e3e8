/*
 * Blocks of phases.
 */
#include "strategy/phase_log.h"

#include <stdlib.h>

#include "base/status.h"

ls_status ls__phase_log_open(ls__phase_log *log, int64_t most)
{
    const size_t blocks = (size_t)(most / LS__LOG_BLOCK) + 1;
    *log = (ls__phase_log){ .blocks = calloc(blocks, sizeof *log->blocks), .most = most };
    return log->blocks ? LS_OK : ls__fail_memory("a profile", blocks * sizeof *log->blocks);
}

void ls__phase_log_close(ls__phase_log *log)
{
    for (int64_t i = 0; i < log->room; i += LS__LOG_BLOCK)
        free(log->blocks[i / LS__LOG_BLOCK]);
    free(log->blocks);
    *log = (ls__phase_log){ .blocks = NULL };
}

void ls__phase_log_room(ls__phase_log *log, int64_t more)
{
    const int64_t want = more < log->most - log->count ? log->count + more : log->most;
    while (log->room < want) {
        ls__phase_span *block = malloc(LS__LOG_BLOCK * sizeof *block);
        if (!block)
            return;
        log->blocks[log->room / LS__LOG_BLOCK] = block;
        log->room += LS__LOG_BLOCK;
    }
}

void ls__phase_log_add(ls__phase_log *log, int phase, int64_t step, int64_t begin, int64_t end)
{
    if (log->count >= log->room || log->count >= log->most || log->left_out) {
        log->left_out++;
        return;
    }
    log->blocks[log->count / LS__LOG_BLOCK][log->count % LS__LOG_BLOCK] =
        (ls__phase_span){ begin, end, (uint64_t)step << 3 | (uint64_t)phase };
    log->count++;
}
