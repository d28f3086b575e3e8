/*
 * The gradient with every number of x (update_products.c): tiles of a few rows by the pieces of gemm.h. On some
 * processors a tile is applied between the products of the next one.
 */
#include "ops/update_products.h"

enum {
    COLUMNS = 128, /* made at once */
    LINE = LS__PRODUCTS_LINE,
    TILE = LS__GEMM_TALL * COLUMNS,                                  /* floats of a pair's */
    LINES = (1 + LS__MOST_SLOTS) * LS__GEMM_TALL * (COLUMNS / LINE), /* of all that changes */
};

/* Packed rows of each replica, tiles (and those before them, which are applied beside), and a row of their sum. */
static int64_t own_floats(const ls__products_job *j)
{
    return j->replicas * j->deepest * LINE + (ls__products_tiles(j) + 1) * TILE + COLUMNS;
}

static const ls__gemm_pieces *pieces(void)
{
    return &LS__PICK(ls__gemm_table)->pieces;
}

static void pack(const ls__products_operand *of, int64_t n)
{
    pieces()->panels(of->dy, n, of->k, n, of->panels);
}

/* Of all replicas. Meanwhile what changes after them is fetched. */
static void make(const ls__products_job *j, const ls__products_part *p, const float *rows,
                 float *tiles, const ls__gemm_meanwhile *meanwhile)
{
    const bool below = p->column + COLUMNS >= j->n;
    ls__gemm_fetch next = meanwhile->fetch;
    next.shift = below ? (p->row + p->tall) * j->n : p->row * j->n + p->column + COLUMNS;
    for (int r = 0; r < j->replicas; r++) {
        const ls__gemm_meanwhile share = { ls__gemm_fetch_part(&next, r, j->replicas),
                                           meanwhile->adam };
        pieces()->make(rows + r * j->deepest * LINE, j->of[r].panels, j->of[r].k, j->n, p->tall,
                       p->column, COLUMNS, r % 2, tiles + r / 2 * TILE, COLUMNS, &share);
    }
}

/* What is to be applied beside the products that come next. */
static ls__gemm_adam to_apply(const ls__products_job *j, const ls__products_part *p,
                              const float *tile)
{
    const int64_t skip = p->row * j->n + p->column;
    return (ls__gemm_adam){ .w = j->at[0] + skip,
                            .m = j->at[1] + skip,
                            .v = j->at[2] + skip,
                            .ld = j->n,
                            .g = tile,
                            .ldg = COLUMNS,
                            .columns = p->wide,
                            .rows = p->tall,
                            .minus_rate = (float)-j->step.rate,
                            .epsilon = (float)j->step.epsilon,
                            .one_minus_beta1 = (float)j->step.one_minus_beta1,
                            .one_minus_beta2 = (float)j->step.one_minus_beta2 };
}

/* Whether it can be: Adam and nothing more, of sums that are made in one tile. */
static bool is_beside(const ls__products_job *j)
{
    return j->kind == LS__UPDATE_ADAM && ls__update_is_plain(&j->step) &&
           ls__products_tiles(j) == 1 && j->n % LINE == 0 && ls__gemm_adam_pays();
}

static void apply(const ls__products_job *j, int rank)
{
    int64_t end;
    ls__products_part p = { 0 };
    ls__products_share(j, rank, LS__GEMM_TALL, &p.row, &end);
    float *rows = j->own + rank * own_floats(j);
    float *tiles = rows + j->replicas * j->deepest * LINE,
          *sum = tiles + (ls__products_tiles(j) + 1) * TILE;
    const float *lines[LINES];
    const bool beside = is_beside(j);
    ls__gemm_adam before = { .rows = 0 };
    const ls__gemm_meanwhile meanwhile = {
        { .lines = lines, .count = ls__products_lines(j, LS__GEMM_TALL, COLUMNS, lines) },
        beside ? &before : NULL
    };
    int turn = 0;
    for (; p.row < end; p.row += LS__GEMM_TALL) {
        p.tall = end - p.row < LS__GEMM_TALL ? end - p.row : LS__GEMM_TALL;
        for (int r = 0; r < j->replicas; r++)
            pieces()->rows(j->of[r].x + p.row, j->m, j->of[r].k, p.tall,
                           rows + r * j->deepest * LINE);
        for (p.column = 0; p.column < j->n; p.column += COLUMNS) {
            float *now = tiles + turn * TILE;
            p.wide = j->n - p.column < COLUMNS ? j->n - p.column : COLUMNS;
            make(j, &p, rows, now, &meanwhile);
            if (beside) {
                pieces()->finish_adam(&before);
                before = to_apply(j, &p, now);
                turn = 1 - turn;
            } else {
                ls__products_apply(j, &p, now, TILE, COLUMNS, sum);
            }
        }
    }
    if (beside)
        pieces()->finish_adam(&before);
}

const ls__products_way ls__products_all = { ls__gemm_panel_floats, own_floats, pack, apply };
