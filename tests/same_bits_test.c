/*
 * The same bits on any number of devices, for every optimizer: the short form, for `make test`.
 *
 *     same_bits_test                       a few steps in settings of all kinds
 *     same_bits_test soak [RUNS [STEPS]]   the whole proof (`make soak`; 10 runs of 200 steps)
 *     same_bits_test one NAME=VALUE...     one setting against its reference
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "same_bits/same_bits.h"
#include "strategy/strategy_support.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RACES 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define RACES 1
#elif !defined(RACES)
#define RACES 0
#endif

/* In the first four steps are rows of every kind, and an update of parts. Every how many-th recipe
 * is taken: all, or fewer where each step is slow (no divisor of SB_OPTIMIZERS, so that each has its
 * turn). */
enum { STEPS = RACES ? 4 : 6, STRIDE = RACES ? 13 : SANITIZED ? 3 : 1 };

static void check(const sb_setting *s, const sb_record *want)
{
    char problem[SB_TEXT], text[SB_TEXT];
    if (!sb_check(s, want, problem))
        fail_msg("%s\nagain: same_bits_test one %s", problem, sb_text(s, text));
}

static void refer(const sb_setting *s, sb_record *out)
{
    char problem[SB_TEXT], text[SB_TEXT];
    if (!sb_train(s, out, problem) || !sb_finite(out, problem))
        fail_msg("%s\nagain: same_bits_test one %s", problem, sb_text(s, text));
}

static void traced_on_any_devices(void **state)
{
    (void)state;
    static const int devices[] = { 2, 3, 5 };
    for (int r = 0; r < SB_RECIPES; r += STRIDE) {
        sb_setting s = sb_reference(r, 5 + r % 2, STEPS);
        sb_record want;
        refer(&s, &want);
        for (int i = RACES; i < 3; i++) {
            s.devices = devices[i];
            s.cross = LS_CROSS_DEVICE_DIRECT + (r + i) % 3;
            sb_set_packing(&s, 3 * r + i);
            check(&s, &want);
        }
        sb_record_free(&want);
    }
}

/* Eager steps have the bits of traced ones, but for passes that say they have not. */
static void eager_on_any_devices(void **state)
{
    (void)state;
    for (int r = 0; r < SB_RECIPES; r += 2 * STRIDE) {
        sb_setting s = sb_reference(r, 5 + r / 2 % 2, STEPS);
        s.kind = SB_EXACT;
        sb_record want;
        refer(&s, &want);
        s.kind = SB_EAGER;
        s.devices = 3;
        s.sequential = r % 4 == 2;
        s.cross = LS_CROSS_DEVICE_DIRECT + r / 2 % 3;
        check(&s, &want);
        sb_record_free(&want);
    }
}

static void replicas_that_move(void **state)
{
    (void)state;
    for (int r = 1; r < SB_RECIPES; r += 4 * STRIDE) {
        sb_setting s = sb_reference(r, 5 + r / 4 % 2, STEPS);
        sb_record want;
        refer(&s, &want);
        s.devices = 2;
        s.move = 5;
        check(&s, &want);
        sb_record_free(&want);
    }
}

static void steps_that_fail_leave_nothing(void **state)
{
    (void)state;
    for (int r = 2; r < SB_RECIPES; r += 4 * STRIDE) {
        sb_setting s = sb_reference(r, 6 - r / 4 % 2, STEPS);
        sb_record want;
        s.kind = SB_EXACT;
        refer(&s, &want);
        s.devices = 3;
        for (s.failure = SB_EARLY; s.failure <= SB_LATE; s.failure++)
            for (s.kind = SB_EXACT; s.kind <= SB_EAGER; s.kind++)
                if (!RACES || s.kind - SB_EXACT == s.failure - SB_EARLY)
                    check(&s, &want);
        sb_record_free(&want);
    }
}

/* Another seed is another training, and so is another V: the digest is of something. */
static void a_difference_is_seen(void **state)
{
    (void)state;
    char problem[SB_TEXT];
    sb_setting s = sb_reference(3, 5, 2);
    sb_record want, got;
    refer(&s, &want);
    s.seed = 2;
    refer(&s, &got);
    assert_false(sb_same(&want, &got, problem));
    assert_non_null(strstr(problem, "losses of step 0"));
    assert_true(sb_digest(&want) != sb_digest(&got));
    sb_record_free(&got);
    s.seed = 1;
    refer(&s, &got);
    assert_true(sb_same(&want, &got, problem));
    assert_true(sb_digest(&want) == sb_digest(&got));
    got.bytes[got.entries[got.n_entries / 2].at] ^= 1;
    assert_false(sb_same(&want, &got, problem));
    assert_non_null(strstr(problem, got.entries[got.n_entries / 2].name));
    sb_record_free(&got);
    sb_record_free(&want);
}

static void settings_are_read_as_they_are_written(void **state)
{
    (void)state;
    char text[SB_TEXT], again[SB_TEXT], problem[SB_TEXT], *words[20], *bad[] = { "cross=ring" };
    sb_setting s = sb_reference(SB_RECIPES - 1, 12, 7), got;
    s.kind = SB_EAGER, s.devices = 8, s.cross = LS_CROSS_DEVICE_HIERARCHICAL, s.sequential = 1;
    s.move = 3, s.failure = SB_LATE;
    sb_set_packing(&s, 8);
    int n = 0;
    sb_text(&s, text);
    for (char *w = strtok(strcpy(again, text), " "); w; w = strtok(NULL, " "))
        words[n++] = w;
    assert_true(sb_parse(n, words, &got, problem));
    assert_memory_equal(&s, &got, sizeof s);
    assert_false(sb_parse(1, bad, &got, problem));
    assert_non_null(strstr(problem, "to-one"));
}

/* A number of the command line, or what is usual; 0 when it is none. */
static int number_at(int argc, char **argv, int i, int usual)
{
    return i < argc ? atoi(argv[i]) : usual;
}

static int usage(void)
{
    fprintf(stderr, "usage: same_bits_test [soak [RUNS [STEPS]] | one NAME=VALUE...]\n");
    return 2;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "one") == 0)
        return sb_one(argc - 2, argv + 2);
    if (argc > 1) {
        int runs = number_at(argc, argv, 2, SB_PACKINGS), steps = number_at(argc, argv, 3, 200);
        bool sound = strcmp(argv[1], "soak") == 0 && argc <= 4 && runs > 0 && steps > 0;
        return sound ? sb_soak(runs, steps) : usage();
    }
    const struct CMUnitTest tests[] = {
        TEST(settings_are_read_as_they_are_written),
        TEST(a_difference_is_seen),
        TEST(traced_on_any_devices),
        TEST(eager_on_any_devices),
        TEST(replicas_that_move),
        TEST(steps_that_fail_leave_nothing),
    };
    return RUN_TESTS(tests);
}
