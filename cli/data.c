/*
 * Which source a spec means, and what all of them share. Sources make datasets in a frame of
 * data_open's; here they are kept.
 */
#include "data.h"

#include <stdlib.h>
#include <string.h>

#include "data_source.h"

/* ---- names -------------------------------------------------------------------------------------- */

#define FASHION "fashion-mnist"

const char *data_class(const char *name, int64_t i)
{
    static const char *const fashion[] = { "T-shirt/top", "Trouser",   "Pullover", "Dress",
                                           "Coat",        "Sandal",    "Shirt",    "Sneaker",
                                           "Bag",         "Ankle boot" };
    const int64_t n = sizeof fashion / sizeof fashion[0];
    return name && strcmp(name, FASHION) == 0 && i >= 0 && i < n ? fashion[i] : NULL;
}

bool data_is_text(const char *input, const char *label)
{
    sample x, y;
    return sample_read(input, &x) && sample_read(label, &y) && x.rank == 1 && y.rank == 1 &&
           x.dims[0] == y.dims[0] && ls_dtype_is_integer(x.dtype) && ls_dtype_is_integer(y.dtype);
}

/* ---- errors ------------------------------------------------------------------------------------- */

int data_failed(const cli *c)
{
    ls_status code = ls_error();
    return cli_error(c, code == LS_NO_MEMORY ? EXIT_FAILED : EXIT_USAGE, code, cli_error_hint(),
                     "%s", cli_error_text());
}

int data_enough(const cli *c, const data_request *r, const char *name, int64_t train, int64_t test)
{
    if (train < r->global_batch && !r->test_only)
        return cli_error(
            c, EXIT_USAGE, LS_INVALID, "give more data, or a smaller --batch",
            "'%s' has %lld training sample%s, fewer than a batch of all replicas, %lld", name,
            (long long)train, train == 1 ? "" : "s", (long long)r->global_batch);
    if (test < 1)
        return cli_error(c, EXIT_USAGE, LS_INVALID, "give more data",
                         "'%s' has no sample to test with", name);
    return EXIT_DONE;
}

/* ---- batches ------------------------------------------------------------------------------------ */

void data_describe(const data_held *h, ls_dtype x, char *out, size_t room)
{
    const sample *parts[] = { &h->x, &h->y };
    const ls_dtype dtypes[] = { x, h->y.dtype };
    size_t at = 0;
    for (int i = 0; i < 2; i++)
        at += (size_t)snprintf(out + at, at < room ? room - at : 0, "%s%s[?%s%s", i ? ", " : "",
                               ls_dtype_name(dtypes[i]), parts[i]->rank ? "," : "",
                               strchr(parts[i]->text, '[') + 1);
}

/* ---- opening ------------------------------------------------------------------------------------- */

static int open_source(const cli *c, const data_request *r, data_sets *out)
{
    const bool fashion = r->spec && strcmp(r->spec, FASHION) == 0;
    if (r->text && (fashion || (r->spec && cli_ends_with(r->spec, ".npz"))))
        return cli_error(c, EXIT_USAGE, LS_INVALID, "give a text file",
                         "--data %s: this model reads text", r->spec);
    if (r->text)
        return data_open_text(c, r, out);
    if (!r->spec || fashion)
        return data_open_fashion(c, r, out);
    if (cli_ends_with(r->spec, ".npz"))
        return data_open_arrays(c, r, out);
    return data_open_records(c, r, out);
}

static int prepare(const cli *c, const data_request *r, data_sets *out)
{
    data_held *h = out->held = calloc(1, sizeof *h);
    if (h)
        h->spec = strdup(r->spec ? r->spec : r->text ? BIBLE : FASHION);
    if (!h || !h->spec)
        return cli_error(c, EXIT_FAILED, LS_NO_MEMORY, "", "out of memory");
    if (!sample_read(r->input, &h->x) || !sample_read(r->label, &h->y))
        return cli_error(c, EXIT_USAGE, LS_INVALID, "",
                         "a model that takes %s and %s cannot be given data", r->input, r->label);
    out->name = h->spec;
    return EXIT_DONE;
}

bool data_open(const cli *c, const data_request *r, data_sets *out, int *status)
{
    data_sets sets = { .train_samples = LS_UNKNOWN, .test_samples = LS_UNKNOWN };
    int ended = prepare(c, r, &sets);
    if (ended == EXIT_DONE)
        LS_FRAME {
            ended = open_source(c, r, &sets);
            sets.train = ended == EXIT_DONE ? ls_dataset_keep(sets.train) : NULL;
            sets.test = ended == EXIT_DONE ? ls_dataset_keep(sets.test) : NULL;
        }
    if (ended == EXIT_DONE && ls_error_pending())
        ended = data_failed(c);
    if (ended != EXIT_DONE) {
        data_close(&sets);
        *status = ended;
        return false;
    }
    *out = sets;
    return true;
}

void data_close(data_sets *sets)
{
    ls_dataset_drop(sets->train);
    ls_dataset_drop(sets->test);
    if (sets->held) {
        free(sets->held->spec);
        free(sets->held->text.at);
        free(sets->held);
    }
    *sets = (data_sets){ 0 };
}
