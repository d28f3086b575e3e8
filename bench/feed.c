/*
 * Whether input keeps up with training, and what it takes in memory. Prints one JSON object a line.
 *
 *     feed write DIR       Fashion-MNIST as ten TFRecord files of tf.train.Example
 *     feed train FILES     two replicas of cnn, 64 images each, on two devices: the share of time in
 *                          which they wait for input; beside it, the rate with one batch again and again
 *     feed memory FILES    the pipeline alone: the most memory of the process, and the most that
 *                          the stages declared (ls_iterator_bytes)
 *
 * The pipeline: records, shuffled by a buffer of 10,000, batches, parsed, images as f32 from 0 to 1.
 */
#include <lockstep.h>
#include <lockstep/input.h>
#include <lockstep/records.h>

#include "measure.h"

enum { REPLICAS = 2, BATCH = 64 * REPLICAS, BUFFER = 10000, FILES = 10, PARAMETERS = 6 };
enum { WARM_UP = 50, STEPS = 1500 };

static int failed(void)
{
    fprintf(stderr, "feed: %s\n", ls_error_report());
    return 1;
}

/* ---- writing ---------------------------------------------------------------------------------- */

static ls_tensor *example_of(ls_value *element)
{
    ls_tensor *image = ls_item(element, 0);
    const void *pixels = ls_data(image);
    const size_t bytes = (size_t)ls_count(image);
    const char *keys[] = { "image", "label" };
    ls_value *values[] = { ls_leaf(ls_from_strings(0, NULL, &pixels, &bytes)),
                           ls_leaf(ls_item(element, 1)) };
    return ls_make_example(ls_dict(2, keys, values));
}

static int write_files(const char *directory)
{
    ls_record_writer *files[FILES];
    int64_t n = 0;
    for (int i = 0; i < FILES; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/fashion-%05d-of-%05d.tfrecord", directory, i, FILES);
        files[i] = ls_record_writer_open(path, LS_PLAIN);
    }
    LS_FOR_EACH (element, ls_fashion_mnist("train")) {
        const void *text;
        size_t bytes;
        if (ls_string_at(example_of(element), 0, &text, &bytes) == LS_OK)
            ls_record_write(files[n++ % FILES], text, bytes);
    }
    for (int i = 0; i < FILES; i++)
        ls_record_writer_close(files[i]);
    return ls_error_pending() ? failed() : 0;
}

/* ---- the pipeline ------------------------------------------------------------------------------ */

static ls_value *parse(ls_value *batch, void *user)
{
    (void)user;
    static const ls_feature features[] = { { .key = "image", .dtype = LS_BYTES },
                                           { .key = "label", .dtype = LS_I64 } };
    ls_value *e = ls_parse_examples(ls_leaf_tensor(batch), 2, features);
    ls_tensor *bytes = ls_leaf_tensor(ls_get(e, "image"));
    ls_tensor *image = ls_cast(ls_decode_raw(bytes, LS_U8, LS_DIMS(28, 28, 1)), LS_F32);
    return ls_tensors(
        2, (ls_tensor *[]){ ls_scale(image, 1.0 / 255), ls_leaf_tensor(ls_get(e, "label")) });
}

static ls_dataset *pipeline(int n, char **files)
{
    ls_dataset *records = ls_tfrecords(ls_files(n, (const char **)files), NULL);
    return ls_map(ls_batch_full(ls_shuffle(records, BUFFER, 1), BATCH), LS_MAP(.fn = parse));
}

/* ---- training ---------------------------------------------------------------------------------- */

static ls_variable *p[PARAMETERS];

static void make_parameters(void)
{
    p[0] = ls_variable_new("conv", ls_glorot_uniform(LS_F32, LS_DIMS(3, 3, 1, 32)), true);
    p[1] = ls_variable_new("conv_bias", ls_zeros(LS_F32, LS_DIMS(32)), true);
    p[2] = ls_variable_new("hidden", ls_glorot_uniform(LS_F32, LS_DIMS(13 * 13 * 32, 64)), true);
    p[3] = ls_variable_new("hidden_bias", ls_zeros(LS_F32, LS_DIMS(64)), true);
    p[4] = ls_variable_new("out", ls_glorot_uniform(LS_F32, LS_DIMS(64, 10)), true);
    p[5] = ls_variable_new("out_bias", ls_zeros(LS_F32, LS_DIMS(10)), true);
}

static ls_value *train_step(ls_value *batch, void *adam)
{
    ls_tape *tape = ls_tape_open();
    ls_tensor *h = ls_conv2d(ls_item(batch, 0), ls_read(p[0]), NULL);
    h = ls_max_pool2d(ls_relu(ls_add(h, ls_read(p[1]))), 2, 2, LS_VALID);
    h = ls_relu(ls_dense(ls_flatten_rows(h), ls_read(p[2]), ls_read(p[3])));
    ls_tensor *losses = ls_sparse_softmax_xent(ls_dense(h, ls_read(p[4]), ls_read(p[5])),
                                               ls_cast(ls_item(batch, 1), LS_I32));
    ls_tensor *loss = ls_scale(ls_sum(losses, LS_ALL_AXES, false), 1.0 / BATCH);
    ls_minimize(adam, tape, loss, PARAMETERS, p);
    return ls_leaf(loss);
}

typedef struct clocks {
    double all, waiting; /* seconds */
    int steps;           /* that were counted */
} clocks;

/* So many steps, the first of which are not counted. With `same`, the first batch is all there is. */
static clocks train(ls_strategy *s, ls_function *step, ls_iterator *it, bool same)
{
    clocks c = { 0 };
    ls_value *batch = NULL, *once = NULL;
    if (same && ls_next(it, &once))
        return c;
    for (int i = 0; i < WARM_UP + STEPS && !ls_error_pending(); i++)
        LS_FRAME {
            const double start = now();
            batch = once;
            if (!same && ls_next(it, &batch) == LS_END && (ls_rewind(it) || ls_next(it, &batch)))
                break;
            const double came = now();
            ls_run(s, step, batch);
            if (i >= WARM_UP) {
                c.waiting += came - start;
                c.all += now() - start;
                c.steps++;
            }
        }
    return c;
}

static int feed_replicas(int n, char **files)
{
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0,/cpu:1"));
    LS_SCOPE (s)
        make_parameters();
    ls_optimizer *adam = ls_adam(NULL);
    ls_function *step = ls_trace(train_step, adam);
    ls_iterator *it = ls_iterate(ls_distribute(s, ls_repeat(pipeline(n, files), -1)));
    clocks fed = { 0 }, same = { 0 };
    LS_FRAME
        fed = train(s, step, it, false);
    LS_FRAME
        same = train(s, step, it, true);
    ls_iterator_free(it);
    ls_function_free(step);
    ls_optimizer_free(adam);
    for (int i = 0; i < PARAMETERS; i++)
        ls_variable_free(p[i]);
    ls_strategy_free(s);
    if (ls_error_pending())
        return failed();
    printf("{\"bench\":\"feed\",\"model\":\"cnn\",\"replicas\":%d,\"waiting\":%.4f,"
           "\"samples_per_second\":%.0f,\"samples_per_second_without_input\":%.0f}\n",
           REPLICAS, fed.waiting / fed.all, fed.steps * (double)BATCH / fed.all,
           same.steps * (double)BATCH / same.all);
    return 0;
}

/* ---- memory ------------------------------------------------------------------------------------- */

static int measure_memory(int n, char **files)
{
    size_t declared = 0;
    ls_iterator *it = ls_iterate(ls_prefetch(pipeline(n, files), 2));
    ls_status st = LS_OK;
    while (!st)
        LS_FRAME {
            ls_value *batch;
            st = ls_next(it, &batch);
            declared = ls_iterator_bytes(it) > declared ? ls_iterator_bytes(it) : declared;
        }
    ls_iterator_free(it);
    if (ls_error_pending())
        return failed();
    printf("{\"bench\":\"input_memory\",\"peak_bytes\":%lld,\"declared_bytes\":%zu}\n",
           1024LL * peak_kib(), declared);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "write") == 0)
        return write_files(argv[2]);
    if (argc > 2 && strcmp(argv[1], "train") == 0)
        return feed_replicas(argc - 2, argv + 2);
    if (argc > 2 && strcmp(argv[1], "memory") == 0)
        return measure_memory(argc - 2, argv + 2);
    fprintf(stderr, "usage: feed write DIR | train FILES... | memory FILES...\n");
    return 2;
}
