/*
 * The bar with a clock and a window of the test's own: exact lines. How it behaves in a real
 * terminal is for tests/bar_test.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bar.h"
#include "text.h"

typedef struct stage {
    _Atomic double now; /* another thread may draw */
    int columns;
    terminal screen;
    FILE *to;
    char *bytes;
    size_t length, read;
    bar *bar;
} stage;

static double stage_now(void *user)
{
    return ((stage *)user)->now;
}

static int stage_columns(void *user)
{
    return ((stage *)user)->columns;
}

static void open_stage(stage *s, int columns, bool live, bool colour, bool utf8)
{
    *s = (stage){ .now = 1000, .columns = columns };
    s->screen = (terminal){ .file = -1, .live = live, .colour = colour, .utf8 = utf8 };
    s->to = open_memstream(&s->bytes, &s->length);
    assert_non_null(s->to);
    s->bar = bar_open(
        s->to, &(bar_options){
                   .screen = &s->screen, .now = stage_now, .columns = stage_columns, .user = s });
    assert_non_null(s->bar);
}

static void close_stage(stage *s)
{
    bar_close(s->bar);
    fclose(s->to);
    free(s->bytes);
}

/* What was written since the last time, and nothing else. */
static void expect(stage *s, const char *expected)
{
    fflush(s->to);
    assert_string_equal(s->bytes + s->read, expected);
    s->read = s->length;
}

#define HOME "\r\033[?7l"
#define CLEAR "\r\033[K\0337\033[B\033[J\0338"
#define PARKED "\033[?7h\033[K\r"
#define STAYS "\n"

static const bar_figure figures[] = { { "accuracy", 0.88904 },
                                      { "test_loss", 0.3901 },
                                      { "test_accuracy", 0.8603 } };

/* After `step` steps of 469 in the second of ten epochs. */
static bar_facts facts_at(int64_t step)
{
    return (bar_facts){ .epoch = 2,
                        .epochs = 10,
                        .step = step,
                        .steps = 469,
                        .run_step = 469 + step,
                        .run_steps = 4690,
                        .samples = 128 * (469 + step),
                        .loss = 0.31207,
                        .n_figures = 1,
                        .figures = figures,
                        .input = 0.012,
                        .reduce = 0.06 };
}

/* From step 0 to 312, at 16 steps and 2,048 samples a second, and two more. */
static void play(stage *s)
{
    bar_facts f = facts_at(0);
    bar_show(s->bar, &f);
    for (int64_t step = 1; step <= 312; step++) {
        s->now = s->now + (step == 1 ? 3 : 1.0 / 16); /* the first prepares things */
        f = facts_at(step);
        bar_show(s->bar, &f);
    }
    s->now = s->now + (2.0 / 16);
    fflush(s->to);
    s->read = s->length;
    f = facts_at(314);
    bar_show(s->bar, &f);
}

static void show_if_due(bar *b, const bar_facts *f)
{
    if (bar_due(b)) {
        bar_show(b, f);
        return;
    }
    bar_facts where = *f;
    where.loss = where.input = where.reduce = NAN;
    where.n_figures = 0;
    bar_pass(b, &where);
}

/* 40 seconds. */
static void play_with(stage *s, void (*show)(bar *, const bar_facts *))
{
    for (int64_t step = 0; step <= 469; step++) {
        bar_facts f = facts_at(step);
        s->now = s->now + (step % 7 ? 1.0 / 16 : 5.0 / 16);
        show(s->bar, &f);
    }
}

/* Looks at figures that nobody sees would only cost time. */
static void steps_that_are_not_due_need_no_figures(void **state)
{
    (void)state;
    for (int live = 0; live < 2; live++) {
        stage all, due;
        open_stage(&all, 120, live, live, live);
        open_stage(&due, 120, live, live, live);
        play_with(&all, bar_show);
        play_with(&due, show_if_due);
        fflush(all.to);
        fflush(due.to);
        assert_true(all.length > 300);
        assert_string_equal(due.bytes, all.bytes);
        close_stage(&all);
        close_stage(&due);
    }
    assert_false(bar_due(NULL));
    bar_pass(NULL, NULL);
}

static void expect_live(int columns, bool utf8, const char *line)
{
    stage s;
    open_stage(&s, columns, true, false, utf8);
    play(&s);
    char whole[2048];
    snprintf(whole, sizeof whole, HOME "%s" PARKED, line);
    expect(&s, whole);
    assert_true(text_columns(line) < columns);
    close_stage(&s);
}

static void parts_leave_as_the_window_narrows(void **state)
{
    (void)state;
    expect_live(
        200, true,
        "epoch  2/10  314/469 ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━────────────────────  loss "
        "0.3121 accuracy 0.8890  2.05k samples/s  eta 0:10 all 4:04  input 1%  reduce 6%");
    expect_live(120, true,
                "epoch  2/10  314/469 ━━━━━━━━━━━━╸──────  loss 0.3121 accuracy 0.8890  2.05k/s  "
                "eta 0:10 all 4:04  input 1%  reduce 6%");
    expect_live(80, true,
                "epoch  2/10  314/469 ━━━━━━╸───  loss 0.3121 accuracy 0.8890  2.05k/s  eta 0:10");
    expect_live(60, true, "314/469 ━━━━━━━━────  loss 0.3121 accuracy 0.8890  eta 0:10");
    expect_live(40, true, "314/469 ━━━━━───  loss 0.3121  eta 0:10");
    expect_live(20, true, "314/469 ━━━━━━━────");
    expect_live(8, true, "314/469");
    expect_live(3, true, "");
}

static void ascii_where_there_is_no_more(void **state)
{
    (void)state;
    expect_live(120, false,
                "epoch  2/10  314/469 ============>------  loss 0.3121 accuracy 0.8890  2.05k/s  "
                "eta 0:10 all 4:04  input 1%  reduce 6%");
    expect_live(40, false, "314/469 =====>--  loss 0.3121  eta 0:10");
}

static void colours(void **state)
{
    (void)state;
    stage s;
    open_stage(&s, 80, true, true, true);
    bar_facts f = facts_at(234);
    f.reduce = 0.25; /* too much: it is yellow */
    f.n_figures = 0;
    bar_show(s.bar, &f);
    expect(&s,
           HOME "\033[2mepoch \033[0m 2/10  234/469 "
                "\033[36m━━━━━━━━━━━\033[0m\033[2m────────────\033[0m  \033[2mloss \033[0m0.3121  "
                "\033[2minput \033[0m1%  \033[2mreduce \033[0m\033[33m25%\033[0m" PARKED);
    s.now = s.now + (1);
    f.step++;
    bar_test(s.bar, &f);
    expect(&s, HOME "\033[2mepoch \033[0m 2/10  \033[2mtest \033[0m235/469 "
                    "\033[35m━━━━━━━━━━━━━━━\033[0m\033[2m───────────────\033[0m  \033[2mloss "
                    "\033[0m0.3121  \033[2meta \033[0m0:01" PARKED);
    bar_epoch(s.bar, &f);
    expect(&s, CLEAR "\033[2mepoch \033[0m\033[32m 2/10\033[0m  1.0s  \033[2mloss \033[0m0.3121  "
                     "\033[2minput \033[0m1%  \033[2mreduce \033[0m\033[33m25%\033[0m" STAYS);
    close_stage(&s);
}

static void a_length_that_nobody_knows(void **state)
{
    (void)state;
    stage s;
    open_stage(&s, 60, true, false, true);
    bar_facts f = facts_at(37);
    f.steps = f.run_steps = -2;
    bar_show(s.bar, &f);
    expect(&s, HOME "epoch  2/10  37/? ━━━━────────  loss 0.3121 accuracy 0.8890" PARKED);
    for (int i = 0; i < 12; i++) {
        s.now = s.now + (1);
        f.step++, f.run_step++;
        s.read = s.length;
        bar_show(s.bar, &f);
        fflush(s.to);
    }
    expect(&s, HOME "epoch  2/10  49/? ────━━━━────  loss 0.3121 accuracy 0.8890" PARKED);
    close_stage(&s);
}

static void draws_ten_times_a_second(void **state)
{
    (void)state;
    stage s;
    open_stage(&s, 60, true, false, true);
    int draws = 0;
    for (int i = 0; i <= 1000; i++) { /* 4 seconds */
        bar_facts f = facts_at(i);
        bar_show(s.bar, &f);
        fflush(s.to);
        draws += s.length > s.read;
        s.read = s.length;
        s.now = s.now + (1.0 / 256);
    }
    assert_in_range(draws, 38, 41);
    close_stage(&s);
}

static void goes_on_where_it_stopped(void **state)
{
    (void)state;
    stage s;
    open_stage(&s, 100, true, false, true);
    bar_facts f = facts_at(234);
    f.loss = NAN;
    f.n_figures = 0;
    bar_show(s.bar, &f);
    expect(&s, HOME
           "epoch  2/10  234/469 ━━━━━━━━━━━━━━━━━━━━━━━━━━━╸────────────────────────────  input "
           "1%  reduce 6%" PARKED);
    for (int i = 1; i <= 41; i++) { /* 10 steps a second after the first, which took 7 */
        s.now = s.now + (i == 1 ? 7 : 0.1);
        f = facts_at(234 + i);
        fflush(s.to);
        s.read = s.length;
        bar_show(s.bar, &f);
    }
    expect(&s, HOME "epoch  2/10  275/469 ━━━━━━━╸─────  loss 0.3121 accuracy 0.8890  1.28k "
                    "samples/s  eta 0:19 all 6:35" PARKED);
    bar_epoch(s.bar, &f);
    expect(&s, CLEAR "epoch  2/10  11s   loss 0.3121 accuracy 0.8890  1.28k samples/s  input "
                     "1%  reduce 6%" STAYS);
    close_stage(&s);
}

static void a_resized_window_is_drawn_anew(void **state)
{
    (void)state;
    stage s;
    open_stage(&s, 80, true, false, true);
    bar_facts f = facts_at(100);
    bar_show(s.bar, &f);
    expect(
        &s, HOME
        "epoch  2/10  100/469 ━━━━━━───────────────────────  loss 0.3121 accuracy 0.8890" PARKED);
    s.columns = 40;
    s.now = s.now + (1);
    bar_show(s.bar, &f);
    expect(&s, CLEAR HOME "100/469 ━━━╸──────────────  loss 0.3121" PARKED);
    s.now = s.now + (1);
    bar_show(s.bar, &f);
    expect(&s, HOME "100/469 ━━━╸──────────────  loss 0.3121" PARKED);
    close_stage(&s);
}

static void others_print(void **state)
{
    (void)state;
    stage s;
    open_stage(&s, 40, true, false, true);
    bar_clear(s.bar); /* nothing is there yet */
    bar_redraw(s.bar);
    expect(&s, "");
    bar_facts f = facts_at(100);
    bar_show(s.bar, &f);
    expect(&s, HOME "100/469 ━━━╸──────────────  loss 0.3121" PARKED);
    bar_clear(s.bar);
    expect(&s, CLEAR);
    bar_clear(s.bar); /* by who prints for him who prints */
    bar_redraw(s.bar);
    s.read = s.length;
    bar_redraw(s.bar);
    expect(&s, HOME "100/469 ━━━╸──────────────  loss 0.3121" PARKED);
    bar_epoch(s.bar, &f);
    s.read = s.length;
    bar_clear(s.bar);
    bar_redraw(s.bar); /* a line that stays is there once */
    expect(&s, "");
    close_stage(&s);
}

/* 10 steps a second; the test takes 5 s, of which the rate knows nothing and the run's end does. */
static void tests_and_epochs(void **state)
{
    (void)state;
    stage s;
    open_stage(&s, 100, true, false, true);
    bar_facts f = facts_at(440);
    bar_show(s.bar, &f);
    for (int64_t step = 441; step <= 469; step++) {
        s.now = s.now + (0.1);
        f = facts_at(step);
        bar_show(s.bar, &f);
    }
    bar_facts t = f;
    t.figures = &figures[2], t.loss = 0.3901, t.steps = 50;
    for (t.step = 1; t.step <= 50; t.step++) {
        s.now = s.now + (0.1);
        fflush(s.to);
        s.read = s.length;
        bar_test(s.bar, &t);
        if (t.step == 20)
            expect(&s, HOME "epoch  2/10  test 20/50 ━━━━━━━━━━━━━━──────────────────────  loss "
                            "0.3901 accuracy 0.8603  eta 0:03" PARKED);
    }
    fflush(s.to);
    s.read = s.length;
    f.n_figures = 3;
    bar_epoch(s.bar, &f);
    expect(&s, CLEAR "epoch  2/10  7.9s  loss 0.3121 accuracy 0.8890  test loss 0.3901 "
                     "accuracy 0.8603  1.28k samples/s" STAYS);
    for (int64_t step = 1; step <= 10; step++) {
        s.now = s.now + (0.1);
        f = facts_at(step);
        f.epoch = 3, f.run_step += 469, f.samples += 469 * 128;
        fflush(s.to);
        s.read = s.length;
        bar_show(s.bar, &f);
    }
    expect(&s, HOME "epoch  3/10   10/469 ─────────────  loss 0.3121 accuracy 0.8890  1.28k "
                    "samples/s  eta 0:46 all 6:54" PARKED);
    s.now = s.now + (0.1);
    f = facts_at(11);
    f.epoch = 3, f.run_step += 469, f.samples += 469 * 128;
    f.run_steps = 1000; /* --steps: 5 s, and one test more, not one of each epoch */
    bar_show(s.bar, &f);
    expect(&s, HOME "epoch  3/10   11/469 ─────────────  loss 0.3121 accuracy 0.8890  1.28k "
                    "samples/s  eta 0:46 all 0:10" PARKED);
    close_stage(&s);
}

static void expect_ended(int columns, const char *line)
{
    stage s;
    open_stage(&s, columns, true, false, true);
    bar_facts f = facts_at(0);
    bar_show(s.bar, &f);
    s.now = s.now + (12.3);
    f = facts_at(469);
    bar_show(s.bar, &f);
    fflush(s.to);
    s.read = s.length;
    f.n_figures = 3;
    bar_epoch(s.bar, &f);
    char whole[2048];
    snprintf(whole, sizeof whole, CLEAR "%s" STAYS, line);
    expect(&s, whole);
    assert_true(text_columns(line) <= columns);
    close_stage(&s);
}

static void ended_epochs_fit_too(void **state)
{
    (void)state;
    expect_ended(200, "epoch  2/10  12s   loss 0.3121 accuracy 0.8890  test loss 0.3901 accuracy "
                      "0.8603  4.88k samples/s  input 1%  reduce 6%");
    expect_ended(
        80, "epoch  2/10  12s   loss 0.3121 accuracy 0.8890  test loss 0.3901 accuracy 0.8603");
    expect_ended(60, "epoch  2/10  loss 0.3121  test loss 0.3901 accuracy 0.8603");
    expect_ended(40, "epoch  2/10  12s   test accuracy 0.8603");
    expect_ended(10, "12s");
}

static void lines_where_there_is_no_terminal(void **state)
{
    (void)state;
    stage s;
    open_stage(&s, 40, false, true, true); /* none of this is for a log */
    bar_facts f = facts_at(0);
    bar_show(s.bar, &f);
    expect(&s, "");
    s.now = s.now + (2);
    f = facts_at(1);
    bar_show(s.bar, &f);
    expect(&s, "epoch  2/10  step   1/469  loss 0.3121 accuracy 0.8890  input 1%  reduce 6%\n");
    for (int64_t step = 2; step <= 160; step++) { /* one every 10 s */
        s.now = s.now + (0.0625);
        f = facts_at(step);
        bar_show(s.bar, &f);
    }
    expect(&s, "");
    s.now = s.now + (0.0625 * 2);
    f = facts_at(162);
    bar_show(s.bar, &f);
    expect(&s, "epoch  2/10  step 162/469  loss 0.3121 accuracy 0.8890  2.05k samples/s  eta 0:19 "
               "all 4:14  input 1%  reduce 6%\n");
    bar_clear(s.bar);
    bar_redraw(s.bar);
    expect(&s, "");
    bar_facts t = f;
    t.figures = &figures[2], t.loss = 0.3901, t.steps = 2;
    for (t.step = 1; t.step <= 2; t.step++) {
        s.now = s.now + (1);
        bar_test(s.bar, &t);
    }
    expect(&s, "epoch  2/10  test 2/2  loss 0.3901 accuracy 0.8603\n");
    f.n_figures = 3;
    bar_epoch(s.bar, &f);
    expect(&s, "epoch  2/10  14s   loss 0.3121 accuracy 0.8890  test loss 0.3901 accuracy 0.8603  "
               "2.05k samples/s  input 1%  reduce 6%\n");
    close_stage(&s);
}

static void long_epochs_have_fewer_lines(void **state)
{
    (void)state;
    static const struct {
        int64_t steps;
        int lines;
    } cases[] = { { 100, 11 }, { 300, 11 }, { 1200, 20 } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        stage s;
        open_stage(&s, 80, false, false, false);
        for (int64_t step = 0; step <= cases[i].steps; step++) { /* one a second */
            bar_facts f = facts_at(step);
            f.steps = cases[i].steps;
            bar_show(s.bar, &f);
            s.now = s.now + (1);
        }
        fflush(s.to);
        int lines = 0;
        for (size_t at = 0; at < s.length; at++)
            lines += s.bytes[at] == '\n';
        assert_in_range(lines, cases[i].lines - 1, cases[i].lines + 1);
        close_stage(&s);
    }
}

static void the_last_line_stays(void **state)
{
    (void)state;
    for (int live = 0; live <= 1; live++) {
        stage s;
        open_stage(&s, 60, live, false, true);
        bar_facts f = facts_at(0);
        bar_show(s.bar, &f);
        for (int64_t step = 1; step <= 100; step++) {
            s.now = s.now + (0.01);
            f = facts_at(step);
            bar_show(s.bar, &f);
        }
        fflush(s.to);
        s.read = s.length;
        bar_close(s.bar);
        s.bar = NULL;
        expect(&s, live ? CLEAR "100/469 ━━╸─────────  loss 0.3121 accuracy 0.8890  eta 0:04" STAYS
                        : "epoch  2/10  step 100/469  loss 0.3121 accuracy 0.8890  12.8k samples/s "
                          " eta 0:04 all 0:41  input 1%  reduce 6%\n");
        close_stage(&s);
    }
}

static void odd_facts(void **state)
{
    (void)state;
    stage s;
    open_stage(&s, 80, true, false, true);
    bar_figure many[20];
    for (int i = 0; i < 20; i++)
        many[i] = (bar_figure){ i ? "a" : "very\033[2J long names are cut somewhere", i };
    bar_facts f = facts_at(500); /* more than there are */
    f.epochs = 0, f.n_figures = 20, f.figures = many, f.loss = NAN;
    f.input = NAN, f.reduce = -1;
    bar_show(s.bar, &f);
    expect(
        &s, HOME
        "500/469 ━━━━━━━━━━━━━━━━━━━━  very?[2J long names are  0.0000 a 1.0000 a 2.0000" PARKED);
    f.steps = f.step = 0;
    f.n_figures = 0;
    s.now = s.now + (1);
    bar_show(s.bar, &f);
    expect(&s, HOME "0/0 ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━" PARKED);
    close_stage(&s);

    bar_show(NULL, &f);
    bar_test(NULL, &f);
    bar_epoch(NULL, &f);
    bar_clear(NULL);
    bar_redraw(NULL);
    bar_close(NULL);
}

/* ---- on another thread ---------------------------------------------------------------------- */

enum { LOGGED = 500 };

static void *log_lines(void *user)
{
    stage *s = user;
    for (int i = 0; i < LOGGED; i++) {
        bar_clear(s->bar);
        fputs("logged\n", s->to);
        bar_redraw(s->bar);
    }
    return NULL;
}

/* What is logged begins where the bar was cleared, or after another line. */
static void others_print_on_their_threads(void **state)
{
    (void)state;
    stage s;
    open_stage(&s, 60, true, false, true);
    pthread_t logger;
    assert_int_equal(pthread_create(&logger, NULL, log_lines, &s), 0);
    for (int64_t step = 0; step < 2000; step++) {
        bar_facts f = facts_at(step);
        s.now = s.now + (0.2); /* it draws every time */
        bar_show(s.bar, &f);
        if (step % 100 == 99)
            bar_epoch(s.bar, &f);
    }
    pthread_join(logger, NULL);
    fflush(s.to);
    int logged = 0;
    for (const char *at = s.bytes; (at = strstr(at, "logged\n")); at++, logged++) {
        bool cleared = at - s.bytes >= (ptrdiff_t)strlen(CLEAR) &&
                       memcmp(at - strlen(CLEAR), CLEAR, strlen(CLEAR)) == 0;
        assert_true(cleared || at == s.bytes || at[-1] == '\n');
    }
    assert_int_equal(logged, LOGGED);
    close_stage(&s);
}

static void restored_once_when_something_is_drawn(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    FILE *to = fdopen(ends[1], "w");
    const terminal screen = { .file = ends[1], .live = true, .columns = 40 };
    bar *b = bar_open(to, &(bar_options){ .screen = &screen });
    bar_restore();
    bar_facts f = facts_at(1);
    bar_epoch(b, &f);
    bar_restore();
    bar_show(b, &f);
    bar_restore();
    bar_restore();
    bar_close(b);
    bar_restore();
    fclose(to);
    char got[4096];
    ssize_t n = read(ends[0], got, sizeof got - 1);
    assert_true(n > 0);
    got[n] = 0;
    assert_null(strstr(got, "\n\r\n"));
    char *restored = strstr(got, PARKED "\r\n");
    assert_non_null(restored);
    assert_null(strstr(restored + strlen(PARKED "\r\n"), "\r\n"));
    close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_leave_as_the_window_narrows),
        cmocka_unit_test(ascii_where_there_is_no_more),
        cmocka_unit_test(colours),
        cmocka_unit_test(a_length_that_nobody_knows),
        cmocka_unit_test(draws_ten_times_a_second),
        cmocka_unit_test(steps_that_are_not_due_need_no_figures),
        cmocka_unit_test(goes_on_where_it_stopped),
        cmocka_unit_test(a_resized_window_is_drawn_anew),
        cmocka_unit_test(others_print),
        cmocka_unit_test(tests_and_epochs),
        cmocka_unit_test(ended_epochs_fit_too),
        cmocka_unit_test(lines_where_there_is_no_terminal),
        cmocka_unit_test(long_epochs_have_fewer_lines),
        cmocka_unit_test(the_last_line_stays),
        cmocka_unit_test(odd_facts),
        cmocka_unit_test(others_print_on_their_threads),
        cmocka_unit_test(restored_once_when_something_is_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
