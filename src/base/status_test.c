/*
 * The error record as <lockstep/status.h> and base/status.h describe it: the
 * first failure is kept, taking leaves the text readable, scopes fail the call
 * that opened them, and records move between threads.
 */
#include "base/status.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int clean(void **state)
{
    (void)state;
    ls_error();
    return 0;
}

static void codes_have_names_texts_and_scopes(void **state)
{
    (void)state;
#define CHECK(name, value, scope, text)                                                            \
    assert_int_equal(name, value);                                                                 \
    assert_string_equal(ls_status_name(name), #name);                                              \
    assert_string_equal(ls_status_text(name), text);                                               \
    assert_int_equal(ls_status_scope(name), LS_SCOPE_##scope);
    LS_STATUS_LIST(CHECK)
#undef CHECK
    static const int strange[] = { -1, 12, 19, 22, 31, 1000, INT32_MAX };
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        assert_string_equal(ls_status_name((ls_status)strange[i]), "LS_?");
        assert_non_null(ls_status_text((ls_status)strange[i]));
        (void)ls_status_scope((ls_status)strange[i]);
    }
}

static void clean_thread_has_nothing(void **state)
{
    (void)state;
    assert_int_equal(ls_error_pending(), LS_OK);
    assert_int_equal(ls_error(), LS_OK);
    assert_string_equal(ls_error_report(), "");
}

static void first_failure_is_kept(void **state)
{
    (void)state;
    assert_int_equal(ls__fail(LS_SHAPE, "first %d", 7), LS_SHAPE);
    assert_int_equal(ls__fail(LS_IO, "second"), LS_IO);
    assert_int_equal(ls_error_pending(), LS_SHAPE);
    assert_string_equal(ls_error_text(), "first 7");
    assert_string_equal(ls_error_hint(), "");
    assert_int_equal(ls_error_pending(), LS_SHAPE); /* asking does not take */
    assert_int_equal(ls_error(), LS_SHAPE);
    assert_int_equal(ls_error_pending(), LS_OK);
    assert_int_equal(ls_error(), LS_OK);
    assert_string_equal(ls_error_text(), "first 7"); /* readable after taking */

    assert_int_equal(ls__fail(LS_IO, "third"), LS_IO); /* clean again: recorded */
    assert_string_equal(ls_error_text(), "third");
    assert_int_equal(ls_error(), LS_IO);
}

static void hints_belong_to_their_error(void **state)
{
    (void)state;
    assert_int_equal(ls__hint(ls__fail(LS_INVALID, "axis %d", 4), "axes run to %d", 3), LS_INVALID);
    assert_string_equal(ls_error_text(), "axis 4");
    assert_string_equal(ls_error_hint(), "axes run to 3");
    assert_int_equal(ls_error(), LS_INVALID);
    assert_string_equal(ls_error_hint(), "axes run to 3");

    ls__fail(LS_IO, "without a hint");
    assert_string_equal(ls_error_hint(), ""); /* not the one of the error before */

    /* A consequence is not recorded, so neither is its hint. */
    ls__hint(ls__fail(LS_SHAPE, "consequence"), "wrong advice");
    assert_string_equal(ls_error_text(), "without a hint");
    assert_string_equal(ls_error_hint(), "");
    ls_error();

    ls__hint(ls__fail(LS_SHAPE, "cause"), "right advice");
    ls__hint(ls__fail(LS_IO, "consequence"), "wrong advice");
    assert_string_equal(ls_error_hint(), "right advice");
    ls_error();
}

static void report_takes_and_formats(void **state)
{
    (void)state;
    ls__hint(ls__fail(LS_SHAPE, "matmul: 3 columns, 100%%"), "transpose it");
    assert_string_equal(ls_error_report(),
                        "LS_SHAPE: matmul: 3 columns, 100% (hint: transpose it)");
    assert_int_equal(ls_error_pending(), LS_OK);
    assert_string_equal(ls_error_report(), ""); /* taken: nothing is pending */
    ls__fail(LS_END, "no more");
    assert_string_equal(ls_error_report(), "LS_END: no more");
}

static void long_texts_are_cut(void **state)
{
    (void)state;
    char big[5000];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = 0;
    ls__hint(ls__fail(LS_INVALID, "%s", big), "%s", big);
    size_t n = strlen(ls_error_text()), h = strlen(ls_error_hint());
    assert_true(n > 100 && n < 512);
    assert_true(h > 100 && h < 256);
    const char *report = ls_error_report();
    assert_memory_equal(report, "LS_INVALID: xxx", 15);
    assert_true(strlen(report) > n);
    assert_non_null(strstr(report, "(hint: xxx"));

    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls__fail(LS_INVALID, "%s", big);
    assert_int_equal(ls__error_scope_close(&scope, LS_OK, "%s", big), LS_INVALID);
    assert_true(strlen(ls_error_text()) < 512);
    ls_error();
}

static void memory_failure_says_what_for(void **state)
{
    (void)state;
    assert_int_equal(ls__fail_memory("a big table", 123456), LS_NO_MEMORY);
    assert_non_null(strstr(ls_error_text(), "a big table"));
    assert_non_null(strstr(ls_error_text(), "123456"));
    assert_int_equal(ls_error(), LS_NO_MEMORY);
}

static void scope_without_error_passes(void **state)
{
    (void)state;
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    assert_int_equal(ls__error_scope_close(&scope, LS_OK, "here"), LS_OK);
    assert_int_equal(ls_error_pending(), LS_OK);

    /* An error that was read inside is over. */
    ls__error_scope_open(&scope);
    ls__fail(LS_IO, "handled");
    assert_int_equal(ls_error(), LS_IO);
    assert_int_equal(ls__error_scope_close(&scope, LS_OK, "here"), LS_OK);
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void unread_error_fails_the_scope(void **state)
{
    (void)state;
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls__hint(ls__fail(LS_SHAPE, "5%% inside"), "mend it");
    assert_int_equal(ls__error_scope_close(&scope, LS_OK, "kernel of '%s'", "relu"), LS_SHAPE);
    assert_int_equal(ls_error_pending(), LS_SHAPE);
    const char *where = strstr(ls_error_text(), "kernel of 'relu'");
    const char *what = strstr(ls_error_text(), "5% inside");
    assert_non_null(where);
    assert_non_null(what);
    assert_true(where < what);
    assert_string_equal(ls_error_hint(), "mend it");
    ls_error();

    /* The error left inside goes before the status returned. */
    ls__error_scope_open(&scope);
    ls__fail(LS_SHAPE, "the cause");
    assert_int_equal(ls__error_scope_close(&scope, LS_IO, "here"), LS_SHAPE);
    assert_int_equal(ls_error(), LS_SHAPE);
}

static void status_without_text_fails_the_scope(void **state)
{
    (void)state;
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    assert_int_equal(ls__error_scope_close(&scope, LS_CORRUPT, "callback %d", 3), LS_CORRUPT);
    assert_int_equal(ls_error_pending(), LS_CORRUPT);
    assert_non_null(strstr(ls_error_text(), "callback 3"));
    assert_string_equal(ls_error_hint(), "");
    ls_error();
}

static void scope_starts_clean_and_outer_error_stays_first(void **state)
{
    (void)state;
    ls__error_scope scope;
    ls__hint(ls__fail(LS_IO, "before"), "old hint");
    ls__error_scope_open(&scope);
    assert_int_equal(ls_error_pending(), LS_OK);
    assert_int_equal(ls__error_scope_close(&scope, LS_OK, "here"), LS_OK);
    assert_int_equal(ls_error_pending(), LS_IO);
    assert_string_equal(ls_error_text(), "before");
    assert_string_equal(ls_error_hint(), "old hint");

    ls__error_scope_open(&scope);
    assert_int_equal(ls__fail(LS_SHAPE, "inside"), LS_SHAPE);
    assert_string_equal(ls_error_text(), "inside");
    assert_int_equal(ls__error_scope_close(&scope, LS_OK, "here"), LS_SHAPE);
    assert_int_equal(ls_error_pending(), LS_IO);
    assert_string_equal(ls_error_text(), "before");
    assert_string_equal(ls_error_hint(), "old hint");
    ls_error();
}

static void scopes_nest(void **state)
{
    (void)state;
    ls__error_scope one, two, three;
    ls__error_scope_open(&one);
    ls__error_scope_open(&two);
    ls__error_scope_open(&three);
    ls__fail(LS_DESYNC, "deep");
    ls_status st = ls__error_scope_close(&three, LS_OK, "level 3");
    st = ls__error_scope_close(&two, st, "level 2");
    st = ls__error_scope_close(&one, st, "level 1");
    assert_int_equal(st, LS_DESYNC);
    const char *text = ls_error_text();
    assert_true(strstr(text, "level 1") && strstr(text, "level 2") && strstr(text, "level 3"));
    assert_true(strstr(text, "level 1") < strstr(text, "level 2"));
    assert_true(strstr(text, "level 3") < strstr(text, "deep"));
    assert_int_equal(ls_error(), LS_DESYNC);

    /* Caught at the middle level: the outer one is clean. */
    ls__error_scope_open(&one);
    ls__error_scope_open(&two);
    ls__fail(LS_IO, "deep");
    assert_int_equal(ls__error_scope_close(&two, LS_OK, "level 2"), LS_IO);
    assert_int_equal(ls_error(), LS_IO);
    assert_int_equal(ls__error_scope_close(&one, LS_OK, "level 1"), LS_OK);
    assert_int_equal(ls_error_pending(), LS_OK);
}

typedef struct crossing {
    ls__error_record record;
    ls_status seen_at_start, seen_after_take;
} crossing;

static void *fail_elsewhere(void *arg)
{
    crossing *c = arg;
    c->seen_at_start = ls_error_pending();
    ls__hint(ls__fail(LS_PEER, "made on another thread"), "restart it");
    ls__error_take(&c->record);
    c->seen_after_take = ls_error_pending();
    return NULL;
}

static void errors_belong_to_threads_and_move(void **state)
{
    (void)state;
    crossing c;
    memset(&c, 0x55, sizeof c);
    pthread_t thread;
    ls__fail(LS_IO, "mine");
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, &c), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(c.seen_at_start, LS_OK);
    assert_int_equal(c.seen_after_take, LS_OK);
    assert_int_equal(c.record.status, LS_PEER);

    ls__error_put(&c.record); /* mine is pending: it stays the first */
    assert_int_equal(ls_error(), LS_IO);

    ls__error_put(&c.record);
    assert_int_equal(ls_error_pending(), LS_PEER);
    assert_string_equal(ls_error_text(), "made on another thread");
    assert_string_equal(ls_error_hint(), "restart it");
    ls_error();

    ls__error_take(&c.record); /* nothing to take, nothing to put */
    assert_int_equal(c.record.status, LS_OK);
    ls__error_put(&c.record);
    assert_int_equal(ls_error_pending(), LS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(codes_have_names_texts_and_scopes, clean),
        cmocka_unit_test_setup(clean_thread_has_nothing, clean),
        cmocka_unit_test_setup(first_failure_is_kept, clean),
        cmocka_unit_test_setup(hints_belong_to_their_error, clean),
        cmocka_unit_test_setup(report_takes_and_formats, clean),
        cmocka_unit_test_setup(long_texts_are_cut, clean),
        cmocka_unit_test_setup(memory_failure_says_what_for, clean),
        cmocka_unit_test_setup(scope_without_error_passes, clean),
        cmocka_unit_test_setup(unread_error_fails_the_scope, clean),
        cmocka_unit_test_setup(status_without_text_fails_the_scope, clean),
        cmocka_unit_test_setup(scope_starts_clean_and_outer_error_stays_first, clean),
        cmocka_unit_test_setup(scopes_nest, clean),
        cmocka_unit_test_setup(errors_belong_to_threads_and_move, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
