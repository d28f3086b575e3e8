/*
 * The gradient without the zeros of x (update_products.c), by the pieces of gemm_skip.h. A rank takes some hundred rows at a
 * time, and of these one panel of columns after the other, which stays in the first cache while rows of one replica follow
 * each other, for as long as sums of both fit beside it. (All rows for one panel after the other would read panels
 * less often, and take a tenth longer: lines that processors fetch of themselves are of the next panel, and gone until then.)
 */
#include "ops/update_products.h"

#include "kernels/gemm_skip.h"

enum {
    COLUMNS = LS__SKIP_COLUMNS,
    LINE = LS__PRODUCTS_LINE,
    CHUNK = 256, /* most rows of a part... */
    PARTS = 4,   /* ...of which each rank has as many, at least */
    TALL = 32,   /* rows of a tile */
    TILE = TALL * COLUMNS,
    OF_ROW = (1 + LS__MOST_SLOTS) * (COLUMNS / LINE), /* lines of all that changes in a row */
};

static const ls__skip_kernels *kernels(void)
{
    return LS__PICK(ls__skip_table);
}

/* Panels of dy, and behind them what of x is not 0. None for an x that is too large for a list: it has no such way. */
static int64_t packed_floats(const ls__products_job *j, int replica)
{
    const int64_t k = j->of[replica].k;
    if (!ls__skip_list_fits(j->m, k))
        return 0;
    return ls__skip_panel_floats(k, j->n) + ls__skip_list_floats(j->m, k);
}

static ls__skip_list list_of(const ls__products_job *j, int replica)
{
    const ls__products_operand *of = &j->of[replica];
    return ls__skip_list_in(of->packed + ls__skip_panel_floats(of->k, j->n), j->m, of->k);
}

static void pack(const ls__products_job *j, int replica)
{
    const ls__products_operand *of = &j->of[replica];
    const ls__skip_list list = list_of(j, replica);
    kernels()->panels(of->dy, j->n, of->k, j->n, of->packed);
    kernels()->list(of->x, j->m, of->k, j->m, &list);
}

/* Tiles, and a row of their sum. */
static int64_t own_floats(const ls__products_job *j)
{
    return ls__products_tiles(j) * TILE + COLUMNS;
}

/* Rows of a part: whole tiles. */
static int64_t chunk(const ls__products_job *j)
{
    const int64_t tiles = (j->m + PARTS * j->ranks * TALL - 1) / (PARTS * j->ranks * TALL);
    return tiles * TALL < CHUNK ? tiles * TALL : CHUNK;
}

static int64_t parts(const ls__products_job *j)
{
    return (j->m + chunk(j) - 1) / chunk(j);
}

/* A tile of all replicas. Meanwhile what changes after it is fetched. */
static void make(const ls__products_job *j, const ls__products_part *p, const ls__skip_list *lists,
                 float *tiles, const ls__gemm_fetch *next)
{
    for (int r = 0; r < j->replicas; r++) {
        const float *panel = j->of[r].packed + p->column * j->of[r].k;
        const ls__gemm_fetch share = ls__gemm_fetch_part(next, r, j->replicas);
        for (int64_t i = 0; i < p->tall; i++) {
            const ls__gemm_fetch line = ls__gemm_fetch_part(&share, i, p->tall);
            kernels()->make(&lists[r], p->row + i, panel, p->wide, r % 2,
                            tiles + r / 2 * TILE + i * COLUMNS, &line);
        }
    }
}

/* Rows [first, end). */
static void run_chunk(const ls__products_job *j, int64_t first, int64_t end,
                      const ls__skip_list *lists, float *tiles, ls__gemm_fetch next)
{
    ls__products_part p;
    for (p.column = 0; p.column < j->n; p.column += COLUMNS) {
        p.wide = j->n - p.column < COLUMNS ? j->n - p.column : COLUMNS;
        for (p.row = first; p.row < end; p.row += TALL) {
            const bool below = p.row + TALL < end, right = p.column + COLUMNS < j->n;
            p.tall = below ? TALL : end - p.row;
            next.shift = below   ? (p.row + TALL) * j->n + p.column
                         : right ? first * j->n + p.column + COLUMNS
                                 : end * j->n; /* most likely */
            make(j, &p, lists, tiles, &next);
            ls__products_apply(j, &p, tiles, TILE, COLUMNS, tiles + ls__products_tiles(j) * TILE);
        }
    }
}

static int64_t apply(const ls__products_job *j, int rank)
{
    int64_t done = 0;
    ls__skip_list lists[LS__PRODUCTS_MOST];
    const float *lines[TALL * OF_ROW];
    const int64_t wide = j->n < COLUMNS ? j->n : COLUMNS, rows = chunk(j);
    const ls__gemm_fetch next = { lines, ls__products_lines(j, TALL, wide, lines), 0 };
    for (int r = 0; r < j->replicas; r++)
        lists[r] = list_of(j, r);
    for (int64_t part; ls__claims_next(j->claims, rank, &part); done++) {
        const int64_t first = part * rows, past = first + rows;
        run_chunk(j, first, past < j->m ? past : j->m, lists, j->own + rank * own_floats(j), next);
    }
    return done;
}

const ls__products_way ls__products_skip = { packed_floats, pack, own_floats, parts, apply };
