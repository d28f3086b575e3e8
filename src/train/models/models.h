/*
 * The models: what `lockstep train` trains by name, written as plain C on the
 * public operators. A model is a row (its kind), a struct of layers that `build`
 * fills, and the variables those layers made.
 *
 * Intended use
 *
 *     ls_random_seed(1);                                     // initial values follow from it
 *     ls__model *m = ls__model_new("cnn");
 *     static ls_value *step(ls_value *batch, void *user) {   // batch: x, y
 *         ls_tape *tape = ls_tape_open();
 *         ls_tensor *loss = ls__model_loss(m, batch, true);
 *         ls_minimize(adam, tape, loss, ls__model_count(m), ls__model_variables(m));
 *         return ls_leaf(loss);
 *     }
 *     ls__model_free(m);
 *
 * The same function runs eagerly or traced. A sixth model is one more file with a
 * row, and a line in the table of models.c.
 */
#ifndef LS__TRAIN_MODELS_MODELS_H
#define LS__TRAIN_MODELS_MODELS_H

#include <lockstep/ops.h>
#include <lockstep/variable.h>

#include "tensor/spec.h"

typedef struct ls__model ls__model;
typedef struct ls__layers ls__layers; /* layers.h */

/* A kind of model: a row. */
typedef struct ls__model_kind {
    const char *name;
    const char *what; /* one line for people */
    ls__spec input;   /* of one sample, without the axis of the batch */
    ls__spec label;   /* the same */
    bool shorter;     /* a sample's first axis may be shorter than `input` says, not empty */
    int batch;        /* samples per replica, unless told otherwise */
    size_t net_size;  /* bytes of the struct of layers */
    /* Makes the layers, in the order their variables are to have. */
    void (*build)(ls__layers *layers, void *net);
    /* Logits: [n, classes] for a label per sample, [n, .., classes] for a label per place. */
    ls_tensor *(*forward)(const void *net, ls_tensor *x, bool training);
} ls__model_kind;

/* All kinds, ends with NULL. The first is the default. */
extern const ls__model_kind *const ls__model_kinds[];

/* A model of a name in the table (LS_NOT_FOUND lists them), or of a row of yours.
 * Its variables are drawn from this thread's seed. NULL on failure; yours until
 * ls__model_free, which takes NULL. */
ls__model *ls__model_new(const char *name);
ls__model *ls__model_make(const ls__model_kind *kind);
void ls__model_free(ls__model *m);

const ls__model_kind *ls__model_kind_of(const ls__model *m);

/* The variables in creation order, the trainable and the others (batch norm's
 * moving statistics); they belong to the model. */
int ls__model_count(const ls__model *m);
ls_variable *const *ls__model_variables(const ls__model *m);

/* Numbers in the trainable ones. */
int64_t ls__model_parameters(const ls__model *m);

/* Logits of x, [n, input...]. Training takes the batch's own statistics and moves the
 * moving ones. LS_SHAPE says what the model wants when x is something else. */
ls_tensor *ls__model_forward(ls__model *m, ls_tensor *x, bool training);

/* The mean over the batch (x, y) of the cross entropy of each label: a scalar. */
ls_tensor *ls__model_loss(ls__model *m, ls_value *batch, bool training);

#endif
