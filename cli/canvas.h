/*
 * A field of characters to draw curves on: in UTF-8 eight dots (braille) a character, else one mark.
 */
#ifndef LOCKSTEP_CLI_CANVAS_H
#define LOCKSTEP_CLI_CANVAS_H

#include "text.h"

typedef struct canvas canvas;

/* NULL without memory, which the others take. */
canvas *canvas_new(int columns, int rows, bool utf8);
void canvas_free(canvas *c);

/* From 0, 0 (left, bottom) to 1, 1; what is outside is not drawn. What is drawn later is on top.
 * `pen` is 0 to 2: it gives colour and mark. */
void canvas_line(canvas *c, double x0, double y0, double x1, double y1, int pen);
void canvas_mark(canvas *c, double x, double y, int pen);

/* A row from the top, without spaces at its end; colours[pen] before what that pen drew, or NULL. */
void canvas_row(textbuf *out, const canvas *c, int row, const char *const *colours);

const char *canvas_sign(int pen, bool utf8, bool mark); /* for a legend */

#endif
