/*
 * Places to write to. Permissions alone do not tell whether a file can be made (root, read-only disks):
 * one is made, and removed.
 */
#include "directories.h"

#include <errno.h>
#include <glob.h>
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

/* ---- an earlier run ---------------------------------------------------------------------------- */

static int failed_to_move(const cli *c, const char *path)
{
    return cli_error(c, EXIT_USAGE, LS_IO, "name another directory, or remove what is there",
                     "cannot move '%s', which is of an earlier run: %s", path, strerror(errno));
}

/* The first DIRECTORY/earlier-N that is not there yet. */
static bool make_earlier(const char *directory, char *out, size_t room)
{
    for (int n = 1; n < 1000000; n++) {
        snprintf(out, room, "%s/earlier-%d", directory, n);
        if (mkdir(out, 0777) == 0)
            return true;
        if (errno != EEXIST)
            return false;
    }
    return false;
}

int set_earlier_aside(const cli *c, const char *directory)
{
    char patterns[3][4200], folder[4200], to[4500];
    snprintf(patterns[0], sizeof patterns[0], "%.4096s/step-*.safetensors", directory);
    snprintf(patterns[1], sizeof patterns[1], "%.4096s/run.jsonl", directory);
    snprintf(patterns[2], sizeof patterns[2], "%.4096s/plot.svg", directory);
    glob_t found;
    if (glob(patterns[0], 0, NULL, &found) != 0)
        return EXIT_DONE; /* no checkpoint */
    size_t checkpoints = found.gl_pathc;
    for (int i = 1; i < 3; i++)
        (void)glob(patterns[i], GLOB_APPEND, NULL, &found); /* may be there, or not */
    int status = EXIT_DONE;
    if (!make_earlier(directory, folder, sizeof folder))
        status = failed_to_move(c, found.gl_pathv[0]);
    for (size_t i = 0; i < found.gl_pathc && status == EXIT_DONE; i++) {
        snprintf(to, sizeof to, "%s%s", folder, strrchr(found.gl_pathv[i], '/'));
        if (rename(found.gl_pathv[i], to))
            status = failed_to_move(c, found.gl_pathv[i]);
    }
    globfree(&found);
    if (status == EXIT_DONE)
        fprintf(stderr, "%s: moved %zu checkpoint%s of an earlier run to %s\n", c->name,
                checkpoints, checkpoints == 1 ? "" : "s", folder);
    return status;
}
