/*
 * Workers over POSIX threads. Invariant: `job` is set by one caller at a time
 * (the one that holds `turn`), taken by the worker, and `done` tells that
 * caller that status and error are his to read.
 */
#include "os/thread.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ls__worker {
    pthread_t thread;
    pid_t process; /* a child that fork() made has no such thread */
    pthread_mutex_t turn; /* callers queue here */
    pthread_mutex_t lock; /* protects all below */
    pthread_cond_t changed;
    ls__job job;
    void *user;
    bool done;
    bool stop;
    ls_status status;
    ls__error_record error;
};

static void *worker_main(void *arg)
{
    ls__worker *w = arg;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!w->job && !w->stop)
            pthread_cond_wait(&w->changed, &w->lock);
        if (!w->job)
            break;
        ls__job job = w->job;
        void *user = w->user;
        pthread_mutex_unlock(&w->lock);
        ls_status status = job(user);
        pthread_mutex_lock(&w->lock);
        w->status = status;
        ls__error_take(&w->error);
        w->job = NULL;
        w->done = true;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static int start_pinned(ls__worker *w, int core)
{
    pthread_attr_t attr;
    int error = pthread_attr_init(&attr);
    if (error)
        return error;
    if (core >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((size_t)core, &set);
        error = pthread_attr_setaffinity_np(&attr, sizeof set, &set);
    }
    if (!error)
        error = pthread_create(&w->thread, &attr, worker_main, w);
    pthread_attr_destroy(&attr);
    return error;
}

ls_status ls__worker_start(const char *name, int core, ls__worker **out)
{
    ls__worker *w = calloc(1, sizeof *w);
    if (!w)
        return ls__fail_memory("worker thread", sizeof *w);
    pthread_mutex_init(&w->turn, NULL);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->process = getpid();
    int error = start_pinned(w, core);
    if (error) {
        pthread_cond_destroy(&w->changed);
        pthread_mutex_destroy(&w->lock);
        pthread_mutex_destroy(&w->turn);
        free(w);
        return ls__hint(ls__fail(LS_IO, "cannot start thread '%s' on core %d: %s", name, core,
                                 strerror(error)),
                        "look at the limits on threads (ulimit -u) and the cpuset");
    }
    char short_name[16];
    snprintf(short_name, sizeof short_name, "%s", name);
    pthread_setname_np(w->thread, short_name);
    *out = w;
    return LS_OK;
}

ls_status ls__worker_run(ls__worker *w, ls__job job, void *user)
{
    if (w->process != getpid())
        return ls__hint(ls__fail(LS_STATE, "this process was forked: its devices' threads are in "
                                           "the parent"),
                        "exec after fork, or fork before the first use of a device");
    if (pthread_equal(pthread_self(), w->thread))
        return job(user);
    pthread_mutex_lock(&w->turn);
    pthread_mutex_lock(&w->lock);
    w->user = user;
    w->done = false;
    w->job = job;
    pthread_cond_broadcast(&w->changed);
    while (!w->done)
        pthread_cond_wait(&w->changed, &w->lock);
    ls_status status = w->status;
    ls__error_record error = w->error;
    pthread_mutex_unlock(&w->lock);
    pthread_mutex_unlock(&w->turn);
    ls__error_put(&error);
    return status;
}

void ls__worker_stop(ls__worker *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    pthread_mutex_destroy(&w->turn);
    free(w);
}

enum { MOST_HOOKS = 4 };

static pthread_key_t end_key;
static pthread_once_t end_once = PTHREAD_ONCE_INIT;
static _Thread_local void (*hooks[MOST_HOOKS])(void);
static _Thread_local int n_hooks;

static void thread_ended(void *unused)
{
    (void)unused;
    while (n_hooks > 0)
        hooks[--n_hooks]();
}

static void make_end_key(void)
{
    pthread_key_create(&end_key, thread_ended);
}

void ls__at_thread_end(void (*fn)(void))
{
    for (int i = 0; i < n_hooks; i++)
        if (hooks[i] == fn)
            return;
    if (n_hooks == MOST_HOOKS)
        return;
    hooks[n_hooks++] = fn;
    pthread_once(&end_once, make_end_key);
    pthread_setspecific(end_key, &end_key); /* any non-NULL value arms the key */
}

uint64_t ls__thread_number(void)
{
    static _Atomic uint64_t last;
    static _Thread_local uint64_t mine;
    if (mine == 0)
        mine = 1 + atomic_fetch_add_explicit(&last, 1, memory_order_relaxed);
    return mine;
}

_Static_assert(sizeof(pthread_once_t) == sizeof(ls__once) && PTHREAD_ONCE_INIT == 0,
               "ls__once is a pthread_once_t");

void ls__call_once(ls__once *once, void (*fn)(void))
{
    pthread_once((pthread_once_t *)&once->state, fn);
}
