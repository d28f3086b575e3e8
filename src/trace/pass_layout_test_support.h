/*
 * Nets of convolutions, whether this processor has a blocked layout for them, and how many moves a graph
 * has: for tests of the layout pass.
 */
#ifndef LS__TRACE_PASS_LAYOUT_TEST_SUPPORT_H
#define LS__TRACE_PASS_LAYOUT_TEST_SUPPORT_H

#include <lockstep/ops.h>
#include <lockstep/tape.h>
#include <lockstep/variable.h>

#include "ops/conv.h"
#include "ops/layout_conv.h"
#include "trace/test_record.h"

enum { MOST_LAYERS = 3 };

/* Layers of 3x3, SAME, from channels[i] to channels[i + 1], with relu between them. */
typedef struct net {
    int layers;
    int64_t n, size, channels[MOST_LAYERS + 1];
    bool gradients; /* of the mean square of the result with respect to all weights and x */
    bool pools;     /* between the layers instead of relu */
    bool bias;      /* after each layer, and fused with it */
    ls_variable *w[MOST_LAYERS], *b[MOST_LAYERS];
} net;

static inline void make(net *m)
{
    for (int i = 0; i < m->layers; i++) {
        ls__spec spec = { LS_F32, 4, { 3, 3, m->channels[i], m->channels[i + 1] } };
        LS_FRAME {
            ls_tensor *w = some_numbers(&spec, 11 + (uint64_t)i);
            double scale = 1 / sqrt((double)(9 * m->channels[i] + 1));
            m->w[i] = ls_variable_new("w", ls_mul(w, ls_scalar(LS_F32, scale)), true);
        }
        LS_FRAME {
            ls__spec bias = { LS_F32, 1, { m->channels[i + 1] } };
            m->b[i] = ls_variable_new("b", some_numbers(&bias, 31 + (uint64_t)i), true);
        }
        assert_non_null(m->w[i]);
        assert_non_null(m->b[i]);
    }
}

static inline void unmake(net *m)
{
    for (int i = 0; i < m->layers; i++) {
        ls_variable_free(m->w[i]);
        ls_variable_free(m->b[i]);
    }
}

/* Whether a forward convolution of these channels has a blocked layout here. */
static inline bool blocked_there(int64_t c, int64_t oc)
{
    ls__conv_shape s = { .n = 16, .h = 7, .w = 7, .c = c, .kh = 3, .kw = 3, .oc = oc };
    s.stride_h = s.stride_w = s.dilation_h = s.dilation_w = 1;
    s.pad_top = s.pad_left = s.pad_bottom = s.pad_right = 1;
    assert_int_equal(ls__conv_shape_complete(&s), LS_OK);
    if (ls__conv_preferred(&s, LS__CONV_FORWARD) != LS__CONV_WINOGRAD)
        return false;
    const ls__conv_packed_attrs a = ls__conv_packed(&s, LS__CONV_FORWARD, LS__CONV_WINOGRAD);
    ls__conv_plan plan;
    assert_int_equal(ls__conv_packed_plan(&a, &plan), LS_OK);
    bool there = !plan.arg[LS__CONV_X].plain;
    ls__conv_plan_close(&plan);
    return there;
}

static inline void expect(ls__graph *g, bool there, int packs, int unpacks, int weights, int packed)
{
    if (there &&
        (count_rows(g, "conv2d_pack") != packs || count_rows(g, "conv2d_unpack") != unpacks ||
         count_rows(g, "conv2d_pack_weights") != weights ||
         count_rows(g, "conv2d_packed") != packed))
        fail_msg("want %d packs, %d unpacks, %d of weights, %d packed in:\n%s", packs, unpacks,
                 weights, packed, ls__graph_text(g));
    ls__graph_free(g);
}

static inline void refused(ls__graph *g, const ls_op *op, const void *attrs, int n,
                           const int *inputs, ls_status want)
{
    assert_null(ls__graph_call(g, NULL, op, attrs, n, inputs));
    failed(want);
}

/* Nets whose results must be right, whatever is chosen, with gradients and without. */
static inline void each_is_right(const net *nets, size_t count, ls__graph *(*packed)(const net *m))
{
    for (size_t i = 0; i < count; i++)
        for (int gradients = 0; gradients < 2; gradients++) {
            net m = nets[i];
            m.gradients = gradients;
            make(&m);
            ls__graph_free(packed(&m));
            unmake(&m);
        }
}

#endif
