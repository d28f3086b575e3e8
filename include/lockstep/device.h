/*
 * device.h: where maths runs.
 *
 * How to use it
 *
 * "/cpu:0" is a share of this host's cores with a pinned thread of its own.
 * Every spelling names the same device; the canonical one is the long form:
 *
 *     /cpu:1  cpu:1  CPU:1  /device:CPU:1  /job:localhost/replica:0/task:0/device:CPU:1
 *
 * Numbers run from 0 to 65535; "/cpu" is "/cpu:0". There are as many CPU devices as
 * you name: device N sits on usable core N modulo their number (cgroup quotas and
 * cpusets count), so devices may outnumber cores.
 *
 *     LS_DEVICE("/cpu:1") x = ls_zeros(LS_F32, LS_DIMS(8));   // made there
 *
 * Maths runs on the calling thread. Its inputs may be on different CPU devices, which share
 * the host's memory; the result is on the first one's.
 */
#ifndef LOCKSTEP_DEVICE_H
#define LOCKSTEP_DEVICE_H

#include <lockstep/tensor.h>

LS_BEGIN_DECLS

/* Writes the canonical name of `name` to `out`, which has LS_DEVICE_NAME_MAX bytes.
 * Fields that `name` leaves open come from `defaults`, a device name too, or
 * NULL for this process's own. */
#define LS_DEVICE_NAME_MAX 128
LS_API ls_status ls_device_canonical(const char *name, const char *defaults, char *out,
                                     size_t out_size);

/* Makes `name` this thread's device for what is created from now on; returns
 * in `*before` (may be NULL) the canonical name it replaces. */
LS_API ls_status ls_device_set(const char *name, const char **before);
LS_API const char *ls_device_current(void);

/* The cores of this process that CPU devices share. */
LS_API int ls_cpu_cores(void);

/* Threads that kernels called from this thread compute with (1). Part of the
 * result: sums over many threads round differently. They are OpenMP's: its number
 * for the calling thread is set to this, and its threads flush denormals. */
LS_API ls_status ls_device_threads(int threads);

/* Runs fn(user) on the device's own pinned thread, with the device as that
 * thread's and in a frame, and waits for it: what it makes goes when it returns,
 * ls_keep aside. An error left pending there moves to the calling thread and fails
 * the call. After
 * fork() the child has no such threads: LS_STATE. */
LS_API ls_status ls_device_run(const char *name, ls_status (*fn)(void *user), void *user);

/* The same value on another device; gradients flow through. */
LS_API ls_tensor *ls_copy_to(ls_tensor *t, const char *device);

#if defined(__GNUC__) && !defined(__cplusplus)
static inline const char *ls__device_enter(const char *name)
{
    const char *before = NULL;
    return ls_device_set(name, &before) == LS_OK ? before : NULL;
}
static inline void ls__device_leave(const char *const *before)
{
    if (*before)
        ls_device_set(*before, NULL);
}
/* LS_DEVICE("/cpu:1") { ... }: a block in which things are made there (a loop of one
 * turn, like LS_FRAME). A device that is not there leaves its error pending, and
 * the block runs where it would have without. */
#define LS_DEVICE(name)                                                  \
    for (const char *LS__UNIQUE(ls__before_) __attribute__((cleanup(ls__device_leave), unused)) = \
             ls__device_enter(name),                                     \
             *LS__UNIQUE(ls__turn_) = "";                                \
         LS__UNIQUE(ls__turn_); LS__UNIQUE(ls__turn_) = NULL)
#endif

LS_END_DECLS

#endif
