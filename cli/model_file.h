/*
 * MODEL of the command line: a name, or a user's FILE.c or FILE.so that defines
 * `ls_model *lockstep_model(void)`.
 */
#ifndef LOCKSTEP_CLI_MODEL_FILE_H
#define LOCKSTEP_CLI_MODEL_FILE_H

#include <lockstep/model.h>

#include "cli.h"

enum { MODEL_NAME_ROOM = 256 };

typedef struct model_file {
    ls_model *model;            /* yours to free, or a trainer's; before the command ends */
    char name[MODEL_NAME_ROOM]; /* "cnn"; of a file its name without folders: "mine.c" */
    bool foreign;               /* a user's code: a crash_guard is of use */
} model_file;

/* Whether MODEL means a file: it ends with .c or .so. */
bool model_is_file(const char *which);

/* What a file's model is called, without opening it. */
const char *model_base_name(const char *which);

/* False: told, and `*status` is the exit status. A file's model is renamed to `name`, whatever its code
 * calls it, so that checkpoints tell it from another's. Code that is loaded stays until the process
 * ends. */
bool model_file_open(const cli *c, const char *which, model_file *out, int *status);

#endif
