/*
 * What the system lets us do: files, places to write, a port, the terminal.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "doctor.h"

static void check_open_files(doctor *d)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        doctor_say(d, DOCTOR_WARN, "open files", "", "not known: %s", strerror(errno));
    else if (limit.rlim_cur < 256)
        doctor_say(d, DOCTOR_WARN, "open files", "ulimit -n 1024",
                   "at most %llu at once: many data files, or workers, need more",
                   (unsigned long long)limit.rlim_cur);
    else if (limit.rlim_cur == RLIM_INFINITY)
        doctor_say(d, DOCTOR_OK, "open files", "", "as many as wanted");
    else
        doctor_say(d, DOCTOR_OK, "open files", "", "at most %llu at once",
                   (unsigned long long)limit.rlim_cur);
}

/* ---- places to write ---------------------------------------------------------------------- */

/* Writes a file there, really, and takes it away again; an errno. */
static int try_to_write(const char *directory)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/.lockstep-doctor-XXXXXX", directory);
    if (length < 0 || (size_t)length >= sizeof path)
        return ENAMETOOLONG;
    int fd = mkstemp(path);
    if (fd < 0)
        return errno;
    int error = write(fd, "x", 1) == 1 ? 0 : errno;
    close(fd);
    unlink(path);
    return error;
}

static void check_place(doctor *d, const char *what, const char *directory, doctor_state if_not,
                        const char *to_do)
{
    struct statvfs fs;
    int error = try_to_write(directory);
    if (error) {
        doctor_say(d, if_not, what, to_do, "%s cannot be written: %s", directory, strerror(error));
        return;
    }
    char room[32] = "?";
    uint64_t bytes = UINT64_MAX;
    if (statvfs(directory, &fs) == 0)
        doctor_bytes(bytes = (uint64_t)fs.f_bavail * fs.f_frsize, room);
    if (bytes < 256ull << 20)
        doctor_say(d, DOCTOR_WARN, what, "make room: checkpoints and logs are written",
                   "%s has only %s left", directory, room);
    else
        doctor_say(d, DOCTOR_OK, what, "", "%s can be written, %s left", directory, room);
}

static void check_temporary(doctor *d)
{
    const char *directory = getenv("TMPDIR");
    check_place(d, "temporary", directory && directory[0] ? directory : "/tmp", DOCTOR_FAIL,
                "set TMPDIR to a directory that you may write");
}

static void check_here(doctor *d)
{
    char here[4096];
    if (!getcwd(here, sizeof here))
        doctor_say(d, DOCTOR_WARN, "here", "change to a directory that exists",
                   "the current directory is not there: %s", strerror(errno));
    else
        check_place(d, "here", here, DOCTOR_WARN,
                    "give --checkpoint and --log directories that you may write");
}

/* ---- a port ---------------------------------------------------------------------------------- */

/* Listens on a port of the loopback and calls it; an errno. */
static int try_port(int *port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t bytes = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int caller = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool worked = listener >= 0 && caller >= 0 && bind(listener, (void *)&at, sizeof at) == 0 &&
                  listen(listener, 1) == 0 && getsockname(listener, (void *)&at, &bytes) == 0 &&
                  connect(caller, (void *)&at, sizeof at) == 0;
    int error = worked ? 0 : errno;
    *port = ntohs(at.sin_port);
    if (caller >= 0)
        close(caller);
    if (listener >= 0)
        close(listener);
    return error;
}

static void check_port(doctor *d)
{
    int port, error = try_port(&port);
    if (error)
        doctor_say(d, DOCTOR_WARN, "ports",
                   "bring the loopback up (ip link set lo up); workers need it, replicas do not",
                   "no port of 127.0.0.1 can be used: %s", strerror(error));
    else
        doctor_say(d, DOCTOR_OK, "ports", "", "127.0.0.1 answers (port %d was tried)", port);
}

/* ---- the terminal ------------------------------------------------------------------------------ */

static void check_terminal(doctor *d)
{
    const terminal *t = &d->screen;
    if (!isatty(STDOUT_FILENO)) {
        doctor_say(d, DOCTOR_OK, "terminal", "", "none: progress is shown as plain lines");
        return;
    }
    if (!t->live) {
        doctor_say(d, DOCTOR_WARN, "terminal", "set TERM, to xterm-256color say",
                   "TERM says it can do nothing: progress is shown as plain lines");
        return;
    }
    doctor_say(d, t->utf8 ? DOCTOR_OK : DOCTOR_WARN, "terminal",
               t->utf8 ? "" : "set LANG=C.UTF-8: bars and curves are drawn in ASCII else",
               "%.32s, %d x %d, %s, %s", getenv("TERM"), t->columns, t->rows,
               t->colour ? "colours" : "no colours (NO_COLOR)", t->utf8 ? "UTF-8" : "no UTF-8");
}

static doctor_check *const checks[] = { check_open_files, check_temporary, check_here, check_port,
                                        check_terminal };

const doctor_group doctor_system = { "System", sizeof checks / sizeof checks[0], checks };
