/*
 * Directories. Invariant: none is made that is not asked for, and nothing but a file is removed.
 */
#include "os/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

ls__path_kind ls__path_kind_of(const char *path)
{
    struct stat about;
    if (!path || stat(path, &about))
        return LS__NOTHING_THERE;
    return S_ISREG(about.st_mode)   ? LS__A_FILE
           : S_ISDIR(about.st_mode) ? LS__A_DIRECTORY
                                    : LS__SOMETHING_ELSE;
}

/* ---- making ----------------------------------------------------------------------------------- */

/* The length of what leads to the last name of a path; 0: the current directory. */
static size_t parent_length(const char *path, size_t length)
{
    while (length > 1 && path[length - 1] == '/')
        length--;
    while (length > 0 && path[length - 1] != '/')
        length--;
    while (length > 1 && path[length - 1] == '/')
        length--;
    return length;
}

static void sync_parent(char *path, size_t length)
{
    size_t parent = parent_length(path, length);
    char after = path[parent];
    path[parent] = '\0';
    int file = open(parent ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    path[parent] = after;
    if (file < 0)
        return;
    (void)fsync(file);
    close(file);
}

static ls_status cannot_make(const char *who, const char *path, int error)
{
    ls_status st =
        ls__fail(LS_IO, "%s: cannot make the directory '%s': %s", who, path, strerror(error));
    if (error == EEXIST || error == ENOTDIR)
        return ls__hint(st, "there is a file of that name, or of one on the way");
    if (error == ENOSPC)
        return ls__hint(st, "the disk is full: make room on it, or write elsewhere");
    return st;
}

/* From the outside in: path[..length] is cut off for as long as each is looked at. */
static ls_status make(const char *who, char *path, size_t length)
{
    const char after = path[length];
    if (length == 0)
        return LS_OK;
    path[length] = '\0';
    ls_status st = LS_OK;
    int error = 0;
    if (ls__path_kind_of(path) != LS__A_DIRECTORY) {
        st = make(who, path, parent_length(path, length));
        if (!st && mkdir(path, 0777))
            error = errno;
        else if (!st)
            sync_parent(path, length);
        /* somebody else may have made it meanwhile */
        if (error && ls__path_kind_of(path) != LS__A_DIRECTORY)
            st = cannot_make(who, path, error);
    }
    path[length] = after;
    return st;
}

static ls_status make_copy(const char *who, const char *path, size_t length)
{
    char *copy = strndup(path, length);
    if (!copy)
        return ls__fail_memory(who, length);
    ls_status st = make(who, copy, length);
    free(copy);
    return st;
}

ls_status ls__make_directory(const char *who, const char *path)
{
    if (!path || !path[0])
        return ls__fail(LS_INVALID, "%s: the path of the directory is %s", who,
                        path ? "empty" : "NULL");
    return make_copy(who, path, strlen(path));
}

ls_status ls__make_directory_of(const char *who, const char *path)
{
    if (!path || !path[0])
        return ls__fail(LS_INVALID, "%s: the path is %s", who, path ? "empty" : "NULL");
    return make_copy(who, path, parent_length(path, strlen(path)));
}

/* ---- looking and removing --------------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

ls_status ls__list_directory(const char *who, const char *path, ls__names *names)
{
    const size_t before = names->count;
    DIR *d = opendir(path);
    ls_status st = LS_OK;
    if (!d)
        return ls__fail(errno == ENOENT || errno == ENOTDIR ? LS_NOT_FOUND : LS_IO,
                        "%s: cannot look into '%s': %s", who, path, strerror(errno));
    errno = 0;
    for (struct dirent *e; !st && (e = readdir(d)); errno = 0)
        if (e->d_name[0] != '.')
            st = ls__names_append(names, who, e->d_name);
    if (!st && errno)
        st = ls__fail(LS_IO, "%s: cannot look into '%s': %s", who, path, strerror(errno));
    closedir(d);
    if (names->count > before)
        qsort(names->at + before, names->count - before, sizeof *names->at, by_bytes);
    return st;
}

ls_status ls__remove_file(const char *who, const char *path)
{
    if (unlink(path) == 0 || errno == ENOENT)
        return LS_OK;
    return ls__fail(LS_IO, "%s: cannot remove '%s': %s", who, path, strerror(errno));
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
