/*
 * ls_repeat: the input again and again, each time opened anew with an iteration number of its own.
 * Words: [epoch][those of the input]; the epoch e as -1 - e while it has given no element: for ever ends
 * with an epoch that has none. So many times are so many, whatever is in them: another epoch of a
 * generator may have some.
 *
 * Elements of an old epoch may be on their way still when the next begins. An input that is not
 * light is asked for their positions, so it stays until release() says that none is left.
 */
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "data/iterator.h"
#include "data/structure.h"

typedef struct repeat_options {
    int64_t times; /* -1: for ever */
} repeat_options;

typedef struct past {
    ls__it *input;
    int64_t epoch;
    struct past *older;
} past;

typedef struct repeat_state {
    ls__it *input; /* of this epoch */
    int64_t epoch;
    bool given; /* an element of this epoch */
    past *past; /* the newest first */
    ls__structure structure;
} repeat_state;

/* ---- epochs -------------------------------------------------------------------------------- */

/* Another number for every epoch of every iteration. Small ones can be read; with repeats in
 * repeats they grow, and then they are mixed, above all that can be read. */
static uint64_t iteration_of(uint64_t outer, int64_t epoch)
{
    const uint64_t mixed = (uint64_t)1 << 62, e = (uint64_t)epoch;
    if (outer == 0)
        return e;
    if (outer < (uint64_t)1 << 30 && e < (uint64_t)1 << 32)
        return outer << 32 | e;
    return mixed | (ls__draw_key(outer, LS__DRAW_DATASET, 0, epoch) & (mixed - 1));
}

static ls_status open_epoch(const ls__it *it, int64_t epoch, ls__it **out)
{
    ls__opening how = it->how;
    how.iteration = iteration_of(it->how.iteration, epoch);
    ls_status st = ls__it_open(it->dataset->inputs[0], &how, out);
    if (st || !((repeat_state *)it->state)->input)
        return st;
    if ((*out)->words + 1 == it->words && (*out)->light == it->light)
        return LS_OK;
    ls__it_close(*out);
    *out = NULL;
    return ls__fail(LS_STATE, "ls_repeat: epoch %lld of %s has other positions than the first",
                    (long long)epoch, it->dataset->inputs[0]->stage->name);
}

/* Another epoch's iterator takes the place of this one's. */
static void move_to(repeat_state *s, ls__it *input, int64_t epoch)
{
    s->input = input;
    s->epoch = epoch;
    s->given = false;
    s->structure.seen = NULL; /* its address may be another's now */
}

static ls_status next_epoch(const ls__it *it)
{
    repeat_state *s = it->state;
    past *p = it->light ? NULL : malloc(sizeof *p);
    if (!it->light && !p)
        return ls__fail_memory("ls_repeat", sizeof *p);
    ls__it *next = NULL;
    ls_status st = open_epoch(it, s->epoch + 1, &next);
    if (st) {
        free(p);
        return st;
    }
    if (p) {
        *p = (past){ s->input, s->epoch, s->past };
        s->past = p;
    } else {
        ls__it_close(s->input);
    }
    move_to(s, next, s->epoch + 1);
    return LS_OK;
}

/* Those before this epoch go. */
static void forget_before(repeat_state *s, int64_t epoch)
{
    past **link = &s->past;
    while (*link && (*link)->epoch >= epoch)
        link = &(*link)->older;
    while (*link) {
        past *p = *link;
        *link = p->older;
        ls__it_close(p->input);
        free(p);
    }
}

static int64_t epoch_of(int64_t word)
{
    return word < 0 ? -1 - word : word;
}

static ls__it *input_of(const repeat_state *s, int64_t epoch)
{
    if (epoch == s->epoch)
        return s->input;
    for (const past *p = s->past; p; p = p->older)
        if (p->epoch == epoch)
            return p->input;
    return NULL;
}

/* ---- the stage ------------------------------------------------------------------------------- */

static ls_status open(ls__it *it)
{
    repeat_state *s = it->state;
    ls__it *first = NULL;
    ls_status st = open_epoch(it, 0, &first);
    if (st)
        return st;
    move_to(s, first, 0);
    it->words = 1 + first->words;
    it->light = first->light;
    return LS_OK;
}

static void close(ls__it *it)
{
    repeat_state *s = it->state;
    forget_before(s, INT64_MAX);
    ls__it_close(s->input);
    ls__structure_free(&s->structure);
}

static ls_status pull(ls__it *it, int most, ls__chunk *out)
{
    repeat_state *s = it->state;
    const int64_t times = ((const repeat_options *)it->dataset->options)->times;
    if (times == 0 || it->dataset->cardinality == 0) /* however often */
        return LS_END;
    for (;;) {
        out->lead++;
        ls_status st = ls__it_pass(it, s->input, most, out);
        out->lead--;
        if (!st) {
            for (int i = 0; i < out->n; i++)
                ls__chunk_after(out, i)[0] = s->epoch;
            s->given = true;
            return ls__structure_settle("ls_repeat", it, &s->structure, out);
        }
        if (st != LS_END || (times < 0 && !s->given) || s->epoch == times - 1)
            return st;
        st = next_epoch(it);
        if (st)
            return st;
    }
}

static void words_now(ls__it *it, int64_t *words)
{
    repeat_state *s = it->state;
    words[0] = s->given ? s->epoch : -1 - s->epoch;
    ls__it_words(s->input, words + 1);
}

static bool has_epoch(const ls__it *it, int64_t epoch)
{
    const int64_t times = ((const repeat_options *)it->dataset->options)->times;
    return times < 0 ? epoch < INT64_MAX : epoch < times || epoch == 0;
}

static ls_status stand_in(ls__it *it, int64_t word)
{
    repeat_state *s = it->state;
    const int64_t epoch = epoch_of(word);
    if (!has_epoch(it, epoch))
        return ls__position_corrupt();
    if (epoch != s->epoch) {
        ls__it *there = NULL;
        ls_status st = open_epoch(it, epoch, &there);
        if (st)
            return st;
        ls__it_close(s->input);
        move_to(s, there, epoch);
    }
    s->given = word >= 0;
    return LS_OK;
}

static ls_status go(ls__it *it, const int64_t *words)
{
    ls_status st = stand_in(it, words[0]);
    return st ? st : ls__it_go(((repeat_state *)it->state)->input, words + 1);
}

static ls_status save(ls__it *it, const int64_t *words, ls__bytes_out *to)
{
    ls__it *input = input_of(it->state, epoch_of(words[0]));
    if (!input)
        return ls__position_corrupt();
    ls__put_int(to, words[0]);
    return ls__it_save(input, words + 1, to);
}

static ls_status load(ls__it *it, ls__bytes_in *from)
{
    int64_t word;
    ls_status st = ls__get_int(from, INT64_MIN, INT64_MAX, &word);
    if (!st)
        st = stand_in(it, word);
    return st ? st : ls__it_load(((repeat_state *)it->state)->input, from);
}

static void release(ls__it *it, const int64_t *words)
{
    repeat_state *s = it->state;
    ls__it *input = input_of(s, epoch_of(words[0]));
    forget_before(s, epoch_of(words[0]));
    if (input)
        ls__it_release(input, words + 1);
}

static const ls__stage repeat_stage = { .name = "repeat",
                                        .state_bytes = sizeof(repeat_state),
                                        .open = open,
                                        .close = close,
                                        .pull = pull,
                                        .words_now = words_now,
                                        .go = go,
                                        .save = save,
                                        .load = load,
                                        .release = release };

/* ---- making --------------------------------------------------------------------------------- */

ls_dataset *ls_repeat(ls_dataset *d, int64_t times)
{
    if (ls__check_dataset("ls_repeat", d) || ls__check_number("ls_repeat", "times", times, -1))
        return NULL;
    ls__dataset_draft draft = { .stage = &repeat_stage,
                                .n_inputs = 1,
                                .inputs = &d,
                                .cardinality = ls__cardinality_times(
                                    d->cardinality, times < 0 ? LS_INFINITE : times) };
    repeat_options *o = ls__dataset_options(&draft, sizeof *o, NULL);
    if (!o)
        return NULL;
    o->times = times;
    draft.type = ls__type_ref(d->type);
    return ls__dataset_new(&draft, "repeat %lld", (long long)times);
}
