/*
 * resnet: the ResNet-20 of He et al. for small images, with batch norm:
 *
 *     28 x 28 x 1   stem: conv 3x3x16, norm, relu
 *     28 x 28 x 16  blocks 1 to 3
 *     14 x 14 x 32  blocks 4 to 6, the first with stride 2
 *      7 x  7 x 64  blocks 7 to 9, the first with stride 2
 *                   mean over the image, dense 10
 *
 *     block: relu(norm(conv(relu(norm(conv(x))))) + shortcut(x))
 *
 * The shortcut is x itself; where the shape changes it is a 1x1 convolution of stride 2
 * with a norm (He's option B), not every second pixel padded with zeros (option A):
 * one more convolution is what every backend is good at, while option A needs a
 * strided slice and a pad for the sake of 2,752 parameters in 272,186.
 */
#include <stdio.h>

#include "train/models/models.h"

enum { STAGES = 3, BLOCKS = 3, FIRST_CHANNELS = 16 };

/* A convolution with its norm. */
typedef struct unit {
    ls_layer *conv, *norm;
} unit;

typedef struct block {
    unit first, second, shortcut;
    bool projects; /* the shortcut is a unit */
} block;

typedef struct resnet_net {
    unit stem;
    block blocks[STAGES * BLOCKS];
    ls_layer *pool, *out;
} resnet_net;

/* ---- a convolution with its norm ------------------------------------------------------------ */

static unit make_unit(ls_model *m, const char *conv, const char *norm, int64_t window,
                      int64_t filters, int64_t stride)
{
    return (unit){
        .conv = ls_conv_layer(m, LS_CONV_LAYER(.name = conv, .filters = filters, .window = window,
                                               .stride = stride, .padding = LS_SAME,
                                               .initial = ls_he_normal, .no_bias = true)),
        .norm = ls_batch_norm_layer(m, LS_BATCH_NORM_LAYER(.name = norm)),
    };
}

static ls_tensor *run_unit(const unit *u, ls_tensor *x, bool training)
{
    return ls_forward(u->norm, ls_forward(u->conv, x, training), training);
}

/* ---- a block ---------------------------------------------------------------------------------- */

static block make_block(ls_model *m, int number, int64_t filters, bool projects)
{
    const int64_t stride = projects ? 2 : 1;
    block b = { .projects = projects };
    char conv[32], norm[32];
    snprintf(conv, sizeof conv, "block%d/conv1", number);
    snprintf(norm, sizeof norm, "block%d/bn1", number);
    b.first = make_unit(m, conv, norm, 3, filters, stride);
    snprintf(conv, sizeof conv, "block%d/conv2", number);
    snprintf(norm, sizeof norm, "block%d/bn2", number);
    b.second = make_unit(m, conv, norm, 3, filters, 1);
    if (!projects)
        return b;
    snprintf(conv, sizeof conv, "block%d/shortcut", number);
    snprintf(norm, sizeof norm, "block%d/shortcut_bn", number);
    b.shortcut = make_unit(m, conv, norm, 1, filters, stride);
    return b;
}

static ls_tensor *run_block(const block *b, ls_tensor *x, bool training)
{
    ls_tensor *h = ls_relu(run_unit(&b->first, x, training));
    h = run_unit(&b->second, h, training);
    return ls_relu(ls_add(h, b->projects ? run_unit(&b->shortcut, x, training) : x));
}

/* ---- all of it --------------------------------------------------------------------------------- */

static void build(ls_model *m, void *user)
{
    resnet_net *net = user;
    net->stem = make_unit(m, "stem/conv", "stem/bn", 3, FIRST_CHANNELS, 1);
    for (int i = 0; i < STAGES * BLOCKS; i++)
        net->blocks[i] =
            make_block(m, i + 1, (int64_t)FIRST_CHANNELS << i / BLOCKS, i > 0 && i % BLOCKS == 0);
    net->pool = ls_global_avg_pool_layer(m);
    net->out = ls_dense_layer(m, LS_DENSE_LAYER(.name = "out", .units = LS__CLASSES));
}

static ls_tensor *forward(void *user, ls_tensor *x, bool training)
{
    const resnet_net *net = user;
    ls_tensor *h = ls_relu(run_unit(&net->stem, x, training));
    for (int i = 0; i < STAGES * BLOCKS; i++)
        h = run_block(&net->blocks[i], h, training);
    return ls_forward(net->out, ls_forward(net->pool, h, training), training);
}

ls_model *ls__resnet(const char *name, const char *what)
{
    return ls_model_new(LS_MODEL(.name = name, .what = what, .input = LS__IMAGE,
                                 .net_bytes = sizeof(resnet_net), .build = build,
                                 .forward = forward));
}
