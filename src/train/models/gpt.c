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

#include "train/models/models.h"

enum { BYTES = 256, LAYERS = 4, WIDTH = 256, HEADS = 8, CONTEXT = 128, MLP = 4 * WIDTH };
#define TEXT "i32[128]"

typedef struct gpt_layer {
    ls_layer *norm1, *qkv, *merge, *norm2, *up, *down;
} gpt_layer;

typedef struct gpt_net {
    ls_variable *tokens, *positions;
    gpt_layer layers[LAYERS];
    ls_layer *norm;
} gpt_net;

static const double spread = 0.02;

/* ---- making ---------------------------------------------------------------------------------- */

static ls_tensor *gelu(ls_tensor *x)
{
    return ls_gelu(x, true);
}

static ls_layer *dense(ls_model *m, const char *name, int64_t units, double deviation,
                       ls_activation activation)
{
    return ls_dense_layer(m, LS_DENSE_LAYER(.name = name, .units = units, .spread = deviation,
                                            .activation = activation));
}

static gpt_layer make_layer(ls_model *m, int number)
{
    char name[32];
    gpt_layer g;
    const double less = spread / sqrt(2.0 * LAYERS);
#define NAMED(part) (snprintf(name, sizeof name, "layer%d/%s", number, part), name)
    g.norm1 = ls_layer_norm_layer(m, NAMED("norm1"), 0);
    g.qkv = dense(m, NAMED("qkv"), 3 * WIDTH, spread, NULL);
    g.merge = dense(m, NAMED("merge"), WIDTH, less, NULL);
    g.norm2 = ls_layer_norm_layer(m, NAMED("norm2"), 0);
    g.up = dense(m, NAMED("up"), MLP, spread, gelu);
    g.down = dense(m, NAMED("down"), WIDTH, less, NULL);
#undef NAMED
    return g;
}

static void build(ls_model *m, void *user)
{
    gpt_net *net = user;
    ls_tensor *tokens = ls_random_normal(LS_F32, LS_DIMS(BYTES, WIDTH), 0, spread);
    net->tokens = ls_model_variable(m, "tokens/table", tokens, true);
    ls_tensor *positions = ls_random_normal(LS_F32, LS_DIMS(CONTEXT, WIDTH), 0, spread);
    net->positions = ls_model_variable(m, "positions/table", positions, true);
    for (int i = 0; i < LAYERS; i++)
        net->layers[i] = make_layer(m, i + 1);
    net->norm = ls_layer_norm_layer(m, "norm", 0);
}

/* ---- running ----------------------------------------------------------------------------------- */

/* [n, t, width] -> [n, heads, t, width / heads]. */
static ls_tensor *to_heads(ls_tensor *x)
{
    ls_tensor *heads = ls_reshape(x, LS_DIMS(ls_dim(x, 0), ls_dim(x, 1), HEADS, WIDTH / HEADS));
    return ls_transpose(heads, LS_DIMS(0, 2, 1, 3));
}

static ls_tensor *attend(const gpt_layer *g, ls_tensor *x, bool training)
{
    ls_value *qkv = ls_split(ls_forward(g->qkv, x, training), 3, -1);
    if (!qkv)
        return NULL;
    ls_tensor *y = ls_attention(to_heads(ls_item(qkv, 0)), to_heads(ls_item(qkv, 1)),
                                to_heads(ls_item(qkv, 2)), true, 0);
    y = ls_reshape(ls_transpose(y, LS_DIMS(0, 2, 1, 3)), ls_rank(x), ls_shape(x));
    return ls_forward(g->merge, y, training);
}

static ls_tensor *run_layer(const gpt_layer *g, ls_tensor *x, bool training)
{
    x = ls_add(x, attend(g, ls_forward(g->norm1, x, training), training));
    ls_tensor *h = ls_forward(g->up, ls_forward(g->norm2, x, training), training);
    return ls_add(x, ls_forward(g->down, h, training));
}

static ls_tensor *forward(void *user, ls_tensor *ids, bool training)
{
    const gpt_net *net = user;
    int64_t time = ls_dim(ids, 1);
    ls_tensor *tokens = ls_read(net->tokens), *positions = ls_read(net->positions);
    if (time < CONTEXT)
        positions = ls_slice(positions, LS_DIMS(0, 0), (const int64_t[]){ time, WIDTH });
    ls_tensor *x = ls_add(ls_embedding(tokens, ids), positions);
    for (int i = 0; i < LAYERS; i++)
        x = run_layer(&net->layers[i], x, training);
    return ls_matmul_t(ls_forward(net->norm, x, training), false, tokens, true);
}

ls_model *ls__gpt(const char *name, const char *what)
{
    return ls_model_new(LS_MODEL(.name = name, .what = what, .input = TEXT, .label = TEXT,
                                 .shorter = true, /* a prompt is */
                                 .batch = 8, .net_bytes = sizeof(gpt_net), .build = build,
                                 .forward = forward));
}
