/* See axis.h. */
#include "axis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The least of 1, 2 and 5 times a power of ten that is not below. */
static double round_step(double least, bool whole)
{
    double power = pow(10, floor(log10(least)));
    static const double steps[] = { 1, 2, 5, 10 };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (steps[i] * power >= least * (1 - 1e-9))
            return whole && steps[i] * power < 1 ? 1 : steps[i] * power;
    return 10 * power;
}

static void make_range(double *low, double *high)
{
    if (!isfinite(*low) || !isfinite(*high) || *low > *high || fabs(*low) > 1e300 ||
        fabs(*high) > 1e300)
        *low = 0, *high = 1;
    if (fmax(fabs(*low), fabs(*high)) < 1e-200) /* too small to count with */
        *low = *high = 0;
    double least = 1e-9 * fmax(fabs(*low), fabs(*high));
    if (*high - *low > least)
        return;
    double around = *high != 0 ? 0.1 * fabs(*high) : 1;
    *low -= around;
    *high += around;
}

axis axis_make(double low, double high, int most_ticks, bool whole)
{
    make_range(&low, &high);
    axis a = { .low = low, .high = high };
    most_ticks = most_ticks < 3 ? 3 : most_ticks;
    double slack = 1e-6 * (high - low); /* for ticks at the ends */
    for (double least = (high - low) / most_ticks;; least = a.step * 1.01) {
        a.step = round_step(least, whole);
        double from = ceil((low - slack) / a.step), to = floor((high + slack) / a.step);
        a.first = from * a.step;
        a.ticks = to < from ? 0 : (int)(to - from) + 1;
        if (a.ticks <= most_ticks)
            return a;
    }
}

axis axis_around(double low, double high, int most_ticks)
{
    make_range(&low, &high);
    double room = 0.05 * (high - low);
    return axis_make(low - (low == 0 ? 0 : room), high + room, most_ticks, false);
}

double axis_tick(const axis *a, int i)
{
    double value = a->first + i * a->step;
    return fabs(value) < 1e-9 * a->step ? 0 : value;
}

const char *axis_label(const axis *a, int i, text_number out)
{
    static const struct {
        double from, unit;
        const char *name;
    } units[] = { { 1e9, 1e9, "G" }, { 1e6, 1e6, "M" }, { 1e4, 1e3, "k" } };
    double value = axis_tick(a, i), step = a->step;
    double largest = fmax(fabs(axis_tick(a, 0)), fabs(axis_tick(a, a->ticks - 1)));
    const char *unit = "";
    bool powers = largest >= 1e15 || (largest < 1e-4 && largest > 0);
    for (size_t u = 0; u < sizeof units / sizeof units[0] && !unit[0]; u++)
        if (largest >= units[u].from) {
            unit = units[u].name;
            value /= units[u].unit, step /= units[u].unit;
        }
    int decimals = step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;
    if (value == 0 && (powers || unit[0]))
        snprintf(out, sizeof(text_number), "0");
    else if (powers)
        snprintf(out, sizeof(text_number), "%.1e", axis_tick(a, i));
    else
        snprintf(out, sizeof(text_number), "%.*f%s", decimals < 9 ? decimals : 9, value, unit);
    return out;
}

double axis_place(const axis *a, double value)
{
    return (value - a->low) / (a->high - a->low);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

bool axis_range(size_t n, const double *values, double *low, double *high)
{
    double *sorted = malloc((n + 1) * sizeof *sorted);
    size_t finite = 0;
    for (size_t i = 0; sorted && i < n; i++)
        if (isfinite(values[i]))
            sorted[finite++] = values[i];
    if (finite == 0) {
        free(sorted);
        return false;
    }
    qsort(sorted, finite, sizeof *sorted, ascending);
    *low = sorted[0];
    *high = sorted[finite - 1];
    size_t off = finite >= 20 ? finite / 50 + 1 : 0; /* at most so many are left out */
    double most = sorted[finite - 1 - off];
    if (*high - *low > 2 * (most - *low) && most > *low)
        *high = most + 0.25 * (most - *low);
    free(sorted);
    return true;
}
