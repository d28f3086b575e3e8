/*
 * A line is pieces in the order in which they are read. Which of them are there is decided in another
 * order: the most important ones are let in first, and each of the others if it still fits. Numbers
 * have a least width, so that nothing moves while they change; the bar takes what is left.
 */
#include "bar_line.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_PIECES = BAR_FIGURES + 12,
    NAME_COLUMNS = 24,
    LEAST_CELLS = 6, /* of the bar */
    GOOD_CELLS = 12,
    MOST_CELLS = 60,
};

#define DIM "\033[2m"
#define CYAN "\033[36m"
#define MAGENTA "\033[35m"
#define GREEN "\033[32m"
#define YELLOW "\033[33m"
#define NORMAL "\033[0m"

#define WAITS_TOO_LONG 0.2 /* a share of the time that is worth a colour */

/* Pieces of one group have one space between them, others two. */
typedef enum group { ALONE, WHERE, TRAINED, TESTED, ETA, WAITING } group;

typedef enum piece_kind { WORDS, CELLS, MORE_CELLS, LONGER } piece_kind;

typedef struct piece {
    piece_kind kind;
    group group;
    int importance; /* 0 is let in first */
    bool shown;
    char label[4 * NAME_COLUMNS + 1];
    text_number value;
    int least;                   /* columns of the value */
    const char *after, *instead; /* of the value: a unit; what LONGER puts in its place */
    const char *colour;
} piece;

typedef struct line {
    const bar_view *view;
    int n;
    piece pieces[MOST_PIECES];
    int cells; /* of the bar */
} line;

/* ---- pieces ----------------------------------------------------------------------------- */

static piece *add(line *l, group g, int importance, const char *label, int least)
{
    piece *p = &l->pieces[l->n++];
    *p = (piece){ .group = g, .importance = importance, .least = least, .after = "" };
    textbuf name = { 0 };
    text_name(&name, label, l->view->utf8 && !l->view->plain, NAME_COLUMNS);
    snprintf(p->label, sizeof p->label, "%s", text_read(&name));
    text_free(&name);
    return p;
}

static int digits(int64_t n)
{
    return snprintf(NULL, 0, "%" PRId64, n);
}

static void add_epoch(line *l, int importance)
{
    const bar_facts *f = l->view->facts;
    bool ended = l->view->kind == BAR_ENDED || l->view->plain;
    if (f->epochs < (ended ? 1 : 2))
        return;
    piece *p = add(l, ALONE, importance, "epoch", 0);
    snprintf(p->value, sizeof p->value, "%*" PRId64 "/%" PRId64, digits(f->epochs), f->epoch,
             f->epochs);
    p->colour = l->view->kind == BAR_ENDED ? GREEN : NULL;
}

static void add_step(line *l)
{
    const bar_facts *f = l->view->facts;
    bool tests = l->view->kind == BAR_TESTS;
    piece *p = add(l, WHERE, 0, tests ? "test" : l->view->plain ? "step" : "", 0);
    if (f->steps < 0)
        snprintf(p->value, sizeof p->value, "%" PRId64 "/?", f->step);
    else
        snprintf(p->value, sizeof p->value, "%*" PRId64 "/%" PRId64, digits(f->steps), f->step,
                 f->steps);
}

static void add_bar(line *l, int importance, int more_importance)
{
    if (l->view->plain)
        return;
    add(l, WHERE, importance, "", 0)->kind = CELLS;
    add(l, WHERE, more_importance, "", 0)->kind = MORE_CELLS;
}

static void add_figure(line *l, group g, int importance, const char *name, double value)
{
    text_value(add(l, g, importance, name, 6)->value, value);
}

/* The first figure is the one that people look at. */
static void add_figures(line *l, int importance, int others)
{
    const bar_facts *f = l->view->facts;
    for (int i = 0; i < f->n_figures && i < BAR_FIGURES; i++) {
        const char *name = f->figures[i].name;
        bool tested = strncmp(name, "test_", 5) == 0 && l->view->kind != BAR_TRAINS;
        bool only = l->view->kind == BAR_TESTS; /* all of the line is */
        if (tested && l->view->kind == BAR_ENDED)
            add_figure(l, TESTED, strcmp(name, "test_loss") == 0 ? 3 : 1, name + 5,
                       f->figures[i].value);
        else
            add_figure(l, TRAINED, i == 0 ? importance : others, name + (tested && only ? 5 : 0),
                       f->figures[i].value);
    }
}

static void add_rate(line *l, int importance, int longer)
{
    if (!(l->view->samples_per_second > 0))
        return;
    piece *p = add(l, ALONE, importance, "", 5);
    text_rate(p->value, l->view->samples_per_second);
    p->after = "/s";
    p->instead = " samples/s";
    add(l, ALONE, longer, "", 0)->kind = LONGER;
}

static void add_left(line *l, int importance, const char *label, double seconds)
{
    if (seconds > 0)
        text_duration(add(l, ETA, importance, label, 4)->value, seconds);
}

static void add_share(line *l, int importance, const char *label, double share)
{
    if (!(share >= 0))
        return;
    piece *p = add(l, WAITING, importance, label, 3);
    snprintf(p->value, sizeof p->value, "%.0f%%", 100 * fmin(share, 1));
    p->colour = share >= WAITS_TOO_LONG ? YELLOW : NULL;
}

static void add_pieces(line *l)
{
    const bar_view *v = l->view;
    const bar_facts *f = v->facts;
    if (v->kind == BAR_ENDED) {
        add_epoch(l, 0);
        if (v->seconds >= 0)
            text_elapsed(add(l, ALONE, 5, "", 4)->value, v->seconds);
        add_figure(l, TRAINED, 2, "loss", f->loss);
        add_figures(l, 4, 7);
        add_rate(l, 6, 8);
        add_share(l, 9, "input", f->input);
        add_share(l, 9, "reduce", f->reduce);
        return;
    }
    add_epoch(l, 5);
    add_step(l);
    add_bar(l, 2, 7);
    if (!isnan(f->loss))
        add_figure(l, TRAINED, 1, "loss", f->loss);
    add_figures(l, 3, 9);
    if (v->kind == BAR_TRAINS)
        add_rate(l, 6, 11);
    add_left(l, 4, "eta", v->left);
    if (v->kind == BAR_TRAINS && f->epochs > 1)
        add_left(l, 10, "all", v->run_left);
    if (v->kind == BAR_TRAINS) {
        add_share(l, 8, "input", f->input);
        add_share(l, 8, "reduce", f->reduce);
    }
}

/* ---- the bar ----------------------------------------------------------------------------- */

static void draw_run(textbuf *out, const line *l, const char *colour, const char *glyph, int times)
{
    if (times <= 0)
        return;
    text_add(out, l->view->colour ? colour : "");
    text_repeat(out, glyph, times);
    text_add(out, l->view->colour ? NORMAL : "");
}

/* Of a length that nobody knows: a piece that goes from side to side. */
static void draw_pulse(textbuf *out, const line *l, const char *colour)
{
    const char *full = l->view->utf8 ? "━" : "=", *rest = l->view->utf8 ? "─" : "-";
    int wide = l->cells / 4 + 1, way = l->cells - wide;
    int at = way > 0 ? l->view->pulse % (2 * way) : 0;
    at = at > way ? 2 * way - at : at;
    draw_run(out, l, DIM, rest, at);
    draw_run(out, l, colour, full, wide);
    draw_run(out, l, DIM, rest, way - at);
}

static void draw_bar(textbuf *out, const line *l)
{
    const bar_facts *f = l->view->facts;
    const char *colour = l->view->kind == BAR_TESTS ? MAGENTA : CYAN;
    if (f->steps < 0) {
        draw_pulse(out, l, colour);
        return;
    }
    double share = f->steps > 0 ? fmax(0, fmin(1, (double)f->step / (double)f->steps)) : 1;
    int halves = (int)(share * 2 * l->cells), full = halves / 2;
    bool tip = l->view->utf8 ? halves % 2 : full < l->cells && full > 0;
    draw_run(out, l, colour, l->view->utf8 ? "━" : "=", full);
    draw_run(out, l, colour, l->view->utf8 ? "╸" : ">", tip);
    draw_run(out, l, DIM, l->view->utf8 ? "─" : "-", l->cells - full - tip);
}

/* ---- the line ----------------------------------------------------------------------------- */

static bool longer_shown(const piece *p)
{
    return p->instead && p[1].shown; /* LONGER follows its piece */
}

static void draw_words(textbuf *out, const line *l, const piece *p, bool first_tested, bool last)
{
    bool colour = l->view->colour;
    if (p->label[0] || first_tested) {
        text_add(out, colour ? DIM : "");
        text_add(out, first_tested ? "test " : "");
        text_format(out, "%s%s", p->label, p->label[0] ? " " : "");
        text_add(out, colour ? NORMAL : "");
    }
    bool coloured = colour && p->colour;
    text_format(out, "%s%s%s", coloured ? p->colour : "", p->value, coloured ? NORMAL : "");
    const char *after = longer_shown(p) ? p->instead : p->after;
    text_format(out, "%s%s%s", colour && *after ? DIM : "", after, colour && *after ? NORMAL : "");
    if (!last)
        text_repeat(out, " ", p->least - (int)strlen(p->value));
}

static const piece *last_shown(const line *l)
{
    const piece *last = NULL;
    for (int i = 0; i < l->n; i++)
        if (l->pieces[i].shown && l->pieces[i].kind <= CELLS)
            last = &l->pieces[i];
    return last;
}

static void draw(textbuf *out, const line *l, bool padded)
{
    const piece *before = NULL, *last = padded ? NULL : last_shown(l);
    bool any_tested = false;
    for (int i = 0; i < l->n; i++) {
        const piece *p = &l->pieces[i];
        if (!p->shown || p->kind > CELLS)
            continue;
        if (before)
            text_repeat(out, " ", before->group == p->group && p->group != ALONE ? 1 : 2);
        if (p->kind == CELLS)
            draw_bar(out, l);
        else
            draw_words(out, l, p, p->group == TESTED && !any_tested, p == last);
        any_tested = any_tested || p->group == TESTED;
        before = p;
    }
}

/* With all numbers at their least width, or wider: so what is shown does not change with them. */
static int columns(const line *l, textbuf *scratch)
{
    text_shorten(scratch, 0);
    draw(scratch, l, true);
    return text_columns(text_read(scratch));
}

static void let_in(line *l, piece *p, textbuf *scratch)
{
    int cells = l->cells;
    if (p->kind == CELLS)
        l->cells = LEAST_CELLS;
    if (p->kind == MORE_CELLS && l->cells)
        l->cells = GOOD_CELLS;
    p->shown = true;
    if (columns(l, scratch) <= l->view->columns)
        return;
    p->shown = false;
    l->cells = cells;
}

/* Shares of waiting, the last two pieces, are read together. */
static void both_or_none(line *l)
{
    piece *p = &l->pieces[l->n - 1];
    if (p->group == WAITING && !p->shown && l->n > 1 && p[-1].group == WAITING)
        p[-1].shown = false;
}

void bar_line(textbuf *out, const bar_view *v)
{
    line *l = calloc(1, sizeof *l);
    if (!l)
        return;
    textbuf scratch = { 0 };
    l->view = v;
    add_pieces(l);
    for (int importance = 0; importance < MOST_PIECES; importance++) {
        for (int i = 0; i < l->n; i++)
            if (l->pieces[i].importance == importance)
                let_in(l, &l->pieces[i], &scratch);
        if (importance == l->pieces[l->n - 1].importance)
            both_or_none(l);
    }
    if (l->cells) {
        int more = v->columns - columns(l, &scratch);
        l->cells = l->cells + more < MOST_CELLS ? l->cells + more : MOST_CELLS;
    }
    draw(out, l, false);
    text_free(&scratch);
    free(l);
}
