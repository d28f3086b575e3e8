/*
 * make bench-kernels: our kernels against the best oneDNN call for the same
 * work, on one thread, for every layer of the models we care about.
 *
 * Per row, in microseconds: ours on the layouts it prefers; the fastest of the
 * oneDNN calls one could make (layout `any` everywhere, NHWC with `any` weights,
 * plain, Winograd's algorithm; matmul, inner product, sgemm); their ratio; what moving the arguments
 * between plain and preferred costs; and the eager call, which does both. All
 * calls of a row are timed in turns, shuffled, in the same memory, each after a run
 * that warms it; the ratio is the median over turns, so that a busy neighbour or a
 * clock that changes hits all alike. Where Winograd's algorithm pays (kernels/winograd.h) two rows more have it,
 * forward and for both gradients, against the best oneDNN calls for the two, one after the other.
 *
 *     kernels [MODEL]        only that model
 *     kernels MODEL calls    and what each oneDNN call took
 */
#include "kernels/threads.h"
#include "kernels_report.h"

#include "base/status.h"
#include "kernels/conv.h"
#include "kernels/matmul.h"
#include "kernels/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *only;

static void must(ls_status st)
{
    if (st) {
        fprintf(stderr, "%s\n", ls_error_report());
        exit(1);
    }
}

/* --- convolutions ---------------------------------------------------------- */

typedef struct conv_context {
    ls__conv_plan plan;
    float *plain[3], *packed[3];
} conv_context;

static int output_of(ls__conv_pass pass)
{
    return pass == LS__CONV_FORWARD         ? LS__CONV_Y
           : pass == LS__CONV_BACKWARD_DATA ? LS__CONV_X
                                            : LS__CONV_W;
}

static void conv_ours(void *opaque)
{
    conv_context *c = opaque;
    must(ls__conv_plan_run(&c->plan, c->packed[0], c->packed[1], c->packed[2], NULL));
}

static void conv_reorders(void *opaque)
{
    conv_context *c = opaque;
    for (int i = 0; i < 3; i++)
        if (c->plan.arg[i].plain)
            continue;
        else if (i == output_of(c->plan.pass))
            must(ls__conv_plan_unpack(&c->plan, i, c->packed[i], c->plain[i]));
        else
            must(ls__conv_plan_pack(&c->plan, i, c->plain[i], c->packed[i]));
}

static void conv_eager(void *opaque)
{
    conv_context *c = opaque;
    if (c->plan.pass == LS__CONV_FORWARD)
        must(ls__conv_forward_f32(&c->plan.shape, c->plain[0], c->plain[1], c->plain[2]));
    else if (c->plan.pass == LS__CONV_BACKWARD_DATA)
        must(ls__conv_backward_data_f32(&c->plan.shape, c->plain[2], c->plain[1], c->plain[0]));
    else
        must(ls__conv_backward_weights_f32(&c->plan.shape, c->plain[0], c->plain[2], c->plain[1]));
}

static void conv_row(const char *model, const char *layer, int64_t size, int64_t c, int64_t kernel,
                     int64_t oc, int64_t stride, int64_t before, int64_t after)
{
    static const char *const names[] = { "forward", "data", "weights" };
    ls__conv_shape s = { .n = 64,
                         .h = size,
                         .w = size,
                         .c = c,
                         .kh = kernel,
                         .kw = kernel,
                         .oc = oc,
                         .stride_h = stride,
                         .stride_w = stride,
                         .dilation_h = 1,
                         .dilation_w = 1,
                         .pad_top = before,
                         .pad_left = before,
                         .pad_bottom = after,
                         .pad_right = after };
    must(ls__conv_shape_complete(&s));
    if (only && strcmp(only, model) != 0)
        return;
    for (int pass = 0; pass < 3; pass++) {
        conv_context ctx;
        must(ls__conv_plan_open(&ctx.plan, &s, (ls__conv_pass)pass,
                                ls__conv_preferred(&s, (ls__conv_pass)pass)));
        for (int i = 0; i < 3; i++) {
            ctx.plain[i] =
                bench_slot(BENCH_PLAIN + i, (size_t)ls__conv_count(&s, i) * sizeof(float));
            ctx.packed[i] = bench_slot(i, ctx.plan.arg[i].bytes);
        }
        bench_call calls[MOST_CALLS] = { { .run = conv_ours, .context = &ctx },
                                         { .run = conv_reorders, .context = &ctx },
                                         { .run = conv_eager, .context = &ctx } };
        if (ctx.plan.arg[0].plain && ctx.plan.arg[1].plain && ctx.plan.arg[2].plain)
            calls[REORDERS].run = bench_nothing;
        int n = FIRST_RIVAL + bench_conv_calls(&s, (ls__conv_pass)pass, calls + FIRST_RIVAL);
        bench_report(model, layer, names[pass], calls, n);
        bench_free_rivals(calls, n);
        ls__conv_plan_close(&ctx.plan);
    }
    bench_winograd_rows(model, layer, &s);
}

/* --- products -------------------------------------------------------------- */

typedef struct matmul_context {
    ls__matmul_plan plan;
    ls__matmul_shape shape;
    float *a, *b, *packed, *c;
} matmul_context;

static void matmul_ours(void *opaque)
{
    matmul_context *c = opaque;
    must(ls__matmul_plan_run(&c->plan, c->a, c->packed, c->c));
}

static void matmul_reorders(void *opaque)
{
    matmul_context *c = opaque;
    must(ls__matmul_plan_pack_b(&c->plan, c->b, c->packed));
}

static void matmul_eager(void *opaque)
{
    matmul_context *c = opaque;
    must(ls__matmul_f32(&c->shape, c->a, c->b, c->c));
}

/* `weights`: B is a weight, which may be kept packed. */
static void product_row(const char *model, const char *layer, const char *pass, ls__matmul_shape s,
                        bool weights)
{
    if (only && strcmp(only, model) != 0)
        return;
    s.stride_a = s.m * s.k, s.stride_b = s.k * s.n, s.stride_c = s.m * s.n;
    size_t unit = (size_t)s.batch * sizeof(float);
    matmul_context ctx = { .shape = s };
    must(ls__matmul_plan_open(&ctx.plan, &s, weights));
    ctx.a = bench_slot(0, (size_t)s.stride_a * unit);
    ctx.b = bench_slot(BENCH_PLAIN + 1, (size_t)s.stride_b * unit);
    ctx.c = bench_slot(2, (size_t)s.stride_c * unit);
    ctx.packed = bench_slot(1, ctx.plan.b_bytes);
    bench_call calls[MOST_CALLS] = { { .run = matmul_ours, .context = &ctx },
                                     { .run = matmul_reorders, .context = &ctx },
                                     { .run = matmul_eager, .context = &ctx } };
    if (ctx.plan.b_plain)
        calls[REORDERS].run = bench_nothing;
    int n = FIRST_RIVAL + bench_matmul_calls(&s, weights, calls + FIRST_RIVAL);
    bench_report(model, layer, pass, calls, n);
    bench_free_rivals(calls, n);
    ls__matmul_plan_close(&ctx.plan);
}

/* y = x w; dx = dy w^T; dw = x^T dy. */
static void dense_row(const char *model, const char *layer, int64_t rows, int64_t in, int64_t out)
{
    product_row(model, layer, "forward",
                (ls__matmul_shape){ .batch = 1, .m = rows, .n = out, .k = in }, true);
    product_row(model, layer, "data",
                (ls__matmul_shape){ .batch = 1, .m = rows, .n = in, .k = out, .tb = true }, true);
    product_row(model, layer, "weights",
                (ls__matmul_shape){ .batch = 1, .m = in, .n = out, .k = rows, .ta = true }, false);
}

/* --- pools ----------------------------------------------------------------- */

typedef struct pool_context {
    ls__pool_shape s;
    float *x, *y;
    int32_t *argmax;
} pool_context;

static void pool_forward(void *opaque)
{
    pool_context *c = opaque;
    ls__max_pool_forward_f32(&c->s, c->x, c->y, c->argmax);
}

static void pool_backward(void *opaque)
{
    pool_context *c = opaque;
    ls__max_pool_backward_f32(&c->s, c->y, c->argmax, c->x);
}

static void pool_row(const char *model, const char *layer, int64_t size, int64_t c)
{
    pool_context ctx = { .s = { .n = 64,
                                .h = size,
                                .w = size,
                                .c = c,
                                .kh = 2,
                                .kw = 2,
                                .stride_h = 2,
                                .stride_w = 2 } };
    must(ls__pool_shape_complete(&ctx.s));
    if (only && strcmp(only, model) != 0)
        return;
    size_t out = (size_t)(64 * ctx.s.oh * ctx.s.ow * c) * sizeof(float);
    ctx.x = bench_slot(0, (size_t)(64 * size * size * c) * sizeof(float));
    ctx.y = bench_slot(1, out);
    ctx.argmax = (int32_t *)bench_slot(BENCH_PLAIN, out);
    for (int backward = 0; backward < 2; backward++) {
        void (*run)(void *) = backward ? pool_backward : pool_forward;
        bench_call calls[MOST_CALLS] = { { .run = run, .context = &ctx },
                                         { .run = bench_nothing },
                                         { .run = run, .context = &ctx } };
        int n = FIRST_RIVAL + bench_pool_calls(&ctx.s, backward, calls + FIRST_RIVAL);
        bench_report(model, layer, backward ? "data" : "forward", calls, n);
        bench_free_rivals(calls, n);
    }
}

static void resnet_rows(void)
{
    conv_row("resnet", "stem", 28, 1, 3, 16, 1, 1, 1);
    conv_row("resnet", "stage1", 28, 16, 3, 16, 1, 1, 1);
    conv_row("resnet", "enter2", 28, 16, 3, 32, 2, 0, 1);
    conv_row("resnet", "short2", 28, 16, 1, 32, 2, 0, 0);
    conv_row("resnet", "stage2", 14, 32, 3, 32, 1, 1, 1);
    conv_row("resnet", "enter3", 14, 32, 3, 64, 2, 0, 1);
    conv_row("resnet", "short3", 14, 32, 1, 64, 2, 0, 0);
    conv_row("resnet", "stage3", 7, 64, 3, 64, 1, 1, 1);
    dense_row("resnet", "logits", 64, 64, 10);
}

/* Width 256, 8 heads, 8 sequences of 128. */
static void gpt_rows(void)
{
    const ls__matmul_shape scores = { .batch = 64, .m = 128, .n = 128, .k = 32, .tb = true };
    const ls__matmul_shape mix = { .batch = 64, .m = 128, .n = 32, .k = 128 };
    const ls__matmul_shape mix_t = { .batch = 64, .m = 128, .n = 32, .k = 128, .ta = true };
    dense_row("gpt", "qkv", 1024, 256, 768);
    dense_row("gpt", "project", 1024, 256, 256);
    dense_row("gpt", "up", 1024, 256, 1024);
    dense_row("gpt", "down", 1024, 1024, 256);
    product_row("gpt", "logits", "forward",
                (ls__matmul_shape){ .batch = 1, .m = 1024, .n = 256, .k = 256, .tb = true }, true);
    product_row("gpt", "scores", "q k^T", scores, false);
    product_row("gpt", "scores", "dq", mix, false);
    product_row("gpt", "scores", "dk", mix_t, false);
    product_row("gpt", "mix", "p v", mix, false);
    product_row("gpt", "mix", "dp", scores, false);
    product_row("gpt", "mix", "dv", mix_t, false);
}

int main(int argc, char **argv)
{
    only = argc > 1 ? argv[1] : NULL;
    bench_every_call = argc > 2;
    ls__kernel_threads(1);
    bench_dnnl_start();
    printf("one thread, f32, batch 64 (gpt: 8 x 128); microseconds\n");
    printf("%-7s %-9s %-8s %9s %9s %6s %9s %9s   %s\n", "model", "layer", "pass", "ours", "oneDNN",
           "ratio", "reorders", "eager", "best oneDNN call");
    conv_row("cnn", "conv1", 28, 1, 3, 32, 1, 0, 0);
    pool_row("cnn", "pool1", 26, 32);
    dense_row("cnn", "dense1", 64, 5408, 64);
    dense_row("cnn", "logits", 64, 64, 10);
    conv_row("cnn2", "conv2", 13, 32, 3, 64, 1, 0, 0);
    pool_row("cnn2", "pool2", 11, 64);
    dense_row("cnn2", "dense1", 64, 1600, 64);
    dense_row("mlp", "dense1", 64, 784, 2048);
    dense_row("mlp", "dense2", 64, 2048, 2048);
    dense_row("mlp", "logits", 64, 2048, 10);
    resnet_rows();
    gpt_rows();
    bench_summary();
    return 0;
}
