/*
 * The same elements under another shape: reshape, identity, stop_gradient and
 * what is composed of reshape. Invariant: no element moves and no memory is
 * taken; the result shares its input's storage (LS_OP_ALIAS).
 */
#include <lockstep/ops.h>
#include <lockstep/tape.h>
#include <string.h>

#include "dispatch/call.h"

/* ---- reshape --------------------------------------------------------------- */

typedef struct reshape_attrs {
    ls_ints shape;
} reshape_attrs;

static const ls_attr reshape_attr_list[] = { LS_ATTR_INTS(reshape_attrs, shape), LS_ATTR_END };

static ls_status reshape_shape(ls_call *c)
{
    const ls_ints *want = &((const reshape_attrs *)c->attrs)->shape;
    int64_t dims[LS_MAX_RANK], known = 1, count = ls__spec_count(c->in[0]);
    int open = -1;
    if (want->count < 0 || want->count > LS_MAX_RANK)
        return ls_call_fail(c, LS_INVALID, "%lld dimensions, 0 to %d are possible",
                            (long long)want->count, LS_MAX_RANK);
    for (int i = 0; i < want->count; i++) {
        dims[i] = want->at[i];
        if (dims[i] == -1 && open < 0) {
            open = i;
        } else if (dims[i] < 0) {
            return ls_call_fail(c, LS_INVALID,
                                "size %lld of dimension %d; sizes are not negative, and one may "
                                "be -1",
                                (long long)dims[i], i);
        } else if (__builtin_mul_overflow(known, dims[i], &known)) {
            return ls_call_fail(c, LS_SHAPE, "the new shape has more elements than fit in int64");
        }
    }
    if (open >= 0) {
        if (known == 0 || count % known)
            return ls_call_fail(c, LS_SHAPE,
                                "%lld elements do not fill dimension %d (-1): the other sizes "
                                "make %lld",
                                (long long)count, open, (long long)known);
        dims[open] = count / known;
    } else if (known != count) {
        return ls_call_fail(c, LS_SHAPE, "%lld elements do not fill a shape of %lld",
                            (long long)count, (long long)known);
    }
    return ls_call_output(c, 0, c->in[0]->dtype, (int)want->count, dims);
}

static ls_status reshape_gradient(ls_grad *g)
{
    ls_tensor *x = ls_grad_input(g, 0);
    return ls_grad_give(g, 0, ls_reshape(ls_grad_output(g, 0), ls_rank(x), ls_shape(x)));
}

static const ls_op reshape = {
    .size = sizeof(ls_op),
    .name = "reshape",
    .inputs = 1,
    .outputs = 1,
    .flags = LS_OP_ALIAS | LS_OP_TAKES_STRINGS,
    .attr_size = sizeof(reshape_attrs),
    .attrs = reshape_attr_list,
    .shape = reshape_shape,
    .gradient = reshape_gradient,
};

ls_tensor *ls_reshape(ls_tensor *x, int rank, const int64_t *dims)
{
    reshape_attrs attrs;
    memset(&attrs, 0, sizeof attrs);
    if (ls__ints(&attrs.shape, "reshape", "dims", rank, dims))
        return NULL;
    return ls__call1(&reshape, &attrs, x);
}

/* ---- composed of it ----------------------------------------------------------- */

ls_tensor *ls_flatten_rows(ls_tensor *x)
{
    if (ls__check_tensor("flatten_rows", "x", x))
        return NULL;
    if (ls_rank(x) < 1) {
        ls__fail(LS_SHAPE, "flatten_rows: %s has no rows, wants rank 1 or more", ls_describe(x));
        return NULL;
    }
    /* Multiplied out: -1 would not know what remains of zero rows. */
    int64_t rest = 1;
    for (int i = 1; i < ls_rank(x); i++)
        rest *= ls_shape(x)[i];
    return ls_reshape(x, LS_DIMS(ls_shape(x)[0], rest));
}

ls_tensor *ls_expand_dims(ls_tensor *x, int axis)
{
    if (ls__check_tensor("expand_dims", "x", x))
        return NULL;
    int rank = ls_rank(x), at = ls__axis(axis, rank + 1);
    if (rank == LS_MAX_RANK) {
        ls__fail(LS_SHAPE, "expand_dims: %s has %d dimensions already, the most there can be",
                 ls_describe(x), rank);
        return NULL;
    }
    if (at < 0) {
        ls__hint(ls__fail(LS_INVALID, "expand_dims: a new axis %d of %s", axis, ls_describe(x)),
                 "its place is %d to %d", -rank - 1, rank);
        return NULL;
    }
    int64_t dims[LS_MAX_RANK];
    for (int i = 0; i <= rank; i++)
        dims[i] = i == at ? 1 : ls_shape(x)[i - (i > at)];
    return ls_reshape(x, rank + 1, dims);
}

ls_tensor *ls_squeeze(ls_tensor *x, int count, const int64_t *axes)
{
    if (ls__check_tensor("squeeze", "x", x))
        return NULL;
    int rank = ls_rank(x), left = 0;
    bool gone[LS_MAX_RANK] = { false };
    ls_ints list;
    if (count >= 0 && ls__ints(&list, "squeeze", "axes", count, axes))
        return NULL;
    for (int i = 0; i < rank && count < 0; i++)
        gone[i] = ls_shape(x)[i] == 1;
    for (int i = 0; i < count; i++) {
        int at = ls__axis(list.at[i], rank);
        if (at < 0) {
            ls__fail(LS_INVALID, "squeeze: axis %lld of %s", (long long)list.at[i], ls_describe(x));
            return NULL;
        }
        if (ls_shape(x)[at] != 1) {
            ls__fail(LS_SHAPE, "squeeze: axis %d of %s has size %lld, wants 1", at, ls_describe(x),
                     (long long)ls_shape(x)[at]);
            return NULL;
        }
        gone[at] = true;
    }
    int64_t dims[LS_MAX_RANK];
    for (int i = 0; i < rank; i++)
        if (!gone[i])
            dims[left++] = ls_shape(x)[i];
    return ls_reshape(x, left, dims);
}

/* ---- identity and stop_gradient -------------------------------------------------- */

static ls_status same_shape(ls_call *c)
{
    return ls__output_like(c, 0, 0);
}

static ls_status identity_gradient(ls_grad *g)
{
    return ls_grad_give(g, 0, ls_grad_output(g, 0));
}

static const ls_op identity = {
    .size = sizeof(ls_op),
    .name = "identity",
    .inputs = 1,
    .outputs = 1,
    .flags = LS_OP_ALIAS | LS_OP_TAKES_STRINGS,
    .shape = same_shape,
    .gradient = identity_gradient,
};

static const ls_op stop_gradient = {
    .size = sizeof(ls_op),
    .name = "stop_gradient",
    .inputs = 1,
    .outputs = 1,
    .flags = LS_OP_ALIAS | LS_OP_TAKES_STRINGS,
    .shape = same_shape,
};

ls_tensor *ls_identity(ls_tensor *x)
{
    return ls__call1(&identity, NULL, x);
}

ls_tensor *ls_stop_gradient(ls_tensor *x)
{
    return ls__call1(&stop_gradient, NULL, x);
}

const ls_op *const ls__rows_reshape[] = { &reshape, &identity, &stop_gradient, NULL };
