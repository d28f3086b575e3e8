/*
 * TFRecord files of tf.train.Example with features `image` and `label`. Records are shuffled as they are
 * read, and parsed in whole batches.
 *
 * Those for tests are in files of their own, whose names have "test" or "val" in them, or they are the
 * last 5 % of all.
 */
#include <lockstep/ops.h>
#include <lockstep/records.h>
#include <stdlib.h>
#include <string.h>

#include "data_source.h"
#include "record_files.h"

enum { HELD_OUT = 20 }; /* one record in so many */

#define MOST_SHUFFLED ((int64_t)1 << 28) /* bytes in a shuffle's buffer */

/* ---- datasets ------------------------------------------------------------------------------------- */

static ls_feature label_feature(const sample *y)
{
    ls_feature f = { .key = "label", .dtype = ls_dtype_is_float(y->dtype) ? LS_F32 : LS_I64 };
    f.rank = y->rank;
    memcpy(f.dims, y->dims, sizeof f.dims);
    return f;
}

static ls_value *parse(ls_value *batch, void *user)
{
    const data_held *h = user;
    const ls_feature features[] = { record_image_feature(&h->x, h->image), label_feature(&h->y) };
    ls_value *parsed = ls_parse_examples(ls_leaf_tensor(batch), 2, features);
    ls_tensor *labels = ls_leaf_tensor(ls_get(parsed, "label"));
    return ls_tensors(2, (ls_tensor *[]){ record_images(&h->x, h->image, parsed),
                                          sample_numbers(&h->y, labels, false) });
}

static ls_dataset *batches(const data_request *r, data_held *h, ls_dataset *records)
{
    char spec[512];
    data_describe(h, h->x.dtype, spec, sizeof spec);
    return ls_map(ls_batch(records, r->global_batch),
                  LS_MAP(.fn = parse, .user = h, .spec = spec,
                         .parallel = h->image == IMAGE_ENCODED ? -1 : 1));
}

/* Of records of this many bytes as many as have room; at least some. */
static ls_dataset *shuffled(ls_dataset *records, int64_t n, const record_file *sum, uint64_t seed)
{
    const int64_t mean = sum->records > 0 ? sum->bytes / sum->records + 1 : 1;
    int64_t most = MOST_SHUFFLED / mean;
    most = most < 16 ? 16 : most;
    return ls_shuffle(records, n < 1 ? 1 : n < most ? n : most, seed);
}

/* ---- training and testing ------------------------------------------------------------------------- */

static bool is_for_tests(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return strcasestr(name, "test") || strcasestr(name, "val");
}

/* Files for tests behind the others, in their order; how many others there are. */
static int part(record_files *files)
{
    record_file *test = calloc((size_t)files->count, sizeof *test);
    int n = 0, m = 0;
    for (int i = 0; i < files->count && test; i++)
        if (is_for_tests(files->at[i].name))
            test[m++] = files->at[i];
        else
            files->at[n++] = files->at[i];
    if (m > 0)
        memcpy(files->at + n, test, (size_t)m * sizeof *test);
    free(test);
    return n;
}

static void own_tests(const data_request *r, const record_files *files, int n, data_sets *out)
{
    const record_file sum = record_files_sum(files, 0, n);
    out->train_samples = sum.records;
    out->test_samples = record_files_sum(files, n, files->count).records;
    ls_dataset *train = record_files_read(files, 0, n);
    out->train = batches(r, out->held, shuffled(train, sum.records, &sum, r->seed));
    out->test = batches(r, out->held, record_files_read(files, n, files->count));
}

/* The last ones: those of the last files, without some at the beginning. */
static void hold_out(const data_request *r, const record_files *files, data_sets *out)
{
    const record_file sum = record_files_sum(files, 0, files->count);
    out->test_samples = (sum.records + HELD_OUT - 1) / HELD_OUT;
    out->train_samples = sum.records - out->test_samples;
    int first = 0;
    int64_t before = 0;
    while (first + 1 < files->count && before + files->at[first].records <= out->train_samples)
        before += files->at[first++].records;
    ls_dataset *train = ls_take(record_files_read(files, 0, files->count), out->train_samples);
    ls_dataset *test =
        ls_skip(record_files_read(files, first, files->count), out->train_samples - before);
    out->train = batches(r, out->held, shuffled(train, out->train_samples, &sum, r->seed));
    out->test = batches(r, out->held, test);
}

/* What is for tests is worth a line. */
static void tell(const cli *c, const record_files *files, int n, const data_sets *sets)
{
    const int tests = files->count - n;
    if (n > 0 && tests > 0)
        fprintf(stderr,
                "%s: %lld records of %d file%s to train with, %lld of %d to test with ('%s'%s)\n",
                c->name, (long long)sets->train_samples, n, n == 1 ? "" : "s",
                (long long)sets->test_samples, tests, files->at[n].name, tests > 1 ? ", ..." : "");
    else
        fprintf(stderr,
                "%s: no file of '%s' is for tests: the last %lld of %lld records are held out\n",
                c->name, sets->name, (long long)sets->test_samples,
                (long long)(sets->train_samples + sets->test_samples));
}

static int open_files(const cli *c, const data_request *r, record_files *files, data_sets *out)
{
    data_held *h = out->held;
    const int n = part(files);
    const ls_feature label = label_feature(&h->y);
    int status = record_image_kind(c, &h->x, &label, files, &h->image);
    if (status != EXIT_DONE)
        return status;
    if (n > 0 && n < files->count)
        own_tests(r, files, n, out);
    else
        hold_out(r, files, out);
    if (!out->train || !out->test)
        return data_failed(c);
    status = data_enough(c, r, out->name, out->train_samples, out->test_samples);
    if (status == EXIT_DONE)
        tell(c, files, n, out);
    return status;
}

int data_open_records(const cli *c, const data_request *r, data_sets *out)
{
    record_files files = { 0 };
    int status = record_files_find(
        c, out->name, "--data takes fashion-mnist, FILE.npz or TFRecord files", &files);
    if (status == EXIT_DONE)
        status = open_files(c, r, &files, out);
    record_files_free(&files);
    return status;
}
