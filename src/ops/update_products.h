/* What the ways of update_products.c share: it decides, they make gradients and apply them. */
#ifndef LS__OPS_UPDATE_PRODUCTS_H
#define LS__OPS_UPDATE_PRODUCTS_H

#include "collective/claims.h"
#include "kernels/gemm.h"
#include "ops/update.h"

/* One replica's. */
typedef struct ls__products_operand {
    const float *x, *dy;
    int64_t k;      /* rows of both */
    float *packed;  /* what `pack` of a way makes of it */
    bool has_zeros; /* x has so many that it pays to leave them out, and dy is finite */
} ls__products_operand;

typedef struct ls__products_job {
    ls__update_fn *update;
    ls__update_id kind;
    ls__update step;
    int replicas, cells, ranks;
    ls__products_operand of[LS__PRODUCTS_MOST];
    int64_t m, n, deepest; /* of the variable; the largest k */
    float *at[1 + LS__MOST_SLOTS];
    float *own;         /* of the ranks: rank after rank */
    ls__claims *claims; /* to parts of the variable */
} ls__products_job;

/* Some rows and columns of the variable. */
typedef struct ls__products_part {
    int64_t row, tall, column, wide;
} ls__products_part;

/* A way to do it: the same bits. */
typedef struct ls__products_way {
    int64_t (*packed_floats)(const ls__products_job *j, int replica);
    void (*pack)(const ls__products_job *j, int replica);
    int64_t (*own_floats)(const ls__products_job *j);      /* of a rank */
    int64_t (*parts)(const ls__products_job *j);           /* which ranks claim */
    int64_t (*apply)(const ls__products_job *j, int rank); /* how many it was */
} ls__products_way;

extern const ls__products_way ls__products_all;  /* update_products_all.c: every number of x */
extern const ls__products_way ls__products_skip; /* update_products_skip.c: those that are not 0 */

/* ---- ranks that come one by one (update_products_join.c) ------------------------------ */

enum ls__products_stage {
    LS__PRODUCTS_OPEN,  /* one part: the cells' memory for writing */
    LS__PRODUCTS_LOOK,  /* of each replica: are there zeros? */
    LS__PRODUCTS_PACK,  /* of each replica */
    LS__PRODUCTS_APPLY, /* parts of the variable */
    LS__PRODUCTS_DONE
};

typedef struct ls__products_work {
    ls__products_job j;
    const ls_call *c;
    const ls__products_way *way;
    _Atomic int stage;
    _Atomic int64_t left[LS__PRODUCTS_DONE]; /* parts that are not done */
    ls__claims claims[LS__PRODUCTS_DONE];
} ls__products_work;

/* Before any rank: parts of all stages but the last, which depends on what is seen. Who has done
 * OPEN himself begins after it. */
void ls__products_deal(ls__products_work *w, int first_stage);

/* That stage. */
ls_status ls__products_open(ls__products_work *w);

/* ---- for the ways ------------------------------------------------------------------------------- */

enum { LS__PRODUCTS_LINE = 16 }; /* floats */

/* Tiles of all replicas: the leaves of the tree are added up two by two as they are made. */
static inline int ls__products_tiles(const ls__products_job *j)
{
    return (j->replicas + 1) / 2;
}

/* Lines of the weights and slots in the first `tall` rows and `wide` columns; how many. All others
 * are some way on. */
int64_t ls__products_lines(const ls__products_job *j, int64_t tall, int64_t wide,
                           const float **lines);

/* Adds up the tiles of `apart` floats, rows of which are `ld` apart, and applies the sum. `sum` has
 * room for a row. */
void ls__products_apply(const ls__products_job *j, const ls__products_part *p, const float *tiles,
                        int64_t apart, int64_t ld, float *sum);

#endif
