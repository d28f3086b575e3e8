/*
 * Names of functions, as the dynamic linker knows them. Without -rdynamic it knows those of
 * shared libraries only; file and offset are what addr2line wants for the others.
 */
#include "os/symbol.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

const char *ls__symbol_name(const void *function, char *out, size_t size)
{
    Dl_info info;
    if (!dladdr(function, &info) || !info.dli_fname) {
        snprintf(out, size, "%p", function);
        return out;
    }
    /* The linker gives the nearest name below, which may be another function's. */
    if (info.dli_sname && info.dli_saddr == function) {
        snprintf(out, size, "%s", info.dli_sname);
        return out;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    snprintf(out, size, "%s+%#zx", slash ? slash + 1 : info.dli_fname,
             (size_t)((uintptr_t)function - (uintptr_t)info.dli_fbase));
    return out;
}
