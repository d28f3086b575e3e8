/*
 * Matrix multiplication: checks and completes shapes, and decides who computes.
 * Invariant: an empty or k = 0 product never reaches a kernel, and the route is
 * a pure function of the shape and the number of threads.
 */
#include "kernels/matmul.h"

#include "kernels/gemm.h"
#include "kernels/ref/ref_matmul.h"
#include "kernels/threads.h"

#include <string.h>

#ifdef LS_HAVE_DNNL
#include "kernels/cpu/dnnl_engine.h"
#include "kernels/cpu/dnnl_matmul.h"
#endif

static ls_status check_rows(const char *name, int64_t cols, int64_t *ld)
{
    if (*ld == 0)
        *ld = cols > 0 ? cols : 1;
    if (*ld < cols)
        return ls__fail(LS_INVALID, "matmul: rows of %s are %lld long but %lld apart", name,
                        (long long)cols, (long long)*ld);
    return LS_OK;
}

/* Fills in the row distances and folds the batch into the rows where A's
 * matrices follow each other and B is shared: one large product is faster than
 * many small ones, and each row of C is the same sum either way. */
static ls_status complete(const ls__matmul_shape *given, ls__matmul_shape *s)
{
    *s = *given;
    if (s->batch < 0 || s->m < 0 || s->n < 0 || s->k < 0)
        return ls__fail(LS_INVALID, "matmul: %lld x (%lld x %lld x %lld)", (long long)s->batch,
                        (long long)s->m, (long long)s->k, (long long)s->n);
    ls_status st = check_rows("A", s->ta ? s->m : s->k, &s->lda);
    if (!st)
        st = check_rows("B", s->tb ? s->k : s->n, &s->ldb);
    if (!st)
        st = check_rows("C", s->n, &s->ldc);
    if (st)
        return st;
    if (s->batch > 1 && (s->stride_a < 0 || s->stride_b < 0 || s->stride_c <= 0) && s->m > 0 &&
        s->n > 0)
        return ls__hint(ls__fail(LS_INVALID, "matmul: batch strides %lld, %lld, %lld",
                                 (long long)s->stride_a, (long long)s->stride_b,
                                 (long long)s->stride_c),
                        "A and B may share one matrix (stride 0), C may not");
    if (s->batch > 1 && !s->ta && s->stride_b == 0 && s->stride_a == s->m * s->lda &&
        s->stride_c == s->m * s->ldc) {
        s->m *= s->batch;
        s->batch = 1;
    }
    if (s->batch == 1)
        s->stride_a = s->stride_b = s->stride_c = 0;
    return LS_OK;
}

/*
 * dnnl_sgemm or the matmul primitive: measured on Sapphire Rapids, 1 thread,
 * over the shapes of bench/kernels.c (oneDNN 2.6.3). sgemm packs A well and B
 * badly, the primitive the other way round:
 *   A B     sgemm is up to 10 % faster, but for narrow C (n <= 64), where the
 *           primitive is 8 to 20 % faster
 *   A B^T   the primitive, 10 to 15 % faster at 64 rows, equal at 1,024
 *   A^T B   sgemm, 10 to 20 % faster, but when rows of A are 4 KiB or a multiple
 *           apart its packing hits one cache set: 4.5 ms against 2.9
 * Batches of small matrices follow the same rules: the primitive's one call
 * wins the first two, sgemm the third.
 */
static ls__matmul_route route(const ls__matmul_shape *s)
{
    if (s->batch == 0 || s->m == 0 || s->n == 0 || s->k == 0)
        return LS__MATMUL_ZERO;
#ifdef LS_HAVE_DNNL
    if (!ls__dnnl_engine())
        return LS__MATMUL_REFERENCE;
    if (ls__kernel_threads_get() == 1 && ls__gemm_pays(s))
        return LS__MATMUL_OWN;
    if (s->batch > 1 && s->stride_a == 0 && s->stride_b == 0)
        return LS__MATMUL_SGEMM; /* the primitive wants a batch in A or B */
    bool one_set = s->lda % 1024 == 0 && s->k >= 256;
    if (s->ta)
        return one_set || s->tb ? LS__MATMUL_PRIMITIVE : LS__MATMUL_SGEMM;
    if (s->tb || s->n <= 64 || s->batch > 1)
        return LS__MATMUL_PRIMITIVE;
    return LS__MATMUL_SGEMM;
#else
    return LS__MATMUL_REFERENCE;
#endif
}

ls__matmul_route ls__matmul_route_f32(const ls__matmul_shape *shape)
{
    ls__matmul_shape s;
    return complete(shape, &s) ? LS__MATMUL_ZERO : route(&s);
}

static void zero(const ls__matmul_shape *s, void *c, size_t element)
{
    for (int64_t i = 0; i < s->batch; i++)
        for (int64_t row = 0; row < s->m; row++)
            memset((char *)c + (size_t)(i * s->stride_c + row * s->ldc) * element, 0,
                   (size_t)s->n * element);
}

ls_status ls__matmul_plan_open(ls__matmul_plan *plan, const ls__matmul_shape *shape, bool pack_b)
{
    ls__matmul_plan p = { .b_plain = true };
    ls_status st = complete(shape, &p.shape);
    if (st)
        return st;
    const ls__matmul_shape *s = &p.shape;
    p.route = route(s);
    int64_t rows = s->tb ? s->n : s->k;
    int64_t last = s->batch > 0 ? (s->batch - 1) * s->stride_b : 0;
    p.b_bytes = (size_t)(last + rows * s->ldb) * sizeof(float);
#ifdef LS_HAVE_DNNL
    bool fast = p.route >= LS__MATMUL_OWN;
    pack_b = pack_b && fast && s->batch == 1 && !s->ta;
    if (pack_b || p.route == LS__MATMUL_PRIMITIVE) {
        st = ls__dnnl_matmul_plan(s, pack_b, &p.dnnl);
        if (st)
            return st;
        if (p.dnnl)
            p.route = LS__MATMUL_PRIMITIVE;
        else if (p.route == LS__MATMUL_PRIMITIVE)
            p.route = LS__MATMUL_SGEMM;
    }
    if (p.dnnl && pack_b) {
        p.b_plain = p.dnnl->arg[1].plain;
        p.b_bytes = p.dnnl->arg[1].bytes;
    }
#else
    (void)pack_b;
#endif
    *plan = p;
    return LS_OK;
}

void ls__matmul_plan_close(ls__matmul_plan *plan)
{
#ifdef LS_HAVE_DNNL
    ls__dnnl_plan_release(plan->dnnl);
#endif
    plan->dnnl = NULL;
}

/*
 * Measured on Sapphire Rapids, 1 thread (oneDNN 2.6.3): plain, packed and packing
 * by turns, the smallest time of each, weights cold. Times as fast as plain, by
 * the rows of A (B is k x n):
 *
 *                      4     16    64    256   1024
 *   A B    784x2048   1.13  1.06  1.01  0.97  0.93   warm: 1.15 at 64
 *         2048x2048   1.07  1.07  1.17  0.92  0.89
 *         1024x1024   1.20  1.13  1.08  0.96  0.94
 *          512x512    1.17  0.98  0.92  1.00  0.92   warm: 0.97 at 4
 *   A B^T 2048x2048   1.68  1.46  1.18  0.97  0.96
 *          512x512    1.75  1.46  1.17  1.11  1.07
 *          256x64     1.67  1.48  1.16  1.04  1.13   (1 row instead of 4)
 *         2048x10     0.85  0.75  0.90  0.94  0.95   (1 row instead of 4)
 *
 * With a packing in every run they are 0.3 to 0.9 up to 256 rows and 0.84 to 1.1
 * at 1,024: what is used once is not worth packing.
 */
bool ls__matmul_packing_pays(const ls__matmul_shape *s)
{
    if (s->batch != 1 || s->ta || s->m > 64)
        return false;
    return s->tb ? s->m >= 1 && s->n >= 64 && s->k >= 64 : s->m >= 4 && s->n >= 768 && s->k >= 768;
}

ls_status ls__matmul_plan_pack_b(const ls__matmul_plan *plan, const float *b, void *packed)
{
#ifdef LS_HAVE_DNNL
    if (!plan->b_plain)
        return ls__dnnl_plan_pack(plan->dnnl, 1, b, packed);
#endif
    if (plan->b_bytes > 0)
        memcpy(packed, b, plan->b_bytes);
    return LS_OK;
}

#ifdef LS_HAVE_DNNL
static ls_status run_own(const ls__matmul_shape *s, const float *a, const float *b, float *c)
{
    float *scratch = ls__dnnl_buffer(LS__DNNL_GEMM, ls__gemm_scratch(s) * sizeof *scratch);
    if (!scratch)
        return LS_NO_MEMORY;
    ls__gemm_run(s, a, b, c, scratch);
    return LS_OK;
}
#endif

ls_status ls__matmul_plan_run(const ls__matmul_plan *plan, const float *a, const void *b, float *c)
{
    switch (plan->route) {
    case LS__MATMUL_ZERO:
        zero(&plan->shape, c, sizeof *c);
        return LS_OK;
    case LS__MATMUL_REFERENCE:
        ls__ref_matmul_f32(&plan->shape, a, b, c);
        return LS_OK;
#ifdef LS_HAVE_DNNL
    case LS__MATMUL_OWN:
        return run_own(&plan->shape, a, b, c);
    case LS__MATMUL_SGEMM:
        return ls__dnnl_sgemm(&plan->shape, a, b, c);
    case LS__MATMUL_PRIMITIVE:
        return ls__dnnl_plan_run(plan->dnnl, (void *const[]){ (void *)a, (void *)b, c });
#endif
    default:
        return ls__fail(LS_STATE, "matmul: this build cannot run route %d", (int)plan->route);
    }
}

ls_status ls__matmul_f32(const ls__matmul_shape *shape, const float *a, const float *b, float *c)
{
    ls__matmul_plan plan;
    ls_status st = ls__matmul_plan_open(&plan, shape, false);
    if (st)
        return st;
    st = ls__matmul_plan_run(&plan, a, b, c);
    ls__matmul_plan_close(&plan);
    return st;
}

ls_status ls__matmul_f64(const ls__matmul_shape *shape, const double *a, const double *b, double *c)
{
    ls__matmul_shape s;
    ls_status st = complete(shape, &s);
    if (st)
        return st;
    if (s.batch == 0 || s.m == 0 || s.n == 0 || s.k == 0)
        zero(&s, c, sizeof *c);
    else
        ls__ref_matmul_f64(&s, a, b, c);
    return LS_OK;
}
