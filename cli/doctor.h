/*
 * `lockstep doctor`: what its checks say, and the lists of them.
 */
#ifndef LOCKSTEP_CLI_DOCTOR_H
#define LOCKSTEP_CLI_DOCTOR_H

#include "cli.h"
#include "terminal.h"

extern const command cli_doctor;

/* WARN: it works, but less well or not all of it. FAIL: it does not work before something is done. */
typedef enum doctor_state { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL } doctor_state;

typedef struct doctor {
    const cli *cli;
    terminal screen;
    const char *group; /* of the checks that speak now */
    int said[3];       /* of each state */
} doctor;

/* One line: what was looked at (14 letters at most), what was found, what to do ("": nothing). */
__attribute__((format(printf, 5, 6))) void doctor_say(doctor *d, doctor_state state,
                                                      const char *what, const char *to_do,
                                                      const char *format, ...);

typedef void doctor_check(doctor *d);

/* Begins a group and makes its checks. */
typedef struct doctor_group {
    const char *name;
    int count;
    doctor_check *const *checks;
} doctor_group;

extern const doctor_group doctor_processor, doctor_memory, doctor_system, doctor_software,
    doctor_data;

/* ---- what checks share ------------------------------------------------------------------- */

/* The first line of a file, without its end; false: it cannot be read. */
bool doctor_first_line(const char *path, char *out, size_t room);

/* Where a program is on PATH; a name with a slash says it itself. */
bool doctor_find_program(const char *name, char *out, size_t room);

/* "1.5 GiB", in a buffer of the caller. */
const char *doctor_bytes(uint64_t bytes, char out[32]);

/* CPUs that a cgroup's cpu.max allows: "150000 100000" is 1.5; 0: as many as there are. */
double doctor_quota(const char *cpu_max);

#endif
