/*
 * What `--data SPEC` names, as the two datasets that training takes.
 *
 * Order and bits are a function of the spec (what is in its files), the seed and the global batch
 * alone. Every epoch gives every training sample once, in another order each; the test set stands
 * as it is. What is wrong with a spec or with its files is one line, and exit status 2.
 */
#ifndef LOCKSTEP_CLI_DATA_H
#define LOCKSTEP_CLI_DATA_H

#include <lockstep/data.h>

#include "cli.h"

typedef struct data_request {
    const char *spec; /* fashion-mnist, FILE.npz, TFRecord files, bible, a text; NULL: the default */
    const char *input, *label; /* the model's: "f32[28,28,1]", "i32[]" */
    bool text;                 /* it reads text: data_is_text */
    int64_t global_batch;
    uint64_t seed;
    bool test_only; /* nothing is trained: training samples may be few */
} data_request;

typedef struct data_sets {
    ls_dataset *train, *test; /* of lists x, y, in batches; held until data_close */
    int64_t train_samples, test_samples;
    const char *name; /* "fashion-mnist", "bible", or the spec */
    struct data_held *held;
} data_sets;

/* False: told, and `*status` is the exit status. */
bool data_open(const cli *c, const data_request *r, data_sets *out, int *status);

/* When no iterator is left. Takes what was never opened (zeros), too. */
void data_close(data_sets *sets);

/* A model that takes a row of bytes, and is asked for the byte that follows each. */
bool data_is_text(const char *input, const char *label);

/* "T-shirt/top": what class i of a dataset of that name is called; NULL: it has no name. */
const char *data_class(const char *name, int64_t i);

#endif
