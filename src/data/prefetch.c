/*
 * ls_prefetch: one thread pulls the input up to n elements ahead. Words: those of the input, so that
 * it does not matter for a position whether, or how far, somebody ran ahead.
 *
 * With patience it is pulled by who wants an element until that takes long: see ahead.h.
 *
 * Where there is no memory for all that a pull brought, its elements are given one by one: one that there
 * is still none for fails alone.
 */
#include <string.h>

#include "data/ahead.h"
#include "data/prefetch.h"
#include "os/clock.h"

/* Elements a pull, where elements are small and n is large: so many that locks cost nothing beside
 * them, so few that the first is not late. */
enum { MOST_AT_ONCE = 32 };

typedef struct prefetch_options {
    int64_t n;
    int64_t patience; /* nanoseconds: see ahead.h */
} prefetch_options;

typedef struct prefetch_state {
    ls__it *input;
    ls__ahead *ahead;
    ls__stop stop;
    ls__chunk left; /* of the input, to be given one by one */
    int next;       /* of these */
} prefetch_state;

/* False: no memory for one of them; what is borrowed yet is the input's still. */
static bool owns_all(ls__chunk *c)
{
    for (int i = 0; i < c->n * c->leaves; i++)
        if (ls__datum_own(&c->data[i]))
            return false;
    return true;
}

static ls_status take_left(ls__it *it, ls__turn *turn)
{
    prefetch_state *s = it->state;
    const int i = s->next++;
    turn->none_lost = false;
    memcpy(turn->after, ls__chunk_after(&s->left, i), (size_t)it->words * sizeof *turn->after);
    ls_status st = ls__chunk_room(&turn->out, 1, s->left.leaves, it->words);
    return st ? st : ls__chunk_move(&turn->out, &s->left, i);
}

static ls_status take(ls__it *it, int most, ls__turn *turn)
{
    prefetch_state *s = it->state;
    if (s->next < s->left.n)
        return take_left(it, turn);
    ls_status st = ls__it_pull(s->input, most, &turn->out);
    if (st)
        ls__it_words(s->input, turn->after);
    turn->none_lost = s->input->none_lost;
    if (st || owns_all(&turn->out))
        return st;
    ls_error(); /* is told with the element, if there is no memory then */
    const ls__chunk empty = s->left;
    s->left = turn->out;
    turn->out = empty;
    s->next = 0;
    return take_left(it, turn);
}

static void forget(prefetch_state *s)
{
    ls__ahead_flush(s->ahead);
    ls__chunk_clear(&s->left);
    s->next = 0;
}

/* ---- the stage ------------------------------------------------------------------------------ */

static ls_status open(ls__it *it)
{
    prefetch_state *s = it->state;
    const prefetch_options *o = it->dataset->options;
    const ls__ahead_plan plan = { .threads = o->n > 0,
                                  .room = o->n,
                                  .at_once = MOST_AT_ONCE,
                                  .name = "ls_prefetch",
                                  .patience = o->patience,
                                  .stop = &s->stop,
                                  .take = take };
    if (plan.threads > 0)
        ls__ahead_guard(it, &s->stop);
    ls_status st = ls__it_open_input(it, 0, &s->input);
    return st ? st : ls__ahead_open(it, s->input, &plan, &s->ahead);
}

static void close(ls__it *it)
{
    prefetch_state *s = it->state;
    if (!ls__ahead_close(s->ahead))
        return;
    ls__chunk_free(&s->left);
    ls__it_close(s->input);
}

static ls_status pull(ls__it *it, int most, ls__chunk *out)
{
    prefetch_state *s = it->state;
    if (ls__ahead_goes(s->ahead))
        return ls__ahead_pull(s->ahead, most, out);
    const int64_t before = ls__now();
    ls_status st = ls__it_pass(it, s->input, most, out);
    ls__ahead_took(s->ahead, ls__now() - before);
    return st;
}

static void words_now(ls__it *it, int64_t *words)
{
    prefetch_state *s = it->state;
    if (!ls__ahead_words(s->ahead, words))
        ls__it_words(s->input, words);
}

static ls_status go(ls__it *it, const int64_t *words)
{
    prefetch_state *s = it->state;
    forget(s);
    return ls__it_go(s->input, words);
}

static ls_status save(ls__it *it, const int64_t *words, ls__bytes_out *to)
{
    prefetch_state *s = it->state;
    ls_status st = ls__ahead_enter(s->ahead);
    if (st)
        return st;
    st = ls__it_save(s->input, words, to);
    ls__ahead_leave(s->ahead);
    return st;
}

static ls_status load(ls__it *it, ls__bytes_in *from)
{
    prefetch_state *s = it->state;
    forget(s);
    return ls__it_load(s->input, from);
}

static void release(ls__it *it, const int64_t *words)
{
    ls__ahead_release(((prefetch_state *)it->state)->ahead, words);
}

static const ls__stage prefetch_stage = { .name = "prefetch",
                                          .state_bytes = sizeof(prefetch_state),
                                          .open = open,
                                          .close = close,
                                          .pull = pull,
                                          .words_now = words_now,
                                          .go = go,
                                          .save = save,
                                          .load = load,
                                          .release = release,
                                          .flags = LS__STAGE_HANDS_ON };

ls_dataset *ls__prefetch_patiently(ls_dataset *d, int64_t n, int64_t patience)
{
    if (ls__check_dataset("ls_prefetch", d) || ls__check_number("ls_prefetch", "n", n, 0))
        return NULL;
    ls__dataset_draft draft = {
        .stage = &prefetch_stage, .n_inputs = 1, .inputs = &d, .cardinality = d->cardinality
    };
    prefetch_options *o = ls__dataset_options(&draft, sizeof *o, NULL);
    if (!o)
        return NULL;
    *o = (prefetch_options){ n, patience };
    draft.type = ls__type_ref(d->type);
    return ls__dataset_new(&draft, "prefetch"); /* n changes no element and no position */
}

ls_dataset *ls_prefetch(ls_dataset *d, int64_t n)
{
    return ls__prefetch_patiently(d, n, 0);
}
