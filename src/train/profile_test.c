/*
 * Recording phases and the file they go to, from inside: what is kept and what is left out, how
 * long a record may be, and what is refused. That the file is what it has to be is profile_test.py's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "strategy/phases.h"
#include "strategy/strategy.h"
#include "tensor/tensor.h"
#include "train/phases_test_support.h"

static char folder[] = "/tmp/lockstep-profile-XXXXXX";
static char path[128];

static int make_folder(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/trace.json", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder); /* fails if anything else was left there */
}

/* The file, as a string of the frame's. */
static const char *content(void)
{
    struct stat is;
    assert_int_equal(stat(path, &is), 0);
    char *text = ls__frame_alloc((size_t)is.st_size + 1);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fread(text, 1, (size_t)is.st_size, f), is.st_size);
    fclose(f);
    text[is.st_size] = 0;
    return text;
}

static int count_of(const char *text, const char *part)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
        n++;
    return n;
}

static ls_value *quick(ls_value *x, void *user)
{
    (void)user;
    return ls_leaf(ls_neg(ls_leaf_tensor(x)));
}

static void run_quick(ls_strategy *s, ls_function *f, int times)
{
    for (int i = 0; i < times; i++)
        LS_FRAME
            assert_non_null(ls_run(s, f, ls_leaf(ls_scalar(LS_F32, 1))));
}

/* ---- what is kept ------------------------------------------------------------------------------------ */

static void a_record_is_written_once(void **state)
{
    (void)state;
    world *t = world_open("/cpu:0,/cpu:1", 2, NULL);
    world_run(t, t->train, 2); /* before: not in it */
    assert_int_equal(ls_profile_start(t->strategy), LS_OK);
    world_run(t, t->train, 3);
    assert_int_equal(ls_profile_write(t->strategy, path), LS_OK);
    LS_FRAME {
        const char *text = content();
        assert_int_equal(count_of(text, "\"forward\""), 2 * 3);
        assert_int_equal(count_of(text, "\"backward\""), 2 * 3);
        assert_int_equal(count_of(text, "\"step\":1}"), 0);
        assert_true(count_of(text, "\"step\":2}") >= 2 * 5);
        assert_true(count_of(text, "\"step\":4}") >= 2 * 5);
        assert_int_equal(count_of(text, "\"step\":5}"), 0);
        assert_int_equal(count_of(text, "\"left_out\":0}"), 1);
        assert_int_equal(count_of(text, "thread_name"), 2);
    }
    assert_int_equal(ls_profile_write(t->strategy, path), LS_STATE);
    failed(LS_STATE);
    world_run(t, t->train, 1); /* nobody records it */
    assert_true(t->strategy->phases->of[0].log.count == 0);
    world_close(t);
}

static void starting_again_drops_what_was(void **state)
{
    (void)state;
    world *t = world_open("/cpu:0", 2, NULL);
    assert_int_equal(ls_profile_start(t->strategy), LS_OK);
    world_run(t, t->train, 2);
    assert_int_equal(ls_profile_start(t->strategy), LS_OK);
    assert_int_equal(ls_profile_write(t->strategy, path), LS_OK);
    LS_FRAME
        assert_int_equal(count_of(content(), "\"ph\":\"X\""), 0);
    world_close(t);
}

/* More than a block, and more than may be kept: the first ones stay. */
static void a_long_record_goes_on_to_its_end(void **state)
{
    (void)state;
    enum { MOST = LS__LOG_BLOCK + 100 };
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0", .replicas = 2));
    ls_function *f = ls_trace(quick, NULL);
    s->phases->most = MOST;
    assert_int_equal(ls_profile_start(s), LS_OK);
    const ls__phase_log *log = &s->phases->of[1].log;
    while (log->count < LS__LOG_BLOCK) {
        run_quick(s, f, 50);
        assert_int_equal(log->left_out, 0);
    }
    run_quick(s, f, 100);
    assert_int_equal(log->count, MOST);
    assert_true(log->left_out > 0);
    for (int64_t i = 1; i < log->count; i++) {
        const ls__phase_span *a = ls__phase_log_at(log, i - 1), *b = ls__phase_log_at(log, i);
        assert_true(a->begin <= a->end && a->end <= b->begin);
        assert_true(ls__span_step(a) <= ls__span_step(b));
    }
    assert_int_equal(ls_profile_write(s, path), LS_OK);
    LS_FRAME {
        const char *text = content();
        assert_true(count_of(text, "\"ph\":\"X\"") <= 2 * MOST);
        assert_int_equal(count_of(text, "\"left_out\":0}"), 0);
    }
    ls_function_free(f);
    assert_int_equal(ls_strategy_free(s), LS_OK);
}

static void a_record_goes_with_its_strategy(void **state)
{
    (void)state;
    world *t = world_open("/cpu:0", 1, NULL);
    assert_int_equal(ls_profile_start(t->strategy), LS_OK);
    world_run(t, t->train, 1);
    world_close(t); /* sanitizers see that nothing is left */
}

/* ---- what is refused ----------------------------------------------------------------------------------- */

static void what_cannot_be_written_stays(void **state)
{
    (void)state;
    world *t = world_open("/cpu:0", 1, NULL);
    assert_int_equal(ls_profile_start(t->strategy), LS_OK);
    world_run(t, t->train, 1);
    char nowhere[160];
    snprintf(nowhere, sizeof nowhere, "%s/no/trace.json", folder);
    assert_int_equal(ls_profile_write(t->strategy, nowhere), LS_NOT_FOUND);
    failed(LS_NOT_FOUND);
    assert_int_equal(ls_profile_write(t->strategy, NULL), LS_INVALID);
    failed(LS_INVALID);
    assert_int_equal(ls_profile_write(t->strategy, path), LS_OK);
    LS_FRAME
        assert_int_equal(count_of(content(), "\"forward\""), 1);
    world_close(t);
}

static ls_value *profiles(ls_value *x, void *user)
{
    world *t = user;
    assert_int_equal(ls_profile_start(t->strategy), LS_STATE);
    assert_non_null(strstr(ls_error_text(), "running a step"));
    failed(LS_STATE);
    assert_int_equal(ls_profile_write(t->strategy, path), LS_STATE);
    failed(LS_STATE);
    return x;
}

static void between_steps_only(void **state)
{
    (void)state;
    world *t = world_open("/cpu:0", 1, NULL);
    LS_FRAME
        assert_non_null(ls_run_eager(t->strategy, profiles, t, ls_leaf(ls_scalar(LS_F32, 1))));
    assert_int_equal(ls_profile_start(NULL), LS_INVALID);
    failed(LS_INVALID);
    assert_int_equal(ls_profile_start(ls_default_strategy()), LS_INVALID);
    assert_non_null(strstr(ls_error_text(), "default strategy"));
    failed(LS_INVALID);
    assert_int_equal(ls_profile_write(ls_default_strategy(), path), LS_INVALID);
    failed(LS_INVALID);
    world_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_record_is_written_once, clean),
        cmocka_unit_test_setup(starting_again_drops_what_was, clean),
        cmocka_unit_test_setup(a_long_record_goes_on_to_its_end, clean),
        cmocka_unit_test_setup(a_record_goes_with_its_strategy, clean),
        cmocka_unit_test_setup(what_cannot_be_written_stays, clean),
        cmocka_unit_test_setup(between_steps_only, clean),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
