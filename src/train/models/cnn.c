/*
 * cnn and cnn2: the networks of TensorFlow's distributed-training tutorials, one
 * convolution and two. As there, convolutions are VALID and logits have no softmax.
 */
#include "train/models/models.h"

static void classify(ls_model *m)
{
    ls_flatten_layer(m);
    ls_dense_layer(m, LS_DENSE_LAYER(.name = "hidden", .units = 64, .activation = ls_relu));
    ls_dense_layer(m, LS_DENSE_LAYER(.name = "out", .units = LS__CLASSES));
}

ls_model *ls__cnn(const char *name, const char *what)
{
    ls_model *m = ls_model_new(LS_MODEL(.name = name, .what = what, .input = LS__IMAGE));
    ls_conv_layer(m, LS_CONV_LAYER(.name = "conv", .filters = 32, .activation = ls_relu));
    ls_max_pool_layer(m, 2); /* 26 x 26 -> 13 x 13 */
    classify(m);
    return m;
}

ls_model *ls__cnn2(const char *name, const char *what)
{
    ls_model *m = ls_model_new(LS_MODEL(.name = name, .what = what, .input = LS__IMAGE));
    ls_conv_layer(m, LS_CONV_LAYER(.name = "conv1", .filters = 32, .activation = ls_relu));
    ls_max_pool_layer(m, 2); /* 26 x 26 -> 13 x 13 */
    ls_conv_layer(m, LS_CONV_LAYER(.name = "conv2", .filters = 64, .activation = ls_relu));
    ls_max_pool_layer(m, 2); /* 11 x 11 -> 5 x 5 */
    classify(m);
    return m;
}
