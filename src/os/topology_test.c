/*
 * The cores this process may use, against the scheduler's own mask, and the
 * reading of cgroup quotas.
 */
#include "os/topology.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void quotas(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int cpus;
    } table[] = {
        { "200000 100000", 2 },
        { "200000 100000\n", 2 },
        { "100000 100000\n", 1 },
        { "150000 100000", 2 }, /* rounds up */
        { "100001 100000", 2 },
        { "50000 100000", 1 },
        { "1000 100000", 1 },
        { "1600000 50000\n", 32 },
        { "max 100000", 0 },
        { "max 100000\n", 0 },
        { "", 0 }, /* what cannot be read is no limit */
        { "\n", 0 },
        { "garbage", 0 },
        { "100000 0", 0 },
        { "-1 100000", 0 },
        { "100000 -1", 0 },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (ls__quota_cpus(table[i].text) != table[i].cpus)
            fail_msg("\"%s\": %d, not %d", table[i].text, ls__quota_cpus(table[i].text),
                     table[i].cpus);
    assert_true(ls__quota_cpus("9223372036854775807 1") >= 0); /* no overflow */
    assert_true(ls__quota_cpus("99999999999999999999999 100000") >= 0);
}

static void cores_are_of_the_affinity_mask(void **state)
{
    (void)state;
    cpu_set_t mask, seen;
    assert_int_equal(sched_getaffinity(0, sizeof mask, &mask), 0);
    int n = ls__cores();
    assert_true(n >= 1);
    assert_true(n <= CPU_COUNT(&mask));
    CPU_ZERO(&seen);
    for (int i = 0; i < n; i++) {
        int core = ls__core_number(i);
        assert_true(core >= 0 && core < CPU_SETSIZE);
        assert_true(CPU_ISSET(core, &mask));
        assert_false(CPU_ISSET(core, &seen)); /* each once */
        CPU_SET(core, &seen);
    }
    for (int i = 0; i < n; i++) {
        assert_int_equal(ls__core_number(i + n), ls__core_number(i));
        assert_int_equal(ls__core_number(i + 1000 * n), ls__core_number(i));
    }
}

static void read_once(void **state)
{
    (void)state;
    cpu_set_t mask, one;
    int n = ls__cores(), first = ls__core_number(0), last = ls__core_number(n - 1);
    assert_int_equal(sched_getaffinity(0, sizeof mask, &mask), 0);
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    int n_now = ls__cores(), first_now = ls__core_number(0);
    assert_int_equal(sched_setaffinity(0, sizeof mask, &mask), 0);
    assert_int_equal(n_now, n);
    assert_int_equal(first_now, first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quotas),
        cmocka_unit_test(cores_are_of_the_affinity_mask),
        cmocka_unit_test(read_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
