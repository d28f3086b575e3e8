/*
 * What rows see of a call: the public accessors, and the checks that shape rules
 * share. Every error begins with the operator's name and ends with its inputs.
 */
#include "dispatch/call.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A row that asks for what a call has not is told so, and fails. */
static bool in_range(const ls_call *c, const char *what, int i, int n)
{
    if (i >= 0 && i < n)
        return true;
    ls__fail(LS_INVALID, "%s: asks for %s %d of %d", c->op->name, what, i, n);
    return false;
}

static bool has_input(const ls_call *c, int i)
{
    return in_range(c, "input", i, c->n_inputs);
}

static bool has_output(const ls_call *c, int i)
{
    return in_range(c, "output", i, c->n_outputs);
}

int ls_call_inputs(const ls_call *c)
{
    return c->n_inputs;
}

ls_dtype ls_call_dtype(const ls_call *c, int i)
{
    return has_input(c, i) ? c->in[i]->dtype : (ls_dtype)0;
}

int ls_call_rank(const ls_call *c, int i)
{
    return has_input(c, i) ? c->in[i]->rank : 0;
}

const int64_t *ls_call_shape(const ls_call *c, int i)
{
    return has_input(c, i) ? c->in[i]->dims : NULL;
}

int64_t ls_call_count(const ls_call *c, int i)
{
    return has_input(c, i) ? ls__spec_count(c->in[i]) : 0;
}

const void *ls_call_attrs(const ls_call *c)
{
    return c->attrs;
}

ls_status ls_call_output(ls_call *c, int i, ls_dtype dtype, int rank, const int64_t *dims)
{
    if (!has_output(c, i))
        return LS_INVALID;
    return ls__spec_make(&c->out[i], c->op->name, dtype, rank, dims);
}

const void *ls_call_in(const ls_call *c, int i)
{
    return has_input(c, i) ? c->in_data[i] : NULL;
}

void *ls_call_out(const ls_call *c, int i)
{
    return has_output(c, i) ? c->out_data[i] : NULL;
}

int64_t ls_call_out_count(const ls_call *c, int i)
{
    return has_output(c, i) ? ls__spec_count(&c->out[i]) : 0;
}

const int64_t *ls_call_out_shape(const ls_call *c, int i)
{
    return has_output(c, i) ? c->out[i].dims : NULL;
}

void *ls_call_scratch(const ls_call *c)
{
    return c->scratch;
}

ls_status ls_call_fail(const ls_call *c, ls_status status, const char *format, ...)
{
    char what[320], inputs[160] = "";
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    int at = 0;
    for (int i = 0; i < c->n_inputs && at < (int)sizeof inputs - 1; i++)
        at += snprintf(inputs + at, sizeof inputs - (size_t)at, "%s%s", i ? ", " : "",
                       ls__spec_text(c->in[i]));
    if (c->n_inputs == 0)
        return ls__fail(status, "%s: %s", c->op->name, what);
    return ls__fail(status, "%s: %s; given (%s)", c->op->name, what, inputs);
}

/* ---- shape rules' checks --------------------------------------------------------- */

ls_status ls__want_dtype(const ls_call *c, int input, unsigned set)
{
    if (set & LS__BIT(c->in[input]->dtype))
        return LS_OK;
    char names[64] = "";
    for (int d = LS_F32, at = 0; d <= LS_BYTES; d++)
        if (set & LS__BIT(d))
            at += snprintf(names + at, sizeof names - (size_t)at, " %s", ls_dtype_name((ls_dtype)d));
    return ls_call_fail(c, LS_SHAPE, "input %d is %s, wants%s%s", input,
                        ls_dtype_name(c->in[input]->dtype), set & (set - 1) ? " one of" : "",
                        names);
}

ls_status ls__want_same_dtype(const ls_call *c, int a, int b)
{
    if (c->in[a]->dtype == c->in[b]->dtype)
        return LS_OK;
    return ls__hint(ls_call_fail(c, LS_SHAPE, "inputs %d and %d have different dtypes", a, b),
                    "convert one with ls_cast");
}

ls_status ls__want_rank(const ls_call *c, int input, int rank)
{
    if (c->in[input]->rank == rank)
        return LS_OK;
    return ls_call_fail(c, LS_SHAPE, "input %d has rank %d, wants %d", input, c->in[input]->rank,
                        rank);
}

ls_status ls__want_rank_at_least(const ls_call *c, int input, int rank)
{
    if (c->in[input]->rank >= rank)
        return LS_OK;
    return ls_call_fail(c, LS_SHAPE, "input %d has rank %d, wants at least %d", input,
                        c->in[input]->rank, rank);
}

ls_status ls__want_spec(const ls_call *c, int input, const ls__spec *spec)
{
    if (ls__spec_equal(c->in[input], spec))
        return LS_OK;
    return ls_call_fail(c, LS_SHAPE, "input %d should be %s", input, ls__spec_text(spec));
}

ls_status ls__want_axis(const ls_call *c, int64_t axis, int rank, int *out)
{
    int at = ls__axis(axis, rank);
    if (at < 0) {
        ls_status st = ls_call_fail(c, LS_INVALID, "axis %lld of a rank-%d value", (long long)axis,
                                    rank);
        return rank == 0 ? ls__hint(st, "a single number has no axes")
                         : ls__hint(st, "axes run from %d to %d", -rank, rank - 1);
    }
    *out = at;
    return LS_OK;
}

ls_status ls__want_broadcast(const ls_call *c, const ls__spec *a, const ls__spec *b, ls__spec *out)
{
    int rank = a->rank > b->rank ? a->rank : b->rank;
    ls__spec result = { .dtype = a->dtype, .rank = rank };
    for (int i = 0; i < rank; i++) { /* i counts from the last axis */
        int64_t x = i < a->rank ? a->dims[a->rank - 1 - i] : 1;
        int64_t y = i < b->rank ? b->dims[b->rank - 1 - i] : 1;
        if (x != y && x != 1 && y != 1)
            return ls__hint(ls_call_fail(c, LS_SHAPE, "shapes %s and %s do not broadcast",
                                         ls__spec_text(a), ls__spec_text(b)),
                            "sizes are matched from the last axis; they must be equal or 1");
        result.dims[rank - 1 - i] = x == 1 ? y : x;
    }
    *out = result;
    return LS_OK;
}

ls_status ls__output_spec(ls_call *c, int index, const ls__spec *spec)
{
    return ls_call_output(c, index, spec->dtype, spec->rank, spec->dims);
}

ls_status ls__output_like(ls_call *c, int index, int input)
{
    return ls__output_as(c, index, c->in[input]->dtype, input);
}

ls_status ls__output_as(ls_call *c, int index, ls_dtype dtype, int input)
{
    return ls_call_output(c, index, dtype, c->in[input]->rank, c->in[input]->dims);
}

ls_status ls__ints(ls_ints *out, const char *who, const char *what, int64_t count,
                   const int64_t *values)
{
    if (count < 0 || count > LS_MAX_RANK)
        return ls__hint(ls__fail(LS_INVALID, "%s: %lld numbers of %s", who, (long long)count, what),
                        "at most %d", LS_MAX_RANK);
    if (count > 0 && !values)
        return ls__fail(LS_INVALID, "%s: %s is NULL", who, what);
    memset(out, 0, sizeof *out);
    out->count = count;
    if (count > 0)
        memcpy(out->at, values, sizeof *values * (size_t)count);
    return LS_OK;
}
