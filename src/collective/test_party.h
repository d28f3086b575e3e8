/*
 * For tests of communicators: a party of ranks, each a thread that does its share.
 */
#ifndef LS__COLLECTIVE_TEST_PARTY_H
#define LS__COLLECTIVE_TEST_PARTY_H

#include <lockstep/collective.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/sanitized.h"
#include "base/status.h"
#include "collective/comm.h"
#include "kernels/test_numbers.h"

enum { MOST = 32 };

enum { SLOW = LS__SANITIZED };

typedef struct party party;

/* Each rank's share of a test; its status and the text of its error are kept. */
typedef ls_status (*share)(party *p, int rank);

struct party {
    ls_comm *comm;
    int ranks;
    share share;
    void *user;
    ls_status status[MOST];
    char text[MOST][600];
};

typedef struct seat {
    party *p;
    int rank;
} seat;

static inline void *be_rank(void *user)
{
    seat *s = user;
    party *p = s->p;
    p->status[s->rank] = p->share(p, s->rank);
    snprintf(p->text[s->rank], sizeof p->text[0], "%s", ls_error_report());
    return NULL;
}

static inline void hold(party *p)
{
    pthread_t threads[MOST];
    seat seats[MOST];
    for (int r = 0; r < p->ranks; r++) {
        seats[r] = (seat){ p, r };
        assert_int_equal(pthread_create(&threads[r], NULL, be_rank, &seats[r]), 0);
    }
    for (int r = 0; r < p->ranks; r++)
        pthread_join(threads[r], NULL);
}

static inline void all_well(const party *p)
{
    for (int r = 0; r < p->ranks; r++)
        if (p->status[r])
            fail_msg("rank %d of %d: %s", r, p->ranks, p->text[r]);
}

static inline void all_failed(const party *p, ls_status status, const char *text)
{
    for (int r = 0; r < p->ranks; r++)
        if (p->status[r] != status || !strstr(p->text[r], text))
            fail_msg("rank %d of %d: %s, \"%s\"; want %s, \"%s\"", r, p->ranks,
                     ls_status_name(p->status[r]), p->text[r], ls_status_name(status), text);
}

/* ---- a series of calls ------------------------------------------------------------------- */

typedef struct series {
    int calls;
    int64_t count;
    float *last[MOST]; /* of the last all-reduce; to be freed */
    int wrong[MOST];
} series;

/* All-reduce, reduce and broadcast in turn, to different roots, of memory that is freed at once. */
static inline ls_status do_series(party *p, int rank)
{
    series *s = p->user;
    ls_status st = LS_OK;
    for (int call = 0; call < s->calls && !st; call++) {
        int root = call % p->ranks;
        float *x = malloc((size_t)s->count * sizeof *x);
        int64_t *y = malloc((size_t)s->count * sizeof *y);
        for (int64_t i = 0; i < s->count; i++) {
            x[i] = ldexpf((float)((i * 7 + rank * 13 + call) % 101) / 7, rank % 9);
            y[i] = i * (rank + 1);
        }
        st = ls_comm_all_reduce(p->comm, rank, LS_SUM, LS_F32, x, s->count);
        if (!st)
            st = ls_comm_reduce(p->comm, rank, root, LS_SUM, LS_I64, y, s->count);
        for (int64_t i = 0; i < s->count && !st && rank == root; i++)
            s->wrong[rank] += y[i] != i * p->ranks * (p->ranks + 1) / 2;
        if (!st && rank != root)
            memset(y, 0, (size_t)s->count * sizeof *y);
        if (!st)
            st = ls_comm_broadcast(p->comm, rank, root, LS_I64, y, s->count);
        for (int64_t i = 0; i < s->count && !st; i++)
            s->wrong[rank] += y[i] != i * p->ranks * (p->ranks + 1) / 2;
        free(y);
        free(s->last[rank]);
        s->last[rank] = x;
    }
    return st;
}

#endif
