/*
 * model.h: models: layers, their variables, and the way of x through them.
 *
 * How to use it
 *
 * 1. Sequential: x goes through the layers in the order in which they were added.
 *
 *        ls_model *m = ls_model_new(LS_MODEL(.name = "small", .input = "f32[28,28,1]"));
 *        ls_conv_layer(m, LS_CONV_LAYER(.filters = 32, .activation = ls_relu));
 *        ls_max_pool_layer(m, 2);
 *        ls_flatten_layer(m);
 *        ls_dense_layer(m, LS_DENSE_LAYER(.units = 10));
 *
 * 2. Free-form: a struct of layers, and a function that says how x meets them, in plain C.
 *
 *        typedef struct net { ls_layer *in, *out; } net;
 *        static void build(ls_model *m, void *user)
 *        {
 *            net *n = user;
 *            n->in = ls_dense_layer(m, LS_DENSE_LAYER(.units = 64, .activation = ls_relu));
 *            n->out = ls_dense_layer(m, LS_DENSE_LAYER(.units = 64));
 *        }
 *        static ls_tensor *forward(void *user, ls_tensor *x, bool training)
 *        {
 *            net *n = user;
 *            ls_tensor *h = ls_forward(n->in, x, training);
 *            return ls_add(h, ls_forward(n->out, h, training));
 *        }
 *        ls_model *m = ls_model_new(LS_MODEL(.name = "mine", .input = "f32[64]", .net_bytes = sizeof(net),
 *                                            .build = build, .forward = forward));
 *
 * 3. Make its variables, in the scope of the strategy that trains it (a trainer, fit.h, does it), and
 *    use it, eagerly or in a traced step:
 *
 *        LS_SCOPE(s) ls_model_build(m);
 *        ls_tensor *logits = ls_model_forward(m, x, false);
 *
 * A layer learns the shape of its x when it first sees one: ls_model_build sends a batch of no rows
 * through the model (training is false, and it is in no replica), and each layer makes its
 * variables then, of x's dtype. So their order, and the values they start with, are those of the
 * way through the model. Variables are named "LAYER/kernel". What `build` functions draw
 * (ls_random_normal) are initial values: they depend on the seed and on how many were drawn before.
 *
 * A file for `lockstep train FILE.c` defines one function, which makes the model:
 *
 *        ls_model *lockstep_model(void) { ... return m; }
 */
#ifndef LOCKSTEP_MODEL_H
#define LOCKSTEP_MODEL_H

#include <lockstep/ops.h>
#include <lockstep/variable.h>

LS_BEGIN_DECLS

typedef struct ls_model ls_model;
typedef struct ls_layer ls_layer;

/* ---- models -------------------------------------------------------------------------------- */

/* The loss of each row, or of each place in it, from what the model gives and the labels:
 * ls_sparse_softmax_xent, ls_softmax_xent, ls_sigmoid_xent, ls_mse (ops.h), those of loss.h, yours. */
typedef ls_tensor *(*ls_loss_fn)(ls_tensor *outputs, ls_tensor *labels);

/* Zero means default. */
typedef struct ls_model_options {
    size_t size;
    const char *name;  /* "model" */
    const char *what;  /* one line for people (none) */
    const char *input; /* of one sample, without the axis of the batch: "f32[28,28,1]". Must be given */
    const char *label; /* the same ("i32[]") */
    bool shorter;      /* a sample's first axis may be shorter than `input` says, not empty */
    int batch;         /* samples per replica that suit it (64) */
    ls_loss_fn loss;   /* ls_sparse_softmax_xent */
    /* Free-form only: */
    size_t net_bytes;  /* of a struct of yours, which the model keeps, zeroed at first... */
    void *user;        /* ...or something you keep yourself: what build and forward get */
    void (*build)(ls_model *m, void *net);
    ls_tensor *(*forward)(void *net, ls_tensor *x, bool training);
} ls_model_options;
LS_API void ls_model_init(ls_model_options *options);
#ifndef __cplusplus
#define LS_MODEL(...) (&(ls_model_options){ .size = sizeof(ls_model_options), __VA_ARGS__ })
#endif

/* Makes no variable yet. Yours until ls_model_free, which takes NULL and frees its layers and
 * variables. */
LS_API ls_model *ls_model_new(const ls_model_options *options);
LS_API void ls_model_free(ls_model *m);

/* A model of Lockstep's own: "cnn", "cnn2", "mlp", "resnet", "gpt"; LS_NOT_FOUND lists them. Name i
 * of them and one line about it; NULL after the last. */
LS_API ls_model *ls_model_named(const char *name);
LS_API const char *ls_model_known(int i, const char **what);

/* Makes the variables, in the strategy that is this thread's, from its seed (random.h). Once; later
 * calls do nothing. On failure there is none. */
LS_API ls_status ls_model_build(ls_model *m);

LS_API const char *ls_model_name(const ls_model *m);
LS_API ls_status ls_model_rename(ls_model *m, const char *name);
LS_API const char *ls_model_what(const ls_model *m);  /* "" when none was given */
LS_API const char *ls_model_input(const ls_model *m); /* canonical: "f32[28,28,1]" */
LS_API const char *ls_model_label(const ls_model *m);
LS_API int ls_model_batch(const ls_model *m);
LS_API ls_loss_fn ls_model_loss(const ls_model *m);

/* The variables in the order they were made, trainable and others; they belong to the model. 0 and
 * NULL before it is built. */
LS_API int ls_model_count(const ls_model *m);
LS_API ls_variable *const *ls_model_variables(const ls_model *m);
LS_API int64_t ls_model_parameters(const ls_model *m); /* numbers in the trainable ones */

/* What the model makes of x, [n, input...]; n may be 0. Training takes batch norm's statistics from
 * x and drops out. LS_SHAPE says what the model wants; LS_STATE before it is built. */
LS_API ls_tensor *ls_model_forward(ls_model *m, ls_tensor *x, bool training);

/* A variable of a free-form model's own, made in `build`. It belongs to the model. */
LS_API ls_variable *ls_model_variable(ls_model *m, const char *name, ls_tensor *initial,
                                      bool trainable);

/* ---- layers ----------------------------------------------------------------------------------
 *
 * A layer belongs to its model. Names must differ within one; NULL: the kind and a number,
 * "dense_1". Of a model that is built no layer can be made: LS_STATE. */

/* What the layer makes of x. A layer may be met several times: it has its variables once. */
LS_API ls_tensor *ls_forward(ls_layer *layer, ls_tensor *x, bool training);

LS_API const char *ls_layer_name(const ls_layer *layer);

/* Its variable of that name ("kernel"), when it is built; LS_NOT_FOUND names those it has. */
LS_API ls_variable *ls_layer_variable(const ls_layer *layer, const char *name);

typedef ls_tensor *(*ls_activation)(ls_tensor *x); /* ls_relu, ls_tanh, ls_sigmoid, yours */
typedef ls_tensor *(*ls_initialiser)(ls_dtype dtype, int rank, const int64_t *dims);

/* [..., in] -> [..., units]. Variables: kernel, bias. */
typedef struct ls_dense_layer_options {
    size_t size;
    const char *name;
    int64_t units; /* must be given */
    ls_activation activation; /* none */
    ls_initialiser initial;   /* of the kernel (ls_glorot_uniform); the bias begins with 0 */
    double spread;            /* instead: normal, with this standard deviation */
    bool no_bias;
} ls_dense_layer_options;
LS_API void ls_dense_layer_init(ls_dense_layer_options *options);
LS_API ls_layer *ls_dense_layer(ls_model *m, const ls_dense_layer_options *options);
#ifndef __cplusplus
#define LS_DENSE_LAYER(...)                                                                        \
    (&(ls_dense_layer_options){ .size = sizeof(ls_dense_layer_options), __VA_ARGS__ })
#endif

/* [n, h, w, in] -> [n, h', w', filters]. Variables: kernel [window, window, in, filters], bias. */
typedef struct ls_conv_layer_options {
    size_t size;
    const char *name;
    int64_t filters;    /* must be given */
    int64_t window;     /* 3 */
    int64_t stride;     /* 1 */
    ls_padding padding; /* LS_VALID */
    ls_activation activation;
    ls_initialiser initial;
    double spread;
    bool no_bias;
} ls_conv_layer_options;
LS_API void ls_conv_layer_init(ls_conv_layer_options *options);
LS_API ls_layer *ls_conv_layer(ls_model *m, const ls_conv_layer_options *options);
#ifndef __cplusplus
#define LS_CONV_LAYER(...)                                                                         \
    (&(ls_conv_layer_options){ .size = sizeof(ls_conv_layer_options), __VA_ARGS__ })
#endif

/* Normalises over all axes but the last. Variables: scale, offset, and the moving mean and
 * variance, which follow the batches of training that have rows, and serve otherwise. With `sync`
 * they follow the rows of all replicas together; else each replica has its own, whose mean is read
 * outside of replicas (as TensorFlow's under MirroredStrategy). Of a bf16 x they are f32. */
typedef struct ls_batch_norm_layer_options {
    size_t size;
    const char *name;
    double momentum; /* 0.99; -1: 0 */
    double epsilon;  /* 1e-3; -1: 0 */
    bool sync;       /* ls_sync_batch_norm */
} ls_batch_norm_layer_options;
LS_API void ls_batch_norm_layer_init(ls_batch_norm_layer_options *options);
LS_API ls_layer *ls_batch_norm_layer(ls_model *m, const ls_batch_norm_layer_options *options);
#ifndef __cplusplus
#define LS_BATCH_NORM_LAYER(...)                                                                   \
    (&(ls_batch_norm_layer_options){ .size = sizeof(ls_batch_norm_layer_options), __VA_ARGS__ })
#endif

/* Over the last axis; epsilon 0: 1e-5. Variables: scale, offset. */
LS_API ls_layer *ls_layer_norm_layer(ls_model *m, const char *name, double epsilon);

/* i32 or i64 [...] -> f32 [..., width]: rows of a table. Variable: table, which begins with normal
 * numbers of this standard deviation; 0: 0.05. */
LS_API ls_layer *ls_embedding_layer(ls_model *m, const char *name, int64_t rows, int64_t width,
                                    double spread);

/* Without variables; pools have a stride of their window, and are LS_VALID. Dropout acts in
 * training only. */
LS_API ls_layer *ls_max_pool_layer(ls_model *m, int64_t window);
LS_API ls_layer *ls_avg_pool_layer(ls_model *m, int64_t window);
LS_API ls_layer *ls_global_avg_pool_layer(ls_model *m); /* [n, h, w, c] -> [n, c] */
LS_API ls_layer *ls_flatten_layer(ls_model *m);         /* [n, ...] -> [n, rest] */
LS_API ls_layer *ls_dropout_layer(ls_model *m, double rate);
LS_API ls_layer *ls_activation_layer(ls_model *m, ls_activation activation);

/* A layer of your own. `build` is called once, with the first x, and makes variables by
 * ls_layer_make; NULL: it has none. `user` is yours. */
typedef struct ls_layer_options {
    size_t size;
    const char *name; /* "layer_1" */
    void *user;
    ls_status (*build)(ls_layer *layer, ls_tensor *x, void *user);
    ls_tensor *(*forward)(ls_layer *layer, ls_tensor *x, bool training, void *user);
} ls_layer_options;
LS_API void ls_layer_init(ls_layer_options *options);
LS_API ls_layer *ls_own_layer(ls_model *m, const ls_layer_options *options);
LS_API ls_variable *ls_layer_make(ls_layer *layer, const ls_variable_options *options,
                                  const char *name, ls_tensor *initial);
#ifndef __cplusplus
#define LS_LAYER(...) (&(ls_layer_options){ .size = sizeof(ls_layer_options), __VA_ARGS__ })
#endif

LS_END_DECLS

#endif
