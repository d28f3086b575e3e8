/*
 * Directories: making them, what is in them, and removing files. All errors name the path.
 */
#ifndef LS__OS_DIRECTORY_H
#define LS__OS_DIRECTORY_H

#include "os/glob.h"

typedef enum ls__path_kind {
    LS__NOTHING_THERE, /* also: where nobody may look */
    LS__A_FILE,
    LS__A_DIRECTORY,
    LS__SOMETHING_ELSE /* a pipe or device: opening it may wait for ever */
} ls__path_kind;
ls__path_kind ls__path_kind_of(const char *path);

/* Makes the directory and those it is in, where they are missing; it outlives a power failure. */
ls_status ls__make_directory(const char *who, const char *path);

/* The same for the directory that a file of this path is in. */
ls_status ls__make_directory_of(const char *who, const char *path);

/* Appends the names (without the path) of all that is in it but hidden ones, in the order of their
 * bytes. LS_NOT_FOUND, LS_IO. */
ls_status ls__list_directory(const char *who, const char *path, ls__names *names);

/* So that the name of a new file outlives a power failure, where the file system can. */
void ls__sync_directory_of(const char *path);

/* LS_OK also when there is none. */
ls_status ls__remove_file(const char *who, const char *path);

#endif
