/*
 * ls_mirrored: devices in every spelling, placements, options that make no sense; and what a
 * strategy says about itself.
 */
#include "strategy/strategy_support.h"

#include <lockstep/device.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define LOCAL "/job:localhost/replica:0/task:0/device:CPU:"

/* The devices of a strategy's replicas are CPUs of these numbers, in this order. */
static void placed(ls_strategy *s, int count, const int *cpus)
{
    if (!s)
        fail_msg("no strategy: %s", ls_error_report());
    assert_int_equal(ls_num_replicas(s), count);
    int n = -1;
    const char *const *devices = ls_worker_devices(s, &n);
    assert_int_equal(n, count);
    for (int i = 0; i < n; i++) {
        char want[LS_DEVICE_NAME_MAX];
        snprintf(want, sizeof want, LOCAL "%d", cpus[i]);
        assert_string_equal(devices[i], want);
    }
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void placed_and_freed(const ls_mirrored_options *options, int count, const int *cpus)
{
    ls_strategy *s = ls_mirrored(options);
    placed(s, count, cpus);
    free_strategy(s);
}

/* ---- devices ------------------------------------------------------------------------ */

static void no_devices_are_one_cpu(void **state)
{
    (void)state;
    const int first[] = { 0 };
    placed_and_freed(NULL, 1, first);
    placed_and_freed(LS_MIRRORED(.devices = NULL), 1, first);
    placed_and_freed(LS_MIRRORED(.devices = ""), 1, first);
    ls_mirrored_options options;
    memset(&options, 0xff, sizeof options);
    ls_mirrored_init(&options);
    assert_int_equal(options.size, sizeof options);
    placed_and_freed(&options, 1, first);
    const int twice[] = { 0, 0, 0 };
    placed_and_freed(LS_MIRRORED(.replicas = 3), 3, twice);
}

static void every_spelling_is_the_same_device(void **state)
{
    (void)state;
    static const char *const spellings[] = { "/cpu:1",        "cpu:1",
                                             "CPU:1",         "/CPU:1",
                                             "/device:CPU:1", "/device:cpu:1",
                                             LOCAL "1",       "/job:localhost/device:CPU:1" };
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        char two[256];
        snprintf(two, sizeof two, "/cpu:0,%s", spellings[i]);
        placed_and_freed(LS_MIRRORED(.devices = two), 2, (int[]){ 0, 1 });
        /* And so twice the same is noticed. */
        snprintf(two, sizeof two, "%s,/cpu:1", spellings[i]);
        assert_null(ls_mirrored(LS_MIRRORED(.devices = two)));
        FAILS(LS_INVALID, "CPU:1", "twice");
    }
    placed_and_freed(LS_MIRRORED(.devices = "/cpu"), 1, (int[]){ 0 });
}

static void the_order_is_that_of_the_argument(void **state)
{
    (void)state;
    placed_and_freed(LS_MIRRORED(.devices = "/cpu:2,/cpu:0,/cpu:1"), 3, (int[]){ 2, 0, 1 });
    placed_and_freed(LS_MIRRORED(.devices = "/cpu:900,/cpu:7"), 2, (int[]){ 900, 7 });
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:2,/cpu:0", .replicas = 3));
    placed(s, 3, (int[]){ 2, 2, 0 });
    int n = 0;
    const char *const *distinct = ls_parameter_devices(s, &n);
    assert_int_equal(n, 2);
    assert_string_equal(distinct[0], LOCAL "2");
    assert_string_equal(distinct[1], LOCAL "0");
    free_strategy(s);
}

static void names_that_are_no_devices_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = { "banana",
                                       "/cpu:x",
                                       "/cpu:-1",
                                       "/cpu:70000",
                                       "/tpu:0",
                                       "/cpu:0 /cpu:1",
                                       "/cpu:99999999999999999999" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char two[128];
        snprintf(two, sizeof two, "/cpu:0,%s", bad[i]);
        assert_null(ls_mirrored(LS_MIRRORED(.devices = two)));
        assert_int_equal(strncmp(ls_error_text(), "ls_mirrored: device '", 21), 0);
        FAILS(LS_INVALID, bad[i]);
    }
    static const char *const holes[] = { ",", "/cpu:0,,/cpu:1", ",/cpu:0" };
    for (size_t i = 0; i < sizeof holes / sizeof *holes; i++) {
        assert_null(ls_mirrored(LS_MIRRORED(.devices = holes[i])));
        FAILS(LS_INVALID, "device");
    }
    /* A GPU, where there is none. */
    assert_null(ls_mirrored(LS_MIRRORED(.devices = "/gpu:0")));
    assert_int_equal(strncmp(ls_error_text(), "ls_mirrored: device '", 21), 0);
    assert_true(mentions(ls_error_text(), "gpu:0"));
    assert_true(ls_error() != LS_OK);

    size_t length = 1 << 20;
    char *lots = malloc(length + 1);
    memset(lots, 'x', length);
    lots[length] = 0;
    assert_null(ls_mirrored(LS_MIRRORED(.devices = lots)));
    FAILS(LS_INVALID, "1048576");
    for (size_t i = 0; i < length; i++)
        lots[i] = ',';
    assert_null(ls_mirrored(LS_MIRRORED(.devices = lots)));
    ls_error();
    free(lots);
}

static void devices_of_other_processes_are_refused(void **state)
{
    (void)state;
    assert_null(ls_mirrored(LS_MIRRORED(.devices = "/job:worker/task:1/device:CPU:0")));
    FAILS(LS_STATE, "worker", "process");
    assert_null(ls_mirrored(LS_MIRRORED(.devices = "/job:worker/device:CPU:0")));
    FAILS(LS_INVALID, "worker", "task");
    assert_null(ls_mirrored(
        LS_MIRRORED(.devices = "/job:worker/task:0/cpu:0,/job:worker/task:1/device:CPU:0")));
    FAILS(LS_STATE, "worker");
    assert_null(ls_mirrored(LS_MIRRORED(.devices = "/cpu:0,/job:worker/task:1/device:CPU:0")));
    FAILS(LS_INVALID, "worker");
    assert_null(ls_mirrored(LS_MIRRORED(.devices = "/job:worker/task:1/device:CPU:0,/cpu:0")));
    FAILS(LS_INVALID, "worker");
}

/* ---- placements ------------------------------------------------------------------------ */

static void replicas_share_devices_in_contiguous_balanced_blocks(void **state)
{
    (void)state;
    placed_and_freed(LS_MIRRORED(.devices = "/cpu:0,/cpu:1", .replicas = 5), 5,
                     (int[]){ 0, 0, 0, 1, 1 });
    placed_and_freed(LS_MIRRORED(.devices = "/cpu:0,/cpu:1,/cpu:2", .replicas = 8), 8,
                     (int[]){ 0, 0, 0, 1, 1, 1, 2, 2 });
    placed_and_freed(LS_MIRRORED(.devices = "/cpu:0,/cpu:1,/cpu:2", .replicas = 3), 3,
                     (int[]){ 0, 1, 2 });
    for (int v = 1; v <= 17; v++) {
        for (int d = 1; d <= v && d <= 6; d++) {
            char names[128] = "";
            for (int i = 0; i < d; i++)
                snprintf(names + strlen(names), sizeof names - strlen(names), "%scpu:%d",
                         i ? "," : "", i);
            int cpus[17], at = 0;
            for (int i = 0; i < d; i++)
                for (int k = 0; k < v / d + (i < v % d); k++)
                    cpus[at++] = i;
            placed_and_freed(LS_MIRRORED(.devices = names, .replicas = v), v, cpus);
        }
    }
}

static void numbers_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    assert_null(ls_mirrored(LS_MIRRORED(.replicas = -1)));
    FAILS(LS_INVALID, "-1", "replicas");
    assert_null(ls_mirrored(LS_MIRRORED(.replicas = INT_MIN)));
    FAILS(LS_INVALID, "replicas");
    assert_null(ls_mirrored(LS_MIRRORED(.replicas = INT_MAX)));
    FAILS(LS_INVALID, "2147483647", "replicas");
    assert_null(ls_mirrored(LS_MIRRORED(.devices = "/cpu:0,/cpu:1,/cpu:2", .replicas = 2)));
    FAILS(LS_INVALID, "2", "3", "replicas", "devices");
}

static void at_most_1024_replicas(void **state)
{
    (void)state;
    assert_null(ls_mirrored(LS_MIRRORED(.replicas = 1025)));
    FAILS(LS_INVALID, "ls_mirrored: 1025 replicas", "1 to 1024");
    char names[1025 * 10] = "";
    size_t at = 0;
    for (int i = 0; i < 1024; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%scpu:%d", i ? "," : "", i);
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = names));
    GAVE(s);
    assert_int_equal(ls_num_replicas(s), 1024);
    free_strategy(s);
    snprintf(names + at, sizeof names - at, ",cpu:1024");
    for (int replicas = 0; replicas < 2; replicas++) {
        assert_null(ls_mirrored(LS_MIRRORED(.devices = names, .replicas = replicas)));
        FAILS(LS_INVALID, "ls_mirrored: 1025 devices, so 1025 replicas", "at most 1024");
    }
}

static void options_of_another_size_are_refused(void **state)
{
    (void)state;
    ls_mirrored_options o = *LS_MIRRORED(.devices = "/cpu:0");
    static const size_t sizes[] = { 0, 1, 7, SIZE_MAX };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        o.size = sizes[i];
        assert_null(ls_mirrored(&o));
        FAILS(LS_INVALID, "bytes", "LS_MIRRORED");
    }
}

/* ---- how values of devices are added up --------------------------------------------------- */

static ls_value *thirds(ls_value *arguments, void *user)
{
    (void)arguments, (void)user;
    return ls_all_reduce(ls_get_replica_context(), LS_SUM,
                         ls_leaf(ls_div(my_number(1, 1), ls_scalar(LS_F32, 3))));
}

static void cross_device_operations_have_names(void **state)
{
    (void)state;
    for (int c = LS_CROSS_DEVICE_AUTO; c <= LS_CROSS_DEVICE_NCCL; c++) {
        ls_cross_device back = (ls_cross_device)99;
        assert_int_equal(ls_cross_device_named(ls_cross_device_name((ls_cross_device)c), &back),
                         LS_OK);
        assert_int_equal(back, c);
    }
    assert_string_equal(ls_cross_device_name((ls_cross_device)99), "?");
    ls_cross_device out;
    ls_cross_device_named("fastest", &out);
    FAILS(LS_INVALID, "fastest");
    ls_cross_device_named(NULL, &out);
    FAILS(LS_INVALID, "NULL");
    ls_strategy *s = replicas_on(3, 2);
    assert_true(ls_same_bits(s) && ls_same_bits(ls_default_strategy()) && !ls_same_bits(NULL));
    free_strategy(s);
}

static void every_cross_device_choice_gives_the_same_bits(void **state)
{
    (void)state;
    static const ls_cross_device good[] = { LS_CROSS_DEVICE_AUTO, LS_CROSS_DEVICE_DIRECT,
                                            LS_CROSS_DEVICE_TO_ONE, LS_CROSS_DEVICE_HIERARCHICAL };
    float bits[4][2];
    for (int i = 0; i < 4; i++) {
        LS_FRAME {
            ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0,/cpu:1,/cpu:2",
                                                     .replicas = 5, .cross_device = good[i]));
            GAVE(s);
            ls_value *v = ls_run_eager(s, thirds, NULL, nothing());
            GAVE(v);
            bits[i][0] = ls_to_float(part(v, 0));
            bits[i][1] = ls_to_float(ls_reduce(s, LS_SUM, numbers(s, 0.1, 0.3), LS_NO_AXIS));
            free_strategy(s);
        }
        assert_memory_equal(bits[0], bits[i], sizeof bits[0]);
    }
    assert_null(
        ls_mirrored(LS_MIRRORED(.devices = "/cpu:0", .cross_device = LS_CROSS_DEVICE_NCCL)));
    FAILS(LS_UNSUPPORTED, "nccl", "gpu");
    assert_null(ls_mirrored(LS_MIRRORED(.cross_device = (ls_cross_device)99)));
    FAILS(LS_INVALID, "99", "cross_device");
    assert_null(ls_mirrored(LS_MIRRORED(.cross_device = (ls_cross_device)-1)));
    FAILS(LS_INVALID, "cross_device");
}

static void packings_give_the_same_bits(void **state)
{
    (void)state;
    const ls_mirrored_options *ways[] = {
        LS_MIRRORED(.replicas = 3, .num_packs = 0),
        LS_MIRRORED(.replicas = 3, .num_packs = 1),
        LS_MIRRORED(.replicas = 3, .num_packs = 65536),
        LS_MIRRORED(.replicas = 3, .bytes_per_pack = 1),
        LS_MIRRORED(.replicas = 3, .bytes_per_pack = INT64_MAX),
        LS_MIRRORED(.replicas = 3, .small_bytes = 1, .small_group = 1),
        LS_MIRRORED(.replicas = 3, .small_bytes = INT64_MAX, .small_group = INT_MAX),
        LS_MIRRORED(.replicas = 3, .num_packs = 2, .small_bytes = 4, .small_group = 2),
    };
    float bits[sizeof ways / sizeof *ways];
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        LS_FRAME {
            ls_strategy *s = ls_mirrored(ways[i]);
            GAVE(s);
            ls_value *v = ls_run_eager(s, thirds, NULL, nothing());
            GAVE(v);
            bits[i] = ls_to_float(part(v, 0));
            free_strategy(s);
        }
        assert_memory_equal(&bits[0], &bits[i], sizeof bits[0]);
    }
}

static void packings_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    assert_null(ls_mirrored(LS_MIRRORED(.num_packs = -1)));
    FAILS(LS_INVALID, "ls_mirrored: num_packs -1");
    assert_null(ls_mirrored(LS_MIRRORED(.num_packs = INT_MAX)));
    FAILS(LS_INVALID, "2147483647", "1 to 65536");
    assert_null(ls_mirrored(LS_MIRRORED(.bytes_per_pack = -1)));
    FAILS(LS_INVALID, "ls_mirrored: bytes_per_pack -1");
    assert_null(ls_mirrored(LS_MIRRORED(.num_packs = 2, .bytes_per_pack = 1 << 20)));
    FAILS(LS_INVALID, "num_packs 2", "bytes_per_pack 1048576", "one of them");
    assert_null(ls_mirrored(LS_MIRRORED(.small_bytes = 1024)));
    FAILS(LS_INVALID, "small_bytes 1024", "small_group 0", "both or none");
    assert_null(ls_mirrored(LS_MIRRORED(.small_group = 8)));
    FAILS(LS_INVALID, "small_group 8", "both or none");
    assert_null(ls_mirrored(LS_MIRRORED(.small_bytes = -4, .small_group = 8)));
    FAILS(LS_INVALID, "small_bytes -4");
    assert_null(ls_mirrored(LS_MIRRORED(.small_bytes = 4, .small_group = INT_MIN)));
    FAILS(LS_INVALID, "small_group -2147483648");
}

/* ---- what a strategy says of itself ---------------------------------------------------------- */

static void says(ls_strategy *s, int replicas, int distinct)
{
    int n = -1, m = -1, k = -1;
    const char *const *workers = ls_worker_devices(s, &n);
    const char *const *parameters = ls_parameter_devices(s, &m);
    const char *const *non_slot = ls_non_slot_devices(s, &k);
    assert_int_equal(ls_num_replicas(s), replicas);
    assert_int_equal(n, replicas);
    assert_int_equal(m, distinct);
    assert_int_equal(k, distinct);
    for (int i = 0; i < n; i++)
        assert_true(mentions(workers[i], "device:CPU:"));
    for (int i = 0; i < m; i++)
        assert_string_equal(parameters[i], non_slot[i]);
    assert_true(ls_should_checkpoint(s));
    assert_true(ls_should_save_summary(s));
    assert_true(ls_should_init(s));
    assert_false(ls_between_graph(s));
    assert_false(ls_require_static_shapes(s));
    assert_int_equal(ls_steps(s), 0);
}

static void properties_of_mirrored_and_default(void **state)
{
    (void)state;
    ls_strategy *s = replicas_on(5, 3);
    says(s, 5, 3);
    LS_SCOPE (s)
        says(s, 5, 3);
    free_strategy(s);
    assert_int_equal(ls_num_replicas(ls_default_strategy()), 1);
    says(ls_default_strategy(), 1, 1);
}

static void asking_of_no_strategy_is_harmless(void **state)
{
    (void)state;
    int n = 42;
    assert_int_equal(ls_num_replicas(NULL), 0);
    assert_null(ls_worker_devices(NULL, &n));
    assert_null(ls_parameter_devices(NULL, &n));
    assert_null(ls_non_slot_devices(NULL, &n));
    assert_int_equal(ls_replica_id(NULL), -1);
    assert_null(ls_replica_strategy(NULL));
    ls_error();
    (void)ls_steps(NULL);
    (void)ls_should_checkpoint(NULL);
    (void)ls_between_graph(NULL);
    (void)ls_variable_created_in_scope(NULL, NULL);
    ls_error();
    ls_strategy *s = replicas_on(2, 1);
    assert_non_null(ls_worker_devices(s, NULL)); /* who needs no count gives none */
    assert_int_equal(ls_error(), LS_OK);
    free_strategy(s);
}

static void tf_config_is_not_looked_at(void **state)
{
    (void)state;
    setenv("TF_CONFIG",
           "{\"cluster\": {\"worker\": [\"a:1\", \"b:1\"]}, "
           "\"task\": {\"type\": \"worker\", \"index\": 1}}",
           1);
    placed_and_freed(LS_MIRRORED(.devices = "/cpu:0,/cpu:1"), 2, (int[]){ 0, 1 });
    setenv("TF_CONFIG", "{ not JSON", 1);
    placed_and_freed(LS_MIRRORED(.devices = "/cpu:0,/cpu:1"), 2, (int[]){ 0, 1 });
    unsetenv("TF_CONFIG");
}

/* ---- steps done ------------------------------------------------------------------------------- */

static ls_value *run_inside(ls_strategy *s, ls_value *arguments, void *user)
{
    return ls_run_eager(s, echo, user, arguments);
}

static ls_value *nest(ls_value *arguments, void *user)
{
    return ls_merge_call(ls_get_replica_context(), run_inside, user, arguments);
}

static ls_value *fail_in_one(ls_value *arguments, void *user)
{
    (void)user;
    return my_id() == ls_num_replicas(ls_get_strategy()) - 1 ? fail_here("no_such") : arguments;
}

static void check_steps(ls_strategy *s, int n, bool traced)
{
    (void)n;
    assert_int_equal(ls_steps(s), 0);
    for (int i = 1; i <= 3; i++) {
        GAVE(run_step(s, traced, echo, NULL, number(1)));
        assert_int_equal(ls_steps(s), i);
    }
    GAVE(run_step(s, traced, nest, NULL, number(1)));
    assert_int_equal(ls_steps(s), 4);
    assert_null(run_step(s, traced, fail_in_one, NULL, number(1)));
    FAILS(LS_NOT_FOUND, "no_such");
    assert_int_equal(ls_steps(s), 4);
    OK(ls_set_steps(s, 1000));
    GAVE(run_step(s, traced, echo, NULL, number(1)));
    assert_int_equal(ls_steps(s), 1001);
    assert_int_equal(ls_set_steps(s, -1), LS_INVALID);
    FAILS(LS_INVALID, "-1", "0 to 2^62");
    assert_int_equal(ls_set_steps(s, ((int64_t)1 << 62) + 1), LS_INVALID);
    FAILS(LS_INVALID, "4611686018427387905", "0 to 2^62");
    assert_int_equal(ls_set_steps(NULL, 1), LS_INVALID);
    FAILS(LS_INVALID, "strategy");
    assert_int_equal(ls_steps(s), 1001);
    OK(ls_set_steps(s, (int64_t)1 << 62));
    GAVE(run_step(s, traced, echo, NULL, number(1)));
    assert_true(ls_steps(s) == ((int64_t)1 << 62) + 1);
}

static void the_default_strategy_counts_no_steps(void **state)
{
    (void)state;
    ls_strategy *s = ls_default_strategy();
    assert_int_equal(ls_set_steps(s, 5), LS_INVALID);
    FAILS(LS_INVALID, "ls_set_steps: the default strategy counts no steps", "ls_random_step");
    LS_FRAME
        GAVE(run_step(s, false, echo, NULL, number(1)));
    assert_int_equal(ls_steps(s), 0);
}

EVERYWHERE(top_level_runs_that_did_not_fail_are_counted, check_steps)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(no_devices_are_one_cpu),
        TEST(every_spelling_is_the_same_device),
        TEST(the_order_is_that_of_the_argument),
        TEST(names_that_are_no_devices_are_refused),
        TEST(devices_of_other_processes_are_refused),
        TEST(replicas_share_devices_in_contiguous_balanced_blocks),
        TEST(numbers_that_make_no_sense_are_refused),
        TEST(at_most_1024_replicas),
        TEST(options_of_another_size_are_refused),
        TEST(cross_device_operations_have_names),
        TEST(every_cross_device_choice_gives_the_same_bits),
        TEST(packings_give_the_same_bits),
        TEST(packings_that_make_no_sense_are_refused),
        TEST(properties_of_mirrored_and_default),
        TEST(asking_of_no_strategy_is_harmless),
        TEST(tf_config_is_not_looked_at),
        TEST(top_level_runs_that_did_not_fail_are_counted),
        TEST(the_default_strategy_counts_no_steps),
    };
    return RUN_TESTS(tests);
}
