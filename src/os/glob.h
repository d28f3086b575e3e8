/*
 * Names of files by pattern.
 */
#ifndef LS__OS_GLOB_H
#define LS__OS_GLOB_H

#include <stddef.h>

#include "base/status.h"

/* Starts as zeros. */
typedef struct ls__names {
    char **at;
    size_t count, room;
} ls__names;

void ls__names_free(ls__names *names);

/* One more, copied. `who` begins the text of LS_NO_MEMORY. */
ls_status ls__names_append(ls__names *names, const char *who, const char *name);

/* Appends the files (no directories) that `pattern` names, *, ? and [...] standing for what they do
 * in a shell, in the order of their bytes: the same in every locale. A file of just this name is that
 * one. LS_NOT_FOUND: there is none. LS_IO: a directory on the way cannot be read. */
ls_status ls__names_add(ls__names *names, const char *who, const char *pattern);

#endif
