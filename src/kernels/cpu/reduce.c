/*
 * Fast f32 reductions over [outer, count, inner], built once per instruction
 * set. Invariant: the additions of an output and their order are those of
 * reduce.h; layout and register width only decide which of them run side by
 * side.
 *
 * inner = 1: a row is summed along itself, four rows (or four blocks of a long
 * row) at a time. inner > 1: columns are summed side by side. Their lanes are
 * rows of a small table, acc[r % 16][column]. A narrow matrix is contiguous, so
 * there the table's 16 rows are added to as one long run:
 *
 *     x    | r0 | r1 | .. | r15 | r16 | r17 | .. | r31 | r32 ..
 *     acc  | 0  | 1  | .. | 15  |  0  |  1  | .. | 15  |  0  ..
 */
#include <math.h>
#include <string.h>

#include "kernels/cpu/reduce_lanes.h"
#include "kernels/isa.h"
#include "kernels/reduce.h"

/* Columns at a time of a wide matrix: 16 lanes of them are 8 KB. */
#define WIDTH 128
#define NARROW 64

/* to += x, and the same for four x `step` apart, one after the other. */
static void add1(float *restrict to, const float *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += x[i];
}

static void add4(float *restrict to, const float *restrict x, int64_t step, int64_t n)
{
    const float *b = x + step, *c = b + step, *d = c + step;
    for (int64_t i = 0; i < n; i++)
        to[i] = (((to[i] + x[i]) + b[i]) + c[i]) + d[i];
}

/* Folds the first `lanes` of 16 lanes of w columns; those above are +0. */
static void fold_columns(float *acc, int64_t lanes, int64_t w, float *to)
{
    for (int64_t gap = LS__SUM_LANES / 2; gap; gap /= 2)
        if (lanes > gap) {
            add1(acc, acc + gap * w, (lanes - gap) * w);
            lanes = gap;
        }
    memcpy(to, acc, (size_t)w * sizeof *to);
}

/* One block of rows of a contiguous matrix with w columns. */
static void block_narrow(const float *x, int64_t rows, int64_t w, float *acc, float *to)
{
    int64_t lanes = rows < LS__SUM_LANES ? rows : LS__SUM_LANES, run = LS__SUM_LANES * w;
    int64_t n = rows * w, i = 0;
    memset(acc, 0, (size_t)(lanes * w) * sizeof *acc);
    for (; i + 4 * run <= n; i += 4 * run)
        add4(acc, x + i, run, run);
    for (; i < n; i += run)
        add1(acc, x + i, n - i < run ? n - i : run);
    fold_columns(acc, lanes, w, to);
}

/* One block of rows, w columns of a matrix whose rows are `ld` apart. */
static void block_wide(const float *x, int64_t rows, int64_t ld, int64_t w, float *acc, float *to)
{
    int64_t lanes = rows < LS__SUM_LANES ? rows : LS__SUM_LANES, r = 0;
    memset(acc, 0, (size_t)(lanes * w) * sizeof *acc);
    for (; r + 4 * LS__SUM_LANES <= rows; r += 4 * LS__SUM_LANES)
        for (int64_t j = 0; j < LS__SUM_LANES; j++)
            add4(acc + j * w, x + (r + j) * ld, LS__SUM_LANES * ld, w);
    for (; r < rows; r++)
        add1(acc + r % LS__SUM_LANES * w, x + r * ld, w);
    fold_columns(acc, lanes, w, to);
}

static void sum_columns(const float *x, float *y, int64_t count, int64_t inner)
{
    float acc[LS__SUM_LANES * WIDTH], nodes[LS__SUM_LEVELS * WIDTH];
    int64_t width = inner <= NARROW ? inner : WIDTH;
    for (int64_t at = 0; at < inner; at += width) {
        int64_t w = inner - at < width ? inner - at : width;
        ls__tree tree = { nodes, w, 0 };
        for (int64_t r = 0; r < count; r += LS__SUM_BLOCK) {
            int64_t rows = count - r < LS__SUM_BLOCK ? count - r : LS__SUM_BLOCK;
            if (w == inner)
                block_narrow(x + r * inner, rows, w, acc, ls__tree_next(&tree));
            else
                block_wide(x + at + r * inner, rows, inner, w, acc, ls__tree_next(&tree));
            ls__tree_push(&tree, r / LS__SUM_BLOCK);
        }
        ls__tree_end(&tree);
        memcpy(y + at, nodes, (size_t)w * sizeof *y);
    }
}

static void sum(const float *x, float *y, int64_t outer, int64_t count, int64_t inner)
{
    if (count == 0 || outer == 0 || inner == 0) {
        for (int64_t i = 0; i < outer * inner; i++)
            y[i] = 0;
        return;
    }
    int64_t o = 0;
    if (inner == 1 && count <= LS__SUM_BLOCK)
        for (; o + 4 <= outer; o += 4)
            ls__lanes_sum4(x + o * count, count, count, y + o);
    for (; o < outer; o++)
        if (inner == 1)
            y[o] = ls__lanes_sum(x + o * count, count);
        else
            sum_columns(x + o * count * inner, y + o * inner, count, inner);
}

/* ---- maxima and minima: any order gives the same number --------------------- */

#define EXTREMES 64

#define EXTREME(name, before, worst)                                                               \
    static void name##_into(float *restrict to, const float *restrict x, int64_t n)                \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = x[i] before to[i] || x[i] != x[i] ? x[i] : to[i];                              \
    }                                                                                              \
                                                                                                   \
    static float name##_row(const float *x, int64_t n)                                             \
    {                                                                                              \
        float best[EXTREMES];                                                                      \
        for (int j = 0; j < EXTREMES; j++)                                                         \
            best[j] = worst;                                                                       \
        int64_t i = 0;                                                                             \
        for (; i + EXTREMES <= n; i += EXTREMES)                                                   \
            name##_into(best, x + i, EXTREMES);                                                    \
        name##_into(best, x + i, n - i);                                                           \
        for (int gap = EXTREMES / 2; gap; gap /= 2)                                                \
            name##_into(best, best + gap, gap);                                                    \
        return best[0];                                                                            \
    }                                                                                              \
                                                                                                   \
    static void name(const float *x, float *y, int64_t outer, int64_t count, int64_t inner)        \
    {                                                                                              \
        for (int64_t o = 0; o < outer; o++, y += inner) {                                          \
            if (inner == 1) {                                                                      \
                *y = name##_row(x + o * count, count);                                             \
                continue;                                                                          \
            }                                                                                      \
            for (int64_t i = 0; i < inner; i++)                                                    \
                y[i] = worst;                                                                      \
            for (int64_t r = 0; r < count; r++)                                                    \
                name##_into(y, x + (o * count + r) * inner, inner);                                \
        }                                                                                          \
    }

EXTREME(largest, >, -INFINITY)
EXTREME(smallest, <, INFINITY)

const ls__reduce_fns LS__ISA(ls__reduce_table) = { sum, largest, smallest };
