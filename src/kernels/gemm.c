/* See gemm.h: which products, and with which kernel. */
#include "kernels/gemm.h"

#include "kernels/gemm_skip.h"

/*
 * GF/s within steps of `mlp`, 64 rows, both cores at work (bench train mlp --explain, several runs on a
 * machine that others use; oneDNN 2.6.3 by the routes of matmul.c, then these kernels):
 *
 *              784x2048                2048x2048
 *   A B        116 -> 131 to 145       111 -> 140 to 152
 *   A B^T      not measured            124 -> 142 to 157
 *   A^T B      101 -> 120 to 129       111 -> 119 to 130
 *
 * and of `cnn`, 64 rows of 5408, 64 columns: A B 126 -> 135, A B^T (k is 64) 122 -> 135.
 *
 * A^T B with few columns is here for who updates by it (ops/update_products.h): by itself the gradient of 5408 x 64 takes 455
 * to 490 us on a Zen 4, by oneDNN 435.
 *
 * The borders below are not measured: rows and sizes beyond them are left where they were.
 */
bool ls__gemm_pays(const ls__matmul_shape *s)
{
    enum { LEAST = 16, MOST = LS__GEMM_MOST, NARROW = 32, LARGE = 512 };
    const ls__gemm_kernels *kernels = LS__PICK(ls__gemm_table);
    if (!kernels->plain || s->batch != 1 || (s->ta && s->tb))
        return false;
    if (s->ta) /* k is what the others have as rows */
        return s->k >= LEAST && s->k <= MOST && s->m >= LARGE && s->n >= NARROW;
    if (s->tb)
        return s->m >= LEAST && s->m <= MOST && s->n >= LARGE && s->k >= NARROW;
    return s->m >= LEAST && s->m <= MOST && s->n >= NARROW && s->k >= LARGE;
}

bool ls__gemm_adam_pays(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    return LS__PICK(ls__gemm_table)->plain && __builtin_cpu_is("amd");
#else
    return false;
#endif
}

static size_t dense_scratch(const ls__matmul_shape *s)
{
    if (s->ta)
        return (size_t)(s->k * 16 * LS__GEMM_TILES + ls__gemm_panel_floats(s->k, s->n));
    const int64_t deep = s->tb || s->n <= LS__GEMM_NARROW ? LS__GEMM_DEEP_ALONG : LS__GEMM_DEEP;
    return (size_t)(LS__GEMM_ROWS * (deep + (s->n > s->m ? s->n : s->m)));
}

size_t ls__gemm_scratch(const ls__matmul_shape *s)
{
    const size_t dense = dense_scratch(s), skipping = ls__skip_fits(s) ? ls__skip_scratch(s) : 0;
    return dense > skipping ? dense : skipping;
}

/* Without the zeros of A, if it has many; false: all is to be multiplied. */
static bool run_skipping(const ls__matmul_shape *s, const float *a, const float *b, float *c,
                         float *scratch)
{
    const ls__skip_kernels *kernels = LS__PICK(ls__skip_table);
    return ls__skip_fits(s) && ls__skip_pays(s, a) &&
           (s->ta   ? kernels->a_turned
            : s->tb ? kernels->b_turned
                    : kernels->plain)(s, a, b, c, scratch);
}

void ls__gemm_run(const ls__matmul_shape *s, const float *a, const float *b, float *c,
                  float *scratch)
{
    const ls__gemm_kernels *kernels = LS__PICK(ls__gemm_table);
    if (!run_skipping(s, a, b, c, scratch))
        (s->ta   ? kernels->a_turned
         : s->tb ? kernels->b_turned
                 : kernels->plain)(s, a, b, c, scratch);
}
