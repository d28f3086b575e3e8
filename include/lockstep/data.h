/*
 * data.h: datasets: where elements come from, and what is done with them on the way.
 *
 * How to use it
 *
 * 1. A dataset is a source and the stages behind it. It says what is to be done; nothing is read yet.
 *
 *        ls_dataset *d = ls_fashion_mnist("train");   // images u8[28,28,1], labels u8[]
 *        d = ls_shuffle(d, 10000, 1);                 // a buffer of 10,000, seed 1
 *        d = ls_batch(d, 64);
 *        d = ls_map(d, LS_MAP(.fn = to_float, .parallel = 2));
 *        d = ls_prefetch(d, 2);
 *
 * 2. Go through it: a frame a turn, closed on break and return, too.
 *
 *        LS_FOR_EACH(batch, d)
 *            train(ls_item(batch, 0), ls_item(batch, 1));
 *        if (ls_error())                              // not at the end of the data, which is none
 *            ...
 *
 *    or by hand: ls_iterate, ls_next, ls_iterator_free.
 *
 * 3. Stop and go on elsewhere: ls_position gives a small tensor; ls_seek, on an iterator of the same
 *    dataset in another process, continues with the exact next element.
 *
 * A dataset belongs to the innermost frame, like a tensor, and never changes; NULL in gives NULL out.
 * What iterators need of it they hold. The order of elements and every bit in them depend on the
 * dataset alone: never on threads, on how many there are, or on time.
 *
 * An element is a value (value.h); all elements of a dataset have one structure. Callbacks may be
 * called on other threads, several at once when .parallel is more than 1, each in a frame of
 * its own; what they draw at random depends on the dataset, the iteration and the element's number
 * alone: another crop in every epoch, the same ones in every run.
 */
#ifndef LOCKSTEP_DATA_H
#define LOCKSTEP_DATA_H

#include <lockstep/value.h>

LS_BEGIN_DECLS

typedef struct ls_dataset ls_dataset;
typedef struct ls_iterator ls_iterator;

/* A handle that no frame owns: yours until drop, which takes NULL. */
LS_API ls_dataset *ls_dataset_keep(ls_dataset *d);
LS_API void ls_dataset_drop(ls_dataset *kept);

/* ---- sources ------------------------------------------------------------------------------ */

/* One element: the value. */
LS_API ls_dataset *ls_once(ls_value *value);

/* The rows of all leaves side by side (axis 0, of one length): arrays in memory, which are not
 * copied. */
LS_API ls_dataset *ls_slices(ls_value *value);

/* i64[]: begin, begin + step, ... up to end, which is not reached. step is not 0. */
LS_API ls_dataset *ls_range(int64_t begin, int64_t end, int64_t step);

/* What a program makes. `open` begins an iteration, the number of which it is given (NULL: state is
 * `user`), `close` ends it (with or without `open`); `next` gives elements, LS_END at the end, and
 * is not called again then. With `save` and `load` an iterator can be saved: `save` is called after
 * every element and every failure, `load` once, after `open`. Without, ls_position says
 * LS_UNSUPPORTED. Calls of one iteration come one after another, maybe on different threads. */
typedef struct ls_generator {
    size_t size;
    void *user;
    ls_status (*next)(void *state, ls_value **out);
    void *(*open)(void *user, int64_t iteration); /* NULL on failure */
    void (*close)(void *state);
    ls_tensor *(*save)(void *state);              /* a u8 tensor of any length */
    ls_status (*load)(void *state, const ls_tensor *saved);
    const char *spec; /* of elements, as ls_dataset_text gives it: "f32[28,28], i64[]"; NULL: not known */
} ls_generator;
LS_API void ls_generator_init(ls_generator *options);
LS_API ls_dataset *ls_generate(const ls_generator *options);
#ifndef __cplusplus
#define LS_GENERATOR(...) (&(ls_generator){ .size = sizeof(ls_generator), __VA_ARGS__ })
#endif

/* ---- files: datasets of names (bytes[]), and what is in the files --------------------------- */

/* Names of files, each pattern's in alphabetic order: "data/train-*.tfrecord". Looked up here and
 * now. LS_NOT_FOUND for a pattern, or a name, that no file has. */
LS_API ls_dataset *ls_files(int count, const char *const *patterns);
#ifndef __cplusplus
#define LS_FILES(...)                                                                              \
    ls_files((int)(sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *)),                      \
             (const char *[]){ __VA_ARGS__ })
#endif

typedef enum ls_compression { LS_PLAIN = 0, LS_GZIP, LS_ZLIB } ls_compression;

/* Zero means default. */
typedef struct ls_records_options {
    size_t size;
    ls_compression compression;
    bool skip_corrupt;    /* leave damaged records out, and count them (ls_iterator_skipped); what
                           * follows a damaged length in a file cannot be found any more */
    int64_t record_bytes; /* of ls_fixed_records: must be given */
    int64_t header_bytes, footer_bytes; /* of ls_fixed_records: left out in every file */
} ls_records_options;
LS_API void ls_records_init(ls_records_options *options);
#ifndef __cplusplus
#define LS_RECORDS(...) (&(ls_records_options){ .size = sizeof(ls_records_options), __VA_ARGS__ })
#endif

/* bytes[]: the records of TFRecord files, checked against their checksums; lines of text without
 * their ends (\n or \r\n); records of a fixed length. Options NULL: all defaults. */
LS_API ls_dataset *ls_tfrecords(ls_dataset *files, const ls_records_options *options);
LS_API ls_dataset *ls_text_lines(ls_dataset *files, const ls_records_options *options);
LS_API ls_dataset *ls_fixed_records(ls_dataset *files, const ls_records_options *options);

/* Whole files as tensors of the innermost frame. idx: the format of MNIST, plain or gzip: u8, i32,
 * f32 or f64 (i8 and i16 become i32). npy: numpy's bools, integers and floats in C and Fortran
 * order and either byte order (i8, i16 and u16 become i32, u32 and u64 i64, f16 f32; LS_SHAPE for a
 * u64 that does not fit, LS_UNSUPPORTED for other elements). npz: a dict by name; all its arrays
 * together unpack to 1 GiB or 100 times the archive at most, whichever is more, else
 * LS_UNSUPPORTED. */
LS_API ls_tensor *ls_read_idx(const char *path);
LS_API ls_tensor *ls_read_npy(const char *path);
LS_API ls_value *ls_read_npz(const char *path);

/* Fashion-MNIST as Debian's dataset-fashion-mnist installs it, "train" (60,000) or "test"
 * (10,000): a dataset of lists of image u8[28,28,1] and label u8[], and all of it as two tensors
 * u8[n,28,28], u8[n]. The directory is $LOCKSTEP_FASHION_MNIST, else the package's. */
LS_API ls_dataset *ls_fashion_mnist(const char *which);
LS_API ls_value *ls_read_fashion_mnist(const char *which);

/* ---- stages ------------------------------------------------------------------------------- */

typedef ls_value *(*ls_element_fn)(ls_value *element, void *user); /* NULL: failed, see ls_error */

/* With .parallel more than 1 it runs ahead, by up to twice as many elements: threads of its own,
 * one less than that, call fn, and so does the thread that pulls when it would have to wait. */
typedef struct ls_map_options {
    size_t size;
    ls_element_fn fn;
    void *user;
    int parallel;     /* calls at once, in order all the same; 0: 1; -1: one a core */
    const char *spec; /* of what fn returns, if known: "f32[?,28,28,1], i32[?]" */
} ls_map_options;
LS_API void ls_map_init(ls_map_options *options);
LS_API ls_dataset *ls_map(ls_dataset *d, const ls_map_options *options);
#ifndef __cplusplus
#define LS_MAP(...) (&(ls_map_options){ .size = sizeof(ls_map_options), __VA_ARGS__ })
#endif

/* Elements for which fn returns true. */
typedef bool (*ls_keep_fn)(ls_value *element, void *user);
LS_API ls_dataset *ls_filter(ls_dataset *d, ls_keep_fn fn, void *user);

/* n elements as one, stacked along a new axis 0; their shapes must agree. The last may have fewer:
 * ls_batch_full leaves it out then. */
LS_API ls_dataset *ls_batch(ls_dataset *d, int64_t n);
LS_API ls_dataset *ls_batch_full(ls_dataset *d, int64_t n);

/* The same for elements that differ in shape: each is filled up to the largest of its batch, or to
 * the shapes given as a spec ("f32[100], i64[]"; ? for the largest). Padding is 0, or `value`. */
typedef struct ls_padded_options {
    size_t size;
    bool full;          /* leave an incomplete last batch out */
    const char *shapes;
    double value;
} ls_padded_options;
LS_API void ls_padded_init(ls_padded_options *options);
LS_API ls_dataset *ls_padded_batch(ls_dataset *d, int64_t n, const ls_padded_options *options);
#ifndef __cplusplus
#define LS_PADDED(...) (&(ls_padded_options){ .size = sizeof(ls_padded_options), __VA_ARGS__ })
#endif

/* The rows of each element as elements. */
LS_API ls_dataset *ls_unbatch(ls_dataset *d);

/* Draws from a buffer of `buffer` elements, which is kept full: a buffer of all elements gives
 * every order the same chance. Another order in every iteration (repeat, ls_iterate, ls_rewind),
 * the same ones for the same seed; ls_shuffle_once gives the same order in every iteration. */
LS_API ls_dataset *ls_shuffle(ls_dataset *d, int64_t buffer, uint64_t seed);
LS_API ls_dataset *ls_shuffle_once(ls_dataset *d, int64_t buffer, uint64_t seed);

/* -1: for ever, or until an iteration gives no element. */
LS_API ls_dataset *ls_repeat(ls_dataset *d, int64_t times);
LS_API ls_dataset *ls_take(ls_dataset *d, int64_t n);       /* -1: all */
LS_API ls_dataset *ls_skip(ls_dataset *d, int64_t n);       /* -1: all */

/* Elements index, index + shards, index + 2 shards... Where there are some, but fewer than shards,
 * those shards that have one say LS_INVALID at the end. */
LS_API ls_dataset *ls_shard(ls_dataset *d, int64_t shards, int64_t index);

/* Remembers elements in the first iteration that goes through to the end without a failure, and
 * gives them in those that follow: in memory (file NULL), or in a file, which other processes find,
 * too. What is before it sees iteration 0 only. A file has its name when it is complete. One that
 * is damaged is LS_CORRUPT, one that is another dataset's LS_INVALID (what callbacks do is not
 * known): neither is written over. Pipelines that share files out (ls_distribute, FILE) have a
 * cache file each: to the name come "-" and 16 digits, which stand for what the pipeline reads. */
LS_API ls_dataset *ls_cache(ls_dataset *d, const char *file);

/* Up to n elements are made ahead, on a thread of its own. 0: none, and no thread, as in tf.data. */
LS_API ls_dataset *ls_prefetch(ls_dataset *d, int64_t n);

/* Elements side by side: a list of one of each, until the first ends. */
LS_API ls_dataset *ls_zip(int count, ls_dataset *const *datasets);

/* a, then b, of one structure. */
LS_API ls_dataset *ls_concatenate(ls_dataset *a, ls_dataset *b);

/* Lists of a number, i64[], from `start` on, and the element. */
LS_API ls_dataset *ls_enumerate(ls_dataset *d, int64_t start);

/* fn makes a dataset of each element: all of one, then all of the next; or of `cycle` of them by
 * turns, `block` elements each, in tf.data's order. What is in them is read ahead by up to
 * `parallel` threads, which changes neither order nor positions. Going to a position calls fn again
 * for those that were open there. */
typedef ls_dataset *(*ls_dataset_fn)(ls_value *element, void *user);
typedef struct ls_interleave_options {
    size_t size;
    ls_dataset_fn fn;
    void *user;
    int cycle;    /* 0: 16 */
    int64_t block; /* 0: 1 */
    int parallel; /* 0: none; -1: one a core */
} ls_interleave_options;
LS_API void ls_interleave_init(ls_interleave_options *options);
LS_API ls_dataset *ls_flat_map(ls_dataset *d, ls_dataset_fn fn, void *user);
LS_API ls_dataset *ls_interleave(ls_dataset *d, const ls_interleave_options *options);
#ifndef __cplusplus
#define LS_INTERLEAVE(...)                                                                         \
    (&(ls_interleave_options){ .size = sizeof(ls_interleave_options), __VA_ARGS__ })
#endif

/* ---- what is known before the first element ------------------------------------------------- */

#define LS_INFINITE (-1)
#define LS_UNKNOWN (-2)

/* How many elements: a number, LS_INFINITE or LS_UNKNOWN. */
LS_API int64_t ls_cardinality(const ls_dataset *d);

/* "u8[28,28,1], u8[]": a list; "{image: u8[?,28,28], label: i64[?]}": a dict; ? for a size, or a
 * whole leaf, that is not known; "?" when nothing is. Lives as long as the dataset. */
LS_API const char *ls_dataset_text(const ls_dataset *d);

/* ---- going through ---------------------------------------------------------------------------- */

/* Begins an iteration; the first of a dataset has number 0, each further one the next. Yours until
 * ls_iterator_free, which takes NULL and waits for its threads: for the callbacks that they are in,
 * not for elements, so that a filter that nothing passes any more does not hold it up. One thread
 * uses it at a time. */
LS_API ls_iterator *ls_iterate(ls_dataset *d);
LS_API void ls_iterator_free(ls_iterator *it);

/* The next element, in the innermost frame. LS_END at the end (no error is recorded; again and
 * again). After a failure that is not the end of everything (a damaged record, a callback that
 * failed) the next call goes on behind it, and no other data is lost: a batch keeps the rows it
 * has, and is filled up with those behind the one that failed. Stages that count (ls_take, ls_skip,
 * ls_shard, ls_enumerate) count an element that failed; a batch a row of which failed is still to
 * come. */
LS_API ls_status ls_next(ls_iterator *it, ls_value **out);

/* The same for ls_run_next (strategy.h): ls_run_next(s, step, user, ls_next_of, it). */
LS_API ls_status ls_next_of(void *iterator, ls_value **out);

/* From the beginning, in a new iteration. */
LS_API ls_status ls_rewind(ls_iterator *it);

/* Where it stands, after a failure behind it: u8[n] in the innermost frame, small. Elements that
 * were made ahead are made again; one that is being made, where a shuffle or a generator is in it, is
 * waited for. Going on from there costs what a shuffle has in its buffer, not what came before (but
 * compressed files are read from their beginning). LS_UNSUPPORTED: a generator that cannot.
 * ls_seek: LS_CORRUPT for bytes that are none, LS_INVALID for those of another dataset. Iterations
 * that are begun behind it are those that would have followed there: an epoch later the order is
 * the one of a run that was never stopped. */
LS_API ls_tensor *ls_position(ls_iterator *it);
LS_API ls_status ls_seek(ls_iterator *it, const ls_tensor *position);

LS_API int64_t ls_iterator_skipped(const ls_iterator *it); /* damaged records left out so far */
LS_API size_t ls_iterator_bytes(const ls_iterator *it);    /* that its stages hold in buffers now */

/* LS_FOR_EACH(element, d) { ... }: opens an iterator; then a frame a turn, in which `element` is
 * the next value. A failure ends the loop and is pending. break and continue do what they do in a
 * for. */
typedef struct ls_each {
    ls_iterator *iterator;
    ls_value *element;
    int depth;  /* of the turn's frame; 0: none is open */
    bool going; /* the turn came to its end */
} ls_each;
LS_API void ls_each_open(ls_each *each, ls_dataset *d);
LS_API bool ls_each_next(ls_each *each);
LS_API void ls_each_close(ls_each *each);
#if defined(__cplusplus)
} /* extern "C" */
namespace ls {
struct each : ls_each {
    explicit each(ls_dataset *d) { ls_each_open(this, d); }
    each(const each &) = delete;
    each &operator=(const each &) = delete;
    ~each() { ls_each_close(this); }
};
}
extern "C" {
#define LS__EACH_NULL nullptr
#define LS__EACH(d) ::ls::each LS__UNIQUE(ls__each_)(d)
#elif defined(__GNUC__)
static inline ls_each ls__each_make(ls_dataset *d)
{
    ls_each each;
    ls_each_open(&each, d);
    return each;
}
#define LS__EACH_NULL NULL
#define LS__EACH(d)                                                                                \
    ls_each LS__UNIQUE(ls__each_) __attribute__((cleanup(ls_each_close))) = ls__each_make(d)
#endif
#define LS_FOR_EACH(name, d)                                                                       \
    for (LS__EACH(d); ls_each_next(&LS__UNIQUE(ls__each_));)                                       \
        for (ls_value *name = LS__UNIQUE(ls__each_).element; name;                                 \
             name = LS__EACH_NULL, LS__UNIQUE(ls__each_).going = true)

LS_END_DECLS

#endif
