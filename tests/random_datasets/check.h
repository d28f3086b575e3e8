/*
 * One random dataset in all its settings, compared with the oracle and with itself.
 */
#ifndef LS__TESTS_RANDOM_DATASETS_CHECK_H
#define LS__TESTS_RANDOM_DATASETS_CHECK_H

#include "random_datasets/program.h"

/* Builds in which all takes ten times longer, or a hundred: tests do less there. */
#if defined(__has_feature) /* clang says it in this way, gcc in the other */
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#elif __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
enum { RD_DATASETS = 16 };
#elif defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
enum { RD_DATASETS = 30 };
#else
enum { RD_DATASETS = 80 };
#endif

/* That a dataset may take. One that hangs takes longer; one that hands elements from thread to thread
 * while others have the cores takes some, too. */
enum { RD_SECONDS = 100 };

/* How often what was compared was something. */
typedef struct rd_seen {
    int programs, elements, failures, shuffles, positions, splits;
    int left_out; /* programs: too long, or a library is not there */
    int codes[RD_CODES];
} rd_seen;

/* NULL, or what is wrong. `loud`: prints the program and what it should give. */
const char *rd_check(uint64_t seed, bool loud, rd_seen *seen);

/* Ends the process, with the seed printed, unless called again within so many seconds. 0: no more
 * watching. */
void rd_watch(uint64_t seed, unsigned seconds);

/* Files that caches of programs left. */
void rd_remove_caches(void);

/* Inside it. */
typedef struct rd_case {
    rd_program *p;
    rd_lines want[RD_EPOCHS];
    struct rd_memory *memory; /* what their elements are in */
    int epochs;               /* of which it is known what they give */
    rd_seen *seen;
    uint64_t state;
} rd_case;
uint64_t rd_case_draw(rd_case *c, uint64_t below);
const char *rd_wrong(const char *format, ...) LS_PRINTF(1, 2); /* the text, in a buffer */

const char *rd_check_straight(rd_case *c);  /* check.c */
const char *rd_check_known(rd_case *c);     /* check_known.c: count and text of the dataset */
const char *rd_check_positions(rd_case *c); /* check_positions.c */
const char *rd_check_split(rd_case *c);     /* check_split.c: batches over replicas */

#endif
