/* Logs of runs: what is read, what a resumed run drops, and that no file is too bad to be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run_log.h"
#include "text.h"

static run_log *read_bytes(const char *bytes, size_t length)
{
    run_log *log = run_log_new();
    FILE *from = length ? fmemopen((void *)bytes, length, "r") : fopen("/dev/null", "r");
    assert_non_null(log);
    assert_non_null(from);
    assert_true(run_log_read(log, from));
    fclose(from);
    return log;
}

static run_log *read_text(const char *lines)
{
    return read_bytes(lines, strlen(lines));
}

/* A figure's points as "step:value" (epochs: "epoch@step:value"), with spaces between them. */
static void expect_points(const run_log *log, const char *name, const char *expected)
{
    textbuf out = { 0 };
    const run_figure *f = run_log_find(log, name);
    for (size_t i = 0; f && i < f->n; i++) {
        text_add(&out, i ? " " : "");
        if (f->points[i].epoch)
            text_format(&out, "%d@", (int)f->points[i].epoch);
        text_format(&out, "%d:%g", (int)f->points[i].step, f->points[i].value);
    }
    assert_string_equal(text_read(&out), expected);
    text_free(&out);
}

#define START                                                                                      \
    "{\"event\":\"start\",\"model\":\"cnn\",\"parameters\":347146,\"replicas\":2,"                 \
    "\"devices\":[\"/cpu:0\"],\"global_batch\":128,\"command\":\"lockstep train\"}\n"
#define RESUMED(step) "{\"event\":\"start\",\"model\":\"cnn\",\"resumed_step\":" #step "}\n"
#define STEP(step, loss) "{\"event\":\"step\",\"step\":" #step ",\"loss\":" #loss "}\n"
#define EPOCH(epoch, step, loss)                                                                   \
    "{\"event\":\"epoch\",\"epoch\":" #epoch ",\"step\":" #step ",\"loss\":" #loss                 \
    ",\"accuracy\":0.8,\"test_accuracy\":0.9,\"seconds\":" #epoch ",\"replica_seconds\":["         \
    "{\"input\":" #epoch ",\"forward\":0.5},{\"reduce\":" #epoch ",\"else\":1}]}\n"

static void a_run(void **state)
{
    (void)state;
    run_log *log = read_text(START STEP(1, 2.3) STEP(100, 0.5) EPOCH(1, 150, 0.6) STEP(
        200, null) EPOCH(2, 300, 0.4) "{\"event\":\"saved\",\"path\":\"x\"}\n"
                                      "{\"event\":\"end\",\"steps\":300,\"samples_per_second\":4e4,"
                                      "\"seconds\":2.5}\n");
    assert_string_equal(log->model, "cnn");
    assert_string_equal(log->command, "lockstep train");
    assert_int_equal(log->parameters, 347146);
    assert_int_equal(log->replicas, 2);
    assert_int_equal(log->global_batch, 128);
    assert_int_equal(log->steps, 300);
    assert_true(log->samples_per_second == 4e4);
    assert_true(log->seconds == 2.5);
    expect_points(log, RUN_STEP_LOSS, "1:2.3 100:0.5 200:nan");
    expect_points(log, "loss", "1@150:0.6 2@300:0.4");
    expect_points(log, "test_accuracy", "1@150:0.9 2@300:0.9");
    assert_null(run_log_find(log, "seconds"));
    assert_int_equal(log->n_replicas, 2);
    assert_true(log->phases[0][LS_PHASE_INPUT] == 2 && log->phases[0][LS_PHASE_FORWARD] == 0.5);
    assert_true(log->phases[1][LS_PHASE_REDUCE] == 2 && log->phases[1][LS_PHASE_INPUT] == 0);
    assert_int_equal(log->lines, 8);
    assert_int_equal(log->damaged, 0);
    run_log_free(log);
}

static void what_was_done_again_replaces(void **state)
{
    (void)state;
    run_log *log = read_text(START STEP(1, 2.3) STEP(100, 0.5) EPOCH(1, 150, 0.6) STEP(200, 0.45)
                                 EPOCH(2, 300, 0.4) STEP(400, 0.35) RESUMED(150) STEP(151, 0.7)
                                     STEP(200, 0.46) EPOCH(2, 300, 0.41));
    expect_points(log, RUN_STEP_LOSS, "1:2.3 100:0.5 151:0.7 200:0.46");
    expect_points(log, "loss", "1@150:0.6 2@300:0.41");
    assert_int_equal(log->steps, 300);
    /* 1 s of the first process until step 150, and 2 s of the second. */
    assert_true(log->phases[0][LS_PHASE_INPUT] == 3 && log->phases[0][LS_PHASE_FORWARD] == 1);
    assert_true(log->seconds == 3);
    assert_int_equal(log->parameters, 347146); /* told once */
    run_log_free(log);

    /* Before the first step event that a checkpoint precedes. */
    log = read_text(START STEP(1, 2.3) STEP(100, 0.5) RESUMED(50) STEP(51, 0.6));
    expect_points(log, RUN_STEP_LOSS, "1:2.3 51:0.6");
    run_log_free(log);
}

static void a_start_that_resumes_nothing_begins_anew(void **state)
{
    (void)state;
    run_log *log = read_text(START STEP(1, 2.3) EPOCH(1, 150, 0.6) START STEP(1, 2.4));
    expect_points(log, RUN_STEP_LOSS, "1:2.4");
    expect_points(log, "loss", "");
    assert_int_equal(log->n_replicas, 0);
    assert_true(log->seconds == 0);
    assert_int_equal(log->steps, 1);
    run_log_free(log);
}

static void epochs_without_a_step_are_where_the_last_step_was(void **state)
{
    (void)state;
    run_log *log =
        read_text(START STEP(469, 0.5) "{\"event\":\"epoch\",\"epoch\":1,\"loss\":0.6}\n" RESUMED(
            480) "{\"event\":\"epoch\",\"epoch\":1,\"loss\":0.7}\n");
    expect_points(log, "loss", "1@480:0.7");
    run_log_free(log);
}

static void expect_damaged(const char *lines, int64_t damaged, const char *points)
{
    run_log *log = read_text(lines);
    assert_int_equal(log->damaged, damaged);
    expect_points(log, RUN_STEP_LOSS, points);
    run_log_free(log);
}

static void damaged_lines_are_counted(void **state)
{
    (void)state;
    expect_damaged("", 0, "");
    expect_damaged("\n", 1, "");
    expect_damaged("[1]\n3\n\"x\"\nnull\n{}\n{\"event\":1}\n", 6, "");
    expect_damaged(STEP(1, 2) "{\"event\":\"st\n" STEP(3, 4), 1, "1:2 3:4");
    expect_damaged(STEP(-1, 2) STEP("1", 2) STEP(1.5, 2) STEP(1e99, 2), 4, "");
    expect_damaged("{\"event\":\"step\",\"step\":1,\"step\":2}\n", 1, "");
    expect_damaged("{\"event\":\"epoch\",\"epoch\":0}\n{\"event\":\"epoch\"}\n", 2, "");
    expect_damaged(STEP(1, "x") STEP(2, [3]), 0, "1:nan 2:nan");
    expect_damaged("{\"event\":\"epoch\",\"epoch\":1,\"replica_seconds\":[1,{\"input\":\"x\"}]}\n",
                   0, "");
}

static void a_torn_last_line_is_ignored(void **state)
{
    (void)state;
    expect_damaged(STEP(1, 2) "{\"event\":\"step\",\"step\":3,\"lo", 0, "1:2");
    expect_damaged(STEP(1, 2) "{\"event\":\"step\",\"step\":3,\"loss\":4}", 0, "1:2 3:4");
    /* After it a run went on: it is a damaged line, and takes the next with it. */
    expect_damaged(STEP(1, 2) "{\"event\":\"st" STEP(3, 4) STEP(5, 6), 1, "1:2 5:6");
}

static void bytes_that_are_no_text(void **state)
{
    (void)state;
    static const char zeros[] = STEP(1, 2) "\0\0\0\0\n" STEP(3, 4);
    run_log *log = read_bytes(zeros, sizeof zeros - 1);
    assert_int_equal(log->damaged, 1);
    expect_points(log, RUN_STEP_LOSS, "1:2 3:4");
    run_log_free(log);

    size_t length = 3 << 20; /* more than a line may have */
    char *lines = malloc(length + 100);
    assert_non_null(lines);
    memset(lines, '[', length);
    strcpy(lines + length, "\n" STEP(3, 4));
    log = read_bytes(lines, strlen(lines));
    assert_int_equal(log->damaged, 1);
    expect_points(log, RUN_STEP_LOSS, "3:4");
    run_log_free(log);
    free(lines);
}

static void figures_are_bounded(void **state)
{
    (void)state;
    textbuf line = { 0 };
    text_add(&line, "{\"event\":\"epoch\",\"epoch\":1");
    for (int i = 0; i < 1000; i++)
        text_format(&line, ",\"f%d\":%d", i, i);
    text_add(&line, "}\n");
    run_log *log = read_text(text_read(&line));
    assert_int_equal(log->n_figures, 64);
    assert_int_equal(log->damaged, 0);
    run_log_free(log);
    text_free(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run),
        cmocka_unit_test(what_was_done_again_replaces),
        cmocka_unit_test(a_start_that_resumes_nothing_begins_anew),
        cmocka_unit_test(epochs_without_a_step_are_where_the_last_step_was),
        cmocka_unit_test(damaged_lines_are_counted),
        cmocka_unit_test(a_torn_last_line_is_ignored),
        cmocka_unit_test(bytes_that_are_no_text),
        cmocka_unit_test(figures_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
