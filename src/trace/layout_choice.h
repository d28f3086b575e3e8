/*
 * Choosing which nodes of a step run on packed memory: a small optimisation problem
 * as plain data, so that it is solved and tested without graphs and kernels.
 *
 * A form is a layout; form 0 is plain. A node is in one of a few states, state 0
 * being "plain"; a state says what it saves, and in which form the node touches
 * each of its wires. A wire is made in one form. Each other form somebody wants it
 * in costs a move, from packed to packed two: through plain.
 *
 *     cost = moves of all wires - what the nodes' states save
 *
 * Intended usage: fill in nodes and wires, call ls__layout_choose, read the states.
 */
#ifndef LS__TRACE_LAYOUT_CHOICE_H
#define LS__TRACE_LAYOUT_CHOICE_H

#include <stdbool.h>

enum { LS__LAYOUT_STATES = 4, LS__LAYOUT_PORTS = 4 };

typedef struct ls__layout_port {
    int wire;
    bool makes; /* else it takes it */
    int form[LS__LAYOUT_STATES];
} ls__layout_port;

typedef struct ls__layout_node {
    int n_ports, n_states;
    ls__layout_port port[LS__LAYOUT_PORTS];
    double gain_us[LS__LAYOUT_STATES]; /* against state 0 */
    int state;                         /* the answer */
    int region;                        /* while choosing */
} ls__layout_node;

/* Somebody else takes the wire plain, if `plain_use`; somebody else makes it, plain,
 * if no node here does. */
typedef struct ls__layout_wire {
    double move_us;
    bool plain_use;
    int first; /* of `touches`, see ls__layout_link */
    int count;
} ls__layout_wire;

typedef struct ls__layout_problem {
    int n_nodes, n_wires;
    ls__layout_node *nodes;
    ls__layout_wire *wires;
    int *touches; /* node * LS__LAYOUT_PORTS + port, by wire: room for all ports */
} ls__layout_problem;

/* Lists who touches which wire: after the ports were filled in, before the rest. */
void ls__layout_link(ls__layout_problem *p);

/* Sets every node's state: starts with all packed and goes on, node by node and
 * region by region, while that lowers the cost. The same problem gets the same answer. */
void ls__layout_choose(ls__layout_problem *p);

/* The form a wire is made in, whether it is wanted plain as well, and what its
 * moves cost, all with the states as they are. */
int ls__layout_made(const ls__layout_problem *p, int wire);
bool ls__layout_wants_plain(const ls__layout_problem *p, int wire);
double ls__layout_moves_us(const ls__layout_problem *p, int wire);

#endif
