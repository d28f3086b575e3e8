/*
 * The cores this process may use: the scheduler's affinity mask, cut down by a
 * cgroup CPU quota, ordered so that neighbours in the list are far apart (one
 * per physical core before second hardware threads, where hwloc knows).
 */
#ifndef LS__OS_TOPOLOGY_H
#define LS__OS_TOPOLOGY_H

/* How many cores there are to use: at least 1. Read once. */
int ls__cores(void);

/* The operating system's number of core i of those (i modulo their number). */
int ls__core_number(int i);

/* CPUs' worth of quota of a cgroup "cpu.max" text ("200000 100000" -> 2, "max
 * 100000" -> 0: no limit); rounds up. Pure, for tests. */
int ls__quota_cpus(const char *cpu_max);

#endif
