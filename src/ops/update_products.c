/*
 * X_products: a variable whose gradient, in each of V replicas, is the product x^T dy: the weights of a
 * dense layer. The products are made a few rows and columns at a time, added up in tree order and applied
 * while they are in a cache (DESIGN rules B and E): the gradient never reaches memory, and while the
 * next part is multiplied the weights and slots that it will change are fetched.
 *
 * There are two ways: with all of x, and without its zeros, where it has many.
 *
 * Invariants: the bits of the product, of sum_replicas and of X_update, one after the other (gemm.h: an
 * element is a chain of fma, wherever it is made); a number is updated by one rank, whichever claims its part.
 */
#include "ops/update_products.h"

#include "collective/team.h"
#include "kernels/replicas.h"
#include "kernels/threads.h"

enum { MOST = LS__PRODUCTS_MOST, LINE = LS__PRODUCTS_LINE };
_Static_assert((int)MOST <= (int)LS__CLAIMS_MOST,
               "ranks, of which there are no more than replicas, claim");

bool ls__update_products_fit(const ls__spec *x, const ls__spec *dy)
{
    if (x->dtype != LS_F32 || dy->dtype != LS_F32 || x->rank != 2 || dy->rank != 2 ||
        x->dims[0] != dy->dims[0])
        return false;
    const ls__matmul_shape s = { .batch = 1,
                                 .ta = true,
                                 .m = x->dims[1],
                                 .n = dy->dims[1],
                                 .k = x->dims[0],
                                 .lda = x->dims[1],
                                 .ldb = dy->dims[1],
                                 .ldc = dy->dims[1] };
    return ls__matmul_route_f32(&s) == LS__MATMUL_OWN;
}

/* ---- shape -------------------------------------------------------------------------------------- */

static ls_status shape(ls_call *c)
{
    const ls__update_kind *kind = ls__update_kind_of(c->op);
    const ls__reduced_attrs *a = c->attrs;
    const int first = kind->numbers;
    if (a->groups.first != first || a->groups.replicas < 1 || a->groups.replicas > MOST)
        return ls_call_fail(c, LS_INVALID,
                            "%lld replicas from input %lld on, wants 1 to %d from %d on",
                            (long long)a->groups.replicas, (long long)a->groups.first, MOST, first);
    const int v = (int)a->groups.replicas;
    if (c->n_inputs != first + 2 * v)
        return ls_call_fail(c, LS_INVALID, "%d inputs for %d replicas", c->n_inputs, v);
    ls_status st = ls__update_check_count(c, kind->cells);
    if (!st)
        st = ls__update_check_numbers(c, kind, 0);
    for (int r = 0; r < v && !st; r++) {
        const ls__spec *x = c->in[first + r], *dy = c->in[first + v + r];
        if (!ls__update_products_fit(x, dy))
            return ls_call_fail(c, LS_SHAPE, "no product of %s and %s", ls__spec_text(x),
                                ls__spec_text(dy));
        const ls__spec gradient = { LS_F32, 2, { x->dims[1], dy->dims[1] } };
        st = ls__update_check(c, kind, &gradient, c->cells);
    }
    return st;
}

/* ---- for the ways ------------------------------------------------------------------------------- */

int64_t ls__products_lines(const ls__products_job *j, int64_t tall, int64_t wide,
                           const float **lines)
{
    int64_t n = 0;
    for (int64_t i = 0; i < tall; i++)
        for (int64_t k = 0; k < wide; k += LINE)
            for (int c = 0; c < j->cells; c++)
                lines[n++] = j->at[c] + i * j->n + k;
    return n;
}

void ls__products_apply(const ls__products_job *j, const ls__products_part *p, const float *tiles,
                        int64_t apart, int64_t ld, float *sum)
{
    const int pairs = ls__products_tiles(j);
    for (int64_t i = 0; i < p->tall; i++) {
        const void *parts[MOST];
        void *at[1 + LS__MOST_SLOTS];
        for (int r = 0; r < pairs; r++)
            parts[r] = tiles + r * apart + i * ld;
        for (int c = 0; c < j->cells; c++)
            at[c] = j->at[c] + (p->row + i) * j->n + p->column;
        if (pairs > 1)
            LS__PICK(ls__replicas_table)->sum[LS_F32](pairs, parts, sum, p->wide);
        j->update(at, pairs > 1 ? sum : parts[0], &j->step, p->wide);
    }
}

/* ---- kernel ------------------------------------------------------------------------------------- */

static const ls__products_way *const ways[] = { &ls__products_all, &ls__products_skip };
enum { WAYS = sizeof ways / sizeof *ways };

/* The larger of what the ways need: of a replica, of a rank. */
static int64_t packed_floats(const ls__products_job *j, int replica)
{
    int64_t most = 0;
    for (int w = 0; w < WAYS; w++) {
        const int64_t floats = ways[w]->packed_floats(j, replica);
        most = floats > most ? floats : most;
    }
    return most;
}

static int64_t own_floats(const ls__products_job *j)
{
    int64_t most = 0;
    for (int w = 0; w < WAYS; w++) {
        const int64_t floats = ways[w]->own_floats(j);
        most = floats > most ? floats : most;
    }
    return most;
}

/* Sizes, from the inputs. */
static ls__products_job job_of(const ls_call *c)
{
    const int first = ls__update_kind_of(c->op)->numbers;
    ls__products_job j = { .replicas =
                               (int)((const ls__reduced_attrs *)c->attrs)->groups.replicas };
    for (int r = 0; r < j.replicas; r++) {
        const ls__spec *x = c->in[first + r], *dy = c->in[first + j.replicas + r];
        j.m = x->dims[1];
        j.n = dy->dims[1];
        j.of[r].k = dy->dims[0];
        j.deepest = dy->dims[0] > j.deepest ? dy->dims[0] : j.deepest;
    }
    return j;
}

static size_t scratch(ls_call *c)
{
    const ls__products_job j = job_of(c);
    int64_t floats = j.replicas * own_floats(&j);
    for (int r = 0; r < j.replicas; r++)
        floats += packed_floats(&j, r);
    return (size_t)floats * sizeof(float);
}

/* What the call brings, and where in its scratch memory things go. */
static void take_operands(const ls_call *c, ls__products_job *j)
{
    const int first = ls__update_kind_of(c->op)->numbers;
    float *room = c->scratch;
    for (int r = 0; r < j->replicas; r++) {
        j->of[r].x = c->in_data[first + r];
        j->of[r].dy = c->in_data[first + j->replicas + r];
        j->of[r].packed = room;
        room += packed_floats(j, r);
    }
    j->own = room;
}

static void begin(ls__products_work *w, ls_call *c, int ranks, int stage)
{
    const ls__update_kind *kind = ls__update_kind_of(c->op);
    const ls__reduced_attrs *a = c->attrs;
    ls__products_job *j = &w->j;
    *j = job_of(c);
    j->update = LS__PICK(ls__update_table)->update[kind->id][0];
    j->kind = kind->id;
    j->step = ls__update_step(c, kind, &a->update, 0);
    j->cells = kind->cells;
    j->claims = &w->claims[LS__PRODUCTS_APPLY];
    j->ranks = ranks < j->replicas ? ranks : j->replicas;
    take_operands(c, j);
    w->c = c;
    ls__products_deal(w, stage);
}

void ls__update_products_begin(ls__products_work *w, ls_call *c, int ranks)
{
    begin(w, c, ranks, LS__PRODUCTS_OPEN);
}

static void join_share(void *work, int rank)
{
    ls__update_products_join(work, rank);
}

static ls_status kernel(ls_call *c)
{
    ls__products_work w;
    ls__team *team = ls__team_get();
    ls_status st = ls__update_unshare(c);
    if (st)
        return st;
    begin(&w, c, team ? team->ranks : 1, LS__PRODUCTS_OPEN + 1);
    st = ls__products_open(&w); /* here: this thread may keep a journal */
    if (!st)
        ls__team_share(team, w.j.ranks, join_share, &w);
    return st;
}

#define ROW(id, list)                                                                              \
    {                                                                                              \
        .size = sizeof(ls_op), .name = id "_products", .inputs = LS_ANY_NUMBER,                    \
        .flags = LS_OP_WRITES | LS_OP_TOTAL | LS__OP_FUSED,                                        \
        .attr_size = sizeof(ls__reduced_attrs), .attrs = list, .shape = shape, .scratch = scratch, \
        .kernel = kernel                                                                           \
    }

const ls_op ls__update_products_rows[LS__UPDATES] = { ROW("sgd", ls__sgd_reduced_attrs),
                                                      ROW("momentum", ls__momentum_reduced_attrs),
                                                      ROW("adam", ls__adam_reduced_attrs) };

const ls_op *const ls__rows_update_products[] = { &ls__update_products_rows[0],
                                                  &ls__update_products_rows[1],
                                                  &ls__update_products_rows[2], NULL };

bool ls__is_update_products(const ls_op *op)
{
    const ls__update_kind *kind = ls__update_kind_of(op);
    return kind && op == kind->products;
}
