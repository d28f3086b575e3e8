/*
 * The IR: one traced step as a list of calls in program order.
 *
 * A node is a call of an operator row; a wire is a tensor that goes from one
 * node to others, or comes from outside (an argument, a constant). Variables are
 * cells, known to nodes by their number. There is nothing else: fused and packed
 * operators are rows too (LS__OP_FUSED), so every node is checked, printed, stored
 * and run in one way.
 *
 * Invariants, kept by the functions below and checked by ls__graph_verify:
 *   - a wire is made before it is used (the list is in topological order);
 *   - the wires a node makes have the specs its shape rule gives;
 *   - nodes with effects (ls__node_has_effect) keep their order.
 *
 * How a pass changes a graph (see pass_dead.c for the shortest):
 *
 *     ls__uses uses;
 *     ls_status st = ls__uses_find(g, &uses);            // who uses which wire
 *     for (int i = 0; i < g->n_nodes; i++)
 *         ... look at g->nodes[i] ...
 *         fused = ls__graph_call(g, node, &row, &attrs, 2, inputs);  // before `node`
 *         ls__graph_redirect(g, node->outputs[0], fused->outputs[0]);
 *     ls__uses_free(&uses);
 *
 * What is no longer used is left to the dead-node pass. A fused node goes where
 * the last node of its pattern is; it takes over that one's `where`. Its phase is that of
 * the place where it stands.
 */
#ifndef LS__TRACE_GRAPH_H
#define LS__TRACE_GRAPH_H

#include <lockstep/profile.h>

#include "base/arena.h"
#include "dispatch/call.h"
#include "tensor/cell.h"
#include "tensor/spec.h"
#include "tensor/storage.h"

typedef struct ls__node {
    const ls_op *op;
    void *attrs; /* op->attr_size bytes, or NULL */
    int n_inputs, n_outputs, n_cells;
    int *inputs;    /* wires */
    int *outputs;   /* wires */
    int *cells;     /* numbers of cells */
    int64_t draw;   /* of a node that draws: its ordinal among the step's draws */
    int where;      /* the call was number `where` of the step as traced, from 1 */
    int replica;    /* who made it in a run that is part of this step; -1: nobody in particular */
    ls_phase phase; /* what it was part of; not stored */
    int at;         /* its index in the list; ls__graph_number keeps it */
} ls__node;

typedef enum ls__wire_kind { LS__WIRE_RESULT, LS__WIRE_INPUT, LS__WIRE_CONSTANT } ls__wire_kind;

typedef struct ls__wire {
    ls__spec spec;
    ls__wire_kind kind;
    ls__node *node; /* of a result: who makes it... */
    int index;      /* ...and as which output; else the number of the input or constant */
    int after;      /* of an input: the number of meetings after which it is there */
} ls__wire;

/* A tensor that was there before the step: captured, or made of such. */
typedef struct ls__constant {
    ls__storage *storage; /* one reference */
    bool splat;           /* all elements have the bytes of the first */
} ls__constant;

/* A variable as the IR knows it. */
typedef struct ls__graph_cell {
    uint64_t serial; /* ls__cell_serial where it was traced */
    const char *name;
    ls__spec spec;
    ls__cell *cell; /* one reference; hollow in a graph that was read from bytes */
} ls__graph_cell;

typedef struct ls__graph {
    ls__arena arena; /* nodes, attributes, names */
    const char *name;
    ls__node **nodes;
    int n_nodes, room_nodes;
    ls__wire *wires;
    int n_wires, room_wires;
    ls__constant *constants;
    int n_constants, room_constants;
    ls__graph_cell *cells;
    int n_cells, room_cells;
    int *inputs; /* wires, in the order of the arguments' leaves */
    int n_inputs, room_inputs;
    int *outputs; /* wires */
    int n_outputs, room_outputs;
    int64_t draws;  /* how many draws a step takes */
    int calls;      /* calls of the step as traced: what `where` counts to */
    int replica;    /* while it is recorded: who makes the next nodes, or -1 */
    ls_phase phase; /* while it is recorded: what the next nodes are part of */
    int meetings;   /* while it is recorded: so far (LS__OP_SYNC nodes) */
} ls__graph;

/* ---- making and freeing ------------------------------------------------------- */

/* An empty graph; `name` is copied. NULL when out of memory. */
ls__graph *ls__graph_new(const char *name);
void ls__graph_free(ls__graph *g);

/* A copy that shares nothing but constants' and cells' memory. */
ls__graph *ls__graph_copy(const ls__graph *g);

/* Each returns the number of what it added, or -1 (error recorded). */
int ls__graph_input(ls__graph *g, const ls__spec *spec);                    /* a wire */
int ls__graph_constant(ls__graph *g, const ls__spec *spec, ls__storage *s); /* a wire; refs s */
int ls__graph_cell_add(ls__graph *g, uint64_t serial, const char *name, const ls__spec *spec,
                       ls__cell *cell); /* a cell; refs it (NULL: makes a hollow one); the same
                                         * number for the same serial */
ls_status ls__graph_output(ls__graph *g, int wire);

/* Calls `op` on wires and cells: runs the shape rule, adds the node before
 * `before` (NULL: at the end) and makes its wires. NULL: the shape rule's error.
 * Attributes are copied. `where` and phase are taken from `before` (or the graph). */
ls__node *ls__graph_call(ls__graph *g, ls__node *before, const ls_op *op, const void *attrs,
                         int n_inputs, const int *inputs);
ls__node *ls__graph_call_cells(ls__graph *g, ls__node *before, const ls_op *op, const void *attrs,
                               int n_inputs, const int *inputs, int n_cells, const int *cells);

/* The same for a node whose output specs are known: no shape rule is run. */
ls__node *ls__graph_add(ls__graph *g, ls__node *before, const ls_op *op, const void *attrs,
                        int n_inputs, const int *inputs, int n_cells, const int *cells,
                        int n_outputs, const ls__spec *outputs);

/* Takes the node out of the list; its wires must be unused. */
void ls__graph_remove(ls__graph *g, ls__node *node);

/* Whoever uses wire `from`, the graph's outputs too, uses `to` from now on; but
 * never `except` (may be NULL). Both have the same spec. */
void ls__graph_redirect(ls__graph *g, int from, int to, const ls__node *except);

/* Brings every node's `at` up to date; insertions and removals do it themselves. */
void ls__graph_number(ls__graph *g);

/* ---- asking ---------------------------------------------------------------------- */

/* Draws, reads, writes, meets other replicas or is there to fail: kept, and kept in order. */
bool ls__node_has_effect(const ls__node *node);

/* The node that makes a wire if it is a call of the registered row `name`, else NULL. */
ls__node *ls__made_by(const ls__graph *g, int wire, const char *name);
bool ls__node_is(const ls__node *node, const char *name);

/* The cell a wire is a plain read of (through nothing), or -1. */
int ls__wire_cell(const ls__graph *g, int wire);

/* Whether a wire is a constant with one number in every element, and which. */
bool ls__wire_splat(const ls__graph *g, int wire, double *value);

/* The elements of a constant wire; NULL for others. */
const void *ls__wire_data(const ls__graph *g, int wire);

/* Whether two graphs are the same but for their cells, which have the same specs in order. */
bool ls__graph_same(const ls__graph *a, const ls__graph *b);

/* Whether two nodes have the same row and the same attributes, field by field. */
bool ls__same_attrs(const ls_op *op, const void *a, const void *b);

/* Who uses which wire, as the graph is now. A node that takes a wire twice is
 * listed twice; being an output of the graph counts as a use without a node. */
typedef struct ls__uses {
    int *begin;       /* of wire w: users[begin[w]] up to users[begin[w + 1]] */
    ls__node **users; /* in program order; NULL for an output of the graph, last */
} ls__uses;
ls_status ls__uses_find(const ls__graph *g, ls__uses *out);
void ls__uses_free(ls__uses *uses);
static inline int ls__uses_count(const ls__uses *u, int wire)
{
    return u->begin[wire + 1] - u->begin[wire];
}
/* The node that is the wire's only use, or NULL (no use, several, or an output). */
static inline ls__node *ls__only_user(const ls__uses *u, int wire)
{
    return ls__uses_count(u, wire) == 1 ? u->users[u->begin[wire]] : NULL;
}

/* ---- checking, printing, storing ---------------------------------------------------- */

/* LS_OK, or LS_CORRUPT naming the first thing that breaks an invariant: indices,
 * order, arity, attributes, specs against the shape rules, cells, draws. */
ls_status ls__graph_verify(const ls__graph *g);

/* Malloc'ed text, NULL when out of memory. Text: one line a node. Dot: for graphviz. */
char *ls__graph_text(const ls__graph *g);
char *ls__graph_dot(const ls__graph *g);

/* To bytes and back: little-endian, versioned, no addresses; constants as data.
 * Reading checks all it reads (ls__graph_verify at the end) and fails with
 * LS_CORRUPT, or LS_UNSUPPORTED for another version. Rows are found by name, so
 * an unregistered one refuses to travel (LS_UNSUPPORTED names it). */
ls_status ls__graph_write(const ls__graph *g, void **bytes, size_t *size); /* free() it */
ls__graph *ls__graph_read(const void *bytes, size_t size);

#endif
