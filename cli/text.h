/*
 * Text that grows, and how many columns of a terminal it takes. Bytes are UTF-8; colour codes (ESC [
 * ... m) take no column.
 */
#ifndef LOCKSTEP_CLI_TEXT_H
#define LOCKSTEP_CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* { 0 } is an empty one. Without memory it stays as it was and `failed` is set. */
typedef struct textbuf {
    char *bytes; /* NUL-terminated; NULL while nothing was added */
    size_t length, room;
    bool failed;
} textbuf;

void text_add(textbuf *t, const char *bytes);
__attribute__((format(printf, 2, 3))) void text_format(textbuf *t, const char *format, ...);
void text_repeat(textbuf *t, const char *bytes, int times); /* none when times < 0 */
void text_shorten(textbuf *t, size_t length); /* back to what it was; keeps the memory */
const char *text_read(const textbuf *t);      /* never NULL */
void text_free(textbuf *t);

/* A name that somebody gave, at most so many columns of it: control characters, what is not UTF-8,
 * and all beyond ASCII unless `utf8`, become '?'. */
void text_name(textbuf *t, const char *name, bool utf8, int columns);

int text_columns(const char *bytes);

/* The character at *at, which moves behind it: its code, or -1 when the byte there is no UTF-8. */
int32_t text_next(const char **at);

/* ---- numbers, for people: always with a dot, in few columns ------------------------------- */

typedef char text_number[32];

const char *text_value(text_number out, double value); /* "0.3121", "12.345", "1.20e-05", "nan" */
const char *text_rate(text_number out, double value);  /* "987", "41.2k", "1.24M" */
const char *text_duration(text_number out, double seconds); /* "0:07", "1:02:03", "3d 04h" */
const char *text_elapsed(text_number out, double seconds);  /* "3.2s", "43s", then as above */

#endif
