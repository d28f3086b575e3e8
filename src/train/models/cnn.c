/*
 * cnn and cnn2: the networks of TensorFlow's distributed-training tutorials, one
 * convolution and two. As there, convolutions are VALID and logits have no softmax.
 */
#include "train/models/kinds.h"
#include "train/models/layers.h"

typedef struct cnn_net {
    ls__conv_layer conv[2];
    ls__dense_layer hidden, out;
} cnn_net;

static ls_tensor *conv_relu_pool(const ls__conv_layer *conv, ls_tensor *x)
{
    return ls_max_pool2d(ls_relu(ls__conv(conv, x)), 2, 2, LS_VALID);
}

static ls_tensor *classify(const cnn_net *net, ls_tensor *x)
{
    return ls__dense(&net->out, ls_relu(ls__dense(&net->hidden, ls_flatten_rows(x))));
}

static void cnn_build(ls__layers *l, void *user)
{
    cnn_net *net = user;
    net->conv[0] = ls__conv_new(l, "conv", 3, 1, 32); /* 28 -> 26, pooled: 13 */
    net->hidden = ls__dense_new(l, "hidden", 13 * 13 * 32, 64, 0);
    net->out = ls__dense_new(l, "out", 64, LS__CLASSES, 0);
}

static ls_tensor *cnn_forward(const void *user, ls_tensor *x, bool training)
{
    (void)training;
    const cnn_net *net = user;
    return classify(net, conv_relu_pool(&net->conv[0], x));
}

static void cnn2_build(ls__layers *l, void *user)
{
    cnn_net *net = user;
    net->conv[0] = ls__conv_new(l, "conv1", 3, 1, 32);  /* 28 -> 26, pooled: 13 */
    net->conv[1] = ls__conv_new(l, "conv2", 3, 32, 64); /* 13 -> 11, pooled: 5 */
    net->hidden = ls__dense_new(l, "hidden", 5 * 5 * 64, 64, 0);
    net->out = ls__dense_new(l, "out", 64, LS__CLASSES, 0);
}

static ls_tensor *cnn2_forward(const void *user, ls_tensor *x, bool training)
{
    (void)training;
    const cnn_net *net = user;
    return classify(net, conv_relu_pool(&net->conv[1], conv_relu_pool(&net->conv[0], x)));
}

const ls__model_kind ls__model_cnn = {
    .name = "cnn",
    .what = "a convolution and two dense layers, for images of 28 x 28",
    .input = LS__IMAGE_INPUT,
    .label = LS__CLASS_LABEL,
    .batch = LS__IMAGE_BATCH,
    .net_size = sizeof(cnn_net),
    .build = cnn_build,
    .forward = cnn_forward,
};

const ls__model_kind ls__model_cnn2 = {
    .name = "cnn2",
    .what = "two convolutions and two dense layers, for images of 28 x 28",
    .input = LS__IMAGE_INPUT,
    .label = LS__CLASS_LABEL,
    .batch = LS__IMAGE_BATCH,
    .net_size = sizeof(cnn_net),
    .build = cnn2_build,
    .forward = cnn2_forward,
};
