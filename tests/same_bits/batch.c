/*
 * The data: a pure function of (seed, step, replica), so that no setting can change it.
 */
#include <math.h>

#include "same_bits/same_bits.h"

enum { MOST_ROWS = 6 };

/* Splitmix64: its own generator, since the library's is what is tested. */
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint64_t start(int seed, int step, int replica)
{
    uint64_t state = (uint64_t)seed << 40 ^ (uint64_t)step << 10 ^ (uint64_t)replica;
    return next(&state);
}

/* Three patterns, not more, since each is a trace of its own. */
int sb_rows(int step, int replica, int replicas)
{
    if (step % 7 == 3)
        return replica == 1 ? 0 : 4;
    if (step % 11 == 5)
        return replica == replicas - 1 ? 0 : 4 + replica % 2;
    return MOST_ROWS - replica % 3;
}

/* Of very different sizes, so that any other order of their sum shows. */
void sb_slopes(int seed, int step, int replica, float out[SB_PROBES])
{
    uint64_t state = start(seed, step, replica) + 1;
    for (int i = 0; i < SB_PROBES; i++) {
        float x = (float)(next(&state) >> 40) / (1 << 24) - 0.5f;
        out[i] = ldexpf(x, (int)(next(&state) % 12) - 6);
    }
}

float sb_tree(float *x, int n)
{
    for (int gap = 1; gap < n; gap *= 2)
        for (int r = 0; r + gap < n; r += 2 * gap)
            x[r] += x[r + gap];
    return x[0];
}

ls_value *sb_batch(int replica, int replicas, void *batch_of)
{
    const sb_batch_of *b = batch_of;
    int seed = b->setting->seed, rows = sb_rows(b->step, replica, replicas);
    uint64_t state = start(seed, b->step, replica);
    int32_t ids[MOST_ROWS * SB_ITEMS], labels[MOST_ROWS], place = 0;
    for (int i = 0; i < rows * SB_ITEMS; i++) {
        uint64_t pick = next(&state);
        /* half of them among few rows, which so repeat */
        ids[i] = (int32_t)((pick & 1) ? (pick >> 8) % 3 : (pick >> 8) % SB_WORDS);
    }
    for (int i = 0; i < rows; i++)
        labels[i] = (int32_t)((uint64_t)(ids[SB_ITEMS * i] + i) % SB_CLASSES);
    if (b->failure == SB_EARLY && b->bad == replica && rows)
        labels[rows - 1] = SB_CLASSES;
    if (b->failure == SB_LATE && b->bad == replica)
        place = SB_ITEMS;
    float slopes[SB_PROBES];
    sb_slopes(seed, b->step, replica, slopes);
    ls_tensor *all[] = { ls_from(LS_I32, LS_DIMS(rows, SB_ITEMS), ids),
                         ls_from(LS_I32, LS_DIMS(rows), labels),
                         ls_from(LS_F32, LS_DIMS(SB_PROBES), slopes),
                         ls_from(LS_I32, LS_DIMS(1), &place) };
    return ls_tensors(4, all);
}
