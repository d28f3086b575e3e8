/*
 * tensor.h: tensors, and the frames that own them.
 *
 * How to use it
 *
 * 1. A tensor is an immutable, dense, row-major array. Make one from memory
 *    (copied), or wrap memory of yours (not copied):
 *
 *        float data[6] = {1, 2, 3, 4, 5, 6};
 *        ls_tensor *x = ls_from(LS_F32, LS_DIMS(2, 3), data);
 *
 * 2. A tensor belongs to the innermost open frame of its thread and goes when
 *    that frame closes. Open one per training step and nothing is ever freed
 *    by hand:
 *
 *        for (int step = 0; step < 1000; step++)
 *            LS_FRAME {
 *                ls_tensor *y = ls_relu(x);      // gone at the brace
 *            }
 *
 *    LS_FRAME closes on break, return and goto too. (It is a loop of one turn:
 *    break leaves the block, not the loop around it.) Outside any frame a tensor
 *    lives until its thread ends, the main one's until the process does. To take
 *    one out of its frame: ls_hand_up gives it to the frame around, ls_keep makes
 *    it yours until ls_drop.
 *
 * 3. Read values with ls_copy_out, ls_data or, for one element, ls_to_float.
 *    There is no raw data pointer without ls_data: memory may be a GPU's.
 *
 * Shapes are int64 everywhere. Failures: see status.h. A handle is used by the
 * thread that made it; a kept one (ls_keep) may be used by any one thread at a
 * time.
 */
#ifndef LOCKSTEP_TENSOR_H
#define LOCKSTEP_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lockstep/export.h>
#include <lockstep/status.h>

LS_BEGIN_DECLS

typedef struct ls_tensor ls_tensor;

/* Most dimensions a tensor can have. */
#define LS_MAX_RANK 8

/* One list defines the element types: X(name, value, text, bytes). LS_BYTES
 * elements are strings of any length; they stay on the host and no maths takes
 * them. */
#define LS_DTYPE_LIST(X)                                                 \
    X(LS_F32, 1, "f32", 4)                                               \
    X(LS_F64, 2, "f64", 8)                                               \
    X(LS_I32, 3, "i32", 4)                                               \
    X(LS_I64, 4, "i64", 8)                                               \
    X(LS_U8, 5, "u8", 1)                                                 \
    X(LS_BOOL, 6, "bool", 1)                                             \
    X(LS_BF16, 7, "bf16", 2)                                             \
    X(LS_BYTES, 8, "bytes", 16)

typedef enum ls_dtype {
#define LS__DTYPE_ENUM(name, value, text, bytes) name = value,
    LS_DTYPE_LIST(LS__DTYPE_ENUM)
#undef LS__DTYPE_ENUM
} ls_dtype;

/* "f32"; "?" for a number that is no dtype. */
LS_API const char *ls_dtype_name(ls_dtype dtype);

/* Bytes of one element; 0 for a number that is no dtype and for LS_BYTES. */
LS_API size_t ls_dtype_size(ls_dtype dtype);

LS_API bool ls_dtype_is_float(ls_dtype dtype);
LS_API bool ls_dtype_is_integer(ls_dtype dtype);

/* Writes a shape in a call: LS_DIMS(2, 3) stands for the two arguments `rank`
 * and `dims`. LS_SCALAR is the shape of a single number. */
#ifndef __cplusplus
#define LS_DIMS(...)                                                     \
    (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)),         \
        (const int64_t[]){ __VA_ARGS__ }
#endif
#define LS_SCALAR 0, NULL

/* ---- making tensors ---------------------------------------------------- */

/* Copies `data`, which holds the elements in row-major order. Not for
 * LS_BYTES: see ls_from_strings. */
LS_API ls_tensor *ls_from(ls_dtype dtype, int rank, const int64_t *dims, const void *data);

/* Uses your memory without a copy. It must stay as it is until `release` is
 * called, exactly once, possibly from another thread; NULL when nothing is to
 * be released (the memory then must outlive every use of the tensor). It must be
 * aligned as its elements are. If this call fails, `release` is not called. */
LS_API ls_tensor *ls_wrap(ls_dtype dtype, int rank, const int64_t *dims, void *data,
                          void (*release)(void *data, void *user), void *user);

/* Copies `count of dims` strings: element i has lengths[i] bytes at strings[i]
 * (lengths NULL: each ends with a NUL, which is not part of it). */
LS_API ls_tensor *ls_from_strings(int rank, const int64_t *dims, const void *const *strings,
                                  const size_t *lengths);

/* One number, converted to `dtype` as ls_cast does: what does not fit saturates. */
LS_API ls_tensor *ls_scalar(ls_dtype dtype, double value);
LS_API ls_tensor *ls_scalar_int(ls_dtype dtype, int64_t value);

/* The same number in every element. */
LS_API ls_tensor *ls_full(ls_dtype dtype, int rank, const int64_t *dims, double value);
LS_API ls_tensor *ls_zeros(ls_dtype dtype, int rank, const int64_t *dims);
LS_API ls_tensor *ls_ones(ls_dtype dtype, int rank, const int64_t *dims);

/* ---- asking ------------------------------------------------------------ */

/* Asking a NULL tensor gives 0, or NULL, and records nothing (ls_dim, which can
 * fail, aside). */
LS_API ls_dtype ls_dtype_of(const ls_tensor *t);
LS_API int ls_rank(const ls_tensor *t);
LS_API const int64_t *ls_shape(const ls_tensor *t); /* ls_rank numbers */
LS_API int64_t ls_count(const ls_tensor *t);        /* elements */
LS_API size_t ls_size_in_bytes(const ls_tensor *t); /* 0 for LS_BYTES */

/* Size of one axis; negative axes count from the end. -1 and an error when
 * there is no such axis. */
LS_API int64_t ls_dim(const ls_tensor *t, int axis);

/* "f32[2,3]", in a buffer of this thread that the eighth later call reuses;
 * "NULL" for a NULL tensor. Always printable. */
LS_API const char *ls_describe(const ls_tensor *t);

/* Canonical name of the device the tensor is on. */
LS_API const char *ls_device_of(const ls_tensor *t);

/* ---- reading ----------------------------------------------------------- */

/* Copies all elements to `to`, which has room for exactly `bytes`. Reading wants a
 * dense tensor of numbers: see ls_densify (tape.h), and ls_string_at. */
LS_API ls_status ls_copy_out(const ls_tensor *t, void *to, size_t bytes);

/* Gives read access to the elements until ls_data_done or until the tensor goes.
 * NULL on failure. */
LS_API const void *ls_data(const ls_tensor *t);
LS_API void ls_data_done(const ls_tensor *t);

/* The value of a one-element tensor of any dtype but LS_BYTES (a bool is 0 or 1).
 * NaN, or 0, and an error when it is not one. */
LS_API float ls_to_float(const ls_tensor *t);
LS_API double ls_to_double(const ls_tensor *t);
LS_API int64_t ls_to_int(const ls_tensor *t);

/* Element `index` (in row-major order) of an LS_BYTES tensor. The memory lives
 * as long as the tensor and ends with a NUL that `length` does not count. */
LS_API ls_status ls_string_at(const ls_tensor *t, int64_t index, const void **data,
                              size_t *length);

/* ---- owning ------------------------------------------------------------ */

/* Opens a frame on this thread; frames nest. Returns its depth, which
 * ls_frame_close wants back, so that a forgotten close is noticed: closing an
 * outer frame closes those inside it too, and fails with LS_STATE. */
LS_API int ls_frame_open(void);
LS_API ls_status ls_frame_close(int depth);

/* A new handle in the frame around the innermost one (outside any frame: in the
 * thread's own, which lasts as long as the thread). */
LS_API ls_tensor *ls_hand_up(ls_tensor *t);

/* A new handle that no frame owns: yours until ls_drop. Drop takes NULL. */
LS_API ls_tensor *ls_keep(ls_tensor *t);
LS_API void ls_drop(ls_tensor *kept);

/* A new handle in this thread's innermost frame, for a kept tensor that came
 * from elsewhere. */
LS_API ls_tensor *ls_import(const ls_tensor *t);

/* Bytes of tensor memory of the whole process: in use now, and the most that
 * ever was. */
LS_API void ls_memory(size_t *now, size_t *peak);

/* LS_FRAME { ... }: a block with a frame of its own. A tensor used after its frame
 * is refused, as long as its memory was not needed again (hundreds of frames). */
#if defined(__cplusplus)
} /* extern "C" */
namespace ls {
struct frame {
    int depth = ls_frame_open();
    bool once = true;
    frame() = default;
    frame(const frame &) = delete;
    frame &operator=(const frame &) = delete;
    ~frame() { ls_frame_close(depth); }
};
}
extern "C" {
#define LS_FRAME                                                         \
    for (::ls::frame LS__UNIQUE(ls__frame_); LS__UNIQUE(ls__frame_).once; \
         LS__UNIQUE(ls__frame_).once = false)
#elif defined(__GNUC__)
static inline void ls__frame_leave(const int *depth)
{
    ls_frame_close(*depth);
}
#define LS_FRAME                                                         \
    for (int LS__UNIQUE(ls__depth_) __attribute__((cleanup(ls__frame_leave), unused)) = \
             ls_frame_open(),                                            \
             LS__UNIQUE(ls__once_) = 1;                                  \
         LS__UNIQUE(ls__once_); LS__UNIQUE(ls__once_) = 0)
#endif

LS_END_DECLS

#endif
