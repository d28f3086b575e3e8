/*
 * Models by name and from files. A file's code runs here for the first time: what it gives back and
 * what it left pending are looked at before anybody relies on it.
 */
#include "model_file.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <lockstep/tensor.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compile.h"
#include "crash_guard.h"

#define SYMBOL "lockstep_model"

bool model_is_file(const char *which)
{
    return cli_ends_with(which, ".c") || cli_ends_with(which, ".so");
}

const char *model_base_name(const char *which)
{
    const char *slash = strrchr(which, '/');
    return slash ? slash + 1 : which;
}

/* ---- shared libraries ---------------------------------------------------------------------------- */

/* What begins every ELF file, of 32 bits, too. */
typedef struct elf_start {
    unsigned char ident[EI_NIDENT];
    uint16_t type, machine;
} elf_start;

static bool read_start(int fd, elf_start *out)
{
    return pread(fd, out, sizeof *out, 0) == sizeof *out &&
           memcmp(out->ident, ELFMAG, SELFMAG) == 0;
}

static const char *machine_name(const elf_start *s)
{
    static const struct {
        uint16_t machine;
        const char *name;
    } known[] = { { EM_X86_64, "x86-64" }, { EM_386, "32-bit x86" }, { EM_AARCH64, "ARM64" },
                  { EM_ARM, "ARM" },       { EM_RISCV, "RISC-V" },   { EM_PPC64, "PowerPC" } };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].machine == s->machine)
            return known[i].name;
    return "another kind";
}

/* Before it is loaded, which tells less. */
static int check_elf(const cli *c, const char *path, int fd)
{
    elf_start its, own;
    if (!read_start(fd, &its))
        return cli_error(c, EXIT_USAGE, LS_CORRUPT,
                         "'cc -shared -fPIC -o mine.so mine.c' makes one",
                         "the model '%s' is no shared library", path);
    int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    bool known = self >= 0 && read_start(self, &own);
    if (self >= 0)
        close(self);
    if (known && (its.machine != own.machine || its.ident[EI_CLASS] != own.ident[EI_CLASS] ||
                  its.ident[EI_DATA] != own.ident[EI_DATA]))
        return cli_error(c, EXIT_USAGE, LS_UNSUPPORTED,
                         "compile it on this machine, or give its .c",
                         "the model '%s' is for machines of %s, this one is %s", path,
                         machine_name(&its), machine_name(&own));
    return EXIT_DONE;
}

/* Behind the path that dlerror begins with. */
static const char *without_path(const char *text, const char *path)
{
    size_t n = strlen(path);
    return strncmp(text, path, n) == 0 && strncmp(text + n, ": ", 2) == 0 ? text + n + 2 : text;
}

static int load(const cli *c, const char *which, const char *path, void **library)
{
    crash_guard_where("while it was loaded");
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    crash_guard_where(NULL);
    if (*library)
        return EXIT_DONE;
    const char *why = dlerror();
    return cli_error(c, EXIT_USAGE, LS_INVALID, "", "the model '%s' cannot be loaded: %s", which,
                     why ? without_path(why, path) : "no reason given");
}

/* A checkpoint knows the name of a file, not where it is. */
static int cannot_read(const cli *c, const char *which)
{
    bool trains = cli_ends_with(c->name, " train");
    return cli_error(c, EXIT_USAGE, errno == ENOENT ? LS_NOT_FOUND : LS_IO,
                     trains ? "give its path" : "give its path with --model FILE.c",
                     "cannot read the model '%s': %s", which, strerror(errno));
}

/* What was compiled has no name any more. Its descriptor stays open: the name of one is that of what
 * was loaded by it, for as long as it is. */
static int load_compiled(const cli *c, const char *which, void **library)
{
    char path[64];
    int fd, status = compile(c, which, &fd);
    if (status != EXIT_DONE)
        return status;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return load(c, which, path, library);
}

/* By its whole name: without a slash in it, it would be looked for elsewhere. */
static int load_library(const cli *c, const char *which, void **library)
{
    char *path = realpath(which, NULL);
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    int status;
    if (fd < 0) {
        status = cannot_read(c, which);
    } else {
        status = check_elf(c, which, fd);
        close(fd);
    }
    if (status == EXIT_DONE)
        status = load(c, which, path, library);
    free(path);
    return status;
}

/* ---- models --------------------------------------------------------------------------------------- */

typedef ls_model *(*model_fn)(void);

static int make_model(const cli *c, const char *which, void *library, ls_model **out)
{
    model_fn fn;
    void *symbol = dlsym(library, SYMBOL);
    if (!symbol)
        return cli_error(c, EXIT_USAGE, LS_NOT_FOUND, "it must define 'ls_model *" SYMBOL "(void)'",
                         "the model '%s' does not define " SYMBOL, which);
    memcpy(&fn, &symbol, sizeof fn); /* ISO C has no cast for it */
    crash_guard_where("in " SYMBOL "()");
    LS_FRAME
        *out = fn();
    crash_guard_where(NULL);
    if (*out && !ls_error_pending() && !ls_model_rename(*out, model_base_name(which)))
        return EXIT_DONE;
    ls_model_free(*out);
    *out = NULL;
    if (ls_error_pending()) {
        ls_status code = ls_error();
        return cli_error(c, EXIT_USAGE, code, ls_error_hint(), "the model '%s': %s", which,
                         ls_error_text());
    }
    return cli_error(c, EXIT_USAGE, LS_INVALID, "it must return a model (ls_model_new)",
                     "the model '%s': " SYMBOL "() returned NULL", which);
}

static int open_file(const cli *c, const char *which, ls_model **out)
{
    void *library = NULL;
    if (access(which, R_OK))
        return cannot_read(c, which);
    int status = cli_ends_with(which, ".c") ? load_compiled(c, which, &library)
                                            : load_library(c, which, &library);
    return status == EXIT_DONE ? make_model(c, which, library, out) : status;
}

static int open_named(const cli *c, const char *which, ls_model **out)
{
    *out = ls_model_named(which);
    if (*out)
        return EXIT_DONE;
    ls_status code = ls_error();
    if (code != LS_NOT_FOUND)
        return cli_error(c, EXIT_FAILED, code, ls_error_hint(), "%s", ls_error_text());
    char names[256], hint[512];
    const char *name;
    size_t at = 0;
    names[0] = '\0';
    for (int i = 0; (name = ls_model_known(i, NULL)) && at < sizeof names; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? " " : "", name);
    char meant[64];
    if (cli_nearest(which, names, meant, sizeof meant))
        snprintf(hint, sizeof hint, "did you mean '%s'? There are %s, FILE.c and FILE.so", meant,
                 names);
    else
        snprintf(hint, sizeof hint, "there are %s, FILE.c and FILE.so", names);
    return cli_error(c, EXIT_USAGE, LS_NOT_FOUND, hint, "unknown model '%s'", which);
}

bool model_file_open(const cli *c, const char *which, model_file *out, int *status)
{
    model_file m = { .foreign = model_is_file(which) };
    snprintf(m.name, sizeof m.name, "%s", m.foreign ? model_base_name(which) : which);
    int ended = m.foreign ? open_file(c, which, &m.model) : open_named(c, which, &m.model);
    if (ended != EXIT_DONE) {
        *status = ended;
        return false;
    }
    *out = m;
    return true;
}
