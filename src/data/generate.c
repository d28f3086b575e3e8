/*
 * ls_generate: elements that a program makes. Words: [elements and failures so far].
 *
 * What a generator's state was at a count only the program can tell, and only then: so it is asked
 * after each of them, and what it said is kept until no position before it will be asked for.
 * At count 0 there is nothing to tell: the state is what `open` makes.
 *
 * A pull gives one element, whatever is asked for: how long the next one takes, or what it waits for, only
 * the program knows.
 */
#include <stdlib.h>

#include "data/callback.h"
#include "data/iterator.h"
#include "data/marks.h"
#include "data/nest.h"
#include "tensor/tensor.h"
#include "tensor/value.h"

typedef struct generate_options {
    ls_generator g; /* without its spec, which is the dataset's type */
} generate_options;

typedef struct generate_state {
    void *state; /* the program's */
    bool opened, ended;
    int64_t count;            /* calls of `next`: elements and failures */
    ls_value *structure;      /* kept: of the elements, when the type does not tell */
    ls__marks marks;          /* what `save` said */
    ls__error_record unsaved; /* why it said nothing, the last time */
} generate_state;

/* ---- an element ------------------------------------------------------------------------------- */

/* The first element shows the structure of all, if nobody has told it. */
static ls_status know_structure(generate_state *s, const ls_value *value)
{
    if (s->structure)
        return ls_same_structure(s->structure, value);
    s->structure = ls__nest_keep(value);
    return s->structure ? LS_OK : ls_error_pending();
}

static ls_status check_type(const ls__it *it, ls__chunk *out, const ls_value *value)
{
    const ls__spec *specs[256];
    for (int k = 0; k < out->leaves; k++)
        specs[k] = &ls__chunk_datum(out, 0, k)->spec;
    ls_status st = ls__type_check("what next gave", it->dataset->type, value, out->leaves, specs);
    if (st)
        ls__chunk_clear(out);
    return st;
}

static ls_status put(ls__it *it, ls__chunk *out, const ls_value *value)
{
    generate_state *s = it->state;
    const ls_value *known = ls__type_structure(it->dataset->type);
    ls_status st = ls__check_value("what next gave", value);
    if (!st)
        st = known ? ls_same_structure(known, value) : know_structure(s, value);
    if (!st)
        st = ls__chunk_room(out, 1, ls_leaf_count(value), 1);
    if (st)
        return st;
    out->structure = known ? known : s->structure;
    st = ls__chunk_put(out, value, false);
    if (!st)
        st = check_type(it, out, value);
    if (!st)
        *ls__chunk_after(out, 0) = ++s->count;
    return st;
}

/* LS_END is no failure, unless an error was left behind. */
static ls_status next(ls__it *it, ls__chunk *out)
{
    generate_state *s = it->state;
    const ls_generator *g = &((const generate_options *)it->dataset->options)->g;
    const int64_t number = s->count;
    ls__callback call;
    ls_status st = ls__callback_open(&call, it, number);
    if (st)
        return st;
    ls_value *value = NULL;
    st = g->next(s->state, &value);
    const bool end = st == LS_END;
    if (!st && !value)
        st = ls_error_pending() ? ls_error_pending()
                                : ls__fail(LS_INVALID, "next gave LS_OK and no value");
    if (!st && !ls_error_pending())
        st = put(it, out, value);
    st = ls__callback_close(&call, end ? LS_OK : st, "ls_generate", number);
    if (st && s->count > number) { /* it left an error behind: the element does not count */
        s->count = number;
        ls__chunk_clear(out);
    }
    return st ? st : end ? LS_END : LS_OK;
}

/* ---- its position ------------------------------------------------------------------------------ */

static ls_status ask(ls__it *it, const ls_generator *g)
{
    generate_state *s = it->state;
    ls__callback call;
    ls_status st = ls__callback_open(&call, it, s->count);
    if (st)
        return st;
    const ls_tensor *t = g->save(s->state);
    if (!t)
        st = ls__callback_failed();
    else if (ls__check_tensor("what save gave", "it", t))
        st = ls_error_pending();
    else if (t->spec.dtype != LS_U8 || t->sparse_rows)
        st = ls__fail(LS_SHAPE, "save gave %s, wants bytes: u8", ls_describe(t));
    else
        st = ls__marks_add(&s->marks, s->count, ls__data(t), ls__spec_bytes(&t->spec));
    return ls__callback_close(&call, st, "ls_generate, save", s->count);
}

/* That it cannot be saved does not lose the element: whoever wants to save it is told. */
static void mark(ls__it *it)
{
    generate_state *s = it->state;
    const ls_generator *g = &((const generate_options *)it->dataset->options)->g;
    if (!g->save)
        return;
    const size_t before = s->marks.bytes;
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ask(it, g);
    if (ls_error_pending())
        ls__error_take(&s->unsaved);
    ls__error_put(&scope.outer);
    ls__it_holds(it, (int64_t)(s->marks.bytes - before));
}

static ls_status save(ls__it *it, const int64_t *words, ls__bytes_out *to)
{
    generate_state *s = it->state;
    const generate_options *o = it->dataset->options;
    if (!o->g.save)
        return ls__hint(ls__fail(LS_UNSUPPORTED,
                                 "ls_position: a generator without save and load cannot be saved"),
                        "give ls_generate .save and .load");
    const ls__mark *m = ls__marks_find(&s->marks, words[0]);
    if (words[0] > 0 && (!m || m->at != words[0])) {
        ls__error_put(&s->unsaved);
        return s->unsaved.status
                   ? s->unsaved.status
                   : ls__fail(LS_STATE, "ls_generate: nothing is known of element %lld",
                              (long long)words[0]);
    }
    ls__put_int(to, words[0]);
    if (words[0] > 0)
        ls__put_bytes(to, m->data, m->bytes);
    return LS_OK;
}

static ls_status load_state(ls__it *it, const void *data, size_t bytes)
{
    generate_state *s = it->state;
    const generate_options *o = it->dataset->options;
    ls__callback call;
    ls_status st = ls__callback_open(&call, it, s->count);
    if (st)
        return st;
    int64_t size = (int64_t)bytes;
    const ls_tensor *saved = ls_from(LS_U8, 1, &size, data);
    st = saved ? o->g.load(s->state, saved) : ls_error_pending();
    return ls__callback_close(&call, st, "ls_generate, load", s->count);
}

static ls_status load(ls__it *it, ls__bytes_in *from)
{
    generate_state *s = it->state;
    const generate_options *o = it->dataset->options;
    const void *data;
    size_t bytes;
    ls_status st = ls__get_int(from, 0, INT64_MAX, &s->count);
    if (st || s->count == 0)
        return st;
    if (!o->g.load)
        return ls__hint(ls__fail(LS_UNSUPPORTED, "ls_seek: a generator without load"),
                        "give ls_generate the .save and .load that the position was saved with");
    st = ls__get_bytes(from, &data, &bytes);
    if (!st)
        st = load_state(it, data, bytes);
    if (!st)
        st = ls__marks_add(&s->marks, s->count, data, bytes);
    if (!st)
        ls__it_holds(it, (int64_t)s->marks.bytes);
    return st;
}

static void release(ls__it *it, const int64_t *words)
{
    generate_state *s = it->state;
    const size_t before = s->marks.bytes;
    ls__marks_release(&s->marks, words[0]);
    ls__it_holds(it, -(int64_t)(before - s->marks.bytes));
}

static void words_now(ls__it *it, int64_t *words)
{
    words[0] = ((generate_state *)it->state)->count;
}

/* ---- the stage ---------------------------------------------------------------------------------- */

static ls_status open(ls__it *it)
{
    generate_state *s = it->state;
    const ls_generator *g = &((const generate_options *)it->dataset->options)->g;
    it->words = 1;
    s->state = g->user;
    s->opened = true;
    if (!g->open)
        return LS_OK;
    s->opened = false;
    ls__callback call;
    ls_status st = ls__callback_open(&call, it, 0);
    if (st)
        return st;
    s->state = g->open(g->user, (int64_t)it->how.iteration);
    s->opened = s->state != NULL;
    if (!s->state)
        st = ls__callback_failed();
    return ls__callback_close(&call, st, "ls_generate, open", 0);
}

static void close(ls__it *it)
{
    generate_state *s = it->state;
    const ls_generator *g = &((const generate_options *)it->dataset->options)->g;
    ls__callback call;
    if (s->opened && g->close) {
        bool around = ls__callback_open(&call, it, s->count) == LS_OK;
        g->close(s->state);
        if (around)
            ls__callback_close(&call, LS_OK, "ls_generate, close", s->count);
    }
    ls__it_holds(it, -(int64_t)s->marks.bytes);
    ls__marks_clear(&s->marks);
    ls_value_drop(s->structure);
}

static ls_status pull(ls__it *it, int most, ls__chunk *out)
{
    generate_state *s = it->state;
    (void)most;
    if (s->ended)
        return LS_END;
    ls_status st = next(it, out);
    s->count += st && st != LS_END; /* a failure is an event like an element */
    if (st != LS_END)
        mark(it);
    s->ended = st == LS_END;
    return st;
}

#define GENERATES(...)                                                                             \
    {                                                                                              \
        .name = "generate", .state_bytes = sizeof(generate_state), .open = open, .close = close,   \
        .pull = pull, .words_now = words_now, .save = save, .load = load, .release = release,      \
        __VA_ARGS__                                                                                \
    }

static const ls__stage generate_stage = GENERATES(.flags = 0);
static const ls__stage without_open = GENERATES(.flags = LS__STAGE_ONE_STATE);

/* ---- making -------------------------------------------------------------------------------------- */

void ls_generator_init(ls_generator *options)
{
    if (options)
        *options = (ls_generator){ .size = sizeof *options };
}

static ls_status check_options(const ls_generator *o)
{
    if (!o)
        return ls__fail(LS_INVALID, "ls_generate: the options are NULL");
    if (o->size != sizeof *o)
        return ls__hint(ls__fail(LS_INVALID, "ls_generate: options of %zu bytes, wants %zu",
                                 o->size, sizeof *o),
                        "fill options with LS_GENERATOR(...), or with ls_generator_init first");
    if (!o->next)
        return ls__fail(LS_INVALID, "ls_generate: next is NULL");
    if (!o->save != !o->load)
        return ls__hint(ls__fail(LS_INVALID, "ls_generate: %s without %s",
                                 o->save ? "save" : "load", o->save ? "load" : "save"),
                        "give both, or none");
    return LS_OK;
}

ls_dataset *ls_generate(const ls_generator *options)
{
    if (check_options(options))
        return NULL;
    ls__dataset_draft draft = { .stage = options->open ? &generate_stage : &without_open,
                                .cardinality = LS_UNKNOWN };
    if (!options->spec)
        draft.type = ls__type_unknown();
    else if (ls__type_parse("ls_generate", options->spec, &draft.type))
        return NULL;
    generate_options *o = ls__dataset_options(&draft, sizeof *o, NULL);
    if (!o) {
        ls__type_unref(draft.type);
        return NULL;
    }
    o->g = *options;
    o->g.spec = NULL; /* it may go */
    return ls__dataset_new(&draft, "generate");
}
