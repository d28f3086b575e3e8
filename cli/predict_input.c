/*
 * A file of any kind as batches of x. What a file is, is told by its first bytes; how its
 * numbers become the model's is sample.c's and record_images.c's business, as in training.
 */
#include "predict_input.h"

#include <errno.h>
#include <fcntl.h>
#include <lockstep/ops.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data_source.h"

typedef struct predict_held {
    sample x;
    record_image image;
} predict_held;

/* ---- arrays --------------------------------------------------------------------------------------- */

static ls_value *to_numbers(ls_value *batch, void *user)
{
    const predict_held *h = user;
    return ls_leaf(sample_numbers(&h->x, ls_leaf_tensor(batch), true));
}

/* Rows that are samples, or one sample alone. */
static int open_array(const cli *c, const char *file, const char *name, ls_tensor *t, int64_t batch,
                      predict_input *out)
{
    predict_held *h = out->held;
    const int rank = ls_rank(t);
    const bool numbers = ls_dtype_of(t) != LS_BYTES;
    const bool rows = numbers && rank > 0 && sample_fits(&h->x, rank - 1, ls_shape(t) + 1);
    if (!rows && !(numbers && sample_fits(&h->x, rank, ls_shape(t))))
        return cli_error(c, EXIT_USAGE, LS_SHAPE, "the first axis counts the samples",
                         "'%s'%s%s is %s, but the model takes samples %s", file,
                         name[0] ? ": " : "", name, ls_describe(t), h->x.text);
    t = sample_rows(&h->x, rows ? t : ls_expand_dims(t, 0));
    out->samples = t ? ls_dim(t, 0) : 0;
    out->x = ls_map(ls_batch(ls_slices(ls_leaf(t)), batch), LS_MAP(.fn = to_numbers, .user = h));
    if (!out->x)
        return data_failed(c);
    if (out->samples == 0)
        return cli_error(c, EXIT_USAGE, LS_INVALID, "", "'%s' has no samples", file);
    return EXIT_DONE;
}

static int open_npz(const cli *c, const char *file, int64_t batch, predict_input *out)
{
    ls_value *arrays = ls_read_npz(file);
    if (!arrays)
        return data_failed(c);
    int chosen = ls_length(arrays) == 1 ? 0 : -1;
    for (int i = 0; i < ls_length(arrays); i++)
        if (strcmp(ls_key(arrays, i), "x_test") == 0)
            chosen = i;
    if (chosen < 0)
        return cli_error(c, EXIT_USAGE, LS_NOT_FOUND, "",
                         "'%s' has %d arrays, none of which is x_test", file, ls_length(arrays));
    return open_array(c, file, ls_key(arrays, chosen), ls_item(arrays, chosen), batch, out);
}

static int open_tensor(const cli *c, const char *file, ls_tensor *t, int64_t batch,
                       predict_input *out)
{
    return t ? open_array(c, file, "", t, batch, out) : data_failed(c);
}

/* ---- pictures and records --------------------------------------------------------------------------- */

static int open_picture(const cli *c, const char *file, predict_input *out)
{
    const sample *x = &out->held->x;
    int64_t height, width;
    int channels;
    cli_bytes bytes;
    if (!sample_is_picture(x, &height, &width, &channels))
        return cli_error(c, EXIT_USAGE, LS_SHAPE, "", "'%s' is a picture, but the model takes %s",
                         file, x->text);
    int why = cli_read_file(file, &bytes);
    if (why)
        return cli_error(c, EXIT_USAGE, LS_IO, "", "cannot read '%s': %s", file, strerror(why));
    const void *data = bytes.at;
    ls_tensor *picture = sample_picture(x, ls_from_strings(0, NULL, &data, &bytes.count));
    free(bytes.at);
    out->samples = 1;
    out->x = ls_once(ls_leaf(ls_expand_dims(picture, 0)));
    if (out->x)
        return EXIT_DONE;
    ls_status code = ls_error();
    return cli_error(c, EXIT_USAGE, code, ls_error_hint(), "'%s': %s", file, cli_error_text());
}

static ls_value *parse(ls_value *batch, void *user)
{
    const predict_held *h = user;
    const ls_feature feature = record_image_feature(&h->x, h->image);
    return ls_leaf(
        record_images(&h->x, h->image, ls_parse_examples(ls_leaf_tensor(batch), 1, &feature)));
}

static int open_records(const cli *c, const char *file, int64_t batch, predict_input *out)
{
    record_files files = { 0 };
    predict_held *h = out->held;
    int status = record_files_find(
        c, file, "a file to predict is .npz, .npy, idx, JPEG, PNG or TFRecord", &files);
    if (status == EXIT_DONE)
        status = record_image_kind(c, &h->x, NULL, &files, &h->image);
    if (status == EXIT_DONE) {
        out->samples = record_files_sum(&files, 0, files.count).records;
        ls_dataset *records = ls_batch(record_files_read(&files, 0, files.count), batch);
        out->x = ls_map(records, LS_MAP(.fn = parse, .user = h));
        if (!out->x)
            status = data_failed(c);
        else if (out->samples == 0)
            status = cli_error(c, EXIT_USAGE, LS_INVALID, "", "'%s' has no samples", file);
    }
    record_files_free(&files);
    return status;
}

/* ---- which one ----------------------------------------------------------------------------------- */

enum { FIRST = 8 };

/* How many there are of the first bytes of a file; negative: it cannot be read. */
static int first_bytes(const char *file, unsigned char *out)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, out, FIRST);
    int why = errno;
    close(fd);
    errno = why;
    return n < 0 ? -1 : (int)n;
}

/* Two zeros, a type, a number of axes. */
static bool is_idx(const unsigned char *b, int n)
{
    return n >= 4 && b[0] == 0 && b[1] == 0 && b[2] >= 8 && b[2] <= 14 && b[3] >= 1 && b[3] <= 8;
}

static int open_file(const cli *c, const char *file, int64_t batch, predict_input *out)
{
    unsigned char b[FIRST] = { 0 };
    const int n = first_bytes(file, b);
    if (n < 0 && errno != ENOENT)
        return cli_error(c, EXIT_USAGE, LS_IO, "", "cannot read '%s': %s", file, strerror(errno));
    if (n < 0 && !strpbrk(file, "*?[,"))
        return cli_error(c, EXIT_USAGE, LS_NOT_FOUND, "", "cannot read '%s': %s", file,
                         strerror(errno));
    if (n >= 4 && memcmp(b, "PK\3\4", 4) == 0)
        return open_npz(c, file, batch, out);
    if (n >= 6 && memcmp(b, "\x93NUMPY", 6) == 0)
        return open_tensor(c, file, ls_read_npy(file), batch, out);
    if (sample_is_encoded(b, (size_t)(n < 0 ? 0 : n)))
        return open_picture(c, file, out);
    const bool gzip = n >= 2 && b[0] == 0x1f && b[1] == 0x8b;
    if (is_idx(b, n) || (gzip && !strstr(file, "tfrecord")))
        return open_tensor(c, file, ls_read_idx(file), batch, out);
    return open_records(c, file, batch, out);
}

bool predict_open(const cli *c, const char *file, const char *input, int64_t batch,
                  predict_input *out, int *status)
{
    predict_input p = { .held = calloc(1, sizeof *p.held) };
    int ended = EXIT_DONE;
    if (!p.held)
        ended = cli_error(c, EXIT_FAILED, LS_NO_MEMORY, "", "out of memory");
    else if (!sample_read(input, &p.held->x))
        ended = cli_error(c, EXIT_USAGE, LS_INVALID, "", "a model that takes %s cannot be asked",
                          input);
    if (ended == EXIT_DONE)
        LS_FRAME {
            ended = open_file(c, file, batch, &p);
            p.x = ended == EXIT_DONE ? ls_dataset_keep(p.x) : NULL;
        }
    if (ended == EXIT_DONE && ls_error_pending())
        ended = data_failed(c);
    if (ended != EXIT_DONE) {
        predict_close(&p);
        *status = ended;
        return false;
    }
    *out = p;
    return true;
}

void predict_close(predict_input *p)
{
    ls_dataset_drop(p->x);
    free(p->held);
    *p = (predict_input){ 0 };
}
