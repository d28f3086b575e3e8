/*
 * What `predict CHECKPOINT FILE` asks a model about: samples out of a file, with the numbers that training
 * would have given it.
 */
#ifndef LOCKSTEP_CLI_PREDICT_INPUT_H
#define LOCKSTEP_CLI_PREDICT_INPUT_H

#include <lockstep/data.h>

#include "cli.h"

typedef struct predict_input {
    ls_dataset *x;   /* batches for the model, in the file's order; held until predict_close */
    int64_t samples; /* in all */
    struct predict_held *held;
} predict_input;

/* FILE, told by its first bytes: .npz (x_test, or the only array), .npy, idx (gzip, too), a JPEG or PNG
 * (resized), TFRecord files (`image`). `input` is the model's, "f32[28,28,1]". An array may be one sample
 * alone. False: told, and `*status` is the exit status. */
bool predict_open(const cli *c, const char *file, const char *input, int64_t batch,
                  predict_input *out, int *status);
void predict_close(predict_input *p);

#endif
