/* See gemm_skip.h: when, and with how much memory. */
#include "kernels/gemm_skip.h"

bool ls__skip_list_fits(int64_t rows, int64_t k)
{
    enum { MOST = 1 << 22 };
    return rows <= MOST / k;
}

bool ls__skip_fits(const ls__matmul_shape *s)
{
    return LS__PICK(ls__skip_table)->plain &&
           (s->ta || (s->n > LS__GEMM_NARROW && ls__skip_list_fits(s->m, s->k)));
}

/*
 * Microseconds of A B (A B^T) by the share of A that is not 0, two cores of a Zen 4 at once, 64 rows:
 *
 *                     gemm.h        0.1           0.2           0.3           0.5           0.6
 *   2048 x 2048   5600 (5300)   1470 (1700)   2170 (2350)   2900 (3000)   4280 (4300)   4980 (5000)
 *    784 x 2048   1880           435           647           873          1310          1538
 *     64 x 5408        (460)                                    (265)        (390)         (460)
 */
bool ls__skip_pays(const ls__matmul_shape *s, const float *a)
{
    enum { MOST_PERCENT = 55, LOOKS = 8 };
    const int64_t rows = s->ta ? s->k : s->m, columns = s->ta ? s->m : s->k;
    const int64_t step = (rows + LOOKS - 1) / LOOKS, looked = (rows + step - 1) / step;
    const int64_t some = LS__PICK(ls__skip_table)->count(a, s->lda * step, looked, columns);
    return some * 100 < looked * columns * MOST_PERCENT;
}

/* Lines of sixteen floats. */
static int64_t whole(int64_t floats)
{
    return (floats + 15) / 16 * 16;
}

int64_t ls__skip_list_floats(int64_t rows, int64_t k)
{
    return 2 * whole(rows * k + 16) + whole(rows + 1); /* whole vectors are written */
}

ls__skip_list ls__skip_list_in(float *room, int64_t rows, int64_t k)
{
    const int64_t numbers = whole(rows * k + 16);
    return (ls__skip_list){ .values = room,
                            .at = (int32_t *)(void *)(room + numbers),
                            .first = (int32_t *)(void *)(room + 2 * numbers) };
}

size_t ls__skip_scratch(const ls__matmul_shape *s)
{
    if (s->ta)
        return (size_t)(ls__skip_panel_floats(s->k, s->n) +
                        ls__skip_list_floats(LS__SKIP_ROWS, s->k));
    const int64_t blocks = (s->k + LS__SKIP_DEEP - 1) / LS__SKIP_DEEP;
    return (size_t)((LS__SKIP_DEEP + s->m) * LS__SKIP_COLUMNS +
                    ls__skip_list_floats((s->m + 1) * blocks, LS__SKIP_DEEP));
}
