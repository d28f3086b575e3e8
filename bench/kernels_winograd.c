/*
 * Winograd's algorithm in kernels of ours against oneDNN's calls. Both gradients are one call of ours, which
 * shares half of its work between them; of oneDNN's it is one for each, all pairs of them.
 */
#include "kernels/winograd.h"

#include <stdio.h>
#include <stdlib.h>

#include "kernels_report.h"

typedef struct layer {
    ls__conv_shape s;
    float *x, *w, *y, *scratch;
    float *dx, *dw;
} layer;

static void forward(void *opaque)
{
    layer *l = opaque;
    ls__winograd_forward(&l->s, l->x, l->w, NULL, l->y, NULL, l->scratch);
}

static void backward(void *opaque)
{
    layer *l = opaque;
    ls__winograd_backward(&l->s, l->x, l->w, l->y, NULL, l->dx, l->dw, NULL, l->scratch);
}

/* Two calls of oneDNN's, one after the other. */
typedef struct pair {
    const bench_call *data, *weights;
} pair;

static void run_pair(void *opaque)
{
    pair *p = opaque;
    p->data->run(p->data->context);
    p->weights->run(p->weights->context);
}

static void report_both(const char *model, const char *name, layer *l, bench_call *calls)
{
    bench_call data[MOST_CALLS], weights[MOST_CALLS];
    pair pairs[MOST_CALLS];
    const int n_data = bench_conv_calls(&l->s, LS__CONV_BACKWARD_DATA, data);
    const int n_weights = bench_conv_calls(&l->s, LS__CONV_BACKWARD_WEIGHTS, weights);
    int n = FIRST_RIVAL;
    for (int i = 0; i < n_data; i++)
        for (int k = 0; k < n_weights && n < MOST_CALLS; k++, n++) {
            pairs[n] = (pair){ &data[i], &weights[k] };
            calls[n] = (bench_call){ .run = run_pair, .context = &pairs[n] };
            snprintf(calls[n].name, sizeof calls[n].name, "%.30s; %.30s", data[i].name,
                     weights[k].name);
        }
    calls[OURS].run = backward;
    bench_report(model, name, "w. back", calls, n);
    for (int i = 0; i < n_data; i++)
        bench_call_free(&data[i]);
    for (int k = 0; k < n_weights; k++)
        bench_call_free(&weights[k]);
}

void bench_winograd_rows(const char *model, const char *name, const ls__conv_shape *s)
{
    if (!ls__winograd_pays(s))
        return;
    const size_t x = (size_t)ls__conv_count(s, LS__CONV_X) * sizeof(float);
    const size_t w = (size_t)ls__conv_count(s, LS__CONV_W) * sizeof(float);
    const size_t y = (size_t)ls__conv_count(s, LS__CONV_Y) * sizeof(float);
    layer l = { *s,
                bench_slot(0, x),
                bench_slot(1, w),
                bench_slot(2, y),
                bench_slot(3, (size_t)ls__winograd_scratch(s, true) * sizeof(float)),
                bench_slot(BENCH_PLAIN, x),
                bench_slot(BENCH_PLAIN + 1, w) };
    bench_call calls[MOST_CALLS] = { { .run = forward, .context = &l },
                                     { .run = bench_nothing },
                                     { .run = bench_nothing } };
    const int n = FIRST_RIVAL + bench_conv_calls(s, LS__CONV_FORWARD, calls + FIRST_RIVAL);
    bench_report(model, name, "w. there", calls, n);
    bench_free_rivals(calls, n);
    report_both(model, name, &l, calls);
}
