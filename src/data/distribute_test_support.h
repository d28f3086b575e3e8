/*
 * What tests of distributed datasets share: strategies of P pipelines and R replicas each, a reader of
 * files that are not there, and steps as text: "0 1 | 2 3" is what two replicas got.
 */
#ifndef LS__DATA_DISTRIBUTE_TEST_SUPPORT_H
#define LS__DATA_DISTRIBUTE_TEST_SUPPORT_H

#include <lockstep.h>
#include <stdio.h>
#include <stdlib.h>

#include "data/iterator.h"
#include "tensor/test_support.h"

/* prefetch: -1 none, 0 as it is by default. */
static inline ls_strategy *strategy_ahead(int pipelines, int each, int prefetch)
{
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0", .replicas = pipelines * each,
                                             .input_pipelines = pipelines, .prefetch = prefetch));
    assert_non_null(s);
    return s;
}

static inline ls_strategy *strategy_of(int pipelines, int each, bool whole_steps)
{
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0", .replicas = pipelines * each,
                                             .input_pipelines = pipelines, .prefetch = -1,
                                             .whole_steps = whole_steps));
    assert_non_null(s);
    return s;
}

static inline void free_strategy(ls_strategy *s)
{
    assert_int_equal(ls_strategy_free(s), LS_OK);
}

/* ---- steps as text ------------------------------------------------------------------------------ */

enum { MOST_TEXT = 4096 };

static inline void put_text(char *text, const char *format, long long number)
{
    size_t used = strlen(text);
    snprintf(text + used, MOST_TEXT - used, format, number);
}

/* The numbers of an i64 tensor. */
static inline void put_numbers(char *text, const ls_tensor *t)
{
    assert_non_null(t);
    const int64_t *at = ls_data(t);
    for (int64_t i = 0; i < ls_count(t); i++)
        put_text(text, i ? " %lld" : "%lld", (long long)at[i]);
}

/* Of the first leaf of a step. */
static inline void put_step(char *text, const ls_value *step, int replicas)
{
    for (int r = 0; r < replicas; r++) {
        ls_value *own = ls_select(step, r);
        put_text(text, r ? " | " : "", 0);
        put_numbers(text, ls_kind_of(own) == LS_LEAF ? ls_leaf_tensor(own) : ls_item(own, 0));
    }
}

/* The steps that are left, each in brackets. */
static inline const char *rest_of(ls_iterator *it, int replicas, char *text)
{
    ls_status st = LS_OK;
    text[0] = '\0';
    while (!st)
        LS_FRAME {
            ls_value *step = NULL;
            st = ls_next(it, &step);
            if (!st) {
                put_text(text, "[", 0);
                put_step(text, step, replicas);
                put_text(text, "]", 0);
            }
        }
    assert_int_equal(st, LS_END);
    assert_int_equal(ls_error_pending(), LS_OK);
    return text;
}

static inline void expect_steps(ls_dataset *d, int replicas, const char *want)
{
    char text[MOST_TEXT];
    ls_iterator *it = ls_iterate(d);
    if (!it)
        fail_msg("%s", ls_error_report());
    assert_string_equal(rest_of(it, replicas, text), want);
    ls_value *none = NULL;
    assert_int_equal(ls_next(it, &none), LS_END); /* again and again */
    assert_null(none);
    ls_iterator_free(it);
}

/* ---- files that are not there ------------------------------------------------------------------- */

/* "Names" are numbers f; file f has records 100 f, 100 f + 1, ...: so many. */
typedef struct fake_options {
    int64_t (*records)(int64_t file);
} fake_options;

typedef struct fake_state {
    ls__it *input;
    ls__chunk name;
    int64_t file, at, record; /* record: what was given last */
    bool open;
    int64_t *before; /* where the input was before this name */
} fake_state;

static inline ls_status fake_open(ls__it *it)
{
    fake_state *s = it->state;
    ls_status st = ls__it_open_input(it, 1, &s->input);
    if (st)
        return st;
    s->before = calloc((size_t)s->input->words + 1, sizeof *s->before);
    ls__it_words(s->input, s->before);
    return LS_OK;
}

static inline void fake_close(ls__it *it)
{
    fake_state *s = it->state;
    free(s->before);
    ls__chunk_free(&s->name);
    ls__it_close(s->input);
}

static inline ls_status fake_pull(ls__it *it, int most, ls__chunk *out)
{
    fake_state *s = it->state;
    const fake_options *o = it->dataset->options;
    (void)most;
    while (!s->open || s->at == o->records(s->file)) {
        if (s->open)
            s->at = 0;
        s->open = false;
        ls__it_words(s->input, s->before);
        ls__chunk_clear(&s->name);
        ls_status st = ls__it_pull(s->input, 1, &s->name);
        if (st)
            return st;
        s->file = *(const int64_t *)ls__chunk_datum(&s->name, 0, 0)->data;
        s->open = true;
    }
    ls_status st = ls__chunk_room(out, 1, 1, it->words);
    if (st)
        return st;
    s->record = 100 * s->file + s->at++;
    *ls__chunk_datum(out, 0, 0) =
        (ls__datum){ .spec = { .dtype = LS_I64 }, .data = &s->record, .bytes = sizeof s->record };
    out->n = 1;
    out->structure = ls__type_structure(it->dataset->type);
    int64_t *after = ls__chunk_after(out, 0);
    after[0] = s->at;
    memcpy(after + 1, s->before, (size_t)s->input->words * sizeof *after);
    return LS_OK;
}

static inline void fake_words(ls__it *it, int64_t *words)
{
    fake_state *s = it->state;
    words[0] = s->at;
    memcpy(words + 1, s->before, (size_t)s->input->words * sizeof *words);
}

static inline ls_status fake_go(ls__it *it, const int64_t *words)
{
    fake_state *s = it->state;
    s->open = false;
    s->at = words[0];
    memcpy(s->before, words + 1, (size_t)s->input->words * sizeof *words);
    return ls__it_go(s->input, words + 1);
}

static inline ls_status fake_save(ls__it *it, const int64_t *words, ls__bytes_out *to)
{
    ls__put_int(to, words[0]);
    return ls__it_save(((fake_state *)it->state)->input, words + 1, to);
}

static inline ls_status fake_load(ls__it *it, ls__bytes_in *from)
{
    fake_state *s = it->state;
    ls_status st = ls__get_int(from, 0, 100, &s->at);
    s->open = false;
    if (!st)
        st = ls__it_load(s->input, from);
    ls__it_words(s->input, s->before);
    return st;
}

static inline void fake_release(ls__it *it, const int64_t *words)
{
    ls__it_release(((fake_state *)it->state)->input, words + 1);
}

static const ls__stage fake_reader = { .name = "fake_reader",
                                       .state_bytes = sizeof(fake_state),
                                       .open = fake_open,
                                       .close = fake_close,
                                       .pull = fake_pull,
                                       .words_now = fake_words,
                                       .go = fake_go,
                                       .save = fake_save,
                                       .load = fake_load,
                                       .release = fake_release,
                                       .flags = LS__STAGE_READS_FILES };

static inline ls_dataset *read_files(ls_dataset *names, int64_t (*records)(int64_t file))
{
    ls__dataset_draft draft = {
        .stage = &fake_reader, .n_inputs = 1, .inputs = &names, .cardinality = LS_UNKNOWN
    };
    fake_options *o = ls__dataset_options(&draft, sizeof *o, NULL);
    o->records = records;
    draft.type = ls__type_ref(names->type);
    return ls__dataset_new(&draft, "fake_reader");
}

/* ---- stages that tell less than others ----------------------------------------------------------- */

typedef struct veil_state {
    ls__it *input;
} veil_state;

static inline ls_status veil_open(ls__it *it)
{
    return ls__it_open_input(it, 0, &((veil_state *)it->state)->input);
}

static inline void veil_close(ls__it *it)
{
    ls__it_close(((veil_state *)it->state)->input);
}

static inline ls_status veil_pull(ls__it *it, int most, ls__chunk *out)
{
    return ls__it_pull(((veil_state *)it->state)->input, most, out);
}

/* A stage of that name which hands everything on. */
#define STAGE_LIKE(...)                                                                            \
    {                                                                                              \
        .state_bytes = sizeof(veil_state), .open = veil_open, .close = veil_close,                 \
        .pull = veil_pull, LS__PASSES_POSITIONS_ON, __VA_ARGS__                                    \
    }

static const ls__stage veil_stage = STAGE_LIKE(.name = "veil");

/* The same elements; nothing is known of them, nor how many there are. */
static inline ls_dataset *veiled(ls_dataset *d, const ls__stage *stage)
{
    ls__dataset_draft draft = {
        .stage = stage, .n_inputs = 1, .inputs = &d, .cardinality = LS_UNKNOWN
    };
    draft.type = ls__type_unknown();
    return ls__dataset_new(&draft, "%s", stage->name);
}

#endif
