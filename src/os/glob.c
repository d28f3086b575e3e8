/*
 * Patterns, by the C library's glob.
 */
#include "os/glob.h"

#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void ls__names_free(ls__names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->at[i]);
    free(names->at);
    *names = (ls__names){ 0 };
}

ls_status ls__names_append(ls__names *names, const char *who, const char *name)
{
    if (names->count == names->room) {
        size_t room = 2 * names->room + 16;
        char **more = realloc(names->at, room * sizeof *more);
        if (!more)
            return ls__fail_memory(who, room * sizeof *more);
        names->at = more;
        names->room = room;
    }
    names->at[names->count] = strdup(name);
    if (!names->at[names->count])
        return ls__fail_memory(who, strlen(name));
    names->count++;
    return LS_OK;
}

static bool is_file(const char *name)
{
    struct stat about;
    return stat(name, &about) == 0 && !S_ISDIR(about.st_mode);
}

static bool is_directory(const char *name)
{
    struct stat about;
    return stat(name, &about) == 0 && S_ISDIR(about.st_mode);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static _Thread_local int refused; /* why, of the last glob */

/* Stops at directories that are there and cannot be read: files in them would be missed. */
static int unreadable(const char *path, int error)
{
    (void)path;
    refused = error;
    return error != ENOENT && error != ENOTDIR && error != ELOOP;
}

static ls_status add_matches(ls__names *names, const char *who, const char *pattern)
{
    glob_t found = { 0 };
    const size_t before = names->count;
    ls_status st = LS_OK;
    int code = glob(pattern, GLOB_NOSORT, unreadable, &found);
    if (code == GLOB_ABORTED)
        st = ls__fail(LS_IO, "%s: cannot look for '%s': %s", who, pattern, strerror(refused));
    else if (code == GLOB_NOSPACE)
        st = ls__fail_memory(who, strlen(pattern));
    for (size_t i = 0; !code && !st && i < found.gl_pathc; i++) {
        const char *name = found.gl_pathv[i];
        /* A link to nothing is missed when it is read, not left out here; but it is no file of
         * just this name. */
        if (strcmp(name, pattern) == 0 ? is_file(name) : !is_directory(name))
            st = ls__names_append(names, who, name);
    }
    globfree(&found);
    if (names->count > before)
        qsort(names->at + before, names->count - before, sizeof *names->at, by_bytes);
    if (!st && names->count == before)
        st = ls__hint(ls__fail(LS_NOT_FOUND, "%s: no file '%s'", who, pattern),
                      "names and patterns are looked up from the directory the program runs in");
    return st;
}

ls_status ls__names_add(ls__names *names, const char *who, const char *pattern)
{
    /* A name with a [ or a * in it is a name first. */
    return is_file(pattern) ? ls__names_append(names, who, pattern)
                            : add_matches(names, who, pattern);
}
