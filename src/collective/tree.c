/*
 * The order in which replicas are added up. A node's lowest name is the one at which its right part
 * is not empty (or a single replica), so two nodes are the same sum when their numbers are.
 *
 * A lowest name that is not the tree's root and has fewer replicas than its level allows ends at V;
 * hence only a full node ever has a right neighbour to be added to.
 */
#include "collective/tree.h"

ls__tree_node ls__tree_name(int k, int m, int replicas)
{
    while (k > 0 && (2 * m + 1) << (k - 1) >= replicas) {
        k--;
        m *= 2;
    }
    return ls__tree_node_at(k, m);
}

ls__tree_node ls__tree_root(int replicas)
{
    return ls__tree_name(LS__TREE_LEVELS, 0, replicas);
}

bool ls__tree_parts(ls__tree_node node, int replicas, ls__tree_node *left, ls__tree_node *right)
{
    int k = ls__tree_level(node), m = ls__tree_index(node);
    if (k == 0)
        return false;
    *left = ls__tree_name(k - 1, 2 * m, replicas);
    *right = ls__tree_name(k - 1, 2 * m + 1, replicas);
    return true;
}

bool ls__tree_sum(ls__tree_node left, ls__tree_node right, int replicas, ls__tree_node *out)
{
    int k = ls__tree_level(left), m = ls__tree_index(left);
    if (m % 2 || ls__tree_end(left, replicas) == replicas ||
        right != ls__tree_name(k, m + 1, replicas))
        return false;
    *out = ls__tree_node_at(k + 1, m / 2);
    return true;
}

int ls__tree_block(int first, int end, int replicas, ls__tree_node *out)
{
    int n = 0;
    while (first < end) {
        int k = 0;
        while (k < LS__TREE_LEVELS && first % (2 << k) == 0 &&
               (first + (2 << k) <= end || (end == replicas && first + (1 << k) < replicas)))
            k++;
        out[n] = ls__tree_name(k, first >> k, replicas);
        first = ls__tree_end(out[n++], replicas);
    }
    return n;
}
