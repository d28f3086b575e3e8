/*
 * Broadcasting: see broadcast.h. All of it is index arithmetic on int64; what
 * the elements are is known to the loop alone.
 */
#include "kernels/broadcast.h"

#include <stdbool.h>
#include <string.h>

/* Runs at least this long go to the loop as they are. */
#define LONG_RUN 128

/* Elements of a stretched operand that are copied out at a time. */
#define BLOCK 512

/* ---- planning ---------------------------------------------------------------- */

/* Whether axis `inner` continues the last merged axis for every operand. */
static bool continues(const ls__broadcast *p, int last, int64_t size,
                      int64_t stride[LS__BROADCAST_OPERANDS])
{
    for (int i = 0; i < p->operands; i++)
        if (p->stride[i][last] != stride[i] * size)
            return false;
    return true;
}

static void push_axis(ls__broadcast *p, int64_t size, int64_t stride[LS__BROADCAST_OPERANDS])
{
    if (p->rank > 0 && continues(p, p->rank - 1, size, stride)) {
        p->dims[p->rank - 1] *= size;
        for (int i = 0; i < p->operands; i++)
            p->stride[i][p->rank - 1] = stride[i];
        return;
    }
    p->dims[p->rank] = size;
    for (int i = 0; i < p->operands; i++)
        p->stride[i][p->rank] = stride[i];
    p->rank++;
}

void ls__broadcast_plan(ls__broadcast *p, int rank, const int64_t *dims, int operands,
                        const int *ranks, const int64_t *const *shapes)
{
    memset(p, 0, sizeof *p);
    p->operands = operands;
    p->count = 1;
    int64_t full[LS__BROADCAST_OPERANDS][LS__BROADCAST_RANK] = { { 0 } };
    for (int i = 0; i < operands; i++) {
        int64_t stride = 1;
        for (int axis = rank - 1; axis >= rank - ranks[i]; axis--) {
            int64_t size = shapes[i][axis - (rank - ranks[i])];
            full[i][axis] = size == 1 ? 0 : stride;
            stride *= size;
        }
    }
    for (int axis = 0; axis < rank; axis++) {
        p->count *= dims[axis];
        if (dims[axis] == 1)
            continue;
        int64_t stride[LS__BROADCAST_OPERANDS] = { 0 };
        for (int i = 0; i < operands; i++)
            stride[i] = full[i][axis];
        push_axis(p, dims[axis], stride);
    }
    if (p->rank == 0) /* a single element */
        p->dims[p->rank++] = 1;
}

/* ---- walking ------------------------------------------------------------------- */

/* One step of an odometer over the first `axes` axes of the plan: advances
 * index[] and the operands' offsets (both start as zeros). False after the last
 * place, when all are zeros again. */
static bool next(const ls__broadcast *p, int axes, int64_t *index, int64_t *offset)
{
    for (int axis = axes - 1; axis >= 0; axis--) {
        for (int i = 0; i < p->operands; i++)
            offset[i] += p->stride[i][axis];
        if (++index[axis] < p->dims[axis])
            return true;
        index[axis] = 0;
        for (int i = 0; i < p->operands; i++)
            offset[i] -= p->stride[i][axis] * p->dims[axis];
    }
    return false;
}

static const void *element(const void *base, int64_t index, size_t size)
{
    return (const char *)base + index * (int64_t)size;
}

/* The result is walked in order, run by run. */
static void run_long(const ls__broadcast *p, ls__loop *loop, const void *const *in,
                     const size_t *in_size, char *out, size_t out_size)
{
    int64_t run = p->dims[p->rank - 1];
    int64_t index[LS__BROADCAST_RANK] = { 0 }, offset[LS__BROADCAST_OPERANDS] = { 0 };
    int64_t step[LS__BROADCAST_OPERANDS] = { 0 };
    const void *at[LS__BROADCAST_OPERANDS] = { NULL };
    for (int i = 0; i < p->operands; i++)
        step[i] = p->stride[i][p->rank - 1];
    do {
        for (int i = 0; i < p->operands; i++)
            at[i] = element(in[i], offset[i], in_size[i]);
        loop(at, step, out, run);
        out += run * (int64_t)out_size;
    } while (next(p, p->rank - 1, index, offset));
}

/* ---- short runs ------------------------------------------------------------------
 *
 * The axes are cut in three: the last ones, whose elements together fit in a
 * block (`tile` of them); the axis before, of which a block takes `take` places
 * at a time; and the rest, walked by the odometer.
 *
 *     [7, 1000, 10] with [10]:  merged to [7000, 10]; tile 10, take 51 of 7000
 */
typedef struct blocks {
    int tile_axis;  /* first axis of the tile */
    int64_t tile;   /* elements of it */
    int64_t places; /* size of the axis before, 1 when there is none */
    int64_t take;
} blocks;

static blocks cut(const ls__broadcast *p)
{
    blocks b = { .tile_axis = p->rank, .tile = 1, .places = 1 };
    while (b.tile_axis > 0 && b.tile * p->dims[b.tile_axis - 1] <= BLOCK)
        b.tile *= p->dims[--b.tile_axis];
    if (b.tile_axis > 0)
        b.places = p->dims[b.tile_axis - 1];
    b.take = BLOCK / b.tile < b.places ? BLOCK / b.tile : b.places;
    return b;
}

static int64_t place_stride(const ls__broadcast *p, const blocks *b, int operand)
{
    return b->tile_axis > 0 ? p->stride[operand][b->tile_axis - 1] : 0;
}

/* How operand i lies in a block: step 1 or 0 when it can be read where it is,
 * -1 when it must be copied out. */
static int64_t block_step(const ls__broadcast *p, const blocks *b, int i)
{
    bool still = place_stride(p, b, i) == 0, dense = true;
    int64_t expect = 1;
    for (int axis = p->rank - 1; axis >= b->tile_axis; axis--) {
        still = still && p->stride[i][axis] == 0;
        dense = dense && p->stride[i][axis] == expect;
        expect *= p->dims[axis];
    }
    dense = dense && (b->places == 1 || place_stride(p, b, i) == expect);
    return still ? 0 : dense ? 1 : -1;
}

/* One element repeated n times, 64 bytes at a go: what is written past the n is
 * overwritten by the next run, or falls into the slack of the buffer. */
#define SLACK 64
#define REPEAT(name, type)                                                                         \
    static void repeat_##name(const type *from, char *to, int64_t n)                               \
    {                                                                                              \
        type pattern[SLACK / sizeof(type)];                                                        \
        for (size_t k = 0; k < SLACK / sizeof(type); k++)                                          \
            pattern[k] = *from;                                                                    \
        for (int64_t done = 0; done < n * (int64_t)sizeof(type); done += SLACK)                    \
            memcpy(to + done, pattern, SLACK);                                                     \
    }
REPEAT(8, uint8_t)
REPEAT(16, ls__any16)
REPEAT(32, ls__any32)
REPEAT(64, ls__any64)

static void copy_run(const void *from, int64_t step, char *to, int64_t n, size_t size)
{
    if (step)
        memcpy(to, from, (size_t)n * size);
    else if (size == 1)
        repeat_8(from, to, n);
    else if (size == 2)
        repeat_16(from, to, n);
    else if (size == 4)
        repeat_32(from, to, n);
    else
        repeat_64(from, to, n);
}

/* Copies operand i of a block that starts at `from` out, stretched. */
static void copy_block(const ls__broadcast *p, const blocks *b, int i, const void *from,
                       int64_t take, char *to, size_t size)
{
    int last = p->rank - 1;
    int64_t run = p->dims[last], row = run * (int64_t)size;
    for (int64_t place = 0; place < take; place++) {
        const void *tile = element(from, place * place_stride(p, b, i), size);
        int64_t index[LS__BROADCAST_RANK] = { 0 }, offset = 0;
        for (int64_t done = 0; done < b->tile; done += run, to += row) {
            copy_run(element(tile, offset, size), p->stride[i][last], to, run, size);
            for (int axis = last - 1; axis >= b->tile_axis; axis--) {
                offset += p->stride[i][axis];
                if (++index[axis] < p->dims[axis])
                    break;
                index[axis] = 0;
                offset -= p->stride[i][axis] * p->dims[axis];
            }
        }
    }
}

static void run_short(const ls__broadcast *p, ls__loop *loop, const void *const *in,
                      const size_t *in_size, char *out, size_t out_size)
{
    _Alignas(64) char buffer[LS__BROADCAST_OPERANDS][BLOCK * 8 + SLACK];
    blocks b = cut(p);
    int64_t index[LS__BROADCAST_RANK] = { 0 }, offset[LS__BROADCAST_OPERANDS] = { 0 };
    int64_t step[LS__BROADCAST_OPERANDS] = { 0 };
    const void *at[LS__BROADCAST_OPERANDS] = { NULL };
    const void *copied[LS__BROADCAST_OPERANDS] = { NULL }; /* what a buffer holds */
    bool copy[LS__BROADCAST_OPERANDS] = { false };
    for (int i = 0; i < p->operands; i++) {
        step[i] = block_step(p, &b, i);
        copy[i] = step[i] < 0;
        step[i] = copy[i] ? 1 : step[i];
    }
    do {
        for (int64_t place = 0; place < b.places; place += b.take) {
            int64_t take = b.places - place < b.take ? b.places - place : b.take;
            for (int i = 0; i < p->operands; i++) {
                at[i] = element(in[i], offset[i] + place * place_stride(p, &b, i), in_size[i]);
                if (!copy[i])
                    continue;
                /* A buffer is filled for `take` places first, so it serves a
                 * shorter last block too. */
                if (copied[i] != at[i]) {
                    copy_block(p, &b, i, at[i], take, buffer[i], in_size[i]);
                    copied[i] = place_stride(p, &b, i) == 0 && take == b.take ? at[i] : NULL;
                }
                at[i] = buffer[i];
            }
            loop(at, step, out, take * b.tile);
            out += take * b.tile * (int64_t)out_size;
        }
    } while (next(p, b.tile_axis > 0 ? b.tile_axis - 1 : 0, index, offset));
}

void ls__broadcast_run(const ls__broadcast *p, ls__loop *loop, const void *const *in,
                       const size_t *in_size, void *out, size_t out_size)
{
    if (p->count == 0)
        return;
    if (p->rank == 1 || p->dims[p->rank - 1] >= LONG_RUN)
        run_long(p, loop, in, in_size, out, out_size);
    else
        run_short(p, loop, in, in_size, out, out_size);
}
