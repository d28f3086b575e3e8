/*
 * Devices: every spelling of a name, threads that are really pinned, errors
 * that cross threads, and tensors that know where they are.
 */
#include <lockstep/device.h>
#include <lockstep/ops.h>

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/status.h"
#include "os/topology.h"
#include "tensor/device.h"
#include "tensor/tensor.h"

#define CPU "/job:localhost/replica:0/task:0/device:CPU:"

static int clean(void **state)
{
    (void)state;
    ls_device_set("/cpu:0", NULL);
    ls_error();
    return 0;
}

static void failed(ls_status want)
{
    if (ls_error_pending() != want)
        fail_msg("wanted %s, got %s", ls_status_name(want), ls_error_report());
    assert_true(strlen(ls_error_text()) > 0);
    ls_error();
}

static void every_spelling(void **state)
{
    (void)state;
    static const struct {
        const char *name, *canonical;
    } table[] = {
        { "/cpu:1", CPU "1" },
        { "cpu:1", CPU "1" },
        { "CPU:1", CPU "1" },
        { "/CPU:1", CPU "1" },
        { "/device:CPU:1", CPU "1" },
        { "/device:cpu:1", CPU "1" },
        { "/job:localhost/replica:0/task:0/device:CPU:1", CPU "1" },
        { "/job:localhost/replica:0/task:0/cpu:1", CPU "1" },
        { "/task:0/cpu:1", CPU "1" },
        { "/replica:0/device:CPU:1", CPU "1" },
        { "/cpu:0", CPU "0" },
        { "/cpu:17", CPU "17" },
        { "/cpu:007", CPU "7" },
        { "/cpu:65535", CPU "65535" },
        { "/gpu:0", "/job:localhost/replica:0/task:0/device:GPU:0" },
        { "GPU:3", "/job:localhost/replica:0/task:0/device:GPU:3" },
        { "/job:worker/task:3/cpu:2", "/job:worker/replica:0/task:3/device:CPU:2" },
        { "/job:worker/replica:1/task:3/device:GPU:2",
          "/job:worker/replica:1/task:3/device:GPU:2" },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char out[LS_DEVICE_NAME_MAX] = "";
        ls_status st = ls_device_canonical(table[i].name, NULL, out, sizeof out);
        if (st || strcmp(out, table[i].canonical))
            fail_msg("'%s' -> %s '%s' (%s)", table[i].name, ls_status_name(st), out,
                     ls_error_report());
        char again[LS_DEVICE_NAME_MAX] = ""; /* canonical stays canonical */
        assert_int_equal(ls_device_canonical(out, NULL, again, sizeof again), LS_OK);
        assert_string_equal(again, out);
    }
}

static void open_fields_come_from_defaults(void **state)
{
    (void)state;
    static const struct {
        const char *name, *defaults, *canonical;
    } table[] = {
        { "/cpu:1", "/job:worker/task:2/cpu:5", "/job:worker/replica:0/task:2/device:CPU:1" },
        { "/cpu:1", "/job:worker/replica:3/task:2/device:GPU:5",
          "/job:worker/replica:3/task:2/device:CPU:1" },
        { "/job:ps/cpu:1", "/job:worker/replica:0/task:2/device:CPU:5",
          "/job:ps/replica:0/task:2/device:CPU:1" },
        { "/task:4/cpu:0", "/job:worker/replica:0/task:2/device:CPU:5",
          "/job:worker/replica:0/task:4/device:CPU:0" },
        { "/job:worker/task:7", "/cpu:3", "/job:worker/replica:0/task:7/device:CPU:3" },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char out[LS_DEVICE_NAME_MAX] = "";
        ls_status st = ls_device_canonical(table[i].name, table[i].defaults, out, sizeof out);
        if (st || strcmp(out, table[i].canonical))
            fail_msg("'%s' with '%s' -> %s '%s' (%s)", table[i].name, table[i].defaults,
                     ls_status_name(st), out, ls_error_report());
    }
}

static const char *const nonsense[] = {
    "",
    "/",
    "//",
    ":",
    "cpu:",
    "/cpu:-1",
    "/cpu:x",
    "/cpu:1x",
    "/cpu:1:2",
    "/cpu: 1",
    "/cpu:+1",
    "/cpu:0x1",
    "/cpu:1.5",
    "/cpu:99999999999999999999",
    "/cpu:2147483648",
    "/cpu:65536",
    "/task:65536/cpu:0",
    " /cpu:0",
    "/cpu:0 ",
    "/cpu:0/",
    "/cpu:0//",
    "/cpu:0,/cpu:1",
    "/cpu:0/cpu:1",
    "/device:CPU:0/device:CPU:1",
    "/device:",
    "/device:CPU:",
    "/device::0",
    "/job:",
    "/job:/cpu:0",
    "/job:a/job:b/cpu:0",
    "/task:0/task:1/cpu:0",
    "/task:/cpu:0",
    "/task:-1/cpu:0",
    "/task:x/cpu:0",
    "/replica:1.0/cpu:0",
    "/nothing:0/cpu:0",
    "/job:a b/cpu:0",
    "/job:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/cpu:0",
    "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:0",
    "/cpu:\xff",
};

static void nonsense_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        char out[LS_DEVICE_NAME_MAX] = "untouched";
        ls_status st = ls_device_canonical(nonsense[i], NULL, out, sizeof out);
        if (st != LS_INVALID)
            fail_msg("'%s' -> %s '%s'", nonsense[i], ls_status_name(st), out);
        assert_string_equal(out, "untouched"); /* written only on success */
        failed(LS_INVALID);
        ls__device_name parsed;
        assert_int_equal(ls__device_name_parse(nonsense[i], &parsed), LS_INVALID);
        failed(LS_INVALID);
        const char *before = NULL;
        assert_int_equal(ls_device_set(nonsense[i], &before), LS_INVALID);
        failed(LS_INVALID);
        assert_string_equal(ls_device_current(), CPU "0"); /* unchanged */
    }
    char out[LS_DEVICE_NAME_MAX];
    assert_int_equal(ls_device_canonical(NULL, NULL, out, sizeof out), LS_INVALID);
    failed(LS_INVALID);
    assert_int_equal(ls_device_canonical("/cpu:0", "nonsense!", out, sizeof out), LS_INVALID);
    failed(LS_INVALID);
    assert_int_equal(ls_device_canonical("/cpu:0", NULL, NULL, 0), LS_INVALID);
    failed(LS_INVALID);
    assert_int_equal(ls_device_set(NULL, NULL), LS_INVALID);
    failed(LS_INVALID);
}

static void too_little_room(void **state)
{
    (void)state;
    size_t needed = strlen(CPU "0") + 1;
    for (size_t room = 0; room < needed; room++) {
        char out[LS_DEVICE_NAME_MAX];
        memset(out, 0x55, sizeof out);
        assert_int_equal(ls_device_canonical("/cpu:0", NULL, out, room), LS_INVALID);
        failed(LS_INVALID);
        for (size_t i = room; i < sizeof out; i++)
            assert_int_equal(out[i], 0x55);
    }
}

/* Pure: parse, merge, format. */
static void names_taken_apart(void **state)
{
    (void)state;
    ls__device_name n, d;
    assert_int_equal(ls__device_name_parse("/task:3/cpu:2", &n), LS_OK);
    assert_string_equal(n.job, "");
    assert_int_equal(n.replica, -1);
    assert_int_equal(n.task, 3);
    assert_string_equal(n.type, "CPU");
    assert_int_equal(n.index, 2);
    assert_int_equal(ls__device_name_parse("/job:w/replica:1/task:9/device:GPU:4", &d), LS_OK);
    ls__device_name_merge(&n, &d);
    char out[LS_DEVICE_NAME_MAX];
    ls__device_name_format(&n, out, sizeof out);
    assert_string_equal(out, "/job:w/replica:1/task:3/device:CPU:2");
}

static void gpus_are_unsupported(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *t = ls_scalar(LS_F32, 1);
        assert_int_equal(ls_device_set("/gpu:0", NULL), LS_UNSUPPORTED);
        assert_true(strstr(ls_error_text(), "GPU:0") || strstr(ls_error_text(), "gpu:0"));
        failed(LS_UNSUPPORTED);
        assert_null(ls_copy_to(t, "/gpu:0"));
        failed(LS_UNSUPPORTED);
        assert_int_equal(ls_device_run("/gpu:1", NULL, NULL) == LS_OK, 0);
        assert_int_not_equal(ls_error(), LS_OK);
        assert_string_equal(ls_device_current(), CPU "0");
        ls__device *device = NULL;
        assert_int_equal(ls__device_find("GPU:0", &device), LS_UNSUPPORTED);
        assert_null(device);
        failed(LS_UNSUPPORTED);
    }
}

/* Another process's device is not here. */
static void other_processes_devices_are_refused(void **state)
{
    (void)state;
    assert_int_not_equal(ls_device_set("/job:worker/task:3/cpu:0", NULL), LS_OK);
    assert_int_not_equal(ls_error(), LS_OK);
    assert_string_equal(ls_device_current(), CPU "0");
}

static void set_and_current(void **state)
{
    (void)state;
    assert_string_equal(ls_device_current(), CPU "0");
    const char *before = NULL;
    assert_int_equal(ls_device_set("cpu:3", &before), LS_OK);
    assert_string_equal(before, CPU "0");
    assert_string_equal(ls_device_current(), CPU "3");
    LS_FRAME {
        assert_string_equal(ls_device_of(ls_zeros(LS_F32, LS_DIMS(2))), CPU "3");
        assert_string_equal(ls_device_of(ls_from(LS_U8, LS_DIMS(2), "ab")), CPU "3");
        assert_string_equal(ls_device_of(ls_scalar(LS_F32, 1)), CPU "3");
    }
    assert_int_equal(ls_device_set(before, &before), LS_OK);
    assert_string_equal(before, CPU "3");
    assert_string_equal(ls_device_current(), CPU "0");

    ls__device *a = NULL, *b = NULL; /* one device behind all spellings */
    assert_int_equal(ls__device_find("/cpu:2", &a), LS_OK);
    assert_int_equal(ls__device_find(CPU "2", &b), LS_OK);
    assert_ptr_equal(a, b);
    assert_string_equal(a->name, CPU "2");
}

static void leave_early(void)
{
    LS_DEVICE ("/cpu:1") {
        return;
    }
}

static void device_block(void **state)
{
    (void)state;
    int turns = 0;
    LS_FRAME {
        LS_DEVICE ("/cpu:1") {
            turns++;
            assert_string_equal(ls_device_current(), CPU "1");
            LS_DEVICE ("/cpu:2") {
                assert_string_equal(ls_device_of(ls_ones(LS_F32, LS_DIMS(2))), CPU "2");
            }
            assert_string_equal(ls_device_current(), CPU "1");
        }
        assert_string_equal(ls_device_current(), CPU "0");
        assert_int_equal(turns, 1);
        leave_early();
        assert_string_equal(ls_device_current(), CPU "0");
        LS_DEVICE ("/cpu:1") {
            if (turns)
                break;
            turns = 100;
        }
        assert_string_equal(ls_device_current(), CPU "0");
        ls_tensor *x = NULL;
        LS_DEVICE ("/cpu:1")
            x = ls_zeros(LS_F32, LS_DIMS(8)); /* as the header shows */
        assert_string_equal(ls_device_of(x), CPU "1");
        assert_int_equal(ls_error_pending(), LS_OK);

        LS_DEVICE ("/gpu:0") { /* refused: the error stays, the device too */
            assert_string_equal(ls_device_current(), CPU "0");
        }
        assert_string_equal(ls_device_current(), CPU "0");
        failed(LS_UNSUPPORTED);
    }
}

static void *see_current(void *arg)
{
    snprintf(arg, LS_DEVICE_NAME_MAX, "%s", ls_device_current());
    ls_device_set("/cpu:6", NULL);
    return NULL;
}

static void device_belongs_to_the_thread(void **state)
{
    (void)state;
    ls_device_set("/cpu:4", NULL);
    char theirs[LS_DEVICE_NAME_MAX] = "";
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, see_current, theirs), 0);
    pthread_join(thread, NULL);
    assert_string_equal(theirs, CPU "0");
    assert_string_equal(ls_device_current(), CPU "4");
}

typedef struct visit {
    pthread_t thread;
    cpu_set_t mask;
    ls_status pending;
    int runs;
} visit;

static ls_status look_around(void *user)
{
    visit *v = user;
    v->thread = pthread_self();
    sched_getaffinity(0, sizeof v->mask, &v->mask);
    v->pending = ls_error_pending();
    v->runs++;
    return LS_OK;
}

static void runs_pinned_to_the_right_core(void **state)
{
    (void)state;
    int cores = ls_cpu_cores();
    assert_true(cores >= 1);
    assert_int_equal(cores, ls__cores());
    cpu_set_t before, after;
    sched_getaffinity(0, sizeof before, &before);
    for (int i = 0; i < cores + 2; i++) { /* devices may outnumber cores */
        char name[32];
        snprintf(name, sizeof name, "/cpu:%d", i);
        visit first = { .runs = 0 }, second = { .runs = 0 };
        assert_int_equal(ls_device_run(name, look_around, &first), LS_OK);
        assert_int_equal(first.runs, 1);
        assert_false(pthread_equal(first.thread, pthread_self()));
        assert_int_equal(CPU_COUNT(&first.mask), 1);
        assert_true(CPU_ISSET(ls__core_number(i % cores), &first.mask));
        assert_int_equal(ls_device_run(name, look_around, &second), LS_OK);
        assert_true(pthread_equal(first.thread, second.thread)); /* its own thread */
    }
    sched_getaffinity(0, sizeof after, &after);
    assert_true(CPU_EQUAL(&before, &after));
}

static ls_status fail_there(void *user)
{
    (void)user;
    return ls__hint(ls__fail(LS_CORRUPT, "broken over there"), "mend it");
}

static ls_status leave_an_error(void *user)
{
    (void)user;
    ls_zeros((ls_dtype)0, LS_SCALAR); /* unread */
    return LS_OK;
}

static ls_status silent(void *user)
{
    (void)user;
    return LS_PEER;
}

static void errors_come_back(void **state)
{
    (void)state;
    assert_int_equal(ls_device_run("/cpu:1", fail_there, NULL), LS_CORRUPT);
    assert_non_null(strstr(ls_error_text(), "broken over there"));
    assert_string_equal(ls_error_hint(), "mend it");
    failed(LS_CORRUPT);
    assert_int_equal(ls_device_run("/cpu:1", leave_an_error, NULL), LS_INVALID);
    failed(LS_INVALID);
    assert_int_equal(ls_device_run("/cpu:1", silent, NULL), LS_PEER);
    ls_error();
    visit v = { .runs = 0 };
    assert_int_equal(ls_device_run("/cpu:1", look_around, &v), LS_OK);
    assert_int_equal(v.pending, LS_OK); /* nothing stuck there */
    assert_int_equal(ls_error_pending(), LS_OK);

    assert_int_equal(ls_device_run("/cpu:1", NULL, NULL), LS_INVALID);
    failed(LS_INVALID);
    assert_int_equal(ls_device_run("nonsense!", look_around, &v), LS_INVALID);
    failed(LS_INVALID);
}

static ls_status run_deeper(void *user)
{
    visit *v = user;
    look_around(&v[0]);
    ls_status st = ls_device_run("/cpu:1", look_around, &v[1]); /* in place */
    return st ? st : ls_device_run("/cpu:2", look_around, &v[2]);
}

static void runs_nest(void **state)
{
    (void)state;
    visit v[3] = { { .runs = 0 } };
    assert_int_equal(ls_device_run("/cpu:1", run_deeper, v), LS_OK);
    assert_true(pthread_equal(v[0].thread, v[1].thread));
    assert_false(pthread_equal(v[0].thread, v[2].thread));
}

static ls_status keep_one(void *user)
{
    LS_FRAME {
        *(ls_tensor **)user = ls_keep(ls_full(LS_F32, LS_DIMS(3), 9));
    }
    return LS_OK;
}

static void tensors_come_back_kept(void **state)
{
    (void)state;
    ls_tensor *kept = NULL;
    assert_int_equal(ls_device_run("/cpu:1", keep_one, &kept), LS_OK);
    LS_FRAME {
        assert_true(((const float *)ls_data(ls_import(kept)))[2] == 9);
    }
    ls_drop(kept);
}

static ls_status make_lots(void *user)
{
    for (int i = 0; i < 10; i++)
        if (!ls_full(LS_F32, LS_DIMS(1000), i))
            return LS_NO_MEMORY;
    ls_frame_open(); /* forgotten: it goes too */
    ls_zeros(LS_F32, LS_DIMS(1000));
    *(int *)user += 1;
    return LS_OK;
}

static void what_it_makes_goes_when_it_returns(void **state)
{
    (void)state;
    size_t before, after, peak;
    int runs = 0;
    ls_memory(&before, &peak);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ls_device_run("/cpu:1", make_lots, &runs), LS_STATE);
        failed(LS_STATE); /* the forgotten close is reported */
        ls_memory(&after, &peak);
        assert_int_equal(after, before);
    }
    assert_int_equal(runs, 3);
}

/* The device's thread stayed in the parent: an answer, not a wait for ever. */
static void a_forked_child_is_told(void **state)
{
    (void)state;
    visit v = { .runs = 0 };
    assert_int_equal(ls_device_run("/cpu:1", look_around, &v), LS_OK);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20); /* a hang fails the test */
        ls_status st = ls_device_run("/cpu:1", look_around, &v);
        _exit(v.runs == 1 && strstr(ls_error_text(), "fork") ? (int)st : 100);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), LS_STATE);
    assert_int_equal(ls_device_run("/cpu:1", look_around, &v), LS_OK); /* nothing broke here */
}

static void copies_between_devices(void **state)
{
    (void)state;
    LS_FRAME {
        float data[3] = { 1, 2, 3 };
        ls_tensor *x = ls_from(LS_F32, LS_DIMS(3), data);
        ls_tensor *y = ls_copy_to(x, "/cpu:1");
        assert_non_null(y);
        assert_string_equal(ls_device_of(y), CPU "1");
        assert_string_equal(ls_device_of(x), CPU "0");
        assert_string_equal(ls_describe(y), "f32[3]");
        float out[3];
        assert_int_equal(ls_copy_out(y, out, sizeof out), LS_OK);
        assert_memory_equal(out, data, sizeof out);
        assert_string_equal(ls_device_of(ls_copy_to(x, "/cpu:0")), CPU "0");

        ls_tensor *s = ls_from_strings(LS_DIMS(1), (const void *[]){ "text" }, NULL);
        ls_tensor *moved = ls_copy_to(s, "/cpu:1");
        if (moved) {
            const void *text;
            size_t length;
            assert_int_equal(ls_string_at(moved, 0, &text, &length), LS_OK);
            assert_string_equal(text, "text");
        }
        ls_error();
        assert_int_equal(ls_count(ls_copy_to(ls_zeros(LS_F32, LS_DIMS(0)), "/cpu:1")), 0);
        assert_null(ls_copy_to(NULL, "/cpu:1"));
        failed(LS_INVALID);
        assert_null(ls_copy_to(x, "nonsense!"));
        failed(LS_INVALID);
        assert_null(ls_copy_to(x, NULL));
        failed(LS_INVALID);
    }
}

static void devices_that_share_memory_mix(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *a = ls_ones(LS_F32, LS_DIMS(2)), *b = NULL;
        LS_DEVICE ("/cpu:1")
            b = ls_full(LS_F32, LS_DIMS(2), 2);
        ls_tensor *ab = ls_add(a, b), *ba = ls_add(b, a);
        assert_string_equal(ls_device_of(ab), CPU "0"); /* where the first input is */
        assert_string_equal(ls_device_of(ba), CPU "1");
        LS_DEVICE ("/cpu:2") /* whatever the thread's device is */
            assert_string_equal(ls_device_of(ls_add(b, a)), CPU "1");
        float sum[2];
        assert_int_equal(ls_copy_out(ab, sum, sizeof sum), LS_OK);
        assert_true(sum[0] == 3 && sum[1] == 3);
    }
}

static void devices_with_memory_of_their_own_do_not_mix(void **state)
{
    (void)state;
    static const ls__device_table table = { NULL, NULL };
    ls__device gpu = { .table = &table, .name = "/job:localhost/replica:0/task:0/device:GPU:1" };
    LS_FRAME {
        ls_tensor *a = ls_ones(LS_F32, LS_DIMS(2)), *b = ls_ones(LS_F32, LS_DIMS(2));
        b->device = &gpu;
        assert_null(ls_add(a, b));
        assert_non_null(strstr(ls_error_text(), "add: input 0 is on " CPU "0, input 1 on "));
        assert_non_null(strstr(ls_error_text(), "GPU:1"));
        assert_non_null(strstr(ls_error_hint(), "ls_copy_to"));
        failed(LS_INVALID);
    }
}

static void threads_of_a_device(void **state)
{
    (void)state;
    assert_int_equal(ls_device_threads(1), LS_OK);
    assert_int_equal(ls_device_threads(0), LS_INVALID);
    failed(LS_INVALID);
    assert_int_equal(ls_device_threads(-2), LS_INVALID);
    failed(LS_INVALID);
    assert_int_equal(ls_device_threads(1), LS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_spelling, clean),
        cmocka_unit_test_setup(open_fields_come_from_defaults, clean),
        cmocka_unit_test_setup(nonsense_is_refused, clean),
        cmocka_unit_test_setup(too_little_room, clean),
        cmocka_unit_test_setup(names_taken_apart, clean),
        cmocka_unit_test_setup(gpus_are_unsupported, clean),
        cmocka_unit_test_setup(other_processes_devices_are_refused, clean),
        cmocka_unit_test_setup(set_and_current, clean),
        cmocka_unit_test_setup(device_block, clean),
        cmocka_unit_test_setup(device_belongs_to_the_thread, clean),
        cmocka_unit_test_setup(runs_pinned_to_the_right_core, clean),
        cmocka_unit_test_setup(errors_come_back, clean),
        cmocka_unit_test_setup(runs_nest, clean),
        cmocka_unit_test_setup(tensors_come_back_kept, clean),
        cmocka_unit_test_setup(what_it_makes_goes_when_it_returns, clean),
        cmocka_unit_test_setup(a_forked_child_is_told, clean),
        cmocka_unit_test_setup(copies_between_devices, clean),
        cmocka_unit_test_setup(devices_that_share_memory_mix, clean),
        cmocka_unit_test_setup(devices_with_memory_of_their_own_do_not_mix, clean),
        cmocka_unit_test_setup(threads_of_a_device, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
