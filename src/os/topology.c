/*
 * Which cores to pin to. Invariant: the list is read once and never changes, so
 * a device sits on the same core for the life of the process.
 */
#include "os/topology.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef LS_HAVE_HWLOC
#include <hwloc.h>
#endif

#define MOST_CORES 1024

static int cores[MOST_CORES];
static int count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

int ls__quota_cpus(const char *cpu_max)
{
    char *end;
    long long quota = strtoll(cpu_max, &end, 10);
    if (end == cpu_max || quota <= 0)
        return 0; /* "max", or nothing readable */
    long long period = strtoll(end, NULL, 10);
    if (period <= 0)
        return 0;
    long long cpus = quota / period + (quota % period != 0);
    return cpus < MOST_CORES ? (int)cpus : MOST_CORES;
}

/* This process's own cgroup (version 2), from /proc/self/cgroup, else the root
 * as a container sees it. */
static int read_quota(void)
{
    char group[512] = "", line[600], path[700];
    FILE *f = fopen("/proc/self/cgroup", "re");
    if (f) {
        while (fgets(line, sizeof line, f))
            if (strncmp(line, "0::", 3) == 0)
                snprintf(group, sizeof group, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
        fclose(f);
    }
    int quota = 0;
    for (int turn = 0; turn < 2 && quota == 0; turn++) {
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", turn == 0 ? group : "");
        f = fopen(path, "re");
        if (!f)
            continue;
        if (fgets(line, sizeof line, f))
            quota = ls__quota_cpus(line);
        fclose(f);
    }
    return quota;
}

#ifdef LS_HAVE_HWLOC
/* One hardware thread of every physical core first, then the second ones. */
static void list_cores(void)
{
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0)
        return;
    if (hwloc_topology_load(topology) == 0) {
        cpu_set_t allowed;
        CPU_ZERO(&allowed);
        sched_getaffinity(0, sizeof allowed, &allowed);
        int n = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
        for (unsigned sibling = 0, found = 1; found; sibling++) {
            found = 0;
            for (int i = 0; i < n; i++) {
                hwloc_obj_t core = hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, (unsigned)i);
                int seen = -1;
                unsigned pu;
                hwloc_bitmap_foreach_begin(pu, core->cpuset)
                {
                    if ((unsigned)++seen != sibling)
                        continue;
                    found = 1;
                    if (pu < CPU_SETSIZE && CPU_ISSET(pu, &allowed) && count < MOST_CORES)
                        cores[count++] = (int)pu;
                }
                hwloc_bitmap_foreach_end();
            }
        }
    }
    hwloc_topology_destroy(topology);
}
#else
static void list_cores(void)
{
}
#endif

static void find_cores(void)
{
    list_cores();
    if (count == 0) { /* no hwloc, or it knows nothing: the affinity mask's order */
        cpu_set_t allowed;
        CPU_ZERO(&allowed);
        sched_getaffinity(0, sizeof allowed, &allowed);
        for (int i = 0; i < CPU_SETSIZE && count < MOST_CORES; i++)
            if (CPU_ISSET((size_t)i, &allowed))
                cores[count++] = i;
    }
    if (count == 0)
        cores[count++] = 0;
    int quota = read_quota();
    if (quota > 0 && quota < count)
        count = quota;
}

int ls__cores(void)
{
    pthread_once(&once, find_cores);
    return count;
}

int ls__core_number(int i)
{
    int n = ls__cores();
    return cores[i % n];
}
