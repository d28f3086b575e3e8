/*
 * Devices. A device is a table of what can be done with its memory and its
 * thread (DESIGN rule L): a CPU's is filled here, a GPU plugin fills its own.
 */
#ifndef LS__TENSOR_DEVICE_H
#define LS__TENSOR_DEVICE_H

#include <lockstep/device.h>

/* A device name taken apart. Fields a spelling leaves open are "" or -1. */
typedef struct ls__device_name {
    char job[32];
    int replica;
    int task;
    char type[16]; /* "CPU", "GPU": upper case */
    int index;
} ls__device_name;

/* Pure: reads any spelling; LS_INVALID says what is wrong with it. */
ls_status ls__device_name_parse(const char *text, ls__device_name *out);

/* Fills open fields of `name` from `defaults`. */
void ls__device_name_merge(ls__device_name *name, const ls__device_name *defaults);

/* "/job:localhost/replica:0/task:0/device:CPU:0". */
void ls__device_name_format(const ls__device_name *name, char *out, size_t out_size);

typedef struct ls__device ls__device;

typedef struct ls__device_table {
    /* Copies between this device's memory and the host's, or within it. */
    void (*copy)(ls__device *device, void *to, const void *from, size_t bytes);
    /* Runs a job on the device's own thread and waits for it. */
    ls_status (*run)(ls__device *device, ls_status (*fn)(void *), void *user);
} ls__device_table;

struct ls__device {
    const ls__device_table *table;
    char name[LS_DEVICE_NAME_MAX]; /* canonical */
    int index;
    struct ls__worker *worker; /* made when first needed */
    struct ls__device *next;
};

/* The device of that (any) spelling; made when first asked for. Devices live as
 * long as the process. */
ls_status ls__device_find(const char *name, ls__device **out);

/* This thread's device for new tensors: /cpu:0 until set. Never NULL. */
ls__device *ls__device_current(void);

/* Sets it; returns the one before. */
ls__device *ls__device_use(ls__device *device);

#endif
