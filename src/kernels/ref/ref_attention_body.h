/*
 * Attention of one element type, a row of scores at a time: included by
 * ref_attention.c for float and double, with T the type and NAME(x) the
 * function's name.
 */

/* Scores of one query, `n` keys. */
static void NAME(scores)(const ls__attention_shape *a, const T *q, const T *k, int64_t n, T *p)
{
    for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        for (int64_t c = 0; c < a->d; c++)
            sum += (double)q[c] * k[j * a->d + c];
        p[j] = (T)(sum * a->scale);
    }
}

static void NAME(attend_row)(const ls__attention_shape *a, const T *q, const T *k, const T *v,
                             int64_t n, T *y, T *lse, T *p)
{
    double max = -INFINITY, sum = 0;
    NAME(scores)(a, q, k, n, p);
    for (int64_t j = 0; j < n; j++)
        if (p[j] > max || isnan(p[j]))
            max = p[j];
    for (int64_t j = 0; j < n; j++)
        sum += exp(p[j] - max);
    *lse = (T)(n ? max + log(sum) : -INFINITY);
    for (int64_t c = 0; c < a->dv; c++) {
        double out = 0;
        for (int64_t j = 0; j < n; j++)
            out += exp(p[j] - max) / sum * v[j * a->dv + c];
        y[c] = (T)out;
    }
}

void NAME(ls__ref_attention)(const ls__attention_shape *a, const T *q, const T *k, const T *v, T *y,
                             T *lse, T *scratch)
{
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t i = 0; i < a->t; i++) {
            int64_t row = b * a->t + i;
            NAME(attend_row)
            (a, q + row * a->d, k + b * a->s * a->d, v + b * a->s * a->dv, a->causal ? i + 1 : a->s,
             y + row * a->dv, lse + row, scratch);
        }
}

/* Adds what one query row gives to dk and dv, and makes its dq. */
static void NAME(grad_row)(const ls__attention_shape *a, const T *q, const T *k, const T *v,
                           const T *dy, const T *y, double lse, int64_t n, T *dq, T *dk, T *dv,
                           T *p)
{
    double delta = 0;
    NAME(scores)(a, q, k, n, p);
    for (int64_t c = 0; c < a->dv; c++)
        delta += (double)dy[c] * y[c];
    for (int64_t c = 0; c < a->d; c++)
        dq[c] = 0;
    for (int64_t j = 0; j < n; j++) {
        double probability = exp(p[j] - lse), dp = 0;
        for (int64_t c = 0; c < a->dv; c++) {
            dp += (double)dy[c] * v[j * a->dv + c];
            dv[j * a->dv + c] += (T)(probability * dy[c]);
        }
        double ds = probability * (dp - delta) * a->scale;
        for (int64_t c = 0; c < a->d; c++) {
            dq[c] += (T)(ds * k[j * a->d + c]);
            dk[j * a->d + c] += (T)(ds * q[c]);
        }
    }
}

void NAME(ls__ref_attention_grad)(const ls__attention_shape *a, const T *q, const T *k, const T *v,
                                  const T *dy, const T *y, const T *lse, T *dq, T *dk, T *dv,
                                  T *scratch)
{
    for (int64_t i = 0; i < a->batch * a->s * a->d; i++)
        dk[i] = 0;
    for (int64_t i = 0; i < a->batch * a->s * a->dv; i++)
        dv[i] = 0;
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t i = 0; i < a->t; i++) {
            int64_t row = b * a->t + i, to_k = b * a->s * a->d, to_v = b * a->s * a->dv;
            NAME(grad_row)
            (a, q + row * a->d, k + to_k, v + to_v, dy + row * a->dv, y + row * a->dv, lse[row],
             a->causal ? i + 1 : a->s, dq + row * a->d, dk + to_k, dv + to_v, scratch);
        }
}

#undef T
#undef NAME
