/*
 * How many threads kernels of the calling thread use.
 */
#include <lockstep/device.h>

#include "base/status.h"
#include "kernels/threads.h"

ls_status ls_device_threads(int threads)
{
    if (threads < 1 || threads > 1024)
        return ls__hint(ls__fail(LS_INVALID, "ls_device_threads: %d threads", threads),
                        "1 to 1024; 1 is the default");
    ls__kernel_threads(threads);
    return LS_OK;
}
