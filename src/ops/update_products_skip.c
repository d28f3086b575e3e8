/*
 * The gradient without the zeros of x (update_products.c), by the pieces of gemm_skip.h. A rank takes some hundred
 * rows at a time, and of these one panel of columns after the other, which the first cache holds. Rows of one replica follow
 * each other for as long as the sums of both fit beside it.
 */
#include "ops/update_products.h"

#include "kernels/gemm_skip.h"

enum {
    COLUMNS = LS__SKIP_COLUMNS,
    LINE = LS__PRODUCTS_LINE,
    CHUNK = 128, /* rows that are listed at once */
    TALL = 32,   /* rows of a tile */
    TILE = TALL * COLUMNS,
    OF_ROW = (1 + LS__MOST_SLOTS) * (COLUMNS / LINE), /* lines of all that changes in a row */
};

/* Lists of each replica, tiles, and a row of their sum. */
static int64_t own_floats(const ls__products_job *j)
{
    return j->replicas * ls__skip_list_floats(CHUNK, j->deepest) + ls__products_tiles(j) * TILE +
           COLUMNS;
}

static const ls__skip_kernels *kernels(void)
{
    return LS__PICK(ls__skip_table);
}

static void pack(const ls__products_operand *of, int64_t n)
{
    kernels()->panels(of->dy, n, of->k, n, of->panels);
}

/* Of all replicas; `row` of the lists. Meanwhile what changes after them is fetched. */
static void make(const ls__products_job *j, const ls__products_part *p, const ls__skip_list *lists,
                 int64_t row, float *tiles, const ls__gemm_fetch *next)
{
    for (int r = 0; r < j->replicas; r++) {
        const float *panel = j->of[r].panels + p->column * j->of[r].k;
        const ls__gemm_fetch share = ls__gemm_fetch_part(next, r, j->replicas);
        for (int64_t i = 0; i < p->tall; i++) {
            const ls__gemm_fetch line = ls__gemm_fetch_part(&share, i, p->tall);
            kernels()->make(&lists[r], row + i, panel, p->wide, r % 2,
                            tiles + r / 2 * TILE + i * COLUMNS, &line);
        }
    }
}

/* Rows [first, end), which are listed. */
static void run_chunk(const ls__products_job *j, int64_t first, int64_t end,
                      const ls__skip_list *lists, float *tiles, ls__gemm_fetch next)
{
    ls__products_part p;
    for (p.column = 0; p.column < j->n; p.column += COLUMNS) {
        p.wide = j->n - p.column < COLUMNS ? j->n - p.column : COLUMNS;
        for (p.row = first; p.row < end; p.row += TALL) {
            p.tall = end - p.row < TALL ? end - p.row : TALL;
            const bool below = p.row + TALL < end, right = p.column + COLUMNS < j->n;
            next.shift = below   ? (p.row + TALL) * j->n + p.column
                         : right ? first * j->n + p.column + COLUMNS
                                 : end * j->n;
            make(j, &p, lists, p.row - first, tiles, &next);
            ls__products_apply(j, &p, tiles, TILE, COLUMNS, tiles + ls__products_tiles(j) * TILE);
        }
    }
}

static void apply(const ls__products_job *j, int rank)
{
    const int64_t of_list = ls__skip_list_floats(CHUNK, j->deepest);
    float *own = j->own + rank * own_floats(j);
    ls__skip_list lists[LS__PRODUCTS_MOST];
    const float *lines[TALL * OF_ROW];
    const ls__gemm_fetch next = { .lines = lines,
                                  .count = ls__products_lines(j, TALL, COLUMNS, lines) };
    int64_t row, end;
    while (ls__products_rows(j, rank, &row, &end)) {
        for (int r = 0; r < j->replicas; r++) {
            lists[r] = ls__skip_list_in(own + r * of_list, CHUNK, j->deepest);
            kernels()->list(j->of[r].x + row, j->m, j->of[r].k, end - row, &lists[r]);
        }
        run_chunk(j, row, end, lists, own + j->replicas * of_list, next);
    }
}

const ls__products_way ls__products_skip = { CHUNK, ls__skip_panel_floats, own_floats, pack,
                                             apply };
