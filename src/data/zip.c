/*
 * ls_zip: inputs side by side. Words: [gaps][those of all inputs, one after the other].
 *
 * Inputs give chunks of any length, so each has its own, of which elements are taken as the others have
 * them. An element that an input has lost leaves a gap in its strand (bit i of the word: in that of input
 * i); when all strands have an element or a gap, the elements that are beside a gap go with it, so that
 * what follows is side by side again.
 */
#include <stdlib.h>
#include <string.h>

#include "data/iterator.h"
#include "data/structure.h"

typedef struct strand {
    ls__it *input;
    ls__chunk chunk;
    int next;       /* elements of the chunk before it are gone */
    int first_word; /* of its words in those of the zip */
} strand;

typedef struct zip_state {
    strand strands[LS__MOST_INPUTS];
    int64_t *now;  /* where the next pull begins */
    uint64_t gaps; /* its first word */
    const ls_value *structure;
    ls_value *kept; /* where the type does not know it */
} zip_state;

static ls_status open(ls__it *it)
{
    zip_state *s = it->state;
    it->light = true;
    it->words = 1;
    for (int i = 0; i < it->dataset->n_inputs; i++) {
        strand *a = &s->strands[i];
        ls_status st = ls__it_open(it->dataset->inputs[i], &it->how, &a->input);
        if (st)
            return st;
        a->first_word = it->words;
        it->words += a->input->words;
        it->light &= a->input->light;
    }
    s->now = calloc((size_t)it->words + 1, sizeof *s->now);
    if (!s->now)
        return ls__fail_memory("ls_zip", (size_t)it->words * sizeof *s->now);
    for (int i = 0; i < it->dataset->n_inputs; i++)
        ls__it_words(s->strands[i].input, s->now + s->strands[i].first_word);
    s->structure = ls__type_structure(it->dataset->type);
    return LS_OK;
}

static void close(ls__it *it)
{
    zip_state *s = it->state;
    for (int i = 0; i < it->dataset->n_inputs; i++) {
        ls__chunk_free(&s->strands[i].chunk);
        ls__it_close(s->strands[i].input);
    }
    free(s->now);
    ls_value_drop(s->kept);
}

/* ---- failures ------------------------------------------------------------------------------- */

static ls_status refill(strand *a, int most)
{
    if (a->next < a->chunk.n)
        return LS_OK;
    ls__chunk_clear(&a->chunk);
    a->next = 0;
    return ls__it_pull(a->input, most, &a->chunk);
}

/* Position of a strand behind the element it gave last, or failed to give. */
static void note_position(zip_state *s, const strand *a)
{
    int64_t *words = s->now + a->first_word;
    if (a->next > 0)
        memcpy(words, ls__chunk_after(&a->chunk, a->next - 1),
               (size_t)a->input->words * sizeof *words);
    else
        ls__it_words(a->input, words);
}

static bool is_gap(const zip_state *s, int i)
{
    return s->gaps >> i & 1;
}

/* An input failed; with the first gap an element of ours is lost. */
static void fail(ls__it *it, int i)
{
    zip_state *s = it->state;
    const bool lost = !s->strands[i].input->none_lost;
    it->none_lost = !lost || s->gaps;
    s->gaps |= (uint64_t)lost << i;
    s->now[0] = (int64_t)s->gaps;
    note_position(s, &s->strands[i]);
}

/* What is beside a gap. */
static void pass_over(ls__it *it)
{
    zip_state *s = it->state;
    for (int i = 0; i < it->dataset->n_inputs; i++) {
        strand *a = &s->strands[i];
        if (is_gap(s, i))
            continue;
        for (int k = 0; k < a->chunk.leaves; k++)
            ls__datum_drop(ls__chunk_datum(&a->chunk, a->next, k));
        a->next++;
        note_position(s, a);
    }
    s->now[0] = (int64_t)(s->gaps = 0);
}

/* ---- the stage ------------------------------------------------------------------------------- */

static ls_status find_structure(ls__it *it)
{
    zip_state *s = it->state;
    const ls_value *parts[LS__MOST_INPUTS];
    for (int i = 0; i < it->dataset->n_inputs; i++)
        parts[i] = s->strands[i].chunk.structure;
    s->kept = ls__structure_list(it->dataset->n_inputs, parts);
    s->structure = s->kept;
    return s->kept ? LS_OK : LS_NO_MEMORY;
}

/* The next n of every strand. */
static void give(ls__it *it, int n, ls__chunk *out)
{
    zip_state *s = it->state;
    for (; out->n < n; out->n++) {
        ls__chunk_after(out, out->n)[0] = 0;
        for (int i = 0, leaf = 0; i < it->dataset->n_inputs; i++) {
            strand *a = &s->strands[i];
            for (int k = 0; k < a->chunk.leaves; k++)
                ls__datum_give(ls__chunk_datum(out, out->n, leaf++),
                               ls__chunk_datum(&a->chunk, a->next, k));
            memcpy(ls__chunk_after(out, out->n) + a->first_word,
                   ls__chunk_after(&a->chunk, a->next),
                   (size_t)a->input->words * sizeof *out->after);
            a->next++;
        }
    }
    memcpy(s->now, ls__chunk_after(out, n - 1), (size_t)it->words * sizeof *s->now);
}

/* Every strand has elements, n of them all, but where there is a gap. */
static ls_status refill_all(ls__it *it, int *n, int *leaves)
{
    zip_state *s = it->state;
    for (int i = 0; i < it->dataset->n_inputs; i++) {
        strand *a = &s->strands[i];
        if (is_gap(s, i))
            continue;
        ls_status st = refill(a, *n);
        if (st && st != LS_END)
            fail(it, i);
        if (st)
            return st;
        int left = a->chunk.n - a->next;
        *n = left < *n ? left : *n;
        *leaves += a->chunk.leaves;
    }
    return LS_OK;
}

static ls_status pull(ls__it *it, int most, ls__chunk *out)
{
    zip_state *s = it->state;
    int n = most, leaves = 0;
    ls_status st = refill_all(it, &n, &leaves);
    if (!st && s->gaps) {
        pass_over(it);
        n = most;
        leaves = 0;
        st = refill_all(it, &n, &leaves);
    }
    if (!st && !s->structure)
        st = find_structure(it);
    if (!st)
        st = ls__chunk_room(out, n, leaves, it->words);
    if (st)
        return st;
    out->structure = s->structure;
    give(it, n, out);
    return LS_OK;
}

/* ---- positions -------------------------------------------------------------------------------- */

static void words_now(ls__it *it, int64_t *words)
{
    memcpy(words, ((zip_state *)it->state)->now, (size_t)it->words * sizeof *words);
}

static void forget(strand *a)
{
    ls__chunk_clear(&a->chunk);
    a->next = 0;
}

static ls_status put_gaps(const ls__it *it, int64_t word)
{
    zip_state *s = it->state;
    if (it->dataset->n_inputs < 64 && (uint64_t)word >> it->dataset->n_inputs)
        return ls__position_corrupt();
    s->gaps = (uint64_t)(s->now[0] = word);
    return LS_OK;
}

static ls_status go(ls__it *it, const int64_t *words)
{
    zip_state *s = it->state;
    ls_status st = put_gaps(it, words[0]);
    for (int i = 0; i < it->dataset->n_inputs && !st; i++) {
        strand *a = &s->strands[i];
        forget(a);
        st = ls__it_go(a->input, words + a->first_word);
    }
    memcpy(s->now, words, (size_t)it->words * sizeof *words);
    return st;
}

static ls_status save(ls__it *it, const int64_t *words, ls__bytes_out *to)
{
    zip_state *s = it->state;
    ls_status st = LS_OK;
    ls__put_int(to, words[0]);
    for (int i = 0; i < it->dataset->n_inputs && !st; i++)
        st = ls__it_save(s->strands[i].input, words + s->strands[i].first_word, to);
    return st;
}

static ls_status load(ls__it *it, ls__bytes_in *from)
{
    zip_state *s = it->state;
    int64_t gaps;
    ls_status st = ls__get_int(from, INT64_MIN, INT64_MAX, &gaps);
    if (!st)
        st = put_gaps(it, gaps);
    for (int i = 0; i < it->dataset->n_inputs && !st; i++) {
        strand *a = &s->strands[i];
        forget(a);
        st = ls__it_load(a->input, from);
        if (!st)
            ls__it_words(a->input, s->now + a->first_word);
    }
    return st;
}

static void release(ls__it *it, const int64_t *words)
{
    zip_state *s = it->state;
    for (int i = 0; i < it->dataset->n_inputs; i++)
        ls__it_release(s->strands[i].input, words + s->strands[i].first_word);
}

static const ls__stage zip_stage = { .name = "zip",
                                     .state_bytes = sizeof(zip_state),
                                     .open = open,
                                     .close = close,
                                     .pull = pull,
                                     .words_now = words_now,
                                     .go = go,
                                     .save = save,
                                     .load = load,
                                     .release = release };

/* ---- making --------------------------------------------------------------------------------- */

/* The shortest. One of which nothing is known may be shorter than all others. */
static int64_t shortest(int count, ls_dataset *const *datasets)
{
    int64_t least = LS_INFINITE;
    bool known = true;
    for (int i = 0; i < count; i++) {
        const int64_t n = datasets[i]->cardinality;
        known &= n != LS_UNKNOWN;
        if (n >= 0 && (least < 0 || n < least))
            least = n;
    }
    return known || least == 0 ? least : LS_UNKNOWN;
}

ls_dataset *ls_zip(int count, ls_dataset *const *datasets)
{
    const ls__type *types[LS__MOST_INPUTS];
    if (count < 1 || count > LS__MOST_INPUTS || !datasets) {
        ls__fail(LS_INVALID, "ls_zip: %d datasets%s, wants 1 to %d", count,
                 datasets ? "" : " in NULL", LS__MOST_INPUTS);
        return NULL;
    }
    for (int i = 0; i < count; i++) {
        if (ls__check_dataset("ls_zip", datasets[i]))
            return NULL;
        types[i] = datasets[i]->type;
    }
    ls__dataset_draft draft = { .stage = &zip_stage,
                                .n_inputs = count,
                                .inputs = datasets,
                                .type = ls__type_list(count, types),
                                .cardinality = shortest(count, datasets) };
    return ls__dataset_new(&draft, "zip");
}
