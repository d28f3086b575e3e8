/*
 * Matrix multiplication by oneDNN: dnnl_sgemm, the matmul primitive (a batch in
 * one call, any strides), and for packed weights the inner product, which is the
 * same product with better blocked layouts when B is wide. Invariant: which of
 * them runs is settled by the shape.
 */
#include "kernels/threads.h"
#include "kernels/cpu/dnnl_matmul.h"

#include "kernels/cpu/dnnl_engine.h"

ls_status ls__dnnl_sgemm(const ls__matmul_shape *s, const float *a, const float *b, float *c)
{
    dnnl_stream_t stream;
    ls_status entered = ls__dnnl_enter(ls__kernel_threads_get(), &stream);
    if (entered)
        return entered;
    dnnl_status_t st = dnnl_success;
    for (int64_t i = 0; i < s->batch && !st; i++)
        st = dnnl_sgemm(s->ta ? 'T' : 'N', s->tb ? 'T' : 'N', s->m, s->n, s->k, 1.0f,
                        a + i * s->stride_a, s->lda, b + i * s->stride_b, s->ldb, 0.0f,
                        c + i * s->stride_c, s->ldc);
    return ls__dnnl_status(st, "sgemm");
}

/* One operand, `rows` x `cols` after op(). A shared matrix has batch 1. */
static dnnl_status_t operand(dnnl_memory_desc_t *md, int64_t batch, int64_t rows, int64_t cols,
                             int64_t batch_stride, int64_t ld, bool transposed)
{
    if (batch <= 1) {
        dnnl_dims_t dims = { rows, cols };
        dnnl_dims_t strides = { transposed ? 1 : ld, transposed ? ld : 1 };
        return dnnl_memory_desc_init_by_strides(md, 2, dims, dnnl_f32, strides);
    }
    dnnl_dims_t dims = { batch_stride ? batch : 1, rows, cols };
    dnnl_dims_t strides = { batch_stride ? batch_stride : rows * cols, transposed ? 1 : ld,
                            transposed ? ld : 1 };
    return dnnl_memory_desc_init_by_strides(md, 3, dims, dnnl_f32, strides);
}

static dnnl_status_t matmul_pd(const dnnl_memory_desc_t *a, const dnnl_memory_desc_t *b,
                               const dnnl_memory_desc_t *c, dnnl_primitive_attr_t attr,
                               dnnl_primitive_desc_t *out)
{
    dnnl_matmul_desc_t desc;
    dnnl_status_t st = dnnl_matmul_desc_init(&desc, a, b, NULL, c);
    return st ? st : dnnl_primitive_desc_create(out, &desc, attr, ls__dnnl_engine(), NULL);
}

/* C = A W^T in oneDNN's terms, W being n x k in a layout it may choose. */
static dnnl_status_t inner_product_pd(const ls__matmul_shape *s, const dnnl_memory_desc_t *a,
                                      const dnnl_memory_desc_t *c, dnnl_primitive_attr_t attr,
                                      dnnl_primitive_desc_t *out)
{
    dnnl_inner_product_desc_t desc;
    dnnl_memory_desc_t w;
    dnnl_dims_t dims = { s->n, s->k };
    dnnl_status_t st = dnnl_memory_desc_init_by_tag(&w, 2, dims, dnnl_f32, dnnl_format_tag_any);
    if (!st)
        st = dnnl_inner_product_forward_desc_init(&desc, dnnl_forward_inference, a, &w, NULL, c);
    return st ? st : dnnl_primitive_desc_create(out, &desc, attr, ls__dnnl_engine(), NULL);
}

/* Packed products at least this wide go to the inner product. Measured on
 * Sapphire Rapids, 1 thread: 784x2048 gains 12 %, 2048x10 loses 20 %. */
enum { WIDE = 128 };

static dnnl_status_t make_pd(const ls__matmul_shape *s, bool pack_b, dnnl_primitive_attr_t attr,
                             ls__dnnl_arg arg[LS__DNNL_ARGS], dnnl_primitive_desc_t *out)
{
    dnnl_memory_desc_t any;
    dnnl_dims_t dims = { s->k, s->n };
    dnnl_status_t st = operand(&arg[0].plain, s->batch, s->m, s->k, s->stride_a, s->lda, s->ta);
    if (!st)
        st = operand(&arg[1].plain, s->batch, s->k, s->n, s->stride_b, s->ldb, s->tb);
    if (!st)
        st = operand(&arg[2].plain, s->batch, s->m, s->n, s->stride_c, s->ldc, false);
    if (st)
        return st;
    if (!pack_b)
        return matmul_pd(&arg[0].plain, &arg[1].plain, &arg[2].plain, attr, out);
    if (s->n >= WIDE) {
        st = operand(&arg[1].plain, 1, s->n, s->k, 0, s->ldb, !s->tb);
        return st ? st : inner_product_pd(s, &arg[0].plain, &arg[2].plain, attr, out);
    }
    st = dnnl_memory_desc_init_by_tag(&any, 2, dims, dnnl_f32, dnnl_format_tag_any);
    return st ? st : matmul_pd(&arg[0].plain, &any, &arg[2].plain, attr, out);
}

ls_status ls__dnnl_matmul_plan(const ls__matmul_shape *s, bool pack_b, ls__dnnl_plan **out)
{
    const ls__dnnl_key key = { { 'm', ls__kernel_threads_get(), pack_b, s->batch, s->m, s->n, s->k,
                                 s->ta, s->tb, s->stride_a, s->stride_b, s->stride_c, s->lda,
                                 s->ldb, s->ldc } };
    *out = ls__dnnl_find(&key);
    if (*out)
        return LS_OK;
    dnnl_stream_t stream;
    ls_status st = ls__dnnl_enter(ls__kernel_threads_get(), &stream);
    if (st)
        return st;
    ls__dnnl_arg arg[LS__DNNL_ARGS] = {
        { .id = DNNL_ARG_SRC, .query = dnnl_query_src_md },
        { .id = DNNL_ARG_WEIGHTS, .query = dnnl_query_weights_md },
        { .id = DNNL_ARG_DST, .query = dnnl_query_dst_md },
    };
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t pd = NULL;
    st = ls__dnnl_attr(&attr);
    if (st)
        return st;
    dnnl_status_t made = make_pd(s, pack_b, attr, arg, &pd);
    if (!made)
        st = ls__dnnl_plan_make(&key, pd, arg, out);
    else if (made != dnnl_unimplemented)
        st = ls__dnnl_status(made, "matmul");
    dnnl_primitive_desc_destroy(pd);
    dnnl_primitive_attr_destroy(attr);
    return st;
}
