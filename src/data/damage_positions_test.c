/*
 * Positions among damaged files: behind what could not be read the iterator goes on as it would have, and a
 * batch or a shuffle behind it does, too.
 */
#include "data/record_test_support.h"
#include "data/stage_test.h"

static ls_compression kind;

/* 1 is damaged, 2 is not there, 3 is as it was. */
static ls_dataset *files(void)
{
    const void *names[] = { in_dir("1"), in_dir("2"), in_dir("3") };
    return ls_slices(ls_leaf(ls_from_strings(LS_DIMS(3), names, NULL)));
}

static ls_dataset *records(uint64_t seed)
{
    ls_dataset *d = ls_tfrecords(files(), LS_RECORDS(.compression = kind));
    switch (seed % 4) {
    case 0:
        return d;
    case 1:
        return ls_batch(d, 3);
    case 2:
        return ls_shuffle(d, 3, seed);
    default:
        return ls_enumerate(ls_shuffle(ls_batch(d, 2), 2, seed), 0);
    }
}

static bytes five_records(void)
{
    bytes b = { 0 };
    for (int i = 0; i < 5; i++)
        add_sample_record(&b, i, (size_t)(i * 5 % 7));
    return b;
}

static void every_flipped_byte(void **state)
{
    (void)state;
    bytes b = five_records();
    put_packed("3", LS_PLAIN, &b);
    kind = LS_PLAIN;
    for (size_t at = 0; at < b.n; at++) {
        b.at[at] ^= 0x10;
        put_packed("1", LS_PLAIN, &b);
        assert_true(check_positions(records, at, 0) >= 2);
        b.at[at] ^= 0x10;
    }
    free_bytes(&b);
}

static void packed_files(void **state)
{
    (void)state;
    bytes b = five_records();
    for (kind = LS_PLAIN; kind <= last_kind; kind++) {
        put_packed("3", kind, &b);
        for (size_t at = 0; at < b.n; at += 7) {
            b.at[at] ^= 1;
            put_packed("1", kind, &b);
            assert_true(check_positions(records, at, 0) >= 2);
            b.at[at] ^= 1;
        }
    }
    free_bytes(&b);
}

/* The last record of each file is cut off. */
static ls_dataset *fixed(uint64_t seed)
{
    ls_dataset *d = ls_fixed_records(files(), LS_RECORDS(.record_bytes = 4));
    return seed ? ls_batch(d, 2) : d;
}

static void records_of_one_length(void **state)
{
    (void)state;
    put_file("1", "abcdefghij", 10);
    put_file("3", "ABCDEFGHIJKLM", 13);
    assert_int_equal(check_positions(fixed, 0, 0), 5);
    assert_int_equal(check_positions(fixed, 1, 0), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_flipped_byte, clean_dir),
        cmocka_unit_test_setup(packed_files, clean_dir),
        cmocka_unit_test_setup(records_of_one_length, clean_dir),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
