/*
 * The inside of safetensors files.
 *
 *     8 bytes      length of the header, little-endian
 *     header       JSON: {"__metadata__": {NOTES}, NAME: {"dtype", "shape", "data_offsets"}, ...}, and
 *                  spaces behind it
 *     data         the tensors, each from its first offset to its second, without gaps
 *
 * A file of ours begins with a note of two checksums (crc32c), of the bytes up to the data with the first
 * of them as zeros, and of the data. They are known by their place, by a blank that no program puts
 * there: who reads one of our files and writes its tensors and notes to another has not taken them
 * over, only a note of that name.
 */
#ifndef LS__TRAIN_SAFETENSORS_H
#define LS__TRAIN_SAFETENSORS_H

#include <jansson.h>
#include <lockstep/safetensors.h>

#include "data/npy.h"
#include "os/packed.h"
#include "tensor/spec.h"

/* What a header begins with, and how the two sums, 8 digits each, lie behind it: "H D". */
#define LS__SAFETENSORS_SUMS "lockstep.crc32c"
#define LS__SAFETENSORS_BEGIN "{\"__metadata__\": {\"" LS__SAFETENSORS_SUMS "\":\""
enum {
    LS__SAFETENSORS_SUMS_AT = sizeof LS__SAFETENSORS_BEGIN - 1,
    LS__SAFETENSORS_SUMS_LENGTH = 17
};

/* No header is longer: the format's own limit. */
#define LS__SAFETENSORS_MOST_HEADER ((uint64_t)100000000)

/* A dtype of the format, and the one it has here. */
typedef struct ls__safetensors_type {
    char name[8];
    ls__npy_type type;
} ls__safetensors_type;

/* NULL: Lockstep has none like it. */
const ls__safetensors_type *ls__safetensors_type_named(const char *name);
/* The one that is just this dtype; NULL for bytes. */
const ls__safetensors_type *ls__safetensors_type_of(ls_dtype dtype);

/* ---- headers (safetensors_header.c) ----- */

typedef struct ls__safetensors_entry {
    const char *name; /* of the JSON */
    const ls__safetensors_type *type;
    ls__spec spec;       /* as it will be here */
    uint64_t begin, end; /* offsets in the data */
} ls__safetensors_entry;

typedef struct ls__safetensors_header {
    json_t *json;
    json_t *notes; /* in it; NULL: none */
    int count;
    ls__safetensors_entry *entries; /* in the order of their data */
    bool summed;
    uint32_t header_sum, data_sum;
} ls__safetensors_header;

/* Reads `length` bytes of JSON, before `data` bytes of tensors; `text` is changed where its sum is.
 * `path` is for errors. Free it, also when it failed. LS_CORRUPT, LS_UNSUPPORTED. */
ls_status ls__safetensors_parse(const char *path, char *text, size_t length, uint64_t data,
                                ls__safetensors_header *out);
void ls__safetensors_header_free(ls__safetensors_header *h);

/* ---- files (safetensors_read.c) ----- */

typedef struct ls__safetensors {
    const char *path;
    ls__packed file; /* stands at the data */
    uint64_t data;   /* bytes of it */
    ls__safetensors_header header;
} ls__safetensors;

/* The header, all of it checked. Close it, also when it failed. */
ls_status ls__safetensors_open(const char *who, const char *path, ls__safetensors *out);
void ls__safetensors_close(ls__safetensors *f);

/* NULL: there is none. Lives as long as it is open. */
const char *ls__safetensors_note_of(const ls__safetensors *f, const char *key);

/* Once, one of them: all tensors, a dict of the innermost frame; or nothing but whether all is well. */
ls_value *ls__safetensors_tensors(ls__safetensors *f);
ls_status ls__safetensors_check(ls__safetensors *f);

#endif
