/*
 * Lockstep's own models: what `lockstep train` trains by name. Each is written as a user would
 * write it, on <lockstep/model.h> alone, in a file of its own; models.c has the table. A sixth model
 * is one more file, and a line there.
 */
#ifndef LS__TRAIN_MODELS_MODELS_H
#define LS__TRAIN_MODELS_MODELS_H

#include <lockstep/model.h>

/* A kind of model: what it is, and the function that makes one. */
typedef struct ls__model_kind {
    const char *name;
    const char *what; /* one line for people */
    ls_model *(*make)(const char *name, const char *what);
} ls__model_kind;

ls_model *ls__cnn(const char *name, const char *what);    /* cnn.c */
ls_model *ls__cnn2(const char *name, const char *what);   /* cnn.c */
ls_model *ls__mlp(const char *name, const char *what);    /* mlp.c */
ls_model *ls__resnet(const char *name, const char *what); /* resnet.c */
ls_model *ls__gpt(const char *name, const char *what);    /* gpt.c */

/* Samples of the image models: a picture of Fashion-MNIST in 0 .. 1, and its class. */
#define LS__IMAGE "f32[28,28,1]"
#define LS__CLASSES 10

#endif
