/*
 * Large pages by advice: without them the memory is as good, and slower.
 */
#include "os/pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

void *ls__pages_new(size_t bytes)
{
    if (bytes < LS__LARGE_PAGE)
        return malloc(bytes);
    if (bytes > SIZE_MAX / 2)
        return NULL;
    const size_t whole = (bytes + LS__LARGE_PAGE - 1) / LS__LARGE_PAGE * LS__LARGE_PAGE;
    void *at = aligned_alloc(LS__LARGE_PAGE, whole);
    if (at) /* what fills its last large page by a little does not take all of it */
        madvise(at, bytes / LS__LARGE_PAGE * LS__LARGE_PAGE, MADV_HUGEPAGE);
    return at;
}
