/*
 * The four forms of update rows: the same bits whichever runs, for every kind, dtype and number
 * of replicas; rows that a lazy update leaves alone; what the shape rules refuse. The formulas
 * are tested against Keras (tests/optimizer_golden_test.c).
 */
#include "ops/update.h"

#include <lockstep/ops.h>
#include <math.h>

#include "collective/team.h"
#include "ops/clip_scales.h"
#include "ops/variable.h"
#include "tensor/test_support.h"

enum { VARIABLES = 4, MOST_V = 7, MOST_CELLS = 3 };

/* One that spans several blocks of a sum, one of another dtype, one with nothing in it. */
static const ls__spec specs[VARIABLES] = { { LS_F32, 2, { 1300, 7 } },
                                           { LS_F64, 1, { 4099 } },
                                           { LS_F32, 2, { 0, 3 } },
                                           { LS_F32, 0, { 0 } } };

static ls_tensor *some(const ls__spec *spec, int seed, bool positive)
{
    static double d[1300 * 7];
    static float f[1300 * 7];
    int64_t n = ls__spec_count(spec);
    for (int64_t i = 0; i < n; i++) {
        double x = sin(seed + 1.7 * (double)i) * pow(10, (double)((i + seed) % 5) - 2);
        d[i] = positive ? fabs(x) : x;
        f[i] = (float)d[i];
    }
    return spec->dtype == LS_F64 ? ls_from(LS_F64, spec->rank, spec->dims, d)
                                 : ls_from(LS_F32, spec->rank, spec->dims, f);
}

typedef struct model {
    const ls__update_kind *kind;
    ls__cell *cells[VARIABLES * MOST_CELLS];
} model;

static model start(const ls__update_kind *kind)
{
    model m = { .kind = kind };
    LS_FRAME
        for (int i = 0; i < VARIABLES * kind->cells; i++) {
            const ls__spec *spec = &specs[i / kind->cells];
            assert_int_equal(ls__cell_new("w", spec, &m.cells[i]), LS_OK);
            assert_int_equal(ls__cell_assign(m.cells[i], some(spec, i, i % kind->cells == 2)),
                             LS_OK);
        }
    return m;
}

static void end(model *m)
{
    for (int i = 0; i < VARIABLES * m->kind->cells; i++)
        ls__cell_unref(m->cells[i]);
}

static void same(const model *a, const model *b)
{
    for (int i = 0; i < VARIABLES * a->kind->cells; i++)
        assert_memory_equal(ls__cell_data(a->cells[i]), ls__cell_data(b->cells[i]),
                            ls__spec_bytes(&specs[i / a->kind->cells]));
}

static const ls__update_attrs attrs = { .weight_decay = 0.01,
                                        .clip_value = 3,
                                        .momentum = 0.9,
                                        .nesterov = 1,
                                        .beta1 = 0.9,
                                        .beta2 = 0.99,
                                        .epsilon = 1e-7 };

static ls__update_numbers numbers_of(const ls__update_kind *kind)
{
    return (ls__update_numbers){ kind, &attrs, ls_scalar(LS_F64, 0.1), ls_scalar_int(LS_I64, 3) };
}

static void one_by_one(model *m, ls_tensor *const *sums, ls_tensor *const *scales)
{
    ls__update_numbers u = numbers_of(m->kind);
    for (int i = 0; i < VARIABLES; i++)
        assert_int_equal(ls__update_one(&u, m->cells + i * m->kind->cells, sums[i], NULL,
                                        scales ? scales[i] : NULL),
                         LS_OK);
}

static void reduced_is_sum_then_update(void **state)
{
    (void)state;
    for (int way = 0; way < LS__UPDATES * MOST_V; way++) {
        const ls__update_kind *kind = &ls__update_kinds[way % LS__UPDATES];
        int v = 1 + way / LS__UPDATES;
        model a = start(kind), b = start(kind);
        LS_FRAME {
            ls_tensor *parts[VARIABLES * MOST_V], *sums[VARIABLES];
            for (int i = 0; i < VARIABLES; i++) {
                for (int r = 0; r < v; r++)
                    parts[i * v + r] = some(&specs[i], 10 * r + i, false);
                sums[i] = ls__sum_replicas(LS_SUM, v, parts + i * v);
            }
            one_by_one(&a, sums, NULL);
            ls__update_numbers u = numbers_of(kind);
            assert_int_equal(ls__update_reduced(&u, v, VARIABLES, b.cells, parts), LS_OK);
            same(&a, &b);
        }
        end(&a);
        end(&b);
    }
}

static void many_are_one_by_one(void **state)
{
    (void)state;
    for (int way = 0; way < LS__UPDATES * 2; way++) {
        const ls__update_kind *kind = &ls__update_kinds[way % LS__UPDATES];
        bool scaled = way / LS__UPDATES;
        model a = start(kind), b = start(kind);
        LS_FRAME {
            ls_tensor *in[2 + 2 * VARIABLES], *sums[VARIABLES], *scales[VARIABLES];
            ls__update_numbers u = numbers_of(kind);
            in[0] = u.rate;
            in[1] = u.iteration;
            for (int i = 0; i < VARIABLES; i++) {
                in[kind->numbers + i] = sums[i] = some(&specs[i], i, false);
                in[kind->numbers + VARIABLES + i] = scales[i] = ls_scalar(LS_F64, 0.5 + i);
            }
            one_by_one(&a, sums, scaled ? scales : NULL);
            assert_int_equal(ls__call(kind->many, &attrs, kind->numbers + VARIABLES * (1 + scaled),
                                      in, VARIABLES * kind->cells, b.cells, NULL),
                             LS_OK);
            same(&a, &b);
        }
        end(&a);
        end(&b);
    }
}

/* A team whose ranks come one after another, last first: slices must not overlap or depend. */
static void share(ls__team *team, ls__share_fn *fn, void *arg)
{
    for (int rank = team->ranks; rank-- > 0;)
        fn(arg, rank);
}

static void slices_of_a_team_have_the_same_bits(void **state)
{
    (void)state;
    enum { N = 70001 }; /* above what is worth sharing, and odd */
    static float x[N];
    for (int i = 0; i < N; i++)
        x[i] = sinf((float)i) * powf(10, (float)(i % 5 - 2));
    const ls__update_kind *kind = &ls__update_kinds[LS__UPDATE_ADAM];
    const ls__spec spec = { LS_F32, 1, { N } };
    ls__cell *cells[2][3];
    double scales[2] = { 0 };
    for (int way = 0; way < 2; way++)
        LS_FRAME {
            ls__team team = { .ranks = 3, .replicas = 3, .share = share };
            ls_tensor *g = ls_from(LS_F32, LS_DIMS(N), x), *scale,
                      *none = ls_zeros(LS_F32, LS_DIMS(N));
            /* So that the scratch, which is used again, holds nothing of the same. */
            assert_int_equal(ls__clip_scales(1, true, 1, &none, &scale), LS_OK);
            ls__team *before = ls__team_use(way ? &team : NULL);
            ls__update_numbers u = numbers_of(kind);
            for (int k = 0; k < 3; k++)
                assert_int_equal(ls__cell_new("w", &spec, &cells[way][k]), LS_OK);
            assert_int_equal(ls__clip_scales(1, true, 1, &g, &scale), LS_OK);
            scales[way] = ls_to_double(scale);
            ls_tensor *in[] = { u.rate, u.iteration, g, scale };
            assert_int_equal(ls__call(kind->many, &attrs, 4, in, 3, cells[way], NULL), LS_OK);
            ls__team_use(before);
        }
    assert_true(scales[0] < 1 && scales[0] == scales[1]);
    for (int k = 0; k < 3; k++) {
        assert_memory_equal(ls__cell_data(cells[0][k]), ls__cell_data(cells[1][k]),
                            N * sizeof(float));
        ls__cell_unref(cells[0][k]);
        ls__cell_unref(cells[1][k]);
    }
}

static void lazy_updates_touched_rows_only(void **state)
{
    (void)state;
    enum { ROWS = 1300, WIDTH = 7 };
    for (int way = 0; way < LS__UPDATES * 2; way++) {
        const ls__update_kind *kind = &ls__update_kinds[way % LS__UPDATES];
        model before = start(kind), all = start(kind), some_rows = start(kind);
        LS_FRAME {
            static float touched[ROWS];
            for (int i = 0; i < ROWS; i++)
                touched[i] = i % 3 == 0 ? (float)(i + 1) : 0;
            ls__update_numbers u = numbers_of(kind);
            ls_tensor *g = some(&specs[0], 5, false);
            ls_tensor *scale = way < LS__UPDATES ? NULL : ls_scalar(LS_F64, 0.5);
            assert_int_equal(ls__update_one(&u, all.cells, g, NULL, scale), LS_OK);
            assert_int_equal(ls__update_one(&u, some_rows.cells, g,
                                            ls_from(LS_F32, LS_DIMS(ROWS), touched), scale),
                             LS_OK);
        }
        for (int k = 0; k < kind->cells; k++)
            for (int i = 0; i < ROWS; i++)
                assert_memory_equal((const float *)ls__cell_data(some_rows.cells[k]) + i * WIDTH,
                                    (const float *)ls__cell_data((i % 3 ? before : all).cells[k]) +
                                        i * WIDTH,
                                    WIDTH * sizeof(float));
        end(&before);
        end(&all);
        end(&some_rows);
    }
}

static void refuse(const ls_op *op, const void *with, int n, ls_tensor *const *in, int n_cells,
                   ls__cell *const *cells, ls_status want)
{
    assert_int_equal(ls__call(op, with, n, in, n_cells, cells, NULL), want);
    failed(want);
}

static void what_is_refused(void **state)
{
    (void)state;
    const ls__update_kind *adam = &ls__update_kinds[LS__UPDATE_ADAM];
    model m = start(adam), before = start(adam);
    LS_FRAME {
        ls_tensor *rate = ls_scalar(LS_F64, 0.1), *t = ls_scalar_int(LS_I64, 1);
        ls_tensor *g = some(&specs[0], 1, false), *other = some(&specs[1], 1, false);
        ls_tensor *rows = ls_ones(LS_F32, LS_DIMS(1300)), *few = ls_ones(LS_F32, LS_DIMS(3));
        refuse(adam->one, &attrs, 2, (ls_tensor *[]){ g, rate }, 3, m.cells, LS_INVALID);
        refuse(adam->one, &attrs, 4, (ls_tensor *[]){ g, rate, t, t }, 3, m.cells, LS_SHAPE);
        refuse(adam->one, &attrs, 3, (ls_tensor *[]){ g, t, rate }, 3, m.cells, LS_SHAPE);
        refuse(adam->one, &attrs, 3, (ls_tensor *[]){ g, rate, t }, 2, m.cells, LS_INVALID);
        refuse(adam->lazy, &attrs, 4, (ls_tensor *[]){ g, few, rate, t }, 3, m.cells, LS_SHAPE);
        refuse(adam->lazy, &attrs, 4, (ls_tensor *[]){ g, g, rate, t }, 3, m.cells, LS_SHAPE);
        refuse(adam->lazy, &attrs, 3, (ls_tensor *[]){ g, rows, rate }, 3, m.cells, LS_INVALID);
        refuse(adam->many, &attrs, 5, (ls_tensor *[]){ rate, t, g, g, g }, 3, m.cells, LS_INVALID);
        refuse(adam->many, &attrs, 4, (ls_tensor *[]){ rate, t, g, t }, 3, m.cells, LS_SHAPE);
        ls__reduced_attrs r = { .groups = { .replicas = 2, .first = 2 }, .update = attrs };
        refuse(adam->reduced, &r, 3, (ls_tensor *[]){ rate, t, g }, 3, m.cells, LS_INVALID);
        refuse(adam->reduced, &r, 4, (ls_tensor *[]){ rate, t, g, other }, 3, m.cells, LS_SHAPE);
        refuse(adam->reduced, &r, 4, (ls_tensor *[]){ rate, t, other, other }, 3, m.cells,
               LS_SHAPE);
        refuse(adam->reduced, &r, 4, (ls_tensor *[]){ t, rate, g, g }, 3, m.cells, LS_SHAPE);
        r.groups.first = 1;
        refuse(adam->reduced, &r, 4, (ls_tensor *[]){ rate, t, g, g }, 3, m.cells, LS_INVALID);
        const int64_t counts[] = { 0, -1, 1025, INT64_MAX };
        r.groups.first = 2;
        for (int i = 0; i < 4; i++) {
            r.groups.replicas = counts[i];
            refuse(adam->reduced, &r, 4, (ls_tensor *[]){ rate, t, g, g }, 3, m.cells, LS_INVALID);
        }
        same(&m, &before);
    }
    end(&m);
    end(&before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(reduced_is_sum_then_update, clean),
        cmocka_unit_test_setup(many_are_one_by_one, clean),
        cmocka_unit_test_setup(slices_of_a_team_have_the_same_bits, clean),
        cmocka_unit_test_setup(lazy_updates_touched_rows_only, clean),
        cmocka_unit_test_setup(what_is_refused, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
