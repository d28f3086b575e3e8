/*
 * Sharing out by files: finding readers, and giving each pipeline's a part of the names. Invariant: who
 * reads which file depends on the tree and on (P, p) alone.
 */
#include "data/autoshard.h"

#include <string.h>

#include "base/log.h"
#include "data/iterator.h"
#include "tensor/tensor.h"

/* ---- looking ------------------------------------------------------------------------------- */

static bool is(const ls_dataset *d, const char *stage)
{
    return strcmp(d->stage->name, stage) == 0;
}

/* A list of names, whatever was done to it on the way; not what is in the files. */
static bool gives_names(const ls_dataset *d)
{
    return is(d, "files") || (d->n_inputs == 1 && !(d->stage->flags & LS__STAGE_READS_FILES) &&
                              gives_names(d->inputs[0]));
}

/* A function that makes datasets of names reads those files. */
static bool reads(const ls_dataset *d)
{
    return d->stage->flags & LS__STAGE_READS_FILES ||
           (is(d, "interleave") && gives_names(d->inputs[0]));
}

/* Why not to look through a stage. Of those that count, a pipeline's own first hundred are others than the
 * first hundred of all; of a zip, the n-th of one pipeline's files need not belong to the n-th of
 * its other files. Whoever asks for FILE may mean that, but for numbers that belong to elements. */
static const char *in_the_way(const ls_dataset *d, ls_auto_shard policy)
{
    if (d->stage->flags & LS__STAGE_OPAQUE)
        return "hides what is read";
    const bool aware = policy != LS_AUTO_SHARD_AUTO;
    if (is(d, "enumerate") || (!aware && (is(d, "take") || is(d, "skip") || is(d, "shard"))))
        return "counts elements";
    return !aware && is(d, "zip") && d->n_inputs > 1 ? "pairs elements" : NULL;
}

/* A source of which several iterators would have one state. */
static const ls_dataset *one_state(const ls_dataset *d)
{
    const ls_dataset *found = d->stage->flags & LS__STAGE_ONE_STATE ? d : NULL;
    for (int i = 0; i < d->n_inputs && !found; i++)
        found = one_state(d->inputs[i]);
    return found;
}

/* The first stage, from the end, for which files cannot be shared out, and why; NULL: they can. */
typedef struct obstacle {
    const ls_dataset *stage;
    const char *why;
} obstacle;

static obstacle find_obstacle(const ls_dataset *d, ls_auto_shard policy)
{
    if (reads(d))
        return (obstacle){ one_state(d->inputs[0]), "gives each name once" };
    if (d->n_inputs == 0)
        return (obstacle){ d, "reads no files" };
    const char *why = in_the_way(d, policy);
    if (why)
        return (obstacle){ d, why };
    obstacle found = { 0 };
    for (int i = 0; i < d->n_inputs && !found.stage; i++)
        found = find_obstacle(d->inputs[i], policy);
    return found;
}

static ls_status no_files(const char *who, obstacle found)
{
    return ls__hint(ls__fail(LS_NOT_FOUND, "%s: policy FILE finds no files to share out: '%s' %s",
                             who, found.stage->text, found.why),
                    "LS_AUTO_SHARD_DATA shares out the rows of each batch, LS_AUTO_SHARD_OFF "
                    "nothing");
}

/* One line, whatever was chosen. Going through everything P times is worth a warning if nobody has
 * asked for it. */
static void say(const char *who, int pipelines, ls_auto_shard policy, ls_auto_shard chosen,
                obstacle found)
{
    const char *how = chosen == LS_AUTO_SHARD_FILE   ? "share the files"
                      : chosen == LS_AUTO_SHARD_DATA ? "go through all data and keep their part"
                                                     : "use all data each";
    if (policy != LS_AUTO_SHARD_AUTO)
        ls__log(LS_LOG_INFO, "%s: %d pipelines %s (%s)", who, pipelines, how,
                ls_auto_shard_name(chosen));
    else if (!found.stage)
        ls__log(LS_LOG_INFO, "%s: %d pipelines %s (AUTO: %s)", who, pipelines, how,
                ls_auto_shard_name(chosen));
    else
        ls__log(LS_LOG_WARNING, "%s: %d pipelines %s (AUTO: %s, since '%s' %s)", who, pipelines,
                how, ls_auto_shard_name(chosen), found.stage->text, found.why);
}

/* OFF: as many iterators as pipelines, of which each must see everything. */
static ls_status check_off(const char *who, const ls_dataset *d, int pipelines)
{
    const ls_dataset *found = one_state(d);
    if (!found)
        return LS_OK;
    return ls__hint(
        ls__fail(LS_INVALID,
                 "%s: policy OFF, but '%s' without .open has one state for %d pipelines", who,
                 found->text, pipelines),
        ".open makes a state for each; LS_AUTO_SHARD_DATA shares out the rows of each "
        "batch");
}

ls_status ls__auto_shard_choose(const char *who, const ls_dataset *d, int pipelines,
                                ls_auto_shard *out)
{
    const ls_auto_shard policy = ls__auto_shard_policy(d);
    obstacle found = { 0 };
    if (policy == LS_AUTO_SHARD_AUTO || policy == LS_AUTO_SHARD_FILE)
        found = find_obstacle(d, policy);
    if (policy == LS_AUTO_SHARD_FILE && found.stage)
        return no_files(who, found);
    if (policy == LS_AUTO_SHARD_OFF && check_off(who, d, pipelines))
        return LS_INVALID;
    *out = policy != LS_AUTO_SHARD_AUTO ? policy
           : found.stage                ? LS_AUTO_SHARD_DATA
                                        : LS_AUTO_SHARD_FILE;
    say(who, pipelines, policy, *out, found);
    return LS_OK;
}

/* ---- names --------------------------------------------------------------------------------- */

/* Stages whose order a shuffle below them is the order of, so that it may as well come above. */
static bool keeps_order(const ls_dataset *d)
{
    return is(d, "shuffle") || is(d, "map") || is(d, "filter") || is(d, "prefetch");
}

/* Without the shuffles at its end. */
static ls_dataset *unshuffled(ls_dataset *names)
{
    if (!keeps_order(names))
        return names;
    ls_dataset *input = unshuffled(names->inputs[0]);
    if (!input || is(names, "shuffle"))
        return input;
    return input == names->inputs[0] ? names : ls__dataset_on(names, &input);
}

/* The same shuffles, on this. */
static ls_dataset *shuffled_as(ls_dataset *names, ls_dataset *d)
{
    if (!keeps_order(names))
        return d;
    d = shuffled_as(names->inputs[0], d);
    return d && is(names, "shuffle") ? ls__dataset_on(names, &d) : d;
}

/* How many names there are, up to `most`. */
static ls_status count_names(ls_dataset *names, int64_t most, int64_t *out)
{
    ls__going going = { 0 };
    ls__it *it = NULL;
    ls__chunk chunk = { 0 };
    int64_t n = 0;
    ls_status st = ls__it_open(names, &(ls__opening){ .going = &going }, &it);
    while (!st && n < most) {
        ls__chunk_clear(&chunk);
        st = ls__it_pull(it, (int)(most - n), &chunk);
        n += chunk.n;
    }
    ls__chunk_free(&chunk);
    ls__it_close(it);
    *out = n;
    return st == LS_END ? LS_OK : st;
}

static ls_status check_enough(const char *who, ls_dataset *names, int pipelines, int pipeline)
{
    int64_t n = names->cardinality;
    ls_status st = n == LS_UNKNOWN ? count_names(names, pipelines, &n) : LS_OK;
    if (st || n < 0 || n >= pipelines || n <= pipeline)
        return st;
    return ls__hint(ls__fail(LS_INVALID,
                             "%s: the dataset has %lld file%s, not enough for %d pipelines", who,
                             (long long)n, n == 1 ? "" : "s", pipelines),
                    "write %d files or more; or share out the rows of each batch: "
                    "ls_with_auto_shard(d, LS_AUTO_SHARD_DATA)",
                    pipelines);
}

static ls_dataset *share_names(const char *who, ls_dataset *names, int pipelines, int pipeline)
{
    ls_dataset *plain = unshuffled(names);
    if (!plain || check_enough(who, plain, pipelines, pipeline))
        return NULL;
    ls_dataset *share = ls_shard(plain, pipelines, pipeline);
    return share ? shuffled_as(names, share) : NULL;
}

/* ---- rewriting ----------------------------------------------------------------------------- */

static ls_dataset *rewrite(const char *who, ls_dataset *d, int pipelines, int pipeline)
{
    ls_dataset **inputs = ls__frame_alloc(sizeof(ls_dataset *) * (size_t)(d->n_inputs + 1));
    const bool reader = reads(d);
    for (int i = 0; inputs && i < d->n_inputs; i++) {
        inputs[i] = !reader  ? rewrite(who, d->inputs[i], pipelines, pipeline)
                    : i == 0 ? share_names(who, d->inputs[i], pipelines, pipeline)
                             : d->inputs[i];
        if (!inputs[i])
            return NULL;
    }
    return inputs ? ls__dataset_on(d, inputs) : NULL;
}

ls_dataset *ls__shard_files(const char *who, ls_dataset *d, int pipelines, int pipeline)
{
    if (pipeline < 0 || pipeline >= pipelines) {
        ls__hint(ls__fail(LS_INVALID, "%s: pipeline %d of %d", who, pipeline, pipelines),
                 "pipelines are numbered from 0 to %d", pipelines - 1);
        return NULL;
    }
    const obstacle found = find_obstacle(d, LS_AUTO_SHARD_FILE);
    if (found.stage) {
        no_files(who, found);
        return NULL;
    }
    return rewrite(who, d, pipelines, pipeline);
}
