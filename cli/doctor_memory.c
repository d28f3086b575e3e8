/*
 * Memory: how much there is, large pages, and what processes share.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "doctor.h"

enum { MIB = 1 << 20 };

/* A line of /proc/meminfo, in bytes; 0: there is none. */
static uint64_t memory_info(const char *name)
{
    char line[256];
    uint64_t bytes = 0;
    size_t length = strlen(name);
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && bytes == 0 && fgets(line, sizeof line, f))
        if (strncmp(line, name, length) == 0 && line[length] == ':')
            bytes = strtoull(line + length + 1, NULL, 10) * 1024;
    if (f)
        fclose(f);
    return bytes;
}

/* What the cgroup still allows; false: it sets no limit. */
static bool memory_left_by_cgroup(uint64_t *left)
{
    char most[64], used[64];
    if (!doctor_first_line("/sys/fs/cgroup/memory.max", most, sizeof most) ||
        !doctor_first_line("/sys/fs/cgroup/memory.current", used, sizeof used) || most[0] < '0' ||
        most[0] > '9')
        return false;
    uint64_t limit = strtoull(most, NULL, 10), taken = strtoull(used, NULL, 10);
    *left = taken < limit ? limit - taken : 0;
    return true;
}

static void check_memory(doctor *d)
{
    uint64_t total = memory_info("MemTotal"), free_now = memory_info("MemAvailable"), left;
    bool limited = memory_left_by_cgroup(&left) && left < free_now;
    if (limited)
        free_now = left;
    char a[32], b[32], text[128];
    snprintf(text, sizeof text, "%s free of %s%s", doctor_bytes(free_now, a),
             doctor_bytes(total, b), limited ? ", by the cgroup's limit" : "");
    if (total == 0)
        doctor_say(d, DOCTOR_WARN, "memory", "", "not known: /proc/meminfo cannot be read");
    else if (free_now < 128ull * MIB)
        doctor_say(d, DOCTOR_FAIL, "memory", "end other programs, or give the container more", "%s",
                   text);
    else if (free_now < 1024ull * MIB)
        doctor_say(d, DOCTOR_WARN, "memory", "small models only: resnet and gpt want 1 GiB", "%s",
                   text);
    else
        doctor_say(d, DOCTOR_OK, "memory", "", "%s", text);
}

static void check_large_pages(doctor *d)
{
    char line[128];
    if (!doctor_first_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line))
        doctor_say(d, DOCTOR_WARN, "large pages", "", "not known: this kernel may have none");
    else if (strstr(line, "[never]"))
        doctor_say(d, DOCTOR_WARN, "large pages",
                   "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
                   "turned off: large tensors are slower");
    else
        doctor_say(d, DOCTOR_OK, "large pages", "", "%s",
                   strstr(line, "[always]") ? "always" : "when asked for, which we do");
}

/* Replicas of one process share its memory, and workers will share memory that has no name, so the size of
 * /dev/shm matters to nobody. */
static void check_shared_memory(doctor *d)
{
    struct statvfs fs;
    char a[32], b[32], text[128] = "there is no /dev/shm";
    uint64_t room = 0;
    if (statvfs("/dev/shm", &fs) == 0) {
        room = (uint64_t)fs.f_bavail * fs.f_frsize;
        snprintf(text, sizeof text, "%s free of %s at /dev/shm", doctor_bytes(room, a),
                 doctor_bytes((uint64_t)fs.f_blocks * fs.f_frsize, b));
    }
    int fd = memfd_create("lockstep-doctor", MFD_CLOEXEC);
    if (fd < 0) {
        doctor_say(d, DOCTOR_WARN, "shared memory", "workers on one host will talk by sockets",
                   "%s; memory without a name (memfd) cannot be had: %s", text, strerror(errno));
        return;
    }
    close(fd);
    doctor_say(d, DOCTOR_OK, "shared memory", "", "%s%s", text,
               room < 1024ull * MIB
                   ? ", little, as in containers: memfd, which works, is used instead"
                   : "; memfd works");
}

static doctor_check *const checks[] = { check_memory, check_large_pages, check_shared_memory };

const doctor_group doctor_memory = { "Memory", sizeof checks / sizeof checks[0], checks };
