/*
 * Sparse tensors: rows of a table, the rest zero. Invariant: the handle's spec is
 * the dense shape, its storage and identity are those of the values, and
 * sparse_rows names the row of each. So a tape that knows the values knows the
 * sparse tensor too.
 */
#include <lockstep/tape.h>
#include <stdatomic.h>

#include "dispatch/call.h"

static ls_status check_parts(const ls_tensor *rows, const ls_tensor *values, int64_t table_rows)
{
    const ls__spec *r = &rows->spec, *v = &values->spec;
    if (!(LS__INDEXES & LS__BIT(r->dtype)) || r->rank != 1)
        return ls__fail(LS_SHAPE, "ls_sparse: rows wants i32 or i64 [n], got %s",
                        ls__spec_text(r));
    if (v->rank < 1 || v->dims[0] != r->dims[0] || values->sparse_rows)
        return ls__fail(LS_SHAPE, "ls_sparse: values wants [%lld, ...], got %s",
                        (long long)r->dims[0], ls__spec_text(v));
    if (table_rows < 0)
        return ls__fail(LS_INVALID, "ls_sparse: a table of %lld rows", (long long)table_rows);
    return LS_OK;
}

ls_tensor *ls_sparse(ls_tensor *rows, ls_tensor *values, int64_t table_rows)
{
    if (ls__check_tensor("ls_sparse", "rows", rows) ||
        ls__check_tensor("ls_sparse", "values", values) || check_parts(rows, values, table_rows))
        return NULL;
    ls__spec dense = values->spec;
    dense.dims[0] = table_rows;
    if (ls__spec_make(&dense, "ls_sparse", dense.dtype, dense.rank, dense.dims))
        return NULL;
    ls_tensor *own_rows = ls__same_value(rows);
    if (!own_rows)
        return NULL;
    ls_tensor *t =
        ls__handle(&dense, ls__storage_ref(values->storage), values->id, values->device);
    if (t)
        t->sparse_rows = own_rows;
    return t;
}

bool ls_is_sparse(const ls_tensor *t)
{
    return t && t->sparse_rows;
}

static ls_status want_sparse(const char *who, const ls_tensor *t)
{
    ls_status st = ls__check_tensor(who, "t", t);
    if (!st && !t->sparse_rows)
        st = ls__fail(LS_INVALID, "%s: %s is dense", who, ls_describe(t));
    return st;
}

ls_tensor *ls_sparse_rows(const ls_tensor *t)
{
    return want_sparse("ls_sparse_rows", t) ? NULL : ls__same_value(t->sparse_rows);
}

ls_tensor *ls_sparse_values(const ls_tensor *t)
{
    if (want_sparse("ls_sparse_values", t))
        return NULL;
    ls__spec spec = t->spec;
    spec.dims[0] = t->sparse_rows->spec.dims[0];
    return ls__handle(&spec, ls__storage_ref(t->storage), t->id, t->device);
}

ls_tensor *ls_densify(ls_tensor *t)
{
    if (ls__check_tensor("ls_densify", "t", t))
        return NULL;
    if (!t->sparse_rows)
        return t;
    static _Atomic(const ls_op *) found; /* threads that race here find the same row */
    const ls_op *scatter = atomic_load_explicit(&found, memory_order_relaxed);
    if (!scatter) {
        scatter = ls_op_find("scatter_rows");
        atomic_store_explicit(&found, scatter, memory_order_relaxed);
    }
    struct {
        int64_t rows;
    } attrs = { t->spec.dims[0] };
    return ls__call2(scatter, &attrs, ls_sparse_rows(t), ls_sparse_values(t));
}
