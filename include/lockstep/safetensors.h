/*
 * safetensors.h: tensors by name in one file, which other programs read too.
 *
 * How to use it
 *
 *     ls_safetensors_write("w.safetensors", ls_variables_save(n, variables), 1,
 *                          (const ls_note[]){ { "model", "cnn" } });
 *     ls_value *read = ls_safetensors_read("w.safetensors");    // a dict by name
 *     const char *model = ls_safetensors_note("w.safetensors", "model");
 *
 * The format of Hugging Face's safetensors package. A file has its name when it is complete and on
 * the disk; what was there before is whole until then. Files of ours carry a checksum over all
 * their bytes, so that damage is noticed; others' need none.
 */
#ifndef LOCKSTEP_SAFETENSORS_H
#define LOCKSTEP_SAFETENSORS_H

#include <lockstep/value.h>

LS_BEGIN_DECLS

/* A text beside the tensors: UTF-8. */
typedef struct ls_note {
    const char *key, *text;
} ls_note;

/* `tensors`: a flat dict of dense tensors (not bytes), which are not copied. Keys are UTF-8; that
 * of a tensor is not "__metadata__", that of a note not "lockstep.crc32c". LS_IO and LS_NOT_FOUND
 * (of the directory): the system's reason, and `path` is as before. */
LS_API ls_status ls_safetensors_write(const char *path, ls_value *tensors, int n_notes,
                                      const ls_note *notes);

/* All tensors, in the innermost frame: dtypes that Lockstep has not become the next larger one that it
 * has (f16 f32, i8 and i16 i32, u16 i32, u32 i64; u64 i64, LS_SHAPE if one does not fit).
 * LS_CORRUPT for a damaged file, with what is wrong; LS_UNSUPPORTED for other dtypes and for more than
 * LS_MAX_RANK dimensions. Data asks for no more memory than four times its size in the file; headers, of
 * which one of more than 100 MB is refused, for what their JSON takes. */
LS_API ls_value *ls_safetensors_read(const char *path);

/* A note of a file, in the innermost frame; NULL without an error when there is none. Reads the header
 * alone, so that damage elsewhere is not noticed. */
LS_API const char *ls_safetensors_note(const char *path, const char *key);

LS_END_DECLS

#endif
