/*
 * Files that data.h refuses: names of none, directories, what may not be read; and the calls around them.
 * The text names the function or the file, and other files are read all the same.
 */
#include "data/data_refused.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static ls_dataset *numbers(void)
{
    return ls_range(0, 5, 1);
}

static ls_dataset *words(void)
{
    return ls_slices(ls_leaf(ls_from_strings(LS_DIMS(2), (const void *const[]){ "a", "b" }, NULL)));
}

static void files(void **state)
{
    (void)state;
    NAMES("ls_files", LS_INVALID, ls_files(0, NULL));
    NAMES("ls_files", LS_INVALID, ls_files(-1, (const char *const[]){ "x" }));
    NAMES("ls_files", LS_INVALID, ls_files(1, NULL));
    NAMES("ls_files", LS_INVALID, ls_files(2, (const char *const[]){ NULL, "x" }));
    NAMES("ls_files", LS_NOT_FOUND, LS_FILES("/nowhere/at/all"));
    NAMES("ls_files", LS_NOT_FOUND, LS_FILES("/nowhere/at/all-*"));
    NAMES("ls_files", LS_NOT_FOUND, LS_FILES(""));
    NAMES("ls_tfrecords", LS_INVALID, ls_tfrecords(NULL, NULL));
    NAMES("ls_text_lines", LS_INVALID, ls_text_lines(NULL, NULL));
    NAMES("ls_fixed_records", LS_INVALID, ls_fixed_records(NULL, LS_RECORDS(.record_bytes = 4)));
    NAMES("ls_tfrecords", SHAPE_OR_INVALID, ls_tfrecords(numbers(), NULL));
    NAMES("ls_text_lines", SHAPE_OR_INVALID, ls_text_lines(numbers(), NULL));
    NAMES("ls_fixed_records", SHAPE_OR_INVALID,
          ls_fixed_records(numbers(), LS_RECORDS(.record_bytes = 4)));
    NAMES("ls_tfrecords", SHAPE_OR_INVALID, ls_tfrecords(ls_batch(words(), 2), NULL));
    NAMES("ls_fixed_records", LS_INVALID, ls_fixed_records(words(), NULL));
    NAMES("ls_fixed_records", LS_INVALID, ls_fixed_records(words(), LS_RECORDS(.record_bytes = 0)));
    NAMES("ls_fixed_records", LS_INVALID,
          ls_fixed_records(words(), LS_RECORDS(.record_bytes = -4)));
    NAMES("ls_fixed_records", LS_INVALID,
          ls_fixed_records(words(), LS_RECORDS(.record_bytes = 4, .header_bytes = -1)));
    NAMES("ls_fixed_records", LS_INVALID,
          ls_fixed_records(words(), LS_RECORDS(.record_bytes = 4, .footer_bytes = -1)));
    NAMES("ls_tfrecords", LS_INVALID,
          ls_tfrecords(words(), LS_RECORDS(.compression = (ls_compression)9)));
    NAMES("ls_text_lines", LS_INVALID,
          ls_text_lines(words(), LS_RECORDS(.compression = (ls_compression)-1)));
    NAMES("ls_tfrecords", LS_INVALID, ls_tfrecords(words(), &(ls_records_options){ .size = 0 }));
    none_was_wrong();
}

static void files_that_are_not_there(void **state)
{
    (void)state;
    NAMES("ls_read_idx", LS_INVALID, ls_read_idx(NULL));
    NAMES("ls_read_npy", LS_INVALID, ls_read_npy(NULL));
    NAMES("ls_read_npz", LS_INVALID, ls_read_npz(NULL));
    NAMES("/nowhere", LS_NOT_FOUND, ls_read_idx("/nowhere/x.idx"));
    NAMES("/nowhere", LS_NOT_FOUND, ls_read_npy("/nowhere/x.npy"));
    NAMES("/nowhere", NOT_FOUND_OR_UNSUPPORTED, ls_read_npz("/nowhere/x.npz"));
    NAMES("/tmp", ANY_ERROR, ls_read_idx("/tmp"));
    NAMES("/tmp", ANY_ERROR, ls_read_npy("/tmp"));
    NAMES("/tmp", ANY_ERROR, ls_read_npz("/tmp"));
    NAMES("''", ANY_ERROR, ls_read_idx(""));
    NAMES("''", ANY_ERROR, ls_read_npy(""));
    NAMES("ls_fashion_mnist", LS_INVALID, ls_fashion_mnist(NULL));
    NAMES("ls_fashion_mnist", LS_INVALID, ls_fashion_mnist("validation"));
    NAMES("ls_read_fashion_mnist", LS_INVALID, ls_read_fashion_mnist(NULL));
    NAMES("ls_read_fashion_mnist", LS_INVALID, ls_read_fashion_mnist("Train"));
    none_was_wrong();
}

/* A name of no file: an error that says it, and the files that follow are read. */
static void readers_of_files_that_are_not_there(void **state)
{
    (void)state;
    for (int reader = 0; reader < 3; reader++)
        LS_FRAME {
            ls_dataset *d = ls_slices(ls_leaf(ls_from_strings(
                LS_DIMS(2), (const void *const[]){ "/nowhere/x", "/dev/null" }, NULL)));
            d = reader == 0   ? ls_tfrecords(d, NULL)
                : reader == 1 ? ls_text_lines(d, NULL)
                              : ls_fixed_records(d, LS_RECORDS(.record_bytes = 4));
            ls_iterator *it = ls_iterate(d);
            ls_value *v = NULL;
            ls_status st = ls_next(it, &v);
            NAMES("/nowhere/x", LS_NOT_FOUND, st ? NULL : "an element");
            assert_int_equal(ls_next(it, &v), LS_END);
            ls_iterator_free(it);
        }
    none_was_wrong();
}

static ls_dataset *read_with(int reader, ls_dataset *names, bool skip_corrupt)
{
    ls_records_options o = { .size = sizeof o,
                             .skip_corrupt = skip_corrupt,
                             .record_bytes = reader == 2 };
    return reader == 0   ? ls_tfrecords(names, &o)
           : reader == 1 ? ls_text_lines(names, &o)
                         : ls_fixed_records(names, &o);
}

/* An element or more, an error that names the file, then the rest, whoever leaves out what is damaged:
 * a file that cannot be read is not a damaged record. */
static void reads_but_one(int reader, ls_dataset *names, const char *which)
{
    int records = 0, errors = 0;
    for (int skip = 0; skip < 2; skip++)
        LS_FRAME {
            ls_iterator *it = ls_iterate(read_with(reader, names, skip));
            ls_value *v = NULL;
            for (ls_status st; (st = ls_next(it, &v)) != LS_END && errors < 9;
                 errors += st != LS_OK)
                if (st)
                    NAMES(which, LS_IO, NULL);
                else
                    records++;
            assert_int_equal(ls_iterator_skipped(it), 0);
            ls_iterator_free(it);
        }
    assert_int_equal(errors, 2);
    assert_true(records >= 4 && records % 4 == 0); /* as many before it as behind it, twice */
}

static void readers_of_what_is_no_file(void **state)
{
    (void)state;
    write_records("a", 0, 1);
    write_records("c", 0, 1);
    LS_FRAME {
        char a[256], c[256];
        snprintf(a, sizeof a, "%s", in_directory("a"));
        snprintf(c, sizeof c, "%s", in_directory("c"));
        ls_dataset *names = ls_slices(
            ls_leaf(ls_from_strings(LS_DIMS(3), (const void *const[]){ a, "/tmp", c }, NULL)));
        for (int reader = 0; reader < 3; reader++)
            reads_but_one(reader, names, "'/tmp'");
    }
    none_was_wrong();
}

/* The administrator may read everything: who is one is somebody else meanwhile. */
static void readers_without_permission(void **state)
{
    (void)state;
    const uid_t before = geteuid();
    write_records("locked", 0, 1);
    assert_int_equal(chmod(in_directory("locked"), 0), 0);
    LS_FRAME {
        ls_dataset *names = LS_FILES(in_directory("locked"));
        if (before != 0 || seteuid(65534) == 0)
            for (int reader = 0; reader < 3; reader++) {
                ls_iterator *it = ls_iterate(read_with(reader, names, reader % 2));
                ls_value *v = NULL;
                SAYS("locked", LS_IO, ls_next(it, &v));
                assert_int_equal(ls_next(it, &v), LS_END);
                ls_iterator_free(it);
            }
        assert_int_equal(seteuid(before), 0);
    }
    none_was_wrong();
}

#define TEST(f) cmocka_unit_test_setup(f, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(files),
        TEST(files_that_are_not_there),
        TEST(readers_of_files_that_are_not_there),
        TEST(readers_of_what_is_no_file),
        TEST(readers_without_permission),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
