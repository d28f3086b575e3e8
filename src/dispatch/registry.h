/* Where the built-in rows come from; see registry.c. */
#ifndef LS__DISPATCH_REGISTRY_H
#define LS__DISPATCH_REGISTRY_H

#include <lockstep/operator.h>

/* src/ops hands its table over when the library is loaded. */
void ls__registry_builtin(const ls_op *const *const *families);

/* Whether a row is one of those, not a user's. */
bool ls__row_is_builtin(const ls_op *op);

/* LS_OK when a row can be called. */
ls_status ls__row_complete(const ls_op *op);

#endif
