/*
 * Every build of the movement kernels against the plain one, on random walks:
 * permuted, stretched and stepped axes, all element sizes, tails and holes.
 */
#include "kernels/movement.h"

#include <string.h>

#include "kernels/test_numbers.h"

/* Both sides lie in arrays of this many elements. */
#define ROOM (1 << 14)
static uint64_t source[ROOM], expected[ROOM], got[ROOM];

static void fill_source(void)
{
    for (int i = 0; i < ROOM; i++)
        source[i] = 0x9E3779B97F4A7C15u * (uint64_t)(i + 1);
}

static void check_walk(const ls__walk *w)
{
    const ls__movement *table[3];
    int n = TABLES(ls__movement_table, table);
    for (size_t element = 1; element <= 8; element *= 2) {
        memset(expected, 0xAB, sizeof expected);
        ls__ref_movement.move(w, element, source, expected);
        for (int i = 0; i < n; i++) {
            memset(got, 0xAB, sizeof got);
            table[i]->move(w, element, source, got);
            assert_memory_equal(got, expected, sizeof got);
        }
    }
}

static void transposes(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = { { 1, 1 },   { 1, 9 },  { 16, 16 }, { 17, 33 },
                                        { 3, 100 }, { 64, 2 }, { 48, 80 }, { 0, 5 } };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t r = sizes[i][0], c = sizes[i][1];
        check_walk(&(ls__walk){ 2, { c, r }, { 1, c }, { r, 1 } });
    }
    /* Heads of attention: [2, 5, 3, 24] -> [2, 3, 5, 24]. */
    check_walk(&(ls__walk){ 4, { 2, 3, 5, 24 }, { 360, 24, 72, 1 }, { 360, 120, 24, 1 } });
    /* A batch of matrices: [4, 20, 30] -> [4, 30, 20]. */
    check_walk(&(ls__walk){ 3, { 4, 30, 20 }, { 600, 1, 30 }, { 600, 20, 1 } });
}

static void random_walks(void **state)
{
    (void)state;
    for (int round = 0; round < 400; round++) {
        ls__walk w = { .rank = (int)below(6) };
        int64_t from[LS__WALK_RANK] = { 0 }, step = 1;
        int order[LS__WALK_RANK];
        for (int i = 0; i < w.rank; i++) {
            w.dims[i] = below(20) == 0 ? 0 : 1 + below(i % 2 ? 7 : 4);
            order[i] = i;
        }
        for (int i = w.rank - 1; i > 0; i--) {
            int j = (int)below((uint32_t)i + 1), t = order[i];
            order[i] = order[j];
            order[j] = t;
        }
        /* The reading side: axes in another order, some stretched, some with a
         * hole after each step. */
        for (int i = w.rank - 1; i >= 0; i--) {
            int axis = order[i];
            from[axis] = below(4) == 0 ? 0 : step;
            if (from[axis])
                step *= w.dims[axis] + (below(4) == 0);
        }
        step = 1;
        for (int i = w.rank - 1; i >= 0; i--) {
            w.from[i] = from[i];
            w.to[i] = step;
            step *= w.dims[i] + (below(4) == 0);
        }
        check_walk(&w);
    }
}

static void fills(void **state)
{
    (void)state;
    const ls__movement *table[3];
    int n = TABLES(ls__movement_table, table);
    const uint64_t value = 0x0123456789ABCDEFu;
    for (size_t element = 1; element <= 8; element *= 2)
        for (int64_t count = 0; count < 70; count += 23)
            for (int i = 0; i < n; i++) {
                memset(expected, 0, sizeof expected);
                memset(got, 0, sizeof got);
                ls__ref_movement.fill(element, &value, expected, count);
                table[i]->fill(element, &value, got, count);
                assert_memory_equal(got, expected, sizeof got);
            }
}

static void gathers(void **state)
{
    (void)state;
    const ls__movement *table[3];
    int n = TABLES(ls__movement_table, table);
    int32_t narrow[40];
    int64_t wide[40];
    for (int i = 0; i < 40; i++)
        wide[i] = narrow[i] = (int32_t)below(13);
    static const int64_t inners[] = { 0, 1, 2, 3, 5, 9, 17, 40 };
    for (size_t k = 0; k < sizeof inners / sizeof *inners; k++)
        for (size_t element = 1; element <= 8; element *= 2)
            for (int i = 0; i < 2 * n; i++) {
                const ls__indices ix = { i % 2 ? (void *)wide : (void *)narrow, 40, i % 2 };
                memset(expected, 0, sizeof expected);
                memset(got, 0, sizeof got);
                ls__ref_movement.gather(&ix, 3, 13, inners[k], element, source, expected);
                table[i / 2]->gather(&ix, 3, 13, inners[k], element, source, got);
                assert_memory_equal(got, expected, sizeof got);
            }
}

static void scatters(void **state)
{
    (void)state;
    const ls__movement *table[3];
    int n = TABLES(ls__movement_table, table);
    static float from[50 * 19], a[9 * 19], b[9 * 19];
    static double from64[50 * 19], a64[9 * 19], b64[9 * 19];
    int32_t rows[50];
    for (int i = 0; i < 50; i++)
        rows[i] = (int32_t)below(9);
    for (int i = 0; i < 50 * 19; i++)
        from64[i] = from[i] = (float)below(1 << 20) / 7 - 1e5f;
    for (int64_t width = 0; width <= 19; width++)
        for (int i = 0; i < n; i++) {
            const ls__indices ix = { rows, 50, 0 };
            ls__ref_movement.scatter_f32(&ix, 9, width, from, a);
            table[i]->scatter_f32(&ix, 9, width, from, b);
            assert_memory_equal(a, b, (size_t)(9 * width) * sizeof *a);
            ls__ref_movement.scatter_f64(&ix, 9, width, from64, a64);
            table[i]->scatter_f64(&ix, 9, width, from64, b64);
            assert_memory_equal(a64, b64, (size_t)(9 * width) * sizeof *a64);
        }
}

static void finds_the_first_index_outside(void **state)
{
    (void)state;
    const int32_t narrow[] = { 0, 3, 4, -1 };
    const int64_t wide[] = { 0, -1, 3, INT64_MAX };
    assert_int_equal(ls__index_outside(&(ls__indices){ narrow, 4, 0 }, 4), 2);
    assert_int_equal(ls__index_outside(&(ls__indices){ narrow, 4, 0 }, 5), 3);
    assert_int_equal(ls__index_outside(&(ls__indices){ narrow, 3, 0 }, 5), -1);
    assert_int_equal(ls__index_outside(&(ls__indices){ wide, 4, 1 }, 5), 1);
    assert_int_equal(ls__index_outside(&(ls__indices){ NULL, 0, 1 }, 0), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transposes), cmocka_unit_test(random_walks),
        cmocka_unit_test(fills),      cmocka_unit_test(gathers),
        cmocka_unit_test(scatters),   cmocka_unit_test(finds_the_first_index_outside),
    };
    fill_source();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
