/*
 * Files that others read while they grow: what is put is there as a whole or not at all. (Files that
 * are there as a whole or not at all: os/writer.h.)
 */
#ifndef LS__OS_APPENDER_H
#define LS__OS_APPENDER_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls__appender ls__appender;

/* Makes a new file. NULL and LS_OK when there is one of this name. */
ls_status ls__appender_open(const char *path, ls__appender **out);

/* When it fails the file is as before, and the next one may succeed: a disk can get room again. */
ls_status ls__appender_put(ls__appender *a, const void *data, size_t bytes);

/* What was put is on the disk after it. */
ls_status ls__appender_sync(ls__appender *a);

/* Both free it and take NULL. Neither syncs; discard removes the file. */
void ls__appender_close(ls__appender *a);
void ls__appender_discard(ls__appender *a);

#endif
