/*
 * Replicas meet: merge_call, nested to any depth, with functions that fail; replicas that should
 * meet and do not. Whatever replicas do, a run ends, with the right result or with an error that
 * says what each did, and the strategy goes on.
 */
#include "strategy/strategy_support.h"

#include <pthread.h>
#include <stdio.h>

/* Replicas did what they should not: which code that is, is the library's to say. */
static void misused(const char *const *words)
{
    ls_status st = ls_error_pending();
    fails_with(__FILE__, __LINE__, st == LS_INVALID ? LS_INVALID : LS_STATE, words);
}
#define MISUSED(...) misused((const char *[]){ __VA_ARGS__, NULL })

/* ---- merge_call --------------------------------------------------------------------------- */

typedef struct merge_facts {
    int calls;
    ls_spread own, same;
    pthread_t thread;
} merge_facts;

/* The seed's example: the sum of what all replicas have, for each of them. */
static ls_value *sum_merge(ls_strategy *s, ls_value *arguments, void *user)
{
    merge_facts *f = user;
    f->calls++;
    f->own = ls_spread_of(ls_child(arguments, 0));
    f->same = ls_spread_of(ls_child(arguments, 1));
    f->thread = pthread_self();
    ls_value *own = ls_child(arguments, 0);
    ls_tensor *sum = ls_reduce(s, LS_SUM, own, LS_NO_AXIS);
    return ls_list(3, (ls_value *[]){ ls_leaf(sum), own, ls_child(arguments, 1) });
}

static ls_value *three_plus_id(ls_value *arguments, void *user)
{
    ls_tensor *v = ls_add(ls_leaf_tensor(arguments), my_number(0, 1));
    ls_value *r =
        ls_merge_call(ls_get_replica_context(), sum_merge, user, pair(ls_leaf(v), arguments));
    /* sum + own + 3 */
    return pair(ls_leaf(ls_add(ls_add(ls_item(r, 0), ls_item(r, 1)), ls_item(r, 2))),
                ls_child(r, 0));
}

static void check_merge(ls_strategy *s, int n, bool traced)
{
    merge_facts f = { .calls = 0 };
    ls_value *v = run_step(s, traced, three_plus_id, &f, number(3));
    GAVE(v);
    double sum = 3 * n + n * (n - 1) / 2;
    HOLDS_EACH(ls_child(v, 0), n, sum + 3 + 3, 1);
    /* A plain result of the function is the same tensor on all, and so plain again. */
    assert_int_equal(ls_spread_of(ls_child(v, 1)), LS_SPREAD_PLAIN);
    HOLDS(ls_leaf_tensor(ls_child(v, 1)), sum);
    assert_int_equal(f.calls, 1);
    assert_true(pthread_equal(f.thread, pthread_self()));
    if (n > 1)
        assert_int_equal(f.own, LS_SPREAD_PER_REPLICA);
    assert_int_equal(f.same, LS_SPREAD_PLAIN);
}

EVERYWHERE(a_merge_is_called_once_with_grouped_arguments_on_the_callers_thread, check_merge)

static ls_value *user_merge(ls_strategy *s, ls_value *arguments, void *user)
{
    (void)s, (void)arguments;
    return number(*(int *)user);
}

static ls_value *own_user(ls_value *arguments, void *user)
{
    int *each = user;
    return ls_merge_call(ls_get_replica_context(), user_merge, &each[my_id()], arguments);
}

static ls_value *mirror_merge(ls_strategy *s, ls_value *arguments, void *user)
{
    (void)user;
    return ls_reduce_to(s, LS_MEAN, arguments, ls_at_value(arguments));
}

static ls_value *mean_by_merge(ls_value *arguments, void *user)
{
    (void)user;
    return ls_merge_call(ls_get_replica_context(), mirror_merge, NULL, arguments);
}

static void check_merge_results(ls_strategy *s, int n, bool traced)
{
    static int each[MOST_REPLICAS] = { 10, 11, 12, 13, 14, 15, 16, 17 };
    HOLDS_EACH(run_step(s, traced, own_user, each, number(1)), n, 10, 0);
    HOLDS_EACH(run_step(s, traced, mean_by_merge, NULL, numbers(s, 0, 2)), n, n - 1, 0);
    HOLDS_EACH(run_step(s, traced, mean_by_merge, NULL, number(6)), n, 6, 0);
}

EVERYWHERE(user_is_that_of_replica_0_and_mirrored_results_are_unwrapped, check_merge_results)

/* ---- runs in merges ------------------------------------------------------------------------- */

typedef struct nesting {
    int depth, fail_at; /* fail_at: 0 never; the replica that fails is the last one */
    bool in_merge;      /* the merge function at that depth fails instead */
    struct nesting *inner;
} nesting;

static ls_value *nested_step(ls_value *arguments, void *user);

static ls_value *nested_merge(ls_strategy *s, ls_value *arguments, void *user)
{
    nesting *t = user;
    if (t->fail_at == t->depth && t->in_merge)
        return fail_here("deep_merge");
    return ls_run_eager(s, nested_step, t->inner, arguments);
}

/* Adds id + 1 at every depth. */
static ls_value *nested_step(ls_value *arguments, void *user)
{
    nesting *t = user;
    bool last = my_id() == ls_num_replicas(ls_get_strategy()) - 1;
    if (t->fail_at == t->depth && !t->in_merge && last)
        return fail_here("deep_step");
    ls_value *mine = ls_leaf(ls_add(ls_leaf_tensor(arguments), my_number(1, 1)));
    return t->inner ? ls_merge_call(ls_get_replica_context(), nested_merge, t, mine) : mine;
}

static void check_nested(ls_strategy *s, int n, bool traced)
{
    nesting at[4];
    for (int fail_at = 0; fail_at <= 4; fail_at++)
        for (int in_merge = 0; in_merge < 2; in_merge++) {
            for (int i = 0; i < 4; i++)
                at[i] = (nesting){ i + 1, fail_at, in_merge, i < 3 ? &at[i + 1] : NULL };
            ls_value *v = run_step(s, traced, nested_step, at, number(0));
            if (!fail_at || (fail_at == 4 && in_merge)) { /* the innermost has no merge */
                HOLDS_EACH(v, n, 4, 4);
                continue;
            }
            assert_null(v);
            FAILS(LS_NOT_FOUND, in_merge ? "deep_merge" : "deep_step");
            assert_false(ls_has_strategy());
        }
    GAVE(run_step(s, traced, echo, NULL, number(1)));
}

EVERYWHERE(runs_nest_in_merges_and_fail_from_any_depth, check_nested)

typedef enum bad_merge { MERGE_FAILS, MERGE_NULL, MERGE_UNREAD, MERGE_FOREIGN } bad_merge;

typedef struct bad_merges {
    bad_merge kind;
    ls_value *foreign;
    ls_status met[MOST_REPLICAS];
} bad_merges;

static ls_value *fail_merge(ls_strategy *s, ls_value *arguments, void *user)
{
    (void)s;
    bad_merges *b = user;
    switch (b->kind) {
    case MERGE_FAILS:
        return fail_here("in_merge");
    case MERGE_NULL:
        return NULL;
    case MERGE_UNREAD:
        fail_here("in_merge");
        return arguments;
    default:
        return b->foreign;
    }
}

static ls_value *merge_badly(ls_value *arguments, void *user)
{
    bad_merges *b = user;
    ls_value *v = ls_merge_call(ls_get_replica_context(), fail_merge, user, arguments);
    b->met[my_id()] = ls_error_pending();
    return v;
}

static void check_bad_merges(ls_strategy *s, int n, bool traced)
{
    ls_strategy *more = replicas_on(n + 1, 1);
    bad_merges b = { .foreign = numbers(more, 0, 1) };
    for (int kind = MERGE_FAILS; kind <= MERGE_FOREIGN; kind++) {
        b.kind = (bad_merge)kind;
        memset(b.met, 0, sizeof b.met);
        if (run_step(s, traced, merge_badly, &b, numbers(s, 0, 1)))
            fail_msg("bad merge %d went well", kind);
        if (kind == MERGE_NULL)
            FAILS(LS_INVALID, "NULL");
        else if (kind == MERGE_FOREIGN)
            FAILS(LS_INVALID, "replica");
        else
            FAILS(LS_NOT_FOUND, "in_merge");
        for (int i = 0; i < n; i++)
            assert_int_not_equal(b.met[i], LS_OK);
    }
    GAVE(run_step(s, traced, echo, NULL, number(1)));
    free_strategy(more);
}

EVERYWHERE(a_merge_function_that_fails_fails_the_run, check_bad_merges)

/* ---- replicas that do different things ---------------------------------------------------------- */

static ls_value *other_merge(ls_strategy *s, ls_value *arguments, void *user)
{
    (void)s, (void)user;
    return arguments;
}

typedef enum parting {
    OTHER_FUNCTION, /* of merge_call */
    OTHER_COUNT,    /* one meeting more */
    OTHER_KIND,     /* merge_call or all_reduce */
    OTHER_OP,       /* SUM or MEAN */
    OTHER_SHAPE,
    OTHER_DTYPE,
    OTHER_NEST, /* of an all_reduce's argument */
    OTHER_NEST_MERGE,
    OTHER_VARIABLE, /* written */
    OTHER_WRITE,    /* assign or assign_add */
    PARTINGS
} parting;

typedef struct parted {
    parting kind;
    ls_variable *v, *w;
} parted;

/* The last replica does the other thing. */
static ls_value *part_ways(ls_value *arguments, void *user)
{
    const parted *p = user;
    bool last = my_id() == ls_num_replicas(ls_get_strategy()) - 1;
    ls_replica *r = ls_get_replica_context();
    ls_value *x = ls_leaf(my_number(1, 1)), *two = ls_leaf(ls_zeros(LS_F32, LS_DIMS(2)));
    switch (p->kind) {
    case OTHER_FUNCTION:
        return ls_merge_call(r, last ? other_merge : echo_merge, NULL, x);
    case OTHER_COUNT:
        x = ls_merge_call(r, echo_merge, NULL, x);
        return last ? ls_merge_call(r, echo_merge, NULL, x) : x;
    case OTHER_KIND:
        return last ? ls_all_reduce(r, LS_SUM, x) : ls_merge_call(r, echo_merge, NULL, x);
    case OTHER_OP:
        return ls_all_reduce(r, last ? LS_MEAN : LS_SUM, x);
    case OTHER_SHAPE:
        return ls_all_reduce(r, LS_SUM, last ? two : x);
    case OTHER_DTYPE:
        return ls_all_reduce(r, LS_SUM, last ? ls_leaf(ls_scalar(LS_I32, 1)) : x);
    case OTHER_NEST:
        return ls_all_reduce(r, LS_SUM, last ? pair(x, x) : ls_list(1, &x));
    case OTHER_NEST_MERGE:
        return ls_merge_call(r, echo_merge, NULL, last ? pair(x, x) : ls_list(1, &x));
    case OTHER_VARIABLE:
        return ls_assign(last ? p->w : p->v, ls_leaf_tensor(x)) ? NULL : arguments;
    default:
        return (last ? ls_assign_add : ls_assign)(p->v, ls_leaf_tensor(x)) ? NULL : arguments;
    }
}

static void check_partings(ls_strategy *s, int n, bool traced)
{
    if (n == 1)
        return;
    parted p = { .v = NULL };
    LS_SCOPE (s) {
        p.v = ls_variable_with(LS_VARIABLE(.aggregation = LS_AGGREGATE_SUM), "vee",
                               ls_scalar(LS_F32, 5));
        p.w = ls_variable_with(LS_VARIABLE(.aggregation = LS_AGGREGATE_SUM), "double_u",
                               ls_scalar(LS_F32, 6));
    }
    const char *last = replica_named(n - 1, n), *first = n > 2 ? "replicas 0" : "replica 0";
    for (int kind = 0; kind < PARTINGS; kind++) {
        p.kind = (parting)kind;
        for (int turn = 0; turn < 2; turn++) {
            if (run_step(s, traced, part_ways, &p, number(1)))
                fail_msg("parting %d of %d replicas went well", kind, n);
            if (kind == OTHER_SHAPE || kind == OTHER_DTYPE)
                FAILS(LS_SHAPE, first, last);
            else if (kind == OTHER_COUNT)
                FAILS(LS_STATE, "merge_call", last);
            else if (kind == OTHER_VARIABLE)
                MISUSED(first, last, "vee", "double_u");
            else if (kind == OTHER_KIND)
                MISUSED(first, last, "all_reduce", "merge_call");
            else if (kind == OTHER_OP)
                MISUSED(first, last, "SUM", "MEAN");
            else if (kind == OTHER_NEST || kind == OTHER_NEST_MERGE)
                FAILS(LS_INVALID, "replica 0", last, "structure");
            else
                MISUSED(first, last);
        }
    }
    HOLDS(ls_read(p.v), 5);
    HOLDS(ls_read(p.w), 6);
    GAVE(run_step(s, traced, echo, NULL, number(1)));
    ls_variable_free(p.v);
    ls_variable_free(p.w);
}

EVERYWHERE(replicas_that_part_at_a_meeting_get_an_error_that_names_them, check_partings)

/* ---- every combination ------------------------------------------------------------------------------ */

typedef enum act { RETURN, MERGE, REDUCE, FAIL, RETURN_OTHER, ACTS } act;

typedef struct play {
    act acts[3];
    ls_variable *count; /* ON_READ: written by each replica alone, first of all */
} play;

static ls_value *perform(ls_value *arguments, void *user)
{
    const play *p = user;
    int i = my_id();
    ls_replica *r = ls_get_replica_context();
    ls_value *x = ls_leaf(ls_add(ls_leaf_tensor(arguments), my_number(0, 1)));
    if (ls_assign_add(p->count, ls_scalar(LS_F32, 1)))
        return NULL;
    char what[32];
    snprintf(what, sizeof what, "fault_%d", i);
    switch (p->acts[i]) {
    case RETURN:
        return x;
    case MERGE:
        return ls_merge_call(r, echo_merge, NULL, x);
    case REDUCE:
        return ls_all_reduce(r, LS_SUM, x);
    case FAIL:
        return fail_here(what);
    default:
        return pair(x, x);
    }
}

/* How the play should end; takes the error. */
static void check_end(const play *p, int n, ls_value *v, const char *text)
{
    int counts[ACTS] = { 0 }, first_fail = -1;
    for (int i = n - 1; i >= 0; i--) {
        counts[p->acts[i]]++;
        if (p->acts[i] == FAIL)
            first_fail = i;
    }
    if (first_fail < 0 && counts[p->acts[0]] == n) {
        ls_value *leaf = p->acts[0] == RETURN_OTHER ? ls_child(v, 1) : v;
        if (p->acts[0] == REDUCE)
            HOLDS_EACH(leaf, n, n + n * (n - 1) / 2, 0);
        else
            HOLDS_EACH(leaf, n, 1, 1);
        return;
    }
    if (v)
        fail_msg("%s went well", text);
    ls_status st = ls_error_pending();
    char what[32], report[2048];
    snprintf(report, sizeof report, "%s", ls_error_report());
    bool good;
    if (first_fail >= 0) {
        snprintf(what, sizeof what, "fault_%d", first_fail);
        good = st == LS_NOT_FOUND && mentions(report, replica_named(first_fail, n)) &&
               mentions(report, what);
    } else if (!counts[MERGE] && !counts[REDUCE]) {
        good = st == LS_INVALID && mentions(report, "replica");
    } else {
        good = (st == LS_STATE || st == LS_INVALID) && mentions(report, "replica") &&
               (!counts[MERGE] || mentions(report, "merge_call")) &&
               (!counts[REDUCE] || mentions(report, "all_reduce"));
    }
    if (!good)
        fail_msg("%s: %s", text, report);
}

static void check_every_play(ls_strategy *s, int n, bool traced)
{
    play p = { .count = NULL };
    LS_SCOPE (s)
        p.count = ls_variable_with(
            LS_VARIABLE(.synchronization = LS_SYNC_ON_READ, .aggregation = LS_AGGREGATE_SUM),
            "count", ls_scalar(LS_F32, 0));
    int plays = n == 1 ? ACTS : n == 2 ? ACTS * ACTS : ACTS * ACTS * ACTS;
    double want = 0;
    for (int k = 0; k < plays; k++) {
        p.acts[0] = (act)(k % ACTS);
        p.acts[1] = (act)(k / ACTS % ACTS);
        p.acts[2] = (act)(k / ACTS / ACTS);
        /* Twice: the second time replicas run at once. */
        for (int turn = 0; turn < 2; turn++)
            LS_FRAME {
                char text[64];
                snprintf(text, sizeof text, "%d replicas, acts %d %d %d, turn %d, %s", n, p.acts[0],
                         p.acts[1], p.acts[2], turn, traced ? "traced" : "eager");
                ls_value *v = run_step(s, traced, perform, &p, number(1));
                want += v ? n : 0;
                check_end(&p, n, v, text);
                HOLDS(ls_read(p.count), want);
            }
    }
    assert_true(want > 0);
    ls_variable_free(p.count);
}

static void whatever_three_replicas_do_the_run_ends_well_or_with_a_clear_error(void **state)
{
    (void)state;
    for (int n = 1; n <= 3; n++)
        everywhere_of(n, check_every_play);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_merge_is_called_once_with_grouped_arguments_on_the_callers_thread),
        TEST(user_is_that_of_replica_0_and_mirrored_results_are_unwrapped),
        TEST(runs_nest_in_merges_and_fail_from_any_depth),
        TEST(a_merge_function_that_fails_fails_the_run),
        TEST(replicas_that_part_at_a_meeting_get_an_error_that_names_them),
        TEST(whatever_three_replicas_do_the_run_ends_well_or_with_a_clear_error),
    };
    return RUN_TESTS(tests);
}
