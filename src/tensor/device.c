/*
 * The devices of this process. Invariant: one ls__device per canonical name,
 * made under the lock when first asked for and never freed, so a pointer to it
 * is good for ever and comparing pointers compares devices.
 */
#include "tensor/device.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "os/thread.h"
#include "os/topology.h"
#include "tensor/tensor.h"

static _Atomic(ls__device *) devices;
static atomic_flag making = ATOMIC_FLAG_INIT;
static _Thread_local ls__device *current;

static void cpu_copy(ls__device *device, void *to, const void *from, size_t bytes)
{
    (void)device;
    if (bytes > 0)
        memcpy(to, from, bytes);
}

static void lock(void)
{
    while (atomic_flag_test_and_set_explicit(&making, memory_order_acquire))
        ;
}

static void unlock(void)
{
    atomic_flag_clear_explicit(&making, memory_order_release);
}

static ls_status cpu_run(ls__device *device, ls_status (*fn)(void *), void *user)
{
    lock();
    ls_status st = LS_OK;
    if (!device->worker) {
        char name[32];
        snprintf(name, sizeof name, "ls-cpu-%d", device->index);
        st = ls__worker_start(name, ls__core_number(device->index), &device->worker);
    }
    unlock();
    return st ? st : ls__worker_run(device->worker, fn, user);
}

static const ls__device_table cpu_table = { cpu_copy, cpu_run };

static ls__device *listed(const char *canonical)
{
    ls__device *d = atomic_load_explicit(&devices, memory_order_acquire);
    while (d && strcmp(d->name, canonical) != 0)
        d = d->next;
    return d;
}

static ls_status make(const char *canonical, ls__device **out)
{
    ls__device_name name;
    ls_status st = ls__device_name_parse(canonical, &name);
    if (st)
        return st;
    if (strcmp(name.type, "GPU") == 0)
        return ls__hint(ls__fail(LS_UNSUPPORTED, "device '%s': this build has no GPU support",
                                 canonical),
                        "name CPU devices: /cpu:0, /cpu:1, ...");
    if (strcmp(name.job, "localhost") != 0 || name.replica != 0 || name.task != 0)
        return ls__hint(ls__fail(LS_UNSUPPORTED, "device '%s' is not of this process", canonical),
                        "devices of this process have /job:localhost/replica:0/task:0");
    ls__device *device = calloc(1, sizeof *device);
    if (!device)
        return ls__fail_memory("device", sizeof *device);
    device->table = &cpu_table;
    device->index = name.index;
    memcpy(device->name, canonical, sizeof device->name);
    device->next = atomic_load_explicit(&devices, memory_order_relaxed);
    atomic_store_explicit(&devices, device, memory_order_release);
    *out = device;
    return LS_OK;
}

ls_status ls__device_find(const char *name, ls__device **out)
{
    char canonical[LS_DEVICE_NAME_MAX] = "";
    ls_status st = ls_device_canonical(name, NULL, canonical, sizeof canonical);
    if (st)
        return st;
    ls__device *device = listed(canonical);
    if (!device) {
        lock();
        device = listed(canonical);
        st = device ? LS_OK : make(canonical, &device);
        unlock();
    }
    if (!st)
        *out = device;
    return st;
}

ls__device *ls__device_current(void)
{
    /* Cannot fail but for memory; then a device that is not listed serves. */
    static ls__device fallback = { &cpu_table, "/job:localhost/replica:0/task:0/device:CPU:0", 0,
                                   NULL, NULL };
    if (!current && ls__device_find("/cpu:0", &current) != LS_OK)
        current = &fallback;
    return current;
}

ls__device *ls__device_use(ls__device *device)
{
    ls__device *before = ls__device_current();
    current = device;
    return before;
}

ls_status ls_device_set(const char *name, const char **before)
{
    ls__device *device = NULL, *old = ls__device_current();
    ls_status st = ls__device_find(name, &device);
    if (st)
        return st;
    current = device;
    if (before)
        *before = old->name;
    return LS_OK;
}

const char *ls_device_current(void)
{
    return ls__device_current()->name;
}

const char *ls_device_of(const ls_tensor *t)
{
    return t ? t->device->name : NULL;
}

int ls_cpu_cores(void)
{
    return ls__cores();
}

typedef struct device_job {
    ls__device *device;
    ls_status (*fn)(void *);
    void *user;
} device_job;

/* On the device's thread: what is made there belongs there. */
static ls_status run_there(void *user)
{
    device_job *job = user;
    ls__device *before = ls__device_use(job->device);
    ls_status st = LS_NO_MEMORY;
    LS_FRAME st = job->fn(job->user); /* the thread never ends: nothing else frees what it makes */
    ls__device_use(before);
    return st;
}

ls_status ls_device_run(const char *name, ls_status (*fn)(void *), void *user)
{
    ls__device *device = NULL;
    if (!fn)
        return ls__fail(LS_INVALID, "ls_device_run: fn is NULL");
    ls_status st = ls__device_find(name, &device);
    if (st)
        return st;
    device_job job = { device, fn, user };
    ls_status before = ls_error_pending();
    st = device->table->run(device, run_there, &job);
    return st || before ? st : ls_error_pending(); /* an unread error fails the call */
}

ls_tensor *ls_copy_to(ls_tensor *t, const char *name)
{
    ls__device *device = NULL;
    if (ls__check_tensor("ls_copy_to", "t", t) || ls__device_find(name, &device))
        return NULL;
    if (device == t->device)
        return ls__same_value(t);
    /* CPU devices share the host's memory: the same storage serves both, and it is
     * the same value, so gradients flow through. */
    ls_tensor *copy = ls__handle(&t->spec, ls__storage_ref(t->storage), t->id, device);
    if (copy && t->sparse_rows) {
        copy->sparse_rows = ls_copy_to(t->sparse_rows, name);
        if (!copy->sparse_rows)
            return NULL;
    }
    return copy;
}
