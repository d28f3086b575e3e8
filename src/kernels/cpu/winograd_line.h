/*
 * winograd.h's transforms of one line, sixteen channels at a time: from memory or registers to what is `step`
 * apart. The points are 0, +-P, +-Q and infinity; with P = 5/8 and Q = 3/2 the error is about half of that
 * with 1 and 2 (design 6). Of a pair of points what is even and what is odd in them is shared: every transform is
 * a dozen operations. Those of two dimensions are these of all columns and then of all rows.
 */
#ifndef LS__KERNELS_CPU_WINOGRAD_LINE_H
#define LS__KERNELS_CPU_WINOGRAD_LINE_H

#include "kernels/cpu/vec16.h"
#include "kernels/winograd.h"

enum { IN = LS__WINOGRAD_IN, OUT = LS__WINOGRAD_OUT, TAPS = 3, POSITIONS = LS__WINOGRAD_POSITIONS };

#define P 0.625f
#define Q 1.5f
#define PP (P * P)
#define QQ (Q * Q)
/* What a filter's value at +-P, at +-Q is divided by. */
#define AT_P (1 / (2 * PP * (PP - QQ)))
#define AT_Q (1 / (2 * QQ * (QQ - PP)))
#define AT_0 (1 / (PP * QQ))

/* B^T, 6 to 6. */
VEC_INLINE void to_points(const vec x[IN], vec *v, int step)
{
    const vec even_p = vec_fma(vec_all(-QQ), x[2], x[4]), odd_p = vec_fma(vec_all(-QQ), x[1], x[3]);
    const vec even_q = vec_fma(vec_all(-PP), x[2], x[4]), odd_q = vec_fma(vec_all(-PP), x[1], x[3]);
    v[0] = vec_fma(vec_all(PP * QQ), x[0], vec_fma(vec_all(-(PP + QQ)), x[2], x[4]));
    v[step] = vec_fma(vec_all(P), odd_p, even_p);
    v[2 * step] = vec_fma(vec_all(-P), odd_p, even_p);
    v[3 * step] = vec_fma(vec_all(Q), odd_q, even_q);
    v[4 * step] = vec_fma(vec_all(-Q), odd_q, even_q);
    v[5 * step] = vec_fma(vec_all(PP * QQ), x[1], vec_fma(vec_all(-(PP + QQ)), x[3], x[5]));
}

/* B, 6 to 6. */
VEC_INLINE void from_points(const vec v[IN], vec *x, int step)
{
    const vec even_p = v[1] + v[2], odd_p = v[1] - v[2];
    const vec even_q = v[3] + v[4], odd_q = v[3] - v[4];
    x[0] = vec_all(PP * QQ) * v[0];
    x[step] =
        vec_fma(vec_all(-P * QQ), odd_p, vec_fma(vec_all(-PP * Q), odd_q, vec_all(PP * QQ) * v[5]));
    x[2 * step] =
        vec_fma(vec_all(-QQ), even_p, vec_fma(vec_all(-PP), even_q, vec_all(-(PP + QQ)) * v[0]));
    x[3 * step] =
        vec_fma(vec_all(P), odd_p, vec_fma(vec_all(Q), odd_q, vec_all(-(PP + QQ)) * v[5]));
    x[4 * step] = v[0] + even_p + even_q;
    x[5 * step] = v[5];
}

/* A^T, 6 to 4. */
VEC_INLINE void to_sums(const vec m[IN], vec *y, int step)
{
    const vec even_p = m[1] + m[2], odd_p = m[1] - m[2];
    const vec even_q = m[3] + m[4], odd_q = m[3] - m[4];
    y[0] = m[0] + even_p + even_q;
    y[step] = vec_fma(vec_all(P), odd_p, vec_all(Q) * odd_q);
    y[2 * step] = vec_fma(vec_all(PP), even_p, vec_all(QQ) * even_q);
    y[3 * step] = vec_fma(vec_all(P * PP), odd_p, vec_fma(vec_all(Q * QQ), odd_q, m[5]));
}

/* A, 4 to 6. */
VEC_INLINE void from_sums(const vec y[OUT], vec *m, int step)
{
    const vec even_p = vec_fma(vec_all(PP), y[2], y[0]), odd_p = vec_fma(vec_all(PP), y[3], y[1]);
    const vec even_q = vec_fma(vec_all(QQ), y[2], y[0]), odd_q = vec_fma(vec_all(QQ), y[3], y[1]);
    m[0] = y[0];
    m[step] = vec_fma(vec_all(P), odd_p, even_p);
    m[2 * step] = vec_fma(vec_all(-P), odd_p, even_p);
    m[3 * step] = vec_fma(vec_all(Q), odd_q, even_q);
    m[4 * step] = vec_fma(vec_all(-Q), odd_q, even_q);
    m[5 * step] = y[3];
}

/* G, 3 to 6. */
VEC_INLINE void filter_to_points(const vec w[TAPS], vec *u, int step)
{
    const vec even_p = vec_fma(vec_all(PP), w[2], w[0]) * vec_all(AT_P);
    const vec even_q = vec_fma(vec_all(QQ), w[2], w[0]) * vec_all(AT_Q);
    const vec odd_p = vec_all(P * AT_P) * w[1], odd_q = vec_all(Q * AT_Q) * w[1];
    u[0] = vec_all(AT_0) * w[0];
    u[step] = even_p + odd_p;
    u[2 * step] = even_p - odd_p;
    u[3 * step] = even_q + odd_q;
    u[4 * step] = even_q - odd_q;
    u[5 * step] = w[2];
}

/* G^T, 6 to 3. */
VEC_INLINE void filter_from_points(const vec u[IN], vec *w, int step)
{
    const vec even_p = (u[1] + u[2]) * vec_all(AT_P), odd_p = (u[1] - u[2]) * vec_all(P * AT_P);
    const vec even_q = (u[3] + u[4]) * vec_all(AT_Q), odd_q = (u[3] - u[4]) * vec_all(Q * AT_Q);
    w[0] = vec_fma(vec_all(AT_0), u[0], even_p + even_q);
    w[step] = odd_p + odd_q;
    w[2 * step] = vec_fma(vec_all(PP), even_p, vec_fma(vec_all(QQ), even_q, u[5]));
}

/* A line of positions, `plane` floats apart. */
VEC_INLINE void get_line(const float *from, int64_t plane, vec line[IN])
{
    VEC_UNROLL
    for (int i = 0; i < IN; i++)
        line[i] = vec_load(from + i * plane);
}

VEC_INLINE void put_line(const vec line[IN], float *to, int64_t plane)
{
    VEC_UNROLL
    for (int i = 0; i < IN; i++)
        vec_store(to + i * plane, line[i]);
}

#endif
