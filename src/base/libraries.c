/* Which libraries the build found, given by it: LS_HAVE_... is a version, or not there. */
#include <lockstep.h>

#include <jansson.h>
#include <stddef.h>

static const struct {
    const char *name, *version;
} libraries[] = {
#ifdef LS_HAVE_DNNL
    { "oneDNN", LS_HAVE_DNNL },
#else
    { "oneDNN", NULL },
#endif
#ifdef LS_HAVE_HWLOC
    { "hwloc", LS_HAVE_HWLOC },
#else
    { "hwloc", NULL },
#endif
#ifdef LS_HAVE_ZLIB
    { "zlib", LS_HAVE_ZLIB },
#else
    { "zlib", NULL },
#endif
#ifdef LS_HAVE_ISAL
    { "isa-l", LS_HAVE_ISAL },
#else
    { "isa-l", NULL },
#endif
#ifdef LS_HAVE_LIBZIP
    { "libzip", LS_HAVE_LIBZIP },
#else
    { "libzip", NULL },
#endif
#ifdef LS_HAVE_TURBOJPEG
    { "libjpeg-turbo", LS_HAVE_TURBOJPEG },
#else
    { "libjpeg-turbo", NULL },
#endif
#ifdef LS_HAVE_SPNG
    { "libspng", LS_HAVE_SPNG },
#else
    { "libspng", NULL },
#endif
    { "jansson", JANSSON_VERSION },
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
