/*
 * The clock that only goes forward.
 */
#ifndef LS__OS_CLOCK_H
#define LS__OS_CLOCK_H

#include <stdint.h>

/* Nanoseconds since some moment before the program began; some 20 ns a look. */
int64_t ls__now(void);

#endif
