/*
 * Compiling a user's C file: which compiler, which headers, and what it says when it fails.
 *
 * The result lies in a private directory, which is removed before this returns. Signals that end the
 * command are blocked meanwhile (not in the compiler, which Ctrl-C reaches, too), so that it is removed
 * then as well.
 *
 * The headers are those that belong to the running command: of the source tree, when it runs where it was
 * built (meson leaves their folder in lockstep.include beside it), else PREFIX/include of PREFIX/bin.
 * liblockstep is in the process already and need not be linked.
 */
#include "compile.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"

enum { MOST_PATH = 4096, MOST_WORDS = 64, SHOWN_LINES = 30 };

/* ---- headers ------------------------------------------------------------------------------------ */

/* The folder the running command is in. */
static bool own_folder(char *out, size_t room)
{
    ssize_t n = readlink("/proc/self/exe", out, room - 1);
    if (n <= 0 || (size_t)n >= room - 1)
        return false;
    out[n] = '\0';
    char *slash = strrchr(out, '/');
    if (slash)
        *slash = '\0';
    return slash != NULL;
}

/* "-I" and the folder that has lockstep.h; "": the compiler knows, if anybody does. */
static void find_headers(char *out, size_t room)
{
    char folder[MOST_PATH], path[MOST_PATH + 64];
    cli_bytes noted;
    out[0] = '\0';
    if (!own_folder(folder, sizeof folder))
        return;
    snprintf(path, sizeof path, "%s/lockstep.include", folder);
    if (cli_read_file(path, &noted) == 0) {
        snprintf(out, room, "-I%.*s", (int)strcspn(noted.at, "\n"), noted.at);
        free(noted.at);
        return;
    }
    snprintf(path, sizeof path, "%s/../include/lockstep.h", folder);
    if (access(path, R_OK) == 0)
        snprintf(out, room, "-I%s/../include", folder);
}

/* ---- the compiler -------------------------------------------------------------------------------- */

typedef struct job {
    const cli *cli;
    const char *source; /* as it was given */
    char directory[MOST_PATH], library[MOST_PATH + 16], headers[MOST_PATH + 16];
    char safe[MOST_PATH + 2]; /* the source, not to be taken for an option */
    cli_bytes said;
    int ended;
} job;

/* Runs `words` (a command and maybe first arguments of it) on the job; 0 or an errno. */
static int run_compiler(job *j, const char *words)
{
    static const char *const flags[] = {
        "-std=c17",         "-O2",   "-fPIC",
        "-shared",          "-Wall", "-Werror=implicit-function-declaration",
        "-ffp-contract=off"
    };
    enum { FLAGS = sizeof flags / sizeof flags[0] };
    char *argv[MOST_WORDS + FLAGS + 8], *copy = strdup(words), *rest = copy;
    int n = 0;
    for (char *word; copy && n < MOST_WORDS && (word = strsep(&rest, " \t"));)
        if (word[0])
            argv[n++] = word;
    if (n == 0) {
        free(copy);
        return copy ? ENOENT : ENOMEM;
    }
    for (int i = 0; i < FLAGS; i++)
        argv[n++] = (char *)flags[i];
    if (j->headers[0])
        argv[n++] = j->headers;
    argv[n++] = "-o";
    argv[n++] = j->library;
    argv[n++] = j->safe;
    argv[n++] = "-lm";
    argv[n] = NULL;
    int why = cli_run_program(argv, NULL, true, &j->said, &j->ended);
    free(copy);
    return why;
}

/* The first line that tells an error, from there on. */
static const char *first_error(const char *said)
{
    const char *error = strstr(said, "error:");
    if (!error)
        return said;
    while (error > said && error[-1] != '\n')
        error--;
    return error;
}

/* What the compiler said, down to some lines. */
static void show(const char *said)
{
    int lines = 0;
    while (*said && lines++ < SHOWN_LINES) {
        size_t n = strcspn(said, "\n");
        fprintf(stderr, "%.*s\n", (int)n, said);
        said += n + (said[n] == '\n');
    }
    if (*said)
        fprintf(stderr, "(and more)\n");
}

static int judge(job *j, const char *compiler)
{
    if (WIFEXITED(j->ended) && WEXITSTATUS(j->ended) == 0) {
        show(j->said.at); /* warnings */
        return EXIT_DONE;
    }
    if (WIFSIGNALED(j->ended) && (WTERMSIG(j->ended) == SIGINT || WTERMSIG(j->ended) == SIGTERM))
        return cli_error(j->cli, EXIT_INTERRUPTED, LS_CANCELLED, "", "interrupted");
    const char *error = first_error(j->said.at);
    int status = cli_error(j->cli, EXIT_USAGE, LS_INVALID, error[0] ? "what it said follows" : "",
                           "'%s' does not compile with %s%s%.*s", j->source, compiler,
                           error[0] ? ": " : "", (int)strcspn(error, "\n"), error);
    show(j->said.at);
    return status;
}

static int try_compilers(job *j)
{
    const char *own = getenv("CC");
    const char *const usual[] = { "cc", "gcc", "clang" };
    const bool given = own && own[strspn(own, " \t")];
    for (int i = 0; i < (given ? 1 : 3); i++) {
        const char *compiler = given ? own : usual[i];
        int why = run_compiler(j, compiler);
        if (why == 0) {
            int status = judge(j, compiler);
            free(j->said.at);
            return status;
        }
        if (why != ENOENT || given)
            return cli_error(j->cli, EXIT_USAGE, LS_NOT_FOUND, given ? "it is what CC says" : "",
                             "cannot compile '%s' with '%s': %s", j->source, compiler,
                             why == ENOENT ? "it is not installed" : strerror(why));
    }
    return cli_error(j->cli, EXIT_USAGE, LS_NOT_FOUND,
                     "install Debian's gcc, set CC to a compiler, or give a .so",
                     "cannot compile '%s': there is no cc, gcc or clang", j->source);
}

/* ---- the private directory ------------------------------------------------------------------------ */

static int compile_there(job *j, int *fd)
{
    const char *parent = getenv("TMPDIR");
    if (!parent || !parent[0])
        parent = "/tmp";
    snprintf(j->directory, sizeof j->directory, "%s/lockstep-XXXXXX", parent);
    if (!mkdtemp(j->directory))
        return cli_error(j->cli, EXIT_FAILED, LS_IO, "TMPDIR says where else there is room",
                         "cannot make a directory in '%s' to compile in: %s", parent,
                         strerror(errno));
    snprintf(j->library, sizeof j->library, "%s/model.so", j->directory);
    int status = try_compilers(j);
    if (status == EXIT_DONE) {
        *fd = open(j->library, O_RDONLY | O_CLOEXEC);
        if (*fd < 0)
            status = cli_error(j->cli, EXIT_FAILED, LS_IO, "", "cannot read '%s': %s", j->library,
                               strerror(errno));
    }
    unlink(j->library);
    rmdir(j->directory);
    return status;
}

int compile(const cli *c, const char *source, int *fd)
{
    job j = { .cli = c, .source = source };
    snprintf(j.safe, sizeof j.safe, "%s%s", source[0] == '-' ? "./" : "", source);
    find_headers(j.headers, sizeof j.headers);
    sigset_t ending, before;
    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGHUP);
    sigaddset(&ending, SIGQUIT);
    pthread_sigmask(SIG_BLOCK, &ending, &before);
    int status = compile_there(&j, fd);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}
