/*
 * ls_concatenate: one input, then the other. Words: [which][zeros][those of that input], as many zeros as
 * it has words less than the other. Both are open all the time, so either can be asked for positions
 * whichever is being read.
 */
#include <stdlib.h>
#include <string.h>

#include "data/iterator.h"
#include "data/structure.h"

typedef struct concatenate_state {
    ls__it *inputs[2];
    int which;
    int64_t *second; /* where input 1 begins: to where it returns when input 0 is gone back to */
    ls__structure structure;
} concatenate_state;

static ls_status open(ls__it *it)
{
    concatenate_state *s = it->state;
    ls_status st = LS_OK;
    for (int i = 0; i < 2 && !st; i++)
        st = ls__it_open(it->dataset->inputs[i], &it->how, &s->inputs[i]);
    if (st)
        return st;
    const int a = s->inputs[0]->words, b = s->inputs[1]->words;
    it->words = 1 + (a > b ? a : b);
    it->light = s->inputs[0]->light && s->inputs[1]->light;
    s->second = calloc((size_t)b + 1, sizeof *s->second);
    if (!s->second)
        return ls__fail_memory("ls_concatenate", (size_t)b * sizeof *s->second);
    ls__it_words(s->inputs[1], s->second);
    return LS_OK;
}

static void close(ls__it *it)
{
    concatenate_state *s = it->state;
    for (int i = 0; i < 2; i++)
        ls__it_close(s->inputs[i]);
    free(s->second);
    ls__structure_free(&s->structure);
}

/* Words in front of those of input `which`. */
static int front(const ls__it *it, int which)
{
    return it->words - ((const concatenate_state *)it->state)->inputs[which]->words;
}

static void say_which(const ls__it *it, int which, int64_t *words)
{
    memset(words, 0, (size_t)front(it, which) * sizeof *words);
    words[0] = which;
}

static ls_status pull(ls__it *it, int most, ls__chunk *out)
{
    concatenate_state *s = it->state;
    for (;;) {
        const int own = front(it, s->which);
        out->lead += own;
        ls_status st = ls__it_pass(it, s->inputs[s->which], most, out);
        out->lead -= own;
        if (st == LS_END && s->which == 0) {
            s->which = 1;
            continue;
        }
        for (int i = 0; i < out->n && !st; i++)
            say_which(it, s->which, ls__chunk_after(out, i));
        return st ? st : ls__structure_settle("ls_concatenate", it, &s->structure, out);
    }
}

static void words_now(ls__it *it, int64_t *words)
{
    concatenate_state *s = it->state;
    say_which(it, s->which, words);
    ls__it_words(s->inputs[s->which], words + front(it, s->which));
}

static ls_status go(ls__it *it, const int64_t *words)
{
    concatenate_state *s = it->state;
    if (words[0] < 0 || words[0] > 1)
        return ls__position_corrupt();
    const int before = s->which;
    s->which = (int)words[0];
    ls_status st = ls__it_go(s->inputs[s->which], words + front(it, s->which));
    return st || s->which == before ? st
           : s->which == 0          ? ls__it_go(s->inputs[1], s->second)
                                    : LS_OK;
}

static ls_status save(ls__it *it, const int64_t *words, ls__bytes_out *to)
{
    const int which = (int)words[0];
    ls__put_int(to, which);
    return ls__it_save(((concatenate_state *)it->state)->inputs[which], words + front(it, which),
                       to);
}

static ls_status load(ls__it *it, ls__bytes_in *from)
{
    concatenate_state *s = it->state;
    int64_t which;
    ls_status st = ls__get_int(from, 0, 1, &which);
    if (st)
        return st;
    s->which = (int)which;
    return ls__it_load(s->inputs[which], from);
}

static void release(ls__it *it, const int64_t *words)
{
    const int which = (int)words[0];
    ls__it_release(((concatenate_state *)it->state)->inputs[which], words + front(it, which));
}

static const ls__stage concatenate_stage = { .name = "concatenate",
                                             .state_bytes = sizeof(concatenate_state),
                                             .open = open,
                                             .close = close,
                                             .pull = pull,
                                             .words_now = words_now,
                                             .go = go,
                                             .save = save,
                                             .load = load,
                                             .release = release };

/* ---- making --------------------------------------------------------------------------------- */

static int64_t sum(int64_t a, int64_t b)
{
    int64_t both;
    if (a == LS_INFINITE || b == LS_INFINITE)
        return LS_INFINITE;
    if (a < 0 || b < 0)
        return LS_UNKNOWN;
    return __builtin_add_overflow(a, b, &both) ? LS_INFINITE : both;
}

ls_dataset *ls_concatenate(ls_dataset *a, ls_dataset *b)
{
    ls_dataset *inputs[] = { a, b };
    if (ls__check_dataset("ls_concatenate", a) || ls__check_dataset("ls_concatenate", b))
        return NULL;
    ls__dataset_draft draft = { .stage = &concatenate_stage,
                                .n_inputs = 2,
                                .inputs = inputs,
                                .cardinality = sum(a->cardinality, b->cardinality) };
    if (ls__type_common("ls_concatenate", a->type, b->type, &draft.type))
        return NULL;
    return ls__dataset_new(&draft, "concatenate");
}
