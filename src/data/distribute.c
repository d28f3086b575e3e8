/*
 * Making distributed datasets: which plan, and what each pipeline reads. Invariant: all of it follows
 * from the dataset, V and P.
 */
#include "data/distribute.h"

#include <stdlib.h>
#include <string.h>

#include "data/autoshard.h"
#include "data/prefetch.h"
#include "os/topology.h"
#include "strategy/context.h"
#include "strategy/strategy.h"
#include "tensor/tensor.h"

/* ---- rows ------------------------------------------------------------------------------------ */

/* Rows that every element has: -1 when that is not known, or leaves differ. */
static int64_t rows_of(const ls__type *type)
{
    int64_t rows = -1;
    for (int k = 0; k < ls__type_leaves(type); k++) {
        const ls__leaf_type *leaf = ls__type_leaf(type, k);
        if (!leaf->dtype || leaf->rank < 1 || (k > 0 && leaf->dims[0] != rows))
            return -1;
        rows = leaf->dims[0];
    }
    return rows;
}

static ls_status check_rows(const char *who, const ls__type *type)
{
    int64_t rows = -1;
    int whose = 0;
    for (int k = 0; k < ls__type_leaves(type); k++) {
        const ls__leaf_type *leaf = ls__type_leaf(type, k);
        if (!leaf->dtype || leaf->rank < 0)
            continue;
        if (leaf->rank == 0)
            return ls__hint(ls__fail(LS_INVALID,
                                     "%s: leaf %d of elements %s has no rows to split: the dataset "
                                     "is not batched",
                                     who, k, ls__type_text(type)),
                            "ls_batch(d, n) makes batches of n elements for all replicas "
                            "together");
        if (rows >= 0 && leaf->dims[0] >= 0 && leaf->dims[0] != rows)
            return ls__fail(LS_SHAPE, "%s: leaf %d of batches %s has %lld rows, leaf %d has %lld",
                            who, k, ls__type_text(type), (long long)leaf->dims[0], whose,
                            (long long)rows);
        if (leaf->dims[0] >= 0) {
            rows = leaf->dims[0];
            whose = k;
        }
    }
    return LS_OK;
}

/* Stages that give the elements they get, or some of them. */
static bool keeps_elements(const ls_dataset *d)
{
    static const char *const stages[] = { "auto_shard", "cache",  "concatenate", "filter",
                                          "prefetch",   "repeat", "shard",       "shuffle",
                                          "skip",       "take",   "zip" };
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        if (strcmp(d->stage->name, stages[i]) == 0)
            return true;
    return false;
}

/* Rows of a whole batch; -1: not known, since what makes batches is hidden (a map behind it may have
 * changed them), or inputs differ. */
static int64_t batch_of(const ls_dataset *d)
{
    if (rows_of(d->type) >= 0)
        return rows_of(d->type);
    if (d->stage->batch)
        return d->stage->batch(d);
    if (!keeps_elements(d))
        return -1;
    int64_t batch = batch_of(d->inputs[0]);
    for (int i = 1; i < d->n_inputs; i++)
        if (batch_of(d->inputs[i]) != batch)
            return -1;
    return batch;
}

/* ---- what is known of steps -------------------------------------------------------------------- */

/* All leaves with `rows` in front; -1: not known. */
static ls__type *with_rows(const ls__type *type, int64_t rows)
{
    const int n = ls__type_leaves(type);
    ls__leaf_type *leaves = calloc((size_t)n + 1, sizeof *leaves);
    if (!leaves) {
        ls__fail_memory("a distributed dataset", (size_t)n * sizeof *leaves);
        return NULL;
    }
    for (int k = 0; k < n; k++) {
        leaves[k] = *ls__type_leaf(type, k);
        if (leaves[k].dtype && leaves[k].rank > 0)
            leaves[k].dims[0] = rows;
    }
    ls__type *out = ls__type_with(type, leaves);
    free(leaves);
    return out;
}

/* Of batches: all replicas always have as many rows where batches are whole and V divides them, and no
 * pipeline ends before others. */
static ls__type *type_of_split(const ls__plan *plan, const ls_dataset *d, bool together)
{
    const int64_t rows = rows_of(d->type);
    const bool even = rows >= 0 && rows % plan->replicas == 0 && together;
    return with_rows(d->type, even ? rows / plan->replicas : -1);
}

/* Batches that may have fewer rows than others last for fewer steps, or for none that is whole: then
 * the data may end there, even if it has no end. */
static int64_t steps_of_split(const ls__plan *plan, const ls_dataset *d, bool together)
{
    const int64_t n = d->cardinality;
    const bool whole = rows_of(d->type) > 0;
    if (plan->whole_steps && !whole && n != 0)
        return LS_UNKNOWN;
    if (n < 0 || plan->cut == LS__CUT_DATA || plan->pipelines == 1)
        return n;
    return whole && together ? ls__cardinality_times(n, plan->pipelines) : LS_UNKNOWN;
}

/* ---- the dataset --------------------------------------------------------------------------------- */

static void release(void *options)
{
    ls__strategy_unref(((ls__distribution *)options)->strategy);
}

/* How long the input of a step may take before a thread makes it ahead. Where replicas have all cores, the thread takes
 * one of them away from a replica, and the others wait for that one. */
static int64_t patience(const ls_strategy *s)
{
    enum { FREE_CORES = 10000, BUSY_CORES = 100000 };
    if (s->prefetch > 0)
        return 0;
    return s->n_devices < ls__cores() ? FREE_CORES : BUSY_CORES;
}

/* With what so many steps take made ahead, on a thread; 0: none, which makes no other dataset of it. */
static ls_dataset *ahead(const ls_strategy *s, const ls__plan *plan, ls_dataset *d)
{
    const int64_t steps = s->prefetch > 0 ? s->prefetch : s->prefetch < 0 ? 0 : 2;
    const int64_t p = plan->pipelines;
    const int64_t elements = plan->cut == LS__CUT_OWN    ? (steps + p - 1) / p
                             : plan->cut == LS__CUT_DATA ? steps
                                                         : steps * ls__plan_each(plan);
    return ls__prefetch_patiently(d, elements, patience(s));
}

/* Takes over the type. */
static ls_dataset *make(ls_strategy *s, const ls__plan *plan, bool called, int n_inputs,
                        ls_dataset **inputs, ls__type *type, int64_t cardinality)
{
    static const char *const cuts[] = { "own", "data", "none" };
    for (int i = 0; i < n_inputs && !called; i++)
        if (!(inputs[i] = ahead(s, plan, inputs[i]))) {
            ls__type_unref(type);
            return NULL;
        }
    ls__dataset_draft draft = { .stage = &ls__distribute_stage,
                                .n_inputs = n_inputs,
                                .inputs = inputs,
                                .cardinality = cardinality };
    ls__distribution *o = ls__dataset_options(&draft, sizeof *o, release);
    draft.type = type;
    if (!o) {
        ls__type_unref(type);
        return NULL;
    }
    *o = (ls__distribution){ .plan = *plan, .strategy = ls__strategy_ref(s), .called = called };
    return ls__dataset_new(&draft, "distribute %d %d %s %lld%s", plan->replicas, plan->pipelines,
                           cuts[plan->cut], (long long)plan->batch,
                           plan->whole_steps ? " whole" : "");
}

static ls__plan plan_of(const ls_strategy *s, ls__cut cut)
{
    return (ls__plan){ .cut = cut,
                       .replicas = s->replicas,
                       .pipelines = s->pipelines ? s->pipelines : 1,
                       .batch = -1,
                       .whole_steps = s->whole_steps };
}

/* What each pipeline reads; NULL: an error is pending. */
static ls_dataset **shares(const char *who, const ls__plan *plan, ls_dataset *d,
                           ls_auto_shard policy, int count)
{
    ls_dataset **inputs = ls__frame_alloc(sizeof(ls_dataset *) * (size_t)count);
    for (int p = 0; inputs && p < count; p++) {
        inputs[p] = policy == LS_AUTO_SHARD_FILE ? ls__shard_files(who, d, plan->pipelines, p) : d;
        if (!inputs[p])
            return NULL;
    }
    return inputs;
}

ls_dataset *ls__distribute(const char *who, ls_strategy *s, ls_dataset *d)
{
    if (ls__check_dataset(who, d) || check_rows(who, d->type))
        return NULL;
    ls__plan plan = plan_of(s, LS__CUT_OWN);
    ls_auto_shard policy = LS_AUTO_SHARD_OFF;
    if (plan.pipelines > 1 && ls__auto_shard_choose(who, d, plan.pipelines, &policy))
        return NULL;
    if (policy == LS_AUTO_SHARD_DATA)
        plan.cut = LS__CUT_DATA;
    plan.batch = batch_of(d);
    const int count = plan.cut == LS__CUT_DATA ? 1 : plan.pipelines;
    ls_dataset **inputs = shares(who, &plan, d, policy, count);
    if (!inputs)
        return NULL;
    const bool together = policy != LS_AUTO_SHARD_FILE; /* pipelines have as many batches */
    ls__type *type = type_of_split(&plan, d, together);
    return type ? make(s, &plan, false, count, inputs, type, steps_of_split(&plan, d, together))
                : NULL;
}

ls_dist_dataset *ls_distribute(ls_strategy *s, ls_dataset *d)
{
    ls__mode mode;
    if (ls__enter_cross("ls_distribute", s, &mode))
        return NULL;
    ls_dataset *out = ls__distribute("ls_distribute", s, d);
    ls__mode_pop(&mode);
    return out;
}

/* ---- a dataset for each pipeline ------------------------------------------------------------------ */

/* Steps that all pipelines together have: as many as the longest, or the shortest if only whole ones
 * count. */
static int64_t steps_of_each(const ls__plan *plan, ls_dataset *const *inputs)
{
    const int r = ls__plan_each(plan);
    int64_t least = LS_INFINITE, most = 0;
    for (int p = 0; p < plan->pipelines; p++) {
        const int64_t n = inputs[p]->cardinality;
        if (n == LS_UNKNOWN)
            return LS_UNKNOWN;
        const int64_t up = n < 0 ? n : n / r + (n % r != 0), down = n < 0 ? n : n / r;
        most = most < 0 || up < 0 ? LS_INFINITE : up > most ? up : most;
        least = down < 0 ? least : least < 0 || down < least ? down : least;
    }
    return plan->whole_steps ? least : most;
}

static ls__type *common_type(const char *who, int count, ls_dataset *const *inputs)
{
    ls__type *type = ls__type_ref(inputs[0]->type);
    for (int p = 1; p < count && type; p++) {
        ls__type *both = NULL;
        if (ls__type_common(who, type, inputs[p]->type, &both))
            both = NULL;
        ls__type_unref(type);
        type = both;
    }
    return type;
}

ls_dataset *ls__distribute_each(const char *who, ls_strategy *s, ls_dataset **inputs, bool called)
{
    ls__plan plan = plan_of(s, LS__CUT_NONE);
    ls__type *type = common_type(who, plan.pipelines, inputs);
    if (!type)
        return NULL;
    const int64_t steps = steps_of_each(&plan, inputs);
    if (plan.replicas > 1 && steps != LS_INFINITE && !plan.whole_steps) { /* some may have none */
        ls__type *any = with_rows(type, -1);
        ls__type_unref(type);
        type = any;
    }
    return type ? make(s, &plan, called, plan.pipelines, inputs, type, steps) : NULL;
}

ls_input_context ls__input_context(const ls_strategy *s, int pipeline)
{
    return (ls_input_context){ .num_input_pipelines = s->pipelines ? s->pipelines : 1,
                               .input_pipeline_id = pipeline,
                               .num_replicas_in_sync = s->replicas };
}

/* One call of the program's function: a failure names its pipeline. */
static ls_dataset *ask(const ls_strategy *s, ls_input_fn fn, void *user, int pipeline)
{
    const ls_input_context context = ls__input_context(s, pipeline);
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_dataset *d = fn(&context, user);
    ls_status st = LS_OK;
    if (!d && !ls_error_pending())
        st = ls__hint(ls__fail(LS_INVALID, "the function returned NULL"),
                      "it returns the dataset of its pipeline");
    else if (d)
        st = ls__check_dataset("the function's result", d);
    return ls__error_scope_close(&scope, st, "ls_distribute_from_function, pipeline %d", pipeline)
               ? NULL
               : d;
}

static ls_dataset *from_function(ls_strategy *s, ls_input_fn fn, void *user)
{
    const int count = s->pipelines ? s->pipelines : 1;
    ls_dataset **inputs = ls__frame_alloc(sizeof(ls_dataset *) * (size_t)count);
    if (!fn) {
        ls__fail(LS_INVALID, "ls_distribute_from_function: the function is NULL");
        return NULL;
    }
    for (int p = 0; inputs && p < count; p++)
        if (!(inputs[p] = ask(s, fn, user, p)))
            return NULL;
    return inputs ? ls__distribute_each("ls_distribute_from_function", s, inputs, false) : NULL;
}

ls_dist_dataset *ls_distribute_from_function(ls_strategy *s, ls_input_fn fn, void *user)
{
    ls__mode mode;
    if (ls__enter_cross("ls_distribute_from_function", s, &mode))
        return NULL;
    ls_dataset *out = from_function(s, fn, user);
    ls__mode_pop(&mode);
    return out;
}
