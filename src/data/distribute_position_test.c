/*
 * Positions of distributed datasets: at every position of every combination of pipelines and replicas
 * another iterator continues exactly, and its own positions are the same bytes from there on.
 */
#include "base/sanitized.h"
#include "data/distribute_test_support.h"
#include "data/watched_test.h"

enum { MOST_STEPS = 64 };

static int64_t some(int64_t file)
{
    return (5 * file + 3) % 8;
}

/* ---- a stage that is not light ------------------------------------------------------------------ */

/* Words: [elements so far]; where the input was then it remembers for those that are on their way. */
typedef struct heavy_state {
    ls__it *input;
    int64_t at, released;
    int64_t (*where)[8]; /* by count */
} heavy_state;

static ls_status heavy_open(ls__it *it)
{
    heavy_state *s = it->state;
    ls_status st = ls__it_open_input(it, 0, &s->input);
    it->words = 1;
    it->light = false;
    s->where = calloc(4096, sizeof *s->where);
    if (!st) {
        assert_true(s->input->words <= 8);
        ls__it_words(s->input, s->where[0]);
    }
    return st;
}

static void heavy_close(ls__it *it)
{
    heavy_state *s = it->state;
    free(s->where);
    ls__it_close(s->input);
}

static ls_status heavy_pull(ls__it *it, int most, ls__chunk *out)
{
    heavy_state *s = it->state;
    ls__chunk in = { 0 };
    (void)most;
    ls_status st = ls__it_pull(s->input, 1, &in);
    if (!st)
        st = ls__chunk_room(out, 1, in.leaves, 1);
    if (!st) {
        s->at++;
        memcpy(s->where[s->at], ls__chunk_after(&in, 0), (size_t)s->input->words * 8);
        for (int k = 0; k < in.leaves; k++) {
            assert_int_equal(ls__datum_own(ls__chunk_datum(&in, 0, k)), LS_OK);
            ls__datum_give(ls__chunk_datum(out, 0, k), ls__chunk_datum(&in, 0, k));
        }
        out->n = 1;
        out->structure = in.structure;
        *ls__chunk_after(out, 0) = s->at;
    }
    ls__chunk_free(&in);
    return st;
}

static void heavy_words(ls__it *it, int64_t *words)
{
    words[0] = ((heavy_state *)it->state)->at;
}

static ls_status heavy_save(ls__it *it, const int64_t *words, ls__bytes_out *to)
{
    heavy_state *s = it->state;
    assert_true(words[0] >= s->released && words[0] <= s->at);
    ls__put_int(to, words[0]);
    return ls__it_save(s->input, s->where[words[0]], to);
}

static ls_status heavy_load(ls__it *it, ls__bytes_in *from)
{
    heavy_state *s = it->state;
    ls_status st = ls__get_int(from, 0, 4000, &s->at);
    if (!st)
        st = ls__it_load(s->input, from);
    s->released = s->at;
    ls__it_words(s->input, s->where[s->at]);
    return st;
}

static void heavy_release(ls__it *it, const int64_t *words)
{
    heavy_state *s = it->state;
    assert_true(words[0] >= s->released && words[0] <= s->at);
    s->released = words[0];
}

static const ls__stage heavy_stage = { .name = "prefetch", /* as one that changes no batch */
                                       .state_bytes = sizeof(heavy_state),
                                       .open = heavy_open,
                                       .close = heavy_close,
                                       .pull = heavy_pull,
                                       .words_now = heavy_words,
                                       .save = heavy_save,
                                       .load = heavy_load,
                                       .release = heavy_release };

/* ---- continuing ------------------------------------------------------------------------------------ */

typedef struct record {
    int steps;
    char *text[MOST_STEPS];              /* of each step */
    ls_tensor *position[MOST_STEPS + 1]; /* before each; kept */
} record;

static bool may_fail;
static int failures; /* seen */

/* A failure is a step, too. */
static bool next_text(ls_iterator *it, int replicas, char *text)
{
    ls_status st;
    text[0] = '\0';
    LS_FRAME {
        ls_value *step = NULL;
        st = ls_next(it, &step);
        if (!st)
            put_step(text, step, replicas);
    }
    if (st && st != LS_END) {
        if (!may_fail)
            fail_msg("%s", ls_error_report());
        snprintf(text, MOST_TEXT, "%s", ls_error_report());
        failures++;
    }
    return st != LS_END;
}

static void record_all(ls_dataset *d, int replicas, record *r)
{
    char text[MOST_TEXT];
    ls_iterator *it = ls_iterate(d);
    if (!it)
        fail_msg("%s", ls_error_report());
    r->steps = 0;
    r->position[0] = ls_keep(ls_position(it));
    while (next_text(it, replicas, text)) {
        r->text[r->steps++] = strdup(text);
        r->position[r->steps] = ls_keep(ls_position(it));
        assert_true(r->steps < MOST_STEPS);
    }
    ls_iterator_free(it);
}

static void free_record(record *r)
{
    for (int i = 0; i < r->steps; i++)
        free(r->text[i]);
    for (int i = 0; i <= r->steps; i++)
        ls_drop(r->position[i]);
}

static void expect_position(ls_iterator *it, const ls_tensor *want)
{
    LS_FRAME {
        ls_tensor *got = ls_position(it);
        assert_int_equal(ls_count(got), ls_count(want));
        assert_memory_equal(ls_data(got), ls_data(want), (size_t)ls_count(got));
    }
}

/* `again` makes the same dataset as another process would. */
static void continue_everywhere(ls_dataset *(*again)(ls_strategy *s, int which), ls_strategy *s,
                                int which)
{
    record r;
    char text[MOST_TEXT];
    const int v = ls_num_replicas(s);
    LS_FRAME {
        record_all(again(s, which), v, &r);
        ls_dataset *d = again(s, which);
        for (int k = 0; k <= r.steps; k++) {
            ls_iterator *it = ls_iterate(d);
            if (k % 2 == 1) /* from where it was in the middle of something else */
                next_text(it, v, text);
            assert_int_equal(ls_seek(it, r.position[k]), LS_OK);
            for (int i = k; i < r.steps; i++) {
                expect_position(it, r.position[i]);
                assert_true(next_text(it, v, text));
                assert_string_equal(text, r.text[i]);
            }
            expect_position(it, r.position[r.steps]);
            assert_false(next_text(it, v, text));
            ls_iterator_free(it);
        }
        free_record(&r);
    }
}

static void for_all(ls_dataset *(*again)(ls_strategy *s, int which), int kinds, int prefetch)
{
    ls_log_set(NULL, NULL, LS_LOG_ERROR);
    for (int pipelines = 1; pipelines <= 4; pipelines++)
        for (int each = 1; each <= 3; each += LS__SANITIZED ? 2 : 1) {
            ls_strategy *s = strategy_ahead(pipelines, each, prefetch);
            for (int which = 0; which < kinds; which++)
                continue_everywhere(again, s, which);
            free_strategy(s);
        }
}

/* ---- datasets --------------------------------------------------------------------------------------- */

static ls_dataset *split(ls_strategy *s, int which)
{
    static const ls_auto_shard policies[] = { LS_AUTO_SHARD_FILE, LS_AUTO_SHARD_DATA,
                                              LS_AUTO_SHARD_OFF };
    const int64_t batch = which / 3 % 2 ? 7 : 4;
    ls_dataset *d = ls_batch(read_files(ls_range(0, 5, 1), some), batch);
    if (which / 6 % 2) {
        ls__dataset_draft draft = { .stage = &heavy_stage,
                                    .n_inputs = 1,
                                    .inputs = &d,
                                    .type = ls__type_ref(d->type),
                                    .cardinality = d->cardinality };
        d = ls__dataset_new(&draft, "heavy");
    }
    return ls_distribute(s, ls_with_auto_shard(d, policies[which % 3]));
}

static void splits_continue_everywhere(void **state)
{
    (void)state;
    for_all(split, 12, -1);
}

static ls_value *twice(ls_value *element, void *user)
{
    (void)user;
    ls_tensor *x = ls_leaf_tensor(element);
    return ls_leaf(ls_add(x, x));
}

/* What a program would do: files in another order each time, records shuffled, mapped, batched. */
static ls_dataset *program(ls_strategy *s, int which)
{
    static const ls_auto_shard policies[] = { LS_AUTO_SHARD_FILE, LS_AUTO_SHARD_DATA,
                                              LS_AUTO_SHARD_OFF };
    ls_dataset *d = read_files(ls_shuffle(ls_range(0, 5, 1), 4, 7), some);
    d = ls_repeat(ls_shuffle(d, 6, 8), which / 3 ? 2 : 1);
    d = ls_map(d, LS_MAP(.fn = twice, .parallel = 2, .spec = "i64[]"));
    d = ls_prefetch(ls_batch(d, 4), 2);
    return ls_distribute(s, ls_with_auto_shard(d, policies[which % 3]));
}

static void shuffled_mapped_prefetched_they_continue_everywhere(void **state)
{
    (void)state;
    ls_log_set(NULL, NULL, LS_LOG_ERROR);
    static const int shapes[][2] = { { 1, 2 }, { 2, 1 }, { 3, 2 } };
    for (int i = 0; i < 3; i++) {
        ls_strategy *s = strategy_ahead(shapes[i][0], shapes[i][1], 0);
        for (int which = 0; which < 6; which++)
            continue_everywhere(program, s, which);
        free_strategy(s);
    }
}

static ls_dataset *part_of(const ls_input_context *c, void *user)
{
    int which = *(int *)user;
    ls_dataset *d = ls_batch(ls_range(0, 17 + 5 * c->input_pipeline_id, 1), 2);
    return which ? ls_shard(d, c->num_input_pipelines, c->input_pipeline_id) : d;
}

static ls_dataset *each(ls_strategy *s, int which)
{
    return ls_distribute_from_function(s, part_of, &which);
}

static void functions_datasets_continue_everywhere(void **state)
{
    (void)state;
    for_all(each, 2, -1);
}

/* Rows fail, and where which & 4 batches, too. */
static ls_value *not_every(ls_value *element, void *user)
{
    (void)user;
    const int64_t first = *(const int64_t *)ls_data(ls_leaf_tensor(element));
    if (first % 4 == 3) {
        ls__fail(LS_IO, "a batch fails");
        return NULL;
    }
    return element;
}

static ls_dataset *failing_batches(int which)
{
    ls_dataset *d = WATCH(.count = 23, .heavy = which & 1, .fail_every = which & 2 ? 3 : 7);
    d = ls_batch(d, 3);
    return which & 4 ? ls_map(d, LS_MAP(.fn = not_every, .spec = "i64[?]")) : d;
}

static ls_dataset *failing_part_of(const ls_input_context *c, void *user)
{
    return ls_skip(failing_batches(*(int *)user), c->input_pipeline_id);
}

static ls_dataset *failing(ls_strategy *s, int which)
{
    if (which & 8)
        return ls_distribute_from_function(s, failing_part_of, &which);
    return ls_distribute(s,
                         ls_with_auto_shard(failing_batches(which),
                                            which & 16 ? LS_AUTO_SHARD_DATA : LS_AUTO_SHARD_OFF));
}

static void behind_failures_they_continue_everywhere(void **state)
{
    (void)state;
    may_fail = true;
    for_all(failing, 24, -1);
    may_fail = false;
    assert_true(failures > 10000);
}

static void made_ahead_they_continue_everywhere(void **state)
{
    (void)state;
    for_all(split, 12, 0);
    for_all(each, 2, 3);
}

/* How far ahead somebody was is nobody's business. */
static void positions_do_not_depend_on_prefetch(void **state)
{
    (void)state;
    ls_log_set(NULL, NULL, LS_LOG_ERROR);
    for (int which = 0; which < 12; which++) {
        ls_strategy *none = strategy_ahead(2, 2, -1), *ahead = strategy_ahead(2, 2, 5);
        LS_FRAME {
            record a, b;
            record_all(split(none, which), 4, &a);
            record_all(split(ahead, which), 4, &b);
            assert_int_equal(a.steps, b.steps);
            for (int i = 0; i <= a.steps; i++)
                assert_memory_equal(ls_data(a.position[i]), ls_data(b.position[i]),
                                    (size_t)ls_count(a.position[i]));
            free_record(&a);
            free_record(&b);
        }
        free_strategy(none);
        free_strategy(ahead);
    }
}

static ls_dataset *another_order_each_time(ls_strategy *s)
{
    return ls_distribute(s, ls_batch(ls_shuffle(ls_range(0, 40, 1), 40, 5), 8));
}

/* Epochs behind a position are those that would have followed: of this iterator, and of others. */
static void epochs_go_on(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(1, 2, false);
    LS_FRAME {
        char text[MOST_TEXT], want[3][MOST_TEXT];
        ls_tensor *position = NULL;
        ls_dataset *d = another_order_each_time(s);
        ls_iterator *it = ls_iterate(d);
        for (int epoch = 0; epoch < 2; epoch++) {
            rest_of(it, 2, text);
            assert_int_equal(ls_rewind(it), LS_OK);
        }
        next_text(it, 2, text);
        position = ls_position(it);
        for (int i = 0; i < 3; i++) { /* the rest of epoch 2, epochs 3 and 4 */
            rest_of(it, 2, want[i]);
            assert_int_equal(ls_rewind(it), LS_OK);
        }
        assert_string_not_equal(want[1], want[2]);
        ls_iterator_free(it);
        d = another_order_each_time(s); /* as another process has it */
        it = ls_iterate(d);
        assert_int_equal(ls_seek(it, position), LS_OK);
        assert_string_equal(rest_of(it, 2, text), want[0]);
        assert_int_equal(ls_rewind(it), LS_OK);
        assert_string_equal(rest_of(it, 2, text), want[1]);
        ls_iterator *other = ls_iterate(d);
        assert_string_equal(rest_of(other, 2, text), want[2]);
        ls_iterator_free(other);
        ls_iterator_free(it);
    }
    free_strategy(s);
}

static void other_bytes_are_refused(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(2, 1, false), *other = strategy_of(1, 2, false);
    ls_log_set(NULL, NULL, LS_LOG_ERROR);
    LS_FRAME {
        ls_dataset *d = ls_batch(ls_range(0, 20, 1), 4);
        ls_iterator *a = ls_iterate(ls_distribute(s, ls_with_auto_shard(d, LS_AUTO_SHARD_OFF)));
        ls_iterator *b = ls_iterate(ls_distribute(other, d));
        assert_int_equal(ls_seek(a, ls_position(b)), LS_INVALID);
        failed(LS_INVALID);
        ls_value *step = NULL; /* and it stays where it is */
        assert_int_equal(ls_next(a, &step), LS_OK);
        assert_int_equal(ls_seek(a, ls_position(a)), LS_OK);
        ls_iterator_free(a);
        ls_iterator_free(b);
    }
    free_strategy(s);
    free_strategy(other);
}

/* The stage itself goes anywhere from anywhere: ls_seek always opens another one. */
static void iterators_go_back(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(2, 1, false);
    LS_FRAME {
        ls_dataset *d = ls_with_auto_shard(ls_batch(ls_range(0, 12, 1), 8), LS_AUTO_SHARD_OFF);
        ls__going going = { 0 };
        ls__it *it = NULL;
        ls__chunk out = { 0 };
        assert_int_equal(ls__it_open(ls_distribute(s, d), &(ls__opening){ .going = &going }, &it),
                         LS_OK);
        int64_t where[4][16];
        ls__it_words(it, where[0]);
        for (int from = 0; from < 4; from++) { /* to the end, then to each place again */
            assert_int_equal(ls__it_go(it, where[from]), LS_OK);
            assert_int_equal(atomic_load(&going.bytes), 0);
            for (int i = from; i < 3; i++) {
                ls__chunk_clear(&out);
                assert_int_equal(ls__it_pull(it, 1, &out), LS_OK);
                assert_int_equal(*(const int64_t *)ls__chunk_datum(&out, 0, 1)->data, 4 * i);
                memcpy(where[i + 1], ls__chunk_after(&out, 0), (size_t)it->words * 8);
                if (i == 0 && from == 0) /* a batch is held: go from there, too */
                    assert_int_equal(ls__it_go(it, where[1]), LS_OK);
            }
            ls__chunk_clear(&out);
            assert_int_equal(ls__it_pull(it, 1, &out), LS_END);
        }
        ls__chunk_free(&out);
        ls__it_close(it);
        assert_int_equal(atomic_load(&going.bytes), 0);
    }
    free_strategy(s);
}

/* Words that no step has: the stage itself, since ls_seek refuses what has another checksum. */
static void turns_that_there_are_not(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(2, 1, false);
    LS_FRAME {
        ls_dataset *d = ls_with_auto_shard(ls_batch(ls_range(0, 5, 1), 4), LS_AUTO_SHARD_OFF);
        ls__going going = { 0 };
        ls__it *it = NULL;
        ls__chunk out = { 0 };
        assert_int_equal(ls__it_open(ls_distribute(s, d), &(ls__opening){ .going = &going }, &it),
                         LS_OK);
        int64_t words[16];
        assert_true(it->words <= 16);
        ls__it_words(it, words);
        static const int64_t turns[] = { -1, 2, INT64_MAX };
        for (int i = 0; i < 3; i++) {
            words[0] = turns[i];
            assert_int_equal(ls__it_go(it, words), LS_CORRUPT);
            failed(LS_CORRUPT);
        }
        /* the batch at 4 has one row, so one turn */
        words[0] = 1;
        words[1] = 0;
        words[2] = 4;
        assert_int_equal(ls__it_go(it, words), LS_OK);
        assert_int_equal(ls__it_pull(it, 1, &out), LS_CORRUPT);
        failed(LS_CORRUPT);
        ls__chunk_free(&out);
        ls__it_close(it);
    }
    free_strategy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(splits_continue_everywhere, clean),
        cmocka_unit_test_setup(functions_datasets_continue_everywhere, clean),
        cmocka_unit_test_setup(behind_failures_they_continue_everywhere, clean),
        cmocka_unit_test_setup(made_ahead_they_continue_everywhere, clean),
        cmocka_unit_test_setup(shuffled_mapped_prefetched_they_continue_everywhere, clean),
        cmocka_unit_test_setup(positions_do_not_depend_on_prefetch, clean),
        cmocka_unit_test_setup(epochs_go_on, clean),
        cmocka_unit_test_setup(other_bytes_are_refused, clean),
        cmocka_unit_test_setup(iterators_go_back, clean),
        cmocka_unit_test_setup(turns_that_there_are_not, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
