/*
 * Directories.
 */
#ifndef LS__OS_DIRECTORY_H
#define LS__OS_DIRECTORY_H

#include "base/status.h"

/* Makes it, and those above it that are not there either; LS_OK when it is there already. LS_IO names
 * the one that cannot be made. */
ls_status ls__make_directory(const char *path);

/* So that the name of a new file outlives a power failure, where the file system can. */
void ls__sync_directory_of(const char *path);

#endif
