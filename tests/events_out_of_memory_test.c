/*
 * Memory runs out while events are written: the n-th allocation fails, for every n. Each time it is told,
 * nothing leaks, what is in the file is whole, and the writer goes on.
 */
#include <lockstep.h>
#include <lockstep/train.h>

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/failing_memory.h"

static char dir[] = "/tmp/lockstep-memory-XXXXXX", path[512];
static ls_variable *weights;
static ls_optimizer *sgd;
static ls_strategy *strategy;
static ls_function *step;

static ls_value *train(ls_value *batch, void *user)
{
    (void)user;
    ls_tape *tape = ls_tape_open();
    ls_tensor *h = ls_relu(ls_matmul(ls_item(batch, 0), ls_read(weights)));
    ls_tensor *loss = ls_mean(h, LS_ALL_AXES, false);
    ls_minimize(sgd, tape, loss, 1, &weights);
    return ls_leaf(loss);
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(dir))
        return -1;
    LS_FRAME {
        strategy = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0", .replicas = 2));
        LS_SCOPE (strategy) {
            weights = ls_variable_new("layer/w", ls_ones(LS_F32, LS_DIMS(3, 2)), true);
            sgd = ls_sgd(NULL);
        }
        step = ls_trace(train, NULL);
        ls_tensor *x = ls_ones(LS_F32, LS_DIMS(4, 3));
        assert_non_null(ls_run(strategy, step, ls_tensors(1, &x)));
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ls_function_free(step);
    ls_optimizer_free(sgd);
    ls_variable_free(weights);
    return ls_strategy_free(strategy) ? -1 : rmdir(dir);
}

static int open_files(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

/* Finds the one file that may be there; false when there is none. */
static bool find_file(void)
{
    int n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.' && ++n)
            snprintf(path, sizeof path, "%s/%.400s", dir, e->d_name);
    closedir(d);
    assert_true(n <= 1);
    return n == 1;
}

static int records(void)
{
    int n = 0;
    LS_FRAME {
        ls_iterator *it = ls_iterate(ls_tfrecords(LS_FILES(path), NULL));
        ls_value *v;
        while (ls_next(it, &v) == LS_OK)
            n++;
        ls_iterator_free(it);
    }
    assert_int_equal(ls_error(), LS_OK);
    return n;
}

/* How many events went in: what fails is left out, and the rest goes on. */
static int write_events(ls_tensor *values)
{
    ls_events *e = ls_events_open(dir);
    if (!e)
        return -1;
    int n = 1; /* the version */
    n += ls_events_scalar(e, 1, "loss", 1) == LS_OK;
    n += ls_events_histogram(e, 1, "w", values) == LS_OK;
    n += ls_events_graph(e, step) == LS_OK;
    n += ls_events_text(e, 1, "about", "a text") == LS_OK;
    n += ls_events_scalar(e, 2, "loss", 1) == LS_OK;
    return ls_events_close(e) ? -2 : n;
}

static bool one_failure(long n)
{
    int before = open_files();
    LS_FRAME {
        ls_tensor *values = ls_ones(LS_F32, LS_DIMS(5));
        memory_fails_after(n);
        int written = write_events(values);
        memory_is_back();
        /* who can do without goes on without; what is lost is told */
        assert_true(memory_failed || written == 6);
        assert_int_equal(ls_error(), written == 6 ? LS_OK : LS_NO_MEMORY);
        assert_int_equal(open_files(), before);
        assert_int_equal(find_file(), written != -1);
        if (written != -1) {
            assert_true(written >= 5); /* one event, at most */
            assert_int_equal(records(), written);
            unlink(path);
        }
    }
    return memory_failed;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    long n = 0;
    while (one_failure(n))
        assert_true(++n < 1000);
    assert_true(n > 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_allocation_may_fail) };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
