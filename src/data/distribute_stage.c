/*
 * The iterator of a distributed dataset: each source gets the batch, or the elements, that the next step
 * is made of; the plan says whether there is one.
 *
 * Words: for each source [turn][where its input is], and where a batch lasts for several steps and
 * some are left (turn > 0), where the input was before it: the batch is read again then. Where replicas
 * get an element each there are no turns: it is [events], as rows.h has it.
 *
 * When a source fails, those that have their part of the step keep it for the next pull, and so
 * does it.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "data/distribute_state.h"

/* ---- opening ------------------------------------------------------------------------------ */

static ls_status open_inputs(ls__it *it, ls__distributing *s)
{
    ls__opening how = it->how;
    ls_status st = LS_OK;
    how.later = true;
    it->light = true;
    for (int i = 0; i < s->count && !st; i++) {
        ls__source *own = &s->sources[i];
        st = ls__it_open(it->dataset->inputs[i], &how, &own->input);
        if (st)
            break;
        it->words += 1 + own->input->words;
        it->light &= own->input->light;
    }
    return st;
}

static ls_status open(ls__it *it)
{
    ls__distributing *s = it->state;
    s->count = it->dataset->n_inputs;
    s->sources = calloc((size_t)s->count, sizeof *s->sources);
    if (!s->sources)
        return ls__fail_memory("an iterator", (size_t)s->count * sizeof *s->sources);
    ls_status st = open_inputs(it, s);
    if (st)
        return st;
    s->stand = calloc((size_t)it->words + 1, sizeof *s->stand);
    if (!s->stand)
        return ls__fail_memory("an iterator", (size_t)it->words * sizeof *s->stand);
    int64_t *words = s->stand;
    for (int i = 0; i < s->count; i++) {
        ls__source *own = &s->sources[i];
        own->stand = words;
        ls__it_words(own->input, words + 1);
        words += 1 + own->input->words;
    }
    return LS_OK;
}

static void close(ls__it *it)
{
    ls__distributing *s = it->state;
    for (int i = 0; i < s->count && s->sources; i++) {
        ls__it_holds(it, -s->sources[i].bytes);
        ls__chunk_free(&s->sources[i].pulled);
        ls__chunk_free(&s->sources[i].held);
        ls__it_close(s->sources[i].input);
    }
    free(s->sources);
    free(s->stand);
}

/* ---- what the next step is made of ----------------------------------------------------------- */

static ls_status check_rows(const ls__chunk *batch, int64_t *rows)
{
    if (batch->leaves == 0)
        return ls__fail(LS_INVALID, "ls_distribute: an element without tensors has no rows");
    for (int k = 0; k < batch->leaves; k++) {
        const ls__spec *spec = &ls__chunk_datum(batch, 0, k)->spec;
        if (spec->rank == 0)
            return ls__hint(ls__fail(LS_INVALID,
                                     "ls_distribute: leaf %d of an element is %s, which has no "
                                     "rows to split",
                                     k, ls__spec_text(spec)),
                            "ls_batch makes batches of elements; distribute those");
        if (k > 0 && spec->dims[0] != *rows)
            return ls__hint(
                ls__fail(LS_SHAPE,
                         "ls_distribute: leaf %d of a batch has %lld rows, leaf 0 has %lld", k,
                         (long long)spec->dims[0], (long long)*rows),
                "what has no row for each element, such as the values of a .variable feature, is "
                "padded before or made in the step");
        *rows = spec->dims[0];
    }
    return LS_OK;
}

/* Pulls up to `most` elements to the end of those held; `room` of them fit. */
static ls_status pull_elements(ls__source *own, int most, int room)
{
    ls__chunk_clear(&own->pulled);
    ls_status st = ls__it_pull(own->input, most, &own->pulled);
    if (st == LS_END) {
        own->ended = true;
        return LS_OK;
    }
    own->events += st ? 1 : own->pulled.n;
    if (!st && own->held.n == 0)
        st = ls__chunk_room(&own->held, room, own->pulled.leaves, own->input->words);
    if (!st && own->held.leaves != own->pulled.leaves)
        st = ls__fail(LS_INVALID, "ls_next: an element of %d leaves among those of %d",
                      own->pulled.leaves, own->held.leaves);
    for (int i = 0; i < own->pulled.n && !st; i++)
        st = ls__chunk_move(&own->held, &own->pulled, i);
    return st;
}

/* What is held from one step to the next. */
static void let_go(ls__it *it, ls__source *own)
{
    ls__it_holds(it, -own->bytes);
    own->bytes = 0;
    ls__chunk_clear(&own->held);
}

static void hold(ls__it *it, ls__source *own)
{
    own->bytes = 0;
    for (int i = 0; i < own->held.n * own->held.leaves; i++)
        if (own->held.data[i].hold == LS__OWNED)
            own->bytes += (int64_t)own->held.data[i].bytes;
    ls__it_holds(it, own->bytes);
}

static ls_status fetch_batch(ls__it *it, ls__source *own, int pipeline)
{
    const ls__plan *plan = &ls__distribution_of(it)->plan;
    ls_status st = pull_elements(own, 1, 1);
    if (!st && !own->ended)
        st = check_rows(&own->held, &own->rows);
    if (!st && own->turn > 0 &&
        (own->ended || own->turn >= ls__plan_turns(plan, pipeline, own->rows)))
        st = ls__position_corrupt();
    if (st) { /* the next begins behind it */
        ls__chunk_clear(&own->held);
        own->turn = own->input->none_lost ? own->turn : 0;
        own->stand[0] = own->turn;
        ls__it_words(own->input, own->stand + 1);
    }
    hold(it, own);
    return st;
}

/* The step begins here, or where it began. */
static void stand_behind(ls__source *own)
{
    if (own->held.n == 0) {
        own->known = own->known > own->events ? own->known - own->events : 0;
        own->events = 0;
        ls__it_words(own->input, own->stand + 1);
    }
    own->stand[0] = own->events > own->known ? own->events : own->known;
}

/* What failed before the position that we were put at was reported then. */
static ls_status fetch_elements(ls__source *own, int want)
{
    ls__error_record outer;
    ls__error_take(&outer);
    ls_status st;
    bool news;
    do {
        ls_error();
        st = pull_elements(own, want - own->held.n, want);
        news = own->events > own->known || st == LS_NO_MEMORY;
        if (st)
            stand_behind(own);
    } while (st && !news);
    if (outer.status) {
        ls_error();
        ls__error_put(&outer);
    }
    return st;
}

static ls_status fetch(ls__it *it, ls__source *own, int pipeline)
{
    const ls__plan *plan = &ls__distribution_of(it)->plan;
    const int want = plan->cut == LS__CUT_NONE ? ls__plan_each(plan) : 1;
    ls_status st = LS_OK;
    while (own->held.n < want && !own->ended && !st)
        st = plan->cut == LS__CUT_NONE ? fetch_elements(own, want) : fetch_batch(it, own, pipeline);
    return st;
}

static unsigned says(const ls__distribution *o, const ls__source *own, int pipeline)
{
    if (o->plan.cut != LS__CUT_NONE)
        return own->held.n == 0 ? LS__SAYS_SHORT
                                : ls__plan_says(&o->plan, pipeline, own->rows, own->turn);
    unsigned all = ls__plan_says_elements(&o->plan, own->held.n);
    return o->called && (all & LS__SAYS_SHORT) ? all | LS__SAYS_END : all;
}

/* The step was given, or is none. */
static void advance(ls__it *it, ls__source *own, int pipeline)
{
    const ls__plan *plan = &ls__distribution_of(it)->plan;
    if (own->held.n == 0)
        return;
    if (plan->cut == LS__CUT_NONE || ++own->turn == ls__plan_turns(plan, pipeline, own->rows)) {
        memcpy(own->stand + 1, ls__chunk_after(&own->held, own->held.n - 1),
               (size_t)own->input->words * sizeof *own->stand);
        let_go(it, own);
        own->turn = 0;
        own->events = own->known = 0;
    }
    own->stand[0] = own->turn;
}

/* ---- pulling -------------------------------------------------------------------------------- */

static ls_status next_fate(ls__it *it, ls__step_fate *fate)
{
    const ls__distribution *o = ls__distribution_of(it);
    const ls__distributing *s = it->state;
    unsigned all = 0;
    for (int p = 0; p < o->plan.pipelines; p++) {
        ls_status st = fetch(it, ls__source_of(s, p), p);
        if (st)
            return st;
        all |= says(o, ls__source_of(s, p), p);
    }
    *fate = ls__plan_step(&o->plan, all, NULL, NULL);
    return LS_OK;
}

static ls_status pull(ls__it *it, int most, ls__chunk *out)
{
    ls__distributing *s = it->state;
    ls__step_fate fate = s->over ? LS__STEP_END : LS__STEP_SKIP;
    ls_status st = LS_OK;
    (void)most;
    while (fate == LS__STEP_SKIP && !st) {
        st = next_fate(it, &fate);
        if (!st && fate == LS__STEP_GIVE)
            st = ls__step_fill(it, out);
        else if (st)
            return st;
        for (int i = 0; i < s->count && fate != LS__STEP_END; i++)
            advance(it, &s->sources[i], i);
    }
    s->over = fate == LS__STEP_END;
    if (s->over)
        return LS_END;
    if (!st)
        memcpy(ls__chunk_after(out, 0), s->stand, (size_t)it->words * sizeof *s->stand);
    return st;
}

/* ---- positions ------------------------------------------------------------------------------- */

static void words_now(ls__it *it, int64_t *words)
{
    memcpy(words, ((ls__distributing *)it->state)->stand, (size_t)it->words * sizeof *words);
}

/* Its input has gone there. */
static ls_status stand_at(ls__it *it, ls__source *own, int64_t turn)
{
    const ls__plan *plan = &ls__distribution_of(it)->plan;
    const bool turns = plan->cut != LS__CUT_NONE;
    if (turn < 0 || (turns && turn >= (plan->cut == LS__CUT_OWN ? plan->pipelines : 1)))
        return ls__position_corrupt();
    let_go(it, own);
    own->ended = false;
    own->turn = turns ? (int)turn : 0;
    own->known = turns ? 0 : turn;
    own->events = 0;
    own->stand[0] = turn;
    ls__it_words(own->input, own->stand + 1);
    return LS_OK;
}

static ls_status go(ls__it *it, const int64_t *words)
{
    ls__distributing *s = it->state;
    ls_status st = LS_OK;
    s->over = false;
    for (int i = 0; i < s->count && !st; i++) {
        ls__source *own = &s->sources[i];
        st = ls__it_go(own->input, words + 1);
        if (!st)
            st = stand_at(it, own, words[0]);
        words += 1 + own->input->words;
    }
    return st;
}

static ls_status save(ls__it *it, const int64_t *words, ls__bytes_out *to)
{
    const ls__distributing *s = it->state;
    ls_status st = LS_OK;
    if (!words && s->count > 0) /* it could not even begin */
        return ls__fail(LS_STATE, "ls_position: the iterator has failed before its first element");
    for (int i = 0; i < s->count && !st; i++) {
        ls__put_int(to, words[0]);
        st = ls__it_save(s->sources[i].input, words + 1, to);
        words += 1 + s->sources[i].input->words;
    }
    return st;
}

static ls_status load(ls__it *it, ls__bytes_in *from)
{
    ls__distributing *s = it->state;
    ls_status st = LS_OK;
    s->over = false;
    for (int i = 0; i < s->count && !st; i++) {
        int64_t turn;
        st = ls__get_int(from, 0, INT_MAX, &turn);
        if (!st)
            st = ls__it_load(s->sources[i].input, from);
        if (!st)
            st = stand_at(it, &s->sources[i], turn);
    }
    return st;
}

static void release(ls__it *it, const int64_t *words)
{
    const ls__distributing *s = it->state;
    for (int i = 0; i < s->count; i++) {
        ls__it_release(s->sources[i].input, words + 1);
        words += 1 + s->sources[i].input->words;
    }
}

const ls__stage ls__distribute_stage = { .name = "distribute",
                                         .state_bytes = sizeof(ls__distributing),
                                         .open = open,
                                         .close = close,
                                         .pull = pull,
                                         .words_now = words_now,
                                         .go = go,
                                         .save = save,
                                         .load = load,
                                         .release = release,
                                         .value = ls__step_value,
                                         .flags = LS__STAGE_DISTRIBUTED };
