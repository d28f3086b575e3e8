/*
 * This build and what it finds beside it: libraries, maths that is right, GPUs, MPI, a compiler.
 */
#include <glob.h>
#include <lockstep.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

/* ---- the build ------------------------------------------------------------------------------ */

static void check_versions(doctor *d)
{
    if (strcmp(ls_version(), LS_VERSION) == 0)
        doctor_say(d, DOCTOR_OK, "lockstep", "", "%s, command and library", LS_VERSION);
    else
        doctor_say(d, DOCTOR_FAIL, "lockstep",
                   "install both anew; 'ldd $(command -v lockstep)' shows which library is loaded",
                   "the command is version %s, but the library that was loaded is %s", LS_VERSION,
                   ls_version());
}

/* Hosts that show the same line give the same bits. */
static void check_profile(doctor *d)
{
    doctor_say(d, DOCTOR_OK, "math profile", "", "%s", ls_math_profile());
}

/* Each replica gives its number plus one, so the sum of two is three. */
static ls_value *sum_step(ls_value *arguments, void *user)
{
    (void)arguments, (void)user;
    ls_replica *r = ls_get_replica_context();
    ls_tensor *mine = ls_scalar(LS_F32, ls_replica_id(r) + 1);
    return ls_all_reduce(r, LS_SUM, ls_leaf(mine));
}

static void check_maths(doctor *d)
{
    double sum = 0;
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0,/cpu:1", .replicas = 2));
    LS_FRAME {
        ls_value *result = ls_run_eager(s, sum_step, NULL, ls_list(0, NULL));
        sum = ls_to_double(ls_leaf_tensor(ls_select(result, 1)));
    }
    ls_strategy_free(s);
    if (ls_error_pending()) {
        ls_error();
        doctor_say(d, DOCTOR_FAIL, "two replicas", ls_error_hint(), "%s", ls_error_text());
    } else if (sum != 3) {
        doctor_say(d, DOCTOR_FAIL, "two replicas", "please report this", "1 + 2 gives %g", sum);
    } else {
        doctor_say(d, DOCTOR_OK, "two replicas", "", "ran, and reduced a sum that is right");
    }
}

/* What is lost without a library, and the package that has it. */
static const struct {
    const char *name, *lost, *package;
} uses[] = {
    { "oneDNN", "convolution and matmul are many times slower", "libdnnl-dev" },
    { "hwloc", "devices sit on cores in the system's order", "libhwloc-dev" },
    { "zlib", "compressed files, Fashion-MNIST among them, cannot be read", "zlib1g-dev" },
    { "isa-l", "checksums of records are slower", "libisal-dev" },
    { "libzip", ".npz files cannot be read", "libzip-dev" },
    { "libjpeg-turbo", "JPEG pictures cannot be read", "libturbojpeg0-dev" },
    { "libspng", "PNG pictures cannot be read", "libspng-dev" },
};

static void say_missing(doctor *d, const char *name)
{
    char hint[128] = "";
    const char *lost = "not there";
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++)
        if (strcmp(uses[i].name, name) == 0) {
            lost = uses[i].lost;
            snprintf(hint, sizeof hint, "install %s and build anew", uses[i].package);
        }
    doctor_say(d, DOCTOR_WARN, name, hint, "built without it: %s", lost);
}

static void check_libraries(doctor *d)
{
    const char *name, *version;
    for (int i = 0; (name = ls_build_library(i, &version)); i++)
        if (version)
            doctor_say(d, DOCTOR_OK, name, "", "%s", version);
        else
            say_missing(d, name);
}

/* ---- beside it -------------------------------------------------------------------------------- */

static bool any_file(const char *pattern)
{
    glob_t found;
    bool any = glob(pattern, 0, NULL, &found) == 0;
    if (any)
        globfree(&found);
    return any;
}

static void check_gpus(doctor *d)
{
    char path[4096];
    bool nvidia = any_file("/dev/nvidia[0-9]*") || any_file("/dev/nvidiactl") ||
                  doctor_find_program("nvidia-smi", path, sizeof path);
    bool amd = any_file("/dev/kfd");
    if (nvidia || amd)
        doctor_say(d, DOCTOR_WARN, "GPUs", "training runs on the CPU's cores",
                   "%s is here, but this build computes on CPUs only",
                   nvidia ? "NVIDIA's" : "AMD's");
    else
        doctor_say(d, DOCTOR_OK, "GPUs", "", "none; this build computes on CPUs");
}

static void check_mpi(doctor *d)
{
    char path[4096];
    if (doctor_find_program("mpirun", path, sizeof path))
        doctor_say(d, DOCTOR_OK, "MPI", "", "%s; this build does without it", path);
    else
        doctor_say(d, DOCTOR_OK, "MPI", "", "no mpirun on PATH; this build does without it");
}

/* CC may be a compiler and its options. */
static void check_compiler(doctor *d)
{
    static const char *const names[] = { "cc", "gcc", "clang" };
    char path[4096], program[256];
    const char *set = getenv("CC");
    set = set ? set + strspn(set, " \t") : "";
    if (set[0]) {
        snprintf(program, sizeof program, "%.*s", (int)strcspn(set, " \t"), set);
        if (doctor_find_program(program, path, sizeof path))
            doctor_say(d, DOCTOR_OK, "C compiler", "", "%s, which CC names", path);
        else
            doctor_say(d, DOCTOR_WARN, "C compiler", "unset CC, or set it to one that is there",
                       "CC names '%s', which is not there: models in FILE.c cannot be compiled",
                       program);
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (doctor_find_program(names[i], path, sizeof path)) {
            doctor_say(d, DOCTOR_OK, "C compiler", "", "%s, for models in files of your own", path);
            return;
        }
    doctor_say(d, DOCTOR_WARN, "C compiler", "install gcc, or give FILE.so instead of FILE.c",
               "none on PATH: models in FILE.c cannot be compiled");
}

static doctor_check *const checks[] = { check_versions,  check_profile, check_maths,
                                        check_libraries, check_gpus,    check_mpi,
                                        check_compiler };

const doctor_group doctor_software = { "Software", sizeof checks / sizeof checks[0], checks };
