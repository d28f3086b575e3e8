/* Sizes, quotas and PATH, as doctor reads them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>

#include "doctor.h"

static void sizes_are_short(void **state)
{
    (void)state;
    char out[32];
    assert_string_equal(doctor_bytes(0, out), "0 bytes");
    assert_string_equal(doctor_bytes(1023, out), "1023 bytes");
    assert_string_equal(doctor_bytes(1536, out), "1.5 KiB");
    assert_string_equal(doctor_bytes(64 << 20, out), "64 MiB");
    assert_string_equal(doctor_bytes(UINT64_MAX, out), "16384 PiB");
}

static void quotas_are_cpus(void **state)
{
    (void)state;
    assert_true(doctor_quota("150000 100000") == 1.5);
    assert_true(doctor_quota("200000 100000\n") == 2);
    assert_true(doctor_quota("max 100000") == 0);
    assert_true(doctor_quota("-1 100000") == 0); /* version 1: none */
    assert_true(doctor_quota("100000") == 0);
    assert_true(doctor_quota("100000 0") == 0);
    assert_true(doctor_quota("") == 0);
}

static void programs_are_found_on_path(void **state)
{
    (void)state;
    char out[64];
    setenv("PATH", "/nowhere:/bin:", 1);
    assert_true(doctor_find_program("sh", out, sizeof out));
    assert_string_equal(out, "/bin/sh");
    assert_true(doctor_find_program("/bin/sh", out, sizeof out));
    assert_false(doctor_find_program("./bin/no-such", out, sizeof out));
    assert_false(doctor_find_program("no-such-program", out, sizeof out));
    setenv("PATH", "", 1);
    assert_false(doctor_find_program("sh", out, sizeof out));
    unsetenv("PATH");
    assert_false(doctor_find_program("sh", out, sizeof out));
}

static void a_file_that_is_not_there_has_no_line(void **state)
{
    (void)state;
    char out[8];
    assert_false(doctor_first_line("/nowhere/at/all", out, sizeof out));
    assert_false(doctor_first_line("/", out, sizeof out));
    assert_false(doctor_first_line("/dev/null", out, sizeof out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_short),
        cmocka_unit_test(quotas_are_cpus),
        cmocka_unit_test(programs_are_found_on_path),
        cmocka_unit_test(a_file_that_is_not_there_has_no_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
