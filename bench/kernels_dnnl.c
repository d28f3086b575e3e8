/*
 * oneDNN's side of bench/kernels.c. Each call owns its primitive and buffers;
 * layouts are whatever the primitive asks for, and reorders are not counted.
 */
#include "kernels_dnnl.h"

#include "kernels/cpu/dnnl_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static dnnl_engine_t engine;
static dnnl_stream_t stream;

typedef struct rival {
    dnnl_primitive_t primitive; /* NULL: sgemm */
    dnnl_exec_arg_t arg[4];
    void *data[4];
    int nargs;
    ls__matmul_shape gemm;
} rival;

void bench_dnnl_start(void)
{
    engine = ls__dnnl_engine();
    if (!engine || ls__dnnl_enter(1, &stream)) {
        fprintf(stderr, "oneDNN has no CPU engine\n");
        exit(1);
    }
}

float *bench_slot(int slot, size_t bytes)
{
    /* Large pages, where there are any: with small ones the cache sets a buffer
     * falls into are a matter of luck. */
    static float *slots[BENCH_SLOTS];
    if (!slots[slot]) {
        slots[slot] = aligned_alloc((size_t)2 << 20, BENCH_SLOT_BYTES);
        if (!slots[slot])
            exit(1);
        madvise(slots[slot], BENCH_SLOT_BYTES, MADV_HUGEPAGE);
    }
    if (bytes > BENCH_SLOT_BYTES) {
        fprintf(stderr, "bench: an argument of %zu bytes\n", bytes);
        exit(1);
    }
    for (size_t i = 0; i < bytes / sizeof(float); i++)
        slots[slot][i] = (float)((i * 2654435761u >> 8) % 2001) / 1000.0f - 1.0f;
    return slots[slot];
}

static void run_primitive(void *opaque)
{
    rival *r = opaque;
    dnnl_primitive_execute(r->primitive, stream, r->nargs, r->arg);
}

static void run_sgemm(void *opaque)
{
    rival *r = opaque;
    const ls__matmul_shape *s = &r->gemm;
    for (int64_t i = 0; i < s->batch; i++)
        dnnl_sgemm(s->ta ? 'T' : 'N', s->tb ? 'T' : 'N', s->m, s->n, s->k, 1.0f,
                   (float *)r->data[0] + i * s->stride_a, s->ta ? s->m : s->k,
                   (float *)r->data[1] + i * s->stride_b, s->tb ? s->k : s->n, 0.0f,
                   (float *)r->data[2] + i * s->stride_c, s->n);
}

void bench_call_free(bench_call *call)
{
    rival *r = call->context;
    for (int i = 0; i < r->nargs; i++)
        dnnl_memory_destroy(r->arg[i].memory);
    dnnl_primitive_destroy(r->primitive);
    free(r);
}

/* A call from a descriptor; the arguments are given as (id, query) pairs. */
static int add(bench_call *out, const char *how, dnnl_primitive_desc_t pd, int nargs,
               const int *ids, const dnnl_query_t *queries)
{
    const char *info = "";
    rival *r = calloc(1, sizeof *r);
    if (!r || dnnl_primitive_create(&r->primitive, pd) != dnnl_success)
        exit(1);
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &info);
    snprintf(out->name, sizeof out->name, "%s, %s", how, info);
    r->nargs = nargs;
    for (int i = 0; i < nargs; i++) {
        const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, queries[i], 0);
        r->data[i] = bench_slot(i, dnnl_memory_desc_get_size(md));
        if (queries[i] == dnnl_query_workspace_md) /* indices: any inside the window */
            memset(r->data[i], 0, dnnl_memory_desc_get_size(md));
        r->arg[i].arg = ids[i];
        dnnl_memory_create(&r->arg[i].memory, md, engine, r->data[i]);
    }
    out->run = run_primitive;
    out->context = r;
    return 1;
}

static const int pass_ids[3][3] = {
    { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST },
    { DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST },
    { DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST },
};
static const dnnl_query_t pass_queries[3][3] = {
    { dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md },
    { dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md },
    { dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md },
};

static int add_conv(const ls__conv_shape *s, ls__conv_pass pass, const char *how,
                    dnnl_alg_kind_t alg, dnnl_format_tag_t act, dnnl_format_tag_t weights,
                    bench_call *out)
{
    dnnl_memory_desc_t x, w, y;
    dnnl_convolution_desc_t fwd, bwd;
    dnnl_primitive_desc_t hint = NULL, pd = NULL;
    dnnl_dims_t dx = { s->n, s->c, s->h, s->w }, dw = { s->oc, s->c, s->kh, s->kw };
    dnnl_dims_t dy = { s->n, s->oc, s->oh, s->ow }, stride = { s->stride_h, s->stride_w };
    dnnl_dims_t before = { s->pad_top, s->pad_left }, after = { s->pad_bottom, s->pad_right };
    dnnl_memory_desc_init_by_tag(&x, 4, dx, dnnl_f32, act);
    dnnl_memory_desc_init_by_tag(&w, 4, dw, dnnl_f32, weights);
    dnnl_memory_desc_init_by_tag(&y, 4, dy, dnnl_f32, act);
    dnnl_convolution_forward_desc_init(&fwd, dnnl_forward_training, alg, &x, &w, NULL, &y, stride,
                                       before, after);
    if (dnnl_primitive_desc_create(&hint, &fwd, NULL, engine, NULL) != dnnl_success)
        return 0;
    if (pass == LS__CONV_BACKWARD_DATA)
        dnnl_convolution_backward_data_desc_init(&bwd, alg, &x, &w, &y, stride, before, after);
    else if (pass == LS__CONV_BACKWARD_WEIGHTS)
        dnnl_convolution_backward_weights_desc_init(&bwd, alg, &x, &w, NULL, &y, stride, before,
                                                    after);
    if (pass != LS__CONV_FORWARD)
        dnnl_primitive_desc_create(&pd, &bwd, NULL, engine, hint);
    dnnl_primitive_desc_t used = pass == LS__CONV_FORWARD ? hint : pd;
    int n = used ? add(out, how, used, 3, pass_ids[pass], pass_queries[pass]) : 0;
    dnnl_primitive_desc_destroy(pd);
    dnnl_primitive_desc_destroy(hint);
    return n;
}

int bench_conv_calls(const ls__conv_shape *s, ls__conv_pass pass, bench_call *out)
{
    const dnnl_format_tag_t any = dnnl_format_tag_any;
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    int n = add_conv(s, pass, "any", direct, any, any, out);
    n += add_conv(s, pass, "nhwc, any weights", direct, dnnl_nhwc, any, out + n);
    n += add_conv(s, pass, "nhwc, hwio", direct, dnnl_nhwc, dnnl_hwio, out + n);
    n += add_conv(s, pass, "any", dnnl_convolution_winograd, any, any, out + n);
    return n;
}

static int add_sgemm(const ls__matmul_shape *s, bench_call *out)
{
    rival *r = calloc(1, sizeof *r);
    if (!r)
        exit(1);
    r->gemm = *s;
    r->data[0] = bench_slot(0, (size_t)(s->batch * s->m * s->k) * sizeof(float));
    r->data[1] = bench_slot(1, (size_t)(s->batch * s->k * s->n) * sizeof(float));
    r->data[2] = bench_slot(2, (size_t)(s->batch * s->m * s->n) * sizeof(float));
    snprintf(out->name, sizeof out->name, "sgemm %c%c", s->ta ? 'T' : 'N', s->tb ? 'T' : 'N');
    out->run = run_sgemm;
    out->context = r;
    return 1;
}

static int add_matmul(const ls__matmul_shape *s, const char *how, bool any_b, bench_call *out)
{
    dnnl_memory_desc_t a, b, c;
    dnnl_matmul_desc_t desc;
    dnnl_primitive_desc_t pd = NULL;
    const bool batched = s->batch > 1;
    const int nd = batched ? 3 : 2, at = batched ? 1 : 0; /* where the matrix begins */
    dnnl_dims_t da = { s->batch }, db = { s->batch }, dc = { s->batch };
    da[at] = dc[at] = s->m;
    da[at + 1] = db[at] = s->k;
    db[at + 1] = dc[at + 1] = s->n;
    dnnl_format_tag_t rows = batched ? dnnl_abc : dnnl_ab, cols = batched ? dnnl_acb : dnnl_ba;
    dnnl_memory_desc_init_by_tag(&a, nd, da, dnnl_f32, s->ta ? cols : rows);
    dnnl_memory_desc_init_by_tag(&b, nd, db, dnnl_f32,
                                 any_b ? dnnl_format_tag_any : (s->tb ? cols : rows));
    dnnl_memory_desc_init_by_tag(&c, nd, dc, dnnl_f32, rows);
    dnnl_matmul_desc_init(&desc, &a, &b, NULL, &c);
    if (dnnl_primitive_desc_create(&pd, &desc, NULL, engine, NULL) != dnnl_success)
        return 0;
    int n = add(out, how, pd, 3, pass_ids[0], pass_queries[0]);
    dnnl_primitive_desc_destroy(pd);
    return n;
}

/* A dense layer seen as oneDNN's inner product; the weights are [out, in]. */
static int add_inner_product(const ls__matmul_shape *s, const char *how, dnnl_format_tag_t act,
                             dnnl_format_tag_t weights, bench_call *out)
{
    const int pass = s->ta ? 2 : s->tb ? 1 : 0;
    const int64_t rows = pass == 2 ? s->k : s->m;
    const int64_t in = pass == 0 ? s->k : pass == 1 ? s->n : s->m;
    const int64_t width = pass == 0 ? s->n : pass == 1 ? s->k : s->n;
    dnnl_dims_t dx = { rows, in }, dw = { width, in }, dy = { rows, width };
    dnnl_memory_desc_t x, w, y;
    dnnl_inner_product_desc_t fwd, bwd;
    dnnl_primitive_desc_t hint = NULL, pd = NULL;
    dnnl_memory_desc_init_by_tag(&x, 2, dx, dnnl_f32, act);
    dnnl_memory_desc_init_by_tag(&w, 2, dw, dnnl_f32, weights);
    dnnl_memory_desc_init_by_tag(&y, 2, dy, dnnl_f32, act);
    dnnl_inner_product_forward_desc_init(&fwd, dnnl_forward_training, &x, &w, NULL, &y);
    if (dnnl_primitive_desc_create(&hint, &fwd, NULL, engine, NULL) != dnnl_success)
        return 0;
    if (pass == 1)
        dnnl_inner_product_backward_data_desc_init(&bwd, &x, &w, &y);
    else if (pass == 2)
        dnnl_inner_product_backward_weights_desc_init(&bwd, &x, &w, NULL, &y);
    if (pass != 0)
        dnnl_primitive_desc_create(&pd, &bwd, NULL, engine, hint);
    dnnl_primitive_desc_t used = pass == 0 ? hint : pd;
    int n = used ? add(out, how, used, 3, pass_ids[pass], pass_queries[pass]) : 0;
    dnnl_primitive_desc_destroy(pd);
    dnnl_primitive_desc_destroy(hint);
    return n;
}

int bench_matmul_calls(const ls__matmul_shape *s, bool weights, bench_call *out)
{
    const dnnl_format_tag_t any = dnnl_format_tag_any;
    int n = add_sgemm(s, out);
    n += add_matmul(s, "matmul plain", false, out + n);
    if (weights || s->batch > 1)
        n += add_matmul(s, "matmul any B", true, out + n);
    if (s->batch > 1)
        return n;
    n += add_inner_product(s, "inner product plain", dnnl_ab, dnnl_ba, out + n);
    n += add_inner_product(s, "inner product any weights", dnnl_ab, any, out + n);
    n += add_inner_product(s, "inner product any", any, any, out + n);
    return n;
}

static int add_pool(const ls__pool_shape *s, bool backward, const char *how, dnnl_format_tag_t tag,
                    bench_call *out)
{
    dnnl_memory_desc_t x, y;
    dnnl_pooling_desc_t fwd, bwd;
    dnnl_primitive_desc_t hint = NULL, pd = NULL;
    dnnl_dims_t dx = { s->n, s->c, s->h, s->w }, dy = { s->n, s->c, s->oh, s->ow };
    dnnl_dims_t stride = { s->stride_h, s->stride_w }, kernel = { s->kh, s->kw };
    dnnl_dims_t none = { 0, 0 };
    static const int ids[2][3] = {
        { DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_WORKSPACE },
        { DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_WORKSPACE },
    };
    static const dnnl_query_t queries[2][3] = {
        { dnnl_query_src_md, dnnl_query_dst_md, dnnl_query_workspace_md },
        { dnnl_query_diff_src_md, dnnl_query_diff_dst_md, dnnl_query_workspace_md },
    };
    dnnl_memory_desc_init_by_tag(&x, 4, dx, dnnl_f32, tag);
    dnnl_memory_desc_init_by_tag(&y, 4, dy, dnnl_f32, tag);
    dnnl_pooling_forward_desc_init(&fwd, dnnl_forward_training, dnnl_pooling_max, &x, &y, stride,
                                   kernel, none, none);
    if (dnnl_primitive_desc_create(&hint, &fwd, NULL, engine, NULL) != dnnl_success)
        return 0;
    if (backward) {
        dnnl_pooling_backward_desc_init(&bwd, dnnl_pooling_max, &x, &y, stride, kernel, none, none);
        dnnl_primitive_desc_create(&pd, &bwd, NULL, engine, hint);
    }
    dnnl_primitive_desc_t used = backward ? pd : hint;
    int n = used ? add(out, how, used, 3, ids[backward], queries[backward]) : 0;
    dnnl_primitive_desc_destroy(pd);
    dnnl_primitive_desc_destroy(hint);
    return n;
}

int bench_pool_calls(const ls__pool_shape *s, bool backward, bench_call *out)
{
    int n = add_pool(s, backward, "nhwc", dnnl_nhwc, out);
    n += add_pool(s, backward, "blocked", dnnl_nChw16c, out + n);
    return n;
}
