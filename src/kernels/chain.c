/*
 * Running a chain: see chain.h. Invariant: within a block, a value is written
 * once, and the memory it lies in is not used for another before its last
 * reader has run.
 *
 * Where values lie: outputs where they are wanted, the rest in slots of scratch
 * memory, one block each. A slot goes to the next step as soon as it is free, so
 * a chain of any length works in two or three of them.
 */
#include "kernels/chain.h"

#include <stdbool.h>
#include <string.h>

/* Elements of a block: a slot of f32 is 4 KiB, a few of them fit in any L1. */
#define BLOCK 1024

typedef enum kind { DENSE, STILL, STRETCHED } kind;

/* How an input is walked. */
typedef struct way {
    kind kind;
    bool steady;    /* its buffer serves every block */
    int64_t period; /* elements after which it repeats, 0 when it does not */
    ls__broadcast walk;
    char *buffer;
} way;

typedef struct run {
    const ls__chain *c;
    int64_t count, block;
    size_t slot; /* bytes */
    char *scratch;
    int slots; /* handed out so far */
    way way[LS__CHAIN_INPUTS];
    int last[LS__CHAIN_VALUES];       /* the step that reads a value last, -1: none */
    char *buffer[LS__CHAIN_STEPS];    /* of steps that are not written in place */
    const char *at[LS__CHAIN_VALUES]; /* a value's part of this block... */
    int64_t step[LS__CHAIN_VALUES];   /* ...and its step */
} run;

static int64_t block_of(int64_t count)
{
    return count < BLOCK ? count : BLOCK;
}

static size_t slot_bytes(int64_t count)
{
    return ((size_t)block_of(count) * 8 + 63) / 64 * 64;
}

size_t ls__chain_scratch(int64_t count, int n_inputs, int n_steps)
{
    return slot_bytes(count) * (size_t)(n_inputs + n_steps);
}

static char *new_slot(run *r)
{
    return r->scratch + r->slot * (size_t)r->slots++;
}

/* ---- inputs ------------------------------------------------------------------------ */

static int64_t count_of(int rank, const int64_t *dims)
{
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= dims[i];
    return count;
}

static void find_way(run *r, int i)
{
    const ls__chain_input *in = &r->c->input[i];
    way *w = &r->way[i];
    int64_t count = count_of(in->rank, in->dims);
    w->steady = false;
    w->period = 0;
    w->kind = count == r->count ? DENSE : count == 1 ? STILL : STRETCHED;
    if (w->kind != STRETCHED)
        return;
    ls__broadcast_plan(&w->walk, r->c->rank, r->c->dims, 1, &in->rank, &in->dims);
    if (w->walk.stride[0][0] == 0)
        w->period = r->count / w->walk.dims[0];
    w->buffer = new_slot(r);
}

/* A block is a whole number of the longest period that fits, so that a bias is
 * stretched once and not for every block. */
static void choose_block(run *r)
{
    int64_t longest = 1;
    for (int i = 0; i < r->c->n_inputs; i++)
        if (r->way[i].period > longest && r->way[i].period <= BLOCK)
            longest = r->way[i].period;
    r->block = block_of(r->count) / longest * longest;
    for (int i = 0; i < r->c->n_inputs; i++)
        r->way[i].steady = r->way[i].period > 0 && r->block % r->way[i].period == 0;
}

/* Copies n elements of a stretched input out, from `offset` on. */
#define STRETCH(bits, type)                                                                        \
    static void stretch_##bits(const ls__broadcast *p, int64_t *index, int64_t offset,             \
                               const type *from, type *to, int64_t n)                              \
    {                                                                                              \
        int last = p->rank - 1;                                                                    \
        for (;;) {                                                                                 \
            int64_t left = p->dims[last] - index[last], take = left < n ? left : n;                \
            if (p->stride[0][last])                                                                \
                memcpy(to, from + offset, (size_t)take * sizeof(type));                            \
            else                                                                                   \
                for (int64_t k = 0; k < take; k++)                                                 \
                    to[k] = from[offset];                                                          \
            to += take;                                                                            \
            n -= take;                                                                             \
            if (n == 0)                                                                            \
                return;                                                                            \
            offset -= p->stride[0][last] * index[last];                                            \
            index[last] = 0;                                                                       \
            for (int axis = last - 1; axis >= 0; axis--) {                                         \
                offset += p->stride[0][axis];                                                      \
                if (++index[axis] < p->dims[axis])                                                 \
                    break;                                                                         \
                index[axis] = 0;                                                                   \
                offset -= p->stride[0][axis] * p->dims[axis];                                      \
            }                                                                                      \
        }                                                                                          \
    }
STRETCH(8, uint8_t)
STRETCH(16, ls__any16)
STRETCH(32, ls__any32)
STRETCH(64, ls__any64)

/* The part of a stretched input that a block at `pos` sees: a piece of one run is
 * read where it is, anything else copied out. */
static void stretch(run *r, int i, int64_t pos, int64_t n)
{
    way *w = &r->way[i];
    const ls__chain_input *in = &r->c->input[i];
    const ls__broadcast *p = &w->walk;
    r->at[i] = w->buffer;
    r->step[i] = 1;
    if (w->steady && pos > 0)
        return;
    int64_t index[LS__BROADCAST_RANK], offset = 0, rest = pos;
    for (int axis = p->rank - 1; axis >= 0; axis--) {
        index[axis] = rest % p->dims[axis];
        rest /= p->dims[axis];
        offset += index[axis] * p->stride[0][axis];
    }
    if (!w->steady && index[p->rank - 1] + n <= p->dims[p->rank - 1]) {
        r->at[i] = (const char *)in->data + offset * (int64_t)in->size;
        r->step[i] = p->stride[0][p->rank - 1];
    } else if (in->size == 1) {
        stretch_8(p, index, offset, in->data, (uint8_t *)w->buffer, n);
    } else if (in->size == 2) {
        stretch_16(p, index, offset, in->data, (ls__any16 *)w->buffer, n);
    } else if (in->size == 4) {
        stretch_32(p, index, offset, in->data, (ls__any32 *)w->buffer, n);
    } else {
        stretch_64(p, index, offset, in->data, (ls__any64 *)w->buffer, n);
    }
}

static void place_input(run *r, int i, int64_t pos, int64_t n)
{
    const ls__chain_input *in = &r->c->input[i];
    if (r->way[i].kind == STRETCHED) {
        stretch(r, i, pos, n);
        return;
    }
    bool dense = r->way[i].kind == DENSE;
    r->at[i] = (const char *)in->data + (dense ? pos * (int64_t)in->size : 0);
    r->step[i] = dense;
}

/* ---- slots ------------------------------------------------------------------------- */

static void find_last_readers(run *r)
{
    for (int v = 0; v < r->c->n_inputs + r->c->n_steps; v++)
        r->last[v] = -1;
    for (int k = 0; k < r->c->n_steps; k++)
        for (int j = 0; j < r->c->step[k].operands; j++)
            r->last[r->c->step[k].operand[j]] = k;
}

/* Whether step k is written to its output at once: not when that is the memory
 * of an input which a later step still reads. */
static bool in_place(const run *r, int k)
{
    const void *out = r->c->step[k].out;
    for (int i = 0; i < r->c->n_inputs && out; i++)
        if (r->c->input[i].data == out && r->last[i] > k)
            return false;
    return out != NULL;
}

static void give_slots(run *r)
{
    const ls__chain *c = r->c;
    char *free_slots[LS__CHAIN_STEPS];
    int n_free = 0;
    for (int k = 0; k < c->n_steps; k++) {
        const ls__chain_step *s = &c->step[k];
        char *mine = NULL;
        r->buffer[k] = NULL;
        char *gone[LS__BROADCAST_OPERANDS];
        int n_gone = 0;
        for (int j = 0; j < s->operands; j++) {
            int from = s->operand[j] - c->n_inputs;
            if (from < 0 || !r->buffer[from] || c->step[from].out || r->last[s->operand[j]] != k)
                continue;
            bool seen = false; /* an operand may be there twice */
            for (int g = 0; g < n_gone; g++)
                seen = seen || gone[g] == r->buffer[from];
            if (seen || r->buffer[from] == mine)
                continue;
            if (!mine && c->step[from].size == s->size && !in_place(r, k))
                mine = r->buffer[from]; /* element over element */
            else
                gone[n_gone++] = r->buffer[from];
        }
        if (!in_place(r, k))
            r->buffer[k] = mine ? mine : n_free > 0 ? free_slots[--n_free] : new_slot(r);
        for (int g = 0; g < n_gone; g++)
            free_slots[n_free++] = gone[g];
    }
}

/* ---- running ------------------------------------------------------------------------- */

static void run_steps(run *r, int64_t pos, int64_t n)
{
    const ls__chain *c = r->c;
    for (int k = 0; k < c->n_steps; k++) {
        const ls__chain_step *s = &c->step[k];
        const void *in[LS__BROADCAST_OPERANDS] = { NULL };
        int64_t step[LS__BROADCAST_OPERANDS] = { 0 };
        for (int j = 0; j < s->operands; j++) {
            in[j] = r->at[s->operand[j]];
            step[j] = r->step[s->operand[j]];
        }
        char *to = r->buffer[k] ? r->buffer[k] : (char *)s->out + pos * (int64_t)s->size;
        s->loop(in, step, to, n);
        r->at[c->n_inputs + k] = to;
        r->step[c->n_inputs + k] = 1;
    }
    for (int k = 0; k < c->n_steps; k++) /* what had to wait for its output's memory */
        if (r->buffer[k] && c->step[k].out)
            memcpy((char *)c->step[k].out + pos * (int64_t)c->step[k].size, r->buffer[k],
                   (size_t)n * c->step[k].size);
}

void ls__chain_run(const ls__chain *c, void *scratch)
{
    run r;
    r.c = c;
    r.count = count_of(c->rank, c->dims);
    if (r.count == 0)
        return;
    r.slot = slot_bytes(r.count);
    r.scratch = scratch;
    r.slots = 0;
    for (int i = 0; i < c->n_inputs; i++)
        find_way(&r, i);
    choose_block(&r);
    find_last_readers(&r);
    give_slots(&r);
    for (int64_t pos = 0; pos < r.count; pos += r.block) {
        int64_t n = r.count - pos < r.block ? r.count - pos : r.block;
        for (int i = 0; i < c->n_inputs; i++)
            place_input(&r, i, pos, n);
        run_steps(&r, pos, n);
    }
}
