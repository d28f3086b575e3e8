/*
 * Places to write to. Permissions alone do not tell whether a file can be made (root, read-only disks):
 * one is made, and removed.
 */
#include "directories.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
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

/* Whether it is there yet, or not. */
static bool names_directory(const char *path)
{
    struct stat is;
    size_t n = strlen(path);
    return (n > 0 && path[n - 1] == '/') || (stat(path, &is) == 0 && S_ISDIR(is.st_mode));
}

int check_file(const cli *c, const char *option, const char *path)
{
    char directory[4096];
    if (!path)
        return EXIT_DONE;
    const char *slash = strrchr(path, '/');
    snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash - path) : 1,
             slash ? path : ".");
    if (names_directory(path))
        errno = EISDIR;
    else if (can_write_in(directory[0] ? directory : "/"))
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

/* What a run writes: `lockstep train`, ls_checkpoints and ls_event_log. */
static bool is_of_a_run(const char *name, bool *checkpoint)
{
    static const char *const patterns[] = { "step-*.safetensors", "run.jsonl", "plot.svg",
                                            "events.out.tfevents.*" };
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        if (fnmatch(patterns[i], name, 0) == 0) {
            *checkpoint = i == 0;
            return true;
        }
    return false;
}

/* A run being moved, file by file. */
typedef struct earlier {
    const char *directory;
    char folder[4200]; /* "": nothing was moved yet */
    int files, checkpoints;
} earlier;

static int move(const cli *c, earlier *e, const char *name)
{
    char from[4400], to[4500];
    snprintf(from, sizeof from, "%.4096s/%s", e->directory, name);
    if (!e->folder[0] && !make_earlier(e->directory, e->folder, sizeof e->folder))
        return failed_to_move(c, from);
    snprintf(to, sizeof to, "%s/%s", e->folder, name);
    return rename(from, to) ? failed_to_move(c, from) : EXIT_DONE;
}

static void tell_moved(const cli *c, const earlier *e)
{
    if (e->checkpoints > 0)
        fprintf(stderr, "%s: moved %d checkpoint%s of an earlier run to %s\n", c->name,
                e->checkpoints, e->checkpoints == 1 ? "" : "s", e->folder);
    else if (e->files > 0)
        fprintf(stderr, "%s: moved the log of an earlier run to %s\n", c->name, e->folder);
}

int set_earlier_aside(const cli *c, const char *directory)
{
    if (!directory)
        return EXIT_DONE;
    DIR *all = opendir(directory);
    if (!all)
        return cli_error(c, EXIT_USAGE, LS_IO, "name another directory",
                         "cannot see what is in '%s': %s", directory, strerror(errno));
    earlier e = { .directory = directory };
    int status = EXIT_DONE;
    for (struct dirent *entry; status == EXIT_DONE && (entry = readdir(all));) {
        bool checkpoint;
        if (!is_of_a_run(entry->d_name, &checkpoint))
            continue;
        status = move(c, &e, entry->d_name);
        e.files++;
        e.checkpoints += checkpoint;
    }
    closedir(all);
    if (status == EXIT_DONE)
        tell_moved(c, &e);
    return status;
}
