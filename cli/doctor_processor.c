/*
 * Cores, their quota, vector instructions and AMX.
 *
 * AMX is there only if the processor shows it, the system saves its tiles, and the processor tells their
 * shapes: some hypervisors show the first and hide the last (CPUID leaf 0x1D is empty), and then a bf16
 * kernel that believes the first dies with an illegal instruction.
 */
#include <lockstep.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "doctor.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* ---- what it is ----------------------------------------------------------------------------- */

static void check_model(doctor *d)
{
    char line[512], model[128] = "of an unknown make";
    struct utsname system = { 0 };
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
            const char *name = strchr(line, ':') + 1;
            name += strspn(name, " ");
            snprintf(model, sizeof model, "%.*s", (int)strcspn(name, "\n"), name);
            break;
        }
    if (f)
        fclose(f);
    uname(&system);
    doctor_say(d, DOCTOR_OK, "model", "", "%s; %s %s, %s", model, system.sysname, system.release,
               system.machine);
}

/* ---- cores -------------------------------------------------------------------------------- */

/* Of this process's own cgroup (version 2), else of the root as a container sees it, else of
 * version 1. 0: none. */
static double find_quota(void)
{
    char line[512], path[700], group[512] = "";
    FILE *f = fopen("/proc/self/cgroup", "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "0::", 3) == 0)
            snprintf(group, sizeof group, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
    if (f)
        fclose(f);
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
    if (doctor_first_line(path, line, sizeof line) ||
        doctor_first_line("/sys/fs/cgroup/cpu.max", line, sizeof line))
        return doctor_quota(line);
    char period[64];
    if (!doctor_first_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", line, sizeof line) ||
        !doctor_first_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", period, sizeof period))
        return 0;
    snprintf(path, sizeof path, "%.64s %s", line, period);
    return doctor_quota(path);
}

static void check_cores(doctor *d)
{
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    int mask = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 0;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    double quota = find_quota();
    int cores = ls_cpu_cores();
    char text[128];
    int used = snprintf(text, sizeof text, "%d usable", cores);
    if (mask > 0 && mask < online)
        used += snprintf(text + used, sizeof text - (size_t)used, ", affinity allows %d of %ld",
                         mask, online);
    if (quota > 0)
        snprintf(text + used, sizeof text - (size_t)used, ", the cgroup's quota is %.4g", quota);
    if (quota > 0 && quota < cores)
        doctor_say(d, DOCTOR_WARN, "cores", "give the container whole cores (cpu.max, --cpus)",
                   "%s: all threads pause when it is used up", text);
    else if (cores == 1)
        doctor_say(d, DOCTOR_WARN, "cores", "replicas take turns; results are the same", "%s",
                   text);
    else
        doctor_say(d, DOCTOR_OK, "cores", "", "%s", text);
}

static void check_load(doctor *d)
{
    double load = 0;
    if (getloadavg(&load, 1) != 1)
        doctor_say(d, DOCTOR_OK, "load", "", "not known");
    else if (load > ls_cpu_cores() + 0.5)
        doctor_say(d, DOCTOR_WARN, "load",
                   "results are the same; times are worth little until it is idle",
                   "%.1f threads wanted a core in the last minute, and there are %d", load,
                   ls_cpu_cores());
    else
        doctor_say(d, DOCTOR_OK, "load", "", "%.1f in the last minute", load);
}

/* ---- vector instructions --------------------------------------------------------------------- */

enum { BASE, AVX2, AVX512 };
static const char *const levels[] = { "base", "avx2", "avx512" };

static int best_level(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                __builtin_cpu_supports("bmi2");
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return avx2 ? avx512 ? AVX512 : AVX2 : BASE;
#else
    return BASE;
#endif
}

static int level_named(const char *name)
{
    for (int i = BASE; i <= AVX512; i++)
        if (strcmp(levels[i], name) == 0)
            return i;
    return -1;
}

static void check_simd(doctor *d)
{
    static const char *const texts[] = { "no AVX2", "AVX2", "AVX-512" };
    int best = best_level();
    const char *cap = getenv("LOCKSTEP_ISA");
    if (cap && cap[0] && level_named(cap) < 0)
        doctor_say(d, DOCTOR_WARN, "SIMD", "unset it, or take one of these",
                   "LOCKSTEP_ISA=%.64s is none of base, avx2 and avx512, so it counts for nothing",
                   cap);
    else if (cap && cap[0] && level_named(cap) < best)
        doctor_say(d, DOCTOR_WARN, "SIMD", "unset LOCKSTEP_ISA, unless you compare",
                   "%s, but LOCKSTEP_ISA=%s keeps it from being used", texts[best], cap);
    else if (best == BASE)
        doctor_say(d, DOCTOR_WARN, "SIMD", "", "no AVX2: results are the same, but slow");
    else
        doctor_say(d, DOCTOR_OK, "SIMD", "", "%s", texts[best]);
}

#if defined(__x86_64__)
/* The state components that the system saves; 17 and 18 are AMX's. */
static bool system_saves_tiles(void)
{
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) /* OSXSAVE: xgetbv may be used */
        return false;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low >> 17 & 3) == 3;
}
#endif

static void check_amx(doctor *d)
{
    const char *off = "off: bf16 is kept in memory, and maths runs in f32";
#if defined(__x86_64__)
    unsigned a, b, c, edx, palette = 0;
    bool shown = __get_cpuid_count(7, 0, &a, &b, &c, &edx) && edx >> 24 & 1;
    if (shown && (!__get_cpuid_count(0x1d, 0, &palette, &b, &c, &edx) || palette == 0)) {
        doctor_say(d, DOCTOR_WARN, "bf16, AMX",
                   "nothing, if you train in f32; else use a host that passes AMX through",
                   "%s; this host shows AMX but hides the shapes of its tiles (CPUID leaf 0x1D is "
                   "empty), as some hypervisors do, so it cannot be used",
                   off);
        return;
    }
    if (shown && system_saves_tiles()) {
        doctor_say(d, DOCTOR_OK, "bf16, AMX", "", "AMX is usable, but this build's bf16 is %s",
                   off);
        return;
    }
#endif
    doctor_say(d, DOCTOR_OK, "bf16, AMX", "", "%s, which is faster without AMX", off);
}

static doctor_check *const checks[] = { check_model, check_cores, check_load, check_simd,
                                        check_amx };

const doctor_group doctor_processor = { "Processor", sizeof checks / sizeof checks[0], checks };
