/*
 * Normalisation of one element type: included by ref_norm.c for float and
 * double, with T the type and NAME(x) the function's name. Sums are made in
 * double.
 */

/* Mean and variance of n elements `step` apart. */
static void NAME(stats)(const T *x, int64_t n, int64_t step, double *mean, double *variance)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i * step];
    *mean = n ? sum / (double)n : 0;
    for (int64_t i = 0; i < n; i++)
        squares += (x[i * step] - *mean) * (x[i * step] - *mean);
    *variance = n ? squares / (double)n : 0;
}

void NAME(ls__ref_norm_batch_stats)(const T *x, T *mean, T *variance, int64_t rows, int64_t cols)
{
    for (int64_t c = 0; c < cols; c++) {
        double m, v;
        NAME(stats)(x + c, rows, cols, &m, &v);
        mean[c] = (T)m;
        variance[c] = (T)v;
    }
}

void NAME(ls__ref_norm_batch_apply)(const T *x, const T *mean, const T *rstd, const T *scale,
                                    const T *offset, T *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows * cols; i++) {
        int64_t c = i % cols;
        y[i] = (x[i] - mean[c]) * (rstd[c] * scale[c]) + offset[c];
    }
}

void NAME(ls__ref_norm_batch_grad)(const T *x, const T *dy, const T *mean, const T *rstd,
                                   const T *scale, T *dx, T *dscale, T *doffset, int64_t rows,
                                   int64_t cols)
{
    for (int64_t c = 0; c < cols; c++) {
        double sum = 0, dot = 0;
        for (int64_t r = 0; r < rows; r++) {
            sum += dy[r * cols + c];
            dot += (double)dy[r * cols + c] * (x[r * cols + c] - mean[c]) * rstd[c];
        }
        for (int64_t r = 0; r < rows; r++) {
            double normal = (x[r * cols + c] - mean[c]) * rstd[c];
            double d = dy[r * cols + c] - sum / (double)rows - normal * dot / (double)rows;
            dx[r * cols + c] = (T)(scale[c] * rstd[c] * d);
        }
        dscale[c] = (T)dot;
        doffset[c] = (T)sum;
    }
}

void NAME(ls__ref_norm_layer)(const T *x, const T *scale, const T *offset, T epsilon, T *y, T *mean,
                              T *rstd, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++) {
        double m, v;
        NAME(stats)(x + r * cols, cols, 1, &m, &v);
        mean[r] = (T)m;
        rstd[r] = (T)(1 / sqrt(v + (double)epsilon));
        for (int64_t c = 0; c < cols; c++)
            y[r * cols + c] = (x[r * cols + c] - mean[r]) * rstd[r] * scale[c] + offset[c];
    }
}

void NAME(ls__ref_norm_layer_grad)(const T *x, const T *dy, const T *mean, const T *rstd,
                                   const T *scale, T *dx, T *dscale, T *doffset, int64_t rows,
                                   int64_t cols, T *scratch)
{
    (void)scratch;
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0, dot = 0;
        for (int64_t c = 0; c < cols; c++) {
            double g = (double)dy[r * cols + c] * scale[c];
            sum += g;
            dot += g * (x[r * cols + c] - mean[r]) * rstd[r];
        }
        for (int64_t c = 0; c < cols; c++) {
            double normal = (x[r * cols + c] - mean[r]) * rstd[r];
            double g = (double)dy[r * cols + c] * scale[c];
            dx[r * cols + c] = (T)(rstd[r] * (g - (sum + normal * dot) / (double)cols));
        }
    }
    for (int64_t c = 0; c < cols; c++) {
        double sum = 0, dot = 0;
        for (int64_t r = 0; r < rows; r++) {
            sum += dy[r * cols + c];
            dot += (double)dy[r * cols + c] * (x[r * cols + c] - mean[r]) * rstd[r];
        }
        dscale[c] = (T)dot;
        doffset[c] = (T)sum;
    }
}

#undef T
#undef NAME
