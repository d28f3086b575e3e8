/*
 * See canvas.h. A cell has the dots that were drawn in it, or a mark; its colour is that of the pen
 * that drew last, for a character can have only one.
 */
#include "canvas.h"

#include <math.h>
#include <stdlib.h>

typedef struct cell {
    unsigned char dots; /* braille's bits; ASCII: not 0 */
    signed char mark;   /* the pen's; -1: none */
    unsigned char pen;
} cell;

struct canvas {
    int columns, rows;
    bool utf8;
    cell cells[];
};

canvas *canvas_new(int columns, int rows, bool utf8)
{
    if (columns < 1 || rows < 1)
        return NULL;
    canvas *c = calloc(1, sizeof *c + (size_t)columns * (size_t)rows * sizeof *c->cells);
    if (!c)
        return NULL;
    c->columns = columns;
    c->rows = rows;
    c->utf8 = utf8;
    for (int i = 0; i < columns * rows; i++)
        c->cells[i].mark = -1;
    return c;
}

void canvas_free(canvas *c)
{
    free(c);
}

/* ---- drawing ------------------------------------------------------------------------------ */

static int dots_wide(const canvas *c)
{
    return c->utf8 ? 2 * c->columns : c->columns;
}

static int dots_high(const canvas *c)
{
    return c->utf8 ? 4 * c->rows : c->rows;
}

/* Dots are counted from the left and the top. */
static void dot(canvas *c, int x, int y, int pen)
{
    static const unsigned char bits[4][2] = {
        { 0x01, 0x08 }, { 0x02, 0x10 }, { 0x04, 0x20 }, { 0x40, 0x80 }
    };
    if (x < 0 || y < 0 || x >= dots_wide(c) || y >= dots_high(c))
        return;
    int column = c->utf8 ? x / 2 : x, row = c->utf8 ? y / 4 : y;
    cell *at = &c->cells[row * c->columns + column];
    at->dots |= c->utf8 ? bits[y % 4][x % 2] : 1;
    at->pen = (unsigned char)pen;
}

/* Moves the end (a, b) of a line to where it crosses the edge, if a is beyond 0 or 1; the other end
 * is (c, d). */
static void cut_end(double *a, double *b, double c, double d)
{
    double edge = *a < 0 ? 0 : 1;
    if (*a >= 0 && *a <= 1)
        return;
    *b += (d - *b) * ((edge - *a) / (c - *a));
    *a = edge;
}

/* Keeps of a line what is between 0 and 1 in its first coordinate. False: nothing. */
static bool cut(double *a, double *b, double *c, double *d)
{
    if (fmin(*a, *c) > 1 || fmax(*a, *c) < 0)
        return false;
    cut_end(a, b, *c, *d);
    cut_end(c, d, *a, *b);
    return true;
}

void canvas_line(canvas *c, double x0, double y0, double x1, double y1, int pen)
{
    if (!c || !isfinite(x0) || !isfinite(y0) || !isfinite(x1) || !isfinite(y1) ||
        !cut(&y0, &x0, &y1, &x1) || !cut(&x0, &y0, &x1, &y1))
        return;
    double wide = dots_wide(c) - 1, high = dots_high(c) - 1;
    double dx = (x1 - x0) * wide, dy = (y1 - y0) * high;
    int n = (int)ceil(fmax(fabs(dx), fabs(dy))) + 1;
    for (int i = 0; i <= n; i++)
        dot(c, (int)lround(x0 * wide + dx * i / n), (int)lround((1 - y0) * high - dy * i / n), pen);
}

void canvas_mark(canvas *c, double x, double y, int pen)
{
    if (!c || !(x >= 0 && x <= 1 && y >= 0 && y <= 1))
        return;
    /* In the cell where its dot would be. */
    int column = (int)lround(x * (dots_wide(c) - 1)),
        row = (int)lround((1 - y) * (dots_high(c) - 1));
    cell *at = &c->cells[(c->utf8 ? row / 4 : row) * c->columns + (c->utf8 ? column / 2 : column)];
    at->mark = (signed char)pen;
    at->pen = (unsigned char)pen;
}

/* ---- reading ------------------------------------------------------------------------------ */

const char *canvas_sign(int pen, bool utf8, bool mark)
{
    static const char *const marks[] = { "·", "○", "●" };
    static const char *const plain[] = { ".", "o", "x" };
    return !utf8 ? plain[pen] : mark ? marks[pen] : "⠒";
}

static void add_cell(textbuf *out, const canvas *c, const cell *at)
{
    if (at->mark >= 0)
        text_add(out, canvas_sign(at->mark, c->utf8, true));
    else if (!at->dots)
        text_add(out, " ");
    else if (!c->utf8)
        text_add(out, canvas_sign(at->pen, false, false));
    else /* U+2800 and the bits */
        text_format(out, "\xe2%c%c", 0xa0 | at->dots >> 6, 0x80 | (at->dots & 0x3f));
}

void canvas_row(textbuf *out, const canvas *c, int row, const char *const *colours)
{
    if (!c)
        return;
    const cell *cells = &c->cells[row * c->columns];
    int end = c->columns, colour = -1;
    while (end > 0 && !cells[end - 1].dots && cells[end - 1].mark < 0)
        end--;
    for (int i = 0; i < end; i++) {
        bool empty = !cells[i].dots && cells[i].mark < 0;
        int wanted = empty || !colours ? -1 : cells[i].pen;
        if (wanted != colour)
            text_add(out, wanted < 0 ? "\033[0m" : colours[wanted]);
        colour = wanted;
        add_cell(out, c, &cells[i]);
    }
    text_add(out, colour >= 0 ? "\033[0m" : "");
}
