/*
 * Who and when we are: what names of files and records are made of.
 */
#ifndef LS__OS_PROCESS_H
#define LS__OS_PROCESS_H

#include <stddef.h>

/* Seconds since 1970, as the clock on the wall says; it may be set back. */
double ls__wall_seconds(void);

/* Seconds since some moment; they only go forward. */
double ls__steady_seconds(void);

/* Always a name: "host" when the system tells none. */
void ls__host_name(char *out, size_t room);

long ls__process_number(void);

#endif
