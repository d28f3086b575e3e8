/*
 * Initial values. Drawn in the domain of initialisers: keyed by the seed and by
 * how many were drawn before, so they do not depend on steps or replicas.
 */
#include <lockstep/ops.h>
#include <lockstep/variable.h>
#include <math.h>

#include "base/status.h"
#include "dispatch/context.h"

/* [in, out], or [kh, kw, in, out] where each input and output sees the window. */
static ls_status fans(const char *who, ls_dtype dtype, int rank, const int64_t *dims, double *in,
                      double *out)
{
    if (!ls_dtype_is_float(dtype))
        return ls__fail(LS_SHAPE, "%s: dtype %s, wants f32, f64 or bf16", who,
                        ls_dtype_name(dtype));
    if (rank < 2 || rank > LS_MAX_RANK || !dims)
        return ls__hint(ls__fail(LS_INVALID, "%s: rank %d has no fan-in and fan-out", who, rank),
                        "give [in, out] or [kh, kw, in, out]");
    double window = 1;
    for (int i = 0; i < rank - 2; i++)
        window *= (double)dims[i];
    *in = window * (double)dims[rank - 2];
    *out = window * (double)dims[rank - 1];
    return LS_OK;
}

ls_tensor *ls_glorot_uniform(ls_dtype dtype, int rank, const int64_t *dims)
{
    double in, out;
    if (fans("ls_glorot_uniform", dtype, rank, dims, &in, &out))
        return NULL;
    double limit = sqrt(6 / fmax(in + out, 1));
    bool before = ls__draw_initialisers(true);
    ls_tensor *t = ls_random_uniform(dtype, rank, dims, -limit, limit);
    ls__draw_initialisers(before);
    return t;
}

ls_tensor *ls_he_normal(ls_dtype dtype, int rank, const int64_t *dims)
{
    double in, out;
    if (fans("ls_he_normal", dtype, rank, dims, &in, &out))
        return NULL;
    /* Cutting at two standard deviations shrinks the spread: 0.8796 of it stays. */
    double stddev = sqrt(2 / fmax(in, 1)) / 0.87962566103423978;
    bool before = ls__draw_initialisers(true);
    ls_tensor *t = ls_truncated_normal(dtype, rank, dims, 0, stddev);
    ls__draw_initialisers(before);
    return t;
}
