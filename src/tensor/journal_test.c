/*
 * Journals: what a step wrote is undone or final, in any nesting, from any thread.
 */
#include "tensor/journal.h"

#include <pthread.h>

#include "tensor/tensor.h"
#include "tensor/test_support.h"

enum { N = 700 }; /* several turns of the exchange, the last one short */

static ls__cell *make(void)
{
    ls__spec spec;
    ls__cell *cell = NULL;
    assert_int_equal(ls__spec_make(&spec, "test", LS_F32, LS_DIMS(N)), LS_OK);
    assert_int_equal(ls__cell_new("w", &spec, &cell), LS_OK);
    return cell;
}

/* Every element is its own number apart. */
static bool fill(ls__cell *cell, float value)
{
    float *data = ls__cell_write(cell);
    for (int i = 0; data && i < N; i++)
        data[i] = value + (float)i;
    return data;
}

static bool is_filled(const float *data, float value)
{
    for (int i = 0; i < N; i++)
        if (data[i] != value + (float)i)
            return false;
    return true;
}

static void holds(const ls__cell *cell, float value)
{
    const float *data = ls__cell_data(cell);
    if (!is_filled(data, value))
        fail_msg("the cell holds %g, not %g", (double)data[0], (double)value);
}

static void without_a_journal_writes_are_final(void **state)
{
    (void)state;
    ls__cell *cell = make();
    assert_null(ls__journal_used());
    size_t before = memory();
    assert_true(fill(cell, 5));
    assert_int_equal(memory(), before);
    assert_null(ls__cell_saved_by(cell));
    ls__journal j;
    ls__journal_open(&j, NULL); /* open, but not used by this thread */
    fill(cell, 6);
    ls__journal_undo(&j);
    holds(cell, 6);
    ls__cell_unref(cell);
}

static void undo_gives_back_what_was_there(void **state)
{
    (void)state;
    size_t start = memory();
    ls__cell *cell = make(), *other = make(), *untouched = make();
    fill(cell, 1);
    fill(other, 2);
    fill(untouched, 3);
    size_t before = memory();
    uint64_t version = ls__cell_version(cell), still = ls__cell_version(untouched);
    const void *place = ls__cell_data(cell);
    ls__journal j;
    ls__journal_open(&j, NULL);
    assert_null(ls__journal_use(&j));
    assert_ptr_equal(ls__journal_used(), &j);
    for (int i = 0; i < 5; i++)
        fill(cell, 10 + (float)i); /* the first write counts */
    fill(other, 20);
    assert_ptr_equal(ls__cell_saved_by(cell), &j);
    assert_ptr_equal(ls__journal_use(NULL), &j);
    ls__journal_undo(&j);
    holds(cell, 1);
    holds(other, 2);
    holds(untouched, 3);
    assert_true(ls__cell_version(cell) == version + 6); /* 5 writes and the undo */
    assert_true(ls__cell_version(untouched) == still);
    assert_ptr_equal(ls__cell_data(cell), place);
    assert_null(ls__cell_saved_by(cell));
    assert_int_equal(memory(), before);
    ls__journal_undo(&j); /* nothing is left to undo */
    holds(cell, 1);
    ls__cell_unref(cell);
    ls__cell_unref(other);
    ls__cell_unref(untouched);
    assert_int_equal(memory(), start);
}

/* Three journals, one inside the other; writes before, in and after each; each ends one
 * way or the other. The model: undo gives back what was there when the journal was opened. */
enum { DEEP = 3, POINTS = 2 * DEEP - 1 };

typedef struct play {
    ls__cell *cell;
    float now; /* what the cell should hold */
    float next;
    int writes; /* a bit per point at which there is one */
    int undone; /* a bit per level */
} play;

static void maybe_write(play *p, int point)
{
    if (p->writes >> point & 1) {
        fill(p->cell, p->next);
        p->now = p->next++;
    }
}

static void play_level(play *p, int level, ls__journal *outer)
{
    float opened_with = p->now;
    ls__journal j;
    ls__journal_open(&j, outer);
    ls__journal *before = ls__journal_use(&j);
    assert_ptr_equal(before, outer);
    maybe_write(p, level);
    if (level + 1 < DEEP) {
        play_level(p, level + 1, &j);
        maybe_write(p, POINTS - 1 - level);
    }
    holds(p->cell, p->now);
    ls__journal_use(before);
    if (p->undone >> level & 1) {
        ls__journal_undo(&j);
        p->now = opened_with;
    } else {
        ls__journal_commit(&j);
    }
    holds(p->cell, p->now);
    assert_true(ls__cell_saved_by(p->cell) != &j);
}

static void journals_nest_in_every_way(void **state)
{
    (void)state;
    for (int writes = 0; writes < 1 << POINTS; writes++)
        for (int undone = 0; undone < 1 << DEEP; undone++) {
            play p = {
                .cell = make(), .now = 100, .next = 200, .writes = writes, .undone = undone
            };
            fill(p.cell, 100);
            size_t before = memory();
            play_level(&p, 0, NULL);
            assert_null(ls__cell_saved_by(p.cell));
            assert_null(ls__journal_used());
            assert_int_equal(memory(), before);
            ls__cell_unref(p.cell);
        }
}

/* A journal without an outer one, used while another is: it ends by itself. */
static void a_journal_of_its_own_inside_another(void **state)
{
    (void)state;
    for (int undone = 0; undone < 2; undone++) {
        ls__cell *cell = make();
        fill(cell, 1);
        ls__journal outer, own;
        ls__journal_open(&outer, NULL);
        ls__journal_use(&outer);
        fill(cell, 2);
        ls__journal_open(&own, NULL);
        ls__journal_use(&own);
        fill(cell, 3);
        ls__journal_use(&outer);
        undone ? ls__journal_undo(&own) : ls__journal_commit(&own);
        holds(cell, undone ? 2 : 3);
        assert_ptr_equal(ls__cell_saved_by(cell), &outer);
        ls__journal_use(NULL);
        ls__journal_undo(&outer);
        holds(cell, 1);
        ls__cell_unref(cell);
    }
}

static void the_holder(const ls_tensor *t, float value)
{
    float data[N];
    assert_int_equal(ls_copy_out(t, data, sizeof data), LS_OK);
    assert_true(is_filled(data, value));
}

static void what_was_read_stays_as_it_was_read(void **state)
{
    (void)state;
    size_t start = memory();
    ls__cell *cell = make();
    fill(cell, 1);
    ls_tensor *kept = NULL;
    LS_FRAME {
        ls_tensor *before = ls__cell_read(cell);
        ls__journal j;
        ls__journal_open(&j, NULL);
        ls__journal_use(&j);
        ls_tensor *inside = ls__cell_read(cell);
        assert_true(before->id == inside->id);
        fill(cell, 2);
        ls_tensor *second = ls__cell_read(cell);
        fill(cell, 3);
        ls_tensor *third = ls__cell_read(cell); /* a live view when all is undone */
        kept = ls_keep(third);
        ls__journal_use(NULL);
        ls__journal_undo(&j);
        ls_tensor *after = ls__cell_read(cell);
        the_holder(before, 1);
        the_holder(inside, 1);
        the_holder(second, 2);
        the_holder(third, 3);
        the_holder(after, 1);
        assert_true(after->id != third->id && after->id != before->id);
        fill(cell, 4);
        the_holder(third, 3);
        the_holder(after, 1);
    }
    ls__cell_unref(cell);
    the_holder(kept, 3);
    ls_drop(kept);
    assert_int_equal(memory(), start);
}

/* Whoever must not fail half-way asks first; that saves the cell, too. */
static void unsharing_saves(void **state)
{
    (void)state;
    ls__cell *cell = make();
    fill(cell, 1);
    ls__journal j;
    ls__journal_open(&j, NULL);
    ls__journal_use(&j);
    assert_int_equal(ls__cell_unshare(cell), LS_OK);
    size_t saved = memory();
    fill(cell, 2);
    assert_int_equal(memory(), saved); /* the write asked for nothing */
    ls__cell *other = make();
    saved = memory();
    ls__cell_restore(other, (float[N]){ 0 }); /* who undoes leaves nothing to be undone */
    assert_int_equal(memory(), saved);
    assert_null(ls__cell_saved_by(other));
    ls__journal_use(NULL);
    ls__journal_undo(&j);
    holds(cell, 1);
    ls__cell_unref(other);
    ls__cell_unref(cell);
}

static void a_cell_may_go_before_its_journal_ends(void **state)
{
    (void)state;
    size_t before = memory();
    for (int undone = 0; undone < 2; undone++) {
        ls__cell *cell = make();
        ls__journal j;
        ls__journal_open(&j, NULL);
        ls__journal_use(&j);
        fill(cell, 1);
        ls__cell_unref(cell);
        ls__journal_use(NULL);
        undone ? ls__journal_undo(&j) : ls__journal_commit(&j);
    }
    assert_int_equal(memory(), before);
}

static void hollow_cells_have_nothing_to_save(void **state)
{
    (void)state;
    ls__spec spec;
    ls__cell *cell = NULL;
    assert_int_equal(ls__spec_make(&spec, "test", LS_F32, LS_DIMS(N)), LS_OK);
    assert_int_equal(ls__cell_new_hollow("w", &spec, &cell), LS_OK);
    ls__journal j;
    ls__journal_open(&j, NULL);
    ls__journal_use(&j);
    assert_int_equal(ls__cell_unshare(cell), LS_OK);
    ls__journal_use(NULL);
    ls__journal_undo(&j);
    ls__cell_unref(cell);
}

/* ---- threads --------------------------------------------------------------------------- */

enum { THREADS = 4, CELLS = 40, ROUNDS = 20 };

typedef struct party {
    pthread_t thread;
    ls__journal *journal;
    ls__cell *cells[CELLS];
    bool fine;
} party;

/* Half of the cells are written through a journal of the thread's own inside the common one. */
static void *write_all(void *user)
{
    party *p = user;
    p->fine = !ls__journal_use(p->journal);
    for (int i = 0; i < CELLS; i++)
        p->fine &= i % 4 == 3 || fill(p->cells[i], 1000 + (float)i);
    ls__journal inner;
    ls__journal_open(&inner, p->journal);
    ls__journal_use(&inner);
    for (int i = 0; i < CELLS; i += 2)
        p->fine &= fill(p->cells[i], 2000 + (float)i);
    for (int i = 3; i < CELLS; i += 4)
        p->fine &= fill(p->cells[i], 2000 + (float)i);
    ls__journal_commit(&inner);
    ls__journal_use(NULL);
    return NULL;
}

static void threads_share_a_journal(void **state)
{
    (void)state;
    size_t start = memory();
    party parties[THREADS];
    ls__journal j;
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < CELLS; i++) {
            parties[t].journal = &j;
            parties[t].cells[i] = make();
        }
    size_t before = memory();
    for (int round = 0; round < ROUNDS; round++) {
        bool undone = round % 2;
        ls__journal_open(&j, NULL);
        for (int t = 0; t < THREADS; t++) {
            for (int i = 0; i < CELLS; i++)
                fill(parties[t].cells[i], (float)i);
            assert_int_equal(pthread_create(&parties[t].thread, NULL, write_all, &parties[t]), 0);
        }
        for (int t = 0; t < THREADS; t++)
            pthread_join(parties[t].thread, NULL);
        undone ? ls__journal_undo(&j) : ls__journal_commit(&j);
        assert_int_equal(memory(), before);
        for (int t = 0; t < THREADS; t++)
            for (int i = 0; i < CELLS; i++) {
                bool inner = i % 2 == 0 || i % 4 == 3;
                assert_true(parties[t].fine);
                holds(parties[t].cells[i], (float)i + (undone ? 0 : inner ? 2000 : 1000));
                assert_null(ls__cell_saved_by(parties[t].cells[i]));
            }
    }
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < CELLS; i++)
            ls__cell_unref(parties[t].cells[i]);
    assert_int_equal(memory(), start);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(without_a_journal_writes_are_final, clean),
        cmocka_unit_test_setup(undo_gives_back_what_was_there, clean),
        cmocka_unit_test_setup(journals_nest_in_every_way, clean),
        cmocka_unit_test_setup(a_journal_of_its_own_inside_another, clean),
        cmocka_unit_test_setup(what_was_read_stays_as_it_was_read, clean),
        cmocka_unit_test_setup(unsharing_saves, clean),
        cmocka_unit_test_setup(a_cell_may_go_before_its_journal_ends, clean),
        cmocka_unit_test_setup(hollow_cells_have_nothing_to_save, clean),
        cmocka_unit_test_setup(threads_share_a_journal, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
