/*
 * What the callbacks of the library share. Each is a struct that begins with its ls_callback, made by
 * ls__callback_new and freed as one block.
 */
#ifndef LS__TRAIN_CALLBACK_H
#define LS__TRAIN_CALLBACK_H

#include "tensor/tensor.h"
#include "train/trainer.h"

/* `bytes` of zeros, the first of which are a callback whose `user` is the block itself. */
void *ls__callback_new(const char *name, size_t bytes);

/* A figure that is watched: the best value so far, and whether more is better. */
typedef struct ls__watch {
    char name[64];
    bool rising;
    double best; /* NaN: none yet */
} ls__watch;

/* `name` NULL: "test_loss", or "loss" when there is no test. What is named *accuracy* rises. */
ls_status ls__watch_open(const char *who, const char *name, ls__watch *out);

/* The figure's value now; LS_NOT_FOUND lists those there are. */
ls_status ls__watch_read(ls__watch *w, const ls_progress *p, double *out);

/* Whether `value` is better than the best so far by more than `least`. */
bool ls__watch_better(const ls__watch *w, double value, double least);

#endif
