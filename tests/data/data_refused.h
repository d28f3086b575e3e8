/*
 * Tables of calls that must be refused, for tests of headers: each line is one call. A wrong one is
 * printed, the others are tried all the same, and none_was_wrong ends the test.
 */
#ifndef LS__TESTS_DATA_REFUSED_H
#define LS__TESTS_DATA_REFUSED_H

#include "data/data_support.h"

/* Beside a status: what is told is more than the header does. */
enum { ANY_ERROR = 1000, SHAPE_OR_INVALID, NOT_FOUND_OR_UNSUPPORTED, CORRUPT_OR_UNSUPPORTED };

/* The call gives NULL, the error is this one and has `name` in it. */
#define NAMES(name, status, call) names_it(__LINE__, #call, call, (int)(status), name)
void names_it(int line, const char *call, const void *got, int want, const char *name);

/* The same for a call that gives a status. */
#define SAYS(name, status, call) says_it(__LINE__, #call, call, (int)(status), name)
void says_it(int line, const char *call, ls_status got, int want, const char *name);

/* The dataset's first element is this (NULL: it has none); or it is refused with its name, or
 * for want of memory, here or when it is gone through. name "": it must not be refused. */
#define IS_FINE(name, call, first) fine(__LINE__, #call, call, name, first)
void fine(int line, const char *call, ls_dataset *d, const char *name, const char *first);

void none_was_wrong(void);

#endif
