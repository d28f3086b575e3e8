/*
 * Packs: how the tensors of one reduction are grouped. Each pack is moved on its own. Pure: sizes
 * in, lists out. Every element is in exactly one pack, no pack and no piece is empty, and the borders
 * depend on sizes and order alone, so every rank finds the same ones. Bits do not depend on them.
 *
 *     tensors of 4, 5 and 1 elements
 *     num_packs 3         [a a a] [a b b] [b b b c]        3, 3, 4 elements: a tensor may be cut
 *     bytes_per_pack 12   [c b] [a]                        f32: last to first, whole tensors
 *     nothing             [a b c]
 */
#ifndef LS__COLLECTIVE_PACKS_H
#define LS__COLLECTIVE_PACKS_H

#include <lockstep/tensor.h>

/* As in ls_mirrored_options; all 0: one pack. */
typedef struct ls__packing {
    int num_packs;
    int64_t bytes_per_pack;
    int64_t small_bytes;
    int small_group;
} ls__packing;

/* Whether there may be more than one. */
static inline bool ls__packing_asked(const ls__packing *p)
{
    return p->num_packs || p->bytes_per_pack || p->small_bytes;
}

enum { LS__MOST_PACKS = 65536 };

/* LS_INVALID for what makes no sense; `who` begins the text. */
ls_status ls__packing_check(const char *who, const ls__packing *p);

typedef struct ls__pack_piece {
    int tensor;
    int64_t first, count; /* elements */
} ls__pack_piece;

typedef struct ls__packs {
    int packs;  /* 0 when there are no elements */
    int pieces; /* of all packs */
    /* Read with the functions below. */
    const int64_t *counts; /* the caller's */
    int *ends;             /* NULL: one pack of whole tensors, which costs no memory */
    ls__pack_piece *list;
} ls__packs;

/* Tensor i has counts[i] elements of dtypes[i]. `counts` must outlive the packs. LS_INVALID for
 * sizes below 0 or beyond 2^63 bytes, LS_NO_MEMORY. */
ls_status ls__packs_plan(const ls__packing *p, int n, const int64_t *counts, const ls_dtype *dtypes,
                         ls__packs *out);
void ls__packs_free(ls__packs *packs);

/* The pieces of a pack are numbers [ls__pack_begin, ls__pack_end). */
static inline int ls__pack_end(const ls__packs *p, int pack)
{
    return p->ends ? p->ends[pack] : p->pieces;
}

static inline int ls__pack_begin(const ls__packs *p, int pack)
{
    return pack ? ls__pack_end(p, pack - 1) : 0;
}

static inline ls__pack_piece ls__pack_get(const ls__packs *p, int piece)
{
    return p->ends ? p->list[piece] : (ls__pack_piece){ piece, 0, p->counts[piece] };
}

/* ---- the single rules ---------------------------------------------------------------- */

/* Elements of a pack when `total` are split by number: floor(total / packs), the last takes the
 * rest. 10 in 3: 3, 3, 4. */
int64_t ls__pack_by_number(int64_t total, int packs, int pack);

/* Whole tensors, in the order given: a new pack when the one so far is larger than per_pack. How many
 * tensors each pack has goes to `sizes` (room for n), how many packs there are to `packs`. One pack
 * when per_pack is 0 or a size is unknown (below 0). */
ls_status ls__pack_by_size(int n, const int64_t *bytes, int64_t per_pack, int *sizes, int *packs);

/* Runs of small neighbours, from two on, go to the front and count as one unit; all others follow in
 * order, a unit each. A run [first, last] takes no more when last - first > most: it has up to
 * most + 2 tensors. `order` gets the tensors, `ends` where each unit ends in it (room for n each);
 * returns the number of units. */
int ls__pack_small(int n, const bool *small, int most, int *order, int *ends);

#endif
