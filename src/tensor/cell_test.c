/*
 * Cells: a read is a snapshot although it is a view (DESIGN rule D).
 */
#include "tensor/cell.h"

#include <pthread.h>

#include "tensor/test_support.h"

#include "tensor/tensor.h"

enum { N = 1000 };

static ls__cell *make(void)
{
    ls__spec spec;
    ls__cell *cell = NULL;
    assert_int_equal(ls__spec_make(&spec, "test", LS_F32, LS_DIMS(N)), LS_OK);
    assert_int_equal(ls__cell_new("w", &spec, &cell), LS_OK);
    assert_non_null(cell);
    return cell;
}

static void write_all(ls__cell *cell, float value)
{
    float *data = ls__cell_write(cell);
    assert_non_null(data);
    for (int i = 0; i < N; i++)
        data[i] = value;
}

static void holds(const ls_tensor *t, float value)
{
    const float *data = ls_data(t);
    assert_non_null(data);
    for (int i = 0; i < N; i++)
        if (data[i] != value)
            fail_msg("element %d is %g, not %g", i, (double)data[i], (double)value);
}

static void starts_zeroed(void **state)
{
    (void)state;
    size_t before = memory();
    ls__cell *cell = make();
    LS_FRAME {
        holds(ls__cell_read(cell), 0);
        assert_string_equal(ls_describe(ls__cell_read(cell)), "f32[1000]");
        assert_int_equal(ls__cell_spec(cell)->dims[0], N);
        assert_int_equal(((uintptr_t)ls__cell_data(cell)) % 64, 0);
    }
    ls__cell_unref(cell);
    assert_int_equal(memory(), before);
}

static void snapshots_stay(void **state)
{
    (void)state;
    ls__cell *cell = make();
    LS_FRAME {
        ls_tensor *snapshot[5];
        for (int i = 0; i < 5; i++) {
            write_all(cell, (float)i);
            snapshot[i] = ls__cell_read(cell);
        }
        write_all(cell, 99);
        for (int i = 0; i < 5; i++)
            holds(snapshot[i], (float)i);
        holds(ls__cell_read(cell), 99);
    }
    ls__cell_unref(cell);
}

static void a_write_keeps_what_it_does_not_touch(void **state)
{
    (void)state;
    ls__cell *cell = make();
    LS_FRAME {
        write_all(cell, 5);
        ls_tensor *old = ls__cell_read(cell);
        float *data = ls__cell_write(cell);
        assert_true(data[0] == 5 && data[N - 1] == 5); /* the old contents */
        data[3] = 7;
        holds(old, 5);
        const float *now = ls_data(ls__cell_read(cell));
        assert_true(now[3] == 7 && now[4] == 5);
    }
    ls__cell_unref(cell);
}

static void versions_and_ids(void **state)
{
    (void)state;
    ls__cell *cell = make();
    LS_FRAME {
        uint64_t version = ls__cell_version(cell);
        ls_tensor *a = ls__cell_read(cell), *b = ls__cell_read(cell);
        assert_true(a != b);
        assert_true(a->id == b->id); /* one version, one value */
        assert_true(ls__cell_version(cell) == version);
        write_all(cell, 1);
        assert_true(ls__cell_version(cell) > version);
        ls_tensor *c = ls__cell_read(cell);
        assert_true(c->id != a->id);
        assert_true(ls__cell_read(cell)->id == c->id);
        holds(a, 0);
        holds(b, 0);
        holds(c, 1);
        uint64_t id = c->id;
        LS_FRAME { /* the id is the version's, whoever still holds a view */
            ls__cell_read(cell);
        }
        assert_true(ls__cell_read(cell)->id == id);
    }
    /* Also when no view of this version lives any more. */
    uint64_t first = 0, second = 0;
    LS_FRAME {
        first = ls__cell_read(cell)->id;
    }
    LS_FRAME {
        second = ls__cell_read(cell)->id;
    }
    assert_true(first == second);
    ls__cell_unref(cell);
}

static void no_copy_unless_read(void **state)
{
    (void)state;
    ls__cell *cell = make();
    size_t before = memory(), peak, peak_before;
    const void *address = ls__cell_data(cell);
    LS_FRAME {
        ls_memory(&(size_t){ 0 }, &peak_before);
        for (int i = 0; i < 100; i++)
            write_all(cell, (float)i);
        ls_memory(&(size_t){ 0 }, &peak);
        assert_int_equal(memory(), before);
        assert_int_equal(peak, peak_before);

        for (int i = 0; i < 100; i++) { /* views that are gone cost nothing either */
            LS_FRAME {
                ls_tensor *t = ls__cell_read(cell);
                assert_ptr_equal(ls__data(t), address); /* a view: no copy to read */
            }
            write_all(cell, (float)i);
        }
        assert_int_equal(memory(), before);

        ls__cell_read(cell);
        ls__cell_read(cell);
        size_t read = memory();
        write_all(cell, 7);
        assert_true(memory() >= read + N * sizeof(float)); /* one copy for both views */
        assert_true(memory() < read + 2 * N * sizeof(float));
        size_t copied = memory();
        write_all(cell, 8); /* nobody has read this version */
        assert_int_equal(memory(), copied);
    }
    assert_int_equal(memory(), before);
    assert_ptr_equal(ls__cell_data(cell), address); /* its memory never moves */
    ls__cell_unref(cell);
}

static void unshare_copies_now(void **state)
{
    (void)state;
    ls__cell *cell = make();
    const void *address = ls__cell_data(cell);
    LS_FRAME {
        write_all(cell, 3);
        ls_tensor *t = ls__cell_read(cell);
        uint64_t version = ls__cell_version(cell);
        size_t before = memory();
        assert_int_equal(ls__cell_unshare(cell), LS_OK);
        size_t after = memory();
        assert_true(after > before);
        assert_true(ls__cell_version(cell) == version); /* not a write */
        holds(t, 3);
        assert_ptr_not_equal(ls__data(t), address);
        assert_true(ls__cell_read(cell)->id == t->id); /* still the same value */
        LS_FRAME {
            assert_int_equal(ls__cell_unshare(cell), LS_OK);
        }
        ls__cell_write(cell);
        assert_int_equal(ls_error_pending(), LS_OK);
        holds(t, 3);
    }
    assert_int_equal(ls__cell_unshare(cell), LS_OK); /* nothing to do */
    ls__cell_unref(cell);
}

/* ls_data gives access until the tensor goes: a write meanwhile must not show. */
static void a_mapped_snapshot_stays(void **state)
{
    (void)state;
    ls__cell *cell = make();
    LS_FRAME {
        write_all(cell, 3);
        ls_tensor *t = ls__cell_read(cell);
        const float *data = ls_data(t);
        assert_true(data[0] == 3);
        write_all(cell, 4);
        assert_true(data[0] == 3 && data[N - 1] == 3);
        ls_data_done(t);
        holds(t, 3);
    }
    ls__cell_unref(cell);
}

static void freeing_a_cell_leaves_snapshots(void **state)
{
    (void)state;
    size_t before = memory();
    ls__cell *cell = make();
    write_all(cell, 4);
    ls_tensor *kept = NULL;
    LS_FRAME {
        ls_tensor *t = ls__cell_read(cell);
        kept = ls_keep(t);
        ls__cell_unref(cell);
        holds(t, 4);
    }
    holds(kept, 4);
    ls_drop(kept);
    assert_int_equal(memory(), before);

    /* With views of an old and of the last version. */
    cell = make();
    LS_FRAME {
        ls_tensor *old = ls__cell_read(cell);
        write_all(cell, 1);
        ls_tensor *last = ls__cell_read(cell);
        ls__cell_unref(cell);
        holds(old, 0);
        holds(last, 1);
    }
    assert_int_equal(memory(), before);
    ls__cell_unref(NULL);
}

static void *drop_elsewhere(void *kept)
{
    float sum = 0;
    LS_FRAME {
        const float *data = ls_data(ls_import(kept));
        for (int i = 0; data && i < N; i++)
            sum += data[i];
    }
    ls_drop(kept);
    return sum == 2 * N ? kept : NULL;
}

static void snapshots_cross_threads(void **state)
{
    (void)state;
    size_t before = memory();
    ls__cell *cell = make();
    write_all(cell, 2);
    ls_tensor *kept = NULL;
    LS_FRAME {
        kept = ls_keep(ls__cell_read(cell));
    }
    write_all(cell, 3);
    pthread_t thread;
    void *result = NULL;
    assert_int_equal(pthread_create(&thread, NULL, drop_elsewhere, kept), 0);
    pthread_join(thread, &result);
    assert_ptr_equal(result, kept);
    ls__cell_unref(cell);
    assert_int_equal(memory(), before);
}

static void empty_and_scalar_cells(void **state)
{
    (void)state;
    ls__spec spec;
    ls__cell *cell = NULL;
    LS_FRAME {
        assert_int_equal(ls__spec_make(&spec, "test", LS_F64, LS_DIMS(0, 3)), LS_OK);
        assert_int_equal(ls__cell_new("w", &spec, &cell), LS_OK);
        ls_tensor *t = ls__cell_read(cell);
        assert_int_equal(ls_count(t), 0);
        assert_non_null(ls__cell_write(cell));
        ls__cell_unref(cell);
        assert_int_equal(ls__spec_make(&spec, "test", LS_I64, LS_SCALAR), LS_OK);
        assert_int_equal(ls__cell_new("w", &spec, &cell), LS_OK);
        *(int64_t *)ls__cell_write(cell) = 12;
        assert_int_equal(ls_to_int(ls__cell_read(cell)), 12);
        ls__cell_unref(cell);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(starts_zeroed, clean),
        cmocka_unit_test_setup(snapshots_stay, clean),
        cmocka_unit_test_setup(a_write_keeps_what_it_does_not_touch, clean),
        cmocka_unit_test_setup(versions_and_ids, clean),
        cmocka_unit_test_setup(no_copy_unless_read, clean),
        cmocka_unit_test_setup(unshare_copies_now, clean),
        cmocka_unit_test_setup(a_mapped_snapshot_stays, clean),
        cmocka_unit_test_setup(freeing_a_cell_leaves_snapshots, clean),
        cmocka_unit_test_setup(snapshots_cross_threads, clean),
        cmocka_unit_test_setup(empty_and_scalar_cells, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
