/*
 * Logging: what reaches the callback, what reaches stderr by default, and that
 * stdout stays silent.
 */
#include "base/log.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct heard {
    int count[4];
    char last[4096];
    int inside, overlaps; /* plain ints: the log promises one call at a time */
} heard;

static void listen_in(ls_log_level level, const char *message, void *user)
{
    heard *h = user;
    if (h->inside++)
        h->overlaps++;
    h->count[level]++;
    snprintf(h->last, sizeof h->last, "%s", message);
    h->inside--;
}

/* What `write` sends to a descriptor of this process. */
static size_t capture(int fd, void (*write)(void), char *out, size_t size)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    fflush(stderr);
    int saved = dup(fd);
    assert_true(saved >= 0);
    dup2(fileno(file), fd);
    write();
    fflush(stdout);
    fflush(stderr);
    dup2(saved, fd);
    close(saved);
    rewind(file);
    size_t n = fread(out, 1, size - 1, file);
    out[n] = 0;
    fclose(file);
    return n;
}

static void log_each_level(void)
{
    ls__log(LS_LOG_ERROR, "an error %d", 1);
    ls__log(LS_LOG_WARNING, "a warning %d", 2);
    ls__log(LS_LOG_INFO, "some info %d", 3);
    ls__log(LS_LOG_DEBUG, "a detail %d", 4);
}

static void default_is_stderr_from_warnings_on(void **state)
{
    (void)state;
    char text[4096];
    capture(STDERR_FILENO, log_each_level, text, sizeof text);
    assert_non_null(strstr(text, "an error 1"));
    assert_non_null(strstr(text, "a warning 2"));
    assert_null(strstr(text, "some info"));
    assert_null(strstr(text, "a detail"));
    assert_int_equal(text[strlen(text) - 1], '\n');
}

static void log_to_stderr(void)
{
    char text[4096];
    capture(STDERR_FILENO, log_each_level, text, sizeof text);
}

static void stdout_stays_silent(void **state)
{
    (void)state;
    char text[4096];
    assert_int_equal(capture(STDOUT_FILENO, log_to_stderr, text, sizeof text), 0);
}

static void callback_gets_its_levels(void **state)
{
    (void)state;
    for (int level = LS_LOG_ERROR; level <= LS_LOG_DEBUG; level++) {
        heard h = { .inside = 0 };
        ls_log_set(listen_in, &h, (ls_log_level)level);
        log_each_level();
        for (int i = 0; i < 4; i++)
            assert_int_equal(h.count[i], i <= level);
    }
    heard h = { .inside = 0 };
    ls_log_set(listen_in, &h, LS_LOG_DEBUG);
    ls__log(LS_LOG_INFO, "%s is %d%%", "rate", 50);
    assert_string_equal(h.last, "rate is 50%"); /* the message alone, no line end */
    ls_log_set(NULL, NULL, LS_LOG_WARNING);
}

static void log_to_the_callback(void)
{
    heard h = { .inside = 0 };
    ls_log_set(listen_in, &h, LS_LOG_DEBUG);
    log_each_level();
    ls_log_set(NULL, NULL, LS_LOG_WARNING);
}

static void callback_replaces_stderr_and_back(void **state)
{
    (void)state;
    char text[4096];
    assert_int_equal(capture(STDERR_FILENO, log_to_the_callback, text, sizeof text), 0);
    capture(STDERR_FILENO, log_each_level, text, sizeof text);
    assert_non_null(strstr(text, "a warning 2"));
    assert_null(strstr(text, "some info"));
}

static void long_messages_do_not_overflow(void **state)
{
    (void)state;
    char big[20000];
    memset(big, 'y', sizeof big - 1);
    big[sizeof big - 1] = 0;
    heard h = { .inside = 0 };
    ls_log_set(listen_in, &h, LS_LOG_DEBUG);
    ls__log(LS_LOG_ERROR, "%s", big);
    ls_log_set(NULL, NULL, LS_LOG_WARNING);
    assert_int_equal(h.count[LS_LOG_ERROR], 1);
    assert_memory_equal(h.last, "yyyyyyyy", 8);
}

static void *log_much(void *arg)
{
    for (int i = 0; i < 2000; i++)
        ls__log(LS_LOG_INFO, "%s %d", (const char *)arg, i);
    return NULL;
}

static void one_call_at_a_time(void **state)
{
    (void)state;
    heard h = { .inside = 0 };
    ls_log_set(listen_in, &h, LS_LOG_INFO);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, log_much, "thread"), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ls_log_set(NULL, NULL, LS_LOG_WARNING);
    assert_int_equal(h.count[LS_LOG_INFO], 8000);
    assert_int_equal(h.overlaps, 0);
}

static void logging_is_no_error(void **state)
{
    (void)state;
    assert_int_equal(ls_error_pending(), LS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_is_stderr_from_warnings_on),
        cmocka_unit_test(stdout_stays_silent),
        cmocka_unit_test(callback_gets_its_levels),
        cmocka_unit_test(callback_replaces_stderr_and_back),
        cmocka_unit_test(long_messages_do_not_overflow),
        cmocka_unit_test(one_call_at_a_time),
        cmocka_unit_test(logging_is_no_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
