/*
 * ls_map: a user's function on every element, on the thread that pulls or on several. Words: [elements of
 * the input so far][those of the input].
 *
 * The structure of results is what the first of this iterator has; threads begin when it is known, so
 * that "the first" does not depend on who was faster. An element that failed is one, too: the numbers
 * of those behind it, and so what they draw, do not depend on how the function fared.
 */
#include <string.h>

#include "data/ahead.h"
#include "data/callback.h"
#include "data/first.h"
#include "os/topology.h"
#include "tensor/value.h"

enum { MOST_PARALLEL = 1024 };

typedef struct map_options {
    ls_element_fn fn;
    void *user;
    int parallel;
} map_options;

typedef struct map_state {
    ls__it *input;
    ls__ahead *ahead;
    ls__stop stop;
    ls__type *first; /* element's; NULL: there was none */
    int64_t number;  /* of the next element */
    ls__turn turn;   /* of the thread that pulls */
} map_state;

/* ---- an element --------------------------------------------------------------------------- */

static ls_status take(ls__it *it, int most, ls__turn *turn)
{
    map_state *s = it->state;
    (void)most;
    ls_status st = ls__it_pull(s->input, 1, &turn->in);
    turn->number = s->number;
    turn->none_lost = s->input->none_lost;
    s->number += st != LS_END && !turn->none_lost;
    turn->after[0] = s->number;
    if (st)
        ls__it_words(s->input, turn->after + 1);
    else
        memcpy(turn->after + 1, ls__chunk_after(&turn->in, 0),
               (size_t)s->input->words * sizeof *turn->after);
    return st ? st : ls__chunk_own(&turn->in);
}

/* What the function gave, out of its frame and as it must be. */
static ls_status put(ls__it *it, ls__turn *turn, const ls_value *result)
{
    map_state *s = it->state;
    ls__chunk *out = &turn->out;
    const ls__spec *specs[256]; /* ls__chunk_put takes no more */
    ls_status st = ls__check_value("the result", result);
    if (!st)
        st = ls__chunk_room(out, 1, ls_leaf_count(result), it->words);
    if (!st)
        st = ls__chunk_put(out, result, it->later);
    if (st)
        return st;
    for (int k = 0; k < out->leaves; k++)
        specs[k] = &ls__chunk_datum(out, 0, k)->spec;
    st = ls__type_check("not as .spec says", it->dataset->type, result, out->leaves, specs);
    if (!st)
        st = ls__first_check(&s->first, result, out, 0);
    if (st)
        return st;
    out->structure = ls__type_structure(s->first);
    memcpy(ls__chunk_after(out, 0), turn->after, (size_t)it->words * sizeof *turn->after);
    return LS_OK;
}

static ls_status work(ls__it *it, ls__turn *turn)
{
    const map_options *o = it->dataset->options;
    ls__callback call;
    ls_status st = ls__callback_open(&call, it, turn->number);
    if (st)
        return st;
    ls_value *element = ls__element_value(&turn->in, 0);
    ls_value *result = element ? o->fn(element, o->user) : NULL;
    st = result ? put(it, turn, result) : ls__callback_failed();
    st = ls__callback_close(&call, st, "ls_map", turn->number);
    if (st)
        ls__chunk_clear(&turn->out);
    ls__chunk_clear(&turn->in);
    return st;
}

/* ---- the stage ------------------------------------------------------------------------------ */

static ls_status open(ls__it *it)
{
    map_state *s = it->state;
    const map_options *o = it->dataset->options;
    const ls__ahead_plan plan = { .threads = o->parallel - 1,
                                  .room = 2 * o->parallel,
                                  .at_once = 1,
                                  .name = "ls_map",
                                  .stop = &s->stop,
                                  .take = take,
                                  .work = work };
    if (plan.threads > 0)
        ls__ahead_guard(it, &s->stop);
    ls_status st = ls__it_open_input(it, 1, &s->input);
    if (!st && !ls__turn_open(&s->turn, it->words))
        st = ls__fail_memory("ls_map", (size_t)it->words * sizeof *s->turn.after);
    return st ? st : ls__ahead_open(it, s->input, &plan, &s->ahead);
}

static void close(ls__it *it)
{
    map_state *s = it->state;
    if (ls__ahead_close(s->ahead))
        ls__it_close(s->input);
    ls__turn_free(&s->turn);
    ls__type_unref(s->first);
}

/* One element at a time: beside the function nothing else counts. */
static ls_status pull(ls__it *it, int most, ls__chunk *out)
{
    map_state *s = it->state;
    if (ls__ahead_goes(s->ahead) && s->first)
        return ls__ahead_pull(s->ahead, most, out);
    ls__turn_clear(&s->turn);
    ls_status st = take(it, 1, &s->turn);
    it->none_lost = s->turn.none_lost;
    if (!st)
        st = work(it, &s->turn);
    if (!st)
        st = ls__chunk_room(out, 1, s->turn.out.leaves, it->words);
    return st ? st : ls__chunk_move(out, &s->turn.out, 0);
}

static void words_now(ls__it *it, int64_t *words)
{
    map_state *s = it->state;
    if (ls__ahead_words(s->ahead, words))
        return;
    words[0] = s->number;
    ls__it_words(s->input, words + 1);
}

static ls_status go(ls__it *it, const int64_t *words)
{
    map_state *s = it->state;
    if (words[0] < 0)
        return ls__position_corrupt();
    ls__ahead_flush(s->ahead);
    s->number = words[0];
    return ls__it_go(s->input, words + 1);
}

static ls_status save(ls__it *it, const int64_t *words, ls__bytes_out *to)
{
    map_state *s = it->state;
    ls_status st = ls__ahead_enter(s->ahead);
    if (st)
        return st;
    ls__put_int(to, words[0]);
    st = ls__it_save(s->input, words + 1, to);
    ls__ahead_leave(s->ahead);
    return st;
}

static ls_status load(ls__it *it, ls__bytes_in *from)
{
    map_state *s = it->state;
    ls__ahead_flush(s->ahead);
    ls_status st = ls__get_int(from, 0, INT64_MAX, &s->number);
    return st ? st : ls__it_load(s->input, from);
}

static void release(ls__it *it, const int64_t *words)
{
    ls__ahead_release(((map_state *)it->state)->ahead, words + 1);
}

static const ls__stage map_stage = { .name = "map",
                                     .state_bytes = sizeof(map_state),
                                     .open = open,
                                     .close = close,
                                     .pull = pull,
                                     .words_now = words_now,
                                     .go = go,
                                     .save = save,
                                     .load = load,
                                     .release = release,
                                     .flags = LS__STAGE_HANDS_ON };

/* ---- making --------------------------------------------------------------------------------- */

void ls_map_init(ls_map_options *options)
{
    if (options)
        *options = (ls_map_options){ .size = sizeof *options };
}

static ls_status check(const ls_map_options *o)
{
    if (!o)
        return ls__hint(ls__fail(LS_INVALID, "ls_map: the options are NULL"),
                        "LS_MAP(.fn = ...) makes them");
    if (o->size != sizeof *o)
        return ls__hint(
            ls__fail(LS_INVALID, "ls_map: options of %zu bytes, wants %zu", o->size, sizeof *o),
            "fill options with LS_MAP(...), or with ls_map_init first");
    if (!o->fn)
        return ls__fail(LS_INVALID, "ls_map: .fn is NULL");
    if (o->parallel < -1 || o->parallel > MOST_PARALLEL)
        return ls__hint(ls__fail(LS_INVALID, "ls_map: .parallel is %d", o->parallel),
                        "1 to %d calls at once; 0 stands for 1, -1 for one a core", MOST_PARALLEL);
    return LS_OK;
}

ls_dataset *ls_map(ls_dataset *d, const ls_map_options *options)
{
    if (ls__check_dataset("ls_map", d) || check(options))
        return NULL;
    ls__dataset_draft draft = {
        .stage = &map_stage, .n_inputs = 1, .inputs = &d, .cardinality = d->cardinality
    };
    map_options *o = ls__dataset_options(&draft, sizeof *o, NULL);
    if (!o)
        return NULL;
    const int parallel = options->parallel < 0 ? ls__cores() : options->parallel;
    *o = (map_options){ options->fn, options->user, parallel > 1 ? parallel : 1 };
    if (!options->spec)
        draft.type = ls__type_unknown();
    else if (ls__type_parse("ls_map", options->spec, &draft.type))
        draft.type = NULL;
    return ls__dataset_new(&draft, "map"); /* threads change no element and no position */
}
