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

#include "train/models/kinds.h"
#include "train/models/layers.h"

enum { STAGES = 3, BLOCKS = 3, FIRST_CHANNELS = 16 };

/* A convolution with its norm. */
typedef struct unit {
    ls__conv_layer conv;
    ls__batch_norm_layer norm;
} unit;

typedef struct block {
    unit first, second, shortcut;
    bool projects; /* the shortcut is a unit */
} block;

typedef struct resnet_net {
    unit stem;
    block blocks[STAGES * BLOCKS];
    ls__dense_layer out;
} resnet_net;

static unit unit_new(ls__layers *l, const char *conv, const char *norm, int64_t window, int64_t in,
                     int64_t out, int64_t stride)
{
    unit u;
    u.conv = ls__conv_same_new(l, conv, window, in, out, stride);
    u.norm = ls__batch_norm_new(l, norm, out);
    return u;
}

static ls_tensor *run_unit(const unit *u, ls_tensor *x, bool training)
{
    return ls__batch_norm(&u->norm, ls__conv(&u->conv, x), training);
}

static block block_new(ls__layers *l, int number, int64_t in, int64_t out)
{
    int64_t stride = in == out ? 1 : 2;
    block b = { .projects = in != out };
    char conv[32], norm[32];
    snprintf(conv, sizeof conv, "block%d/conv1", number);
    snprintf(norm, sizeof norm, "block%d/bn1", number);
    b.first = unit_new(l, conv, norm, 3, in, out, stride);
    snprintf(conv, sizeof conv, "block%d/conv2", number);
    snprintf(norm, sizeof norm, "block%d/bn2", number);
    b.second = unit_new(l, conv, norm, 3, out, out, 1);
    if (!b.projects)
        return b;
    snprintf(conv, sizeof conv, "block%d/shortcut", number);
    snprintf(norm, sizeof norm, "block%d/shortcut_bn", number);
    b.shortcut = unit_new(l, conv, norm, 1, in, out, stride);
    return b;
}

static ls_tensor *run_block(const block *b, ls_tensor *x, bool training)
{
    ls_tensor *h = ls_relu(run_unit(&b->first, x, training));
    h = run_unit(&b->second, h, training);
    return ls_relu(ls_add(h, b->projects ? run_unit(&b->shortcut, x, training) : x));
}

static void resnet_build(ls__layers *l, void *user)
{
    resnet_net *net = user;
    net->stem = unit_new(l, "stem/conv", "stem/bn", 3, 1, FIRST_CHANNELS, 1);
    int64_t channels = FIRST_CHANNELS;
    for (int i = 0; i < STAGES * BLOCKS; i++) {
        int64_t wide = (int64_t)FIRST_CHANNELS << i / BLOCKS;
        net->blocks[i] = block_new(l, i + 1, channels, wide);
        channels = wide;
    }
    net->out = ls__dense_new(l, "out", channels, LS__CLASSES, 0);
}

static ls_tensor *resnet_forward(const void *user, ls_tensor *x, bool training)
{
    const resnet_net *net = user;
    ls_tensor *h = ls_relu(run_unit(&net->stem, x, training));
    for (int i = 0; i < STAGES * BLOCKS; i++)
        h = run_block(&net->blocks[i], h, training);
    return ls__dense(&net->out, ls_global_avg_pool2d(h));
}

const ls__model_kind ls__model_resnet = {
    .name = "resnet",
    .what = "ResNet-20 with batch norm, for images of 28 x 28",
    .input = LS__IMAGE_INPUT,
    .label = LS__CLASS_LABEL,
    .batch = LS__IMAGE_BATCH,
    .net_size = sizeof(resnet_net),
    .build = resnet_build,
    .forward = resnet_forward,
};
