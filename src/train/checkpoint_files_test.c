/*
 * Checkpoints of steps in a directory: which of them stay, directories that are made, and the search for
 * the newest that is good.
 */
#include <sys/stat.h>

#include "train/checkpoint_test_support.h"

static void the_last_ones_stay(void **state)
{
    (void)state;
    run r;
    begin(&r, "/cpu:0");
    ls_checkpoint c = checkpoint_of(&r);
    put_file("step-1.safetensors", "mine", 4); /* names that are not ours */
    put_file("step-000000001.safetensors.bak", "mine", 4);
    put_file("step-000000001", "mine", 4);
    put_file("best.safetensors", "mine", 4);
    for (int i = 1; i <= 5; i++)
        went_well(ls_checkpoint_save_step(test_dir, &c, 100 * i, 3));
    assert_int_equal(entries(), 4 + 3);
    assert_false(there("step-000000200.safetensors"));
    assert_true(there("step-000000300.safetensors"));
    assert_true(there("step-000000500.safetensors"));
    /* Later ones of another run are not of these, and are not removed. */
    went_well(ls_checkpoint_save_step(test_dir, &c, 350, 1));
    assert_false(there("step-000000300.safetensors"));
    assert_true(there("step-000000400.safetensors"));
    assert_int_equal(entries(), 4 + 3);
    went_well(ls_checkpoint_save_step(test_dir, &c, 12345678901, 0)); /* all stay */
    assert_true(there("step-12345678901.safetensors"));
    assert_int_equal(entries(), 4 + 4);
    went_well(ls_checkpoint_save_step(test_dir, &c, 12345678901, 1)); /* again */
    assert_int_equal(entries(), 4 + 1);
    assert_string_equal(said, "");

    assert_int_equal(ls_checkpoint_save_step(test_dir, &c, -1, 1), LS_INVALID);
    failed(LS_INVALID, "step -1");
    assert_int_equal(ls_checkpoint_save_step(test_dir, &c, 1, -1), LS_INVALID);
    failed(LS_INVALID, "keep -1");
    assert_int_equal(ls_checkpoint_save_step(NULL, &c, 1, 1), LS_INVALID);
    failed(LS_INVALID, "NULL");
    assert_int_equal(ls_checkpoint_save_step("", &c, 1, 1), LS_INVALID);
    failed(LS_INVALID, "empty");
    end(&r);
}

static void directories_are_made(void **state)
{
    (void)state;
    run r;
    begin(&r, "/cpu:0");
    ls_checkpoint c = checkpoint_of(&r);
    went_well(ls_checkpoint_save_step(in_dir("a/b//c"), &c, 7, 2));
    assert_true(there("a/b/c/step-000000007.safetensors"));
    went_well(ls_checkpoint_save(in_dir("a/d/x.safetensors"), &c));
    assert_true(there("a/d/x.safetensors"));
    /* Not below a file, whoever one is. */
    assert_int_equal(ls_checkpoint_save_step(in_dir("a/d/x.safetensors/y"), &c, 7, 2), LS_IO);
    assert_non_null(strstr(ls_error_hint(), "there is a file"));
    failed(LS_IO, in_dir("a/d/x.safetensors"));
    assert_int_equal(ls_checkpoint_save(in_dir("a/d/x.safetensors/y/z"), &c), LS_IO);
    failed(LS_IO, in_dir("a/d/x.safetensors"));
    assert_int_equal(ls_checkpoint_save_step(in_dir("a/d/x.safetensors"), &c, 7, 2), LS_IO);
    failed(LS_IO, in_dir("a/d/x.safetensors"));
    assert_int_equal(unlink(in_dir("a/b/c/step-000000007.safetensors")), 0);
    assert_int_equal(unlink(in_dir("a/d/x.safetensors")), 0);
    assert_int_equal(rmdir(in_dir("a/b/c")), 0);
    assert_int_equal(rmdir(in_dir("a/b")), 0);
    assert_int_equal(rmdir(in_dir("a/d")), 0);
    end(&r);
}

static void the_newest_good_one(void **state)
{
    (void)state;
    char path[200], want[200];
    run r;
    begin(&r, "/cpu:0");
    ls_checkpoint c = checkpoint_of(&r);
    assert_int_equal(ls_checkpoint_newest(test_dir, path, sizeof path), LS_NOT_FOUND);
    failed(LS_NOT_FOUND, test_dir);
    assert_int_equal(ls_checkpoint_newest(in_dir("none"), path, sizeof path), LS_NOT_FOUND);
    failed(LS_NOT_FOUND, in_dir("none"));
    static const int64_t steps[] = { 5, 1000000000, 999999999, 70 };
    for (int i = 0; i < 4; i++)
        went_well(ls_checkpoint_save_step(test_dir, &c, steps[i], 0));
    put_file("step-2000000000.safetensors.part", "half", 4);

    went_well(ls_checkpoint_newest(test_dir, path, sizeof path));
    snprintf(want, sizeof want, "%s/step-1000000000.safetensors", test_dir);
    assert_string_equal(path, want);
    assert_string_equal(said, "");
    damage("step-1000000000.safetensors");
    truncate(in_dir("step-999999999.safetensors"), 100);
    went_well(ls_checkpoint_newest(test_dir, path, sizeof path));
    snprintf(want, sizeof want, "%s/step-000000070.safetensors", test_dir);
    assert_string_equal(path, want);
    assert_non_null(strstr(said, "step-1000000000.safetensors' is damaged"));
    assert_non_null(strstr(said, "step-999999999.safetensors' is damaged"));

    /* a file of tensors that is no checkpoint, and a directory of that name */
    said[0] = '\0';
    LS_FRAME
        went_well(ls_safetensors_write(in_dir("step-000000071.safetensors"),
                                       ls_variables_save(2, r.v), 0, NULL));
    assert_int_equal(mkdir(in_dir("step-000000072.safetensors"), 0777), 0);
    went_well(ls_checkpoint_newest(test_dir, path, sizeof path));
    assert_string_equal(path, want);
    assert_non_null(strstr(said, "step-000000071.safetensors' is no checkpoint"));
    assert_non_null(strstr(said, "step-000000072"));

    damage("step-000000070.safetensors");
    damage("step-000000005.safetensors");
    assert_int_equal(ls_checkpoint_newest(test_dir, path, sizeof path), LS_CORRUPT);
    failed(LS_CORRUPT, "all 6 checkpoints");
    assert_string_equal(path, want); /* untouched */

    /* A file is itself, or refused. */
    went_well(ls_checkpoint_save(in_dir("x"), &c));
    went_well(ls_checkpoint_newest(in_dir("x"), path, sizeof path));
    assert_string_equal(path, in_dir("x"));
    assert_int_equal(ls_checkpoint_newest(in_dir("x"), path, strlen(in_dir("x"))), LS_INVALID);
    failed(LS_INVALID, "room");
    went_well(ls_checkpoint_newest(in_dir("x"), path, strlen(in_dir("x")) + 1));
    damage("x");
    assert_int_equal(ls_checkpoint_newest(in_dir("x"), path, sizeof path), LS_CORRUPT);
    failed(LS_CORRUPT, in_dir("x"));
    assert_int_equal(ls_checkpoint_newest(NULL, path, sizeof path), LS_INVALID);
    failed(LS_INVALID, "NULL");
    assert_int_equal(ls_checkpoint_newest(in_dir("x"), NULL, 0), LS_INVALID);
    failed(LS_INVALID, "NULL");
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_last_ones_stay, clean_and_listen),
        cmocka_unit_test_setup(directories_are_made, clean_and_listen),
        cmocka_unit_test_setup(the_newest_good_one, clean_and_listen),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
