/*
 * Positions of stages that count.
 */
#include "data/counted.h"

ls_status ls__counted_open(ls__it *it)
{
    return ls__it_open_input(it, 1, &((ls__counted *)it->state)->input);
}

ls_status ls__counted_pull(ls__it *it, int most, ls__chunk *out)
{
    ls__counted *s = it->state;
    ls_status st = ls__it_pass(it, s->input, most, out);
    s->at += st && st != LS_END && !it->none_lost;
    return st;
}

void ls__counted_words_now(ls__it *it, int64_t *words)
{
    ls__counted *s = it->state;
    words[0] = s->at;
    ls__it_words(s->input, words + 1);
}

ls_status ls__counted_go(ls__it *it, const int64_t *words)
{
    ls__counted *s = it->state;
    if (words[0] < 0)
        return ls__position_corrupt();
    s->at = words[0];
    return ls__it_go(s->input, words + 1);
}

ls_status ls__counted_save(ls__it *it, const int64_t *words, ls__bytes_out *to)
{
    ls__put_int(to, words[0]);
    return ls__it_save(((ls__counted *)it->state)->input, words + 1, to);
}

ls_status ls__counted_load(ls__it *it, ls__bytes_in *from)
{
    ls__counted *s = it->state;
    ls_status st = ls__get_int(from, 0, INT64_MAX, &s->at);
    return st ? st : ls__it_load(s->input, from);
}

void ls__counted_release(ls__it *it, const int64_t *words)
{
    ls__it_release(((ls__counted *)it->state)->input, words + 1);
}
