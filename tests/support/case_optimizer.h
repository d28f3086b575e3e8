/* The optimizer that a golden case names; see case_optimizer.c. */
#ifndef LS__TESTS_CASE_OPTIMIZER_H
#define LS__TESTS_CASE_OPTIMIZER_H

#include <lockstep/optimizer.h>

#include "support/case.h"

/* What a setting says; 0, the library's default, for what the case does not name. */
double case_setting(const test_case *c, const char *name);

/* NULL when the case names none, or the library refused. */
ls_optimizer *case_optimizer(const test_case *c);

#endif
