/*
 * Communicators whose ranks do not come, ask for something else, are ended from outside or give bad
 * arguments: nobody is left waiting, and nobody reads memory that its owner has back.
 */
#include <unistd.h>

#include "collective/test_party.h"

/* ---- different calls ------------------------------------------------------------------------------- */

static ls_status differ(party *p, int rank)
{
    double x[8] = { 0 };
    switch (*(int *)p->user) {
    case 0:
        if (rank == 0)
            return ls_comm_broadcast(p->comm, rank, 2, LS_F32, x, 8);
        return ls_comm_all_reduce(p->comm, rank, LS_SUM, LS_F32, x, 4);
    case 1:
        return ls_comm_all_reduce(p->comm, rank, LS_SUM, LS_F32, x, rank == 3 ? 5 : 4);
    case 2:
        return ls_comm_all_reduce(p->comm, rank, LS_SUM, rank ? LS_F64 : LS_I64, x, 4);
    case 3:
        return ls_comm_reduce(p->comm, rank, rank / 2, LS_MEAN, LS_F64, x, 1);
    default:
        return ls_comm_all_reduce(p->comm, rank, rank < 2 ? LS_SUM : LS_MEAN, LS_F64, x, 4);
    }
}

static void different_calls(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "rank 0 asked for broadcast of 8 f32 from rank 2, "
        "ranks 1 to 3 for all-reduce SUM of 4 f32",
        "ranks 0 to 2 asked for all-reduce SUM of 4 f32, rank 3 for all-reduce SUM of 5 f32",
        "rank 0 asked for all-reduce SUM of 4 i64, ranks 1 to 3 for all-reduce SUM of 4 f64",
        "ranks 0 and 1 asked for reduce MEAN of 1 f64 to rank 0, "
        "ranks 2 and 3 for reduce MEAN of 1 f64 to rank 1",
        "ranks 0 and 1 asked for all-reduce SUM of 4 f64, ranks 2 and 3 for all-reduce MEAN of 4 "
        "f64",
    };
    for (int i = 0; i < 5; i++) {
        party p = { .ranks = 4, .share = differ, .user = &i };
        p.comm = ls_comm_local(LS_COMM(.ranks = 4));
        hold(&p);
        all_failed(&p, LS_DESYNC, texts[i]);
        hold(&p); /* for ever */
        all_failed(&p, LS_DESYNC, texts[i]);
        ls_comm_free(p.comm);
    }
}

/* The longest text there is still ends. */
static ls_status all_differ(party *p, int rank)
{
    float x[MOST + 1];
    return ls_comm_all_reduce(p->comm, rank, LS_SUM, LS_F32, x, rank + 1);
}

static void many_different_calls(void **state)
{
    (void)state;
    party p = { .ranks = MOST, .share = all_differ };
    p.comm = ls_comm_local(LS_COMM(.ranks = MOST));
    hold(&p);
    all_failed(&p, LS_DESYNC, "rank 0 asked for all-reduce SUM of 1 f32, rank 1 for ");
    assert_non_null(strstr(p.text[0], "..."));
    ls_comm_free(p.comm);
}

/* ---- ranks that do not come --------------------------------------------------------------------------- */

/* Ranks 1, 3 and 4 stay away. */
static ls_status stay_away(party *p, int rank)
{
    float x[4] = { 0 };
    if (rank == 1 || rank == 3 || rank == 4)
        return LS_TIMEOUT;
    return ls_comm_all_reduce(p->comm, rank, LS_SUM, LS_F32, x, 4);
}

/* Whether those who stay away are named, and nobody else. */
static bool names_who_stays_away(double timeout)
{
    party p = { .ranks = 6, .share = stay_away };
    p.comm = ls_comm_local(LS_COMM(.ranks = 6, .timeout = timeout));
    hold(&p);
    bool named = true;
    for (int r = 0; r < 6; r++) {
        assert_int_equal(p.status[r], LS_TIMEOUT);
        if (r == 1 || r == 3 || r == 4)
            continue;
        assert_non_null(strstr(p.text[r], "all-reduce SUM of 4 f32"));
        named = named && strstr(p.text[r], "rank 1, ranks 3 and 4");
    }
    float x[4];
    assert_int_equal(ls_comm_all_reduce(p.comm, 1, LS_SUM, LS_F32, x, 4), LS_TIMEOUT);
    ls_error();
    ls_comm_free(p.comm);
    return named;
}

/* On a busy machine the others may be late, too: then they have more time. */
static void ranks_that_do_not_come(void **state)
{
    (void)state;
    bool named = false;
    for (double timeout = 0.02; timeout < 30 && !named; timeout *= 8)
        named = names_who_stays_away(timeout);
    assert_true(named);
}

/* ---- ended from outside --------------------------------------------------------------------------------- */

static ls_status all_but_one(party *p, int rank)
{
    float x[4] = { 0 };
    if (rank == p->ranks - 1) {
        usleep(3000);
        ls_comm_abort(p->comm, LS_IO, "the disk is full");
        ls_comm_abort(p->comm, LS_PEER, "not the first");
    }
    return ls_comm_all_reduce(p->comm, rank, LS_SUM, LS_F32, x, 4);
}

static void ended_while_others_wait(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 5; ranks += 2) {
        party p = { .ranks = ranks, .share = all_but_one };
        p.comm = ls_comm_local(LS_COMM(.ranks = ranks));
        hold(&p);
        all_failed(&p, LS_IO, "the disk is full");
        hold(&p);
        all_failed(&p, LS_IO, "the disk is full");
        ls_comm_free(p.comm);
    }
}

static void *end_it(void *user)
{
    party *p = user;
    usleep((useconds_t)below(600));
    ls_comm_abort(p->comm, LS_PEER, "ended at some moment");
    return NULL;
}

/* At any moment: every rank comes back, and its memory is its own again (the address sanitizer
 * looks on). */
static void ended_at_any_moment(void **state)
{
    (void)state;
    for (int i = 0; i < (SLOW ? 60 : 200); i++) {
        series s = { .calls = 100000, .count = pick(1, 3000) };
        party p = { .ranks = (int)pick(2, 4), .share = do_series, .user = &s };
        p.comm = ls_comm_local(
            LS_COMM(.ranks = p.ranks, .algorithm = (ls_algorithm)pick(1, LS_ALGORITHM_TO_ONE)));
        pthread_t ender;
        assert_int_equal(pthread_create(&ender, NULL, end_it, &p), 0);
        hold(&p);
        pthread_join(ender, NULL);
        all_failed(&p, LS_PEER, "ended at some moment");
        for (int r = 0; r < p.ranks; r++) {
            assert_int_equal(s.wrong[r], 0);
            free(s.last[r]);
        }
        ls_comm_free(p.comm);
    }
}

/* ---- bad arguments ----------------------------------------------------------------------------------------- */

static void refused(ls_status st, const char *text)
{
    assert_int_equal(st, LS_INVALID);
    if (!strstr(ls_error_text(), text))
        fail_msg("\"%s\", want \"%s\"", ls_error_text(), text);
    assert_int_equal(ls_error(), LS_INVALID);
}

static void *be_rank_1(void *user)
{
    float x = 1;
    assert_int_equal(ls_comm_all_reduce(user, 1, LS_SUM, LS_F32, &x, 1), LS_OK);
    return NULL;
}

static void two_threads_as_one_rank(void **state)
{
    (void)state;
    ls_comm *c = ls_comm_local(LS_COMM(.ranks = 2));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, be_rank_1, c), 0);
    for (int turn = 0; !atomic_load(&c->seats[1].busy); turn++)
        ls__back_off(turn);
    float x = 2;
    assert_int_equal(ls_comm_all_reduce(c, 1, LS_SUM, LS_F32, &x, 1), LS_STATE);
    assert_non_null(strstr(ls_error_text(), "as rank 1"));
    assert_int_equal(ls_error(), LS_STATE);
    assert_int_equal(ls_comm_all_reduce(c, 0, LS_SUM, LS_F32, &x, 1), LS_OK);
    assert_true(x == 3);
    pthread_join(thread, NULL);
    ls_comm_free(c);
}

static void bad_calls(void **state)
{
    (void)state;
    ls_comm *c = ls_comm_local(LS_COMM(.ranks = 2));
    double x[4] = { 0 };
    refused(ls_comm_all_reduce(NULL, 0, LS_SUM, LS_F32, x, 4), "NULL");
    refused(ls_comm_all_reduce(c, -1, LS_SUM, LS_F32, x, 4), "rank is -1");
    refused(ls_comm_all_reduce(c, 2, LS_SUM, LS_F32, x, 4), "rank is 2");
    refused(ls_comm_all_reduce(c, 0, LS_SUM, LS_F32, NULL, 4), "data is NULL");
    refused(ls_comm_all_reduce(c, 0, LS_SUM, LS_F32, x, -1), "count is -1");
    refused(ls_comm_all_reduce(c, 0, LS_SUM, LS_F64, x, INT64_MAX / 8), "count is");
    refused(ls_comm_all_reduce(c, 0, LS_SUM, LS_BYTES, x, 1), "dtype is bytes");
    refused(ls_comm_all_reduce(c, 0, LS_SUM, (ls_dtype)99, x, 1), "dtype is ? (99)");
    refused(ls_comm_all_reduce(c, 0, LS_SUM, LS_BF16, x, 1), "dtype is bf16");
    refused(ls_comm_all_reduce(c, 0, LS_SUM, LS_BOOL, x, 1), "dtype is bool");
    refused(ls_comm_all_reduce(c, 0, LS_ONLY_FIRST, LS_F32, x, 1), "op is ONLY_FIRST");
    refused(ls_comm_all_reduce(c, 0, (ls_reduce_op)0, LS_F32, x, 1), "op is ?");
    refused(ls_comm_all_reduce(c, 0, LS_SUM, LS_F32, (char *)x + 1, 1), "border of 4 bytes");
    refused(ls_comm_reduce(c, 0, 2, LS_SUM, LS_F32, x, 4), "root is 2");
    refused(ls_comm_reduce(c, 5, 0, LS_SUM, LS_F32, x, 4), "rank is 5");
    refused(ls_comm_reduce(c, 0, 0, LS_SUM, LS_BOOL, x, 4), "dtype is bool");
    refused(ls_comm_broadcast(c, 0, -1, LS_F32, x, 4), "root is -1");
    refused(ls_comm_broadcast(c, 0, 0, LS_BYTES, x, 4), "dtype is bytes");
    refused(ls_comm_broadcast(c, 0, 0, LS_F32, NULL, 4), "data is NULL");
    assert_int_equal(ls_comm_ranks(c), 2);
    assert_int_equal(ls_comm_ranks(NULL), 0);
    ls_comm_abort(NULL, LS_IO, "nothing");
    ls_comm_abort(c, LS_OK, NULL);
    assert_int_equal(ls_comm_all_reduce(c, 0, LS_SUM, LS_F32, x, 4), LS_CANCELLED);
    assert_int_equal(ls_error(), LS_CANCELLED);
    ls_comm_free(c);
    ls_comm_free(NULL);
}

static void not_made(const ls_comm_options *options, const char *text)
{
    assert_null(ls_comm_local(options));
    refused(LS_INVALID, text);
}

static void bad_options(void **state)
{
    (void)state;
    not_made(NULL, "NULL");
    not_made(&(ls_comm_options){ .ranks = 2 }, "options of 0 bytes");
    not_made(LS_COMM(.ranks = 0), "0 ranks");
    not_made(LS_COMM(.ranks = -1), "-1 ranks");
    not_made(LS_COMM(.ranks = 1025), "1025 ranks");
    not_made(LS_COMM(.ranks = 2, .algorithm = (ls_algorithm)6), "algorithm 6");
    not_made(LS_COMM(.ranks = 2, .algorithm = (ls_algorithm)-1), "algorithm -1");
    not_made(LS_COMM(.ranks = 2, .subdivisions = -1), "-1 subdivisions");
    not_made(LS_COMM(.ranks = 2, .subdivisions = 100000), "100000 subdivisions");
    not_made(LS_COMM(.ranks = 2, .ranks_per_host = 3), "3 ranks per host");
    not_made(LS_COMM(.ranks = 2, .timeout = -1), "timeout of -1");
    not_made(LS_COMM(.ranks = 2, .timeout = NAN), "timeout of");
    ls_comm_options o;
    ls_comm_init(&o);
    ls_comm_init(NULL);
    o.ranks = 1024;
    o.timeout = INFINITY;
    ls_comm *c = ls_comm_local(&o);
    assert_non_null(c);
    assert_int_equal(ls_comm_algorithm(c, 0), LS_ALGORITHM_DIRECT);
    ls_comm_free(c);
    assert_string_equal(ls_algorithm_name(LS_ALGORITHM_HALVING), "halving-doubling");
    assert_string_equal(ls_algorithm_name((ls_algorithm)77), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(different_calls),
        cmocka_unit_test(many_different_calls),
        cmocka_unit_test(ranks_that_do_not_come),
        cmocka_unit_test(ended_while_others_wait),
        cmocka_unit_test(ended_at_any_moment),
        cmocka_unit_test(two_threads_as_one_rank),
        cmocka_unit_test(bad_calls),
        cmocka_unit_test(bad_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
