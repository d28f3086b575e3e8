/*
 * Plots as SVG: one file, complete in itself, which paints its background, so that it reads as well
 * where all around is dark. Legends are words in the colours of the curves. Invariant: what is
 * written is XML, whatever names a run gave.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plot.h"

enum {
    WIDTH = 1000,
    MARGIN = 40,
    HEAD = 104,   /* of the page */
    PANEL = 316,  /* rows of charts, one below the other */
    BETWEEN = 44, /* charts side by side */
    FIELD_TOP = 34,
    FIELD_BOTTOM = 50, /* below the field: labels */
    FIELD_LEFT = 46,
    MOST_POINTS = 500, /* of a path: more is not seen */
    MOST_REPLICAS = 64,
};

#define INK "#1d2430"
#define GREY "#667085"
#define GRID "#e9ecf1"
#define EDGE "#c3c9d4"

static const char *const curve_colours[PLOT_ROLES] = { "#9db4e6", "#2f5fd0", "#d9480f" };
static const char *const curve_signs[PLOT_ROLES] = { "\u2014", "\u25cb", "\u25cf" };
static const char *const phase_colours[LS_PHASES] = { "#e8a317", "#3867d6", "#20a39e",
                                                      "#d1495b", "#8854d0", "#a5adba" };

/* A box on the page. */
typedef struct box {
    double x, y, width, height;
} box;

/* At most so many columns of it; of more, the end is dots. */
static void add_words(textbuf *out, const char *words, int columns)
{
    textbuf clean = { 0 };
    text_name(&clean, words, true, text_columns(words) > columns ? columns - 1 : columns);
    text_add(&clean, text_columns(words) > columns ? "\u2026" : "");
    for (const char *s = text_read(&clean); *s; s++) {
        const char *entity = *s == '&' ? "&amp;" : *s == '<' ? "&lt;" : *s == '>' ? "&gt;" : NULL;
        if (entity)
            text_add(out, entity);
        else
            text_format(out, "%c", *s);
    }
    out->failed = out->failed || clean.failed;
    text_free(&clean);
}

/* ---- a chart ------------------------------------------------------------------------------ */

typedef struct field {
    box box;
    axis x, y;
} field;

static double across(const field *f, double value)
{
    return f->box.x + axis_place(&f->x, value) * f->box.width;
}

/* What is far outside stays where programs that draw can count. */
static double down(const field *f, double value)
{
    double y = f->box.y + (1 - axis_place(&f->y, value)) * f->box.height;
    return isnan(y) ? y : fmin(fmax(y, -1e4), 1e4);
}

static void add_axes(textbuf *out, const field *f, const char *x_label)
{
    text_number n;
    double bottom = f->box.y + f->box.height, right = f->box.x + f->box.width;
    for (int i = 0; i < f->y.ticks; i++) {
        double y = down(f, axis_tick(&f->y, i));
        text_format(out,
                    "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"" GRID "\"/>"
                    "<text x=\"%.1f\" y=\"%.1f\" class=\"tick\" text-anchor=\"end\">%s</text>\n",
                    f->box.x, y, right, y, f->box.x - 8, y + 4, axis_label(&f->y, i, n));
    }
    text_format(out,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"" EDGE "\"/>\n",
                f->box.x, bottom, right, bottom);
    for (int i = 0; i < f->x.ticks; i++) {
        double x = across(f, axis_tick(&f->x, i));
        text_format(out,
                    "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"" EDGE "\"/>"
                    "<text x=\"%.1f\" y=\"%.1f\" class=\"tick\" text-anchor=\"middle\">%s</text>\n",
                    x, bottom, x, bottom + 4, x, bottom + 18, axis_label(&f->x, i, n));
    }
    text_format(out,
                "<text x=\"%.1f\" y=\"%.1f\" class=\"label\" text-anchor=\"middle\">%s</text>\n",
                f->box.x + f->box.width / 2, bottom + 36, x_label);
}

/* A path through the means of as many neighbours as it takes to have few points. */
static void add_path(textbuf *out, const field *f, const plot_curve *c)
{
    size_t every = c->n / MOST_POINTS + 1;
    bool drawing = false;
    text_format(out, "<path class=\"curve\" stroke=\"%s\" stroke-width=\"%s\" d=\"",
                curve_colours[c->role], c->role == PLOT_STEPS ? "1.2" : "2");
    for (size_t i = 0; i < c->n; i += every) {
        double x = 0, y = 0;
        size_t n = 0;
        for (size_t j = i; j < i + every && j < c->n; j++)
            if (!isnan(c->y[j]))
                x += c->x[j], y += c->y[j], n++;
        if (n > 0)
            text_format(out, "%s%.1f %.1f", drawing ? "L" : "M", across(f, x / (double)n),
                        down(f, y / (double)n));
        drawing = n > 0;
    }
    text_add(out, "\"/>\n");
}

static void add_marks(textbuf *out, const field *f, const plot_curve *c)
{
    if (c->role == PLOT_STEPS)
        return;
    size_t every = c->n / 40 + 1;
    for (size_t i = (c->n - 1) % every; i < c->n; i += every) {
        double y = down(f, c->y[i]);
        if (!(y >= f->box.y && y <= f->box.y + f->box.height))
            continue;
        text_format(out,
                    "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\" fill=\"%s\" stroke=\"%s\" "
                    "stroke-width=\"1.6\"/>\n",
                    across(f, c->x[i]), y, c->role == PLOT_TRAIN ? "#fff" : curve_colours[c->role],
                    curve_colours[c->role]);
    }
}

static void add_title(textbuf *out, const plot_chart *chart, box b)
{
    text_number n;
    text_format(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"title\">", b.x, b.y + 12);
    add_words(out, chart->title, 20); /* beside it is the legend */
    text_format(out, "</text>\n<text x=\"%.1f\" y=\"%.1f\" class=\"legend\" text-anchor=\"end\">",
                b.x + b.width, b.y + 12);
    for (int i = 0; i < chart->n_curves; i++) {
        const plot_curve *c = &chart->curves[i];
        text_format(out, "<tspan fill=\"%s\"%s>%s %s%s</tspan>",
                    c->role == PLOT_STEPS ? GREY : curve_colours[c->role], i ? " dx=\"14\"" : "",
                    curve_signs[c->role], plot_role_name(c->role),
                    c->role == PLOT_STEPS ? "s" : "");
        if (c->role != PLOT_STEPS)
            text_format(out, "<tspan dx=\"5\" class=\"value\">%s</tspan>", text_value(n, c->last));
        if (c->role == PLOT_TEST && !isnan(c->best))
            text_format(out, "<tspan dx=\"5\" class=\"tick\">best %s, epoch %" PRId64 "</tspan>",
                        text_value(n, c->best), c->best_epoch);
    }
    text_add(out, "</text>\n");
}

static void add_chart(textbuf *out, const plot_chart *chart, int index, box b)
{
    field f = { .box = { b.x + FIELD_LEFT, b.y + FIELD_TOP, b.width - FIELD_LEFT,
                         b.height - FIELD_TOP - FIELD_BOTTOM } };
    double beside = strcmp(chart->x_label, "epoch") == 0 ? 0.25 : 0; /* marks are whole */
    f.x = axis_make(chart->x_low - beside, chart->x_high + beside, (int)(f.box.width / 60), true);
    f.y = axis_around(chart->y_low, chart->y_high, 7);
    add_title(out, chart, b);
    add_axes(out, &f, chart->x_label);
    text_format(out,
                "<clipPath id=\"field%d\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                "height=\"%.1f\"/></clipPath>\n<g clip-path=\"url(#field%d)\">\n",
                index, f.box.x, f.box.y, f.box.width + 6, f.box.height, index);
    for (int i = 0; i < chart->n_curves; i++)
        add_path(out, &f, &chart->curves[i]);
    text_add(out, "</g>\n");
    for (int i = 0; i < chart->n_curves; i++)
        add_marks(out, &f, &chart->curves[i]);
}

/* ---- where the time went ------------------------------------------------------------------- */

static int split_rows(const run_log *log)
{
    return log->n_replicas < MOST_REPLICAS ? log->n_replicas : MOST_REPLICAS;
}

static double split_row_height(const run_log *log)
{
    return split_rows(log) > 12 ? 16 : 28;
}

static double split_height(const run_log *log)
{
    return log->n_replicas ? 44 + split_rows(log) * split_row_height(log) +
                                 (log->n_replicas > MOST_REPLICAS ? 20 : 0)
                           : 0;
}

static void add_split_row(textbuf *out, const run_log *log, int r, double most, box b)
{
    text_number n;
    double at = b.x;
    for (int phase = 0; phase < LS_PHASES; phase++) {
        double share = plot_share(log, r, phase), wide = log->phases[r][phase] / most * b.width;
        if (wide < 0.05)
            continue;
        text_format(out,
                    "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\">"
                    "<title>%s %.3g s, %.1f%%</title></rect>",
                    at, b.y, wide, b.height, phase_colours[phase], run_phase_name(phase),
                    log->phases[r][phase], 100 * share);
        if (wide > 44 && b.height > 14)
            text_format(out,
                        "<text x=\"%.1f\" y=\"%.1f\" class=\"inside\" text-anchor=\"middle\">"
                        "%.0f%%</text>",
                        at + wide / 2, b.y + b.height / 2 + 4, 100 * share);
        at += wide;
    }
    text_format(out, "\n<text x=\"%.1f\" y=\"%.1f\" class=\"tick\" text-anchor=\"end\">%d</text>",
                b.x - 8, b.y + b.height / 2 + 4, r);
    text_format(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"tick\">%s</text>\n", at + 8,
                b.y + b.height / 2 + 4, text_elapsed(n, plot_seconds(log, r)));
}

static void add_split(textbuf *out, const run_log *log, box b)
{
    double most = 0;
    for (int r = 0; r < log->n_replicas; r++)
        most = fmax(most, plot_seconds(log, r));
    if (!(most > 0))
        return;
    text_format(out,
                "<text x=\"%.1f\" y=\"%.1f\" class=\"title\">time"
                "<tspan class=\"label\" dx=\"6\">of each replica</tspan></text>\n"
                "<text x=\"%.1f\" y=\"%.1f\" class=\"legend\" text-anchor=\"end\">",
                b.x, b.y + 12, b.x + b.width, b.y + 12);
    for (int phase = 0; phase < LS_PHASES; phase++) {
        text_format(out,
                    "<tspan fill=\"%s\"%s>\u25a0</tspan><tspan dx=\"4\">%s</tspan>"
                    "<tspan dx=\"4\" class=\"value\">%.0f%%</tspan>",
                    phase_colours[phase], phase ? " dx=\"14\"" : "", run_phase_name(phase),
                    100 * plot_share(log, -1, phase));
    }
    text_add(out, "</text>\n");
    double row = split_row_height(log);
    for (int r = 0; r < split_rows(log); r++)
        add_split_row(
            out, log, r, most,
            (box){ b.x + FIELD_LEFT, b.y + 30 + r * row, b.width - FIELD_LEFT - 60, row * 0.78 });
    if (log->n_replicas > MOST_REPLICAS)
        text_format(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"tick\">and %d more</text>\n",
                    b.x + FIELD_LEFT, b.y + 44 + MOST_REPLICAS * row,
                    log->n_replicas - MOST_REPLICAS);
}

/* ---- the page ------------------------------------------------------------------------------- */

static void add_head(textbuf *out, const plot *p, double height)
{
    text_format(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
                "viewBox=\"0 0 %d %.0f\">\n<title>",
                WIDTH, height, WIDTH, height);
    add_words(out, p->log->model[0] ? p->log->model : "run", 60);
    text_add(out,
             "</title>\n<style>\n"
             "text { font-family: Inter, 'Segoe UI', 'Helvetica Neue', Helvetica, Arial, "
             "'Liberation Sans', 'DejaVu Sans', sans-serif; fill: " INK "; font-size: 12px; }\n"
             ".model { font-size: 24px; font-weight: 600; }\n"
             ".title { font-size: 15px; font-weight: 600; }\n"
             ".label { font-size: 12px; font-weight: 400; fill: " GREY "; }\n"
             ".tick { font-size: 11px; font-weight: 400; fill: " GREY "; }\n"
             ".value { font-weight: 600; }\n"
             ".inside { font-size: 11px; fill: #fff; }\n"
             ".command { font-family: 'SF Mono', Menlo, Consolas, 'Liberation Mono', "
             "'DejaVu Sans Mono', monospace; font-size: 11.5px; fill: " GREY "; }\n"
             ".curve { fill: none; stroke-linejoin: round; stroke-linecap: round; }\n"
             "</style>\n");
    text_format(out, "<rect width=\"%d\" height=\"%.0f\" fill=\"#ffffff\"/>\n", WIDTH, height);
    text_format(out, "<text x=\"%d\" y=\"48\" class=\"model\">", MARGIN);
    add_words(out, p->log->model[0] ? p->log->model : "run", 60);
    text_format(out, "</text>\n<text x=\"%d\" y=\"70\" class=\"label\">", MARGIN);
    add_words(out, text_read(&p->facts), 140);
    text_format(out, "</text>\n<text x=\"%d\" y=\"90\" class=\"command\">", MARGIN);
    add_words(out, p->log->command, 130);
    text_add(out, "</text>\n");
}

void plot_svg(textbuf *out, const plot *p)
{
    int rows = (p->n_charts + 1) / 2;
    double split = split_height(p->log);
    double top = HEAD + (p->log->command[0] ? 22 : 2);
    add_head(out, p, top + rows * PANEL + split + (split > 0 ? 24 : 0));
    double half = (WIDTH - 2 * MARGIN - BETWEEN) / 2.0;
    for (int i = 0; i < p->n_charts; i++) {
        bool alone = i % 2 == 0 && i + 1 == p->n_charts;
        add_chart(out, &p->charts[i], i,
                  (box){ MARGIN + i % 2 * (half + BETWEEN), top + i / 2 * PANEL,
                         alone ? WIDTH - 2 * MARGIN : half, PANEL - 20 });
    }
    add_split(out, p->log, (box){ MARGIN, top + rows * PANEL, WIDTH - 2 * MARGIN, split });
    text_add(out, "</svg>\n");
}
