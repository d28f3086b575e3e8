/*
 * What the passes make of a step that replicas meet in: a net with a meeting in every gap between
 * its operators, one gap at a time and all at once. Traced, it does what it does eagerly: the
 * same bits with no passes, close with them.
 */
#include "strategy/strategy_support.h"

#include <lockstep/random.h>

#include "support/same.h"

enum { GAPS_APART = SANITIZED ? 5 : 1 }; /* of the gaps that are tried: each meeting at others */

/* ---- a loss and its gradient, with a meeting between them ------------------------------------- */

static ls_value *loss_over_count(ls_value *arguments, void *user)
{
    ls_tape *tape = ls_tape_open();
    ls_tensor *x = ls_item(arguments, 0), *labels = ls_item(arguments, 1);
    ls_tensor *w = ls_read(user);
    ls_tensor *rows = ls_sparse_softmax_xent(ls_matmul(x, w), labels);
    ls_value *count = ls_all_reduce(ls_get_replica_context(), LS_SUM, ls_child(arguments, 2));
    ls_tensor *loss = ls_div(ls_sum(rows, LS_ALL_AXES, false),
                             ls_stop_gradient(count ? ls_leaf_tensor(count) : NULL));
    return pair(ls_leaf(loss), ls_leaf(ls_gradient(tape, loss, w)));
}

static void check_loss(ls_strategy *s, int n, bool traced)
{
    ls_variable *w = NULL;
    if (!traced)
        return;
    LS_SCOPE (s)
        w = ls_variable_new("w", ls_full(LS_F32, LS_DIMS(2, 3), 0.5), true);
    ls_function *f = ls_trace(loss_over_count, w);
    for (int turn = 1; turn <= 3; turn++)
        LS_FRAME {
            ls_value *a = ls_list(3, (ls_value *[]){ ls_leaf(ls_full(LS_F32, LS_DIMS(4, 2), 1)),
                                                     ls_leaf(ls_zeros(LS_I32, LS_DIMS(4))),
                                                     numbers(s, turn, 1) });
            double count = n * turn + n * (n - 1) / 2, yes = -8.0 / 3 / count, no = 4.0 / 3 / count;
            ls_value *v = ls_run(s, f, a);
            GAVE(v);
            for (int i = 0; i < n; i++) {
                HOLDS(part(ls_child(v, 0), i), 4 * 1.0986122886681098 / count);
                HOLDS(part(ls_child(v, 1), i), yes, no, no, yes, no, no);
            }
        }
    ls_function_free(f);
    ls_variable_free(w);
}

EVERYWHERE(a_loss_is_divided_by_the_count_of_its_own_step, check_loss)

/* ---- meetings ------------------------------------------------------------------------------------ */

enum { ROWS = 8, WIDTH = 16, STEPS = 2, GAPS = 22, NO_GAP = -1, EVERY_GAP = -2 };

typedef enum meeting {
    THROUGH, /* the tensor is all-reduced */
    BESIDE,  /* a number of it is, and changes it */
    SWAPS,   /* replicas get one another's */
    WRITES,  /* a merge function writes the weights */
    ASSIGNS, /* replicas write a variable, and read it */
    MEETINGS
} meeting;

typedef struct net {
    ls_variable *w, *k, *mean, *seen;
    meeting meeting;
    int gap;       /* where they meet: the number of the gap */
    bool again;    /* weights are read again where they are used again */
    bool descends; /* the step writes its weights at the end */
    int gaps;      /* that replica 0 came through */
} net;

/* One replica on its way through the net. */
typedef struct way {
    net *n;
    int gaps; /* behind it */
    ls_tensor *w, *k;
} way;

static ls_value *rotate(ls_strategy *s, ls_value *arguments, void *user)
{
    (void)user;
    ls_value *parts[MOST_REPLICAS];
    int n = ls_num_replicas(s);
    for (int i = 0; i < n; i++)
        parts[i] = ls_select(arguments, (i + 1) % n);
    return ls_per_replica(s, parts);
}

static ls_value *halve_weights(ls_strategy *s, ls_value *arguments, void *user)
{
    (void)s;
    net *n = user;
    ls_status st = ls_assign(n->w, ls_scale(ls_read(n->w), 0.5));
    return st || ls_assign(n->k, ls_scale(ls_read(n->k), 0.5)) ? NULL : arguments;
}

static ls_tensor *meet(net *n, ls_tensor *x)
{
    ls_replica *r = ls_get_replica_context();
    ls_tensor *number = ls_mean(x, LS_ALL_AXES, false);
    ls_value *v = NULL;
    switch (n->meeting) {
    case THROUGH:
        v = ls_all_reduce(r, LS_MEAN, ls_leaf(x));
        return v ? ls_leaf_tensor(v) : NULL;
    case BESIDE:
        v = ls_all_reduce(r, LS_SUM, ls_leaf(number));
        break;
    case SWAPS:
        v = ls_merge_call(r, rotate, NULL, ls_leaf(x));
        break;
    case WRITES:
        v = ls_merge_call(r, halve_weights, n, ls_leaf(number));
        break;
    default:
        if (!ls_assign(n->mean, number))
            v = ls_leaf(ls_read(n->mean));
    }
    /* A product: the gradients of what is before depend on what was met about. */
    return v ? ls_mul(x, ls_shift(ls_scale(ls_tanh(ls_leaf_tensor(v)), 0.1), 1)) : NULL;
}

/* Between two operators. */
static ls_tensor *gap(way *on, ls_tensor *x)
{
    bool here = on->n->gap == on->gaps++ || on->n->gap == EVERY_GAP;
    return here ? meet(on->n, x) : x;
}

/* ---- the net --------------------------------------------------------------------------------------- */

static ls_tensor *weights(way *on)
{
    return on->n->again ? ls_read(on->n->w) : on->w;
}

static ls_tensor *dense(way *on, ls_tensor *x)
{
    ls_tensor *h = gap(on, ls_matmul(x, on->w));
    ls_tensor *b = gap(on, ls_mean(h, LS_AXES(0), false));
    h = gap(on, ls_add(h, b));
    return gap(on, ls_relu(h));
}

/* By hand and ready-made. */
static ls_tensor *attention(way *on, ls_tensor *h)
{
    ls_tensor *q = gap(on, ls_matmul(h, weights(on)));
    ls_tensor *scores = gap(on, ls_matmul_t(q, false, h, true));
    scores = gap(on, ls_scale(scores, 0.25));
    ls_tensor *p = gap(on, ls_softmax(scores, -1));
    ls_tensor *y = gap(on, ls_matmul(p, h));
    return gap(on, ls_add(y, ls_attention(q, h, y, true, 0)));
}

static ls_tensor *convolution(way *on, ls_tensor *images)
{
    ls_tensor *c = gap(on, ls_conv2d(images, on->k, LS_CONV(.padding = LS_SAME)));
    c = gap(on, ls_add(c, ls_mean(c, LS_AXES(0, 1, 2), false)));
    c = gap(on, ls_relu(c));
    ls_tensor *k = on->n->again ? ls_read(on->n->k) : on->k;
    c = gap(on, ls_conv2d(c, k, LS_CONV(.padding = LS_SAME)));
    return gap(on, ls_max_pool2d(ls_relu(c), 2, 2, LS_VALID));
}

static ls_value *step(ls_value *arguments, void *user)
{
    net *n = user;
    way on = { .n = n };
    ls_tape *tape = ls_tape_open();
    on.w = ls_read(n->w), on.k = ls_read(n->k);
    ls_tensor *x = gap(&on, ls_mul(ls_item(arguments, 0), my_number(1, 0.5)));
    ls_tensor *y = attention(&on, dense(&on, x));
    ls_tensor *c = convolution(&on, ls_item(arguments, 1));
    ls_tensor *rows = gap(&on, ls_sparse_softmax_xent(y, ls_item(arguments, 2)));
    ls_tensor *soft = gap(&on, ls_softmax_xent(y, ls_softmax(x, -1)));
    ls_tensor *loss = gap(&on, ls_sum(ls_add(rows, soft), LS_ALL_AXES, false));
    loss = gap(&on, ls_add(loss, ls_mean(c, LS_ALL_AXES, false)));
    ls_tensor *dw = gap(&on, ls_gradient(tape, loss, on.w));
    ls_tensor *dk = gap(&on, ls_gradient(tape, loss, on.k));
    ls_tape_close(tape);
    ls_assign_add(n->seen, ls_mean(y, LS_ALL_AXES, false));
    if (n->descends) {
        ls_assign_sub(n->w, ls_scale(dw, 0.01));
        ls_assign_sub(n->k, ls_scale(dk, 0.01));
    }
    if (my_id() == 0)
        n->gaps = on.gaps;
    return ls_tensors(7, (ls_tensor *[]){ loss, y, c, dw, dk, on.w, ls_read(n->w) });
}

/* ---- eager against traced ----------------------------------------------------------------------------- */

static void make_variables(net *n, ls_strategy *s)
{
    ls_random_seed(5);
    LS_SCOPE (s) {
        n->w = ls_variable_with(LS_VARIABLE(.aggregation = LS_AGGREGATE_MEAN), "w",
                                ls_glorot_uniform(LS_F32, LS_DIMS(WIDTH, WIDTH)));
        n->k = ls_variable_with(LS_VARIABLE(.aggregation = LS_AGGREGATE_MEAN), "k",
                                ls_glorot_uniform(LS_F32, LS_DIMS(3, 3, 4, 4)));
        n->mean = ls_variable_with(LS_VARIABLE(.aggregation = LS_AGGREGATE_MEAN), "mean",
                                   ls_scalar(LS_F32, 0));
        n->seen = ls_variable_with(
            LS_VARIABLE(.synchronization = LS_SYNC_ON_READ, .aggregation = LS_AGGREGATE_SUM),
            "seen", ls_scalar(LS_F32, 0));
    }
    GAVE(n->seen);
}

static ls_value *batch(int turn)
{
    int32_t labels[ROWS];
    for (int i = 0; i < ROWS; i++)
        labels[i] = (i * 5 + turn) % WIDTH;
    ls_random_step(turn);
    return ls_tensors(3, (ls_tensor *[]){ ls_random_normal(LS_F32, LS_DIMS(ROWS, WIDTH), 0, 1),
                                          ls_random_normal(LS_F32, LS_DIMS(2, 6, 6, 4), 0, 1),
                                          ls_from(LS_I32, LS_DIMS(ROWS), labels) });
}

enum { REPLICAS = 2, RESULTS = 7, ALL = STEPS * REPLICAS * RESULTS + 4 };

/* Everything that can be seen of some steps, kept. `off` NULL: eager; else these passes. */
static void run_net(net *n, int devices, const char *off, ls_tensor **out)
{
    ls_strategy *s = replicas_on(REPLICAS, devices);
    ls_function *f = ls_trace_with(LS_TRACE(.off = off), step, n);
    make_variables(n, s);
    for (int turn = 0; turn < STEPS; turn++)
        LS_FRAME {
            ls_value *v = off ? ls_run(s, f, batch(turn)) : ls_run_eager(s, step, n, batch(turn));
            GAVE(v);
            for (int i = 0; i < RESULTS * REPLICAS; i++)
                *out++ = ls_keep(part(ls_child(v, i / REPLICAS), i % REPLICAS));
        }
    ls_variable *all[] = { n->w, n->k, n->mean, n->seen };
    for (int i = 0; i < 4; i++) {
        LS_FRAME
            *out++ = ls_keep(ls_add(ls_read(all[i]), ls_scalar(LS_F32, 0)));
        ls_variable_free(all[i]);
    }
    ls_function_free(f);
    free_strategy(s);
}

static void compare(const net *n, int devices, ls_tensor *const *want, ls_tensor *const *got,
                    bool exactly)
{
    for (int i = 0; i < ALL; i++) {
        double apart = same_apart(want[i], got[i]);
        if (exactly ? !same_bits(want[i], got[i]) : !(apart <= 16 * same_near(LS_F32)))
            fail_msg("%d devices, meeting %d at gap %d%s%s, passes %s: tensor %d (%s) is %g apart",
                     devices, n->meeting, n->gap, n->again ? ", weights read again" : "",
                     n->descends ? ", weights written" : "", exactly ? "off" : "on", i,
                     ls_describe(want[i]), apart);
    }
}

static void compare_ways(net *n, int devices)
{
    static const char *const off[] = { NULL, "all", "" };
    ls_tensor *seen[3][ALL];
    for (int i = 0; i < 3; i++)
        run_net(n, devices, off[i], seen[i]);
    compare(n, devices, seen[0], seen[1], true);
    compare(n, devices, seen[0], seen[2], false);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < ALL; k++)
            ls_drop(seen[i][k]);
}

/* Weights are read again and written in half of the nets. */
static void check_meeting(meeting kind)
{
    for (int at = kind % GAPS_APART; at < GAPS; at += GAPS_APART) {
        net n = { .meeting = kind, .gap = at, .again = (at + kind) & 1, .descends = at >> 1 & 1 };
        compare_ways(&n, (at + kind) % 4 ? 1 : 2);
        assert_int_equal(n.gaps, GAPS);
    }
}

static void meetings_through_a_net(void **state)
{
    (void)state;
    check_meeting(THROUGH);
}

static void meetings_beside_a_net(void **state)
{
    (void)state;
    check_meeting(BESIDE);
}

static void replicas_that_get_one_anothers_tensors(void **state)
{
    (void)state;
    check_meeting(SWAPS);
}

static void merge_functions_that_write_the_weights(void **state)
{
    (void)state;
    check_meeting(WRITES);
}

static void replicas_that_write_what_they_read(void **state)
{
    (void)state;
    check_meeting(ASSIGNS);
}

static void a_meeting_in_every_gap_or_none(void **state)
{
    (void)state;
    for (int i = 0; i < (GAPS_APART == 1 ? 4 : 2); i++) {
        net n = { .gap = NO_GAP, .again = i & 1, .descends = i & 2 };
        compare_ways(&n, 2);
        n.gap = EVERY_GAP;
        for (int kind = 0; kind < MEETINGS; kind++) {
            n.meeting = (meeting)kind;
            compare_ways(&n, 1 + (i + kind) % 2);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_loss_is_divided_by_the_count_of_its_own_step),
        TEST(meetings_through_a_net),
        TEST(meetings_beside_a_net),
        TEST(replicas_that_get_one_anothers_tensors),
        TEST(merge_functions_that_write_the_weights),
        TEST(replicas_that_write_what_they_read),
        TEST(a_meeting_in_every_gap_or_none),
    };
    return RUN_TESTS(tests);
}
