/*
 * ls_take and ls_skip: elements [first, end) of the input. Words: [elements of the input so far][those
 * of the input].
 *
 * What is left out in front is pulled, once; a position behind it is gone to without.
 */
#include "data/counted.h"

typedef struct take_options {
    int64_t first; /* -1: none, and the input is not looked at */
    int64_t end;   /* -1: all */
} take_options;

typedef struct take_state {
    ls__counted counted;
    ls__chunk left_out;
} take_state;

enum { MOST_AT_ONCE = 256 };

static void close(ls__it *it)
{
    take_state *s = it->state;
    ls__chunk_free(&s->left_out);
    ls__it_close(s->counted.input);
}

static ls_status skip_to(ls__it *it, int64_t first)
{
    take_state *s = it->state;
    ls__counted *c = &s->counted;
    ls_status st = LS_OK;
    while (c->at < first && !st) {
        int64_t want = first - c->at;
        ls__chunk_clear(&s->left_out);
        st = ls__counted_pull(it, want < MOST_AT_ONCE ? (int)want : MOST_AT_ONCE, &s->left_out);
        c->at += s->left_out.n;
    }
    ls__chunk_clear(&s->left_out);
    return st;
}

static ls_status pull(ls__it *it, int most, ls__chunk *out)
{
    ls__counted *c = it->state;
    const take_options *o = it->dataset->options;
    if (o->first < 0)
        return LS_END;
    ls_status st = skip_to(it, o->first);
    if (st)
        return st;
    if (o->end >= 0 && c->at >= o->end)
        return LS_END;
    if (o->end >= 0 && o->end - c->at < most)
        most = (int)(o->end - c->at);
    out->lead++;
    st = ls__counted_pull(it, most, out);
    out->lead--;
    for (int i = 0; i < out->n && !st; i++)
        ls__chunk_after(out, i)[0] = ++c->at;
    return st;
}

static const ls__stage take_stage = { .name = "take",
                                      .state_bytes = sizeof(take_state),
                                      .open = ls__counted_open,
                                      .close = close,
                                      .pull = pull,
                                      LS__COUNTS_ELEMENTS };

/* ---- making --------------------------------------------------------------------------------- */

static ls_dataset *make(const char *who, ls_dataset *d, int64_t n, bool skip)
{
    if (ls__check_dataset(who, d) || ls__check_number(who, "n", n, -1))
        return NULL;
    ls__dataset_draft draft = {
        .stage = &take_stage, .n_inputs = 1, .inputs = &d, .type = ls__type_ref(d->type)
    };
    take_options *o = ls__dataset_options(&draft, sizeof *o, NULL);
    const int64_t c = d->cardinality;
    if (!o) {
        ls__type_unref(draft.type);
        return NULL;
    }
    *o = skip ? (take_options){ n, -1 } : (take_options){ 0, n };
    if (skip)
        draft.cardinality = n < 0 ? 0 : c < 0 ? c : c > n ? c - n : 0;
    else
        draft.cardinality = n < 0 ? c : c == LS_INFINITE || c > n ? n : c;
    return ls__dataset_new(&draft, "%s %lld", skip ? "skip" : "take", (long long)n);
}

ls_dataset *ls_take(ls_dataset *d, int64_t n)
{
    return make("ls_take", d, n, false);
}

ls_dataset *ls_skip(ls_dataset *d, int64_t n)
{
    return make("ls_skip", d, n, true);
}
