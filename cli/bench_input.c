/*
 * `lockstep bench input`: how fast TFRecord files of tf.train.Example are read, in records a second.
 *
 *     raw      records, checksums verified, in batches of 64 that the caller owns
 *     parsed   shuffled (a buffer of 10,000), batched by 64, parsed, the image's bytes as f32
 *              from 0 to 1, four batches ahead (ls_map runs ahead by itself)
 *
 * Both go through all files several times; the best of these counts, as in the peer that it is compared
 * with (bench/peers/tf_data.py). Only whole batches of 64 count: up to 63 records are left over. How many
 * records there are, and that every pass sees as many, is checked.
 */
#include <lockstep.h>
#include <lockstep/records.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "cli.h"

enum { BATCH = 64, BUFFER = 10000, MOST_PATTERNS = 64 };

typedef struct input {
    const char *files; /* as given */
    const char *patterns[MOST_PATTERNS];
    int n_patterns;
    const char *image, *label; /* keys of features */
    int parallel, rounds;
} input;

/* ---- the two pipelines ------------------------------------------------------------------------ */

static ls_dataset *records(const input *in)
{
    return ls_tfrecords(ls_files(in->n_patterns, in->patterns), NULL);
}

static ls_dataset *raw(const input *in)
{
    return ls_prefetch(ls_batch_full(records(in), BATCH), 4);
}

static ls_value *parse(ls_value *batch, void *user)
{
    const input *in = user;
    const ls_feature features[] = { { .key = in->image, .dtype = LS_BYTES },
                                    { .key = in->label, .dtype = LS_I64 } };
    ls_value *e = ls_parse_examples(ls_leaf_tensor(batch), 2, features);
    ls_tensor *bytes = ls_leaf_tensor(ls_get(e, in->image));
    ls_tensor *pixels = ls_cast(ls_decode_raw(bytes, LS_U8, LS_DIMS(-1)), LS_F32);
    ls_tensor *image = ls_div(pixels, ls_scalar(LS_F32, 255));
    return ls_tensors(2, (ls_tensor *[]){ image, ls_leaf_tensor(ls_get(e, in->label)) });
}

static ls_dataset *parsed(const input *in)
{
    ls_dataset *d = ls_batch_full(ls_shuffle(records(in), BUFFER, 1), BATCH);
    return ls_map(d, LS_MAP(.fn = parse, .user = (void *)in, .parallel = in->parallel));
}

/* ---- timing ------------------------------------------------------------------------------------- */

/* Rows of all elements; negative: an error is pending. */
static int64_t count_rows(ls_dataset *d)
{
    int64_t rows = 0;
    LS_FOR_EACH (element, d) {
        ls_tensor *first =
            ls_kind_of(element) == LS_LEAF ? ls_leaf_tensor(element) : ls_item(element, 0);
        rows += ls_dim(first, 0);
    }
    return ls_error_pending() ? -1 : rows;
}

/* Records a second of the best round. False: an error is pending, or `*rows` says that rounds differ. */
static bool time_rounds(const input *in, ls_dataset *(*make)(const input *), double *best,
                        int64_t *rows)
{
    *rows = 0;
    for (int round = 0; round < in->rounds; round++) {
        int64_t n = -1;
        double start = bench_now();
        LS_FRAME
            n = count_rows(make(in));
        double rate = (double)n / (bench_now() - start);
        if (n < 0)
            return false;
        if (round > 0 && n != *rows) {
            *rows = -1;
            return false;
        }
        *rows = n;
        *best = rate > *best ? rate : *best;
    }
    return true;
}

/* A file is at fault, or an option that names a feature. */
static int cannot_read(const cli *c)
{
    if (ls_error_pending())
        return cli_failed_with(c, ls_error_pending() == LS_NO_MEMORY ? EXIT_FAILED : EXIT_USAGE);
    return cli_error(c, EXIT_FAILED, LS_CORRUPT, "do not write them meanwhile",
                     "the files change while they are read");
}

static int measure(const cli *c, const input *in)
{
    double rates[2] = { 0 };
    int64_t rows[2] = { 0 };
    if (!time_rounds(in, raw, &rates[0], &rows[0]) || !time_rounds(in, parsed, &rates[1], &rows[1]))
        return cannot_read(c);
    if (rows[0] == 0)
        return cli_error(c, EXIT_USAGE, LS_INVALID, "give more",
                         "'%s' has fewer records than one batch, %d", in->files, BATCH);
    if (c->json) {
        json j = json_open(stdout);
        json_text(&j, "bench", "input");
        json_number(&j, "raw_records_per_second", rates[0]);
        json_number(&j, "parsed_records_per_second", rates[1]);
        json_whole(&j, "records", rows[0]);
        json_close(&j);
    } else {
        printf("%lld records, in whole batches of %d\n", (long long)rows[0], BATCH);
        printf("raw     %12.0f records/s\n", rates[0]);
        printf("parsed  %12.0f records/s\n", rates[1]);
    }
    return cli_done(c);
}

/* ---- options ------------------------------------------------------------------------------------ */

/* Names and globs with commas between them, in a copy of in->files that they point into. */
static bool split(input *in, char *list)
{
    in->n_patterns = 0;
    for (char *name; (name = strsep(&list, ","));) {
        if (!name[0] || in->n_patterns == MOST_PATTERNS)
            return false;
        in->patterns[in->n_patterns++] = name;
    }
    return in->n_patterns > 0;
}

static bool read_files(const char *text, void *to)
{
    input parts;
    char *list = strdup(text);
    bool good = list && split(&parts, list);
    free(list);
    return good && cli_text(text, to);
}

static bool read_count(const char *text, void *to)
{
    int64_t n;
    if (!cli_whole(text, 1, 1024, &n))
        return false;
    *(int *)to = (int)n;
    return true;
}

static void default_input(void *to)
{
    *(input *)to = (input){ .image = "image", .label = "label", .parallel = 2, .rounds = 3 };
}

static int run(const cli *c, void *request, int n, char **positional)
{
    (void)n, (void)positional;
    input *in = request;
    if (!in->files)
        return cli_error(c, EXIT_USAGE, LS_INVALID, "--data 'train-*.tfrecord'",
                         "there are no files to read");
    char *list = strdup(in->files);
    if (!list)
        return cli_error(c, EXIT_FAILED, LS_NO_MEMORY, "", "no memory for the names of files");
    split(in, list);
    int status = measure(c, in);
    free(list);
    return status;
}

static const cli_option options[] = {
    { "--data", "FILES", "TFRecord files or globs, with commas", "up to 64 names of files",
      read_files, .at = offsetof(input, files), .values = "FILE" },
    { "--image", "KEY", "the feature with an image's bytes (image)", "a key", cli_text,
      .at = offsetof(input, image) },
    { "--label", "KEY", "the feature with its number (label)", "a key", cli_text,
      .at = offsetof(input, label) },
    { "--parallel", "N", "batches parsed at once (2)", "a whole number from 1 to 1024", read_count,
      .at = offsetof(input, parallel) },
    { "--rounds", "N", "times through all files (3)", "a whole number from 1 to 1024", read_count,
      .at = offsetof(input, rounds) },
};

const command cli_bench_input = {
    .name = "input",
    .arguments = "--data FILES",
    .help = "reading and parsing records",
    .about = "Times how fast TFRecord files of tf.train.Example are read, in records a second: raw "
             "(records with their checksums verified) and parsed (shuffled, batched by 64, parsed, "
             "the image's bytes as f32). Whole batches are counted; the best of several rounds "
             "counts.",
    .examples = "  lockstep bench input --data 'train-*.tfrecord'",
    .environment = "LOCKSTEP_ISA",
    CLI_OPTIONS(options),
    .request_bytes = sizeof(input),
    .defaults = default_input,
    .run = run,
};
