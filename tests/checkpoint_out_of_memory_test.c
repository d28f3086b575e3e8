/*
 * Memory runs out while a checkpoint is saved, looked for or restored: the n-th allocation fails, for every
 * n, those of the JSON library too. Each time it is told, the files are as before, and so is the run:
 * all of it is restored, or nothing.
 */
#include <jansson.h>

#include "support/failing_memory.h"
#include "train/checkpoint_test_support.h"

static bool failed_in_json;

/* The library tells a lack of memory, or whatever it then believes to have read. */
static void *json_malloc(size_t n)
{
    if (!memory_fails_now())
        return __real_malloc(n);
    failed_in_json = true;
    return NULL;
}

static void say_nothing(ls_log_level level, const char *message, void *user)
{
    (void)level;
    (void)message;
    (void)user;
}

typedef enum action { SAVE, NEWEST, RESTORE, ACTIONS } action;

static ls_status act(action what, ls_checkpoint *c)
{
    char path[200];
    if (what == SAVE)
        return ls_checkpoint_save(in_dir("new"), c);
    if (what == NEWEST)
        return ls_checkpoint_newest(in_dir("x"), path, sizeof path);
    return ls_checkpoint_restore(in_dir("x"), c);
}

/* Lets allocation n fail; false when there are not so many. `other`: the digest of the checkpoint, which
 * the run is to have when it was restored. */
static bool one_failure(long n, action what, run *r, const char *other)
{
    ls_checkpoint c = checkpoint_of(r);
    const int files = open_files();
    const digest before = state_of(r);
    memory_keep_none();
    failed_in_json = false;
    memory_fails_after(n);
    ls_status st = LS_OK;
    LS_FRAME
        st = act(what, &c);
    memory_is_back();
    if (st && (ls_error() != st || (st != LS_NO_MEMORY && (st != LS_CORRUPT || !failed_in_json))))
        fail_msg("action %d, allocation %ld: %s, '%s'", what, n, ls_status_name(st),
                 ls_error_text());
    assert_true(memory_failed || !st);
    assert_int_equal(ls_error_pending(), LS_OK);
    assert_int_equal(open_files(), files);
    assert_int_equal(entries(), 1 + (what == SAVE && !st));
    unlink(in_dir("new"));
    const bool restored = what == RESTORE && !st;
    assert_string_equal(state_of(r).text, restored ? other : before.text);
    return memory_failed;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    run r;
    begin(&r, "/cpu:0");
    train(&r, 1);
    ls_checkpoint c = checkpoint_of(&r);
    went_well(ls_checkpoint_save(in_dir("x"), &c));
    const digest other = state_of(&r);
    train(&r, 1);
    for (action what = SAVE; what < ACTIONS; what++) {
        long n = 0;
        if (what != RESTORE) /* what is made once is made now */
            assert_false(one_failure(-1, what, &r, other.text));
        while (one_failure(n, what, &r, other.text))
            n++;
        assert_true(n > 20);
    }
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_allocation_may_fail) };
    json_set_alloc_funcs(json_malloc, free);
    ls_log_set(say_nothing, NULL, LS_LOG_ERROR);
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
