/*
 * The iterators of r2.0, and what else programs of that time call: ls_make_dataset_iterator,
 * ls_make_input_fn_iterator with its functions that are called for each replica, ls_make_numpy_dataset.
 */
#include "data/callback.h"
#include "data/distribute.h"
#include "strategy/context.h"
#include "strategy/strategy.h"
#include "tensor/tensor.h"

/* ---- a function as a dataset: each element is a call; where it is nobody knows ---------------- */

typedef struct call_options {
    ls_get_next next;
    void *state;
} call_options;

typedef struct call_state {
    int64_t calls;
    ls_value *first; /* element: what the others must be like; kept */
} call_state;

static ls_status open(ls__it *it)
{
    it->words = 1;
    return LS_OK;
}

static void close(ls__it *it)
{
    ls_value_drop(((call_state *)it->state)->first);
}

static ls_status take(call_state *s, ls_value *value, ls__chunk *out)
{
    if (s->first) {
        ls_status st = ls_same_structure(s->first, value);
        if (st)
            return st;
    } else if (!(s->first = ls_value_keep(value))) {
        return ls_error_pending();
    }
    ls_status st = ls__chunk_room(out, 1, ls_leaf_count(value), 1);
    if (!st)
        st = ls__chunk_put(out, value, false);
    if (!st) {
        out->structure = s->first;
        *ls__chunk_after(out, 0) = s->calls;
    }
    return st;
}

static ls_status pull(ls__it *it, int most, ls__chunk *out)
{
    call_state *s = it->state;
    const call_options *o = it->dataset->options;
    const int64_t number = s->calls++;
    ls__callback call;
    ls_value *value = NULL;
    (void)most;
    ls_status st = ls__callback_open(&call, it, number);
    if (st)
        return st;
    st = o->next(o->state, &value);
    if (!st && !value)
        st = ls__callback_failed();
    if (!st)
        st = take(s, value, out);
    const bool end = st == LS_END && !ls_error_pending(); /* which is no error */
    st = ls__callback_close(&call, end ? LS_OK : st, "ls_make_input_fn_iterator", number);
    return st || !end ? st : LS_END;
}

static void words_now(ls__it *it, int64_t *words)
{
    words[0] = ((call_state *)it->state)->calls;
}

static ls_status cannot(void)
{
    return ls__hint(ls__fail(LS_UNSUPPORTED, "where the functions of ls_make_input_fn_iterator are "
                                             "cannot be saved"),
                    "give datasets; ls_generate makes one of functions that save and load");
}

static ls_status save(ls__it *it, const int64_t *words, ls__bytes_out *to)
{
    (void)it, (void)words, (void)to;
    return cannot();
}

static ls_status load(ls__it *it, ls__bytes_in *from)
{
    (void)it, (void)from;
    return cannot();
}

static const ls__stage call_stage = { .name = "call",
                                      .state_bytes = sizeof(call_state),
                                      .open = open,
                                      .close = close,
                                      .pull = pull,
                                      .words_now = words_now,
                                      .save = save,
                                      .load = load };

static ls_dataset *calls_of(const ls_input_source *source)
{
    ls__dataset_draft draft = { .stage = &call_stage, .cardinality = LS_UNKNOWN };
    call_options *o = ls__dataset_options(&draft, sizeof *o, NULL);
    if (!o)
        return NULL;
    *o = (call_options){ source->next, source->state };
    draft.type = ls__type_unknown();
    return ls__dataset_new(&draft, "call");
}

/* ---- ls_make_input_fn_iterator ------------------------------------------------------------------ */

static ls_status check_source(const ls_input_source *source)
{
    if (source->dataset && source->next)
        return ls__fail(LS_INVALID, "the input function gave both, a dataset and a function");
    if (!source->dataset && !source->next)
        return ls__hint(ls__fail(LS_INVALID, "the input function gave neither a dataset nor a "
                                             "function"),
                        "set .dataset or .next of what it gets");
    return source->dataset ? ls__check_dataset("the input function's result", source->dataset)
                           : LS_OK;
}

/* One call of the program's function: a failure names its pipeline. */
static ls_dataset *ask(const ls_strategy *s, ls_input_source_fn fn, void *user, int pipeline,
                       bool *called)
{
    const ls_input_context context = ls__input_context(s, pipeline);
    ls_input_source source = { 0 };
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_status st = fn(&context, user, &source);
    if (st && !ls_error_pending())
        ls__fail(st, "the input function failed");
    if (!st)
        st = check_source(&source);
    st = ls__error_scope_close(&scope, st, "ls_make_input_fn_iterator, pipeline %d", pipeline);
    if (st)
        return NULL;
    *called |= source.next != NULL;
    return source.next ? calls_of(&source) : source.dataset;
}

static ls_iterator *input_fn_iterator(ls_strategy *s, ls_input_source_fn fn, void *user,
                                      ls_input_replication mode)
{
    const char *who = "ls_make_input_fn_iterator";
    const int count = s->pipelines ? s->pipelines : 1;
    bool called = false;
    if (mode != LS_INPUT_PER_WORKER) {
        ls__hint(ls__fail(LS_INVALID, "%s: replication mode %d is not supported", who, (int)mode),
                 "LS_INPUT_PER_WORKER calls the function once for each pipeline");
        return NULL;
    }
    if (!fn) {
        ls__fail(LS_INVALID, "%s: the function is NULL", who);
        return NULL;
    }
    ls_dataset **inputs = ls__frame_alloc(sizeof(ls_dataset *) * (size_t)count);
    for (int p = 0; inputs && p < count; p++)
        if (!(inputs[p] = ask(s, fn, user, p, &called)))
            return NULL;
    ls_dataset *d = inputs ? ls__distribute_each(who, s, inputs, called) : NULL;
    return d ? ls__iterator_new(d) : NULL;
}

ls_iterator *ls_make_input_fn_iterator(ls_strategy *s, ls_input_source_fn fn, void *user,
                                       ls_input_replication mode)
{
    ls__mode context;
    if (ls__enter_cross("ls_make_input_fn_iterator", s, &context))
        return NULL;
    ls_iterator *it = input_fn_iterator(s, fn, user, mode);
    ls__mode_pop(&context);
    return it;
}

/* ---- the others ----------------------------------------------------------------------------------- */

ls_iterator *ls_make_dataset_iterator(ls_strategy *s, ls_dataset *d)
{
    ls__mode mode;
    if (ls__enter_cross("ls_make_dataset_iterator", s, &mode))
        return NULL;
    ls_dataset *distributed = ls__distribute("ls_make_dataset_iterator", s, d);
    ls_iterator *it = distributed ? ls__iterator_new(distributed) : NULL;
    ls__mode_pop(&mode);
    return it;
}

ls_dataset *ls_make_numpy_dataset(ls_strategy *s, ls_value *arrays)
{
    ls__mode mode;
    if (ls__enter_cross("ls_make_numpy_dataset", s, &mode))
        return NULL;
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_dataset *d = ls_slices(arrays);
    if (ls__error_scope_close(&scope, LS_OK, "ls_make_numpy_dataset"))
        d = NULL;
    ls__mode_pop(&mode);
    return d;
}

int64_t ls_per_replica_batch_size(const ls_input_context *c, int64_t global_batch)
{
    if (!c || c->num_replicas_in_sync < 1) {
        ls__fail(LS_INVALID, "ls_per_replica_batch_size: %s",
                 c ? "the context has no replicas" : "the context is NULL");
        return 0;
    }
    if (global_batch < 1 || global_batch % c->num_replicas_in_sync != 0) {
        ls__hint(ls__fail(LS_INVALID,
                          "ls_per_replica_batch_size: a global batch of %lld is not divisible by "
                          "%d replicas",
                          (long long)global_batch, c->num_replicas_in_sync),
                 "choose a multiple of the number of replicas");
        return 0;
    }
    return global_batch / c->num_replicas_in_sync;
}
