/*
 * What may be packed in a step, and what that is worth.
 *
 * A convolution that is faster in another layout (ls__conv_preferred) may run there; an
 * element-wise row may run in any layout without padding that reaches it, from
 * convolution to row and from row to row; pools, which make images smaller or larger, may take or
 * make the larger one in blocks of channels. Invariant: two plans' layouts have one number
 * exactly when they are equal, so a wire in a form may be given to whoever wants that form.
 */
#include "trace/layout_problem.h"

#include <stdlib.h>

#include "dispatch/registry.h"
#include "kernels/conv_layout.h"
#include "kernels/conv_pool.h"
#include "ops/conv.h"

/* Measured on Sapphire Rapids, 1 thread, batch 64 (make bench-kernels, columns `reorders`
 * and `ours` against `eager`): all moves of activations run at 12.4 to 12.6 bytes a
 * nanosecond. NHWC takes about 1 us for 180,000 operations; Winograd's algorithm
 * saves 20 % (64 channels on 7x7: 22 to 24 %; 32 -> 64 on 13x13: 31 and 35 %), blocked
 * layouts without it from nothing to 15 %, mostly below 7. */
#define MOVE_BYTES_US 12500.0
#define NHWC_OPERATIONS_US 180000.0
#define WINOGRAD_SAVES 0.2
#define BLOCKED_SAVES 0.05

/* ---- convolutions ------------------------------------------------------------------------ */

bool ls__layout_is_convolution(const ls__graph *g, const ls__node *node, ls__layout_conv *out)
{
    static const struct {
        const char *name;
        ls__conv_pass pass;
        int in[2], out;
    } rows[] = {
        { "conv2d", LS__CONV_FORWARD, { LS__CONV_X, LS__CONV_W }, LS__CONV_Y },
        { "conv2d_bias_act", LS__CONV_FORWARD, { LS__CONV_X, LS__CONV_W }, LS__CONV_Y },
        { "conv2d_grad_input", LS__CONV_BACKWARD_DATA, { LS__CONV_W, LS__CONV_Y }, LS__CONV_X },
        { "conv2d_grad_filter", LS__CONV_BACKWARD_WEIGHTS, { LS__CONV_X, LS__CONV_Y }, LS__CONV_W },
    };
    const int n_rows = sizeof rows / sizeof *rows;
    const ls__spec *arg[3] = { NULL };
    int i = 0;
    while (i < n_rows && !ls__node_is(node, rows[i].name))
        i++;
    if (i == n_rows || g->wires[node->inputs[0]].spec.dtype != LS_F32)
        return false;
    *out = (ls__layout_conv){ .pass = rows[i].pass, .out = rows[i].out };
    for (int k = 0; k < 2; k++) {
        out->in[k] = rows[i].in[k];
        arg[out->in[k]] = &g->wires[node->inputs[k]].spec;
    }
    arg[out->out] = &g->wires[node->outputs[0]].spec;
    const ls_call call = { .op = node->op, .attrs = node->attrs };
    if (ls__conv_geometry(&call, false, arg[LS__CONV_X]->dims, arg[LS__CONV_W]->dims, &out->shape))
        return false;
    if (node->n_inputs == 3) {
        out->shape.bias = true;
        out->shape.relu = ((const ls__conv_act_attrs *)node->attrs)->relu;
    }
    return true;
}

static double saves_us(const ls__conv_shape *s, ls__conv_layout by)
{
    double operations = 2.0 * (double)s->n * (double)s->oh * (double)s->ow * (double)s->oc *
                        (double)s->kh * (double)s->kw * (double)s->c;
    return operations / NHWC_OPERATIONS_US *
           (by == LS__CONV_WINOGRAD ? WINOGRAD_SAVES : BLOCKED_SAVES);
}

/* The number of an argument's form, 0 when it is plain, -1 when there are too many. */
static int form_of(ls__layout *l, const ls__conv_packed_attrs *attrs, const ls__conv_plan *plan,
                   int arg)
{
    if (plan->arg[arg].plain)
        return 0;
    for (int f = 0; f < l->n_forms; f++)
        if (ls__conv_plan_same_layout(&l->forms[f].plan, (int)l->forms[f].attrs.argument, plan,
                                      arg))
            return f + 1;
    ls__layout_form *new = &l->forms[l->n_forms];
    if (l->n_forms == LS__MOST_FORMS)
        return -1;
    new->attrs = *attrs;
    new->attrs.argument = arg;
    if (ls__conv_packed_plan(&new->attrs, &new->plan))
        return -1;
    return ++l->n_forms;
}

static ls__layout_node *add_candidate(ls__layout *l, const ls__node *node,
                                      const ls__layout_candidate *c)
{
    int i = l->problem.n_nodes++;
    l->candidates[i] = *c;
    l->candidate_of[node->at] = i;
    l->problem.nodes[i] = (ls__layout_node){ .n_states = 1 };
    return &l->problem.nodes[i];
}

/* A port of `n`, plain in state 0 and in `f` in state 1. */
static void add_port(ls__layout *l, ls__layout_node *n, int wire, bool makes, int f)
{
    n->port[n->n_ports++] = (ls__layout_port){ .wire = wire, .makes = makes, .form = { 0, f } };
    if (f)
        l->wanted[wire] |= UINT64_C(1) << (f - 1);
}

/* States of `n` in which all its ports have one of these forms. */
static void add_states(const ls__layout *l, ls__layout_node *n, uint64_t forms)
{
    for (int f = 1; f <= l->n_forms && n->n_states < LS__LAYOUT_STATES; f++)
        if (forms >> (f - 1) & 1) {
            for (int k = 0; k < n->n_ports; k++)
                n->port[k].form[n->n_states] = f;
            n->n_states++;
        }
}

/* A convolution that likes its activations packed becomes a candidate. */
static ls_status consider_convolution(ls__layout *l, ls__node *node)
{
    ls__layout_conv c;
    ls__conv_plan plan;
    if (!ls__layout_is_convolution(l->g, node, &c))
        return LS_OK;
    ls__conv_layout by = ls__conv_preferred(&c.shape, c.pass);
    if (by == LS__CONV_NHWC)
        return LS_OK;
    const ls__conv_packed_attrs attrs = ls__conv_packed(&c.shape, c.pass, by);
    ls_status st = ls__conv_packed_plan(&attrs, &plan);
    if (st)
        return st;
    int f[3] = { [LS__CONV_X] = form_of(l, &attrs, &plan, LS__CONV_X),
                 [LS__CONV_Y] = form_of(l, &attrs, &plan, LS__CONV_Y) };
    ls__conv_plan_close(&plan);
    if (f[LS__CONV_X] < 0 || f[LS__CONV_Y] < 0 || (!f[LS__CONV_X] && !f[LS__CONV_Y]))
        return LS_OK;
    ls__layout_node *n = add_candidate(l, node, &(ls__layout_candidate){ .by = by, .conv = c });
    n->n_states = 2;
    n->gain_us[1] = saves_us(&c.shape, by);
    for (int k = 0; k < 2; k++)
        if (c.in[k] != LS__CONV_W)
            add_port(l, n, node->inputs[k], false, f[c.in[k]]);
    if (c.out != LS__CONV_W)
        add_port(l, n, node->outputs[0], true, f[c.out]);
    return LS_OK;
}

/* ---- element-wise rows ---------------------------------------------------------------------- */

/* A row that may run on the elements in any order: no attribute can name an axis. The
 * shape rule of a user's own may want the shape. */
static bool is_elementwise(const ls__graph *g, const ls__node *node)
{
    if (!(node->op->flags & LS_OP_ELEMENTWISE) || !ls__row_is_builtin(node->op) ||
        ls__node_has_effect(node) || node->op->attr_size > 0 || node->n_outputs != 1 ||
        node->n_inputs >= LS__LAYOUT_PORTS)
        return false;
    const ls__spec *out = &g->wires[node->outputs[0]].spec;
    for (int k = 0; k < node->n_inputs; k++)
        if (!ls__spec_equal(&g->wires[node->inputs[k]].spec, out))
            return false;
    return out->dtype == LS_F32;
}

/* The forms without padding that any of the node's wires may have. */
static uint64_t forms_around(const ls__layout *l, const ls__node *node)
{
    uint64_t set = l->wanted[node->outputs[0]];
    for (int k = 0; k < node->n_inputs; k++)
        set |= l->wanted[node->inputs[k]];
    for (int f = 0; f < l->n_forms; f++)
        if (!ls__conv_layout_is_elementwise_safe(&l->forms[f].plan,
                                                 (int)l->forms[f].attrs.argument))
            set &= ~(UINT64_C(1) << f);
    return set;
}

/* Spreads the forms over a node's wires; false when they were there already. */
static bool spread(ls__layout *l, const ls__node *node)
{
    uint64_t set = is_elementwise(l->g, node) ? forms_around(l, node) : 0;
    if (!set)
        return false;
    bool changed = (set & ~l->wanted[node->outputs[0]]) != 0;
    l->wanted[node->outputs[0]] |= set;
    for (int k = 0; k < node->n_inputs; k++) {
        changed |= (set & ~l->wanted[node->inputs[k]]) != 0;
        l->wanted[node->inputs[k]] |= set;
    }
    return changed;
}

static void consider_elementwise(ls__layout *l, ls__node *node)
{
    uint64_t set = is_elementwise(l->g, node) ? forms_around(l, node) : 0;
    if (!set)
        return;
    ls__layout_node *n =
        add_candidate(l, node, &(ls__layout_candidate){ .kind = LS__LAYOUT_ELEMENTWISE });
    for (int k = 0; k < node->n_inputs; k++)
        add_port(l, n, node->inputs[k], false, 0);
    add_port(l, n, node->outputs[0], true, 0);
    add_states(l, n, set);
}

/* ---- rows around an image ------------------------------------------------------------------- */

int64_t ls__layout_block(const ls__layout *l, int form)
{
    const ls__layout_form *f = &l->forms[form - 1];
    return ls__conv_layout_block(&f->plan, (int)f->attrs.argument);
}

/* Whether a node has an image, and which of its wires that is. */
static bool find_image(const ls__node *node, ls__layout_candidate *c, int64_t *only_block)
{
    static const struct {
        const char *name;
        ls__layout_kind kind;
        int image;
        int64_t only_block; /* 0: any */
    } rows[] = {
        { "max_pool2d", LS__LAYOUT_TAKES_IMAGE, 0, 0 },
        { "max_pool2d_relu", LS__LAYOUT_TAKES_IMAGE, 0, 0 },
        { "max_pool2d_grad", LS__LAYOUT_MAKES_IMAGE, 0, 0 },
        { "conv2d_pool_relu", LS__LAYOUT_MAKES_IMAGE, 0, LS__CONV_POOL_BLOCK },
        { "conv2d_pool_relu_grad", LS__LAYOUT_TAKES_IMAGE, 1, LS__CONV_POOL_BLOCK },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (ls__node_is(node, rows[i].name)) {
            *c = (ls__layout_candidate){ .kind = rows[i].kind, .image = rows[i].image };
            *only_block = rows[i].only_block;
            return true;
        }
    return false;
}

static void consider_image(ls__layout *l, ls__node *node)
{
    ls__layout_candidate c;
    int64_t only_block;
    if (!find_image(node, &c, &only_block))
        return;
    const bool makes = c.kind == LS__LAYOUT_MAKES_IMAGE;
    const int wire = makes ? node->outputs[0] : node->inputs[c.image];
    uint64_t set = l->wanted[wire];
    for (int f = 1; f <= l->n_forms; f++) {
        const int64_t block = ls__layout_block(l, f);
        if (block == 0 || (only_block && block != only_block))
            set &= ~(UINT64_C(1) << (f - 1));
    }
    if (!set)
        return;
    ls__layout_node *n = add_candidate(l, node, &c);
    add_port(l, n, wire, makes, 0);
    add_states(l, n, set);
}

/* ---- the problem ------------------------------------------------------------------------- */

/* Whether input k of a node is a port: a candidate's activation. A weight or a bias is none,
 * even if it is the same wire. */
static bool is_port(const ls__layout *l, int node, int k)
{
    if (l->candidate_of[node] < 0)
        return false;
    const ls__layout_candidate *c = &l->candidates[l->candidate_of[node]];
    switch (c->kind) {
    case LS__LAYOUT_CONVOLUTION:
        return k < 2 && c->conv.in[k] != LS__CONV_W;
    case LS__LAYOUT_ELEMENTWISE:
        return true;
    case LS__LAYOUT_TAKES_IMAGE:
        return k == c->image;
    default:
        return false;
    }
}

/* What a wire costs to move, and whether anybody takes it plain in any case. */
static void describe_wires(ls__layout *l)
{
    ls__layout_wire *wires = l->problem.wires;
    for (int w = 0; w < l->g->n_wires; w++)
        wires[w].move_us = (double)ls__spec_bytes(&l->g->wires[w].spec) / MOVE_BYTES_US;
    for (int i = 0; i < l->g->n_outputs; i++)
        wires[l->g->outputs[i]].plain_use = true;
    for (int i = 0; i < l->n_nodes; i++)
        for (int k = 0; k < l->nodes[i]->n_inputs; k++)
            if (!is_port(l, i, k))
                wires[l->nodes[i]->inputs[k]].plain_use = true;
}

/* Forms reach as far as element-wise rows carry them, in either direction. */
static void consider_all_elementwise(ls__layout *l)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < l->n_nodes; i++)
            changed |= spread(l, l->nodes[i]);
        for (int i = l->n_nodes; i-- > 0;)
            changed |= spread(l, l->nodes[i]);
    }
    for (int i = 0; i < l->n_nodes; i++)
        consider_elementwise(l, l->nodes[i]);
}

static ls_status make_room(ls__layout *l, ls__graph *g)
{
    const size_t nodes = (size_t)g->n_nodes + 1, wires = (size_t)g->n_wires + 1;
    *l = (ls__layout){ .g = g, .n_nodes = g->n_nodes };
    l->nodes = malloc(nodes * sizeof *l->nodes);
    l->problem.nodes = malloc(nodes * sizeof *l->problem.nodes);
    l->problem.wires = calloc(wires, sizeof *l->problem.wires);
    l->problem.touches = malloc(nodes * LS__LAYOUT_PORTS * sizeof *l->problem.touches);
    l->candidates = malloc(nodes * sizeof *l->candidates);
    l->candidate_of = malloc(nodes * sizeof *l->candidate_of);
    l->wanted = calloc(wires, sizeof *l->wanted);
    if (!l->nodes || !l->problem.nodes || !l->problem.wires || !l->problem.touches ||
        !l->candidates || !l->candidate_of || !l->wanted)
        return ls__fail_memory("the layout of a step", nodes * sizeof *l->problem.nodes);
    l->problem.n_wires = g->n_wires;
    for (int i = 0; i < g->n_nodes; i++) {
        l->nodes[i] = g->nodes[i];
        l->candidate_of[i] = -1;
    }
    return LS_OK;
}

ls_status ls__layout_solve(ls__layout *l, ls__graph *g)
{
    ls_status st = make_room(l, g);
    for (int i = 0; i < l->n_nodes && !st; i++)
        st = consider_convolution(l, l->nodes[i]);
    if (st || l->problem.n_nodes == 0)
        return st;
    consider_all_elementwise(l);
    for (int i = 0; i < l->n_nodes; i++)
        consider_image(l, l->nodes[i]);
    describe_wires(l);
    ls__layout_link(&l->problem);
    ls__layout_choose(&l->problem);
    return LS_OK;
}

void ls__layout_free(ls__layout *l)
{
    for (int f = 0; f < l->n_forms; f++)
        ls__conv_plan_close(&l->forms[f].plan);
    free(l->nodes);
    free(l->problem.nodes);
    free(l->problem.wires);
    free(l->problem.touches);
    free(l->candidates);
    free(l->candidate_of);
    free(l->wanted);
}
