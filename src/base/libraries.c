/* Which libraries the build found, given by it: src/meson.build writes the versions down. */
#include <lockstep.h>

#include "build_libraries.h"

static const struct {
    const char *name, *version;
} libraries[] = {
    { "oneDNN", LS__VERSION_DNNL },   { "hwloc", LS__VERSION_HWLOC },
    { "zlib", LS__VERSION_ZLIB },     { "isa-l", LS__VERSION_ISAL },
    { "libzip", LS__VERSION_LIBZIP }, { "libjpeg-turbo", LS__VERSION_TURBOJPEG },
    { "libspng", LS__VERSION_SPNG },  { "jansson", LS__VERSION_JANSSON },
};

const char *ls_build_library(int i, const char **version)
{
    const int count = sizeof libraries / sizeof libraries[0];
    if (i < 0 || i >= count)
        return NULL;
    if (version)
        *version = libraries[i].version;
    return libraries[i].name;
}
