/*
 * Text for models that guess the next byte: the first 95 % for training, the rest for tests.
 *
 *     text      |....|----|----|----|----|..|         phase, blocks of `context` bytes, rest
 *     window 2                 xxxx|                  x: the block
 *                               yyyy                  y: the same, a byte later
 *
 * An epoch takes every block once, in another order, and the blocks of each epoch begin at another
 * phase, so that all places of the text come to stand at all places of a window. Phase and order
 * are those of shuffles, which know their epoch: so positions are the dataset's own business. What is
 * left out of an epoch are less than two blocks, at the text's ends.
 */
#include <errno.h>
#include <lockstep/ops.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "data_source.h"

#define TEXT_OF_BIBLE "gen1:1-rev22:21"

enum { HELD_OUT = 20 }; /* one byte in so many */

/* ---- windows -------------------------------------------------------------------------------------- */

static void release(void *data, void *user)
{
    (void)user;
    free(data);
}

/* n rows of `context` bytes; row i begins at offsets[i] of the text. */
static ls_tensor *rows_at(const sample *s, const char *text, int64_t n, const int64_t *offsets)
{
    const int64_t context = s->dims[0];
    int32_t *to = malloc(sizeof *to * (size_t)(n * context) + 1);
    if (!to)
        return NULL;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < context; k++)
            to[i * context + k] = (unsigned char)text[offsets[i] + k];
    ls_tensor *t = ls_wrap(LS_I32, LS_DIMS(n, context), to, release, NULL);
    if (!t)
        free(to);
    return sample_numbers(s, t, false);
}

static ls_value *windows_at(const data_held *h, const char *text, ls_tensor *offsets)
{
    const int64_t *at = ls_data(offsets);
    if (!at)
        return NULL;
    const int64_t n = ls_count(offsets);
    return ls_tensors(
        2, (ls_tensor *[]){ rows_at(&h->x, text, n, at), rows_at(&h->y, text + 1, n, at) });
}

/* A batch of blocks, and the phase of the epoch beside each. */
static ls_value *train_windows(ls_value *batch, void *user)
{
    const data_held *h = user;
    ls_tensor *blocks = ls_scale(ls_item(batch, 0), (double)h->x.dims[0]);
    return windows_at(h, h->text.at, ls_add(blocks, ls_item(batch, 1)));
}

static ls_value *test_windows(ls_value *batch, void *user)
{
    const data_held *h = user;
    ls_tensor *blocks = ls_scale(ls_leaf_tensor(batch), (double)h->x.dims[0]);
    return windows_at(h, h->text.at + h->shown, blocks);
}

/* ---- datasets ------------------------------------------------------------------------------------- */

/* The phase, once for every window of an epoch. */
static ls_value *for_every_window(ls_value *phase, void *user)
{
    const data_held *h = user;
    ls_tensor *t = ls_leaf_tensor(phase);
    return ls_leaf(ls_broadcast_to(t, LS_DIMS(h->windows)));
}

static ls_dataset *phases(data_held *h, int64_t n, uint64_t seed)
{
    char spec[64];
    snprintf(spec, sizeof spec, "i64[%lld]", (long long)h->windows);
    ls_dataset *one = ls_take(ls_shuffle(ls_range(0, n, 1), n, seed), 1);
    return ls_unbatch(ls_map(one, LS_MAP(.fn = for_every_window, .user = h, .spec = spec)));
}

static void make(const data_request *r, data_held *h, data_sets *out)
{
    const int64_t context = h->x.dims[0], shown = (int64_t)h->shown;
    int64_t n_phases = shown - h->windows * context;
    if (n_phases > context)
        n_phases = context;
    ls_dataset *both[] = { ls_shuffle(ls_range(0, h->windows, 1), h->windows, r->seed),
                           phases(h, n_phases, ~r->seed) };
    char spec[128];
    data_describe(h, h->x.dtype, spec, sizeof spec);
    out->train = ls_map(ls_batch(ls_zip(2, both), r->global_batch),
                        LS_MAP(.fn = train_windows, .user = h, .spec = spec));
    out->test = ls_map(ls_batch(ls_range(0, out->test_samples, 1), r->global_batch),
                       LS_MAP(.fn = test_windows, .user = h, .spec = spec));
}

/* ---- where the text comes from ------------------------------------------------------------------- */

/* Lines of it are as long as the environment says, so there is none. */
static int read_bible(const cli *c, cli_bytes *out)
{
    char *argv[] = { BIBLE, TEXT_OF_BIBLE, NULL }, *environment[] = { NULL };
    int ended;
    int why = cli_run_program(argv, environment, false, out, &ended);
    const char *hint = "install Debian's bible-kjv, or give a text with --data FILE";
    if (why == ENOENT)
        return cli_error(c, EXIT_USAGE, LS_NOT_FOUND, hint,
                         "the text to train on is what 'bible' prints, which is not installed");
    if (why)
        return cli_error(c, EXIT_USAGE, LS_IO, hint, "cannot run 'bible': %s", strerror(why));
    if (!WIFEXITED(ended) || WEXITSTATUS(ended) != 0)
        return cli_error(c, EXIT_USAGE, LS_IO, hint, "'bible %s' failed", TEXT_OF_BIBLE);
    return EXIT_DONE;
}

static int read_text(const cli *c, const data_request *r, cli_bytes *out)
{
    if (!r->spec || strcmp(r->spec, BIBLE) == 0) /* a file of that name is ./bible */
        return read_bible(c, out);
    int why = cli_read_file(r->spec, out);
    if (why == ENOMEM)
        return cli_error(c, EXIT_FAILED, LS_NO_MEMORY, "", "'%s' does not fit in memory", r->spec);
    if (why)
        return cli_error(c, EXIT_USAGE, why == ENOENT ? LS_NOT_FOUND : LS_IO,
                         "--data wants a text file", "cannot read '%s': %s", r->spec,
                         strerror(why));
    return EXIT_DONE;
}

/* A text of so many bytes is long enough. */
static int64_t least_bytes(int64_t context, int64_t batch)
{
    const int64_t train = (batch + 1) * context * HELD_OUT / (HELD_OUT - 1) + 1;
    const int64_t test = (context + 1) * HELD_OUT;
    return train > test ? train : test;
}

int data_open_text(const cli *c, const data_request *r, data_sets *out)
{
    data_held *h = out->held;
    int ended = read_text(c, r, &h->text);
    if (ended != EXIT_DONE)
        return ended;
    const int64_t context = h->x.dims[0];
    const size_t tested = h->text.count / HELD_OUT;
    h->shown = h->text.count - tested;
    h->windows = (int64_t)h->shown / context - 1;
    out->train_samples = h->windows;
    out->test_samples = tested > 0 ? (int64_t)(tested - 1) / context : 0;
    if (h->windows < 1 || h->windows < r->global_batch || out->test_samples < 1)
        return cli_error(c, EXIT_USAGE, LS_INVALID, "give a longer text, or a smaller --batch",
                         "'%s' has %zu bytes; a batch of %lld windows of %lld bytes, and 5 %% to "
                         "test with, take %lld",
                         out->name, h->text.count, (long long)r->global_batch,
                         (long long)context + 1, (long long)least_bytes(context, r->global_batch));
    make(r, h, out);
    return out->train && out->test ? EXIT_DONE : data_failed(c);
}
