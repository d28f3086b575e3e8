/*
 * Samples that are rows of arrays in memory: Fashion-MNIST, and .npz files with x_train, y_train,
 * x_test and y_test. Rows are shuffled as references and copied once, into their batch. Samples stay what
 * the file has: the replicas make of them what the model takes (session.c), each of its own.
 */
#include <lockstep/ops.h>
#include <string.h>

#include "data_source.h"

enum { X, Y, PARTS };

/* The arrays of one set, and what they are called. */
typedef struct rows {
    ls_tensor *of[PARTS];
    const char *called[PARTS];
} rows;

static ls_value *with_labels(ls_value *batch, void *user)
{
    const data_held *h = user;
    return ls_tensors(2, (ls_tensor *[]){ ls_item(batch, X),
                                          sample_numbers(&h->y, ls_item(batch, Y), false) });
}

/* All, up to where the shuffle's notes of them would take 300 MB. */
static int64_t shuffled_at_once(int64_t n)
{
    const int64_t most = (int64_t)1 << 20;
    return n < 1 ? 1 : n < most ? n : most;
}

static ls_dataset *batches(const data_request *r, data_held *h, const rows *a, bool shuffled)
{
    char spec[512];
    data_describe(h, ls_dtype_of(a->of[X]), spec, sizeof spec);
    ls_tensor *both[] = { sample_rows(&h->x, a->of[X]), sample_rows(&h->y, a->of[Y]) };
    ls_dataset *d = ls_slices(ls_tensors(PARTS, both));
    if (shuffled)
        d = ls_shuffle(d, shuffled_at_once(ls_dim(a->of[X], 0)), r->seed);
    return ls_map(ls_batch(d, r->global_batch), LS_MAP(.fn = with_labels, .user = h, .spec = spec));
}

/* ---- checking ------------------------------------------------------------------------------------ */

static int check_part(const cli *c, const char *name, const rows *a, int part, const sample *want,
                      const char *hint)
{
    const ls_tensor *t = a->of[part];
    const int rank = ls_rank(t);
    const ls_dtype dtype = ls_dtype_of(t);
    if (rank < 1 || dtype == LS_BYTES || !sample_fits(want, rank - 1, ls_shape(t) + 1))
        return cli_error(c, EXIT_USAGE, LS_SHAPE, hint, "'%s': %s is %s, but the model takes %s %s",
                         name, a->called[part], ls_describe(t), part == X ? "samples" : "labels",
                         want->text);
    if (part == Y && ls_dtype_is_integer(want->dtype) && ls_dtype_is_float(dtype))
        return cli_error(c, EXIT_USAGE, LS_SHAPE, "save them as integers",
                         "'%s': %s is %s, but the model takes labels %s", name, a->called[part],
                         ls_describe(t), want->text);
    return EXIT_DONE;
}

static int check_rows(const cli *c, const char *name, const rows *a, const data_held *h,
                      const char *hint)
{
    int ended = check_part(c, name, a, X, &h->x, hint);
    if (ended == EXIT_DONE)
        ended = check_part(c, name, a, Y, &h->y, hint);
    if (ended == EXIT_DONE && ls_dim(a->of[X], 0) != ls_dim(a->of[Y], 0))
        return cli_error(c, EXIT_USAGE, LS_SHAPE, "a label belongs to each sample",
                         "'%s': %s has %lld samples, %s %lld labels", name, a->called[X],
                         (long long)ls_dim(a->of[X], 0), a->called[Y],
                         (long long)ls_dim(a->of[Y], 0));
    return ended;
}

static int open_rows(const cli *c, const data_request *r, const rows *train, const rows *test,
                     data_sets *out)
{
    const char *hint =
        r->spec ? "the first axis counts the samples" : "--data names data of another kind";
    int ended = check_rows(c, out->name, train, out->held, hint);
    if (ended == EXIT_DONE)
        ended = check_rows(c, out->name, test, out->held, hint);
    if (ended != EXIT_DONE)
        return ended;
    out->train_samples = ls_dim(train->of[X], 0);
    out->test_samples = ls_dim(test->of[X], 0);
    out->train = batches(r, out->held, train, true);
    out->test = batches(r, out->held, test, false);
    if (!out->train || !out->test)
        return data_failed(c);
    return data_enough(c, r, out->name, out->train_samples, out->test_samples);
}

/* ---- sources ------------------------------------------------------------------------------------- */

int data_open_fashion(const cli *c, const data_request *r, data_sets *out)
{
    ls_value *train = ls_read_fashion_mnist("train"), *test = ls_read_fashion_mnist("test");
    if (!train || !test)
        return data_failed(c);
    const rows a = { { ls_item(train, X), ls_item(train, Y) },
                     { "the array of pictures", "the array of labels" } };
    const rows b = { { ls_item(test, X), ls_item(test, Y) },
                     { "the array of test pictures", "the array of test labels" } };
    return open_rows(c, r, &a, &b, out);
}

/* "'a', 'b'": what a file has. */
static const char *names_in(const ls_value *file, char *out, size_t room)
{
    size_t at = 0;
    out[0] = '\0';
    for (int i = 0; i < ls_length(file) && at < room; i++)
        at += (size_t)snprintf(out + at, room - at, "%s%s", i ? ", " : "", ls_key(file, i));
    return out[0] ? out : "nothing";
}

static ls_tensor *array_in(const ls_value *file, const char *name)
{
    for (int i = 0; i < ls_length(file); i++)
        if (strcmp(ls_key(file, i), name) == 0)
            return ls_item(file, i);
    return NULL;
}

int data_open_arrays(const cli *c, const data_request *r, data_sets *out)
{
    ls_value *file = ls_read_npz(out->name);
    if (!file)
        return data_failed(c);
    rows a = { .called = { "x_train", "y_train" } }, b = { .called = { "x_test", "y_test" } };
    for (int i = 0; i < 2 * PARTS; i++) {
        rows *its = i < PARTS ? &a : &b;
        const char *name = its->called[i % PARTS];
        char names[256];
        its->of[i % PARTS] = array_in(file, name);
        if (!its->of[i % PARTS])
            return cli_error(c, EXIT_USAGE, LS_NOT_FOUND,
                             "numpy.savez(FILE, x_train=.., y_train=.., x_test=.., y_test=..) "
                             "writes what is wanted",
                             "'%s' has no %s, only %s", out->name, name,
                             names_in(file, names, sizeof names));
    }
    return open_rows(c, r, &a, &b, out);
}
