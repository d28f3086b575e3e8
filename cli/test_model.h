/*
 * For tests of models in files: texts of some, and a folder that must be empty again when all is done.
 */
#ifndef LOCKSTEP_CLI_TEST_MODEL_H
#define LOCKSTEP_CLI_TEST_MODEL_H

#include "test_data.h"

#define HEAD "#include <lockstep/train.h>\n"
#define MODEL                                                                                      \
    HEAD "ls_model *lockstep_model(void)\n{\n"                                                     \
         "    ls_model *m = ls_model_new(LS_MODEL(.name = \"any\", .input = \"f32[4]\"));\n"       \
         "    ls_dense_layer(m, LS_DENSE_LAYER(.units = 3));\n"                                    \
         "    return m;\n}\n"

static inline const char *write_text(const char *name, const char *text)
{
    return write_file(name, text, strlen(text));
}

/* An empty folder for what is made meanwhile, which must be empty afterwards. */
static inline int make_folders(void **state)
{
    if (make_folder(state) || mkdir(in_folder("tmp"), 0700))
        return -1;
    return setenv("TMPDIR", in_folder("tmp"), 1);
}

static inline int remove_folders(void **state)
{
    int left = rmdir(in_folder("tmp"));
    return remove_folder(state) || left;
}

#endif
