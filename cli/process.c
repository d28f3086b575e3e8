/*
 * Whole files and what programs print, in memory. Programs are spawned, never forked: threads of the
 * library may be at work.
 */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIRST_ROOM = 1 << 16 };

/* Until the end of `fd`. */
static int read_all(int fd, cli_bytes *out)
{
    size_t room = FIRST_ROOM, count = 0;
    char *bytes = malloc(room);
    int why = bytes ? 0 : ENOMEM;
    while (!why) {
        if (count + 1 == room) {
            char *more = realloc(bytes, room *= 2);
            if (!more) {
                why = ENOMEM;
                break;
            }
            bytes = more;
        }
        ssize_t got = read(fd, bytes + count, room - count - 1);
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            why = errno;
        count += got > 0 ? (size_t)got : 0;
    }
    if (why) {
        free(bytes);
        return why;
    }
    bytes[count] = '\0';
    *out = (cli_bytes){ bytes, count };
    return 0;
}

int cli_read_file(const char *path, cli_bytes *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int why = read_all(fd, out);
    close(fd);
    return why;
}

/* ---- programs ----------------------------------------------------------------------------------- */

extern char **environ;

/* stdin is empty, stdout is `to`, stderr is `to` or goes nowhere. */
static int say_where(posix_spawn_file_actions_t *files, int to, bool all)
{
    int why = posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDONLY, 0);
    if (!why)
        why = posix_spawn_file_actions_adddup2(files, to, 1);
    if (!why)
        why = all ? posix_spawn_file_actions_adddup2(files, to, 2)
                  : posix_spawn_file_actions_addopen(files, 2, "/dev/null", O_WRONLY, 0);
    return why;
}

static int spawn(char *const *argv, char *const *environment, int to, bool all, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    sigaddset(&usual, SIGINT);
    sigaddset(&usual, SIGTERM);
    int why = posix_spawn_file_actions_init(&files);
    if (why)
        return why;
    why = posix_spawnattr_init(&how);
    if (!why) {
        posix_spawnattr_setsigmask(&how, &none);
        posix_spawnattr_setsigdefault(&how, &usual);
        posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        why = say_where(&files, to, all);
        if (!why)
            why =
                posix_spawnp(pid, argv[0], &files, &how, argv, environment ? environment : environ);
        posix_spawnattr_destroy(&how);
    }
    posix_spawn_file_actions_destroy(&files);
    return why;
}

int cli_run_program(char *const *argv, char *const *environment, bool all, cli_bytes *out,
                    int *ended)
{
    int ends[2];
    pid_t pid;
    if (pipe2(ends, O_CLOEXEC))
        return errno;
    int why = spawn(argv, environment, ends[1], all, &pid);
    close(ends[1]);
    if (why) {
        close(ends[0]);
        return why;
    }
    why = read_all(ends[0], out);
    close(ends[0]); /* one that still writes ends by SIGPIPE */
    while (waitpid(pid, ended, 0) < 0)
        if (errno != EINTR) {
            if (!why)
                free(out->at);
            return errno;
        }
    return why;
}
