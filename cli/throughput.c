/* Windows of steps. When there are more than there is room for, every second one goes. */
#include "throughput.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void throughput_start(throughput *t)
{
    memset(t, 0, sizeof *t);
    t->began = -1;
}

static void keep(throughput *t, double rate)
{
    if (t->windows++ == 0) /* warm-up */
        return;
    if (t->count == THROUGHPUT_MOST) {
        t->count /= 2;
        for (int i = 0; i < t->count; i++)
            t->rates[i] = t->rates[2 * i];
    }
    t->rates[t->count++] = rate;
}

/* The step that ends now began when the one before it ended: so the first after a pause only
 * starts the clock. */
void throughput_step(throughput *t, double now, int64_t samples)
{
    if (t->began < 0) {
        t->began = t->last = now;
        t->steps = t->samples = 0;
        return;
    }
    t->all_seconds += now - t->last;
    t->all_samples += (double)samples;
    t->last = now;
    t->samples += samples;
    if (++t->steps < THROUGHPUT_WINDOW)
        return;
    keep(t, (double)t->samples / (now - t->began));
    t->began = now;
    t->steps = t->samples = 0;
}

void throughput_pause(throughput *t)
{
    t->began = -1;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double throughput_median(const throughput *t)
{
    if (t->count == 0)
        return t->all_seconds > 0 ? t->all_samples / t->all_seconds : NAN;
    double *sorted = malloc((size_t)t->count * sizeof *sorted);
    if (!sorted)
        return t->all_samples / t->all_seconds;
    memcpy(sorted, t->rates, (size_t)t->count * sizeof *sorted);
    qsort(sorted, (size_t)t->count, sizeof *sorted, ascending);
    double median = sorted[t->count / 2];
    free(sorted);
    return median;
}
