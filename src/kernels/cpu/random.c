/*
 * Random fills, GROUP blocks of Philox4x32-10 at a time so that the compiler
 * can keep a block per vector lane. Invariant: an element's bits depend on
 * (draw, its number) alone. So the last group is computed whole and only as
 * much of it as is wanted is copied out: no tail does anything else than the
 * body.
 */
#include <string.h>

#include "kernels/cpu/random_math.h"
#include "kernels/isa.h"
#include "kernels/random.h"

__extension__ typedef unsigned __int128 u128;

#define GROUP 16          /* blocks: one AVX-512 vector of words */
#define WORDS (4 * GROUP) /* their words */

#define ROUND                                                                                      \
    do {                                                                                           \
        uint32_t high0 = (uint32_t)((0xD2511F53u * (uint64_t)c0) >> 32);                           \
        uint32_t high1 = (uint32_t)((0xCD9E8D57u * (uint64_t)c2) >> 32);                           \
        uint32_t low0 = 0xD2511F53u * c0, low1 = 0xCD9E8D57u * c2;                                 \
        c0 = high1 ^ c1 ^ k0;                                                                      \
        c1 = low1;                                                                                 \
        c2 = high0 ^ c3 ^ k1;                                                                      \
        c3 = low0;                                                                                 \
        k0 += 0x9E3779B9u;                                                                         \
        k1 += 0xBB67AE85u;                                                                         \
    } while (0)

#define TEN(x)                                                                                     \
    x;                                                                                             \
    x;                                                                                             \
    x;                                                                                             \
    x;                                                                                             \
    x;                                                                                             \
    x;                                                                                             \
    x;                                                                                             \
    x;                                                                                             \
    x;                                                                                             \
    x

/* Word k of block + j in w[k][j]. The rounds are written out: the loop over
 * lanes must be the innermost for it to become vector code. */
static void group(const ls__draw *draw, uint64_t block, uint32_t w[4][GROUP])
{
    const uint32_t ordinal0 = (uint32_t)draw->ordinal, ordinal1 = (uint32_t)(draw->ordinal >> 32);
    const uint32_t key0 = (uint32_t)draw->key, key1 = (uint32_t)(draw->key >> 32);
    const uint32_t block0 = (uint32_t)block, block1 = (uint32_t)(block >> 32);
    for (uint32_t j = 0; j < GROUP; j++) {
        uint32_t c0 = block0 + j, c1 = block1 + (c0 < block0), c2 = ordinal0, c3 = ordinal1;
        uint32_t k0 = key0, k1 = key1;
        TEN(ROUND);
        w[0][j] = c0;
        w[1][j] = c1;
        w[2][j] = c2;
        w[3][j] = c3;
    }
}

/* The same in the order of the words. */
static void group_words(const ls__draw *draw, uint64_t block, uint32_t out[WORDS])
{
    uint32_t w[4][GROUP];
    group(draw, block, w);
    for (int j = 0; j < GROUP; j++)
        for (int k = 0; k < 4; k++)
            out[4 * j + k] = w[k][j];
}

static int64_t at_most(int64_t n, int64_t limit)
{
    return n < limit ? n : limit;
}

static void words(const ls__draw *draw, uint64_t block, int64_t blocks, uint32_t *out)
{
    uint32_t w[WORDS];
    for (int64_t b = 0; b < blocks; b += GROUP) {
        group_words(draw, block + (uint64_t)b, w);
        memcpy(out + 4 * b, w, (size_t)at_most(blocks - b, GROUP) * 4 * sizeof *w);
    }
}

/* ---- uniform ----------------------------------------------------------------- */

static void uniform_f32(const ls__draw *draw, float low, float range, float last, float *out,
                        int64_t n)
{
    uint32_t w[WORDS];
    float y[WORDS];
    for (int64_t i = 0; i < n; i += WORDS) {
        group_words(draw, (uint64_t)i / 4, w);
        for (int j = 0; j < WORDS; j++) {
            float u = (float)(int32_t)(w[j] >> 8) * 0x1p-24f;
            float v = low + range * u;
            y[j] = v < last ? v : last;
        }
        memcpy(out + i, y, (size_t)at_most(n - i, WORDS) * sizeof *y);
    }
}

static void uniform_f64(const ls__draw *draw, double low, double range, double last, double *out,
                        int64_t n)
{
    uint32_t w[WORDS];
    double y[WORDS / 2];
    for (int64_t i = 0; i < n; i += WORDS / 2) {
        group_words(draw, (uint64_t)i / 2, w);
        for (int j = 0; j < WORDS / 2; j++) {
            double v = low + range * ls__unit_f64(w[2 * j], w[2 * j + 1]);
            y[j] = v < last ? v : last;
        }
        memcpy(out + i, y, (size_t)at_most(n - i, WORDS / 2) * sizeof *y);
    }
}

static void uniform_int(const ls__draw *draw, int64_t low, uint64_t range, int bytes, void *out,
                        int64_t n)
{
    uint32_t w[WORDS];
    for (int64_t i = 0; i < n; i += WORDS / 2) {
        group_words(draw, (uint64_t)i / 2, w);
        for (int64_t j = 0; j < at_most(n - i, WORDS / 2); j++) {
            uint64_t x = (uint64_t)w[2 * j + 1] << 32 | w[2 * j];
            /* The high half of the product: biased by at most range / 2^64. */
            uint64_t v = range ? (uint64_t)((u128)x * range >> 64) : x;
            v += (uint64_t)low;
            if (bytes == 8)
                ((int64_t *)out)[i + j] = (int64_t)v;
            else if (bytes == 4)
                ((int32_t *)out)[i + j] = (int32_t)(int64_t)v;
            else
                ((uint8_t *)out)[i + j] = (uint8_t)v;
        }
    }
}

static void keep(const ls__draw *draw, double rate, uint8_t *out, int64_t n)
{
    const double scaled = rate * 0x1p32;
    const uint32_t drop_below = scaled < 0xFFFFFFFFp0 ? (uint32_t)scaled : 0xFFFFFFFFu;
    uint32_t w[WORDS];
    uint8_t y[WORDS];
    for (int64_t i = 0; i < n; i += WORDS) {
        group_words(draw, (uint64_t)i / 4, w);
        for (int j = 0; j < WORDS; j++)
            y[j] = w[j] >= drop_below;
        memcpy(out + i, y, (size_t)at_most(n - i, WORDS));
    }
}

/* ---- normal: Box-Muller ---------------------------------------------------------- */

/* Two words to two standard normals. The radius takes 32 bits, so the tails
 * reach 6.6 standard deviations. */
static inline void pair_f32(uint32_t a, uint32_t b, float *z0, float *z1)
{
    float u = ((float)(int32_t)(a >> 1) + 0.5f) * 0x1p-31f;
    float r = __builtin_sqrtf(-2.0f * ls__log_f32(u)), c, s;
    ls__turn_f32((float)(int32_t)(b >> 8) * 0x1p-24f, &c, &s);
    *z0 = r * c;
    *z1 = r * s;
}

static inline void pair_f64(const uint32_t w[4], double *z0, double *z1)
{
    uint64_t a = (uint64_t)w[1] << 32 | w[0];
    double u = ((double)(int64_t)(a >> 12) + 0.5) * 0x1p-52;
    double r = __builtin_sqrt(-2.0 * ls__log_f64(u)), c, s;
    ls__turn_f64(ls__unit_f64(w[2], w[3]), &c, &s);
    *z0 = r * c;
    *z1 = r * s;
}

static void group_normal_f32(const ls__draw *draw, uint64_t block, float out[WORDS])
{
    uint32_t w[4][GROUP];
    float z[4][GROUP];
    group(draw, block, w);
    for (int k = 0; k < 4; k += 2)
        for (int j = 0; j < GROUP; j++)
            pair_f32(w[k][j], w[k + 1][j], &z[k][j], &z[k + 1][j]);
    for (int j = 0; j < GROUP; j++)
        for (int k = 0; k < 4; k++)
            out[4 * j + k] = z[k][j];
}

static void group_normal_f64(const ls__draw *draw, uint64_t block, double out[WORDS / 2])
{
    uint32_t w[WORDS];
    group_words(draw, block, w);
    for (int j = 0; j < GROUP; j++)
        pair_f64(w + 4 * j, &out[2 * j], &out[2 * j + 1]);
}

/* Element i of a truncated draw, after its first number was refused. Each
 * attempt succeeds with probability 0.998 or more; the last resort is
 * there so that the loop ends whatever the words are. */
static float redraw_f32(const ls__draw *draw, int64_t i)
{
    for (uint64_t attempt = 1; attempt < 1u << 16; attempt++) {
        uint32_t w[4];
        float z[4];
        ls__philox_block(draw, (attempt << 48) + (uint64_t)i, w);
        pair_f32(w[0], w[1], &z[0], &z[1]);
        pair_f32(w[2], w[3], &z[2], &z[3]);
        for (int k = 0; k < 4; k++)
            if (z[k] >= -2.0f && z[k] <= 2.0f)
                return z[k];
    }
    return 0.0f;
}

static double redraw_f64(const ls__draw *draw, int64_t i)
{
    for (uint64_t attempt = 1; attempt < 1u << 16; attempt++) {
        uint32_t w[4];
        double z[2];
        ls__philox_block(draw, (attempt << 48) + (uint64_t)i, w);
        pair_f64(w, &z[0], &z[1]);
        for (int k = 0; k < 2; k++)
            if (z[k] >= -2.0 && z[k] <= 2.0)
                return z[k];
    }
    return 0.0;
}

#define NORMALS(name, type, per_group, per_block, group_normal, redraw)                            \
    static void name(const ls__draw *draw, type mean, type stddev, bool truncate, type *out,       \
                     int64_t n)                                                                    \
    {                                                                                              \
        type z[per_group];                                                                         \
        for (int64_t i = 0; i < n; i += per_group) {                                               \
            group_normal(draw, (uint64_t)i / per_block, z);                                        \
            for (int64_t j = 0; truncate && j < at_most(n - i, per_group); j++)                    \
                if (z[j] < -2 || z[j] > 2)                                                         \
                    z[j] = redraw(draw, i + j);                                                    \
            for (int j = 0; j < per_group; j++)                                                    \
                z[j] = mean + stddev * z[j];                                                       \
            memcpy(out + i, z, (size_t)at_most(n - i, per_group) * sizeof *z);                     \
        }                                                                                          \
    }

NORMALS(normal_f32, float, WORDS, 4, group_normal_f32, redraw_f32)
NORMALS(normal_f64, double, (WORDS / 2), 2, group_normal_f64, redraw_f64)

/* ---- categorical: the inverse of the running sum ------------------------------------ */

static void sample_sums(const ls__draw *draw, const double *sums, int64_t classes, int64_t first,
                        int64_t *out, int64_t samples)
{
    for (int64_t i = 0; i < samples; i++) {
        uint64_t element = (uint64_t)(first + i);
        uint32_t w[4];
        ls__philox_block(draw, element / 2, w);
        double u = ls__unit_f64(w[element % 2 * 2], w[element % 2 * 2 + 1]);
        double want = u * sums[classes - 1];
        /* The first class whose running sum is above `want`: never one of
         * probability zero, for its sum is that of the class before. */
        int64_t low = 0, high = classes - 1;
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if (sums[middle] > want)
                high = middle;
            else
                low = middle + 1;
        }
        out[i] = low;
    }
}

#define CATEGORICAL(name, type)                                                                    \
    static int name(const ls__draw *draw, const type *logits, int64_t classes, double *sums,       \
                    int64_t first, int64_t *out, int64_t samples)                                  \
    {                                                                                              \
        double top = -__builtin_inf(), sum = 0;                                                    \
        for (int64_t i = 0; i < classes; i++) {                                                    \
            if (!(logits[i] < __builtin_inf()))                                                    \
                return 0;                                                                          \
            top = (double)logits[i] > top ? (double)logits[i] : top;                               \
        }                                                                                          \
        if (top == -__builtin_inf())                                                               \
            return 0;                                                                              \
        for (int64_t i = 0; i < classes; i++)                                                      \
            sums[i] = sum += ls__exp_f64((double)logits[i] - top);                                 \
        sample_sums(draw, sums, classes, first, out, samples);                                     \
        return 1;                                                                                  \
    }

CATEGORICAL(categorical_f32, float)
CATEGORICAL(categorical_f64, double)

/* ---- dropout -------------------------------------------------------------------------- */

#define DROPOUT(name, type)                                                                        \
    static void name(const type *restrict x, const uint8_t *restrict kept, type factor,            \
                     type *restrict y, int64_t n)                                                  \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            type v = x[i] * factor;                                                                \
            y[i] = kept[i] ? v : 0;                                                                \
        }                                                                                          \
    }

DROPOUT(dropout_f32, float)
DROPOUT(dropout_f64, double)

const ls__random LS__ISA(ls__random_table) = {
    .words = words,
    .uniform_f32 = uniform_f32,
    .uniform_f64 = uniform_f64,
    .uniform_int = uniform_int,
    .normal_f32 = normal_f32,
    .normal_f64 = normal_f64,
    .keep = keep,
    .categorical_f32 = categorical_f32,
    .categorical_f64 = categorical_f64,
    .dropout_f32 = dropout_f32,
    .dropout_f64 = dropout_f64,
};
