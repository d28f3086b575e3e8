/*
 * The choice of layouts on small problems whose best answer is plain to see, and
 * against all answers on random ones.
 */
#include "trace/layout_choice.h"

#include "tensor/test_support.h"

enum { MOST = 6 };

typedef struct setting {
    ls__layout_problem p;
    ls__layout_node nodes[MOST];
    ls__layout_wire wires[MOST + 1];
    int touches[MOST * LS__LAYOUT_PORTS];
} setting;

/* A chain: node i takes wire i and makes wire i + 1; state 1 has both in form 1. */
static void chain(setting *s, int n, const double *gain, double move)
{
    memset(s, 0, sizeof *s);
    s->p = (ls__layout_problem){ n, n + 1, s->nodes, s->wires, s->touches };
    for (int i = 0; i < n; i++) {
        s->nodes[i] = (ls__layout_node){ .n_ports = 2, .n_states = 2, .gain_us = { 0, gain[i] } };
        s->nodes[i].port[0] = (ls__layout_port){ .wire = i, .form = { 0, 1 } };
        s->nodes[i].port[1] = (ls__layout_port){ .wire = i + 1, .makes = true, .form = { 0, 1 } };
    }
    for (int w = 0; w <= n; w++)
        s->wires[w].move_us = move;
    s->wires[n].plain_use = true;
    ls__layout_link(&s->p);
}

static double cost(const setting *s)
{
    double us = 0;
    for (int i = 0; i < s->p.n_nodes; i++)
        us -= s->nodes[i].gain_us[s->nodes[i].state];
    for (int w = 0; w < s->p.n_wires; w++)
        us += ls__layout_moves_us(&s->p, w);
    return us;
}

static void expect(setting *s, const char *states)
{
    ls__layout_choose(&s->p);
    for (int i = 0; i < s->p.n_nodes; i++)
        if (s->nodes[i].state != states[i] - '0')
            fail_msg("node %d is in state %d, want %s", i, s->nodes[i].state, states);
}

static void test_single(void **state)
{
    (void)state;
    setting s;
    chain(&s, 1, (const double[]){ 21 }, 10);
    expect(&s, "1");
    chain(&s, 1, (const double[]){ 20 }, 10); /* no gain: plain */
    expect(&s, "0");
}

static void test_regions(void **state)
{
    (void)state;
    setting s;
    /* Alone neither pays its two moves; together they do, with a row between them that
     * saves nothing itself. */
    chain(&s, 3, (const double[]){ 11, 0, 11 }, 10);
    expect(&s, "111");
    assert_true(cost(&s) == -2);
    /* No node is better off plain by itself, the three together are. */
    chain(&s, 3, (const double[]){ 9, 0, 9 }, 10);
    expect(&s, "000");
    /* At the ends a row is left plain: it saves nothing. */
    chain(&s, 4, (const double[]){ 0, 25, 25, 0 }, 10);
    expect(&s, "0110");
}

/* A wire made packed and wanted in another packed form goes through plain: two moves. */
static void test_two_forms(void **state)
{
    (void)state;
    setting s;
    chain(&s, 2, (const double[]){ 35, 35 }, 10);
    s.nodes[1].port[0].form[1] = s.nodes[1].port[1].form[1] = 2;
    ls__layout_choose(&s.p);
    assert_true(cost(&s) == -30);
    assert_true(ls__layout_wants_plain(&s.p, 1));
    assert_true(ls__layout_moves_us(&s.p, 1) == 20);
    assert_int_equal(ls__layout_made(&s.p, 1), 1);
    assert_int_equal(ls__layout_made(&s.p, 0), 0);
}

/* Two takers of one form share the move. */
static void test_shared(void **state)
{
    (void)state;
    setting s;
    chain(&s, 2, (const double[]){ 8, 8 }, 10);
    for (int i = 0; i < 2; i++) {
        s.nodes[i].n_ports = 1;
        s.nodes[i].port[0].wire = 0;
    }
    ls__layout_link(&s.p);
    expect(&s, "11");
    s.nodes[1].port[0].form[1] = 2;
    expect(&s, "00");
}

/* On chains descent with regions finds what trying everything finds, or stays close: never
 * worse than leaving all plain. */
static void test_random(void **state)
{
    (void)state;
    uint64_t x = 88172645463325252u;
    int best_found = 0, turns = 400;
    for (int turn = 0; turn < turns; turn++) {
        setting s;
        double gain[MOST];
        for (int i = 0; i < MOST; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            gain[i] = x >> 62 ? (double)(x >> 40 & 31) : 0;
        }
        chain(&s, MOST, gain, 10);
        ls__layout_choose(&s.p);
        double got = cost(&s), best = 0;
        assert_true(got <= 0);
        for (int bits = 0; bits < 1 << MOST; bits++) {
            for (int i = 0; i < MOST; i++)
                s.nodes[i].state = bits >> i & 1;
            best = cost(&s) < best ? cost(&s) : best;
        }
        best_found += got < best + 1e-9;
    }
    assert_true(best_found > turns * 9 / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_single, clean),    cmocka_unit_test_setup(test_regions, clean),
        cmocka_unit_test_setup(test_two_forms, clean), cmocka_unit_test_setup(test_shared, clean),
        cmocka_unit_test_setup(test_random, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
