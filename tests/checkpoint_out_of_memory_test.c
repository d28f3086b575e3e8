/*
 * Memory runs out while a checkpoint is saved, looked for or restored: the n-th allocation fails, for every
 * n, those of the JSON library too. Each time it is told, the files are as before, and so is the run:
 * all of it is restored, or nothing.
 *
 * The linker puts the functions below in front of the allocator's (--wrap).
 */
#include <jansson.h>

#include "base/arena.h"
#include "tensor/storage.h"
#include "train/checkpoint_test_support.h"

static long countdown = -1; /* allocations until one fails; below 0: none will */
static bool failed_one, failed_in_json;

static bool fails(void)
{
    if (countdown < 0 || countdown-- != 0)
        return false;
    failed_one = true;
    return true;
}

#define WRAP(result, name, parameters, ...)                                                        \
    result __real_##name parameters;                                                               \
    result __wrap_##name parameters;                                                               \
    result __wrap_##name parameters                                                                \
    {                                                                                              \
        return fails() ? NULL : __real_##name(__VA_ARGS__);                                        \
    }

WRAP(void *, malloc, (size_t n), n)
WRAP(void *, calloc, (size_t n, size_t m), n, m)
WRAP(void *, realloc, (void *p, size_t n), p, n)
WRAP(void *, aligned_alloc, (size_t a, size_t n), a, n)
WRAP(char *, strdup, (const char *s), s)
WRAP(char *, strndup, (const char *s, size_t n), s, n)

/* The library tells a lack of memory, or whatever it then believes to have read. */
static void *json_malloc(size_t n)
{
    if (!fails())
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
    ls__storage_thread_end();
    ls__arena_thread_end();
    failed_one = failed_in_json = false;
    countdown = n;
    ls_status st = LS_OK;
    LS_FRAME
        st = act(what, &c);
    countdown = -1;
    if (st && (ls_error() != st || (st != LS_NO_MEMORY && (st != LS_CORRUPT || !failed_in_json))))
        fail_msg("action %d, allocation %ld: %s, '%s'", what, n, ls_status_name(st),
                 ls_error_text());
    assert_true(failed_one || !st);
    assert_int_equal(ls_error_pending(), LS_OK);
    assert_int_equal(open_files(), files);
    assert_int_equal(entries(), 1 + (what == SAVE && !st));
    unlink(in_dir("new"));
    const bool restored = what == RESTORE && !st;
    assert_string_equal(state_of(r).text, restored ? other : before.text);
    return failed_one;
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
