/*
 * A user's word for compression as files know it.
 */
#ifndef LS__DATA_COMPRESSION_H
#define LS__DATA_COMPRESSION_H

#include <lockstep/data.h>

#include "os/packed.h"

/* LS_INVALID when it is none, LS_UNSUPPORTED when this build has none. */
ls_status ls__compression_of(const char *who, ls_compression compression, ls__compression *out);

#endif
