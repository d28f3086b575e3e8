/*
 * Softmax and losses of one element type: included by ref_softmax.c for float
 * and double, with T the type and NAME(x) the function's name. Sums are made in
 * double.
 */

/* The largest of n elements `step` apart, NaN if one is. */
static double NAME(largest)(const T *x, int64_t n, int64_t step)
{
    double best = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        if (x[i * step] > best || isnan(x[i * step]))
            best = x[i * step];
    return best;
}

static double NAME(sum_exp)(const T *x, int64_t n, int64_t step, double max)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += exp((double)x[i * step] - max);
    return sum;
}

void NAME(ls__ref_softmax)(bool log_, const T *x, T *y, int64_t outer, int64_t n, int64_t inner)
{
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            const T *from = x + o * n * inner + i;
            T *to = y + o * n * inner + i;
            double max = NAME(largest)(from, n, inner);
            double sum = NAME(sum_exp)(from, n, inner, max), log_sum = log(sum);
            for (int64_t k = 0; k < n; k++) {
                double v = (double)from[k * inner] - max;
                to[k * inner] = (T)(log_ ? v - log_sum : exp(v) / sum);
            }
        }
}

void NAME(ls__ref_softmax_grad)(bool log_, const T *y, const T *dy, T *dx, int64_t outer, int64_t n,
                                int64_t inner)
{
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            int64_t at = o * n * inner + i;
            double sum = 0;
            for (int64_t k = 0; k < n; k++)
                sum += (double)dy[at + k * inner] * (log_ ? 1 : (double)y[at + k * inner]);
            for (int64_t k = 0; k < n; k++) {
                double v = y[at + k * inner], g = dy[at + k * inner];
                dx[at + k * inner] = (T)(log_ ? g - exp(v) * sum : v * (g - sum));
            }
        }
}

void NAME(ls__ref_sparse_xent)(const T *x, ls__labels labels, T *loss, T *p, int64_t rows,
                               int64_t n)
{
    NAME(ls__ref_softmax)(false, x, p, rows, n, 1);
    for (int64_t r = 0; r < rows; r++) {
        const T *row = x + r * n;
        double max = NAME(largest)(row, n, 1);
        loss[r] = (T)(log(NAME(sum_exp)(row, n, 1, max)) - (row[ls__label(labels, r)] - max));
    }
}

void NAME(ls__ref_sparse_xent_grad)(const T *p, ls__labels labels, const T *dloss, T *dx,
                                    int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < n; k++)
            dx[r * n + k] = (p[r * n + k] - (k == ls__label(labels, r))) * dloss[r];
}

void NAME(ls__ref_xent)(const T *x, const T *t, T *loss, T *p, int64_t rows, int64_t n)
{
    NAME(ls__ref_softmax)(false, x, p, rows, n, 1);
    for (int64_t r = 0; r < rows; r++) {
        const T *row = x + r * n;
        double max = NAME(largest)(row, n, 1);
        double log_sum = log(NAME(sum_exp)(row, n, 1, max)), sum = 0;
        for (int64_t k = 0; k < n; k++)
            if (t[r * n + k] != 0)
                sum += t[r * n + k] * (log_sum - (row[k] - max));
        loss[r] = (T)sum;
    }
}

void NAME(ls__ref_xent_grad)(const T *p, const T *t, const T *dloss, T *dx, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t k = 0; k < n; k++)
            sum += t[r * n + k];
        for (int64_t k = 0; k < n; k++)
            dx[r * n + k] = (T)((p[r * n + k] * sum - t[r * n + k]) * dloss[r]);
    }
}

/* The gradients work element by element, so dx may hold the probabilities first. */
void NAME(ls__ref_sparse_xent_both)(const T *x, ls__labels labels, const T *dloss, T *loss, T *dx,
                                    int64_t rows, int64_t n)
{
    NAME(ls__ref_sparse_xent)(x, labels, loss, dx, rows, n);
    NAME(ls__ref_sparse_xent_grad)(dx, labels, dloss, dx, rows, n);
}

void NAME(ls__ref_xent_both)(const T *x, const T *t, const T *dloss, T *loss, T *dx, int64_t rows,
                             int64_t n, T *scratch)
{
    (void)scratch;
    NAME(ls__ref_xent)(x, t, loss, dx, rows, n);
    NAME(ls__ref_xent_grad)(dx, t, dloss, dx, rows, n);
}

void NAME(ls__ref_sigmoid_xent)(const T *x, const T *t, T *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double v = x[i];
        y[i] = (T)((v > 0 ? v : 0) - v * t[i] + log1p(exp(-fabs(v))));
    }
}

void NAME(ls__ref_mse)(const T *a, const T *b, T *y, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t k = 0; k < n; k++) {
            double d = (double)a[r * n + k] - b[r * n + k];
            sum += d * d;
        }
        y[r] = (T)(sum / (double)n);
    }
}

#undef T
#undef NAME
