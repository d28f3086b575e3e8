/*
 * Directories: making them, and those they are in.
 */
#include "os/directory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_directory(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* Looks only when it could not be made: who made it a moment before us is welcome. */
static ls_status make_one(const char *who, const char *path)
{
    if (mkdir(path, 0777) == 0)
        return LS_OK;
    int why = errno;
    if (is_directory(path))
        return LS_OK;
    return ls__fail(LS_IO, "%s: cannot make the directory '%s': %s", who, path,
                    why == EEXIST ? "it is there, and no directory" : strerror(why));
}

ls_status ls__make_directory(const char *who, const char *path)
{
    if (!path || !path[0])
        return ls__fail(LS_INVALID, "%s: the path of the directory is %s", who,
                        path ? "empty" : "NULL");
    if (is_directory(path))
        return LS_OK;
    char *own = strdup(path);
    if (!own)
        return ls__fail_memory(who, strlen(path) + 1);
    ls_status st = LS_OK;
    for (char *at = own + 1; *at && !st; at++)
        if (*at == '/' && at[-1] != '/') {
            *at = '\0';
            st = make_one(who, own);
            *at = '/';
        }
    if (!st)
        st = make_one(who, own);
    free(own);
    return st;
}
