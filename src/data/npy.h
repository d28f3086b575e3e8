/*
 * Arrays as numpy stores them: bytes that say what follows, a dict of Python's as text, the elements.
 * A file has one (.npy), an archive many (.npz).
 */
#ifndef LS__DATA_NPY_H
#define LS__DATA_NPY_H

#include <stdbool.h>
#include <stdint.h>

#include "tensor/tensor.h"

/* What an element is in the file. */
typedef struct ls__npy_type {
    char kind;      /* 'b' bool, 'i' and 'u' integers, 'f' floats */
    uint8_t bytes;  /* in the file */
    ls_dtype dtype; /* of the tensor */
} ls__npy_type;

/* n elements of the file, in this machine's byte order, as the tensor has them; of a kind that is none
 * of those above as they are. Returns how many fitted. Both are aligned. */
size_t ls__npy_widen(const ls__npy_type *type, const void *from, size_t n, void *to);

typedef struct ls__npy_header {
    ls__npy_type type;
    bool swapped; /* the other byte order than this machine's */
    bool fortran; /* the first axis runs fastest */
    ls__spec spec;
    uint64_t bytes; /* of all elements, in the file */
} ls__npy_header;

/* Reads the dict. `name` is what errors call the array. LS_CORRUPT: it is none, or sizes that no array
 * can have; LS_UNSUPPORTED: elements or ranks that tensors do not have. */
ls_status ls__npy_parse(const char *name, const char *text, size_t length, ls__npy_header *out);

/* Where an array comes from: `bytes` in all, no more and no less. */
typedef struct ls__npy_input {
    const char *name;
    uint64_t bytes;
    ls_status (*read)(void *user, void *to, size_t bytes); /* all of them, or an error */
    void *user;
} ls__npy_input;

/* A tensor of the innermost frame. Sizes that do not match those of the input are LS_CORRUPT before any
 * memory is asked for. */
ls_tensor *ls__npy_read(const ls__npy_input *in);

/* As ls_read_npz; all arrays together may have `most` bytes when they are unpacked (0: the limit that
 * data.h tells). */
struct ls_value;
struct ls_value *ls__npz_read(const char *path, uint64_t most);

#endif
