/*
 * Directories. All errors name the path.
 */
#ifndef LS__OS_DIRECTORY_H
#define LS__OS_DIRECTORY_H

#include "base/status.h"

/* Makes the directory and those it is in, where they are missing. */
ls_status ls__make_directory(const char *who, const char *path);

#endif
