/*
 * What the tests of datasets share: strategies with input pipelines, and what a dataset gives as text.
 *
 * An element is written "[0 1 2]": the numbers of its leaves, "; " between leaves; strings as they are.
 * A per-replica one is that for each replica, one behind another: "[0 1][2 3]", "[8][]".
 */
#ifndef LS__TESTS_DATA_SUPPORT_H
#define LS__TESTS_DATA_SUPPORT_H

#include <lockstep.h>
#include <lockstep/input.h>

#include "tensor/test_support.h"

/* V replicas on two CPU devices (one: one), P input pipelines. The log is silent from then on. */
ls_strategy *pipelines_of(int replicas, int pipelines);

/* The element as text, in a buffer of 8. `replicas` 0: a plain one. */
const char *written(const ls_value *element, int replicas);

/* The dataset, gone through, gives exactly these, and then its end. */
#define GIVES(d, replicas, ...)                                                                    \
    gives_all(__FILE__, __LINE__, d, replicas, (const char *[]){ __VA_ARGS__, NULL })
void gives_all(const char *file, int line, ls_dataset *d, int replicas, const char *const *want);

/* The same of an iterator, from where it stands. */
#define GOES_ON(it, replicas, ...)                                                                 \
    goes_on(__FILE__, __LINE__, it, replicas, (const char *[]){ __VA_ARGS__, NULL })
void goes_on(const char *file, int line, ls_iterator *it, int replicas, const char *const *want);

/* The last call failed with this code, and text or hint have these words in them. Takes the
 * error. */
#define REFUSED(code, ...)                                                                         \
    refused_with(__FILE__, __LINE__, code, (const char *[]){ __VA_ARGS__, NULL })
void refused_with(const char *file, int line, ls_status want, const char *const *words);

/* The numbers of a tensor of integers, at most `room`; returns how many it has. */
int numbers_of(ls_tensor *t, int64_t *out, int room);

ls_value *numbers_leaf(int64_t count, const int64_t *numbers);

/* A directory for a group of tests, and a TFRecord file in it ("name"), whose records are the texts
 * "first" to "first + count - 1". */
int make_directory(void **state);
int remove_directory(void **state);
const char *in_directory(const char *name); /* in a buffer of 8 */
void write_records(const char *name, int first, int count);

/* A text record as a number: for ls_map. */
ls_value *text_to_number(ls_value *element, void *user);

#endif
