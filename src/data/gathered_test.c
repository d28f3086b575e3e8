/*
 * Batches whose rows are copied by who looks at them: parts of them, one after the other or all at once, and
 * those that nobody looks at.
 */
#include "data/gathered.h"

#include <string.h>

#include "tensor/test_support.h"

enum { ROWS = 6, EACH = 5, BYTES = EACH * sizeof(int) };

/* Row i of the batch is row ROWS - 1 - i of the source, which has 10 i, 10 i + 1, ... as row i. */
static ls__storage *backwards(ls__storage *source)
{
    ls__storage *batch = ls__gathered_new(ROWS, BYTES, source);
    assert_non_null(batch);
    for (int i = 0; i < ROWS; i++) {
        assert_true(ls__gathered_takes(batch, source));
        assert_false(ls__gathered_takes(batch, batch));
        ls__gathered_put(batch, i, (const char *)source->data + (ROWS - 1 - i) * BYTES);
    }
    return batch;
}

static ls__storage *tens(void)
{
    ls__storage *source = ls__storage_new("test", ROWS * BYTES);
    assert_non_null(source);
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < EACH; k++)
            ((int *)source->data)[i * EACH + k] = 10 * i + k;
    return source;
}

static void expect_rows(const int *at, int first, int count)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < EACH; k++)
            assert_int_equal(at[i * EACH + k], 10 * (ROWS - 1 - first - i) + k);
}

static ls__storage *part(ls__storage *batch, int first, int count)
{
    ls__storage *s = ls__gathered_part(ls__storage_ref(batch), (char *)batch->data + first * BYTES,
                                       (size_t)count * BYTES);
    assert_non_null(s);
    return s;
}

/* The source may go before anybody looks: the batch has it. */
static void all_of_it(void **state)
{
    (void)state;
    const size_t before = memory();
    ls__storage *source = tens(), *batch = backwards(source);
    ls__storage_unref(source);
    ls__storage *same = part(batch, 0, ROWS);
    assert_ptr_equal(same, batch);
    ls__storage_unref(same);
    expect_rows(ls__storage_look(batch), 0, ROWS);
    assert_false(ls__gathered_takes(batch, source));
    ls__storage_unref(batch);
    assert_int_equal(memory(), before);
}

static void parts_by_themselves(void **state)
{
    (void)state;
    const size_t before = memory();
    ls__storage *source = tens(), *batch = backwards(source);
    ls__storage *parts[] = { part(batch, 0, 2), part(batch, 2, 3), part(batch, 5, 1) };
    memset(batch->data, 0, ROWS * BYTES);
    ls__storage_unref(batch);
    ls__storage_unref(source);
    expect_rows(ls__storage_look(parts[1]), 2, 3);
    assert_true(ls__storage_waits(parts[0]));
    assert_int_equal(*(const int *)parts[0]->data, 0);
    expect_rows(ls__storage_look(parts[0]), 0, 2);
    for (int i = 0; i < 3; i++) /* the last was never looked at */
        ls__storage_unref(parts[i]);
    assert_int_equal(memory(), before);
}

/* Who made other rows of them gets those. */
static void parts_that_cut_rows(void **state)
{
    (void)state;
    const size_t before = memory();
    ls__storage *source = tens(), *batch = backwards(source);
    ls__storage *half = ls__gathered_part(ls__storage_ref(batch), (char *)batch->data + BYTES / 5,
                                          ROWS / 2 * BYTES);
    assert_non_null(half);
    assert_false(ls__storage_waits(batch));
    assert_int_equal(*(const int *)ls__storage_look(half), 10 * (ROWS - 1) + 1);
    ls__storage_unref(half);
    ls__storage_unref(batch);
    ls__storage_unref(source);
    assert_int_equal(memory(), before);
}

/* A part of a part that waits, of which nobody knows the rows. */
static void parts_of_parts(void **state)
{
    (void)state;
    const size_t before = memory();
    ls__storage *source = tens(), *batch = backwards(source), *whole = part(batch, 1, 4);
    ls__storage *first = ls__gathered_part(ls__storage_ref(whole), whole->data, BYTES);
    assert_ptr_equal(first, whole);
    ls__storage *last =
        ls__gathered_part(ls__storage_ref(whole), (char *)whole->data + 3 * BYTES, BYTES);
    expect_rows(ls__storage_look(last), 4, 1);
    expect_rows(ls__storage_look(first), 1, 4);
    ls__storage *all[] = { first, last, whole, batch, source };
    for (int i = 0; i < 5; i++)
        ls__storage_unref(all[i]);
    assert_int_equal(memory(), before);
}

static void sizes_that_no_memory_has(void **state)
{
    (void)state;
    ls__storage *source = tens();
    assert_null(ls__gathered_new(INT64_MAX, 1000, source));
    failed(LS_NO_MEMORY);
    assert_null(ls__gathered_new(INT64_MAX / 4, 1, source));
    failed(LS_NO_MEMORY);
    assert_int_equal(source->refs, 1);
    ls__storage_unref(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(all_of_it, clean),
        cmocka_unit_test_setup(parts_by_themselves, clean),
        cmocka_unit_test_setup(parts_that_cut_rows, clean),
        cmocka_unit_test_setup(parts_of_parts, clean),
        cmocka_unit_test_setup(sizes_that_no_memory_has, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
