/*
 * Between data.c and the sources it knows: each makes both datasets, or says why not.
 */
#ifndef LOCKSTEP_CLI_DATA_SOURCE_H
#define LOCKSTEP_CLI_DATA_SOURCE_H

#include "data.h"
#include "process.h"
#include "record_images.h"
#include "sample.h"

#define BIBLE "bible" /* the program that prints the text of language models, and that text's name */

/* What maps use while they run. */
typedef struct data_held {
    sample x, y;    /* what the model takes */
    char *spec;     /* a copy: names of files lie in it */
    cli_bytes text; /* a text, of which training sees the first `shown` bytes */
    size_t shown;
    int64_t windows; /* of it that an epoch takes */
    record_image image;
} data_held;

/* They fill `train`, `test` and the counts, in the innermost frame; EXIT_DONE, or the exit
 * status. */
int data_open_arrays(const cli *c, const data_request *r, data_sets *out); /* .npz */
int data_open_fashion(const cli *c, const data_request *r, data_sets *out);
int data_open_records(const cli *c, const data_request *r, data_sets *out); /* TFRecord */
int data_open_text(const cli *c, const data_request *r, data_sets *out);

/* An error that the library left pending, without the name of the function it was found in. Files are
 * at fault: exit status 2 (1 when there was no memory). */
int data_failed(const cli *c);

/* "f32[?,28,28,1], i32[?]": the batches, when samples come as numbers of type x. */
void data_describe(const data_held *h, ls_dtype x, char *out, size_t room);

/* EXIT_DONE; or the file has too little for one batch. */
int data_enough(const cli *c, const data_request *r, const char *name, int64_t train, int64_t test);

#endif
