/* Adam's update between the products of gemm.c (gemm.h): adam_f32 of update.c, a vector at a time. */
#ifndef LS__KERNELS_CPU_GEMM_ADAM_H
#define LS__KERNELS_CPU_GEMM_ADAM_H

#include "kernels/gemm.h"

#include <immintrin.h>

/* The next sixteen numbers, of which there are some. */
static inline __attribute__((always_inline)) void adam_vector(ls__gemm_adam *u)
{
    float *w = u->w + u->at, *m = u->m + u->at, *v = u->v + u->at;
    const __m512 g = _mm512_loadu_ps(u->g + u->at), m0 = _mm512_loadu_ps(m);
    const __m512 m1 = _mm512_fmadd_ps(_mm512_sub_ps(g, m0), _mm512_set1_ps(u->one_minus_beta1), m0);
    _mm512_storeu_ps(m, m1);
    const __m512 v0 = _mm512_loadu_ps(v);
    const __m512 v1 =
        _mm512_fmadd_ps(_mm512_fmsub_ps(g, g, v0), _mm512_set1_ps(u->one_minus_beta2), v0);
    _mm512_storeu_ps(v, v1);
    const __m512 size = _mm512_add_ps(_mm512_sqrt_ps(v1), _mm512_set1_ps(u->epsilon));
    _mm512_storeu_ps(w, _mm512_fmadd_ps(_mm512_set1_ps(u->minus_rate), _mm512_div_ps(m1, size),
                                        _mm512_loadu_ps(w)));
    u->at += 16;
    if (u->at < u->columns)
        return;
    u->at = 0;
    u->rows--;
    u->w += u->ld;
    u->m += u->ld;
    u->v += u->ld;
    u->g += u->ldg;
}

static void finish_adam(ls__gemm_adam *u)
{
    while (u->rows > 0)
        adam_vector(u);
}

#endif
