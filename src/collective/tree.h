/*
 * The tree in whose order replicas are added up (DESIGN rule B). Node (k, m) covers replicas
 * [m 2^k, (m + 1) 2^k) below V; its value is left + right, or left alone when the right is empty.
 *
 *     V = 5        (3,0)
 *                 /     \
 *             (2,0)      (0,4)        (2,1) and (1,2) have no right part: they are (0,4),
 *            /     \                  and go by that name, the lowest one
 *        (1,0)     (1,1)
 *        /  \       /  \
 *     (0,0)(0,1) (0,2)(0,3)
 *
 * A node is a number, so that it can be an operand of a schedule; all functions take and give
 * lowest names.
 */
#ifndef LS__COLLECTIVE_TREE_H
#define LS__COLLECTIVE_TREE_H

#include <stdbool.h>
#include <stdint.h>

typedef uint32_t ls__tree_node; /* k in the top 5 bits of 31, m below */

enum { LS__MOST_REPLICAS = 1024, LS__TREE_LEVELS = 10, LS__MOST_BLOCK_NODES = 20 };

static inline ls__tree_node ls__tree_node_at(int k, int m)
{
    return (uint32_t)k << 26 | (uint32_t)m;
}

static inline int ls__tree_level(ls__tree_node node)
{
    return (int)(node >> 26 & 31);
}

static inline int ls__tree_index(ls__tree_node node)
{
    return (int)(node & ((1u << 26) - 1));
}

/* The replicas it covers: from first up to end. */
static inline int ls__tree_first(ls__tree_node node)
{
    return ls__tree_index(node) << ls__tree_level(node);
}

static inline int ls__tree_end(ls__tree_node node, int replicas)
{
    int end = (ls__tree_index(node) + 1) << ls__tree_level(node);
    return end < replicas ? end : replicas;
}

/* The lowest name of node (k, m). */
ls__tree_node ls__tree_name(int k, int m, int replicas);

/* All of them. */
ls__tree_node ls__tree_root(int replicas);

/* The two nodes whose sum it is; false for a single replica. */
bool ls__tree_parts(ls__tree_node node, int replicas, ls__tree_node *left, ls__tree_node *right);

/* The node whose value the sum of two nodes is, left first; false when there is none. */
bool ls__tree_sum(ls__tree_node left, ls__tree_node right, int replicas, ls__tree_node *out);

/* The fewest nodes that cover replicas [first, end), in order; how many (at most
 * LS__MOST_BLOCK_NODES). 8 replicas, [3, 6): {3} {45}. */
int ls__tree_block(int first, int end, int replicas, ls__tree_node *out);

#endif
