/*
 * Packs, planned in three steps: tensors become units (a tensor, or a run of small ones), units are
 * put in order, and packs are cut off that order, by elements or between units. Tensors without
 * elements take part in none of it.
 *
 * One pack of everything is what most reductions want: it is recognised first and allocates
 * nothing.
 */
#include "collective/packs.h"

#include <stdlib.h>

#include "base/status.h"

/* ---- options --------------------------------------------------------------------------- */

ls_status ls__packing_check(const char *who, const ls__packing *p)
{
    if (p->num_packs < 0 || p->num_packs > LS__MOST_PACKS)
        return ls__hint(ls__fail(LS_INVALID, "%s: num_packs %d", who, p->num_packs),
                        "1 to %d packs; 0 leaves the tensors in one", LS__MOST_PACKS);
    if (p->bytes_per_pack < 0)
        return ls__hint(
            ls__fail(LS_INVALID, "%s: bytes_per_pack %lld", who, (long long)p->bytes_per_pack),
            "bytes from 1 on; 0 leaves the tensors in one pack");
    if (p->num_packs && p->bytes_per_pack)
        return ls__hint(ls__fail(LS_INVALID, "%s: num_packs %d and bytes_per_pack %lld", who,
                                 p->num_packs, (long long)p->bytes_per_pack),
                        "packs are made by number or by size: give one of them");
    if (p->small_bytes < 0 || p->small_group < 0)
        return ls__hint(ls__fail(LS_INVALID, "%s: small_bytes %lld, small_group %d", who,
                                 (long long)p->small_bytes, p->small_group),
                        "neither is below 0; both 0: small tensors are like others");
    if (!p->small_bytes != !p->small_group)
        return ls__hint(ls__fail(LS_INVALID, "%s: small_bytes %lld, small_group %d", who,
                                 (long long)p->small_bytes, p->small_group),
                        "small_bytes says which tensors are small, small_group how many go "
                        "together: give both or none");
    return LS_OK;
}

/* ---- the single rules --------------------------------------------------------------------- */

int64_t ls__pack_by_number(int64_t total, int packs, int pack)
{
    int64_t each = total / packs;
    return pack < packs - 1 ? each : total - each * (packs - 1);
}

ls_status ls__pack_by_size(int n, const int64_t *bytes, int64_t per_pack, int *sizes, int *packs)
{
    if (per_pack < 0)
        return ls__hint(ls__fail(LS_INVALID, "packs of %lld bytes", (long long)per_pack),
                        "bytes from 1 on; 0 stands for one pack");
    bool single = per_pack == 0;
    for (int i = 0; i < n; i++)
        single |= bytes[i] < 0;
    int made = 0;
    int64_t left = per_pack; /* below 0: the last pack is larger than per_pack */
    for (int i = 0; i < n; i++) {
        if (made == 0 || (!single && left < 0)) {
            sizes[made++] = 0;
            left = per_pack;
        }
        sizes[made - 1]++;
        left = left < 0 ? left : left - bytes[i];
    }
    *packs = made;
    return LS_OK;
}

/* The end of the run of small tensors that begins at `first`. */
static int run_end(int n, const bool *small, int most, int first)
{
    int last = first;
    while (last + 1 < n && small[last + 1] && last - first <= most)
        last++;
    return last + 1;
}

int ls__pack_small(int n, const bool *small, int most, int *order, int *ends)
{
    int units = 0, at = 0;
    for (int pass = 0; pass < 2; pass++) { /* runs, then the others */
        for (int i = 0, end; i < n; i = end) {
            end = small[i] ? run_end(n, small, most, i) : i + 1;
            if ((end - i > 1) != (pass == 0))
                continue;
            for (int k = i; k < end; k++)
                order[at++] = k;
            ends[units++] = at;
        }
    }
    return units;
}

/* ---- the plan ------------------------------------------------------------------------------ */

typedef struct totals {
    int tensors; /* with elements */
    int64_t elements, bytes;
} totals;

static ls_status add_up(int n, const int64_t *counts, const ls_dtype *dtypes, totals *out)
{
    *out = (totals){ .tensors = 0 };
    for (int i = 0; i < n; i++) {
        int64_t bytes;
        if (counts[i] < 0)
            return ls__fail(LS_INVALID, "packs: tensor %d has %lld elements", i,
                            (long long)counts[i]);
        if (__builtin_mul_overflow(counts[i], (int64_t)ls_dtype_size(dtypes[i]), &bytes) ||
            __builtin_add_overflow(out->bytes, bytes, &out->bytes) ||
            __builtin_add_overflow(out->elements, counts[i], &out->elements))
            return ls__fail(LS_INVALID, "packs: tensors 0 to %d have more than 2^63 bytes", i);
        out->tensors += counts[i] > 0;
    }
    return LS_OK;
}

static bool is_one_pack(const ls__packing *p, const totals *t)
{
    if (t->tensors < 2 && p->num_packs < 2)
        return true;
    if (p->num_packs)
        return p->num_packs == 1 ||
               p->num_packs > t->elements; /* else all but the last are empty */
    if (p->bytes_per_pack)
        return p->bytes_per_pack >= t->bytes;
    return p->small_bytes == 0;
}

/* A plan in the making; the arrays are one block, freed when it is made. */
typedef struct draft {
    const ls__packing *p;
    const int64_t *counts;
    int *which; /* tensors with elements; all arrays have room for as many */
    int *order; /* places in `which`, units behind one another */
    int *units; /* where each unit ends in `order` */
    int n_units;
    int *sizes;
    int64_t *bytes;
    bool *small;
    ls__packs *out;
} draft;

static void end_pack(draft *d)
{
    d->out->ends[d->out->packs++] = d->out->pieces;
}

static void add_piece(draft *d, int at, int64_t first, int64_t count)
{
    d->out->list[d->out->pieces++] = (ls__pack_piece){ d->which[d->order[at]], first, count };
}

static void add_unit(draft *d, int unit)
{
    for (int at = unit ? d->units[unit - 1] : 0; at < d->units[unit]; at++)
        add_piece(d, at, 0, d->counts[d->which[d->order[at]]]);
}

static void cut_by_number(draft *d, int64_t total, int packs)
{
    int at = 0;
    int64_t first = 0; /* of the tensor at `at` */
    for (int pack = 0; pack < packs; pack++) {
        for (int64_t left = ls__pack_by_number(total, packs, pack); left > 0;) {
            int64_t rest = d->counts[d->which[d->order[at]]] - first;
            int64_t take = rest < left ? rest : left;
            add_piece(d, at, first, take);
            left -= take;
            first = take == rest ? 0 : first + take;
            at += take == rest;
        }
        end_pack(d);
    }
}

/* Last to first: a backward pass makes gradients in that order. */
static ls_status cut_by_size(draft *d, const ls_dtype *dtypes)
{
    for (int u = 0; u < d->n_units; u++) {
        int64_t bytes = 0;
        for (int at = u ? d->units[u - 1] : 0; at < d->units[u]; at++) {
            int tensor = d->which[d->order[at]];
            bytes += d->counts[tensor] * (int64_t)ls_dtype_size(dtypes[tensor]);
        }
        d->bytes[d->n_units - 1 - u] = bytes;
    }
    int packs;
    ls_status st = ls__pack_by_size(d->n_units, d->bytes, d->p->bytes_per_pack, d->sizes, &packs);
    if (st)
        return st;
    for (int pack = 0, unit = d->n_units; pack < packs; pack++) {
        for (int i = 0; i < d->sizes[pack]; i++)
            add_unit(d, --unit);
        end_pack(d);
    }
    return LS_OK;
}

/* Tensors with elements, as units. */
static void make_units(draft *d, int n, const ls_dtype *dtypes)
{
    int k = 0;
    for (int i = 0; i < n; i++) {
        if (d->counts[i] == 0)
            continue;
        d->small[k] = dtypes[i] == LS_F32 && d->counts[i] <= d->p->small_bytes / 4;
        d->which[k++] = i;
    }
    d->n_units = ls__pack_small(k, d->small, d->p->small_group, d->order, d->units);
}

static ls_status cut(draft *d, int64_t elements, const ls_dtype *dtypes)
{
    if (d->p->num_packs) {
        cut_by_number(d, elements, d->p->num_packs);
    } else if (d->p->bytes_per_pack) {
        return cut_by_size(d, dtypes);
    } else { /* a pack for each unit */
        for (int u = 0; u < d->n_units; u++) {
            add_unit(d, u);
            end_pack(d);
        }
    }
    return LS_OK;
}

static ls_status plan_many(const ls__packing *p, int n, const totals *t, const ls_dtype *dtypes,
                           ls__packs *out)
{
    size_t tensors = (size_t)t->tensors, most = tensors + (size_t)p->num_packs;
    draft d = { .p = p, .counts = out->counts, .out = out };
    size_t each = 4 * sizeof(int) + sizeof(int64_t) + sizeof(bool);
    out->list = malloc(most * (sizeof *out->list + sizeof *out->ends));
    d.bytes = malloc(tensors * each);
    ls_status st = LS_OK;
    if (!out->list || !d.bytes) {
        st = ls__fail_memory("packs", most * sizeof *out->list);
    } else {
        out->ends = (int *)(out->list + most);
        d.which = (int *)(d.bytes + tensors);
        d.order = d.which + tensors;
        d.units = d.order + tensors;
        d.sizes = d.units + tensors;
        d.small = (bool *)(d.sizes + tensors);
        make_units(&d, n, dtypes);
        st = cut(&d, t->elements, dtypes);
    }
    free(d.bytes);
    if (st)
        ls__packs_free(out);
    return st;
}

ls_status ls__packs_plan(const ls__packing *p, int n, const int64_t *counts, const ls_dtype *dtypes,
                         ls__packs *out)
{
    totals t;
    ls_status st = ls__packing_check("packs", p);
    if (!st)
        st = add_up(n, counts, dtypes, &t);
    if (st)
        return st;
    ls__packs made = { .counts = counts };
    bool one = is_one_pack(p, &t);
    if (one && t.tensors == n) {
        made.packs = n > 0;
        made.pieces = n;
    } else if (t.tensors > 0) {
        static const ls__packing by_number = { .num_packs = 1 };
        st = plan_many(one ? &by_number : p, n, &t, dtypes, &made);
    }
    if (!st)
        *out = made;
    return st;
}

void ls__packs_free(ls__packs *packs)
{
    if (!packs)
        return;
    free(packs->list); /* and the ends, which are behind it */
    *packs = (ls__packs){ .packs = 0 };
}
