/*
 * Sums over replicas: one pass over memory, in blocks that stay in the first cache. The tree
 * is walked as it is defined, by recursion; up to eight replicas are one loop. Partial sums
 * have buffers of their own, so that `out` is touched only when all of a block was read.
 */
#include "kernels/replicas.h"

#include "kernels/cpu/elementwise_loop.h"

/* Of each replica at a time; and two buffers per level of the tree above eight. */
enum { BLOCK_BYTES = 4096 };

/* Replicas of the left part: the largest power of two below n. */
static int left_of(int n)
{
    int left = 1;
    while (2 * left < n)
        left *= 2;
    return left;
}

#define TWO(T, a, b) ((T)(a[i] + b[i]))
#define FOUR(T, a, b, c, d) ((T)(TWO(T, a, b) + TWO(T, c, d)))

/* T adds without undefined behaviour: floats, and unsigned integers that wrap. */
#define NODE(s, T)                                                                                 \
    enum { BLOCK_##s = BLOCK_BYTES / sizeof(T) };                                                  \
                                                                                                   \
    static void few_##s(int many, const void *const *in, int64_t at, T *y, int64_t n)              \
    {                                                                                              \
        const T *p[8];                                                                             \
        for (int k = 0; k < 8; k++)                                                                \
            p[k] = (const T *)in[k < many ? k : 0] + at;                                           \
        const T *a = p[0], *b = p[1], *c = p[2], *d = p[3];                                        \
        const T *e = p[4], *f = p[5], *g = p[6], *h = p[7];                                        \
        switch (many) {                                                                            \
        case 1:                                                                                    \
            LS__EACH y[i] = a[i];                                                                  \
            break;                                                                                 \
        case 2:                                                                                    \
            LS__EACH y[i] = TWO(T, a, b);                                                          \
            break;                                                                                 \
        case 3:                                                                                    \
            LS__EACH y[i] = (T)(TWO(T, a, b) + c[i]);                                              \
            break;                                                                                 \
        case 4:                                                                                    \
            LS__EACH y[i] = FOUR(T, a, b, c, d);                                                   \
            break;                                                                                 \
        case 5:                                                                                    \
            LS__EACH y[i] = (T)(FOUR(T, a, b, c, d) + e[i]);                                       \
            break;                                                                                 \
        case 6:                                                                                    \
            LS__EACH y[i] = (T)(FOUR(T, a, b, c, d) + TWO(T, e, f));                               \
            break;                                                                                 \
        case 7:                                                                                    \
            LS__EACH y[i] = (T)(FOUR(T, a, b, c, d) + (T)(TWO(T, e, f) + g[i]));                   \
            break;                                                                                 \
        default:                                                                                   \
            LS__EACH y[i] = (T)(FOUR(T, a, b, c, d) + FOUR(T, e, f, g, h));                        \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void node_##s(int many, const void *const *in, int64_t at, T *y, int64_t n)             \
    {                                                                                              \
        if (many <= 8) {                                                                           \
            few_##s(many, in, at, y, n);                                                           \
            return;                                                                                \
        }                                                                                          \
        T a[BLOCK_##s], b[BLOCK_##s];                                                              \
        int left = left_of(many);                                                                  \
        node_##s(left, in, at, a, n);                                                              \
        node_##s(many - left, in + left, at, b, n);                                                \
        LS__EACH y[i] = (T)(a[i] + b[i]);                                                          \
    }                                                                                              \
                                                                                                   \
    static void sum_##s(int many, const void *const *in, void *out, int64_t count)                 \
    {                                                                                              \
        for (int64_t at = 0; at < count; at += BLOCK_##s) {                                        \
            int64_t n = count - at < BLOCK_##s ? count - at : BLOCK_##s;                           \
            node_##s(many, in, at, (T *)out + at, n);                                              \
        }                                                                                          \
    }

/* R is what a quotient is: T, or double for integers, which are S with their sign. */
#define MEAN(s, T, S, R)                                                                           \
    static void mean_##s(int many, const void *const *in, void *out, int64_t count)                \
    {                                                                                              \
        const R divisor = (R)many;                                                                 \
        for (int64_t at = 0; at < count; at += BLOCK_##s) {                                        \
            int64_t n = count - at < BLOCK_##s ? count - at : BLOCK_##s;                           \
            T total[BLOCK_##s];                                                                    \
            node_##s(many, in, at, total, n);                                                      \
            R *y = (R *)out + at;                                                                  \
            if ((many & (many - 1)) == 0) /* the same number before it is rounded */               \
                LS__EACH y[i] = (R)(S)total[i] * (1 / divisor);                                    \
            else                                                                                   \
                LS__EACH y[i] = (R)(S)total[i] / divisor;                                          \
        }                                                                                          \
    }

/* S is T with its sign. A float is multiplied where that is the same number before it is rounded. */
#define QUOTIENT_FLOAT(s, T)                                                                       \
    static void divide_##s(void *x, int divisor, int64_t n)                                        \
    {                                                                                              \
        T *y = x;                                                                                  \
        const T d = (T)divisor, inverse = 1 / d;                                                   \
        if (divisor <= 1)                                                                          \
            return;                                                                                \
        if ((divisor & (divisor - 1)) == 0)                                                        \
            LS__EACH y[i] *= inverse;                                                              \
        else                                                                                       \
            LS__EACH y[i] /= d;                                                                    \
    }                                                                                              \
                                                                                                   \
    static void pair_##s(const void *pa, const void *pb, void *py, void *pz, int divisor,          \
                         int64_t n)                                                                \
    {                                                                                              \
        const T *a = pa, *b = pb, d = (T)divisor, inverse = 1 / d;                                 \
        T *y = py, *z = pz;                                                                        \
        if (divisor <= 1)                                                                          \
            LS__EACH y[i] = z[i] = a[i] + b[i];                                                    \
        else if ((divisor & (divisor - 1)) == 0)                                                   \
            LS__EACH y[i] = z[i] = (a[i] + b[i]) * inverse;                                        \
        else                                                                                       \
            LS__EACH y[i] = z[i] = (a[i] + b[i]) / d;                                              \
    }

#define QUOTIENT_WHOLE(s, T, S)                                                                    \
    static void divide_##s(void *x, int divisor, int64_t n)                                        \
    {                                                                                              \
        T *y = x;                                                                                  \
        if (divisor > 1)                                                                           \
            LS__EACH y[i] = (T)((S)y[i] / divisor);                                                \
    }                                                                                              \
                                                                                                   \
    static void pair_##s(const void *pa, const void *pb, void *py, void *pz, int divisor,          \
                         int64_t n)                                                                \
    {                                                                                              \
        const T *a = pa, *b = pb;                                                                  \
        T *y = py, *z = pz;                                                                        \
        if (divisor <= 1)                                                                          \
            LS__EACH y[i] = z[i] = (T)(a[i] + b[i]);                                               \
        else                                                                                       \
            LS__EACH y[i] = z[i] = (T)((S)(T)(a[i] + b[i]) / divisor);                             \
    }

NODE(f32, float)
NODE(f64, double)
NODE(i32, uint32_t)
NODE(i64, uint64_t)
NODE(u8, uint8_t)

MEAN(f32, float, float, float)
MEAN(f64, double, double, double)
MEAN(i32, uint32_t, int32_t, double)
MEAN(i64, uint64_t, int64_t, double)
MEAN(u8, uint8_t, uint8_t, double)

QUOTIENT_FLOAT(f32, float)
QUOTIENT_FLOAT(f64, double)
QUOTIENT_WHOLE(i32, uint32_t, int32_t)
QUOTIENT_WHOLE(i64, uint64_t, int64_t)
QUOTIENT_WHOLE(u8, uint8_t, uint8_t)

#define EACH_DTYPE(what)                                                                           \
    {                                                                                              \
        [LS_F32] = what##_f32, [LS_F64] = what##_f64, [LS_I32] = what##_i32,                       \
        [LS_I64] = what##_i64, [LS_U8] = what##_u8,                                                \
    }

const ls__replicas_kernels LS__ISA(ls__replicas_table) = { EACH_DTYPE(sum), EACH_DTYPE(mean),
                                                           EACH_DTYPE(pair), EACH_DTYPE(divide) };
