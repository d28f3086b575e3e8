/*
 * The log callback. Invariant: at most one message is on its way at a time, and
 * a callback is never called again once ls_log_set has replaced it.
 */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_flag busy = ATOMIC_FLAG_INIT;
static ls_log_fn callback;
static void *callback_user;
/* Read without the flag so that a message nobody wants costs one load. */
static _Atomic int detail = LS_LOG_WARNING;

static void lock(void)
{
    while (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire))
        ;
}

static void unlock(void)
{
    atomic_flag_clear_explicit(&busy, memory_order_release);
}

static void to_stderr(ls_log_level level, const char *message)
{
    static const char *const names[] = { "error", "warning", "info", "debug" };
    fprintf(stderr, "lockstep: %s: %s\n", names[level], message);
}

void ls_log_set(ls_log_fn fn, void *user, ls_log_level most_detailed)
{
    lock();
    callback = fn;
    callback_user = user;
    atomic_store_explicit(&detail, fn ? (int)most_detailed : LS_LOG_WARNING,
                          memory_order_relaxed);
    unlock();
}

void ls__log(ls_log_level level, const char *format, ...)
{
    if ((int)level > atomic_load_explicit(&detail, memory_order_relaxed))
        return;
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    lock();
    if (callback)
        callback(level, message, callback_user);
    else
        to_stderr(level, message);
    unlock();
}
