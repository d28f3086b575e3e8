/*
 * Caches in files: made once and found by others, never half; and files that are damaged or not ours.
 */
#include "data/cache_test_support.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64], path[128], part[136];

static int make_dir(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/lockstep-cache-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof path, "%s/kept", dir);
    snprintf(part, sizeof part, "%s.part", path);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    return rmdir(dir);
}

static int clean_files(void **state)
{
    unlink(path);
    unlink(part);
    return clean(state);
}

static bool there(const char *name)
{
    return access(name, F_OK) == 0;
}

static unsigned char bytes[1 << 20];

static size_t load(void)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    return n;
}

static void save(const char *name, const void *data, size_t n)
{
    FILE *f = fopen(name, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* Changes a byte of the file, which is much faster than writing all of it anew. */
static void poke(size_t at, unsigned char byte)
{
    int file = open(path, O_WRONLY);
    assert_true(file >= 0 && pwrite(file, &byte, 1, (off_t)at) == 1);
    close(file);
}

static ls_dataset *squares(recipe *r, bool light)
{
    return light ? light_squares(r) : made_squares(r, true);
}

/* ---- making and finding ------------------------------------------------------------------------- */

static void made_once_and_found_by_others(void **state)
{
    (void)state;
    for (int light = 0; light < 2; light++) {
        recipe r = { .n = 1300, .fail_at = -1 };
        unlink(path);
        LS_FRAME {
            ls_dataset *d = ls_cache(squares(&r, light), path);
            ls_iterator *it = ls_iterate(d);
            for (int64_t i = 0; i < 1300; i++)
                assert_int_equal(next_number(it), i * i);
            assert_true(there(part) && !there(path));
            assert_int_equal(next_number(it), -1);
            assert_true(there(path) && !there(part));
            ls_iterator_free(it);
            check_all(d, 1300);
            check_all(ls_cache(squares(&r, light), path), 1300); /* as another process does */
            assert_int_equal(r.opened, 1);
            int64_t sum = 0;
            LS_FOR_EACH (b, ls_batch(d, 100))
                sum += ls_to_int(ls_sum(ls_leaf_tensor(b), LS_ALL_AXES, false));
            assert_int_equal(sum, 1299LL * 1300 * 2599 / 6);
        }
    }
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void all_kinds_of_elements(void **state)
{
    (void)state;
    LS_FRAME {
        for (int i = 0; i < 3; i++)
            same_elements(ls_cache(all_kinds(), path), all_kinds(), 4);
        unlink(path);
        for (int i = 0; i < 3; i++)
            same_elements(ls_cache(string_arrays(), path), string_arrays(), 1);
        unlink(path);
        float *big = calloc(3 * 100000, sizeof *big); /* larger than what is read at once */
        assert_non_null(big);
        for (int i = 0; i < 300000; i++)
            big[i] = (float)i;
        ls_dataset *rows = ls_slices(ls_leaf(ls_from(LS_F32, LS_DIMS(3, 100000), big)));
        free(big);
        for (int i = 0; i < 3; i++)
            same_elements(ls_cache(rows, path), rows, 3);
        unlink(path);
        recipe none = { .n = 0, .fail_at = -1 };
        for (int i = 0; i < 3; i++)
            check_all(ls_cache(light_squares(&none), path), 0);
        assert_int_equal(none.opened, 1);
    }
    assert_int_equal(ls_error_pending(), LS_OK);
}

/* ---- half a file --------------------------------------------------------------------------------- */

static void half_a_file_is_never_there(void **state)
{
    (void)state;
    recipe r = { .n = 100, .fail_at = -1 };
    LS_FRAME {
        ls_dataset *d = ls_cache(light_squares(&r), path);
        ls_iterator *it = ls_iterate(d);
        for (int i = 0; i < 100; i++)
            next_number(it);
        ls_iterator_free(it);
        assert_false(there(path) || there(part));

        save(part, "of somebody who died", 20);
        check_all(d, 100);
        assert_true(there(path) && !there(part));
        assert_int_equal(r.opened, 2);
        check_all(d, 100);
        assert_int_equal(r.opened, 2);

        unlink(path);
        r.fail_at = 50; /* what is not all is not kept */
        it = ls_iterate(d);
        for (int i = 0; i < 50; i++)
            next_number(it);
        ls_value *v;
        assert_int_equal(ls_next(it, &v), LS_CORRUPT);
        failed_with(LS_CORRUPT, "element 50");
        check_rest(it, 51, 100);
        ls_iterator_free(it);
        assert_false(there(path) || there(part));
    }
}

static void one_of_two_writers(void **state)
{
    (void)state;
    recipe r = { .n = 100, .fail_at = -1 };
    LS_FRAME {
        ls_dataset *d = ls_cache(light_squares(&r), path);
        ls_dataset *e = ls_cache(light_squares(&r), path);
        ls_iterator *a = ls_iterate(d), *b = ls_iterate(e), *c = ls_iterate(d);
        check_rest(b, 0, 100);
        assert_true(there(part) && !there(path));
        check_rest(a, 0, 100);
        assert_true(there(path));
        check_rest(c, 0, 100);
        check_all(e, 100);
        assert_int_equal(r.opened, 3);
        ls_iterator_free(a);
        ls_iterator_free(b);
        ls_iterator_free(c);

        unlink(path); /* another process is writing it */
        int file = open(part, O_WRONLY | O_CREAT, 0600);
        assert_int_equal(flock(file, LOCK_EX), 0);
        check_all(d, 100);
        assert_true(there(part) && !there(path));
        close(file);
        check_all(d, 100);
        assert_true(!there(part) && there(path));
    }
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void the_disk_is_full(void **state)
{
    (void)state;
    struct rlimit before, small;
    enum { N = 40000 };
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (int where = 0; where < 2; where++) {
        recipe r = { .n = where ? N : 100, .fail_at = -1 }; /* on the way, and at the end */
        small = before;
        small.rlim_cur = where ? 300000 : 100;
        LS_FRAME {
            ls_iterator *it = ls_iterate(ls_cache(light_squares(&r), path));
            int64_t given = 0, failures = 0;
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
            for (;;) {
                ls_value *v = NULL;
                ls_status st = LS_OK;
                LS_FRAME {
                    st = ls_next(it, &v);
                    if (!st)
                        assert_int_equal(ls_to_int(ls_leaf_tensor(v)), given * given);
                }
                if (st == LS_END)
                    break;
                given += !st;
                failures += st != LS_OK;
                if (st)
                    failed_with(LS_IO, part);
            }
            setrlimit(RLIMIT_FSIZE, &before);
            assert_int_equal(given, r.n); /* nothing is lost */
            assert_int_equal(failures, 1);
            assert_false(there(path) || there(part));
            ls_iterator_free(it);
        }
    }
    signal(SIGXFSZ, SIG_DFL);
}

static void no_place_for_it(void **state)
{
    (void)state;
    LS_FRAME {
        assert_null(ls_iterate(ls_cache(ls_range(0, 3, 1), "/nowhere/at/all")));
        failed_with(LS_NOT_FOUND, "/nowhere/at/all");
        assert_null(ls_iterate(ls_cache(ls_range(0, 3, 1), dir)));
        assert_non_null(strstr(ls_error_text(), dir));
        failed_with(LS_IO, "directory");
        assert_int_equal(mkdir(part, 0700), 0);
        assert_null(ls_iterate(ls_cache(ls_range(0, 3, 1), path)));
        failed_with(LS_IO, part);
        rmdir(part);
    }
}

/* ---- files that are not what they should be ------------------------------------------------------- */

static void files_that_are_not_ours(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d = ls_cache(ls_range(0, 3, 1), path);
        static const char text[] = "the diary of somebody else, which we had better not touch";
        save(path, text, sizeof text);
        assert_null(ls_iterate(d));
        failed_with(LS_INVALID, path);
        assert_int_equal(load(), sizeof text);
        assert_memory_equal(bytes, text, sizeof text);
        save(path, "", 0);
        assert_null(ls_iterate(d));
        failed_with(LS_INVALID, path);

        unlink(path);
        same_elements(d, ls_range(0, 3, 1), 3);
        assert_null(ls_iterate(ls_cache(ls_range(0, 4, 1), path)));
        failed_with(LS_INVALID, "another dataset");
        size_t n = load();
        bytes[12]++;
        save(path, bytes, n);
        assert_null(ls_iterate(d));
        failed_with(LS_INVALID, "another version");
        bytes[12]--;
        memcpy(bytes + 8, (unsigned char[]){ bytes[11], bytes[10], bytes[9], bytes[8] }, 4);
        save(path, bytes, n);
        assert_null(ls_iterate(d));
        failed_with(LS_INVALID, "byte order");
    }
}

static void cut_off_at_every_byte(void **state)
{
    (void)state;
    recipe r = { .n = 20, .fail_at = -1 };
    LS_FRAME {
        ls_dataset *d = ls_cache(light_squares(&r), path);
        check_all(d, 20);
        size_t n = load();
        for (size_t cut = n; cut-- > 0;) {
            assert_int_equal(truncate(path, (off_t)cut), 0);
            assert_null(ls_iterate(d));
            failed_with(cut < 16 ? LS_INVALID : LS_CORRUPT, path);
        }
        bytes[n] = 0;
        save(path, bytes, n + 1);
        assert_null(ls_iterate(d));
        failed_with(LS_CORRUPT, path);
        assert_int_equal(r.opened, 1); /* nothing was made anew */
    }
}

/* How many of the 12 elements are errors, the others being right; -1: the file is refused. */
static int read_damaged(ls_dataset *d)
{
    ls_iterator *it = ls_iterate(d);
    if (!it) {
        failed_with(ls_error_pending(), path);
        return -1;
    }
    int bad = 0;
    for (int64_t k = 0; k < 12; k++) {
        ls_value *v = NULL;
        if (ls_next(it, &v) == LS_OK) {
            assert_int_equal(ls_to_int(ls_leaf_tensor(v)), k * k);
            continue;
        }
        failed_with(LS_CORRUPT, path);
        bad++;
    }
    assert_int_equal(next_number(it), -1);
    ls_iterator_free(it);
    return bad;
}

/* Whatever bit is wrong: an element is right or an error, and a damaged one loses no other. */
static void every_bit_changed(void **state)
{
    (void)state;
    for (int light = 0; light < 2; light++) {
        recipe r = { .n = 12, .fail_at = -1 };
        unlink(path);
        LS_FRAME {
            ls_dataset *d = ls_cache(squares(&r, light), path);
            check_all(d, 12);
            size_t n = load();
            int refused = 0, lost = 0;
            for (size_t i = 0; i < n; i++)
                for (int bit = 0; bit < 8; bit += 1 + 6 * light)
                    LS_FRAME {
                        poke(i, bytes[i] ^ (unsigned char)(1 << bit));
                        int bad = read_damaged(d);
                        poke(i, bytes[i]);
                        assert_true(bad == -1 || bad == 1 || bad == 12); /* a record, or the page */
                        refused += bad == -1;
                        lost += bad == 1;
                    }
            assert_true(refused > 0 && lost > 0);
            assert_int_equal(read_damaged(d), 0);
            assert_int_equal(r.opened, 1);
        }
    }
}

static void becomes_shorter_while_it_is_read(void **state)
{
    (void)state;
    recipe r = { .n = 2000, .fail_at = -1 };
    LS_FRAME {
        ls_dataset *d = ls_cache(light_squares(&r), path);
        check_all(d, 2000);
        ls_iterator *it = ls_iterate(d);
        assert_int_equal(next_number(it), 0);
        assert_int_equal(truncate(path, 100), 0);
        ls_value *v;
        for (int i = 1; i < 600; i++)
            if (ls_next(it, &v))
                break;
        failed_with(LS_CORRUPT, path);
        ls_iterator_free(it);
    }
}

/* ---- positions ------------------------------------------------------------------------------------- */

static void goes_on_from_anywhere(void **state)
{
    (void)state;
    enum { N = 1300 };
    for (int light = 0; light < 2; light++) {
        recipe r = { .n = N, .fail_at = -1 };
        unlink(path);
        LS_FRAME {
            ls_dataset *memory_kept = ls_cache(squares(&r, light), NULL);
            ls_dataset *d = ls_cache(squares(&r, light), path);
            check_all(memory_kept, N);
            check_all(d, N);
            ls_iterator *it = ls_iterate(d), *same = ls_iterate(memory_kept);
            for (int64_t at = 0; at < N; at++) {
                LS_FRAME {
                    ls_tensor *position = ls_position(it);
                    /* Of a cache in memory they are the same: where elements are kept is no matter. */
                    assert_true(same_bytes(position, ls_position(same)));
                    if (at % 37 == 0) {
                        ls_iterator *reads = ls_iterate(d);
                        assert_int_equal(ls_seek(reads, position), LS_OK);
                        assert_true(same_bytes(position, ls_position(reads)));
                        for (int64_t i = at; i < at + 3 && i < N; i++)
                            assert_int_equal(next_number(reads), i * i);
                        ls_iterator_free(reads);
                        char elsewhere[160]; /* there is no such file yet */
                        snprintf(elsewhere, sizeof elsewhere, "%s/other", dir);
                        r.reads = 0;
                        ls_iterator *passes = ls_iterate(ls_cache(squares(&r, light), elsewhere));
                        assert_int_equal(ls_seek(passes, position), LS_OK);
                        assert_true(r.reads <= (light ? 0 : 70));
                        assert_true(same_bytes(position, ls_position(passes)));
                        check_rest(passes, at, N);
                        ls_iterator_free(passes);
                        assert_int_equal(there(elsewhere), at == 0);
                        unlink(elsewhere);
                    }
                }
                assert_int_equal(next_number(it), at * at);
                assert_int_equal(next_number(same), at * at);
            }
            ls_iterator_free(it);
            ls_iterator_free(same);
        }
    }
    assert_int_equal(ls_error_pending(), LS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(made_once_and_found_by_others, clean_files, clean_files),
        cmocka_unit_test_setup_teardown(all_kinds_of_elements, clean_files, clean_files),
        cmocka_unit_test_setup_teardown(half_a_file_is_never_there, clean_files, clean_files),
        cmocka_unit_test_setup_teardown(one_of_two_writers, clean_files, clean_files),
        cmocka_unit_test_setup_teardown(the_disk_is_full, clean_files, clean_files),
        cmocka_unit_test_setup_teardown(no_place_for_it, clean_files, clean_files),
        cmocka_unit_test_setup_teardown(files_that_are_not_ours, clean_files, clean_files),
        cmocka_unit_test_setup_teardown(cut_off_at_every_byte, clean_files, clean_files),
        cmocka_unit_test_setup_teardown(every_bit_changed, clean_files, clean_files),
        cmocka_unit_test_setup_teardown(becomes_shorter_while_it_is_read, clean_files, clean_files),
        cmocka_unit_test_setup_teardown(goes_on_from_anywhere, clean_files, clean_files),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
