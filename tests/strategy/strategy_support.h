/*
 * What the tests of strategies share: strategies on any placement, steps run eagerly and traced,
 * and what to say about their results.
 *
 * Steps and merge functions run on threads and stacks of the library, so nothing in them may be
 * asserted: they note what they saw in `user`, or return it, and the test looks at it afterwards.
 */
#ifndef LS__TESTS_STRATEGY_SUPPORT_H
#define LS__TESTS_STRATEGY_SUPPORT_H

#include <lockstep/extended.h>
#include <lockstep/function.h>
#include <lockstep/ops.h>
#include <lockstep/strategy.h>
#include <lockstep/tape.h>
#include <lockstep/variable.h>

#include "tensor/test_support.h"

enum { MOST_REPLICAS = 8 };

/* Built with a sanitizer of memory or threads: what is slow then does less. */
#if defined(__has_feature) /* clang says it in this way, gcc in the other */
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif !defined(SANITIZED)
#define SANITIZED 0
#endif

/* ---- strategies ------------------------------------------------------------------- */

/* V replicas on CPU devices 0, 1, ... */
ls_strategy *replicas_on(int replicas, int devices);

/* Runs a check for n = 1, 2, 3, 5 replicas on 1 to n devices, eagerly and traced, each in a frame
 * of its own. Failed checks say where they were. */
typedef void (*placed_check)(ls_strategy *s, int n, bool traced);
void everywhere(placed_check check);

/* A test of that name that does it. */
#define EVERYWHERE(name, check)                                                                    \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        everywhere(check);                                                                         \
    }

/* The same for one n. */
void everywhere_of(int n, placed_check check);

void free_strategy(ls_strategy *s);

/* Before each test: the thread is as if nothing had been before it, also after a test that
 * failed half-way. */
int fresh(void **state);

/* After each: where a test that failed was. */
int say_where(void **state);

/* ---- steps -------------------------------------------------------------------------- */

/* One run, traced for the occasion or eager. */
ls_value *run_step(ls_strategy *s, bool traced, ls_step step, void *user, ls_value *arguments);

/* In a step: which replica this is. */
int my_id(void);

/* A tensor of one number that says which replica made it. */
ls_tensor *my_number(double first, double more_each);

/* In a step: fails with LS_NOT_FOUND and a text that has `what` in it. */
ls_value *fail_here(const char *what);

ls_value *nothing(void);        /* an empty list */
ls_value *number(double value); /* an f32 leaf */
ls_value *pair(ls_value *a, ls_value *b);

/* One f32 number a replica: first, first + more_each, ... */
ls_value *numbers(ls_strategy *s, double first, double more_each);

/* ---- looking ------------------------------------------------------------------------- */

/* The tensor has these elements (of any dtype). */
#define HOLDS(t, ...)                                                                              \
    holds_all(__FILE__, __LINE__, t, sizeof((double[]){ __VA_ARGS__ }) / sizeof(double),           \
              (double[]){ __VA_ARGS__ })
void holds_all(const char *file, int line, ls_tensor *t, size_t count, const double *want);

/* Each replica's component of a leaf, one number each: first, first + more_each, ... */
#define HOLDS_EACH(v, n, first, more_each) holds_each(__FILE__, __LINE__, v, n, first, more_each)
void holds_each(const char *file, int line, ls_value *v, int n, double first, double more_each);

/* Replica i's tensor of a leaf. */
ls_tensor *part(ls_value *leaf, int i);

/* Callbacks that give back what they get; and the number 1, for every replica. */
ls_value *echo(ls_value *arguments, void *user);
ls_value *echo_component(ls_variable *component, ls_value *arguments, void *user);
ls_value *echo_merge(ls_strategy *s, ls_value *arguments, void *user);
ls_value *one(int replica, int replicas, void *user);

/* The last call failed with this code, and its text and hint have these words in them (in any
 * case). Takes the error. */
#define FAILS(code, ...) fails_with(__FILE__, __LINE__, code, (const char *[]){ __VA_ARGS__, NULL })
void fails_with(const char *file, int line, ls_status want, const char *const *words);

/* What an error of replica i must say; with one replica there is nobody to tell apart. */
const char *replica_named(int i, int n);

/* `text` has `word` in it, in any case. */
bool mentions(const char *text, const char *word);

/* The call gave something and left no error. */
#define GAVE(x) assert_true(gave(__FILE__, __LINE__, #x, (x)))
bool gave(const char *file, int line, const char *what, const void *x);
#define OK(x) assert_true(went_well(__FILE__, __LINE__, #x, (x)))
bool went_well(const char *file, int line, const char *what, ls_status status);

/* Runs the tests of a group, or those that the pattern in LOCKSTEP_TEST_ONLY names; a hang ends
 * the program after a minute. */
#define RUN_TESTS(tests) (watchdog(), cmocka_run_group_tests(tests, NULL, NULL))
void watchdog(void);

/* A test in such a group, cleaned up before. */
#define TEST(f) cmocka_unit_test_setup_teardown(f, fresh, say_where)

#endif
