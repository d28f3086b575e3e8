/*
 * A record of phases, in blocks that never move: room is made between steps, so that adding to it
 * neither allocates nor locks. The first `most` are kept; what came after is counted.
 */
#ifndef LS__STRATEGY_PHASE_LOG_H
#define LS__STRATEGY_PHASE_LOG_H

#include <lockstep/profile.h>
#include <stdint.h>

typedef struct ls__phase_span {
    int64_t begin, end; /* nanoseconds of ls__now */
    uint64_t what;      /* 8 x step + phase */
} ls__phase_span;

enum { LS__LOG_BLOCK = 1024 };

typedef struct ls__phase_log {
    ls__phase_span **blocks; /* pointers for all that there may be */
    int64_t room;            /* in the blocks that are there */
    int64_t count, most;
    int64_t left_out;
} ls__phase_log;

ls_status ls__phase_log_open(ls__phase_log *log, int64_t most);
void ls__phase_log_close(ls__phase_log *log); /* zeros: open or not */

/* Room for so many more, as far as they will be kept; where there is no memory for it they are left
 * out. */
void ls__phase_log_room(ls__phase_log *log, int64_t more);

void ls__phase_log_add(ls__phase_log *log, int phase, int64_t step, int64_t begin, int64_t end);

static inline const ls__phase_span *ls__phase_log_at(const ls__phase_log *log, int64_t i)
{
    return &log->blocks[i / LS__LOG_BLOCK][i % LS__LOG_BLOCK];
}

static inline ls_phase ls__span_phase(const ls__phase_span *span)
{
    return (ls_phase)(span->what & 7);
}

static inline int64_t ls__span_step(const ls__phase_span *span)
{
    return (int64_t)(span->what >> 3);
}

#endif
