/*
 * X_products: a variable whose gradient, in each of V replicas, is the product x^T dy: the weights of a
 * dense layer. The products are made a few rows and columns at a time, added up in tree order and applied
 * while they are in the first cache (DESIGN rules B and E): the gradient never reaches memory, and while the
 * next part is multiplied the weights and slots that it will change are fetched.
 *
 * Invariants: the bits of the product, of sum_replicas and of X_update, one after the other (gemm.h: an
 * element is a chain of fma, wherever it is made); ranks have rows of their own.
 */
#include <string.h>

#include "collective/team.h"
#include "kernels/gemm.h"
#include "kernels/replicas.h"
#include "kernels/threads.h"
#include "ops/update.h"

enum {
    MOST = LS__PRODUCTS_MOST,
    COLUMNS = 128,                                                   /* made at once */
    LINE = 16,                                                       /* floats */
    TILE = LS__GEMM_TALL * COLUMNS,                                  /* floats of a replica's */
    LINES = (1 + LS__MOST_SLOTS) * LS__GEMM_TALL * (COLUMNS / LINE), /* of all that changes */
};

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

/* ---- kernel ------------------------------------------------------------------------------------- */

/* One replica's. */
typedef struct operand {
    const float *x, *dy;
    int64_t k;     /* rows of both */
    float *panels; /* dy, packed */
} operand;

typedef struct job {
    const ls__gemm_pieces *gemm;
    ls__update_fn *update;
    ls__update step;
    int replicas, cells, ranks;
    bool beside; /* a tile is applied while the next is made */
    operand of[MOST];
    int64_t m, n, deepest; /* of the variable; the largest k */
    float *at[1 + LS__MOST_SLOTS];
    float *own; /* of the ranks: rank after rank */
} job;

/* Tiles of all replicas: the leaves of the tree are added up two by two as they are made. */
static int tiles_of(int replicas)
{
    return (replicas + 1) / 2;
}

/* Floats of a rank: packed rows of each replica, tiles (and those before them, which are applied beside), and a
 * row of their sum. */
static int64_t own_floats(int replicas, int64_t deepest)
{
    return replicas * deepest * LINE + (tiles_of(replicas) + 1) * TILE + COLUMNS;
}

static size_t scratch(ls_call *c)
{
    const ls__update_kind *kind = ls__update_kind_of(c->op);
    const int v = (int)((const ls__reduced_attrs *)c->attrs)->groups.replicas;
    int64_t floats = 0, deepest = 0;
    for (int r = 0; r < v; r++) {
        const ls__spec *dy = c->in[kind->numbers + v + r];
        floats += ls__gemm_panel_floats(dy->dims[0], dy->dims[1]);
        deepest = dy->dims[0] > deepest ? dy->dims[0] : deepest;
    }
    return (size_t)(floats + v * own_floats(v, deepest)) * sizeof(float);
}

static void pack_share(void *arg, int rank)
{
    job *j = arg;
    for (int r = rank; r < j->replicas; r += j->ranks)
        j->gemm->panels(j->of[r].dy, j->n, j->of[r].k, j->n, j->of[r].panels);
}

/* Lines of the weights and slots in the first rows and columns; all others are some way on. */
static int64_t list_lines(const job *j, const float *lines[LINES])
{
    int64_t n = 0;
    for (int64_t i = 0; i < LS__GEMM_TALL; i++)
        for (int64_t k = 0; k < COLUMNS; k += LINE)
            for (int c = 0; c < j->cells; c++)
                lines[n++] = j->at[c] + i * j->n + k;
    return n;
}

/* Some rows and columns of the variable. */
typedef struct part {
    int64_t row, tall, column;
} part;

static int64_t columns_of(const job *j, const part *p)
{
    return j->n - p->column < COLUMNS ? j->n - p->column : COLUMNS;
}

/* Of all replicas. Meanwhile what changes after them is fetched. */
static void make(const job *j, const part *p, const float *rows, float *tiles,
                 const ls__gemm_meanwhile *meanwhile)
{
    const bool below = p->column + COLUMNS >= j->n;
    ls__gemm_fetch next = meanwhile->fetch;
    next.shift = below ? (p->row + p->tall) * j->n : p->row * j->n + p->column + COLUMNS;
    for (int r = 0; r < j->replicas; r++) {
        const ls__gemm_meanwhile share = { ls__gemm_fetch_part(&next, r, j->replicas),
                                           meanwhile->adam };
        j->gemm->make(rows + r * j->deepest * LINE, j->of[r].panels, j->of[r].k, j->n, p->tall,
                      p->column, COLUMNS, r % 2, tiles + r / 2 * TILE, COLUMNS, &share);
    }
}

static void apply(const job *j, const part *p, const float *tiles, float *sum)
{
    const int64_t count = columns_of(j, p);
    const int pairs = tiles_of(j->replicas);
    for (int64_t i = 0; i < p->tall; i++) {
        const void *parts[MOST];
        void *at[1 + LS__MOST_SLOTS];
        for (int r = 0; r < pairs; r++)
            parts[r] = tiles + r * TILE + i * COLUMNS;
        for (int c = 0; c < j->cells; c++)
            at[c] = j->at[c] + (p->row + i) * j->n + p->column;
        if (pairs > 1)
            LS__PICK(ls__replicas_table)->sum[LS_F32](pairs, parts, sum, count);
        j->update(at, pairs > 1 ? sum : parts[0], &j->step, count);
    }
}

/* The same to be done beside the products that come next. */
static ls__gemm_adam to_apply(const job *j, const part *p, const float *tile)
{
    const int64_t skip = p->row * j->n + p->column;
    return (ls__gemm_adam){ .w = j->at[0] + skip,
                            .m = j->at[1] + skip,
                            .v = j->at[2] + skip,
                            .ld = j->n,
                            .g = tile,
                            .ldg = COLUMNS,
                            .columns = columns_of(j, p),
                            .rows = p->tall,
                            .minus_rate = (float)-j->step.rate,
                            .epsilon = (float)j->step.epsilon,
                            .one_minus_beta1 = (float)j->step.one_minus_beta1,
                            .one_minus_beta2 = (float)j->step.one_minus_beta2 };
}

/* Whether it can be: Adam and nothing more, of sums that are made in one tile. */
static bool is_beside(const job *j, ls__update_id kind)
{
    return kind == LS__UPDATE_ADAM && ls__update_is_plain(&j->step) && tiles_of(j->replicas) == 1 &&
           j->n % LINE == 0 && ls__gemm_adam_pays();
}

static void apply_share(void *arg, int rank)
{
    const job *j = arg;
    const int64_t tiles_of_all = (j->m + LS__GEMM_TALL - 1) / LS__GEMM_TALL;
    const int64_t begin = tiles_of_all * rank / j->ranks * LS__GEMM_TALL;
    const int64_t past = tiles_of_all * (rank + 1) / j->ranks * LS__GEMM_TALL;
    const int64_t end = past < j->m ? past : j->m;
    float *rows = j->own + rank * own_floats(j->replicas, j->deepest);
    float *tiles = rows + j->replicas * j->deepest * LINE,
          *sum = tiles + (tiles_of(j->replicas) + 1) * TILE;
    const float *lines[LINES];
    ls__gemm_adam before = { .rows = 0 };
    const ls__gemm_meanwhile meanwhile = { { .lines = lines, .count = list_lines(j, lines) },
                                           j->beside ? &before : NULL };
    int turn = 0;
    for (part p = { .row = begin }; p.row < end; p.row += LS__GEMM_TALL) {
        p.tall = end - p.row < LS__GEMM_TALL ? end - p.row : LS__GEMM_TALL;
        for (int r = 0; r < j->replicas; r++)
            j->gemm->rows(j->of[r].x + p.row, j->m, j->of[r].k, p.tall,
                          rows + r * j->deepest * LINE);
        for (p.column = 0; p.column < j->n; p.column += COLUMNS) {
            float *now = tiles + turn * TILE;
            make(j, &p, rows, now, &meanwhile);
            if (j->beside) {
                j->gemm->finish_adam(&before);
                before = to_apply(j, &p, now);
                turn = 1 - turn;
            } else {
                apply(j, &p, now, sum);
            }
        }
    }
    if (j->beside)
        j->gemm->finish_adam(&before);
}

static void take_operands(const ls_call *c, job *j, int first)
{
    float *room = c->scratch;
    for (int r = 0; r < j->replicas; r++) {
        const ls__spec *dy = c->in[first + j->replicas + r];
        j->of[r] = (operand){ .x = c->in_data[first + r],
                              .dy = c->in_data[first + j->replicas + r],
                              .k = dy->dims[0],
                              .panels = room };
        room += ls__gemm_panel_floats(dy->dims[0], dy->dims[1]);
        j->deepest = j->of[r].k > j->deepest ? j->of[r].k : j->deepest;
    }
    j->own = room;
}

static ls_status kernel(ls_call *c)
{
    const ls__update_kind *kind = ls__update_kind_of(c->op);
    const ls__reduced_attrs *a = c->attrs;
    job j = { .gemm = &LS__PICK(ls__gemm_table)->pieces,
              .update = LS__PICK(ls__update_table)->update[kind->id][0],
              .step = ls__update_step(c, kind, &a->update, 0),
              .replicas = (int)a->groups.replicas,
              .cells = kind->cells,
              .m = ls__cell_spec(c->cells[0])->dims[0],
              .n = ls__cell_spec(c->cells[0])->dims[1] };
    take_operands(c, &j, kind->numbers);
    j.beside = is_beside(&j, kind->id);
    ls_status st = ls__update_unshare(c);
    if (st)
        return st;
    for (int i = 0; i < j.cells; i++) {
        j.at[i] = ls__cell_write(c->cells[i]);
        if (!j.at[i])
            return LS_NO_MEMORY;
    }
    ls__team *team = ls__team_get();
    j.ranks = !team ? 1 : team->ranks < j.replicas ? team->ranks : j.replicas;
    ls__team_share(team, j.ranks, pack_share, &j);
    ls__team_share(team, j.ranks, apply_share, &j);
    return LS_OK;
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
