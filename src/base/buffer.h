/*
 * Bytes that grow as they are added to: text for people, messages for files.
 *
 *     ls__buffer b = { 0 };
 *     ls__buffer_print(&b, "%d", x);
 *     char *text = ls__buffer_end(&b, "a text", NULL);      // free() it
 */
#ifndef LS__BASE_BUFFER_H
#define LS__BASE_BUFFER_H

#include <lockstep/export.h>
#include <stdbool.h>
#include <stddef.h>

/* Out of memory is noticed once, at the end. */
typedef struct ls__buffer {
    char *at;
    size_t used, room;
    bool failed;
} ls__buffer;

void ls__buffer_add(ls__buffer *b, const void *bytes, size_t count);
void ls__buffer_print(ls__buffer *b, const char *format, ...) LS_PRINTF(2, 3);

/* Puts bytes between those that are there: before byte `at`. */
void ls__buffer_insert(ls__buffer *b, size_t at, const void *bytes, size_t count);

/* The contents and a NUL, which is not counted; NULL when memory ran out on the way, with an error
 * that says it was for `what`. The buffer is empty afterwards. */
char *ls__buffer_end(ls__buffer *b, const char *what, size_t *size);

/* Frees what is in it; it is empty afterwards. */
void ls__buffer_free(ls__buffer *b);

#endif
