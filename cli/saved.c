/* Opens the model of a checkpoint. Only weights are taken: no optimizer, no position. */
#include "saved.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

void saved_defaults(void *request)
{
    *(saved_request *)request = (saved_request){ .session = { .weight_decay = NAN, .seed = 1 } };
}

/* The record, if it is a checkpoint of ours: other safetensors files have none. */
static bool look(const char *file, ls_checkpoint_record *out)
{
    *out = (ls_checkpoint_record){ .size = sizeof *out };
    if (ls_checkpoint_look(file, out) == LS_OK)
        return true;
    ls_error();
    return false;
}

/* A file is taken as it is: it may be anybody's weights. */
static bool find(const char *path, char *out, size_t room)
{
    struct stat is;
    if (stat(path, &is) == 0 && S_ISREG(is.st_mode) && strlen(path) < room) {
        strcpy(out, path);
        return true;
    }
    return ls_checkpoint_newest(path, out, room) == LS_OK;
}

bool saved_open(const cli *c, saved_request *r, const char *path, session *out, int *status)
{
    char file[4096];
    ls_checkpoint_record record;
    *status = EXIT_USAGE;
    if (!find(path, file, sizeof file)) {
        *status = cli_failed_with(c, EXIT_USAGE);
        return false;
    }
    if (look(file, &record)) {
        r->session.model = r->session.model ? r->session.model : record.model;
        r->session.data = r->session.data ? r->session.data : record.data;
    }
    if (!r->session.model) {
        cli_error(c, EXIT_USAGE, LS_INVALID, "add --model NAME",
                  "'%s' does not say of which model it is", file);
        return false;
    }
    r->session.test_batch = 256;
    if (!session_open(c, &r->session, out, status))
        return false;
    if (ls_trainer_take_weights(out->trainer, file) == LS_OK)
        return true;
    *status = cli_failed_with(c, EXIT_USAGE);
    session_close(out);
    return false;
}
