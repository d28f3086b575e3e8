/* The library's version, given by the build. */
#include <lockstep.h>

const char *ls_version(void)
{
    return LS_VERSION;
}
