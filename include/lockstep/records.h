/*
 * records.h: writing TFRecord files, and what is in records: tf.train.Example, raw numbers.
 *
 * How to use it
 *
 * Write:
 *
 *     ls_record_writer *w = ls_record_writer_open("train.tfrecord", LS_PLAIN);
 *     ls_record_write(w, bytes, length);             // once a record
 *     ls_record_writer_close(w);                     // the file is whole when this returns LS_OK
 *
 * Read: features of a batch of serialised examples, in one call.
 *
 *     static const ls_feature features[] = {
 *         { .key = "image", .dtype = LS_BYTES },     // bytes[n]
 *         { .key = "label", .dtype = LS_I64 },       // i64[n]
 *         { .key = "box", .dtype = LS_F32, .rank = 1, .dims = { 4 } } };  // f32[n,4]
 *
 *     static ls_value *parse(ls_value *batch, void *user)
 *     {
 *         ls_value *e = ls_parse_examples(ls_leaf_tensor(batch), 3, features);
 *         ls_tensor *x = ls_decode_raw(ls_leaf_tensor(ls_get(e, "image")), LS_U8, LS_DIMS(28, 28, 1));
 *         ...
 *
 *     d = ls_map(ls_batch(ls_tfrecords(LS_FILES("train-*"), NULL), 64), LS_MAP(.fn = parse));
 *
 * What is read is never trusted: lengths that lie, wrong types and truncated bytes are LS_CORRUPT or
 * LS_SHAPE, and the text names the example and the feature.
 */
#ifndef LOCKSTEP_RECORDS_H
#define LOCKSTEP_RECORDS_H

#include <lockstep/data.h>

LS_BEGIN_DECLS

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct ls_record_writer ls_record_writer;

/* Writes to `path` with ".part" behind it, and gives the file its name when it is closed. */
LS_API ls_record_writer *ls_record_writer_open(const char *path, ls_compression compression);
LS_API ls_status ls_record_write(ls_record_writer *w, const void *data, size_t bytes);

/* Frees it, whatever it returns. A file that could not be written is not there afterwards. Takes
 * NULL. ls_record_writer_discard leaves no file. */
LS_API ls_status ls_record_writer_close(ls_record_writer *w);
LS_API void ls_record_writer_discard(ls_record_writer *w);

/* A serialised tf.train.Example, bytes[], of a dict: i32, i64, u8 and bool leaves become int64 lists,
 * f32, f64 and bf16 float lists, bytes bytes lists, each in row-major order. */
LS_API ls_tensor *ls_make_example(const ls_value *features);

/* ---- tf.train.Example ------------------------------------------------------------------------- */

/* A feature: f32, i64 or bytes, as TensorFlow's FixedLenFeature and VarLenFeature. */
typedef struct ls_feature {
    const char *key;
    ls_dtype dtype;
    int rank; /* of one example's: the shape that its values have... */
    int64_t dims[LS_MAX_RANK];
    bool variable;     /* ...or any number of values: a dict of "values" [all], behind one another,
                        * and "counts" i64[n] */
    bool has_missing;  /* what examples without it get, else they are LS_NOT_FOUND... */
    double missing;    /* ...of numbers; bytes: nothing */
} ls_feature;

/* `examples`: bytes[n], or bytes[] for one. A dict by key of tensors with n in front (one example:
 * without), in the innermost frame. LS_NOT_FOUND, LS_SHAPE (another kind of list, another number of
 * values; an empty list is one of 0 values) and LS_CORRUPT name the example and the feature. */
LS_API ls_value *ls_parse_examples(ls_tensor *examples, int count, const ls_feature *features);

/* The numbers that strings are made of, as they lie in memory (little-endian; big_endian turns
 * them): bytes[...] of equal lengths to dtype[..., dims]; rank 0: one number each. dims -1, once:
 * what the length gives. A byte that is not 0 is a true bool. LS_SHAPE names the first string that
 * does not fit. */
LS_API ls_tensor *ls_decode_raw(ls_tensor *strings, ls_dtype dtype, int rank, const int64_t *dims);
LS_API ls_tensor *ls_decode_raw_big_endian(ls_tensor *strings, ls_dtype dtype, int rank,
                                           const int64_t *dims);

LS_END_DECLS

#endif
