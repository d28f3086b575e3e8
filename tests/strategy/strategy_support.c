/*
 * See strategy_support.h.
 */
#include "strategy/strategy_support.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Where `everywhere` is, for the text of a failed check; "" elsewhere. */
static char where[96];

/* ---- strategies ------------------------------------------------------------------- */

ls_strategy *replicas_on(int replicas, int devices)
{
    char names[256] = "";
    for (int i = 0; i < devices; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s/cpu:%d", i ? "," : "", i);
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = names, .replicas = replicas));
    if (!s)
        fail_msg("%d replicas on %s: %s", replicas, names, ls_error_report());
    assert_int_equal(ls_num_replicas(s), replicas);
    return s;
}

void free_strategy(ls_strategy *s)
{
    if (ls_strategy_free(s))
        fail_msg("%s freeing the strategy: %s", where, ls_error_report());
}

void everywhere_of(int n, placed_check check)
{
    for (int devices = 1; devices <= n; devices++) {
        for (int traced = 0; traced < 2; traced++) {
            snprintf(where, sizeof where, "(%d replicas, %d devices, %s) ", n, devices,
                     traced ? "traced" : "eager");
            LS_FRAME {
                ls_strategy *s = replicas_on(n, devices);
                check(s, n, traced);
                if (ls_error_pending())
                    fail_msg("%sleft an error: %s", where, ls_error_report());
                free_strategy(s);
            }
        }
    }
    where[0] = 0;
}

void everywhere(placed_check check)
{
    static const int counts[] = { 1, 2, 3, 5 };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        everywhere_of(counts[i], check);
}

int fresh(void **state)
{
    (void)state;
    where[0] = 0;
    for (int i = 0; i < 100 && ls_in_cross_replica_context(); i++)
        if (ls_scope_leave(ls_get_strategy()))
            ls_set_strategy(NULL);
    ls_error();
    return 0;
}

int say_where(void **state)
{
    (void)state;
    if (where[0])
        print_error("it was at %s\n", where);
    return 0;
}

/* ---- steps -------------------------------------------------------------------------- */

ls_value *run_step(ls_strategy *s, bool traced, ls_step step, void *user, ls_value *arguments)
{
    if (!traced)
        return ls_run_eager(s, step, user, arguments);
    ls_function *f = ls_trace(step, user);
    ls_value *v = ls_run(s, f, arguments);
    ls_function_free(f);
    return v;
}

int my_id(void)
{
    return ls_replica_id(ls_get_replica_context());
}

ls_tensor *my_number(double first, double more_each)
{
    return ls_scalar(LS_F32, first + more_each * my_id());
}

ls_value *fail_here(const char *what)
{
    return ls_get(ls_dict(0, NULL, NULL), what);
}

ls_value *nothing(void)
{
    return ls_list(0, NULL);
}

ls_value *number(double value)
{
    return ls_leaf(ls_scalar(LS_F32, value));
}

ls_value *pair(ls_value *a, ls_value *b)
{
    return ls_list(2, (ls_value *[]){ a, b });
}

ls_value *numbers(ls_strategy *s, double first, double more_each)
{
    ls_value *each[MOST_REPLICAS] = { NULL };
    for (int i = 0; i < ls_num_replicas(s); i++)
        each[i] = number(first + more_each * i);
    ls_value *v = ls_per_replica(s, each);
    if (!v)
        fail_msg("%snumbers: %s", where, ls_error_report());
    return v;
}

/* ---- looking ------------------------------------------------------------------------- */

ls_tensor *part(ls_value *leaf, int i)
{
    return ls_leaf_tensor(ls_select(leaf, i));
}

static bool near(double want, double got, ls_dtype dtype)
{
    double slack = dtype == LS_F32 ? 1e-6 : 1e-14;
    return fabs(want - got) <= slack * fmax(1, fabs(want));
}

void holds_all(const char *file, int line, ls_tensor *t, size_t count, const double *want)
{
    if (!t)
        fail_msg("%s:%d: %sno tensor: %s", file, line, where, ls_error_report());
    ls_tensor *wide = ls_cast(ls_is_sparse(t) ? ls_densify(t) : t, LS_F64);
    double got[64];
    assert_true(count <= 64);
    if (!wide || (size_t)ls_count(wide) != count ||
        ls_copy_out(wide, got, count * sizeof(double)) != LS_OK)
        fail_msg("%s:%d: %sa %s with %zu elements? %s", file, line, where, ls_describe(t), count,
                 ls_error_report());
    for (size_t i = 0; i < count; i++)
        if (!near(want[i], got[i], ls_dtype_of(t)))
            fail_msg("%s:%d: %selement %zu of %s is %g, not %g", file, line, where, i,
                     ls_describe(t), got[i], want[i]);
}

void holds_each(const char *file, int line, ls_value *v, int n, double first, double more_each)
{
    if (!v)
        fail_msg("%s:%d: %sno value: %s", file, line, where, ls_error_report());
    for (int i = 0; i < n; i++)
        holds_all(file, line, part(v, i), 1, (double[]){ first + more_each * i });
}

const char *replica_named(int i, int n)
{
    static char text[2][32];
    static int turn;
    turn = !turn;
    snprintf(text[turn], sizeof text[turn], "replica %d", i);
    return n == 1 ? "" : text[turn];
}

bool mentions(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (; *text; text++) {
        size_t i = 0;
        while (i < length && tolower((unsigned char)text[i]) == tolower((unsigned char)word[i]))
            i++;
        if (i == length)
            return true;
    }
    return length == 0;
}

void fails_with(const char *file, int line, ls_status want, const char *const *words)
{
    ls_status got = ls_error_pending();
    if (got != want)
        fail_msg("%s:%d: %swanted %s, got %s %s", file, line, where, ls_status_name(want),
                 ls_status_name(got), ls_error_report());
    char all[4096];
    snprintf(all, sizeof all, "%s", ls_error_report());
    for (; *words; words++)
        if (!mentions(all, *words))
            fail_msg("%s:%d: %sno '%s' in the error: %s", file, line, where, *words, all);
}

bool gave(const char *file, int line, const char *what, const void *x)
{
    if (x && !ls_error_pending())
        return true;
    print_error("%s:%d: %s%s: %s\n", file, line, where, what, ls_error_report());
    return false;
}

bool went_well(const char *file, int line, const char *what, ls_status status)
{
    if (!status && !ls_error_pending())
        return true;
    print_error("%s:%d: %s%s: %s\n", file, line, where, what, ls_error_report());
    return false;
}

void watchdog(void)
{
    alarm(60);
    if (getenv("LOCKSTEP_TEST_ONLY"))
        cmocka_set_test_filter(getenv("LOCKSTEP_TEST_ONLY"));
}

ls_value *echo(ls_value *arguments, void *user)
{
    (void)user;
    return arguments;
}

ls_value *echo_component(ls_variable *component, ls_value *arguments, void *user)
{
    (void)component, (void)user;
    return arguments;
}

ls_value *echo_merge(ls_strategy *s, ls_value *arguments, void *user)
{
    (void)s, (void)user;
    return arguments;
}

ls_value *one(int replica, int replicas, void *user)
{
    (void)replica, (void)replicas, (void)user;
    return number(1);
}
