/*
 * Values to buckets of equal width between the smallest and the largest. A bucket is guessed by a
 * division and put right by the edges, so that counts are those of the edges that are shown,
 * however rounding goes. Ranges that no double holds (largest minus smallest is infinite) and ranges of
 * a few steps of a double (edges that coincide) are no special cases for who reads it.
 */
#include <math.h>
#include <string.h>

#include "tensor/convert.h"
#include "train/events.h"

typedef struct range {
    double least, most;
    int64_t count;
} range;

static range find_range(ls_dtype dtype, const void *data, int64_t count)
{
    range r = { INFINITY, -INFINITY, 0 };
    for (int64_t i = 0; i < count; i++) {
        double x = ls__load_double(dtype, data, i);
        if (!isfinite(x))
            continue;
        r.least = x < r.least ? x : r.least;
        r.most = x > r.most ? x : r.most;
        r.count++;
    }
    return r;
}

static void place_edges(const range *r, double *edges)
{
    double width = (r->most - r->least) / LS__BUCKETS;
    for (int i = 0; i < LS__BUCKETS; i++) {
        double share = (double)i / LS__BUCKETS;
        edges[i] =
            isfinite(width) ? r->least + i * width : r->least * (1 - share) + r->most * share;
        if (edges[i] > r->most) /* rounded up */
            edges[i] = r->most;
    }
    edges[LS__BUCKETS] = r->most;
}

static int bucket_of(double x, const range *r, const double *edges)
{
    double whole = r->most - r->least;
    double share = isfinite(whole) ? (x - r->least) / whole
                                   : (x / 2 - r->least / 2) / (r->most / 2 - r->least / 2);
    int i = (int)(share * LS__BUCKETS);
    i = i < LS__BUCKETS ? i : LS__BUCKETS - 1;
    while (i > 0 && x < edges[i])
        i--;
    while (i < LS__BUCKETS - 1 && x >= edges[i + 1])
        i++;
    return i;
}

void ls__histogram_of(ls_dtype dtype, const void *data, int64_t count, ls__histogram *out)
{
    memset(out, 0, sizeof *out);
    range r = find_range(dtype, data, count);
    if (r.count == 0)
        return;
    if (r.least == r.most) {
        for (int i = 0; i <= LS__BUCKETS; i++)
            out->edges[i] = r.most;
        out->counts[LS__BUCKETS - 1] = r.count;
        return;
    }
    place_edges(&r, out->edges);
    for (int64_t i = 0; i < count; i++) {
        double x = ls__load_double(dtype, data, i);
        if (isfinite(x))
            out->counts[bucket_of(x, &r, out->edges)]++;
    }
}
