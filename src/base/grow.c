/* See grow.h. */
#include "base/grow.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/status.h"

enum { LEAST = 16 };

void *ls__grow(void *at, int count, int *room, size_t each, const char *what)
{
    if (count < *room)
        return at;
    const int most = *room > INT_MAX / 2 ? INT_MAX : *room ? 2 * *room : LEAST;
    size_t bytes;
    const bool too_many = most <= count || __builtin_mul_overflow((size_t)most, each, &bytes);
    void *more = too_many ? NULL : realloc(at, bytes);
    if (!more) {
        ls__fail_memory(what, too_many ? SIZE_MAX : bytes);
        return NULL;
    }
    *room = most;
    return more;
}
