/*
 * Clocks and names, as the system tells them.
 */
#include "os/process.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double ls__wall_seconds(void)
{
    return seconds(CLOCK_REALTIME);
}

double ls__steady_seconds(void)
{
    return seconds(CLOCK_MONOTONIC);
}

void ls__host_name(char *out, size_t room)
{
    if (gethostname(out, room) != 0)
        out[0] = '\0';
    out[room - 1] = '\0'; /* a longer one may come without */
    if (!out[0])
        strncpy(out, "host", room - 1);
}

long ls__process_number(void)
{
    return (long)getpid();
}
