/*
 * UTF-8: which bytes of a text are.
 */
#ifndef LS__BASE_UTF8_H
#define LS__BASE_UTF8_H

#include <stddef.h>

/* The length of the character that `text` begins with, 1 to 4; 0 where none does: at the end, at bytes
 * that are no UTF-8 (overlong forms, surrogates and numbers above 10ffff are none). */
size_t ls__utf8_next(const char *text);

/* How many bytes from the beginning are: strlen(text) when all are. */
size_t ls__utf8_good(const char *text);

#endif
