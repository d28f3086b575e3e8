/*
 * `bench train --explain`: time per operator, and how near each comes to what this machine can do.
 */
#ifndef LOCKSTEP_CLI_EXPLAIN_H
#define LOCKSTEP_CLI_EXPLAIN_H

#include <lockstep/function.h>
#include <lockstep/strategy.h>

#include "cli.h"

/* What one device can do while all of them work; measured. */
typedef struct explain_limits {
    double flops; /* a second: a product of large matrices */
    double bytes; /* a second: adding up arrays that no cache holds */
} explain_limits;

/* 0 where it could not be measured (an error is pending). */
explain_limits explain_measure(ls_strategy *s, int devices);

/* The operators of the step, in order of their time; `seconds`: of all devices together, in which
 * `steps` steps were run. */
ls_status explain_print(const cli *c, ls_function *step, const explain_limits *limits,
                        double seconds, int64_t steps);

#endif
