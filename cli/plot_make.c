/*
 * From a run's log to charts. The loss has a chart over steps, in which the losses of single steps are
 * too; every other figure that epochs have has one over epochs. "test_" in front of a name makes
 * it the test's curve of the same chart.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plot.h"

const char *plot_role_name(plot_role role)
{
    static const char *const names[] = { "step", "train", "test" };
    return names[role];
}

double plot_seconds(const run_log *log, int replica)
{
    double sum = 0;
    for (int phase = 0; phase < LS_PHASES; phase++)
        sum += log->phases[replica][phase];
    return sum;
}

double plot_share(const run_log *log, int replica, int phase)
{
    double its = 0, all = 0;
    for (int r = 0; r < log->n_replicas; r++)
        if (replica == r || replica == -1) {
            its += log->phases[r][phase];
            all += plot_seconds(log, r);
        }
    return all > 0 ? its / all : 0;
}

/* ---- curves -------------------------------------------------------------------------------- */

static bool better(const char *title, double a, double b)
{
    return strstr(title, "accuracy") ? a > b : a < b;
}

static void find_best(plot_curve *c, const char *title, const run_figure *f)
{
    size_t best = f->n;
    for (size_t i = 0; i < f->n; i++)
        if (isfinite(c->y[i]) && (best == f->n || better(title, c->y[i], c->y[best])))
            best = i;
    bool told = best < f->n && f->points[best].epoch > 0 && c->y[best] != c->last;
    c->best = told ? c->y[best] : NAN;
    c->best_epoch = told ? f->points[best].epoch : 0;
}

/* False without memory; a figure that is not there is no curve. */
static bool add_curve(plot_chart *chart, plot_role role, const run_figure *f, bool by_step)
{
    if (!f || f->n == 0)
        return true;
    plot_curve *c = &chart->curves[chart->n_curves++];
    *c = (plot_curve){ .role = role, .n = f->n, .last = f->points[f->n - 1].value };
    c->x = malloc(f->n * sizeof *c->x);
    c->y = malloc(f->n * sizeof *c->y);
    if (!c->x || !c->y)
        return false;
    for (size_t i = 0; i < f->n; i++) {
        c->x[i] = (double)(by_step ? f->points[i].step : f->points[i].epoch);
        c->y[i] = isfinite(f->points[i].value) ? f->points[i].value : NAN;
    }
    find_best(c, chart->title, f);
    return true;
}

static void find_ranges(plot_chart *chart)
{
    chart->x_low = chart->y_low = INFINITY;
    chart->x_high = chart->y_high = -INFINITY;
    for (int i = 0; i < chart->n_curves; i++) {
        const plot_curve *c = &chart->curves[i];
        double low, high;
        chart->x_low = fmin(chart->x_low, c->x[0]);
        chart->x_high = fmax(chart->x_high, c->x[c->n - 1]);
        if (!axis_range(c->n, c->y, &low, &high))
            continue;
        chart->y_low = fmin(chart->y_low, low);
        chart->y_high = fmax(chart->y_high, high);
    }
}

/* ---- charts ---------------------------------------------------------------------------------- */

static void free_chart(plot_chart *chart)
{
    for (int i = 0; i < chart->n_curves; i++) {
        free(chart->curves[i].x);
        free(chart->curves[i].y);
    }
}

/* The chart of `name`; false without memory. One without any value is not added. */
static bool add_chart(plot *p, const char *name)
{
    bool by_step = strcmp(name, "loss") == 0;
    char of_test[72];
    plot_chart *chart = &p->charts[p->n_charts];
    *chart = (plot_chart){ .x_label = by_step ? "step" : "epoch" };
    snprintf(chart->title, sizeof chart->title, "%s", name);
    snprintf(of_test, sizeof of_test, "test_%s", name);
    bool fine = true;
    if (by_step)
        fine = add_curve(chart, PLOT_STEPS, run_log_find(p->log, RUN_STEP_LOSS), true);
    fine = fine && add_curve(chart, PLOT_TRAIN, run_log_find(p->log, name), by_step);
    fine = fine && add_curve(chart, PLOT_TEST, run_log_find(p->log, of_test), by_step);
    if (fine)
        find_ranges(chart);
    if (fine && chart->y_low <= chart->y_high) {
        if (by_step)
            chart->x_low = 0;
        p->n_charts++;
    } else
        free_chart(chart);
    return fine;
}

static bool has_chart(const plot *p, const char *name)
{
    for (int i = 0; i < p->n_charts; i++)
        if (strcmp(p->charts[i].title, name) == 0)
            return true;
    return false;
}

static bool add_charts(plot *p)
{
    if (!add_chart(p, "loss"))
        return false;
    for (size_t i = 0; i < p->log->n_figures; i++) {
        const char *name = p->log->figures[i].name;
        name += strncmp(name, "test_", 5) == 0 ? 5 : 0;
        bool known = strcmp(name, RUN_STEP_LOSS) == 0 || strcmp(name, "loss") == 0;
        if (!known && strlen(name) < sizeof p->charts->title && !has_chart(p, name) &&
            !add_chart(p, name))
            return false;
    }
    return true;
}

/* ---- what it was ----------------------------------------------------------------------------- */

/* "347,146". */
static void add_whole(textbuf *out, int64_t value)
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%" PRId64, value);
    for (int i = 0; i < n; i++)
        text_format(out, "%c%s", digits[i], i + 1 < n && (n - i) % 3 == 1 ? "," : "");
}

static void add_fact(textbuf *out, int64_t value, const char *before, const char *after)
{
    if (value <= 0)
        return;
    text_add(out, out->length ? ", " : "");
    text_add(out, before);
    add_whole(out, value);
    text_add(out, after);
}

static void add_facts(textbuf *out, const run_log *log)
{
    text_number n;
    add_fact(out, log->parameters, "", " parameters");
    add_fact(out, log->replicas, "", log->replicas == 1 ? " replica" : " replicas");
    add_fact(out, log->global_batch, "batch ", "");
    add_fact(out, log->steps, "", log->steps == 1 ? " step" : " steps");
    if (log->seconds > 0)
        text_format(out, " in %s", text_elapsed(n, log->seconds));
    if (log->samples_per_second > 0)
        text_format(out, ", %s samples/s", text_rate(n, log->samples_per_second));
}

plot *plot_make(const run_log *log)
{
    plot *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->log = log;
    p->charts = calloc(log->n_figures + 1, sizeof *p->charts);
    add_facts(&p->facts, log);
    if (p->charts && add_charts(p) && !p->facts.failed)
        return p;
    plot_free(p);
    return NULL;
}

void plot_free(plot *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->n_charts; i++)
        free_chart(&p->charts[i]);
    free(p->charts);
    text_free(&p->facts);
    free(p);
}

bool plot_is_empty(const plot *p)
{
    return p->n_charts == 0 && p->log->n_replicas == 0;
}
