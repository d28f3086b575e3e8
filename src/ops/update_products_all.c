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

/* Packed columns of x of a replica. */
static int64_t rows_floats(const ls__products_job *j)
{
    return LS__GEMM_TILES * j->deepest * LINE;
}

/* Those of each replica, tiles (and those before them, which are applied beside), and a row of their sum. */
static int64_t own_floats(const ls__products_job *j)
{
    return j->replicas * rows_floats(j) + (ls__products_tiles(j) + 1) * TILE + COLUMNS;
}

static const ls__gemm_pieces *pieces(void)
{
    return &LS__PICK(ls__gemm_table)->pieces;
}

static int64_t packed_floats(const ls__products_job *j, int replica)
{
    return ls__gemm_panel_floats(j->of[replica].k, j->n);
}

static void pack(const ls__products_job *j, int replica)
{
    const ls__products_operand *of = &j->of[replica];
    pieces()->panels(of->dy, j->n, of->k, j->n, of->packed);
}

/* Chunks of rows. */
static int64_t parts(const ls__products_job *j)
{
    return (j->m + LS__GEMM_CHUNK - 1) / LS__GEMM_CHUNK;
}

/* What is done while tile after tile of a rank is made. */
typedef struct work {
    const ls__products_job *j;
    float *rows, *tiles, *sum;
    ls__gemm_fetch lines; /* of the first tile */
    bool beside;          /* a tile is applied while the next is made: */
    ls__gemm_adam before;
    int turn; /* which of two tiles is made */
} work;

/* A tile of all replicas, number `t` of a chunk of rows that ends with row `end`. Meanwhile what changes after it is fetched, and of
 * the next chunk a share of x. */
static void make(work *w, const ls__products_part *p, int64_t t, int64_t end, float *tile)
{
    const ls__products_job *j = w->j;
    const bool below = p->column + COLUMNS >= j->n;
    const int64_t blocks = (j->n + COLUMNS - 1) / COLUMNS;
    ls__gemm_fetch next = w->lines;
    next.shift = below ? (p->row + p->tall) * j->n : p->row * j->n + p->column + COLUMNS;
    for (int r = 0; r < j->replicas; r++) {
        const ls__products_operand *of = &j->of[r];
        const ls__gemm_ahead x = { of->x + end, j->m, 0, end < j->m ? 8 * of->k : 0 };
        const ls__gemm_meanwhile meanwhile = {
            ls__gemm_fetch_part(&next, r, j->replicas),
            ls__gemm_ahead_part(&x, t * blocks + p->column / COLUMNS, LS__GEMM_TILES * blocks),
            NULL, w->beside ? &w->before : NULL
        };
        pieces()->make(w->rows + r * rows_floats(j) + t * of->k * LINE, of->packed, of->k, j->n,
                       p->tall, p->column, COLUMNS, r % 2, tile + r / 2 * TILE, COLUMNS,
                       &meanwhile);
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

/* Columns [first, end) of x of all replicas. */
static void pack_rows(const work *w, int64_t first, int64_t end)
{
    const ls__products_job *j = w->j;
    for (int r = 0; r < j->replicas; r++)
        for (int64_t i = first; i < end; i += LS__GEMM_TALL)
            pieces()->rows(
                j->of[r].x + i, j->m, j->of[r].k, end - i < LS__GEMM_TALL ? end - i : LS__GEMM_TALL,
                w->rows + r * rows_floats(j) + (i - first) / LS__GEMM_TALL * j->of[r].k * LINE);
}

static void run_chunk(work *w, int64_t first, int64_t end)
{
    const ls__products_job *j = w->j;
    pack_rows(w, first, end);
    for (ls__products_part p = { .row = first }; p.row < end; p.row += LS__GEMM_TALL) {
        p.tall = end - p.row < LS__GEMM_TALL ? end - p.row : LS__GEMM_TALL;
        for (p.column = 0; p.column < j->n; p.column += COLUMNS) {
            float *tile = w->tiles + w->turn * TILE;
            p.wide = j->n - p.column < COLUMNS ? j->n - p.column : COLUMNS;
            make(w, &p, (p.row - first) / LS__GEMM_TALL, end, tile);
            if (w->beside) {
                pieces()->finish_adam(&w->before);
                w->before = to_apply(j, &p, tile);
                w->turn = 1 - w->turn;
            } else {
                ls__products_apply(j, &p, tile, TILE, COLUMNS, w->sum);
            }
        }
    }
}

static int64_t apply(const ls__products_job *j, int rank)
{
    int64_t done = 0;
    const float *lines[LINES];
    const int64_t wide = j->n < COLUMNS ? j->n : COLUMNS;
    float *own = j->own + rank * own_floats(j), *tiles = own + j->replicas * rows_floats(j);
    work w = { .j = j,
               .rows = own,
               .tiles = tiles,
               .sum = tiles + (ls__products_tiles(j) + 1) * TILE,
               .lines = { lines, ls__products_lines(j, LS__GEMM_TALL, wide, lines), 0 },
               .beside = is_beside(j) };
    for (int64_t part; ls__claims_next(j->claims, rank, &part); done++) {
        const int64_t first = part * LS__GEMM_CHUNK, past = first + LS__GEMM_CHUNK;
        run_chunk(&w, first, past < j->m ? past : j->m);
    }
    if (w.beside)
        pieces()->finish_adam(&w.before);
    return done;
}

const ls__products_way ls__products_all = { packed_floats, pack, own_floats, parts, apply };
