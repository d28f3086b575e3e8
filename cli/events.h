/*
 * The events of a run: JSON lines on stdout with --json, and in the file run.jsonl of the run's
 * directories, from which `lockstep plot` draws. One function an event; all write the same line
 * everywhere.
 */
#ifndef LOCKSTEP_CLI_EVENTS_H
#define LOCKSTEP_CLI_EVENTS_H

#include "session.h"

enum { EVENTS_MOST_FILES = 2 };

typedef struct events {
    const cli *cli;
    FILE *to[1 + EVENTS_MOST_FILES];
    const char *directories[1 + EVENTS_MOST_FILES]; /* of the files */
    int why[1 + EVENTS_MOST_FILES];                 /* errno of what could not be written */
    int count;
    bool json;         /* the first is stdout */
    const char *where; /* the first directory; NULL: the run is remembered instead... */
    FILE *memory;      /* ...here */
    char *text;
    size_t bytes;
} events;

/* Appends to DIR/run.jsonl of each directory that is not NULL; of a run that is not resumed it begins
 * anew. False: an error was told, *status says how it ends. */
bool events_open(const cli *c, int n, const char *const *directories, bool resumed, events *out,
                 int *status);
/* A file that could not be written is warned of. */
void events_close(events *e);

/* What was written so far, of a resumed run all of it, to be read and closed; NULL without memory. */
FILE *events_read(events *e);

typedef struct events_end {
    int64_t steps;
    double samples_per_second, seconds;
    int64_t peak_rss_bytes;
    char weights[LS_DIGEST_MAX], state[LS_DIGEST_MAX];
} events_end;

void events_start(events *e, const session *s, int64_t resumed_step);
/* `log_only`: not on stdout. */
void events_step(events *e, int64_t step, double loss, double samples_per_second, bool log_only);
void events_epoch(events *e, const session *s, int64_t epoch, int64_t step);
void events_interrupted(events *e, int64_t step, const char *signal, const char *checkpoint);
void events_done(events *e, const session *s, const events_end *end);

#endif
