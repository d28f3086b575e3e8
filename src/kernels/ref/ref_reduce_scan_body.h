/*
 * argmax, cumsum and top_k of one element type: included by ref_reduce_scan.c
 * once per type, with T the type, U the type sums are made in and NAME(x) the
 * function's name.
 */

void NAME(ls__ref_arg)(bool smallest, const T *x, int64_t *y, int64_t outer, int64_t count,
                       int64_t inner)
{
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            const T *from = x + o * count * inner + i;
            int64_t best = 0;
            for (int64_t r = 1; r < count; r++) {
                T v = from[r * inner], b = from[best * inner];
                if (!isnan((double)b) && ((smallest ? v < b : v > b) || isnan((double)v)))
                    best = r;
            }
            y[o * inner + i] = best;
        }
}

/* The sums live in y: the row before (after, when reversed) plus this one. */
void NAME(ls__ref_cumsum)(bool exclusive, bool reverse, const T *x, T *y, int64_t outer,
                          int64_t count, int64_t inner)
{
    int64_t step = reverse ? -inner : inner;
    for (int64_t o = 0; o < outer && count; o++) {
        int64_t at = (o * count + (reverse ? count - 1 : 0)) * inner;
        for (int64_t i = 0; i < inner; i++)
            y[at + i] = exclusive ? (T)0 : x[at + i];
        for (int64_t r = 1; r < count; r++, at += step) {
            const T *before = y + at, *more = x + (exclusive ? at : at + step);
            T *to = y + at + step;
            for (int64_t i = 0; i < inner; i++)
                to[i] = (T)((U)before[i] + (U)more[i]);
        }
    }
}

/* Whether (a, i) comes before (b, j) in the result. */
static bool NAME(better)(T a, int64_t i, T b, int64_t j)
{
    bool nan_a = isnan((double)a), nan_b = isnan((double)b);
    if (nan_a || nan_b)
        return nan_a && (!nan_b || i < j);
    return a > b || (a == b && i < j);
}

/* A heap with the worst of the kept elements at its root. */
static void NAME(sink)(T *values, int64_t *places, int64_t n, T v, int64_t place)
{
    int64_t at = 0;
    for (int64_t child = 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n &&
            NAME(better)(values[child], places[child], values[child + 1], places[child + 1]))
            child++;
        if (NAME(better)(values[child], places[child], v, place))
            break;
        values[at] = values[child];
        places[at] = places[child];
        at = child;
    }
    values[at] = v;
    places[at] = place;
}

static void NAME(rise)(T *values, int64_t *places, int64_t at, T v, int64_t place)
{
    while (at) {
        int64_t up = (at - 1) / 2;
        if (!NAME(better)(values[up], places[up], v, place))
            break;
        values[at] = values[up];
        places[at] = places[up];
        at = up;
    }
    values[at] = v;
    places[at] = place;
}

void NAME(ls__ref_top_k)(const T *x, T *values, int64_t *places, int64_t rows, int64_t n, int64_t k)
{
    for (int64_t row = 0; row < rows && k; row++, x += n, values += k, places += k) {
        for (int64_t i = 0; i < k; i++)
            NAME(rise)(values, places, i, x[i], i);
        for (int64_t i = k; i < n; i++)
            if (NAME(better)(x[i], i, values[0], places[0]))
                NAME(sink)(values, places, k, x[i], i);
        for (int64_t left = k - 1; left > 0; left--) {
            T v = values[left];
            int64_t place = places[left];
            values[left] = values[0];
            places[left] = places[0];
            NAME(sink)(values, places, left, v, place);
        }
    }
}

#undef T
#undef U
#undef NAME
