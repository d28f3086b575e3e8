/* Logging from inside the library; see ls_log_set in <lockstep/status.h>. */
#ifndef LS__BASE_LOG_H
#define LS__BASE_LOG_H

#include <lockstep/status.h>

void ls__log(ls_log_level level, const char *format, ...) LS_PRINTF(2, 3);

#endif
