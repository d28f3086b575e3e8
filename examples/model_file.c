/*
 * A model of your own for `lockstep train`: this file is all there is to write.
 *
 *     lockstep train examples/model_file.c --epochs 3 --checkpoint run
 *     lockstep train examples/model_file.c --epochs 6 --checkpoint run --resume
 *
 * It is compiled with the system's compiler when the command starts, and must define one function,
 * lockstep_model(), which makes the model. `.input` and `.label` say what one sample is: --data has to
 * have such samples (fashion-mnist: pictures f32[28,28,1] from 0 to 1, labels i32[]).
 */
#include <lockstep/train.h>

/* Simple: layers that x goes through in the order they are added. */
static ls_model *sequential(void)
{
    ls_model *m = ls_model_new(LS_MODEL(.what = "three layers", .input = "f32[28,28,1]"));
    ls_conv_layer(m, LS_CONV_LAYER(.filters = 16, .activation = ls_relu));
    ls_max_pool_layer(m, 2);
    ls_flatten_layer(m);
    ls_dense_layer(m, LS_DENSE_LAYER(.units = 32, .activation = ls_relu));
    ls_dense_layer(m, LS_DENSE_LAYER(.units = 10));
    return m;
}

/* Free: a struct of layers, and a function that says how x meets them. Here what the second
 * layer makes is added to what it got. */
typedef struct net {
    ls_layer *in, *middle, *out;
} net;

static void build(ls_model *m, void *user)
{
    net *n = user;
    n->in = ls_dense_layer(m, LS_DENSE_LAYER(.units = 64, .activation = ls_relu));
    n->middle = ls_dense_layer(m, LS_DENSE_LAYER(.units = 64, .activation = ls_relu));
    n->out = ls_dense_layer(m, LS_DENSE_LAYER(.units = 10));
}

static ls_tensor *forward(void *user, ls_tensor *x, bool training)
{
    net *n = user;
    ls_tensor *h = ls_forward(n->in, ls_flatten_rows(x), training);
    h = ls_add(h, ls_forward(n->middle, h, training));
    return ls_forward(n->out, h, training);
}

static ls_model *free_form(void)
{
    return ls_model_new(LS_MODEL(.what = "a residual layer", .input = "f32[28,28,1]",
                                 .net_bytes = sizeof(net), .build = build, .forward = forward));
}

#ifndef FREE_FORM
#define FREE_FORM 0 /* CC='cc -DFREE_FORM=1' lockstep train examples/model_file.c */
#endif

ls_model *lockstep_model(void)
{
    return FREE_FORM ? free_form() : sequential();
}
