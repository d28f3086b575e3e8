/*
 * Plots in a terminal. Charts stand one below the other, or side by side where the window is wide.
 * No line is wider than the window, whatever names and numbers there are.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "canvas.h"
#include "plot.h"

enum {
    LEAST_COLUMNS = 20,
    SIDE_BY_SIDE = 110, /* columns from which on two charts stand side by side */
    BETWEEN = 4,        /* columns between them */
    AROUND = 3,         /* rows of a chart that are not its field: title, axis, labels */
    MOST_REPLICAS = 16, /* that are shown */
};

#define BOLD "\033[1m"
#define DIM "\033[2m"
#define NORMAL "\033[0m"

static const char *const pens[PLOT_ROLES] = { "\033[0;2m", "\033[0;36m", "\033[0;33m" };

typedef struct frame {
    int columns, rows; /* of a whole chart */
    bool utf8, colour;
} frame;

static void add_styled(textbuf *out, const frame *f, const char *style, const char *words)
{
    text_format(out, "%s%s%s", f->colour ? style : "", words, f->colour ? NORMAL : "");
}

/* ---- title and legend ---------------------------------------------------------------------- */

/* Adds what `part` has if the line that began at `from` still fits. */
static bool add_if_fits(textbuf *out, size_t from, const textbuf *part, int columns)
{
    size_t before = out->length;
    text_add(out, text_read(part));
    if (text_columns(text_read(out) + from) > columns)
        text_shorten(out, before);
    return out->length > before;
}

/* How a curve is drawn, its name and, unless it is of single steps, its last value. */
static void add_key(textbuf *out, const plot_curve *c, const frame *f)
{
    text_number n;
    bool steps = c->role == PLOT_STEPS;
    text_add(out, "   ");
    add_styled(out, f, pens[c->role], canvas_sign((int)c->role, f->utf8, !steps));
    text_format(out, " %s%s%s", plot_role_name(c->role), steps ? "" : " ",
                steps ? "s" : text_value(n, c->last));
}

/* The keys of the curves that have room beside so many columns: the test's first. */
static void add_keys(textbuf *out, const plot_chart *chart, int taken, const frame *f)
{
    bool shown[PLOT_ROLES] = { false };
    textbuf part = { 0 };
    for (int i = chart->n_curves - 1; i >= 0; i--) {
        add_key(&part, &chart->curves[i], f);
        taken += text_columns(text_read(&part));
        shown[i] = taken <= f->columns;
        text_shorten(&part, 0);
    }
    for (int i = 0; i < chart->n_curves; i++)
        if (shown[i])
            add_key(out, &chart->curves[i], f);
    text_free(&part);
}

static void add_title(textbuf *out, const plot_chart *chart, const frame *f)
{
    size_t from = out->length;
    textbuf part = { 0 }, keys = { 0 };
    text_number n;
    text_name(&part, chart->title, f->utf8, f->columns);
    add_keys(&keys, chart, text_columns(text_read(&part)), f);
    add_styled(out, f, BOLD, text_read(&part));
    text_shorten(&part, 0);
    text_format(&part, " by %s", chart->x_label);
    add_if_fits(out, from, &part, f->columns - text_columns(text_read(&keys)));
    text_add(out, text_read(&keys));
    for (int i = 0; i < chart->n_curves; i++) {
        const plot_curve *c = &chart->curves[i];
        if (c->role != PLOT_TEST || isnan(c->best))
            continue;
        text_shorten(&part, 0);
        text_format(&part, " (best %s, epoch %" PRId64 ")", text_value(n, c->best), c->best_epoch);
        add_if_fits(out, from, &part, f->columns);
    }
    text_add(out, "\n");
    text_free(&part);
    text_free(&keys);
}

/* ---- a chart ------------------------------------------------------------------------------ */

static void draw_curve(canvas *field, const plot_curve *c, const axis *x, const axis *y,
                       int columns)
{
    double px = 0, py = NAN;
    for (size_t i = 0; i < c->n; i++) {
        double ax = axis_place(x, c->x[i]), ay = axis_place(y, c->y[i]);
        canvas_line(field, isnan(py) ? ax : px, isnan(py) ? ay : py, ax, ay, (int)c->role);
        px = ax, py = ay;
    }
    if (c->role == PLOT_STEPS)
        return;
    size_t every = c->n * 4 / (size_t)columns + 1; /* so that there is line between marks */
    for (size_t i = (c->n - 1) % every; i < c->n; i += every)
        canvas_mark(field, axis_place(x, c->x[i]), axis_place(y, c->y[i]), (int)c->role);
}

static int label_width(const axis *y)
{
    text_number n;
    int width = 0;
    for (int i = 0; i < y->ticks; i++) {
        int its = (int)strlen(axis_label(y, i, n));
        width = its > width ? its : width;
    }
    return width;
}

static void add_field_row(textbuf *out, const canvas *field, int row, int rows, const axis *y,
                          int labels, const frame *f)
{
    text_number n;
    const char *label = "";
    bool tick = false;
    int dots = f->utf8 ? 4 : 1;
    for (int i = 0; i < y->ticks && !tick; i++) {
        double down = 1 - axis_place(y, axis_tick(y, i));
        tick = (int)lround(down * (dots * rows - 1)) / dots == row;
        label = tick ? axis_label(y, i, n) : "";
    }
    text_format(out, "%s%*s %s%s", f->colour ? DIM : "", labels, label,
                f->utf8 ? (tick ? "┤" : "│") : (tick ? "+" : "|"), f->colour ? NORMAL : "");
    canvas_row(out, field, row, f->colour ? pens : NULL);
    text_add(out, "\n");
}

static int tick_column(const axis *x, int i, int columns, bool utf8)
{
    double at = axis_place(x, axis_tick(x, i));
    return utf8 ? (int)lround(at * (2 * columns - 1)) / 2 : (int)lround(at * (columns - 1));
}

static void add_x_axis(textbuf *out, const axis *x, int labels, int columns, const frame *f)
{
    text_number n;
    text_format(out, "%s%*s %s", f->colour ? DIM : "", labels, "", f->utf8 ? "└" : "+");
    for (int column = 0, i = 0; column < columns; column++) {
        bool tick = i < x->ticks && tick_column(x, i, columns, f->utf8) == column;
        text_add(out, f->utf8 ? (tick ? "┬" : "─") : (tick ? "+" : "-"));
        i += tick;
    }
    text_format(out, "%s\n%s%*s", f->colour ? NORMAL : "", f->colour ? DIM : "", labels + 2, "");
    int written = -1; /* columns: a label does not touch the one before */
    for (int i = 0; i < x->ticks; i++) {
        int width = (int)strlen(axis_label(x, i, n));
        int at = tick_column(x, i, columns, f->utf8) - width / 2;
        at = at < 0 ? 0 : at + width > columns ? columns - width : at;
        if (at <= written)
            continue;
        text_format(out, "%*s%s", at - (written < 0 ? 0 : written), "", n);
        written = at + width;
    }
    text_format(out, "%s\n", f->colour ? NORMAL : "");
}

static void add_chart(textbuf *out, const plot_chart *chart, const frame *f)
{
    int rows = f->rows - AROUND;
    axis y = axis_around(chart->y_low, chart->y_high, rows / 2 > 6 ? 6 : rows / 2);
    int labels = label_width(&y), columns = f->columns - labels - 2;
    axis x = axis_make(chart->x_low, chart->x_high, columns / 8, true);
    canvas *field = canvas_new(columns, rows, f->utf8);
    add_title(out, chart, f);
    for (int i = 0; i < chart->n_curves; i++)
        draw_curve(field, &chart->curves[i], &x, &y, columns);
    for (int row = 0; field && row < rows; row++)
        add_field_row(out, field, row, rows, &y, labels, f);
    if (field)
        add_x_axis(out, &x, labels, columns, f);
    canvas_free(field);
}

/* ---- charts side by side -------------------------------------------------------------------- */

static const char *add_one_line(textbuf *out, const char *lines)
{
    size_t length = strcspn(lines, "\n");
    text_format(out, "%.*s", (int)length, lines);
    return lines + length + (lines[length] != 0);
}

static void add_side_by_side(textbuf *out, const plot_chart *a, const plot_chart *b, const frame *f)
{
    textbuf left = { 0 }, right = { 0 };
    frame half = *f;
    half.columns = (f->columns - BETWEEN) / 2;
    add_chart(&left, a, &half);
    add_chart(&right, b, &half);
    const char *l = text_read(&left), *r = text_read(&right);
    while (*l || *r) {
        size_t from = out->length;
        l = add_one_line(out, l);
        text_repeat(out, " ", half.columns + BETWEEN - text_columns(text_read(out) + from));
        r = add_one_line(out, r);
        text_add(out, "\n");
    }
    text_free(&left);
    text_free(&right);
}

/* ---- where the time went ------------------------------------------------------------------- */

static const char *const phase_colours[LS_PHASES] = { "\033[33m", "\033[34m", "\033[36m",
                                                      "\033[31m", "\033[35m", "\033[90m" };

/* Without colours, a phase is its first letter. */
static void add_phase(textbuf *out, const frame *f, int phase, int columns)
{
    char letter[2] = { run_phase_name(phase)[0], 0 };
    if (columns < 1)
        return;
    text_add(out, f->colour ? phase_colours[phase] : "");
    text_repeat(out, f->colour && f->utf8 ? "█" : letter, columns);
    text_add(out, f->colour ? NORMAL : "");
}

static void add_split_legend(textbuf *out, const run_log *log, const frame *f)
{
    size_t from = out->length;
    textbuf part = { 0 };
    add_styled(out, f, BOLD, "time");
    for (int phase = 0; phase < LS_PHASES; phase++) {
        text_add(&part, phase ? "  " : "   ");
        add_phase(&part, f, phase, 1);
        text_format(&part, " %s %.0f%%", run_phase_name(phase), 100 * plot_share(log, -1, phase));
        size_t before = out->length;
        if (!add_if_fits(out, from, &part, f->columns)) {
            from = before + 1;
            text_format(out, "\n%s%s", f->columns < 40 ? "" : "     ", text_read(&part));
        }
        text_shorten(&part, 0);
    }
    text_add(out, "\n");
    text_free(&part);
}

static void add_split_row(textbuf *out, const run_log *log, int r, int columns, double most,
                          const frame *f)
{
    double until = 0;
    int drawn = 0;
    text_number n;
    for (int phase = 0; phase < LS_PHASES; phase++) {
        until += log->phases[r][phase];
        int end = (int)lround(until / most * columns);
        add_phase(out, f, phase, end - drawn);
        drawn = end > drawn ? end : drawn;
    }
    text_format(out, "%*s %s\n", columns - drawn, "", text_elapsed(n, plot_seconds(log, r)));
}

static void add_split(textbuf *out, const run_log *log, const frame *f)
{
    double most = 0;
    int times = 0; /* columns of the longest */
    text_number n;
    for (int r = 0; r < log->n_replicas; r++) {
        most = fmax(most, plot_seconds(log, r));
        int its = (int)strlen(text_elapsed(n, plot_seconds(log, r)));
        times = its > times ? its : times;
    }
    if (!(most > 0))
        return;
    add_split_legend(out, log, f);
    int shown = log->n_replicas < MOST_REPLICAS ? log->n_replicas : MOST_REPLICAS;
    int digits = snprintf(NULL, 0, "%d", shown - 1);
    const char *name = f->columns < 40 ? "" : "replica ";
    int columns = f->columns - (int)strlen(name) - digits - times - 2;
    for (int r = 0; r < shown; r++) {
        text_format(out, "%s%*d ", name, digits, r);
        add_split_row(out, log, r, columns, most, f);
    }
    if (shown < log->n_replicas)
        text_format(out, "and %d more\n", log->n_replicas - shown);
}

/* ---- all of it ------------------------------------------------------------------------------ */

static void add_head(textbuf *out, const plot *p, const frame *f)
{
    size_t from = out->length;
    textbuf part = { 0 };
    text_name(&part, p->log->model[0] ? p->log->model : "run", f->utf8, f->columns);
    add_styled(out, f, BOLD, text_read(&part));
    text_shorten(&part, 0);
    text_format(&part, "%s%s", p->facts.length ? "  " : "", text_read(&p->facts));
    int columns = f->columns - text_columns(text_read(out) + from);
    while (text_columns(text_read(&part)) > columns && part.length > 0) {
        size_t length = part.length;
        while (length > 0 && strncmp(part.bytes + length, ", ", 2) != 0)
            length--;
        text_shorten(&part, length);
    }
    text_format(out, "%s\n\n", text_read(&part));
    text_free(&part);
}

void plot_text(textbuf *out, const plot *p, const terminal *screen)
{
    frame f = { .columns = screen->columns, .utf8 = screen->utf8, .colour = screen->colour };
    f.columns = f.columns < LEAST_COLUMNS ? LEAST_COLUMNS : f.columns;
    bool wide = f.columns >= SIDE_BY_SIDE;
    int rows = wide ? screen->rows - 8 : (screen->rows - 6) / 2;
    f.rows = rows < 9 ? 9 : rows > 20 ? 20 : rows;
    add_head(out, p, &f);
    for (int i = 0; i < p->n_charts; i++) {
        if (wide && i + 1 < p->n_charts) {
            add_side_by_side(out, &p->charts[i], &p->charts[i + 1], &f);
            i++;
        } else
            add_chart(out, &p->charts[i], &f);
        text_add(out, "\n");
    }
    add_split(out, p->log, &f);
}
