/*
 * Memory for much that is gone through in no order: on large pages, where the system has them, so that
 * finding an address costs no more than it must.
 */
#ifndef LS__OS_PAGES_H
#define LS__OS_PAGES_H

#include <stddef.h>

enum { LS__LARGE_PAGE = 2 << 20 };

/* So many bytes, uninitialised, for free(); from LS__LARGE_PAGE on aligned to it. NULL: no memory. */
void *ls__pages_new(size_t bytes);

#endif
