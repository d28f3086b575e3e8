/* The rows of the table in models.c; each is told in its own file. */
#ifndef LS__TRAIN_MODELS_KINDS_H
#define LS__TRAIN_MODELS_KINDS_H

#include "train/models/models.h"

extern const ls__model_kind ls__model_cnn;    /* cnn.c */
extern const ls__model_kind ls__model_cnn2;   /* cnn.c */
extern const ls__model_kind ls__model_mlp;    /* mlp.c */
extern const ls__model_kind ls__model_resnet; /* resnet.c */
extern const ls__model_kind ls__model_gpt;    /* gpt.c */

/* Samples of the image models: a picture of Fashion-MNIST in 0 .. 1, and its class. */
#define LS__IMAGE_INPUT                                                                            \
    {                                                                                              \
        .dtype = LS_F32, .rank = 3, .dims = { 28, 28, 1 }                                          \
    }
#define LS__CLASS_LABEL                                                                            \
    {                                                                                              \
        .dtype = LS_I32, .rank = 0                                                                 \
    }
#define LS__CLASSES 10
#define LS__IMAGE_BATCH 64

#endif
