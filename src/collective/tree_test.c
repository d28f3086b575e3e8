/* The tree of sums: against the loop that docs promise, for every V up to 64 and the largest. */
#include "collective/tree.h"

#include <stdio.h>

#include "collective/placement.h"
#include "collective/test_support.h"

static void five_replicas(void **state)
{
    (void)state;
    ls__tree_node root = ls__tree_root(5), left, right;
    assert_int_equal(root, ls__tree_node_at(3, 0));
    assert_true(ls__tree_parts(root, 5, &left, &right));
    assert_int_equal(left, ls__tree_node_at(2, 0));
    assert_int_equal(right, ls__tree_node_at(0, 4)); /* (2, 1) and (1, 2) have no right part */
    assert_int_equal(ls__tree_name(2, 1, 5), right);
    assert_int_equal(ls__tree_name(1, 2, 5), right);
    assert_false(ls__tree_parts(right, 5, &left, &right));
    assert_int_equal(ls__tree_root(1), ls__tree_node_at(0, 0));
    assert_int_equal(ls__tree_root(1024), ls__tree_node_at(10, 0));
}

/* "((0+1)+2)": by parts. */
static void write_parts(ls__tree_node node, int v, char *out)
{
    ls__tree_node left, right;
    if (!ls__tree_parts(node, v, &left, &right)) {
        sprintf(out + strlen(out), "%d", ls__tree_first(node));
        return;
    }
    strcat(out, "(");
    write_parts(left, v, out);
    strcat(out, "+");
    write_parts(right, v, out);
    strcat(out, ")");
}

static void parts_are_the_loop(void **state)
{
    (void)state;
    static char values[64][512], sum[512];
    for (int v = 1; v <= 64; v++) {
        for (int r = 0; r < v; r++)
            sprintf(values[r], "%d", r);
        for (int gap = 1; gap < v; gap *= 2)
            for (int r = 0; r + gap < v; r += 2 * gap) {
                char *end = stpcpy(stpcpy(sum, "("), values[r]);
                strcpy(stpcpy(stpcpy(end, "+"), values[r + gap]), ")");
                strcpy(values[r], sum);
            }
        char by_parts[512] = "";
        write_parts(ls__tree_root(v), v, by_parts);
        assert_string_equal(by_parts, values[0]);
    }
}

/* All nodes of a tree, by their lowest names. */
static int all_nodes(int v, ls__tree_node *out)
{
    int n = 0;
    for (int k = 0; k <= LS__TREE_LEVELS; k++)
        for (int m = 0; m << k < v; m++)
            if (ls__tree_name(k, m, v) == ls__tree_node_at(k, m))
                out[n++] = ls__tree_node_at(k, m);
    return n;
}

static void a_sum_is_of_its_parts_and_of_no_others(void **state)
{
    (void)state;
    for (int v = 1; v <= 33; v++) {
        ls__tree_node nodes[128];
        int n = all_nodes(v, nodes), sums = 0;
        assert_int_equal(n, 2 * v - 1); /* of a binary tree with v leaves */
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                ls__tree_node sum, left, right;
                if (!ls__tree_sum(nodes[i], nodes[j], v, &sum))
                    continue;
                assert_true(ls__tree_parts(sum, v, &left, &right));
                assert_int_equal(left, nodes[i]);
                assert_int_equal(right, nodes[j]);
                sums++;
            }
        assert_int_equal(sums, v - 1);
    }
}

static void check_block(int first, int end, int v)
{
    ls__tree_node nodes[LS__MOST_BLOCK_NODES], sum;
    int n = ls__tree_block(first, end, v, nodes), at = first;
    assert_in_range(n, first < end, LS__MOST_BLOCK_NODES);
    for (int i = 0; i < n; i++) {
        assert_int_equal(ls__tree_first(nodes[i]), at);
        at = ls__tree_end(nodes[i], v);
        assert_int_equal(nodes[i],
                         ls__tree_name(ls__tree_level(nodes[i]), ls__tree_index(nodes[i]), v));
        /* Fewest: neighbours that have a sum would be one node. */
        assert_false(i > 0 && ls__tree_sum(nodes[i - 1], nodes[i], v, &sum));
    }
    assert_int_equal(at, end);
}

static void blocks_are_covered_by_the_fewest_nodes(void **state)
{
    (void)state;
    for (int v = 1; v <= 64; v++)
        for (int first = 0; first < v; first++)
            for (int end = first; end <= v; end++)
                check_block(first, end, v);
    for (int first = 0; first < 1024; first += 3)
        for (int end = first; end <= 1024; end += 7)
            check_block(first, end, 1024);
    check_block(1, 1023, 1024);
}

static void eight_on_three(void **state)
{
    (void)state;
    static const ls__tree_node want[3][2] = { { 1u << 26 | 0, 2 },
                                              { 3, 1u << 26 | 2 },
                                              { 1u << 26 | 3 } };
    static const int counts[3] = { 2, 2, 1 };
    for (int d = 0; d < 3; d++) {
        ls__tree_node nodes[LS__MOST_BLOCK_NODES];
        int n = ls__tree_block(ls__block_begin(8, 3, d), ls__block_begin(8, 3, d + 1), 8, nodes);
        assert_int_equal(n, counts[d]);
        assert_memory_equal(nodes, want[d], (size_t)n * sizeof *nodes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(five_replicas),
        cmocka_unit_test(parts_are_the_loop),
        cmocka_unit_test(a_sum_is_of_its_parts_and_of_no_others),
        cmocka_unit_test(blocks_are_covered_by_the_fewest_nodes),
        cmocka_unit_test(eight_on_three),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
