/*
 * ls_enumerate: a number in front of every element. Words: as counted.h says; the number follows from
 * them.
 */
#include <stdlib.h>
#include <string.h>

#include "data/counted.h"
#include "data/structure.h"

typedef struct enumerate_options {
    int64_t start;
} enumerate_options;

typedef struct enumerate_state {
    ls__counted counted;
    ls__chunk chunk;  /* of the input */
    int64_t *numbers; /* of the last chunk given */
    int room;
    ls_value *structure; /* where the type does not know it */
} enumerate_state;

static void close(ls__it *it)
{
    enumerate_state *s = it->state;
    ls__chunk_free(&s->chunk);
    free(s->numbers);
    ls_value_drop(s->structure);
    ls__it_close(s->counted.input);
}

static ls_value *number_and(const ls_value *element)
{
    ls_value *both = NULL;
    LS_FRAME {
        const ls_value *number = ls_leaf(ls_scalar_int(LS_I64, 0));
        if (number)
            both = ls__structure_list(2, (const ls_value *[]){ number, element });
    }
    return both;
}

static const ls_value *structure_of(const ls__it *it)
{
    enumerate_state *s = it->state;
    const ls_value *known = ls__type_structure(it->dataset->type);
    if (!known && !s->structure)
        s->structure = number_and(s->chunk.structure);
    return known ? known : s->structure;
}

static ls_status make_room(enumerate_state *s)
{
    if (s->chunk.n <= s->room)
        return LS_OK;
    size_t bytes = (size_t)s->chunk.n * sizeof *s->numbers;
    free(s->numbers);
    s->numbers = malloc(bytes);
    s->room = s->numbers ? s->chunk.n : 0;
    return s->numbers ? LS_OK : ls__fail_memory("ls_enumerate", bytes);
}

static ls_status give(const ls__it *it, ls__chunk *out)
{
    enumerate_state *s = it->state;
    const enumerate_options *o = it->dataset->options;
    ls_status st = make_room(s);
    if (!st)
        st = ls__chunk_room(out, s->chunk.n, s->chunk.leaves + 1, it->words);
    if (!st && !(out->structure = structure_of(it)))
        st = LS_NO_MEMORY;
    for (int i = 0; i < s->chunk.n && !st; i++, out->n++) {
        /* unsigned: who counts from the last number there is begins anew */
        s->numbers[i] = (int64_t)((uint64_t)o->start + (uint64_t)s->counted.at + (uint64_t)i);
        *ls__chunk_datum(out, i, 0) = (ls__datum){ .spec = { .dtype = LS_I64 },
                                                   .data = &s->numbers[i],
                                                   .bytes = sizeof s->numbers[i] };
        for (int k = 0; k < s->chunk.leaves; k++)
            ls__datum_give(ls__chunk_datum(out, i, k + 1), ls__chunk_datum(&s->chunk, i, k));
        int64_t *after = ls__chunk_after(out, i);
        after[0] = s->counted.at + i + 1;
        memcpy(after + 1, ls__chunk_after(&s->chunk, i), (size_t)(it->words - 1) * sizeof *after);
    }
    return st;
}

static ls_status pull(ls__it *it, int most, ls__chunk *out)
{
    enumerate_state *s = it->state;
    ls__chunk_clear(&s->chunk);
    ls_status st = ls__counted_pull(it, most, &s->chunk);
    if (st)
        return st;
    st = give(it, out);
    s->counted.at += s->chunk.n;
    return st;
}

static const ls__stage enumerate_stage = { .name = "enumerate",
                                           .state_bytes = sizeof(enumerate_state),
                                           .open = ls__counted_open,
                                           .close = close,
                                           .pull = pull,
                                           LS__COUNTS_ELEMENTS };

/* ---- making --------------------------------------------------------------------------------- */

static ls__type *type_of(const ls__type *element)
{
    ls__type *number, *both = NULL;
    if (!ls__type_parse("ls_enumerate", "i64[]", &number))
        both = ls__type_list(2, (const ls__type *[]){ number, element });
    ls__type_unref(number);
    return both;
}

ls_dataset *ls_enumerate(ls_dataset *d, int64_t start)
{
    if (ls__check_dataset("ls_enumerate", d))
        return NULL;
    ls__dataset_draft draft = {
        .stage = &enumerate_stage, .n_inputs = 1, .inputs = &d, .cardinality = d->cardinality
    };
    enumerate_options *o = ls__dataset_options(&draft, sizeof *o, NULL);
    if (!o)
        return NULL;
    o->start = start;
    draft.type = type_of(d->type);
    return ls__dataset_new(&draft, "enumerate %lld", (long long)start);
}
