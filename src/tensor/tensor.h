/*
 * The tensor handle and the frames that own handles (DESIGN rule I).
 *
 * A handle is a spec, a reference on storage and an identity. Two handles with
 * one id are the same value: a kept, imported or handed-up handle, and every
 * read of one version of a cell. The tape knows values by id.
 */
#ifndef LS__TENSOR_TENSOR_H
#define LS__TENSOR_TENSOR_H

#include "base/arena.h"
#include "base/status.h"
#include "tensor/device.h"
#include "tensor/spec.h"
#include "tensor/storage.h"

struct ls_tensor {
    uint32_t live; /* LS__LIVE, or LS__DEAD once its frame has closed */
    bool kept;     /* by ls_keep: no frame owns it */
    ls__spec spec;
    ls__storage *storage;
    uint64_t id;
    ls__device *device;
    ls_tensor *sparse_rows; /* of a sparse tensor: the rows its values belong to */
    ls_tensor *next;        /* handles of one frame */
};

#define LS__LIVE 0x4C53544Eu
#define LS__DEAD 0xDEADu

/* A fresh identity. */
uint64_t ls__new_id(void);

/* The identity of a value on one replica, where every replica has the same value (a mirrored
 * one, a read of a shared variable): equal contents, another value. */
static inline uint64_t ls__id_everywhere(uint64_t id)
{
    return id & (((uint64_t)1 << 48) - 1);
}
static inline uint64_t ls__id_on_replica(uint64_t id, int replica)
{
    return ls__id_everywhere(id) | (uint64_t)(replica + 1) << 48;
}

/* An element of an LS_BYTES tensor: in its storage these lie first, then the bytes of all of them,
 * each with a NUL behind it. */
typedef struct ls__string {
    const void *data;
    size_t length;
} ls__string;

/* The elements, which are made here if nobody has looked at them yet. A view of a cell may have been copied
 * out by a write to the cell, so the address is read from the storage every time. */
static inline void *ls__data(const ls_tensor *t)
{
    return ls__storage_look(t->storage);
}

/* Numbers that are there, one for each element. */
static inline bool ls__is_dense(const ls_tensor *t)
{
    return t->spec.dtype != LS_BYTES && !t->sparse_rows && !t->storage->symbol;
}

/* A handle in the innermost frame that takes over one reference on `storage`,
 * also when it fails (NULL). */
ls_tensor *ls__handle(const ls__spec *spec, ls__storage *storage, uint64_t id, ls__device *device);

/* A handle with new uninitialised memory. */
ls_tensor *ls__tensor_new(const char *who, const ls__spec *spec);

/* One number of x's dtype, on x's device; NULL for NULL. */
ls_tensor *ls__scalar_like(const ls_tensor *x, double value);

/* A handle onto the same value, in the innermost frame. */
ls_tensor *ls__same_value(const ls_tensor *t);

/* LS_OK when `t` can be used; else the pending error, or a new LS_INVALID that
 * names the function and the argument. */
ls_status ls__check_tensor(const char *who, const char *argument, const ls_tensor *t);

/* ---- frames -------------------------------------------------------------- */

typedef struct ls__frame ls__frame;

/* Memory of the innermost frame; goes with it. */
void *ls__frame_alloc(size_t bytes);
char *ls__frame_string(const char *text);

/* Calls fn(object) when the innermost frame closes, before its tensors go. */
ls_status ls__frame_on_close(void (*fn)(void *object), void *object);

/* What is made between aim and aim_back belongs to the frame `up` levels around
 * the innermost one. */
ls__frame *ls__frame_aim(int up);
void ls__frame_aim_back(ls__frame *before);

#endif
