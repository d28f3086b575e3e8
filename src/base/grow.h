/*
 * Arrays that grow: room for one more.
 *
 *     thing *more = ls__grow(l->at, l->count, &l->room, sizeof *more, "things");
 *     if (!more)
 *         return ls_error_pending();
 *     l->at = more;
 *     l->at[l->count++] = one;
 */
#ifndef LS__BASE_GROW_H
#define LS__BASE_GROW_H

#include <stddef.h>

/* `at`, or where it is now, with room for more than `count`; NULL: LS_NO_MEMORY for `what`, and all is as
 * before. */
void *ls__grow(void *at, int count, int *room, size_t each, const char *what);

#endif
