/*
 * Plain threads over POSIX threads.
 */
#include "os/plain_thread.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ls__thread {
    pthread_t thread;
    pid_t process;
    void (*fn)(void *);
    void *arg;
};

static void *thread_main(void *arg)
{
    ls__thread *t = arg;
    t->fn(t->arg);
    return NULL;
}

/* Signals are the program's: no thread of ours takes one. But a fault is of the thread that made it, and
 * one that is blocked there kills the process, past the program's handler. */
static sigset_t signals_of_program(void)
{
    static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&all, faults[i]);
    return all;
}

static int start(ls__thread *t, int core)
{
    pthread_attr_t attr;
    int error = pthread_attr_init(&attr);
    if (error)
        return error;
    /* Not pinned is as the main thread is: who starts it may be pinned himself. */
    cpu_set_t set;
    CPU_ZERO(&set);
    if (core >= 0)
        CPU_SET((size_t)core, &set);
    if (core >= 0 || sched_getaffinity(getpid(), sizeof set, &set) == 0)
        error = pthread_attr_setaffinity_np(&attr, sizeof set, &set);
    sigset_t blocked = signals_of_program(), before;
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    if (!error)
        error = pthread_create(&t->thread, &attr, thread_main, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return error;
}

ls_status ls__thread_start(const char *name, int core, void (*fn)(void *), void *arg,
                           ls__thread **out)
{
    ls__thread *t = malloc(sizeof *t);
    if (!t)
        return ls__fail_memory("thread", sizeof *t);
    *t = (ls__thread){ .process = getpid(), .fn = fn, .arg = arg };
    int error = start(t, core);
    if (error) {
        free(t);
        if (error == ENOMEM)
            return ls__fail_memory("thread", sizeof *t);
        return ls__hint(
            ls__fail(LS_IO, "cannot start thread '%s' on core %d: %s", name, core, strerror(error)),
            "look at the limits on threads (ulimit -u) and the cpuset");
    }
    char short_name[16];
    snprintf(short_name, sizeof short_name, "%s", name);
    pthread_setname_np(t->thread, short_name);
    *out = t;
    return LS_OK;
}

bool ls__thread_is_here(const ls__thread *t)
{
    return t->process == getpid();
}

bool ls__thread_is_this(const ls__thread *t)
{
    return pthread_equal(pthread_self(), t->thread);
}

void ls__thread_join(ls__thread *t)
{
    if (!t)
        return;
    if (ls__thread_is_here(t))
        pthread_join(t->thread, NULL);
    free(t);
}
