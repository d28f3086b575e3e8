/*
 * Plots of runs that are small, odd or hostile. What the plot of an ordinary run looks like is
 * compared in tests/plot_test.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "canvas.h"
#include "plot.h"

static run_log *read_lines(const char *lines)
{
    run_log *log = run_log_new();
    FILE *from = fmemopen((void *)lines, strlen(lines), "r");
    assert_non_null(log);
    assert_non_null(from);
    assert_true(run_log_read(log, from));
    fclose(from);
    return log;
}

#define STEP(step, loss) "{\"event\":\"step\",\"step\":" #step ",\"loss\":" #loss "}\n"
#define EPOCH(epoch, figures) "{\"event\":\"epoch\",\"epoch\":" #epoch "," figures "}\n"

static void expect_text(const char *lines, int columns, bool utf8, const char *expected)
{
    run_log *log = read_lines(lines);
    plot *p = plot_make(log);
    assert_non_null(p);
    const terminal screen = { .file = -1, .columns = columns, .rows = 24, .utf8 = utf8 };
    textbuf out = { 0 };
    plot_text(&out, p, &screen);
    assert_string_equal(text_read(&out), expected);
    text_free(&out);
    plot_free(p);
    run_log_free(log);
}

static void one_step(void **state)
{
    (void)state;
    expect_text(STEP(1, 2.5), 30, false,
                "run  1 step\n"
                "\n"
                "loss by step   . steps\n"
                "    |\n"
                "    |\n"
                "2.6 +\n"
                "2.4 +                        .\n"
                "    |\n"
                "    |\n"
                "    ++-----------------------+\n"
                "     0                       1\n"
                "\n");
}

static void gaps_and_two_epochs(void **state)
{
    (void)state;
    expect_text(STEP(1, 3) STEP(2, 2) STEP(3, null) STEP(4, 1.5) STEP(5, 1)
                    EPOCH(1, "\"test_f1\":0.25") EPOCH(2, "\"f1\":0.5,\"test_f1\":0.75"),
                44, true,
                "run  5 steps\n"
                "\n"
                "loss by step   ⠒ steps\n"
                "3 ┤        ⠢⢄⡀\n"
                "  │          ⠈⠲⢄⡀\n"
                "  │             ⠈⠒⠤⡀\n"
                "2 ┤                ⠁\n"
                "  │                                ⠐⠒⠤⢄⣀\n"
                "1 ┤                                     ⠉⠑⠒⠤\n"
                "  └┬───────────────┬───────────────┬────────\n"
                "   0               2               4\n"
                "\n"
                "f1 by epoch   ○ train 0.5000   ● test 0.7500\n"
                "    │                                  ⣀⣀⠤⠤●\n"
                "0.6 ┤                          ⢀⣀⡠⠤⠔⠒⠊⠉\n"
                "    │                   ⢀⣀⠤⠤⠒⠒⠉⠁\n"
                "    │            ⢀⣀⠤⠤⠒⠒⠉⠉                  ○\n"
                "0.4 ┤     ⣀⡠⠤⠔⠒⠊⠉⠁\n"
                "    │●⠒⠒⠉⠉\n"
                "    └┬─────────────────────────────────────┬\n"
                "     1                                     2\n"
                "\n");
}

static void the_time_of_replicas(void **state)
{
    (void)state;
    expect_text("{\"event\":\"start\"}\n" EPOCH(
                    1,
                    "\"replica_seconds\":[{\"input\":2,\"forward\":3,\"backward\":4,\"reduce\":1,"
                    "\"apply\":1,\"other\":1},{\"forward\":6},{}]"),
                60, true,
                "run\n"
                "\n"
                "time   i input 11%  f forward 50%  b backward 22%\n"
                "       r reduce 6%  a apply 6%  o other 6%\n"
                "replica 0 iiiiiiiifffffffffffbbbbbbbbbbbbbbbrrrraaaoooo 12s\n"
                "replica 1 fffffffffffffffffffffff                       6.0s\n"
                "replica 2                                               0.0s\n");
}

static void nothing_to_plot(void **state)
{
    (void)state;
    run_log *log = read_lines("{\"event\":\"start\"}\n" STEP(1, null)
                                  EPOCH(1, "\"loss\":null,\"accuracy\":null"));
    plot *p = plot_make(log);
    assert_non_null(p);
    assert_true(plot_is_empty(p));
    plot_free(p);
    run_log_free(log);
}

/* ---- whatever there is, it fits ------------------------------------------------------------ */

static run_log *hostile_log(void)
{
    textbuf lines = { 0 };
    text_add(&lines, "{\"event\":\"start\",\"model\":\"<b>&\\u001b[2J\\n漢字]]>\\\"'\","
                     "\"command\":\"<script>&\",\"parameters\":9223372036854775807}\n");
    text_add(&lines, STEP(1, 1e308) STEP(2, -1e308) STEP(3, 1e-320) STEP(1000000000000, 0));
    for (int epoch = 1; epoch <= 300; epoch++)
        text_format(&lines,
                    "{\"event\":\"epoch\",\"epoch\":%d,\"step\":%d,\"loss\":%d,"
                    "\"<\\u001b&>\":1e-5,\"test_x\":%de30,"
                    "\"a name of a figure that is longer than any title should ever be\":1}\n",
                    epoch, epoch * 10, epoch % 7, epoch);
    text_add(&lines, "{\"event\":\"end\",\"steps\":9223372036854775807,\"seconds\":1e11,"
                     "\"replica_seconds\":[{\"input\":1e11}");
    for (int r = 0; r < 100; r++)
        text_format(&lines, ",{\"input\":%d,\"other\":%d.5,\"apply\":-1}", r, 100 - r);
    text_add(&lines, "]}\n");
    run_log *log = read_lines(text_read(&lines));
    assert_int_equal(log->damaged, 0);
    text_free(&lines);
    return log;
}

static void check_lines(const char *lines, int columns, bool utf8, bool colour)
{
    while (*lines) {
        char line[4096];
        size_t length = strcspn(lines, "\n");
        assert_true(length < sizeof line);
        memcpy(line, lines, length);
        line[length] = 0;
        assert_in_range(text_columns(line), 0, columns);
        for (const char *s = line; *s; s++) {
            assert_true((unsigned char)*s >= 0x20 || (colour && *s == 0x1b));
            assert_true(utf8 || (unsigned char)*s < 0x7f);
        }
        lines += length + (lines[length] != 0);
    }
}

static void every_line_fits(void **state)
{
    (void)state;
    run_log *log = hostile_log();
    plot *p = plot_make(log);
    assert_non_null(p);
    assert_true(p->n_charts >= 3);
    for (int columns = 20; columns <= 240; columns += columns < 50 ? 1 : 19)
        for (int how = 0; how < 4; how++) {
            const terminal screen = { .file = -1,
                                      .columns = columns,
                                      .rows = 10 + columns / 4,
                                      .utf8 = how % 2,
                                      .colour = how / 2 };
            textbuf out = { 0 };
            plot_text(&out, p, &screen);
            assert_false(out.failed);
            check_lines(text_read(&out), columns, screen.utf8, screen.colour);
            text_free(&out);
        }
    plot_free(p);
    run_log_free(log);
}

static void names_do_not_leave_their_place_in_xml(void **state)
{
    (void)state;
    run_log *log = hostile_log();
    plot *p = plot_make(log);
    textbuf out = { 0 };
    plot_svg(&out, p);
    const char *svg = text_read(&out);
    assert_non_null(strstr(svg, "<title>&lt;b&gt;&amp;?[2J?"));
    assert_null(strstr(svg, "<b>"));
    assert_null(strstr(svg, "<script>"));
    assert_null(strstr(svg, "nan"));
    assert_null(strstr(svg, "inf"));
    for (const char *s = svg; *s; s++)
        assert_true((unsigned char)*s >= 0x20 || *s == '\n');
    assert_string_equal(svg + strlen(svg) - 7, "</svg>\n");
    text_free(&out);
    plot_free(p);
    run_log_free(log);
}

/* ---- canvases ------------------------------------------------------------------------------ */

static void expect_row(const canvas *c, int row, const char *expected)
{
    textbuf out = { 0 };
    canvas_row(&out, c, row, NULL);
    assert_string_equal(text_read(&out), expected);
    text_free(&out);
}

static void lines_are_cut_at_the_edge(void **state)
{
    (void)state;
    canvas *c = canvas_new(4, 2, true);
    canvas_line(c, 0, 0, 1, 1, 0);
    expect_row(c, 0, "  ⡠⠊");
    expect_row(c, 1, "⡠⠊⠁");
    canvas_free(c);
    c = canvas_new(5, 3, false);
    canvas_line(c, 0, 1e300, 1, 0.5, 1);        /* from far above */
    canvas_line(c, 0.5, -1e300, 0.5, 1e300, 2); /* through all of it */
    canvas_line(c, 0, 2, 1, 3, 0);              /* not here */
    canvas_line(c, NAN, 0, 1, INFINITY, 0);     /* nowhere */
    canvas_line(c, -5, 0, 5, 0, 0);
    canvas_mark(c, 0, 1, 0);
    canvas_mark(c, 0, 1.1, 0);
    expect_row(c, 0, ". x o");
    expect_row(c, 1, "  x o");
    expect_row(c, 2, ".....");
    canvas_free(c);
    assert_null(canvas_new(0, 5, true));
    canvas_line(NULL, 0, 0, 1, 1, 0);
    canvas_mark(NULL, 0, 0, 0);
    canvas_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_step),
        cmocka_unit_test(gaps_and_two_epochs),
        cmocka_unit_test(the_time_of_replicas),
        cmocka_unit_test(nothing_to_plot),
        cmocka_unit_test(every_line_fits),
        cmocka_unit_test(names_do_not_leave_their_place_in_xml),
        cmocka_unit_test(lines_are_cut_at_the_edge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
