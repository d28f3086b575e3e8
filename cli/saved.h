/*
 * A session with the weights of a checkpoint: what evaluate, predict and sample begin with.
 */
#ifndef LOCKSTEP_CLI_SAVED_H
#define LOCKSTEP_CLI_SAVED_H

#include "session.h"

/* A request of these commands begins with it. */
typedef struct saved_request {
    session_request session;
} saved_request;

void saved_defaults(void *request);

/* `path`: a file or a directory of checkpoints. What the request leaves open of model and data is as
 * the checkpoint says; replicas are not: they matter to training alone. False: told, with `*status`. */
bool saved_open(const cli *c, saved_request *r, const char *path, session *out, int *status);

/* Rows of a table of options. */
#define SAVED_AT(field) .at = offsetof(session_request, field)
#define SAVED_OPTIONS                                                                              \
    { "--model", "MODEL", "a name or FILE.c (the checkpoint's)", "a name or a file", cli_text,     \
      SAVED_AT(model), .values = "cnn cnn2 mlp resnet gpt FILE" },                                 \
        { "--data", "SPEC", "as of train (the checkpoint's)", "a name or a file", cli_text,         \
          SAVED_AT(data), .values = "FILE" },                                                      \
        { "--batch", "N", "samples of each replica at once (256; gpt: 8)",                         \
          "a whole number of 1 or more", session_read_count, SAVED_AT(batch) },                    \
        { "--devices", "LIST", "/cpu:0,/cpu:1: where it runs (what this host serves well)",        \
          "a list of devices", cli_text, SAVED_AT(devices) },                                      \
    {                                                                                              \
        "--threads", "N", "threads of each replica (1)", "a whole number from 1 to 1024",          \
            session_read_threads, SAVED_AT(threads)                                                \
    }

#endif
