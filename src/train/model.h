/*
 * The inside of a model and of its layers.
 *
 * A model is open (layers are added), then building: making (its own function makes layers and
 * variables), meeting (a batch of no rows goes through it, and every layer makes its variables for
 * the x it sees); then built. A build that fails leaves it open, as it was before.
 *
 *     model.c          making, asking
 *     model_build.c    open -> built
 *     model_forward.c  x through the model, x through a layer
 *     layer.c          what all layers share; layer_*.c are the kinds
 */
#ifndef LS__TRAIN_MODEL_H
#define LS__TRAIN_MODEL_H

#include <lockstep/model.h>

#include "base/status.h"
#include "tensor/spec.h"

/* A kind of layer: a row. `build` and `forward` get an x that `takes` has not refused; errors of all
 * three get the layer's name in front. */
typedef struct ls__layer_kind {
    const char *name; /* "dense": of layers without a name, "dense_1" */
    ls_status (*takes)(const ls_layer *layer, const ls_tensor *x); /* NULL: anything */
    ls_status (*build)(ls_layer *layer, ls_tensor *x);             /* NULL: it has no variables */
    ls_tensor *(*forward)(ls_layer *layer, ls_tensor *x, bool training);
} ls__layer_kind;

typedef struct ls__variable_list {
    ls_variable **at;
    int count, room;
} ls__variable_list;

typedef enum ls__layer_state { LS__LAYER_NEW, LS__LAYER_BUILDING, LS__LAYER_BUILT } ls__layer_state;

struct ls_layer {
    ls_model *model;
    const ls__layer_kind *kind;
    char *name;
    ls__layer_state state;
    ls__variable_list variables; /* the model's own them */
    union {
        ls_dense_layer_options dense;
        ls_conv_layer_options conv;
        ls_batch_norm_layer_options batch_norm;
        ls_layer_options own;
        struct {
            int64_t rows, width;
            double spread;
        } embedding;
        double epsilon; /* of a layer norm */
        double rate;    /* of a dropout */
        int64_t window; /* of a pool */
        ls_activation activation;
    } set;
};

typedef enum ls__model_state {
    LS__MODEL_OPEN,
    LS__MODEL_MAKING,
    LS__MODEL_MEETING,
    LS__MODEL_BUILT
} ls__model_state;

struct ls_model {
    char *name, *what;
    ls__spec input, label; /* of one sample */
    char *input_text, *label_text;
    bool shorter;
    int batch;
    ls_loss_fn loss;
    void *net; /* what build and forward get: ours when net_bytes > 0 */
    size_t net_bytes;
    void (*build)(ls_model *m, void *net);
    ls_tensor *(*forward)(void *net, ls_tensor *x, bool training);
    ls__model_state state;
    ls_layer **layers; /* in the order they were made */
    int n_layers, layers_room;
    bool lacks;                  /* a layer could not be made */
    ls__variable_list variables; /* in the order they were made */
};

/* LS_INVALID, or the pending error, when it is NULL. */
ls_status ls__check_model(const char *who, const ls_model *m);

/* Whether `name` can be one: printable, of 1 to LS__NAME_MOST bytes. */
enum { LS__NAME_MOST = 120 };
ls_status ls__check_name(const char *who, const char *name);

/* x through the model, whatever its state; errors get its name in front (model_forward.c). */
ls_tensor *ls__model_pass(ls_model *m, ls_tensor *x, bool training);

/* ---- variables (model_build.c) ------------------------------------------------------------ */

/* A variable that the model owns. `layer` NULL: not of a layer. */
ls_variable *ls__model_make(ls_model *m, ls_layer *layer, const ls_variable_options *options,
                            const char *name, ls_tensor *initial);

/* Trainable, "LAYER/name". */
ls_variable *ls__layer_weight(ls_layer *layer, const char *name, ls_tensor *initial);

const ls__spec *ls__variable_spec(const ls_variable *v);

/* ---- layers (layer.c) ----------------------------------------------------------------------- */

/* A layer of that kind at the end of the model; `set` is still to be filled. NULL: failed; `st` is
 * what was found wrong before. */
ls_layer *ls__layer_new(const char *who, ls_status st, ls_model *m, const ls__layer_kind *kind,
                        const char *name);
void ls__layer_free(ls_layer *layer);

/* LS_SHAPE: "x is u8[2,3], wants floats [n, in]". */
ls_status ls__refuse_x(const ls_tensor *x, const char *wants, ...) LS_PRINTF(2, 3);

/* The initial value of a kernel as options say it. */
ls_tensor *ls__kernel_initial(ls_initialiser initial, double spread, ls_dtype dtype, int rank,
                              const int64_t *dims);
/* What both of them must be, and a count that must be at least 1. */
ls_status ls__check_initial(const char *who, ls_initialiser initial, double spread);
ls_status ls__check_size(const char *who, const char *what, int64_t count);

#endif
