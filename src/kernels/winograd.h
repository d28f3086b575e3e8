/*
 * 3 x 3 convolutions of many channels by Winograd's algorithm, F(4 x 4, 3 x 3), both ways: a tile of 4 x 4
 * outputs takes 36 products a pair of channels where the plain sums take 144.
 *
 *     V = B^T x B     of a tile of 6 x 6 inputs         dx = B (dV) B^T      added where tiles overlap
 *     U = G w G^T     of the filter                     dw = G^T (dU) G
 *     y = A^T M A     of M = V U, position by position  dM = A dy A^T
 *
 * and the way back is that of these formulas: dV = dM U^T and dU = V^T dM, with the same few tiles. So all
 * three passes are 36 products of matrices, tiles by channels, and a block of tiles stays in the second
 * cache from the first transform to the last.
 *
 * Stride 1, any padding, any channels; NHWC, HWIO, f32, one thread. Forward, bias and relu are added on the
 * way out; with `marks` the output is pooled too, 2 x 2, and its gradient comes from there (conv_pool.h says
 * what marks are): the larger image never reaches memory.
 *
 * An idle thread may take over parts (os/help.h): a block of tiles forward, some images back.
 *
 * Bits: those of the formulas in the order of the files, the same on every instruction set and whoever does a part: dU is a
 * chain over the tiles of a part, then parts are added up. Against plain sums the error is a few times as large
 * (design 6).
 */
#ifndef LS__KERNELS_WINOGRAD_H
#define LS__KERNELS_WINOGRAD_H

#include "kernels/conv.h"
#include "kernels/isa_select.h"

/* Whether it can be computed so, and whether that is fast here: a function of sizes, processor and threads. */
bool ls__winograd_can(const ls__conv_shape *s);
bool ls__winograd_pays(const ls__conv_shape *s);

/* Floats of scratch memory for the way there or back, aligned to 64 bytes. */
int64_t ls__winograd_scratch(const ls__conv_shape *s, bool back);

/* y: as s has it, with `bias` (NULL: none) and s->relu; or with `marks` pooled, [n, oh / 2, ow / 2, oc], then
 * with a bias and relu in any case. */
void ls__winograd_forward(const ls__conv_shape *s, const float *x, const float *w,
                          const float *bias, float *y, uint16_t *marks, float *scratch);

/* Both gradients from that of y; with `marks` it is that of what was pooled, and dbias is made too. */
void ls__winograd_backward(const ls__conv_shape *s, const float *x, const float *w, const float *dy,
                           const uint16_t *marks, float *dx, float *dw, float *dbias,
                           float *scratch);

/* ---- a block of tiles, as kernels see it ------------------------------------------------------- */

enum {
    LS__WINOGRAD_OUT = 4,
    LS__WINOGRAD_IN = 6,
    LS__WINOGRAD_POSITIONS = 36,
    LS__WINOGRAD_TILES = 48 /* of a block, at most: 24, 72 are no faster; cpu/winograd_product.h */
};

typedef struct ls__winograd_tiles {
    int64_t h, w, c, oh, ow, oc; /* of an image; with marks oh and ow are those of the pooled one */
    int64_t pad_top, pad_left;
    int64_t down, across; /* tiles of an image */
    int64_t cs, os;       /* c and oc, filled up to whole vectors */
    int64_t first, count; /* the tiles of this block, of all images in order */
} ls__winograd_tiles;

/* Floats of one position's matrix, and some, so that positions do not share a set of the first cache. */
static inline int64_t ls__winograd_plane(int64_t rows, int64_t columns)
{
    return rows * columns + 16;
}

typedef struct ls__winograd_kernels {
    bool fast;
    /* The filter: [position][cs][os], or turned, [position][os][cs]; and back to it. */
    void (*filter)(const ls__winograd_tiles *t, const float *w, float *u);
    void (*filter_turned)(const ls__winograd_tiles *t, const float *w, float *u);
    void (*filter_back)(const ls__winograd_tiles *t, const float *du, float *dw);
    /* Tiles of x: [position][tile][cs]; of y: [position][tile][os]. */
    void (*take)(const ls__winograd_tiles *t, const float *x, float *v);
    void (*take_back)(const ls__winograd_tiles *t, const float *dv, float *dx); /* adds */
    void (*give)(const ls__winograd_tiles *t, const float *m, const float *bias, bool relu,
                 float *y);
    void (*give_back)(const ls__winograd_tiles *t, const float *dy, float *dm);
    /* The same with the pool between; adds to dbias. */
    void (*give_pooled)(const ls__winograd_tiles *t, const float *m, const float *bias, float *p,
                        uint16_t *marks);
    void (*give_back_pooled)(const ls__winograd_tiles *t, const float *dp, const uint16_t *marks,
                             float *dm, float *dbias);
    /* All positions: c[rows][columns] = a[rows][deep] b[deep][columns]; c = a^T b, of `rows` rows, or, with
     * `add`, c += that. */
    void (*product)(int64_t rows, int64_t deep, int64_t columns, const float *a, const float *b,
                    float *c);
    void (*product_turned)(int64_t rows, int64_t high, int64_t columns, const float *a,
                           const float *b, float *c, bool add);
} ls__winograd_kernels;
LS__ISA_TABLE(ls__winograd_kernels, ls__winograd_table);

#endif
