/*
 * LS_FOR_EACH in C: a frame a turn, and iterator and frame are closed however the loop is left. The
 * same in C++ is for_each.cc.
 */
#include "data/data_support.h"

typedef struct counted {
    int n; /* elements in an iteration */
    int fails_at;
    int next, opened, closed;
} counted;

static void *open_counted(void *user, int64_t iteration)
{
    (void)iteration;
    counted *c = user;
    c->opened++;
    c->next = 0;
    return c;
}

static void close_counted(void *state)
{
    ((counted *)state)->closed++;
}

static ls_status next_counted(void *state, ls_value **out)
{
    counted *c = state;
    if (c->next == c->n)
        return LS_END;
    if (c->fails_at && c->next == c->fails_at)
        return ls_string_at(NULL, 0, NULL, NULL);
    *out = ls_leaf(ls_full(LS_F32, LS_DIMS(1000), c->next++));
    return LS_OK;
}

static ls_dataset *dataset(counted *c)
{
    return ls_generate(LS_GENERATOR(.user = c, .open = open_counted, .close = close_counted,
                                    .next = next_counted, .spec = "f32[1000]"));
}

static int depth(void)
{
    int d = ls_frame_open();
    ls_frame_close(d);
    return d;
}

static float first(ls_value *v)
{
    return ((const float *)ls_data(ls_leaf_tensor(v)))[0];
}

#define IS_CLOSED(c)                                                                               \
    do {                                                                                           \
        assert_int_equal((c)->opened, 1);                                                          \
        assert_int_equal((c)->closed, 1);                                                          \
    } while (0)

static void to_the_end(void **state)
{
    (void)state;
    counted c = { .n = 5 };
    int before, turns = 0;
    LS_FRAME {
        before = depth();
        size_t most = 0, base = memory();
        LS_FOR_EACH (v, dataset(&c)) {
            assert_int_equal(depth(), before + 1); /* a frame a turn */
            assert_true(first(v) == (float)turns);
            turns++;
            most = memory() - base > most ? memory() - base : most;
        }
        assert_int_equal(depth(), before);
        assert_int_equal(turns, 5);
        assert_true(most < 4 * 4000); /* elements go with their turn */
        IS_CLOSED(&c);
    }
    assert_int_equal(ls_error(), LS_OK);
}

static void with_break_and_continue(void **state)
{
    (void)state;
    counted c = { .n = 10 };
    int seen = 0;
    LS_FRAME {
        int before = depth();
        LS_FOR_EACH (v, dataset(&c)) {
            if ((int)first(v) % 2)
                continue;
            if (first(v) == 6)
                break;
            seen += 1 << (int)first(v);
        }
        assert_int_equal(depth(), before);
        IS_CLOSED(&c);
    }
    assert_int_equal(seen, 1 << 0 | 1 << 2 | 1 << 4);
    assert_int_equal(ls_error(), LS_OK);
}

static int find(counted *c, float what)
{
    int at = 0;
    LS_FOR_EACH (v, dataset(c)) {
        LS_FRAME {
            if (first(v) == what)
                return at;
        }
        at++;
    }
    return -1;
}

static void with_return_and_goto(void **state)
{
    (void)state;
    LS_FRAME {
        int before = depth();
        counted c = { .n = 10 }, d = { .n = 10 }, e = { .n = 10 };
        assert_int_equal(find(&c, 4), 4);
        IS_CLOSED(&c);
        assert_int_equal(find(&d, 40), -1);
        IS_CLOSED(&d);
        LS_FOR_EACH (v, dataset(&e))
            if (first(v) == 2)
                goto out;
    out:
        IS_CLOSED(&e);
        assert_int_equal(depth(), before);
    }
    assert_int_equal(ls_error(), LS_OK);
}

static void inside_of_one_another(void **state)
{
    (void)state;
    LS_FRAME {
        int before = depth(), turns = 0;
        LS_FOR_EACH (a, ls_range(0, 4, 1))
            LS_FOR_EACH (b, ls_range(0, 10, 1)) {
                if (ls_to_int(ls_leaf_tensor(b)) > ls_to_int(ls_leaf_tensor(a)))
                    break; /* of the inner one */
                turns++;
            }
        assert_int_equal(turns, 1 + 2 + 3 + 4);
        assert_int_equal(depth(), before);
    }
    assert_int_equal(ls_error(), LS_OK);
}

static void over_nothing(void **state)
{
    (void)state;
    counted c = { .n = 0 };
    LS_FRAME {
        LS_FOR_EACH (v, dataset(&c))
            fail_msg("gave %s", written(v, 0));
        IS_CLOSED(&c);
    }
    assert_int_equal(ls_error(), LS_OK);
}

/* A failure ends the loop, and is pending. */
static void a_failure_ends_it(void **state)
{
    (void)state;
    counted c = { .n = 10, .fails_at = 3 };
    int turns = 0;
    LS_FRAME {
        int before = depth();
        LS_FOR_EACH (v, dataset(&c)) {
            assert_non_null(v);
            turns++;
        }
        assert_int_equal(turns, 3);
        assert_int_equal(ls_error_pending(), LS_INVALID);
        ls_error();
        assert_int_equal(depth(), before);
        IS_CLOSED(&c);
    }
}

/* What is made in a turn goes with it, unless it is handed up; an error of the body is not lost. */
static void what_a_turn_makes(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *sum = ls_scalar(LS_I64, 0);
        LS_FOR_EACH (v, ls_range(0, 100, 1))
            sum = ls_hand_up(ls_add(sum, ls_leaf_tensor(v)));
        assert_int_equal(ls_to_int(sum), 4950);
        int turns = 0;
        LS_FOR_EACH (v, ls_range(0, 3, 1)) {
            ls_get(v, "a leaf has no keys");
            turns++;
        }
        assert_int_equal(turns, 3);
        assert_int_not_equal(ls_error(), LS_OK);
    }
}

#define TEST(f) cmocka_unit_test_setup(f, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(to_the_end),           TEST(with_break_and_continue),
        TEST(with_return_and_goto), TEST(inside_of_one_another),
        TEST(over_nothing),         TEST(a_failure_ends_it),
        TEST(what_a_turn_makes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
