/*
 * Places to write to. Permissions alone do not tell whether a file can be made (root, read-only disks):
 * one is made, and removed.
 */
#include "directories.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* With all above it. False: errno. */
static bool make_directory(const char *path)
{
    char part[4096];
    struct stat is;
    if (strlen(path) >= sizeof part) {
        errno = ENAMETOOLONG;
        return false;
    }
    for (const char *slash = path; (slash = strchr(slash + 1, '/'));) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        if (mkdir(part, 0777) && errno != EEXIST)
            return false;
    }
    if (mkdir(path, 0777) && errno != EEXIST)
        return false;
    if (stat(path, &is) || !S_ISDIR(is.st_mode)) {
        errno = ENOTDIR;
        return false;
    }
    return true;
}

static bool can_write_in(const char *directory)
{
    char path[4200];
    snprintf(path, sizeof path, "%.4096s/.lockstep-XXXXXX", directory);
    int file = mkstemp(path);
    if (file < 0)
        return false;
    close(file);
    return unlink(path) == 0;
}

int check_directory(const cli *c, const char *option, const char *path)
{
    if (!path || (make_directory(path) && can_write_in(path)))
        return EXIT_DONE;
    return cli_error(c, EXIT_USAGE, LS_IO, "name a directory that can be made and written",
                     "%s '%s': %s", option, path, strerror(errno));
}

int check_file(const cli *c, const char *option, const char *path)
{
    char directory[4096];
    if (!path)
        return EXIT_DONE;
    const char *slash = strrchr(path, '/');
    snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash - path) : 1,
             slash ? path : ".");
    if (can_write_in(directory[0] ? directory : "/"))
        return EXIT_DONE;
    return cli_error(c, EXIT_USAGE, LS_IO, "name a file in a directory that can be written",
                     "%s '%s': %s", option, path, strerror(errno));
}
