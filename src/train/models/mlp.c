/*
 * mlp: three dense layers, most of whose time is one matrix product and the update
 * of 5.8 million parameters.
 */
#include "train/models/models.h"

enum { WIDTH = 2048 };

ls_model *ls__mlp(const char *name, const char *what)
{
    ls_model *m = ls_model_new(LS_MODEL(.name = name, .what = what, .input = LS__IMAGE));
    ls_flatten_layer(m);
    ls_dense_layer(m, LS_DENSE_LAYER(.name = "hidden1", .units = WIDTH, .activation = ls_relu));
    ls_dense_layer(m, LS_DENSE_LAYER(.name = "hidden2", .units = WIDTH, .activation = ls_relu));
    ls_dense_layer(m, LS_DENSE_LAYER(.name = "out", .units = LS__CLASSES));
    return m;
}
