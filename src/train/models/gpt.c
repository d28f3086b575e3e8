/*
 * gpt: a small language model over bytes in the manner of GPT-2: learned positions,
 * layers with the norm first, GELU by its tanh formula, and one table for what goes
 * in and what comes out:
 *
 *     x = tokens[byte] + positions[0 .. t)
 *     4 times:  x = x + attention(norm(x));  x = x + mlp(norm(x))
 *     logits = norm(x) tokens^T
 *
 * Initial values are GPT-2's too: normal, 0.02, less by sqrt(2 layers) where a layer
 * adds to x, so that x keeps its size with depth.
 */
#include <math.h>
#include <stdio.h>

#include "train/models/kinds.h"
#include "train/models/layers.h"

enum { BYTES = 256, LAYERS = 4, WIDTH = 256, HEADS = 8, CONTEXT = 128, MLP = 4 * WIDTH };

typedef struct gpt_layer {
    ls__layer_norm_layer norm1, norm2;
    ls__dense_layer qkv, merge, up, down;
} gpt_layer;

typedef struct gpt_net {
    ls_variable *tokens, *positions;
    gpt_layer layers[LAYERS];
    ls__layer_norm_layer norm;
} gpt_net;

static const double spread = 0.02;

static gpt_layer layer_new(ls__layers *l, int number)
{
    char name[32];
    gpt_layer g;
    const double less = spread / sqrt(2.0 * LAYERS);
#define NAMED(part) (snprintf(name, sizeof name, "layer%d/%s", number, part), name)
    g.norm1 = ls__layer_norm_new(l, NAMED("norm1"), WIDTH);
    g.qkv = ls__dense_new(l, NAMED("qkv"), WIDTH, 3 * WIDTH, spread);
    g.merge = ls__dense_new(l, NAMED("merge"), WIDTH, WIDTH, less);
    g.norm2 = ls__layer_norm_new(l, NAMED("norm2"), WIDTH);
    g.up = ls__dense_new(l, NAMED("up"), WIDTH, MLP, spread);
    g.down = ls__dense_new(l, NAMED("down"), MLP, WIDTH, less);
#undef NAMED
    return g;
}

static void gpt_build(ls__layers *l, void *user)
{
    gpt_net *net = user;
    net->tokens = ls__layers_variable(l, "tokens", "table",
                                      ls__normal_initial(LS_DIMS(BYTES, WIDTH), spread), true);
    net->positions = ls__layers_variable(l, "positions", "table",
                                         ls__normal_initial(LS_DIMS(CONTEXT, WIDTH), spread), true);
    for (int i = 0; i < LAYERS; i++)
        net->layers[i] = layer_new(l, i + 1);
    net->norm = ls__layer_norm_new(l, "norm", WIDTH);
}

/* [n, t, width] -> [n, heads, t, width / heads]. */
static ls_tensor *to_heads(ls_tensor *x)
{
    ls_tensor *heads = ls_reshape(x, LS_DIMS(ls_dim(x, 0), ls_dim(x, 1), HEADS, WIDTH / HEADS));
    return ls_transpose(heads, LS_DIMS(0, 2, 1, 3));
}

static ls_tensor *attend(const gpt_layer *g, ls_tensor *x)
{
    ls_value *qkv = ls_split(ls__dense(&g->qkv, x), 3, -1);
    if (!qkv)
        return NULL;
    ls_tensor *y = ls_attention(to_heads(ls_item(qkv, 0)), to_heads(ls_item(qkv, 1)),
                                to_heads(ls_item(qkv, 2)), true, 0);
    y = ls_reshape(ls_transpose(y, LS_DIMS(0, 2, 1, 3)), ls_rank(x), ls_shape(x));
    return ls__dense(&g->merge, y);
}

static ls_tensor *run_layer(const gpt_layer *g, ls_tensor *x)
{
    x = ls_add(x, attend(g, ls__layer_norm(&g->norm1, x)));
    ls_tensor *h = ls__dense(&g->up, ls__layer_norm(&g->norm2, x));
    return ls_add(x, ls__dense(&g->down, ls_gelu(h, true)));
}

static ls_tensor *gpt_forward(const void *user, ls_tensor *ids, bool training)
{
    (void)training;
    const gpt_net *net = user;
    int64_t time = ls_dim(ids, 1);
    ls_tensor *tokens = ls_read(net->tokens), *positions = ls_read(net->positions);
    if (time < CONTEXT)
        positions = ls_slice(positions, LS_DIMS(0, 0), (const int64_t[]){ time, WIDTH });
    ls_tensor *x = ls_add(ls_embedding(tokens, ids), positions);
    for (int i = 0; i < LAYERS; i++)
        x = run_layer(&net->layers[i], x);
    return ls_matmul_t(ls__layer_norm(&net->norm, x), false, tokens, true);
}

const ls__model_kind ls__model_gpt = {
    .name = "gpt",
    .what = "a language model over bytes: 4 layers, width 256, 8 heads, context 128",
    .input = { .dtype = LS_I32, .rank = 1, .dims = { CONTEXT } },
    .label = { .dtype = LS_I32, .rank = 1, .dims = { CONTEXT } },
    .shorter = true, /* a prompt is */
    .batch = 8,
    .net_size = sizeof(gpt_net),
    .build = gpt_build,
    .forward = gpt_forward,
};
