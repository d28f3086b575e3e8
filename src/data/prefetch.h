/* ls_prefetch for stages that put one in front of others. */
#ifndef LS__DATA_PREFETCH_H
#define LS__DATA_PREFETCH_H

#include "data/dataset.h"

/* Its thread is started when pulls take longer than `patience` nanoseconds; 0: with the second. */
ls_dataset *ls__prefetch_patiently(ls_dataset *d, int64_t n, int64_t patience);

#endif
