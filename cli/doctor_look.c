/* How doctor looks at files, PATH and numbers. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"

bool doctor_first_line(const char *path, char *out, size_t room)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool read = fgets(out, (int)room, f) != NULL;
    fclose(f);
    if (read)
        out[strcspn(out, "\n")] = 0;
    return read;
}

bool doctor_find_program(const char *name, char *out, size_t room)
{
    const char *path = getenv("PATH");
    if (strchr(name, '/')) {
        snprintf(out, room, "%s", name);
        return access(out, X_OK) == 0;
    }
    for (path = path ? path : ""; *path;) {
        int length = (int)strcspn(path, ":");
        snprintf(out, room, "%.*s/%s", length, length ? path : ".", name);
        if (access(out, X_OK) == 0)
            return true;
        path += length + (path[length] == ':');
    }
    return false;
}

const char *doctor_bytes(uint64_t bytes, char out[32])
{
    static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB" };
    int unit = 0;
    double value = (double)bytes;
    for (; unit < 5 && value >= 1024; unit++)
        value /= 1024;
    snprintf(out, 32, "%.*f %s", unit > 0 && value < 10 ? 1 : 0, value, units[unit]);
    return out;
}

double doctor_quota(const char *cpu_max)
{
    char *end;
    double quota = strtod(cpu_max, &end); /* "max" is no number */
    if (end == cpu_max || !(quota > 0))
        return 0;
    const char *rest = end;
    double period = strtod(rest, &end);
    return end == rest || !(period > 0) ? 0 : quota / period;
}
