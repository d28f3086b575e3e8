/*
 * ls_range: numbers one after another. Words: [how many were given].
 */
#include <stdlib.h>

#include "data/indexed.h"

typedef struct range_options {
    int64_t begin, step, count;
} range_options;

typedef struct range_state {
    ls__indexed index;
    int64_t *numbers; /* of the last chunk */
    int room;
} range_state;

static void close(ls__it *it)
{
    free(((range_state *)it->state)->numbers);
}

static ls_status make_room(range_state *s, int n)
{
    if (n <= s->room)
        return LS_OK;
    int64_t *more = realloc(s->numbers, (size_t)n * sizeof *more);
    if (!more)
        return ls__fail_memory("ls_range", (size_t)n * sizeof *more);
    s->numbers = more;
    s->room = n;
    return LS_OK;
}

static ls_status pull(ls__it *it, int most, ls__chunk *out)
{
    range_state *s = it->state;
    const range_options *o = it->dataset->options;
    const int n = ls__indexed_left(it, most);
    if (n == 0)
        return LS_END;
    ls_status st = make_room(s, n);
    if (!st)
        st = ls__chunk_room(out, n, 1, 1);
    if (st)
        return st;
    out->structure = ls__type_structure(it->dataset->type);
    for (out->n = 0; out->n < n; out->n++) {
        /* unsigned: the last step may leave the numbers there are */
        s->numbers[out->n] =
            (int64_t)((uint64_t)o->begin + (uint64_t)o->step * (uint64_t)s->index.at);
        *ls__chunk_datum(out, out->n, 0) = (ls__datum){ .spec = { .dtype = LS_I64 },
                                                        .data = &s->numbers[out->n],
                                                        .bytes = sizeof *s->numbers };
        *ls__chunk_after(out, out->n) = ++s->index.at;
    }
    return LS_OK;
}

static const ls__stage range_stage = {
    .name = "range", .state_bytes = sizeof(range_state), .close = close, .pull = pull, LS__HAS_INDEX
};

/* Numbers from begin up to end, which is not reached. */
static int64_t count_of(int64_t begin, int64_t end, int64_t step)
{
    uint64_t way = step > 0 ? (uint64_t)end - (uint64_t)begin : (uint64_t)begin - (uint64_t)end;
    uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    if (step > 0 ? end <= begin : end >= begin)
        return 0;
    uint64_t count = way / stride + (way % stride != 0);
    return count > INT64_MAX ? INT64_MAX : (int64_t)count;
}

ls_dataset *ls_range(int64_t begin, int64_t end, int64_t step)
{
    if (step == 0) {
        ls__hint(ls__fail(LS_INVALID, "ls_range: step is 0"), "1 counts up, -1 counts down");
        return NULL;
    }
    ls__dataset_draft draft = { .stage = &range_stage };
    range_options *o = ls__dataset_options(&draft, sizeof *o, NULL);
    if (!o)
        return NULL;
    if (ls__type_parse("ls_range", "i64[]", &draft.type))
        draft.type = NULL; /* which ls__dataset_new passes on */
    *o = (range_options){ begin, step, count_of(begin, end, step) };
    draft.cardinality = o->count;
    return ls__dataset_new(&draft, "range %lld %lld %lld", (long long)begin, (long long)o->count,
                           (long long)step);
}
