/*
 * Directories: making them and their parents, and bringing names to the disk.
 */
#include "os/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_directory(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* Looks only when it could not be made: who made it a moment before us is welcome. */
static ls_status make_one(const char *path)
{
    if (mkdir(path, 0777) == 0)
        return LS_OK;
    int why = errno;
    if (is_directory(path))
        return LS_OK;
    return ls__fail(LS_IO, "cannot make the directory '%s': %s", path,
                    why == EEXIST ? "it is there, and no directory" : strerror(why));
}

ls_status ls__make_directory(const char *path)
{
    if (!path || !path[0])
        return ls__fail(LS_INVALID, "the path of a directory is %s", path ? "empty" : "NULL");
    if (is_directory(path))
        return LS_OK;
    char *own = strdup(path);
    if (!own)
        return ls__fail_memory(path, strlen(path) + 1);
    ls_status st = LS_OK;
    for (char *at = own + 1; *at && !st; at++)
        if (*at == '/' && at[-1] != '/') {
            *at = '\0';
            st = make_one(own);
            *at = '/';
        }
    if (!st)
        st = make_one(own);
    free(own);
    return st;
}

void ls__sync_directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *dir = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    int file = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (file >= 0) {
        (void)fsync(file);
        close(file);
    }
    free(dir);
}
