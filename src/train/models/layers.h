/*
 * The layers that models are made of: a few variables and how they meet x. A
 * layer is a small struct, made by ls__NAME_new and used by ls__NAME.
 *
 * Making never fails by itself: an ls__layers that has failed keeps the first error
 * and makes no more variables, so `build` needs no check per line.
 */
#ifndef LS__TRAIN_MODELS_LAYERS_H
#define LS__TRAIN_MODELS_LAYERS_H

#include <lockstep/ops.h>
#include <lockstep/variable.h>

/* The variables made so far, in order. Zero it to begin. */
typedef struct ls__layers {
    ls_variable **variables;
    int count, room;
    ls_status status; /* the first error */
} ls__layers;

void ls__layers_free(ls__layers *l);

/* A variable "layer/name" that starts as `initial`; NULL once something has failed. */
ls_variable *ls__layers_variable(ls__layers *l, const char *layer, const char *name,
                                 ls_tensor *initial, bool trainable);

/* Normal numbers around 0 in the domain of initialisers, as ls_glorot_uniform is. */
ls_tensor *ls__normal_initial(int rank, const int64_t *dims, double stddev);

/* ---- dense: x kernel + bias over the last axis ------------------------------- */

typedef struct ls__dense_layer {
    ls_variable *kernel, *bias;
} ls__dense_layer;

/* stddev 0: Glorot-uniform, as Keras's Dense. Biases start as zero. */
ls__dense_layer ls__dense_new(ls__layers *l, const char *name, int64_t in, int64_t out,
                              double stddev);
ls_tensor *ls__dense(const ls__dense_layer *d, ls_tensor *x);

/* ---- conv: square windows, NHWC ------------------------------------------------ */

typedef struct ls__conv_layer {
    ls_variable *kernel, *bias; /* bias NULL when a norm follows */
    int64_t stride;
    ls_padding padding;
} ls__conv_layer;

/* VALID, stride 1, with a bias, Glorot-uniform: as Keras's Conv2D. */
ls__conv_layer ls__conv_new(ls__layers *l, const char *name, int64_t window, int64_t in,
                            int64_t out);
/* SAME, without a bias, he-normal: what goes before a batch norm. */
ls__conv_layer ls__conv_same_new(ls__layers *l, const char *name, int64_t window, int64_t in,
                                 int64_t out, int64_t stride);
ls_tensor *ls__conv(const ls__conv_layer *c, ls_tensor *x);

/* ---- batch norm: Keras's, momentum 0.99 and epsilon 1e-3 ------------------------- */

typedef struct ls__batch_norm_layer {
    ls_variable *scale, *offset, *mean, *variance; /* the last two are the moving statistics */
} ls__batch_norm_layer;

ls__batch_norm_layer ls__batch_norm_new(ls__layers *l, const char *name, int64_t channels);
/* Training: the batch's statistics, towards which the moving ones go a step (no
 * step for a batch without rows). Else the moving ones. */
ls_tensor *ls__batch_norm(const ls__batch_norm_layer *b, ls_tensor *x, bool training);

/* ---- layer norm: over the last axis, epsilon 1e-5 ---------------------------------- */

typedef struct ls__layer_norm_layer {
    ls_variable *scale, *offset;
} ls__layer_norm_layer;

ls__layer_norm_layer ls__layer_norm_new(ls__layers *l, const char *name, int64_t width);
ls_tensor *ls__layer_norm(const ls__layer_norm_layer *n, ls_tensor *x);

#endif
