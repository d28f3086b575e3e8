/*
 * mlp: three dense layers, most of whose time is one matrix product and the update
 * of 5.8 million parameters.
 */
#include "train/models/kinds.h"
#include "train/models/layers.h"

enum { WIDTH = 2048 };

typedef struct mlp_net {
    ls__dense_layer first, second, out;
} mlp_net;

static void mlp_build(ls__layers *l, void *user)
{
    mlp_net *net = user;
    net->first = ls__dense_new(l, "hidden1", 28 * 28, WIDTH, 0);
    net->second = ls__dense_new(l, "hidden2", WIDTH, WIDTH, 0);
    net->out = ls__dense_new(l, "out", WIDTH, LS__CLASSES, 0);
}

static ls_tensor *mlp_forward(const void *user, ls_tensor *x, bool training)
{
    (void)training;
    const mlp_net *net = user;
    ls_tensor *h = ls_relu(ls__dense(&net->first, ls_flatten_rows(x)));
    return ls__dense(&net->out, ls_relu(ls__dense(&net->second, h)));
}

const ls__model_kind ls__model_mlp = {
    .name = "mlp",
    .what = "two hidden layers of 2048, for images of 28 x 28",
    .input = LS__IMAGE_INPUT,
    .label = LS__CLASS_LABEL,
    .batch = LS__IMAGE_BATCH,
    .net_size = sizeof(mlp_net),
    .build = mlp_build,
    .forward = mlp_forward,
};
