/*
 * A step as a problem for layout_choice.h: which of its nodes may run on packed
 * memory, in which layouts, and what that saves and costs. pass_layout.c asks, and
 * carries out the answer.
 */
#ifndef LS__TRACE_LAYOUT_PROBLEM_H
#define LS__TRACE_LAYOUT_PROBLEM_H

#include "ops/layout_conv.h"
#include "trace/graph.h"
#include "trace/layout_choice.h"

/* Sets of forms are bits of a word; a step with more layouts than that leaves the
 * rest plain. */
enum { LS__MOST_FORMS = 64 };

/* A packed layout, by one of the plans that want it; form f is at f - 1. */
typedef struct ls__layout_form {
    ls__conv_packed_attrs attrs; /* with `argument` */
    ls__conv_plan plan;
} ls__layout_form;

/* What a convolution of a graph computes, and which of its arguments its first two
 * inputs and its output are. */
typedef struct ls__layout_conv {
    ls__conv_shape shape;
    ls__conv_pass pass;
    int in[2], out; /* LS__CONV_X, _W, _Y */
} ls__layout_conv;

typedef enum ls__layout_kind {
    LS__LAYOUT_CONVOLUTION,
    LS__LAYOUT_ELEMENTWISE,
    LS__LAYOUT_TAKES_IMAGE, /* one input is an image that may be in blocks of channels... */
    LS__LAYOUT_MAKES_IMAGE  /* ...or the first output is; all else is plain */
} ls__layout_kind;

/* A node of the graph that may run packed. */
typedef struct ls__layout_candidate {
    ls__layout_kind kind;
    ls__conv_layout by;   /* a convolution's layout, in state 1 */
    ls__layout_conv conv; /* a convolution */
    int image;            /* the input of one that takes an image */
} ls__layout_candidate;

typedef struct ls__layout {
    ls__graph *g;
    ls__node **nodes; /* the graph's list before anything changes */
    int n_nodes;
    ls__layout_form forms[LS__MOST_FORMS];
    int n_forms;
    ls__layout_problem problem;
    ls__layout_candidate *candidates; /* as problem.nodes */
    int *candidate_of;                /* by node's index in `nodes`; -1: none */
    uint64_t *wanted;                 /* by wire: forms that some candidate may have it in */
} ls__layout;

/* The channels in a block of a form; 0: it has no such blocks. */
int64_t ls__layout_block(const ls__layout *l, int form);

/* Whether a node is a convolution that has plans, f32. */
bool ls__layout_is_convolution(const ls__graph *g, const ls__node *node, ls__layout_conv *out);

/* States and solves the problem of a graph. Free it in any case. */
ls_status ls__layout_solve(ls__layout *l, ls__graph *g);
void ls__layout_free(ls__layout *l);

#endif
