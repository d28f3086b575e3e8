/*
 * Positions of sources that know every element by its number.
 */
#include "data/indexed.h"

ls_status ls__indexed_open(ls__it *it)
{
    it->words = 1;
    it->light = true;
    return LS_OK;
}

int ls__indexed_left(const ls__it *it, int most)
{
    const int64_t left = it->dataset->cardinality - ((const ls__indexed *)it->state)->at;
    return left < most ? (int)left : most;
}

void ls__indexed_words_now(ls__it *it, int64_t *words)
{
    words[0] = ((const ls__indexed *)it->state)->at;
}

ls_status ls__indexed_go(ls__it *it, const int64_t *words)
{
    if (words[0] < 0 || words[0] > it->dataset->cardinality)
        return ls__position_corrupt();
    ((ls__indexed *)it->state)->at = words[0];
    return LS_OK;
}
