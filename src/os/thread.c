/*
 * Workers over POSIX threads. Invariant: `job` is set by one caller at a time
 * (the one that holds `turn`), taken by the worker, and `done` tells that
 * caller that status and error are his to read.
 */
#include "os/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "os/plain_thread.h"

struct ls__worker {
    ls__thread *thread;
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

static void free_worker(ls__worker *w)
{
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    pthread_mutex_destroy(&w->turn);
    free(w);
}

static void worker_main(void *arg)
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
}

ls_status ls__worker_start(const char *name, int core, ls__worker **out)
{
    ls__worker *w = calloc(1, sizeof *w);
    if (!w)
        return ls__fail_memory("worker thread", sizeof *w);
    pthread_mutex_init(&w->turn, NULL);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    ls_status st = ls__thread_start(name, core, worker_main, w, &w->thread);
    if (st)
        free_worker(w);
    else
        *out = w;
    return st;
}

ls_status ls__worker_run(ls__worker *w, ls__job job, void *user)
{
    if (!ls__thread_is_here(w->thread))
        return ls__hint(ls__fail(LS_STATE, "this process was forked: its devices' threads are in "
                                           "the parent"),
                        "exec after fork, or fork before the first use of a device");
    if (ls__thread_is_this(w->thread))
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
    ls__thread_join(w->thread);
    free_worker(w);
}

enum { MOST_HOOKS = 8 };

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

_Static_assert(sizeof(pthread_once_t) == sizeof(ls__once) && PTHREAD_ONCE_INIT == 0,
               "ls__once is a pthread_once_t");

void ls__call_once(ls__once *once, void (*fn)(void))
{
    pthread_once((pthread_once_t *)&once->state, fn);
}
